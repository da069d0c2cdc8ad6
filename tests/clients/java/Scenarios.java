import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;

/**
 * What the programs of this directory share: where the servers are, words that are hard on a
 * client, checks, and the loop that runs scenarios and says in one line each how they went.
 * tests/clients/programs.py tells what a program is given and what it has to print.
 *
 * <p>Replies are compared as lists of numbers and of strings with one character for each byte.
 */
final class Scenarios {
    static final String HOST = "127.0.0.1";
    static final int PORT = portOf("PORT");
    static final int GUARDED_PORT = portOf("GUARDED_PORT");
    static final int TLS_PORT = portOf("TLS_PORT");
    static final String PASSWORD = System.getenv("PASSWORD");
    static final String CA_FILE = System.getenv("CA_FILE");

    static final int COMMANDS_IN_PIPELINE = 10_000;
    static final int PATIENCE_SECONDS = 10;
    static final byte[] EVERY_BYTE = everyByte();
    static final byte[] ROW = bytes("row\r\n\0" + text(EVERY_BYTE));
    static final byte[] COLUMN = bytes("\0\r\n$5\r\nhello\r\n");
    static final List<Object> EMPTY_ROW = List.of("0", List.of());

    /** A row with an empty value in column EVERY_BYTE and every byte in COLUMN, read by WCGET. */
    static final List<Object> WRITTEN_ROW =
            List.of(
                    "0",
                    List.of(
                            List.of(text(EVERY_BYTE), List.of(List.of(1L, ""))),
                            List.of(text(COLUMN), List.of(List.of(2L, text(EVERY_BYTE))))));

    private static int datasets = 0;
    private static boolean allPassed = true;

    private Scenarios() {}

    interface Scenario {
        void run() throws Exception;
    }

    /** Runs a scenario; one that fails does not keep the others from running. */
    static void run(String name, Scenario scenario) {
        try {
            scenario.run();
            System.out.println("ok " + name);
        } catch (Exception | AssertionError error) {
            allPassed = false;
            String message = error.toString().replaceAll("[\r\n]+", " | ");
            System.out.printf("failed %s: %.500s%n", name, message);
        }
    }

    static void exit() {
        System.exit(allPassed ? 0 : 1);
    }

    /** A dataset of this program's own, without cells. */
    static String newDataset() {
        datasets += 1;
        return System.getenv("DATASET") + "-" + datasets;
    }

    /** A row with one column c and one cell, as WCGET replies. */
    static List<Object> oneCell(long timestamp, String value) {
        return List.of("0", List.of(List.of("c", List.of(List.of(timestamp, value)))));
    }

    static void expect(Object reply, Object wanted) {
        Object found = readable(reply);
        if (!Objects.equals(found, wanted)) {
            throw new AssertionError(found + ", not " + wanted);
        }
    }

    static void expectMessage(Throwable error, String beginning) {
        if (error == null || !String.valueOf(error.getMessage()).startsWith(beginning)) {
            throw new AssertionError(error + ", not " + beginning);
        }
    }

    /** Byte arrays as strings of as many characters, in lists too. */
    private static Object readable(Object reply) {
        if (reply instanceof byte[]) {
            return text((byte[]) reply);
        }
        if (reply instanceof List) {
            List<Object> all = new ArrayList<>();
            ((List<?>) reply).forEach(element -> all.add(readable(element)));
            return all;
        }
        return reply;
    }

    /** What the attempt returns, as soon as it does; its last error after PATIENCE_SECONDS. */
    static <T> T eventually(Callable<T> attempt) throws Exception {
        long end = System.nanoTime() + PATIENCE_SECONDS * 1_000_000_000L;
        while (true) {
            try {
                return attempt.call();
            } catch (Exception error) {
                if (System.nanoTime() > end) {
                    throw error;
                }
            }
        }
    }

    /** Asks whoever runs this program to restart the server; returns when it is up again. */
    static void restartServer() throws IOException {
        System.out.println("restart");
        if (new BufferedReader(new InputStreamReader(System.in)).readLine() == null) {
            throw new IOException("nobody restarted the server");
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }

    private static byte[] everyByte() {
        byte[] every = new byte[256];
        for (int number = 0; number < every.length; number += 1) {
            every[number] = (byte) number;
        }
        return every;
    }

    private static int portOf(String variable) {
        return Integer.parseInt(System.getenv(variable));
    }
}
