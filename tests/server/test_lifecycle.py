"""The server's life: how it begins, refuses to begin, ends, is killed and begins again.

What was acknowledged is there afterwards, whole; what cannot be served is refused with a message
and an exit code, and is left as it was.
"""

from __future__ import annotations

import selectors
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.harness import ROOT, MakeServer, ServerProcess, free_port, until
from tests.wire import Wire, encode

CELLS = 7
"""Cells of one call, in the rounds of kill -9."""


def run_server(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the program to its end: for what it refuses."""
    return subprocess.run(
        [sys.executable, "-m", "resp_server", *map(str, words)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def value_of(server: ServerProcess, row: str) -> Any:
    """The newest value of the row's column `c`; None without one."""
    with server.client() as client:
        _, columns = client.execute_command("WCGET", "d", row, "COLUMNS", 1, "c")
        return columns[0][1][0][1] if columns else None


def stamp_of(client: Any, row: str) -> int:
    """Write a cell with the server's clock, and read its timestamp."""
    client.execute_command("WCPUT", "d", row, "*", "c", "v")
    (_, [(_, [timestamp])]) = client.execute_command("WCGET", "d", row, "NOVALUES")
    assert isinstance(timestamp, int)
    return timestamp


def contents(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below a directory: its mode, when it was changed, its bytes."""
    return {
        str(path.relative_to(directory)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(directory.rglob("*"))
    }


# Ending


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_and_keeps_the_data(
    make_server: MakeServer, number: signal.Signals
) -> None:
    server = make_server()
    with server.client() as client:
        client.execute_command("WCPUT", "d", "r", 1, "c", "kept")
        assert server.stop(number) == 0
    assert "the store is closed, bye" in server.log
    assert "Traceback" not in server.log
    assert value_of(server.start(), "r") == b"kept"


def test_a_signal_ends_the_connections(make_server: MakeServer) -> None:
    server = make_server()
    wires = [Wire(server) for _ in range(10)]
    for wire in wires:
        assert wire.call("PING") == b"PONG"
    assert server.stop() == 0
    for wire in wires:
        assert wire.read_to_end() == b""
        wire.close()


def test_a_signal_in_the_middle_of_a_pipeline(make_server: MakeServer) -> None:
    """What was answered is kept, and answers are never cut."""
    server = make_server()
    with Wire(server) as wire:
        wire.send(*(encode("WCPUT", "d", f"r{n}", 1, "c", n) for n in range(20_000)))
        wire.read(1)
        assert server.stop() == 0
        answered = wire.read_to_end()
    assert answered == b":1\r\n" * (len(answered) // 4)
    server.start()
    last = f"r{len(answered) // 4 - 1}"
    assert value_of(server, last) == last[1:].encode()


def test_a_client_that_never_reads_does_not_keep_it_from_ending(make_server: MakeServer) -> None:
    server = make_server()
    with Wire(server) as wire:
        wire.send(encode("WCPUT", "d", "r", 1, "c", "x" * 4_000_000))
        wire.send(encode("WCGET", "d", "r") * 50)
        assert wire.read(1) == [1]
        assert server.stop() == 0


# Killing


def rows_of(server: ServerProcess, numbers: Sequence[int]) -> list[dict[bytes, bytes]]:
    """The newest value of each column of these rows."""
    found = []
    with server.client() as client:
        for batch in (numbers[at : at + 500] for at in range(0, len(numbers), 500)):
            names = [f"r{number}" for number in batch]
            pages = client.execute_command("WCMGET", "d", "ROWS", len(names), *names)
            assert all(cursor == b"0" for cursor, _ in pages)
            found += [{name: cells[0][1] for name, cells in columns} for _, columns in pages]
    return found


def cells_of(number: int) -> dict[bytes, bytes]:
    """What the call of this number writes: no value without all others."""
    return {b"c%d" % cell: b"%d of %d" % (cell, number) for cell in range(CELLS)}


def call_of(number: int) -> bytes:
    cells = cells_of(number).items()
    return encode(
        "WCPUT", "d", f"r{number}", *(w for name, value in cells for w in (1, name, value))
    )


def kill_during(server: ServerProcess, numbers: Sequence[int], after: int) -> int:
    """Send the calls, kill the server once it has answered some; how many it did answer."""
    left = memoryview(b"".join(map(call_of, numbers)))
    answers = 0
    reply = b":%d\r\n" % CELLS
    with Wire(server) as wire, selectors.DefaultSelector() as selector:
        wire.socket.setblocking(False)
        selector.register(wire.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while answers < after * len(reply):
            for _, events in selector.select(20):
                if events & selectors.EVENT_READ:
                    answers += len(wire.socket.recv(65_536))
                if events & selectors.EVENT_WRITE and left:
                    left = left[wire.socket.send(left[:65_536]) :]
        server.kill()
        wire.socket.setblocking(True)
        answers += len(wire.read_to_end())
    return answers // len(reply)


def test_killed_in_the_middle_of_a_pipeline_it_keeps_whole_calls(make_server: MakeServer) -> None:
    server = make_server()
    calls = 5_000
    survived: dict[int, bool] = {}
    for killing, after in enumerate([1, 700, 2500]):
        numbers = range(killing * calls, (killing + 1) * calls)
        answered = kill_during(server, numbers, after)
        assert answered >= after
        server.start()
        for number, columns in zip(numbers, rows_of(server, numbers), strict=True):
            assert columns in ({}, cells_of(number)), number
            survived[number] = bool(columns)
        assert all(survived[number] for number in numbers[:answered])
    kept = [number for number, there in survived.items() if there]
    assert rows_of(server, kept) == [cells_of(number) for number in kept]
    assert "Traceback" not in server.log


def test_killed_while_it_writes_the_log_it_keeps_whole_calls(make_server: MakeServer) -> None:
    """A call of two megabytes, and the end as soon as the log has begun to grow by it."""
    server = make_server()
    columns = [b"c%04d" % number for number in range(2000)]

    def call(row: str) -> bytes:
        return encode(
            "WCPUT", "d", row, *(word for name in columns for word in (1, name, name * 200))
        )

    def log_bytes() -> int:
        return sum(file.stat().st_size for file in (server.directory / "store").glob("*.log"))

    for number in range(4):
        with Wire(server) as wire:
            wire.send(call(f"before{number}"))
            assert wire.read(1) == [len(columns)]
            before = log_bytes()
            wire.send(call(f"during{number}"))
            until(lambda before=before: log_bytes() > before)  # type: ignore[misc]
            server.kill()
        server.start()
        with Wire(server) as wire:
            for row, fates in ((f"before{number}", [columns]), (f"during{number}", [columns, []])):
                _, found = wire.call("WCGET", "d", row, "COUNT", 9999, "NOVALUES")
                assert [name for name, _ in found] in fates, row


# Time


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_clock_never_goes_back_over_restarts(
    make_server: MakeServer, end: signal.Signals
) -> None:
    server = make_server()
    stamps = []
    for number in range(2):
        with server.client() as client:
            stamps += [stamp_of(client, f"r{number}"), stamp_of(client, f"r{number}")]
        server.stop(end)
        server.start()
    assert stamps == sorted(stamps)
    with server.client() as client:
        (_, [(_, cells)]) = client.execute_command("WCGET", "d", "r0", "VERSIONS", "ALL")
        assert [timestamp for timestamp, _ in cells] == stamps[1::-1]


def test_after_a_clean_end_the_clock_is_that_of_the_machine(make_server: MakeServer) -> None:
    server = make_server()
    with server.client() as client:
        stamp_of(client, "r")
    server.restart()
    with server.client() as client:
        before = time.time_ns() // 1_000_000
        stamp = stamp_of(client, "s")
        assert before <= stamp <= time.time_ns() // 1_000_000


def test_stamps_of_one_column_over_a_crash_are_in_order(make_server: MakeServer) -> None:
    """The cell written after the restart is the newest, though both were stamped within moments."""
    server = make_server()
    for number in range(2):
        with server.client() as client:
            for value in range(20):
                client.execute_command("WCPUT", "d", "r", "*", "c", f"{number} {value}")
        server.kill()
        server.start()
        assert value_of(server, "r") == b"%d 19" % number
    with server.client() as client:
        (_, [(_, cells)]) = client.execute_command("WCGET", "d", "r", "VERSIONS", "ALL")
    written = [f"{number} {value}".encode() for number in range(2) for value in range(20)]
    assert [value for _, value in cells] == written[::-1]


# Refusing to begin


def test_a_second_server_on_the_same_directory(make_server: MakeServer) -> None:
    server = make_server()
    with server.client() as client:
        client.execute_command("WCPUT", "d", "r", 1, "c", "v")
        second = run_server("--port", free_port(), "--dir", server.directory)
        assert second.returncode == 1
        assert second.stderr.startswith("colonnade-server cannot start: ")
        assert str(server.directory) in second.stderr
        assert "is in use by another running server" in second.stderr
        assert "Traceback" not in second.stderr + second.stdout
        assert client.execute_command("WCPUT", "d", "s", 1, "c", "w") == 1
    server.restart()
    assert (value_of(server, "r"), value_of(server, "s")) == (b"v", b"w")


def test_a_port_in_use(make_server: MakeServer, tmp_path: Path) -> None:
    server = make_server()
    directory = tmp_path / "other"
    second = run_server("--port", server.port, "--dir", directory)
    assert second.returncode == 1
    assert f"cannot listen on 127.0.0.1:{server.port}: " in second.stderr
    assert "Traceback" not in second.stderr + second.stdout
    third = ServerProcess(directory).start()  # its store was let go of
    third.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.conf"], "cannot read missing.conf: "),
        ([str(ROOT / "tests")], f"cannot read {ROOT / 'tests'}: "),
        (["--prot", "1"], "unknown directive 'prot'. Did you mean 'port'?"),
        (["--port", "99999"], "'port': argument must be between 0 and 65535"),
        (["port", "7000"], "cannot read port: "),
    ],
)
def test_a_bad_configuration(words: list[str], message: str) -> None:
    ended = run_server(*words)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout


def test_a_bad_line_of_the_configuration_is_named(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("port 7000\nappendfsync sometimes\n")
    ended = run_server(file)
    assert ended.returncode == 2
    assert f"{file}, line 2: 'appendfsync': " in ended.stderr
    assert ">>> 'appendfsync sometimes'" in ended.stderr


def test_nothing_to_listen_on(tmp_path: Path) -> None:
    ended = run_server("--port", 0, "--dir", tmp_path / "data")
    assert ended.returncode == 1
    assert "nothing to listen on" in ended.stderr


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    ended = run_server("--port", free_port(), "--bind", "192.0.2.1", "--dir", tmp_path / "data")
    assert ended.returncode == 1
    assert "cannot listen on 192.0.2.1:" in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout


def test_an_address_that_may_be_missing(make_server: MakeServer) -> None:
    server = make_server(bind="127.0.0.1 -192.0.2.1")
    with server.client() as client:
        assert client.ping()
    assert "not listening on 192.0.2.1" in server.log


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for directory in (file, file / "below"):
        ended = run_server("--port", free_port(), "--dir", directory)
        assert ended.returncode == 1
        assert f"cannot use the data directory {directory}" in ended.stderr
        assert "Traceback" not in ended.stderr + ended.stdout


@pytest.mark.parametrize("text", ["2\n", "0\n", "one\n", ""])
def test_a_store_of_another_format_is_refused_and_left_as_it_is(
    make_server: MakeServer, text: str
) -> None:
    server = make_server()
    with server.client() as client:
        client.execute_command("WCPUT", "d", "r", 1, "c", "v")
    server.stop()
    mark = server.directory / "FORMAT"
    written = mark.read_text()
    assert written != text
    mark.write_text(text)
    before = contents(server.directory)
    ended = run_server("--port", free_port(), "--dir", server.directory)
    assert ended.returncode == 1
    assert str(server.directory) in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout
    assert contents(server.directory) == before
    mark.write_text(written)
    assert value_of(server.start(), "r") == b"v"


def test_a_store_without_its_format_is_refused_and_left_as_it_is(make_server: MakeServer) -> None:
    server = make_server()
    server.stop()
    (server.directory / "FORMAT").unlink()
    before = contents(server.directory)
    ended = run_server("--port", free_port(), "--dir", server.directory)
    assert ended.returncode == 1
    assert "holds a store but no FORMAT file" in ended.stderr
    assert contents(server.directory) == before


@pytest.mark.parametrize("word", ["-v", "--version", "-h", "--help"])
def test_version_and_help(word: str) -> None:
    ended = run_server(word)
    assert ended.returncode == 0
    assert "olonnade" in ended.stdout
    assert ended.stderr == ""


# Unix sockets


class SocketServer(ServerProcess):
    """A server that is reached by its unix socket; its TCP port is 0."""

    def __init__(self, directory: Path) -> None:
        self.path = directory.with_name("s")
        super().__init__(directory, port=0, unixsocket=self.path, unixsocketperm=600)

    def raw(self, timeout: float = 20.0) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout)
        try:
            connection.connect(str(self.path))
        except OSError:
            connection.close()
            raise
        return connection


def test_a_unix_socket_instead_of_a_port(tmp_path: Path) -> None:
    server = SocketServer(tmp_path / "data")
    try:
        server.start()
        assert stat.S_IMODE(server.path.stat().st_mode) == 0o600
        with Wire(server) as wire:
            assert wire.call("WCPUT", "d", "r", 1, "c", "v") == 1
            assert f" addr={server.path}:0 ".encode() in wire.call("CLIENT", "INFO")
        with redis.Redis(unix_socket_path=str(server.path)) as client:
            assert client.ping()
        assert server.stop() == 0
        assert not server.path.exists()
        server.start()
        server.kill()
        assert server.path.exists()  # nobody was left to remove it
        server.start()
        with Wire(server) as wire:
            assert wire.call("WCEXISTS", "d", "r") == 1
    finally:
        server.close()


def test_a_unix_socket_beside_a_port(make_server: MakeServer, tmp_path: Path) -> None:
    path = tmp_path / "s"
    server = make_server(unixsocket=path)
    with redis.Redis(unix_socket_path=str(path)) as near, server.client() as far:
        near.execute_command("WCPUT", "d", "r", 1, "c", "v")
        assert far.execute_command("WCEXISTS", "d", "r") == 1
    assert server.stop() == 0
    assert not path.exists()


def test_a_unix_socket_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "s"
    ended = run_server("--port", 0, "--unixsocket", path, "--dir", tmp_path / "data")
    assert ended.returncode == 1
    assert f"cannot listen on {path}: " in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout


# Settings of the whole server


def test_the_memory_engine_serves_and_forgets(make_server: MakeServer) -> None:
    server = make_server(wc_engine="memory")
    with server.client() as client:
        client.execute_command("WCPUT", "d", "r", 1, "c", "v", 2, "c", "w")
        assert client.execute_command("WCGET", "d", "r", "VERSIONS", 2) == [
            b"0",
            [[b"c", [[2, b"w"], [1, b"v"]]]],
        ]
        assert client.config_get("wc-engine") == {"wc-engine": "memory"}
    assert not server.directory.exists()
    assert server.stop() == 0
    server.start()
    with server.client() as client:
        assert client.execute_command("WCDATASET", "LIST") == []


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_every_policy_of_the_log_serves_and_restarts(make_server: MakeServer, policy: str) -> None:
    server = make_server(appendfsync=policy)
    with server.client() as client:
        assert client.config_get("appendfsync") == {"appendfsync": policy}
        for number in range(50):
            client.execute_command("WCPUT", "d", f"r{number}", 1, "c", number)
    server.kill()
    server.start()
    for number in (0, 25, 49):
        assert value_of(server, f"r{number}") == b"%d" % number
    assert server.stop() == 0
    assert value_of(server.start(), "r49") == b"49"


def test_clients_over_the_limit_are_refused(make_server: MakeServer) -> None:
    server = make_server(maxclients=3)
    with Wire(server) as first:
        until(lambda: b"connected_clients:1\r\n" in first.call("INFO", "clients"))
        with Wire(server) as second, Wire(server) as third:
            assert second.call("PING") == third.call("PING") == b"PONG"
            for _ in range(3):
                with Wire(server) as refused:
                    assert refused.read_to_end() == b"-ERR max number of clients reached\r\n"
            assert first.call("PING") == b"PONG"
            assert b"rejected_connections:3\r\n" in first.call("INFO", "stats")
        until(lambda: b"connected_clients:1\r\n" in first.call("INFO", "clients"))
        with Wire(server) as again:
            assert again.call("PING") == b"PONG"
    assert "Traceback" not in server.log


def test_a_log_file(make_server: MakeServer, tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    server = make_server(logfile=file)
    assert server.stop() == 0
    assert "ready to accept connections" in file.read_text()
    assert server.log == ""


def test_the_configuration_file_is_obeyed(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text('requirepass "a secret"\nwc-auto-create no\ndatabases 2\n')
    command = (sys.executable, "-m", "resp_server", str(file))
    server = ServerProcess(tmp_path / "data", command=command)
    try:
        server.start()
        with Wire(server) as wire:
            assert str(wire.call("PING")).startswith("NOAUTH")
            assert wire.call("AUTH", "a secret") == b"OK"
            assert str(wire.call("WCPUT", "d", "r", 1, "c", "v")).startswith("NODATASET")
            assert str(wire.call("SELECT", 2)) == "ERR DB index is out of range"
    finally:
        server.close()


def test_the_data_directory_is_for_its_owner(make_server: MakeServer) -> None:
    server = make_server()
    assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700
    assert (server.directory / "FORMAT").read_text().strip().isdecimal()


def test_it_lets_go_of_what_it_held_for_clients_that_left(make_server: MakeServer) -> None:
    server = make_server()

    def descriptors() -> int:
        return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))

    with Wire(server) as first:
        assert first.call("PING") == b"PONG"
        before = descriptors()
        for _ in range(50):
            with Wire(server) as connected:
                assert connected.call("PING") == b"PONG"
        until(lambda: b"connected_clients:1\r\n" in first.call("INFO", "clients"))
        assert descriptors() == before
