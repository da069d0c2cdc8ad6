import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Lettuce: commands it does not know are dispatched with a keyword and a type of reply. */
final class LettuceProgram {
    /** The commands of ours that this program sends. An enum's name() is the interface's, too. */
    @SuppressWarnings("deprecation")
    private enum Wide implements ProtocolKeyword {
        WCPUT,
        WCGET,
        WCDEL;

        @Override
        public byte[] getBytes() {
            return Scenarios.bytes(name());
        }
    }

    private interface Use {
        void with(RedisClient client) throws Exception;
    }

    private interface UseConnection {
        void with(StatefulRedisConnection<byte[], byte[]> connection) throws Exception;
    }

    public static void main(String[] arguments) {
        ClientOptions defaults = ClientOptions.create();
        ClientOptions resp2 = protocol(ProtocolVersion.RESP2);
        ClientOptions resp3 = protocol(ProtocolVersion.RESP3);
        SslOptions trust = SslOptions.builder().trustManager(new File(Scenarios.CA_FILE)).build();
        ClientOptions encrypted = ClientOptions.builder().sslOptions(trust).build();
        RedisURI.Builder guarded =
                uri(Scenarios.GUARDED_PORT).withPassword(Scenarios.PASSWORD.toCharArray());
        RedisURI.Builder overTls = uri(Scenarios.TLS_PORT).withSsl(true);
        RedisURI.Builder open = uri(Scenarios.PORT);

        Scenarios.run("default", () -> connected(open, defaults, LettuceProgram::roundTrip));
        Scenarios.run("password", () -> connected(guarded, defaults, LettuceProgram::roundTrip));
        Scenarios.run("tls", () -> connected(overTls, encrypted, LettuceProgram::roundTrip));
        Scenarios.run("binary-resp2", () -> connected(open, resp2, LettuceProgram::binary));
        Scenarios.run("binary-resp3", () -> connected(open, resp3, LettuceProgram::binary));
        Scenarios.run("pipeline-resp2", () -> connected(open, resp2, LettuceProgram::pipeline));
        Scenarios.run("pipeline-resp3", () -> connected(open, resp3, LettuceProgram::pipeline));
        Scenarios.run(
                "transaction-resp2", () -> withClient(open, resp2, LettuceProgram::transaction));
        Scenarios.run(
                "transaction-resp3", () -> withClient(open, resp3, LettuceProgram::transaction));
        Scenarios.run("subscribe-resp2", () -> withClient(open, resp2, LettuceProgram::subscribe));
        Scenarios.run("subscribe-resp3", () -> withClient(open, resp3, LettuceProgram::subscribe));
        Scenarios.run("reconnect", () -> connected(open, defaults, LettuceProgram::reconnect));
        Scenarios.exit();
    }

    private static RedisURI.Builder uri(int port) {
        return RedisURI.builder().withHost(Scenarios.HOST).withPort(port);
    }

    private static ClientOptions protocol(ProtocolVersion version) {
        return ClientOptions.builder().protocolVersion(version).build();
    }

    /** Gives a client to `use` and shuts it down afterwards. */
    private static void withClient(RedisURI.Builder uri, ClientOptions options, Use use)
            throws Exception {
        RedisClient client = RedisClient.create(uri.build());
        try {
            client.setOptions(options);
            use.with(client);
        } finally {
            client.shutdown(0, Scenarios.PATIENCE_SECONDS, TimeUnit.SECONDS);
        }
    }

    private static void connected(RedisURI.Builder uri, ClientOptions options, UseConnection use)
            throws Exception {
        withClient(uri, options, client -> use.with(client.connect(ByteArrayCodec.INSTANCE)));
    }

    private static RedisFuture<Long> put(
            RedisAsyncCommands<byte[], byte[]> commands, byte[]... words) {
        return send(commands, Wide.WCPUT, new IntegerOutput<>(ByteArrayCodec.INSTANCE), words);
    }

    private static RedisFuture<Long> delete(
            RedisAsyncCommands<byte[], byte[]> commands, byte[]... words) {
        return send(commands, Wide.WCDEL, new IntegerOutput<>(ByteArrayCodec.INSTANCE), words);
    }

    private static RedisFuture<List<Object>> get(
            RedisAsyncCommands<byte[], byte[]> commands, byte[]... words) {
        return send(commands, Wide.WCGET, new NestedMultiOutput<>(ByteArrayCodec.INSTANCE), words);
    }

    private static <T> RedisFuture<T> send(
            RedisAsyncCommands<byte[], byte[]> commands,
            Wide keyword,
            CommandOutput<byte[], byte[], T> output,
            byte[]... words) {
        CommandArgs<byte[], byte[]> arguments = new CommandArgs<>(ByteArrayCodec.INSTANCE);
        for (byte[] word : words) {
            arguments.add(word);
        }
        return commands.dispatch(keyword, output, arguments);
    }

    private static byte[] word(Object value) {
        return Scenarios.bytes(value.toString());
    }

    private static <T> T reply(RedisFuture<T> future) throws Exception {
        return future.get(Scenarios.PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    private static void roundTrip(StatefulRedisConnection<byte[], byte[]> connection)
            throws Exception {
        RedisAsyncCommands<byte[], byte[]> commands = connection.async();
        byte[] dataset = word(Scenarios.newDataset());
        Scenarios.expect(connection.sync().ping(), "PONG");
        RedisFuture<Long> written =
                put(commands, dataset, word("r"), word(1), word("c"), word("value"));
        Scenarios.expect(reply(written), 1L);
        Scenarios.expect(
                reply(get(commands, dataset, word("r"))), Scenarios.oneCell(1, "value"));
    }

    private static void binary(StatefulRedisConnection<byte[], byte[]> connection)
            throws Exception {
        RedisAsyncCommands<byte[], byte[]> commands = connection.async();
        byte[] dataset = word(Scenarios.newDataset());
        byte[] row = Scenarios.ROW;
        byte[] every = Scenarios.EVERY_BYTE;
        byte[] column = Scenarios.COLUMN;
        RedisFuture<Long> written =
                put(commands, dataset, row, word(1), every, word(""), word(2), column, every);
        Scenarios.expect(reply(written), 2L);
        Scenarios.expect(reply(get(commands, dataset, row)), Scenarios.WRITTEN_ROW);
        Scenarios.expect(reply(delete(commands, dataset, row)), 1L);
        Scenarios.expect(reply(get(commands, dataset, row)), Scenarios.EMPTY_ROW);
    }

    private static void pipeline(StatefulRedisConnection<byte[], byte[]> connection)
            throws Exception {
        RedisAsyncCommands<byte[], byte[]> commands = connection.async();
        byte[] dataset = word(Scenarios.newDataset());
        List<RedisFuture<Long>> writes = new ArrayList<>();
        List<RedisFuture<List<Object>>> reads = new ArrayList<>();
        connection.setAutoFlushCommands(false);
        for (int number = 0; number < Scenarios.COMMANDS_IN_PIPELINE; number += 1) {
            byte[] value = word("value " + number);
            writes.add(put(commands, dataset, word("r" + number), word(1), word("c"), value));
        }
        connection.flushCommands();
        for (int number = 0; number < Scenarios.COMMANDS_IN_PIPELINE; number += 1) {
            reads.add(get(commands, dataset, word("r" + number)));
        }
        RedisFuture<List<Object>> refused = get(commands, word("no-such-dataset"), word("r"));
        RedisFuture<List<Object>> answered = get(commands, dataset, word("r1"));
        connection.flushCommands();
        connection.setAutoFlushCommands(true);

        for (int number = 0; number < Scenarios.COMMANDS_IN_PIPELINE; number += 1) {
            Scenarios.expect(reply(writes.get(number)), 1L);
            Scenarios.expect(reply(reads.get(number)), Scenarios.oneCell(1, "value " + number));
        }
        Scenarios.expectMessage(errorOf(refused), "NODATASET ");
        Scenarios.expect(reply(answered), Scenarios.oneCell(1, "value 1"));
    }

    private static Throwable errorOf(RedisFuture<List<Object>> future) throws Exception {
        try {
            reply(future);
            return null;
        } catch (ExecutionException error) {
            return error.getCause();
        }
    }

    private static void transaction(RedisClient client) throws Exception {
        StatefulRedisConnection<byte[], byte[]> connection =
                client.connect(ByteArrayCodec.INSTANCE);
        RedisAsyncCommands<byte[], byte[]> commands = connection.async();
        byte[] dataset = word(Scenarios.newDataset());
        byte[] row = word("r");
        byte[] column = word("c");

        Scenarios.expect(reply(commands.multi()), "OK");
        put(commands, dataset, row, word(1), column, word("first"));
        put(commands, dataset, row, word(2), column, word("second"));
        RedisFuture<List<Object>> read = get(commands, dataset, row);
        TransactionResult done = reply(commands.exec());
        Scenarios.expect(done.wasDiscarded(), false);
        Scenarios.expect(done.get(0), 1L);
        Scenarios.expect(done.get(1), 1L);
        Scenarios.expect(reply(read), Scenarios.oneCell(2, "second"));

        Scenarios.expect(reply(commands.watch(dataset)), "OK");
        RedisAsyncCommands<byte[], byte[]> other = client.connect(ByteArrayCodec.INSTANCE).async();
        reply(put(other, dataset, row, word(3), column, word("third")));
        Scenarios.expect(reply(commands.multi()), "OK");
        put(commands, dataset, row, word(4), column, word("fourth"));
        Scenarios.expect(reply(commands.exec()).wasDiscarded(), true);
        Scenarios.expect(reply(get(commands, dataset, row)), Scenarios.oneCell(3, "third"));
    }

    private static void subscribe(RedisClient client) throws Exception {
        byte[] channel = word(Scenarios.newDataset());
        BlockingQueue<List<Object>> events = new LinkedBlockingQueue<>();
        StatefulRedisPubSubConnection<byte[], byte[]> subscriber =
                client.connectPubSub(ByteArrayCodec.INSTANCE);
        subscriber.addListener(
                new RedisPubSubAdapter<byte[], byte[]>() {
                    @Override
                    public void message(byte[] name, byte[] message) {
                        events.add(List.of(name, message));
                    }
                });
        subscriber.sync().subscribe(channel);
        StatefulRedisConnection<byte[], byte[]> publisher =
                client.connect(ByteArrayCodec.INSTANCE);
        Scenarios.expect(publisher.sync().publish(channel, Scenarios.EVERY_BYTE), 1L);
        List<Object> received = events.poll(Scenarios.PATIENCE_SECONDS, TimeUnit.SECONDS);
        String message = Scenarios.text(Scenarios.EVERY_BYTE);
        Scenarios.expect(received, List.of(Scenarios.text(channel), message));
        subscriber.sync().unsubscribe(channel);
        Scenarios.expect(subscriber.sync().ping(), "PONG");
    }

    private static void reconnect(StatefulRedisConnection<byte[], byte[]> connection)
            throws Exception {
        RedisAsyncCommands<byte[], byte[]> commands = connection.async();
        byte[] dataset = word(Scenarios.newDataset());
        reply(put(commands, dataset, word("r"), word(1), word("c"), word("value")));
        Scenarios.restartServer();
        List<Object> read = Scenarios.eventually(() -> reply(get(commands, dataset, word("r"))));
        Scenarios.expect(read, Scenarios.oneCell(1, "value"));
    }
}
