"""redis-cli as a person uses it: hints and help while typing, and each of its modes.

Where redis-server is installed, what a mode shows is compared with what it shows there. Modes that
only work at a terminal get one.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

import commands.families  # noqa: F401 - fills the table
from commands.table import TABLE
from tests.certificates import Certificates, make_certificates
from tests.harness import MakeServer, ServerProcess, free_port
from tests.wire import RealRedis, encode

pytestmark = pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is missing")

PATIENCE_SECONDS = 20.0
WARNING = "Warning: Using a password with '-a' or '-u' option"
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Terminal:
    """redis-cli at a terminal of 250 columns."""

    def __init__(self, port: int, *words: str) -> None:
        self._screen, inside = pty.openpty()
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
        self._program = subprocess.Popen(
            ["redis-cli", "-p", str(port), *words],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "250", "HOME": "/nonexistent"},
            start_new_session=True,
        )
        os.close(inside)
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._program.kill()
        self._program.wait(timeout=PATIENCE_SECONDS)
        os.close(self._screen)

    def type(self, text: str) -> None:
        """Type when it waits for it: it throws away what was typed before its prompt."""
        os.write(self._screen, text.encode())

    def until(self, wanted: str) -> str:
        """What it shows up to the end of this text, once it has come; the rest is for the next
        call."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while wanted not in self._shown:
            assert time.monotonic() < deadline, f"{wanted!r} did not come: {self._shown[-2000:]!r}"
            if select.select([self._screen], [], [], 1.0)[0]:
                raw = os.read(self._screen, 65536).decode(errors="replace")
                self._shown += _CONTROL.sub("", raw)
        before, _, self._shown = self._shown.partition(wanted)
        return before + wanted

    def interrupt(self) -> None:
        """As Control-C does."""
        self._program.send_signal(signal.SIGINT)


def run(
    port: int, *words: str, given: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """redis-cli without a terminal; what it wrote, as text."""
    return _run(["redis-cli", "-p", str(port), *words], given, environment)


def _run(
    command: list[str], given: bytes | None, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        command,
        input=b"" if given is None else given,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, **environment},
        check=False,
    )
    shown = (_CONTROL.sub("", raw.decode(errors="replace")) for raw in (ended.stdout, ended.stderr))
    return subprocess.CompletedProcess(command, ended.returncode, *shown)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRedis]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: nothing to compare with")
    running = RealRedis(tmp_path_factory.mktemp("real"), "--bind", "127.0.0.1")
    yield running
    running.close()


# While one types


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("WCGET ", "dataset row [COLUMNS n column [column ...]] [PREFIX prefix]"),
        (
            "wcput events user:1 ",
            "[EX seconds|PX ms|EXAT unix-s|PXAT unix-ms] timestamp column value",
        ),
        ("WCDATASET CREATE ", "name [MAXVERSIONS n] [TTL seconds] [IFNOTEXISTS]"),
    ],
)
def test_hints_while_typing(server: ServerProcess, typed: str, hint: str) -> None:
    with Terminal(server.port) as terminal:
        terminal.until(f"127.0.0.1:{server.port}> ")
        terminal.type(typed)
        terminal.until(hint[:30])


@pytest.mark.parametrize("name", ["WCGET", "WCDEL", "WCCAS", "HELLO"])
def test_help_shows_syntax_and_summary(server: ServerProcess, name: str) -> None:
    shown = run(server.port, given=f"help {name}\n".encode()).stdout
    entry = TABLE.all()[name.lower()]
    assert entry.summary in shown
    # redis-cli leaves out the spaces and brackets around a choice.
    plain = entry.full_syntax.replace(" | ", "|").replace("(", "").replace(")", "")
    assert plain in shown


def test_the_prompt_tells_of_databases_and_transactions(server: ServerProcess) -> None:
    prompt = f"127.0.0.1:{server.port}"
    with Terminal(server.port) as terminal:
        terminal.until(f"{prompt}> ")
        terminal.type("SELECT 3\r")
        terminal.until(f"{prompt}[3]> ")
        terminal.type("MULTI\r")
        terminal.until(f"{prompt}[3](TX)> ")
        terminal.type("PING\r")
        terminal.until("QUEUED")
        terminal.until("(TX)> ")
        terminal.type("EXEC\r")
        terminal.until("1) PONG")
        terminal.until(f"{prompt}[3]> ")
        terminal.type("RESET\r")
        terminal.until(f"{prompt}> ")
        terminal.type("HELLO 3\r")
        terminal.until('3# "proto" => (integer) 3')


def test_it_comes_back_after_a_restart(make_server: MakeServer) -> None:
    server = make_server()
    with Terminal(server.port) as terminal:
        terminal.until(f"127.0.0.1:{server.port}> ")
        terminal.type("CLIENT SETNAME me\r")
        terminal.until("OK")
        terminal.until("> ")
        server.stop()
        terminal.type("PING\r")
        terminal.until("not connected> ")
        server.start()
        terminal.type("PING\r")
        terminal.until("PONG")


# The modes compared with those on redis-server

MODES = [
    ("--bigkeys",),
    ("--memkeys",),
    ("--memkeys-samples", "5"),
    ("--hotkeys",),
    ("--scan",),
    ("--scan", "--pattern", "a*"),
    ("-n", "3", "--bigkeys"),
    ("-n", "99", "PING"),
    ("-r", "3", "PING"),
    ("-r", "2", "-i", "0.01", "PING"),
    ("-d", ",", "CONFIG", "GET", "databases"),
    ("--csv", "CONFIG", "GET", "databases"),
    ("--json", "CONFIG", "GET", "databases"),
    ("--quoted-json", "CONFIG", "GET", "databases"),
    ("--no-raw", "CONFIG", "GET", "databases"),
    ("-3", "--no-raw", "CONFIG", "GET", "databases"),
    ("-2", "--no-raw", "ECHO", "two"),
    ("--quoted-input", "ECHO", r'"\x00\xff"'),
    ("--no-raw", "--quoted-input", "ECHO", r'"\x00\xff"'),
    ("NOSUCHCOMMAND", "word"),
    ("-e", "NOSUCHCOMMAND", "word"),
    ("--verbose", "PING"),
    ("-a", "secret", "PING"),
    ("--no-auth-warning", "-a", "secret", "PING"),
    ("--user", "default", "--pass", "anything", "PING"),
    ("--user", "nobody", "--pass", "anything", "PING"),
    ("SHUTDOWN", "ABORT"),
    ("CLUSTER", "INFO"),
]


@pytest.mark.parametrize("words", MODES, ids=" ".join)
def test_a_mode_shows_what_it_shows_on_redis(
    server: ServerProcess, real: RealRedis, words: tuple[str, ...]
) -> None:
    ours, theirs = run(server.port, *words), run(real.port, *words)
    assert (ours.stdout, ours.stderr) == (theirs.stdout, theirs.stderr)
    assert ours.returncode == theirs.returncode


@pytest.mark.parametrize(
    "commands_piped",
    [
        b"PING\r\n" * 1000 + encode("ECHO", "x" * 100_000),
        encode("PING") * 5 + encode("NOSUCHCOMMAND") * 3,
        b"",
    ],
    ids=["good", "bad", "none"],
)
def test_pipe_shows_what_it_shows_on_redis(
    server: ServerProcess, real: RealRedis, commands_piped: bytes
) -> None:
    ours, theirs = (run(port, "--pipe", given=commands_piped) for port in (server.port, real.port))
    assert (ours.stdout, ours.stderr) == (theirs.stdout, theirs.stderr)
    assert ours.returncode == theirs.returncode


def test_a_cluster_node_is_looked_for_in_vain(server: ServerProcess) -> None:
    ended = run(server.port, "--cluster", "info", f"127.0.0.1:{server.port}")
    assert "is not configured as a cluster node" in ended.stdout + ended.stderr


# Other modes


def test_pipe_loads_a_dataset(server: ServerProcess, dataset: str) -> None:
    calls = [encode("WCPUT", dataset, f"r{number}", 1, "c", "\r\n\x00") for number in range(5000)]
    ended = run(server.port, "--pipe", given=b"".join(calls))
    assert ended.stdout.splitlines()[-1] == "errors: 0, replies: 5000"
    assert ended.returncode == 0
    assert run(server.port, "WCEXISTS", dataset, "r0", "r4999", "r5000").stdout == "2\n"


def test_latency(server: ServerProcess) -> None:
    assert re.fullmatch(r"\d+ \d+ \d+\.\d+ \d+\n", run(server.port, "--latency").stdout)


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("--latency", "avg: "),
        ("--latency-history", "avg: "),
        ("--latency-dist", ".-*#123456789ABC"),
        ("--stat", "(+"),
    ],
)
def test_a_mode_that_goes_on_until_it_is_interrupted(
    server: ServerProcess, mode: str, shown: str
) -> None:
    with Terminal(server.port, mode, "-i", "0.1") as terminal:
        terminal.until(shown)
        terminal.interrupt()


def test_stat_shows_true_numbers(server: ServerProcess) -> None:
    with Terminal(server.port, "--stat", "-i", "0.05") as terminal:
        lines = terminal.until("(+1)").splitlines()
    heading = next(number for number, line in enumerate(lines) if line.startswith("keys "))
    assert lines[heading].split()[:3] == ["keys", "mem", "clients"]
    keys, memory, clients, blocked, requests, *_ = lines[heading + 1].split()
    assert (keys, blocked) == ("0", "0")
    assert re.fullmatch(r"\d+(\.\d+)?[KMG]", memory)
    assert int(clients) >= 1
    assert int(requests) >= 1


@pytest.mark.parametrize(
    "words", [("--rdb", "-"), ("--functions-rdb", "-"), ("--replica",)], ids=" ".join
)
def test_what_wants_a_copy_of_redis_data_is_refused(
    server: ServerProcess, words: tuple[str, ...]
) -> None:
    ended = run(server.port, *words)
    assert ended.returncode == 1
    assert "SYNC" in ended.stderr or "functions only RDB" in ended.stderr
    assert run(server.port, "PING").stdout == "PONG\n"


def test_scripts_are_refused_with_an_error(server: ServerProcess, tmp_path: Path) -> None:
    script = tmp_path / "script.lua"
    script.write_text("return 1")
    assert "unknown command 'EVAL'" in run(server.port, "--eval", str(script)).stdout


@pytest.mark.parametrize("version", ["-2", "-3"])
def test_subscribe_and_publish(server: ServerProcess, version: str) -> None:
    channel = f"news{version}"
    with Terminal(server.port, version, "SUBSCRIBE", channel) as terminal:
        terminal.until(f'2) "{channel}"')
        assert run(server.port, "PUBLISH", channel, "hello").stdout == "1\n"
        shown = terminal.until('"hello"')
        assert '1) "message"' in shown
        terminal.interrupt()


def test_subscribing_at_the_prompt(server: ServerProcess) -> None:
    with Terminal(server.port) as terminal:
        terminal.until("> ")
        terminal.type("PSUBSCRIBE wire.*\r")
        terminal.until('1) "psubscribe"')
        run(server.port, "PUBLISH", "wire.1", "hello")
        terminal.until('"pmessage"')
        terminal.until('"hello"')


def test_monitor(server: ServerProcess, dataset: str) -> None:
    with Terminal(server.port, "MONITOR") as terminal:
        terminal.until("OK")
        run(server.port, "-n", "3", "WCPUT", dataset, "row", "1", "column", 'a\nb"')
        shown = terminal.until(f'"{dataset}"')
        assert '"WCPUT"' in shown
        assert "[3 127.0.0.1:" in shown
        terminal.until(r'"a\nb\""')


def test_the_last_argument_from_a_file(server: ServerProcess, dataset: str) -> None:
    value = bytes(range(256))
    assert run(server.port, "-x", "WCPUT", dataset, "r", "1", "c", given=value).stdout == "1\n"
    put = run(server.port, "-X", "HERE", "WCPUT", dataset, "s", "1", "HERE", "v", given=b"from")
    assert put.stdout == "1\n"
    shown = run(server.port, "--csv", "WCGET", dataset, "s").stdout
    assert shown == '"0","from",1,"v"\n'
    with server.client() as client:
        assert client.execute_command("WCGET", dataset, "r") == [b"0", [[b"c", [[1, value]]]]]


# Passwords


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a password, and a user who may only ping."""
    running = ServerProcess(tmp_path_factory.mktemp("guarded") / "data", requirepass="secret")
    running.start()
    with running.client(password="secret") as client:
        client.execute_command("ACL", "SETUSER", "alice", "on", ">wonder", "+ping")
    yield running
    running.close()


def test_without_the_password(guarded: ServerProcess) -> None:
    assert run(guarded.port, "PING").stdout == "NOAUTH Authentication required.\n\n"


@pytest.mark.parametrize(
    ("words", "warns"),
    [
        (("-a", "secret"), True),
        (("--pass", "secret"), True),
        (("-a", "secret", "--no-auth-warning"), False),
        (("--user", "alice", "--pass", "wonder"), True),
        (("-3", "--user", "alice", "--pass", "wonder"), True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_with_the_password(guarded: ServerProcess, words: tuple[str, ...], warns: bool) -> None:
    ended = run(guarded.port, *words, "PING")
    assert ended.stdout == "PONG\n"
    assert ended.stderr.startswith(WARNING) == warns


def test_the_password_from_the_environment(guarded: ServerProcess) -> None:
    ended = run(guarded.port, "PING", REDISCLI_AUTH="secret")
    assert (ended.stdout, ended.stderr) == ("PONG\n", "")


@pytest.mark.parametrize(
    "words", [("-a", "wrong"), ("--user", "alice", "--pass", "wrong")], ids=" ".join
)
def test_with_a_wrong_password(guarded: ServerProcess, words: tuple[str, ...]) -> None:
    ended = run(guarded.port, *words, "PING")
    assert "AUTH failed: WRONGPASS invalid username-password pair" in ended.stderr
    assert "NOAUTH Authentication required." in ended.stdout


def test_the_password_is_asked_for(guarded: ServerProcess) -> None:
    with Terminal(guarded.port, "--askpass", "PING") as terminal:
        terminal.until("Please input password: ")
        terminal.type("secret\r")
        shown = terminal.until("PONG")
        assert "secret" not in shown


def test_an_address_with_user_password_and_database(guarded: ServerProcess) -> None:
    address = f"redis://default:secret@127.0.0.1:{guarded.port}/3"
    shown = _run(["redis-cli", "-u", address, "CLIENT", "INFO"], None, {}).stdout
    assert " db=3 " in shown
    assert " user=default " in shown


def test_monitor_never_shows_passwords(guarded: ServerProcess) -> None:
    with Terminal(guarded.port, "-a", "secret", "MONITOR") as terminal:
        terminal.until("OK")
        run(guarded.port, "--user", "alice", "--pass", "wonder", "PING")
        shown = terminal.until('"PING"')
        assert '"AUTH" "(redacted)" "(redacted)"' in shown
        assert "wonder" not in shown


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secure(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[ServerProcess]:
    """A server with a port for TLS, `directives["tls_port"]`, that asks for certificates."""
    running = ServerProcess(
        tmp_path_factory.mktemp("secure") / "data",
        tls_port=free_port(),
        tls_cert_file=certificates.server_cert,
        tls_key_file=certificates.server_key,
        tls_ca_cert_file=certificates.ca,
    )
    yield running.start()
    running.close()


def test_tls(secure: ServerProcess, certificates: Certificates) -> None:
    port = int(str(secure.directives["tls_port"]))
    trusted = ("--tls", "--cacert", str(certificates.ca))
    own = ("--cert", str(certificates.client_cert), "--key", str(certificates.client_key))
    assert run(port, *trusted, *own, "PING").stdout == "PONG\n"
    assert run(port, "--tls", "--insecure", *own, "PING").stdout == "PONG\n"
    assert run(port, *trusted, *own, "-3", "--no-raw", "PING").stdout == "PONG\n"
    address = f"rediss://127.0.0.1:{port}/2"
    words = ["redis-cli", "-u", address, *trusted[1:], *own, "CLIENT", "INFO"]
    assert " db=2 " in _run(words, None, {}).stdout
    piped = run(port, *trusted, *own, "--pipe", given=encode("PING") * 10_000)
    assert piped.stdout.splitlines()[-1] == "errors: 0, replies: 10000"


def test_tls_refused(secure: ServerProcess, certificates: Certificates) -> None:
    port = int(str(secure.directives["tls_port"]))
    ca, own = str(certificates.ca), (str(certificates.client_cert), str(certificates.client_key))
    refused = [
        run(port, "--tls", "--cacert", ca, "PING"),
        run(port, "--tls", "--cert", own[0], "--key", own[1], "--cacert", own[0], "PING"),
        run(port, "PING"),
    ]
    for ended in refused:
        assert ended.stdout == ""
        assert ended.returncode != 0
        assert "rror: " in ended.stderr or "Could not connect" in ended.stderr
    assert run(secure.port, "PING").stdout == "PONG\n"
    assert "Traceback" not in secure.log
