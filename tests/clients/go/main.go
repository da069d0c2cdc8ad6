// go-redis: commands it does not know are sent with Do. Replies are strings, which in Go hold any
// bytes. tests/clients/programs.py tells what this program is given and what it has to print.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const commandsInPipeline = 10_000

var (
	background = context.Background()
	everyByte  = allBytes()
	row        = "row\r\n\x00" + everyByte
	column     = "\x00\r\n$5\r\nhello\r\n"
	emptyRow   = []any{"0", []any{}}
	datasets   = 0
)

func allBytes() string {
	every := make([]byte, 256)
	for number := range every {
		every[number] = byte(number)
	}
	return string(every)
}

// newDataset names a dataset of this program's own, without cells.
func newDataset() string {
	datasets++
	return fmt.Sprintf("%s-%d", os.Getenv("DATASET"), datasets)
}

// oneCell is a row with one column c and one cell, as WCGET replies.
func oneCell(timestamp int64, value string) []any {
	return []any{"0", []any{[]any{"c", []any{[]any{timestamp, value}}}}}
}

func address(variable string) string {
	return "127.0.0.1:" + os.Getenv(variable)
}

// A check that does not hold ends its scenario, and is reported by run.
type failure struct{ message string }

func fail(format string, values ...any) {
	panic(failure{fmt.Sprintf(format, values...)})
}

func expectNoError(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func expect(found, wanted any) {
	if !reflect.DeepEqual(found, wanted) {
		fail("%q, not %q", found, wanted)
	}
}

func expectReply(command *redis.Cmd, wanted any) {
	reply, err := command.Result()
	expectNoError(err)
	expect(reply, wanted)
}

func roundTrip(client *redis.Client) {
	dataset := newDataset()
	expectNoError(client.Ping(background).Err())
	expectReply(client.Do(background, "WCPUT", dataset, "r", 1, "c", "value"), int64(1))
	expectReply(client.Do(background, "WCGET", dataset, "r"), oneCell(1, "value"))
}

func binary(client *redis.Client) {
	dataset := newDataset()
	written := []any{"0", []any{
		[]any{everyByte, []any{[]any{int64(1), ""}}},
		[]any{column, []any{[]any{int64(2), everyByte}}},
	}}
	put := client.Do(background, "WCPUT", dataset, row, 1, everyByte, "", 2, column, everyByte)
	expectReply(put, int64(2))
	expectReply(client.Do(background, "WCGET", dataset, row), written)
	expectReply(client.Do(background, "WCDEL", dataset, row), int64(1))
	expectReply(client.Do(background, "WCGET", dataset, row), emptyRow)
}

func pipeline(client *redis.Client) {
	dataset := newDataset()
	writes, err := client.Pipelined(background, func(pipe redis.Pipeliner) error {
		for number := range commandsInPipeline {
			pipe.Do(background, "WCPUT", dataset, fmt.Sprintf("r%d", number), 1, "c", number)
		}
		return nil
	})
	expectNoError(err)
	expect(len(writes), commandsInPipeline)
	for _, write := range writes {
		expectReply(write.(*redis.Cmd), int64(1))
	}

	reads, err := client.Pipelined(background, func(pipe redis.Pipeliner) error {
		for number := range commandsInPipeline {
			pipe.Do(background, "WCGET", dataset, fmt.Sprintf("r%d", number))
		}
		return nil
	})
	expectNoError(err)
	expect(len(reads), commandsInPipeline)
	for number, read := range reads {
		expectReply(read.(*redis.Cmd), oneCell(1, fmt.Sprint(number)))
	}

	var refused *redis.Cmd
	var answered *redis.StatusCmd
	client.Pipelined(background, func(pipe redis.Pipeliner) error {
		refused = pipe.Do(background, "WCGET", "no-such-dataset", "r")
		answered = pipe.Ping(background)
		return nil
	})
	if err := refused.Err(); err == nil || !strings.HasPrefix(err.Error(), "NODATASET ") {
		fail("%v, not NODATASET", err)
	}
	expect(answered.Val(), "PONG")
}

func transaction(client *redis.Client) {
	dataset := newDataset()
	replies, err := client.TxPipelined(background, func(pipe redis.Pipeliner) error {
		pipe.Do(background, "WCPUT", dataset, "r", 1, "c", "first")
		pipe.Do(background, "WCPUT", dataset, "r", 2, "c", "second")
		pipe.Do(background, "WCGET", dataset, "r")
		return nil
	})
	expectNoError(err)
	expectReply(replies[0].(*redis.Cmd), int64(1))
	expectReply(replies[1].(*redis.Cmd), int64(1))
	expectReply(replies[2].(*redis.Cmd), oneCell(2, "second"))

	err = client.Watch(background, func(watching *redis.Tx) error {
		// The client itself has another connection for this.
		expectReply(client.Do(background, "WCPUT", dataset, "r", 3, "c", "third"), int64(1))
		_, err := watching.TxPipelined(background, func(pipe redis.Pipeliner) error {
			pipe.Do(background, "WCPUT", dataset, "r", 4, "c", "fourth")
			return nil
		})
		return err
	}, dataset)
	if !errors.Is(err, redis.TxFailedErr) {
		fail("%v, not an aborted transaction", err)
	}
	expectReply(client.Do(background, "WCGET", dataset, "r"), oneCell(3, "third"))
}

func subscribe(client *redis.Client) {
	channel := newDataset()
	patient, cancel := context.WithTimeout(background, 10*time.Second)
	defer cancel()
	subscriber := client.Subscribe(patient, channel)
	defer subscriber.Close()
	_, err := subscriber.Receive(patient) // the confirmation
	expectNoError(err)
	receivers, err := client.Publish(patient, channel, everyByte).Result()
	expectNoError(err)
	expect(receivers, int64(1))
	message, err := subscriber.ReceiveMessage(patient)
	expectNoError(err)
	expect(message.Channel, channel)
	expect(message.Payload, everyByte)
	expectNoError(subscriber.Ping(patient, "still there"))
	reply, err := subscriber.Receive(patient)
	expectNoError(err)
	expect(reply.(*redis.Pong).Payload, "still there")
}

func reconnect(client *redis.Client) {
	dataset := newDataset()
	expectReply(client.Do(background, "WCPUT", dataset, "r", 1, "c", "value"), int64(1))
	restartServer()
	var reply any
	err := errors.New("never tried")
	for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); {
		reply, err = client.Do(background, "WCGET", dataset, "r").Result()
	}
	expectNoError(err)
	expect(reply, oneCell(1, "value"))
}

// restartServer asks whoever runs this program for it, and returns when the server is up again.
func restartServer() {
	fmt.Println("restart")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	expectNoError(err)
}

func overTLS() *tls.Config {
	pem, err := os.ReadFile(os.Getenv("CA_FILE"))
	expectNoError(err)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: authorities}
}

// run a scenario with a client of its own; one that fails does not keep the others from running.
func run(name string, options func(*redis.Options), scenario func(*redis.Client)) (passed bool) {
	defer func() {
		if problem := recover(); problem != nil {
			message := strings.ReplaceAll(fmt.Sprint(problem), "\n", " | ")
			fmt.Printf("failed %s: %.500s\n", name, message)
		}
	}()
	given := redis.Options{Addr: address("PORT")}
	options(&given)
	client := redis.NewClient(&given)
	defer client.Close()
	scenario(client)
	fmt.Printf("ok %s\n", name)
	return true
}

func main() {
	defaults := func(*redis.Options) {}
	resp2 := func(options *redis.Options) { options.Protocol = 2 }
	resp3 := func(options *redis.Options) { options.Protocol = 3 }
	guarded := func(options *redis.Options) {
		options.Addr, options.Password = address("GUARDED_PORT"), os.Getenv("PASSWORD")
	}
	encrypted := func(options *redis.Options) {
		options.Addr, options.TLSConfig = address("TLS_PORT"), overTLS()
	}

	passed := []bool{
		run("default", defaults, roundTrip),
		run("password", guarded, roundTrip),
		run("tls", encrypted, roundTrip),
		run("binary-resp2", resp2, binary),
		run("binary-resp3", resp3, binary),
		run("pipeline-resp2", resp2, pipeline),
		run("pipeline-resp3", resp3, pipeline),
		run("transaction-resp2", resp2, transaction),
		run("transaction-resp3", resp3, transaction),
		run("subscribe-resp2", resp2, subscribe),
		run("subscribe-resp3", resp3, subscribe),
		run("reconnect", defaults, reconnect),
	}
	for _, scenario := range passed {
		if !scenario {
			os.Exit(1)
		}
	}
}
