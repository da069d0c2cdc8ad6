/* Load for a server that speaks the Redis protocol, from one thread that shares the machine with it.
 *
 *     driver ADDRESS PORT CONNECTIONS PIPELINE CALLS KEYSPACE NUMBERS SEED  < calls
 *
 * Each connection sends PIPELINE calls, waits for all their replies, and sends the next ones, as
 * redis-benchmark does. What a call is comes on the standard input, once or more:
 *
 *     WEIGHT COMMANDS BYTES\n  and BYTES bytes: COMMANDS commands as they go over the wire
 *
 * A call is drawn by its weight. Wherever it has __rand_int__, it gets one number of twelve digits
 * below KEYSPACE, the same in all places: NUMBERS is uniform, zipf (by rank to the power of -0.99,
 * neighbours in rank are no neighbours in number) or sequence (0, 1, 2, ...). With CALLS 0 it goes on
 * until SIGTERM; the calls under way are finished then.
 *
 * Prints `begun` once it is connected and SIGTERM may come, and at the end one JSON object, in one line:
 * latencies are of whole pipelines, in microseconds. Replies are passed over and not kept; errors among
 * them are counted. benchmarks/driver.py is the same without a compiler.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { DIGITS = 12, MOST_CALLS = 1024, MOST_EVENTS = 256, HEADER_BYTES = 4096, READ_BYTES = 1 << 18 };
static const char HOLE[] = "__rand_int__";
static const double ZIPF_EXPONENT = 0.99;
static const uint64_t SCATTER = 982451653; /* a prime: ranks become numbers by it, each one once */

struct call {
    char *bytes;
    size_t length;
    size_t *holes;
    size_t hole_count;
    long commands;
    long weight;
};

struct connection {
    int fd;
    bool wants_to_write;
    char *out; /* the pipeline under way */
    size_t out_length, out_sent;
    char header[HEADER_BYTES]; /* the beginning of one, if a read ended in its midst */
    size_t header_length;
    long long skip;     /* bytes of a value still to come */
    long long elements; /* still to come of this reply */
    long replies;       /* still to come of this pipeline */
    uint64_t sent_ns;
};

static struct call calls[MOST_CALLS];
static int call_count;
static long total_weight;
static long pipeline, calls_wanted, calls_issued, busy_connections;
static uint64_t keyspace, random_state, sequence;
static double *zipf; /* the part of all draws that has this rank or a lower one */
static bool in_sequence;
static volatile sig_atomic_t stopping;
static uint64_t *latencies_ns;
static size_t latency_count, latency_room;
static long long error_count;
static char first_error[200];
static char incoming[HEADER_BYTES + READ_BYTES];
static int poller;

static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void *reserve(void *old, size_t bytes) {
    void *got = realloc(old, bytes);
    if (got == NULL) die("out of memory");
    return got;
}

static uint64_t now_ns(void) {
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return (uint64_t)moment.tv_sec * 1000000000u + (uint64_t)moment.tv_nsec;
}

/* Calls */

static void find_holes(struct call *call) {
    char *at = call->bytes, *end = at + call->length;
    while ((at = memmem(at, (size_t)(end - at), HOLE, DIGITS)) != NULL) {
        call->holes = reserve(call->holes, (call->hole_count + 1) * sizeof *call->holes);
        call->holes[call->hole_count++] = (size_t)(at - call->bytes);
        at += DIGITS;
    }
}

static void read_calls(void) {
    struct call call = {0};
    while (scanf("%ld %ld %zu", &call.weight, &call.commands, &call.length) == 3) {
        if (call_count == MOST_CALLS || getchar() != '\n') die("too many calls, or a bad heading");
        if (call.weight < 1 || call.commands < 1) die("a call without weight or commands");
        call.bytes = reserve(NULL, call.length);
        if (fread(call.bytes, 1, call.length, stdin) != call.length) die("a call is cut off");
        find_holes(&call);
        total_weight += call.weight;
        calls[call_count++] = call;
        memset(&call, 0, sizeof call);
    }
    if (call_count == 0) die("no calls were given");
}

static uint64_t next_random(void) { /* xorshift64* */
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 2685821657736338717u;
}

static double next_fraction(void) { return (double)(next_random() >> 11) * 0x1p-53; }

static void prepare_zipf(void) {
    double sum = 0;
    zipf = reserve(NULL, keyspace * sizeof *zipf);
    for (uint64_t rank = 0; rank < keyspace; rank++)
        zipf[rank] = sum += pow((double)(rank + 1), -ZIPF_EXPONENT);
    for (uint64_t rank = 0; rank < keyspace; rank++) zipf[rank] /= sum;
}

static uint64_t next_zipf(void) {
    double fraction = next_fraction();
    uint64_t low = 0, high = keyspace - 1;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (zipf[middle] <= fraction) low = middle + 1;
        else high = middle;
    }
    return low * SCATTER % keyspace;
}

static uint64_t next_number(void) {
    if (in_sequence) return sequence++ % keyspace;
    return zipf != NULL ? next_zipf() : next_random() % keyspace;
}

static const struct call *next_call(void) {
    if (call_count == 1) return calls;
    long drawn = (long)(next_random() % (uint64_t)total_weight);
    const struct call *call = calls;
    while ((drawn -= call->weight) >= 0) call++;
    return call;
}

static void write_digits(char *place, uint64_t number) {
    for (int digit = DIGITS - 1; digit >= 0; digit--, number /= 10)
        place[digit] = (char)('0' + number % 10);
}

static void append_call(struct connection *connection) {
    const struct call *call = next_call();
    char *place = connection->out + connection->out_length;
    uint64_t number = next_number();
    memcpy(place, call->bytes, call->length);
    for (size_t hole = 0; hole < call->hole_count; hole++)
        write_digits(place + call->holes[hole], number);
    connection->out_length += call->length;
    connection->replies += call->commands;
}

/* Connections */

static void watch(struct connection *connection, int operation) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (connection->wants_to_write) event.events |= EPOLLOUT;
    if (epoll_ctl(poller, operation, connection->fd, &event) != 0) die("epoll: %m");
}

static void send_more(struct connection *connection) {
    while (connection->out_sent < connection->out_length) {
        ssize_t sent = write(connection->fd, connection->out + connection->out_sent,
                             connection->out_length - connection->out_sent);
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0) die("the server does not take more: %m");
        connection->out_sent += (size_t)sent;
    }
    bool left = connection->out_sent < connection->out_length;
    if (left == connection->wants_to_write) return;
    connection->wants_to_write = left;
    watch(connection, EPOLL_CTL_MOD);
}

/* The next pipeline, or rest if there is nothing left to do. */
static void begin(struct connection *connection) {
    long count = pipeline;
    if (calls_wanted > 0 && calls_wanted - calls_issued < count) count = calls_wanted - calls_issued;
    if (stopping || count == 0) {
        busy_connections--;
        return;
    }
    connection->out_length = connection->out_sent = 0;
    for (long n = 0; n < count; n++) append_call(connection);
    calls_issued += count;
    connection->elements = 1;
    connection->sent_ns = now_ns();
    send_more(connection);
}

static void note_latency(uint64_t nanoseconds) {
    if (latency_count == latency_room) {
        latency_room = latency_room ? 2 * latency_room : 65536;
        latencies_ns = reserve(latencies_ns, latency_room * sizeof *latencies_ns);
    }
    latencies_ns[latency_count++] = nanoseconds;
}

static struct sockaddr_in address_of(const char *host, const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) die("%s is no IPv4 address", host);
    return address;
}

static struct connection *connect_to(const struct sockaddr_in *server, size_t most_bytes) {
    struct connection *connection = calloc(1, sizeof *connection);
    int on = 1;
    if (connection == NULL) die("out of memory");
    connection->out = reserve(NULL, most_bytes);
    connection->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connection->fd < 0) die("socket: %m");
    if (connect(connection->fd, (const struct sockaddr *)server, sizeof *server) != 0)
        die("no server at port %d: %m", ntohs(server->sin_port));
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    watch(connection, EPOLL_CTL_ADD);
    return connection;
}

/* Replies */

static void note_error(const char *text, const char *end) {
    size_t length = (size_t)(end - text);
    if (error_count++ > 0) return;
    if (length >= sizeof first_error) length = sizeof first_error - 1;
    for (size_t at = 0; at < length; at++) {
        bool plain = isprint((unsigned char)text[at]) && text[at] != '"' && text[at] != '\\';
        first_error[at] = plain ? text[at] : '?';
    }
}

/* The number up to `end`. Long replies are hundreds of headers, so it is not left to strtoll. */
static inline long long number_of(const char *at, const char *end) {
    long long number = 0;
    if (*at == '-') return -1; /* a null */
    for (; at < end; at++) number = 10 * number + (*at - '0');
    return number;
}

/* What a header promises: `at` is its first byte, `end` its CR. */
static inline void take_header(
    const char *at, const char *end, long long *elements, long long *skip
) {
    long long count;
    (*elements)--;
    switch (*at) {
    case '$': case '=':
        count = number_of(at + 1, end);
        if (count >= 0) *skip = count + 2;
        break;
    case '*': case '~': case '>': case '%':
        count = number_of(at + 1, end);
        if (count > 0) *elements += *at == '%' ? 2 * count : count;
        break;
    case '+': case ':': case '_': case ',': case '#': case '(':
        break;
    case '-':
        note_error(at + 1, end);
        break;
    case '!':
        note_error("an error of several lines", strchr("an error of several lines", 0));
        *skip = number_of(at + 1, end) + 2;
        break;
    default:
        die("this is no reply: it begins with the byte %d", *at);
    }
}

/* Pass over what has come; how many bytes were used. The rest is the beginning of a header. */
static size_t take(struct connection *connection, const char *bytes, size_t length) {
    const char *at = bytes, *end = bytes + length;
    long long skip = connection->skip, elements = connection->elements; /* in registers */
    while (at < end) {
        if (connection->replies == 0) die("there are more replies than commands");
        if (skip > 0) {
            long long passed = end - at < skip ? end - at : skip;
            at += passed;
            skip -= passed;
        } else {
            const char *line_end = at + 1;
            while (line_end < end && *line_end != '\n') line_end++; /* most are of a few bytes */
            if (line_end >= end) break;
            take_header(at, line_end - 1, &elements, &skip);
            at = line_end + 1;
        }
        if (elements == 0 && skip == 0) {
            connection->replies--;
            elements = 1;
        }
    }
    connection->skip = skip;
    connection->elements = elements;
    return (size_t)(at - bytes);
}

static void receive(struct connection *connection) {
    size_t kept = connection->header_length;
    memcpy(incoming, connection->header, kept);
    ssize_t got = read(connection->fd, incoming + kept, READ_BYTES);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) die("the server closed a connection");
    size_t length = kept + (size_t)got, used = take(connection, incoming, length);
    if (length - used > HEADER_BYTES) die("a line of a reply is too long");
    connection->header_length = length - used;
    memcpy(connection->header, incoming + used, length - used);
    if (connection->replies == 0) {
        note_latency(now_ns() - connection->sent_ns);
        begin(connection);
    }
}

/* The program */

static int by_size(const void *left, const void *right) {
    uint64_t first = *(const uint64_t *)left, second = *(const uint64_t *)right;
    return (first > second) - (first < second);
}

static double percentile_us(double part) {
    if (latency_count == 0) return 0;
    return (double)latencies_ns[(size_t)(part * (double)(latency_count - 1))] / 1000.0;
}

static void report(double seconds) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double processor = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    qsort(latencies_ns, latency_count, sizeof *latencies_ns, by_size);
    printf("{\"calls\": %ld, \"seconds\": %.6f, \"processor_seconds\": %.3f, ", calls_issued, seconds,
           processor);
    printf("\"errors\": %lld, \"first_error\": \"%s\", ", error_count, first_error);
    printf("\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"longest_us\": %.1f}\n",
           percentile_us(0.5), percentile_us(0.99), percentile_us(0.999), percentile_us(1));
}

static void run(const struct sockaddr_in *server, long connection_count) {
    struct epoll_event events[MOST_EVENTS];
    struct connection **connections = reserve(NULL, (size_t)connection_count * sizeof *connections);
    size_t longest = 0;
    for (int at = 0; at < call_count; at++)
        if (calls[at].length > longest) longest = calls[at].length;
    for (long at = 0; at < connection_count; at++)
        connections[at] = connect_to(server, longest * (size_t)pipeline);
    puts("begun");
    fflush(stdout);
    uint64_t began = now_ns();
    busy_connections = connection_count;
    for (long at = 0; at < connection_count; at++) begin(connections[at]);
    while (busy_connections > 0) {
        int ready = epoll_wait(poller, events, MOST_EVENTS, -1);
        if (ready < 0 && errno != EINTR) die("epoll: %m");
        for (int at = 0; at < ready; at++) {
            struct connection *connection = events[at].data.ptr;
            if (events[at].events & EPOLLOUT) send_more(connection);
            if (events[at].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(connection);
        }
    }
    report((double)(now_ns() - began) / 1e9);
}

static void stop(int number) {
    (void)number;
    stopping = 1;
}

int main(int count, char **words) {
    if (count != 9) die("driver ADDRESS PORT CONNECTIONS PIPELINE CALLS KEYSPACE NUMBERS SEED");
    struct sockaddr_in server = address_of(words[1], words[2]);
    long connection_count = atol(words[3]);
    pipeline = atol(words[4]);
    calls_wanted = atol(words[5]);
    keyspace = strtoull(words[6], NULL, 10);
    random_state = strtoull(words[8], NULL, 10) * 2 + 1;
    if (connection_count < 1 || pipeline < 1 || keyspace < 1) die("every count is at least 1");
    in_sequence = strcmp(words[7], "sequence") == 0;
    if (strcmp(words[7], "zipf") == 0) prepare_zipf();
    read_calls();
    poller = epoll_create1(0);
    signal(SIGTERM, stop);
    signal(SIGPIPE, SIG_IGN);
    run(&server, connection_count);
    return 0;
}
