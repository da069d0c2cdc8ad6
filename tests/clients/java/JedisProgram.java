import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.InputStream;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.BinaryJedisPubSub;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.SslOptions;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;

/** Jedis: commands it does not know are built of CommandArguments around their name in bytes. */
final class JedisProgram {
    private static final ProtocolCommand WCPUT = () -> Scenarios.bytes("WCPUT");
    private static final ProtocolCommand WCGET = () -> Scenarios.bytes("WCGET");
    private static final ProtocolCommand WCDEL = () -> Scenarios.bytes("WCDEL");

    private interface Use {
        void with(RedisClient client) throws Exception;
    }

    public static void main(String[] arguments) {
        DefaultJedisClientConfig.Builder resp2 = config().protocol(RedisProtocol.RESP2);
        DefaultJedisClientConfig.Builder resp3 = config().protocol(RedisProtocol.RESP3);
        DefaultJedisClientConfig.Builder guarded = config().password(Scenarios.PASSWORD);
        int port = Scenarios.PORT;

        Scenarios.run("default", () -> connected(port, config(), JedisProgram::roundTrip));
        Scenarios.run(
                "password",
                () -> connected(Scenarios.GUARDED_PORT, guarded, JedisProgram::roundTrip));
        Scenarios.run(
                "tls", () -> connected(Scenarios.TLS_PORT, overTls(), JedisProgram::roundTrip));
        Scenarios.run("binary-resp2", () -> connected(port, resp2, JedisProgram::binary));
        Scenarios.run("binary-resp3", () -> connected(port, resp3, JedisProgram::binary));
        Scenarios.run("pipeline-resp2", () -> connected(port, resp2, JedisProgram::pipeline));
        Scenarios.run("pipeline-resp3", () -> connected(port, resp3, JedisProgram::pipeline));
        Scenarios.run("transaction-resp2", () -> connected(port, resp2, JedisProgram::transaction));
        Scenarios.run("transaction-resp3", () -> connected(port, resp3, JedisProgram::transaction));
        Scenarios.run("subscribe-resp2", () -> connected(port, resp2, JedisProgram::subscribe));
        Scenarios.run("subscribe-resp3", () -> connected(port, resp3, JedisProgram::subscribe));
        Scenarios.run("reconnect", () -> connected(port, config(), JedisProgram::reconnect));
        Scenarios.exit();
    }

    private static DefaultJedisClientConfig.Builder config() {
        return DefaultJedisClientConfig.builder();
    }

    /** The client wants the authority in a store of Java's own kind; this one is in memory. */
    private static DefaultJedisClientConfig.Builder overTls() throws Exception {
        char[] secret = "trust".toCharArray();
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        try (InputStream pem = new FileInputStream(Scenarios.CA_FILE)) {
            CertificateFactory certificates = CertificateFactory.getInstance("X.509");
            trusted.setCertificateEntry("authority", certificates.generateCertificate(pem));
        }
        ByteArrayOutputStream store = new ByteArrayOutputStream();
        trusted.store(store, secret);
        SslOptions options =
                SslOptions.builder()
                        .trustStoreType("PKCS12")
                        .truststore(() -> new ByteArrayInputStream(store.toByteArray()), secret)
                        .build();
        return config().sslOptions(options);
    }

    /** Gives a connected client to `use` and closes it afterwards. */
    private static void connected(int port, DefaultJedisClientConfig.Builder config, Use use)
            throws Exception {
        HostAndPort address = new HostAndPort(Scenarios.HOST, port);
        try (RedisClient client =
                RedisClient.builder().hostAndPort(address).clientConfig(config.build()).build()) {
            use.with(client);
        }
    }

    private static Object call(RedisClient client, ProtocolCommand command, Object... words) {
        return client.executeCommand(new CommandArguments(command).addObjects(words));
    }

    private static void roundTrip(RedisClient client) {
        String dataset = Scenarios.newDataset();
        Scenarios.expect(client.ping(), "PONG");
        Scenarios.expect(call(client, WCPUT, dataset, "r", "1", "c", "value"), 1L);
        Scenarios.expect(call(client, WCGET, dataset, "r"), Scenarios.oneCell(1, "value"));
    }

    private static void binary(RedisClient client) {
        String dataset = Scenarios.newDataset();
        byte[] row = Scenarios.ROW;
        byte[] every = Scenarios.EVERY_BYTE;
        byte[] column = Scenarios.COLUMN;
        Object written =
                call(client, WCPUT, dataset, row, 1, every, new byte[0], 2, column, every);
        Scenarios.expect(written, 2L);
        Scenarios.expect(call(client, WCGET, dataset, row), Scenarios.WRITTEN_ROW);
        Scenarios.expect(call(client, WCDEL, dataset, row), 1L);
        Scenarios.expect(call(client, WCGET, dataset, row), Scenarios.EMPTY_ROW);
    }

    private static void pipeline(RedisClient client) {
        String dataset = Scenarios.newDataset();
        List<Response<Object>> writes = new ArrayList<>();
        List<Response<Object>> reads = new ArrayList<>();
        try (AbstractPipeline pipeline = client.pipelined()) {
            for (int number = 0; number < Scenarios.COMMANDS_IN_PIPELINE; number += 1) {
                String value = "value " + number;
                writes.add(pipeline.sendCommand(WCPUT, dataset, "r" + number, "1", "c", value));
            }
            pipeline.sync();
            for (int number = 0; number < Scenarios.COMMANDS_IN_PIPELINE; number += 1) {
                reads.add(pipeline.sendCommand(WCGET, dataset, "r" + number));
            }
            pipeline.sync();
        }
        for (int number = 0; number < Scenarios.COMMANDS_IN_PIPELINE; number += 1) {
            Scenarios.expect(writes.get(number).get(), 1L);
            Scenarios.expect(reads.get(number).get(), Scenarios.oneCell(1, "value " + number));
        }

        try (AbstractPipeline pipeline = client.pipelined()) {
            Response<Object> refused = pipeline.sendCommand(WCGET, "no-such-dataset", "r");
            Response<Object> answered = pipeline.sendCommand(WCGET, dataset, "r1");
            pipeline.sync();
            Scenarios.expectMessage(errorOf(refused), "NODATASET ");
            Scenarios.expect(answered.get(), Scenarios.oneCell(1, "value 1"));
        }
    }

    private static JedisDataException errorOf(Response<Object> response) {
        try {
            response.get();
            return null;
        } catch (JedisDataException error) {
            return error;
        }
    }

    private static void transaction(RedisClient client) {
        String dataset = Scenarios.newDataset();
        try (AbstractTransaction transaction = client.multi()) {
            transaction.sendCommand(WCPUT, dataset, "r", "1", "c", "first");
            transaction.sendCommand(WCPUT, dataset, "r", "2", "c", "second");
            transaction.sendCommand(WCGET, dataset, "r");
            List<Object> wanted = List.of(1L, 1L, Scenarios.oneCell(2, "second"));
            Scenarios.expect(transaction.exec(), wanted);
        }

        try (AbstractTransaction transaction = client.transaction(false)) {
            transaction.watch(dataset);
            // The client itself has another connection for this.
            call(client, WCPUT, dataset, "r", "3", "c", "third");
            transaction.multi();
            transaction.sendCommand(WCPUT, dataset, "r", "4", "c", "fourth");
            Scenarios.expect(transaction.exec(), null);
        }
        Scenarios.expect(call(client, WCGET, dataset, "r"), Scenarios.oneCell(3, "third"));
    }

    private static void subscribe(RedisClient client) throws Exception {
        byte[] channel = Scenarios.bytes(Scenarios.newDataset());
        BlockingQueue<List<Object>> events = new LinkedBlockingQueue<>();
        BinaryJedisPubSub subscriber =
                new BinaryJedisPubSub() {
                    @Override
                    public void onSubscribe(byte[] name, int count) {
                        events.add(List.of("subscribe", name, (long) count));
                    }

                    @Override
                    public void onMessage(byte[] name, byte[] message) {
                        events.add(List.of("message", name, message));
                    }

                    @Override
                    public void onUnsubscribe(byte[] name, int count) {
                        events.add(List.of("unsubscribe", name, (long) count));
                    }
                };
        Thread listener = new Thread(() -> client.subscribe(subscriber, channel));
        listener.start();
        String name = Scenarios.text(channel);
        Scenarios.expect(next(events), List.of("subscribe", name, 1L));
        Scenarios.expect(client.publish(channel, Scenarios.EVERY_BYTE), 1L);
        String message = Scenarios.text(Scenarios.EVERY_BYTE);
        Scenarios.expect(next(events), List.of("message", name, message));
        subscriber.unsubscribe();
        Scenarios.expect(next(events), List.of("unsubscribe", name, 0L));
        listener.join(TimeUnit.SECONDS.toMillis(Scenarios.PATIENCE_SECONDS));
        Scenarios.expect(listener.isAlive(), false);
        Scenarios.expect(client.ping(), "PONG");
    }

    private static List<Object> next(BlockingQueue<List<Object>> events)
            throws InterruptedException {
        return events.poll(Scenarios.PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    private static void reconnect(RedisClient client) throws Exception {
        String dataset = Scenarios.newDataset();
        call(client, WCPUT, dataset, "r", "1", "c", "value");
        Scenarios.restartServer();
        // The pool notices that a connection is gone when it is used, and then drops it.
        Object reply = Scenarios.eventually(() -> call(client, WCGET, dataset, "r"));
        Scenarios.expect(reply, Scenarios.oneCell(1, "value"));
    }
}
