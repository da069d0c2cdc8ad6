"""appendfsync, seen from outside: in which order the server asks the system for what."""

from __future__ import annotations

import re
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness import MakeServer, ServerProcess, until
from tests.wire import Wire, encode

CALLS = 20
needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace, which shows the order of calls, is not here"
)


class Traced:
    """A server under strace, and what was seen of it: one line a system call, in order."""

    def __init__(self, directory: Path, *options: str, **directives: object) -> None:
        self._file = directory / "trace"
        calls = "trace=write,writev,sendto,sendmsg,pwrite64,fdatasync,fsync,sync_file_range"
        command = ["strace", "-f", "-yy", "-s", "4096", "-e", calls, *options]
        command += ["-o", str(self._file), sys.executable, "-m", "resp_server"]
        self.server = ServerProcess(directory / "data", command=command, **directives)

    def end(self) -> None:
        """By a command: a signal would end strace, and leave the server."""
        with Wire(self.server) as wire:
            wire.send(encode("SHUTDOWN"))
            wire.read_to_end()
        assert self.server.process is not None
        self.server.process.wait(timeout=30)

    def lines(self) -> list[str]:
        return self._file.read_text(errors="replace").splitlines()


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Callable[..., Traced]]:
    started: list[Traced] = []

    def start(*options: str, **directives: object) -> Traced:
        traced = Traced(tmp_path, *options, **directives)
        traced.server.start()
        started.append(traced)
        return traced

    yield start
    for traced in started:
        if traced.server.process is not None and traced.server.process.poll() is None:
            traced.end()


def put_one_by_one(traced: Traced, name: str) -> None:
    with Wire(traced.server) as wire:
        for number in range(CALLS):
            assert wire.call("WCPUT", "d", "r", "*", "c", f"<{name} {number}>") == 1


def syncs_before_replies(lines: list[str], name: str) -> list[int]:
    """For each call, how many syncs of the log ended between its way into the log and its reply."""
    counts = []
    for number in range(CALLS):
        logged = first(lines, rf"\.log>.*<{name} {number}>", 0)
        answered = first(lines, r'TCP:.*":1\\r\\n"', logged)
        ended = [
            line
            for line in lines[logged + 1 : answered]
            if re.search(r"(fdatasync|fsync).*= 0", line)
        ]
        counts.append(len(ended))
    return counts


def first(lines: list[str], pattern: str, start: int) -> int:
    for place in range(start, len(lines)):
        if re.search(pattern, lines[place]):
            return place
    raise AssertionError(f"nothing like {pattern} in the trace")


@needs_strace
@pytest.mark.parametrize(
    ("options", "on"),
    [((), "loop"), (("-e", "inject=fdatasync,fsync:delay_exit=3000"), "thread")],
    ids=["a quick disk", "a slow disk"],
)
def test_always_answers_after_the_sync_that_covers_the_write(
    trace: Callable[..., Traced], options: tuple[str, ...], on: str
) -> None:
    traced = trace(*options, appendfsync="always")
    put_one_by_one(traced, "warm")
    put_one_by_one(traced, "call")
    with Wire(traced.server) as wire:
        information = wire.call("INFO", "persistence")
    traced.end()
    assert min(syncs_before_replies(traced.lines(), "call")) >= 1
    if on == "thread":  # tracing makes a quick disk slow, too
        assert b"wc_fsync_on:thread" in information


@needs_strace
def test_always_syncs_once_for_a_pipeline(trace: Callable[..., Traced]) -> None:
    traced = trace(appendfsync="always")
    with Wire(traced.server) as wire:
        before = fsyncs(wire)
        wire.send(*(encode("WCPUT", "d", "r", "*", "c", "v") for _ in range(100)))
        assert wire.read(100) == [1] * 100
        # The first ones may have come by themselves.
        assert 1 <= fsyncs(wire) - before <= 5


@needs_strace
def test_the_others_do_not_wait_for_the_disk(trace: Callable[..., Traced]) -> None:
    traced = trace(appendfsync="no")
    put_one_by_one(traced, "call")
    traced.end()
    assert sum(syncs_before_replies(traced.lines(), "call")) == 0


def fsyncs(wire: Wire) -> int:
    (line,) = re.findall(rb"wc_fsyncs:(\d+)", wire.call("INFO", "persistence"))
    return int(line)


def test_everysec_brings_it_to_the_disk_by_and_by(make_server: MakeServer) -> None:
    server = make_server(appendfsync="everysec")
    with Wire(server) as wire:
        before = fsyncs(wire)
        wire.call("WCPUT", "d", "r", "*", "c", "v")
        until(lambda: fsyncs(wire) > before)
        information = wire.call("INFO", "persistence")
        assert b"wc_last_fsync_status:ok\r\n" in information
        assert b"aof_pending_bio_fsync:0\r\n" in information


def test_no_leaves_it_to_the_system_until_it_is_asked(make_server: MakeServer) -> None:
    server = make_server(appendfsync="no")
    with Wire(server) as wire:
        wire.call("WCPUT", "d", "r", "*", "c", "v")
        before = fsyncs(wire)
        assert wire.call("SAVE") == b"OK"
        assert fsyncs(wire) == before + 1


def test_the_mode_may_change_while_it_runs(make_server: MakeServer) -> None:
    server = make_server(appendfsync="no")
    with Wire(server) as wire:
        wire.call("CONFIG", "SET", "appendfsync", "always")
        before = fsyncs(wire)
        for _ in range(5):
            wire.call("WCPUT", "d", "r", "*", "c", "v")
        assert fsyncs(wire) == before + 5
        wire.call("CONFIG", "SET", "appendfsync", "no")
        before = fsyncs(wire)
        wire.call("WCPUT", "d", "r", "*", "c", "v")
        assert fsyncs(wire) == before


# A disk that is full


def limit_files(server: ServerProcess, size: int) -> None:
    """No file of the server's may grow beyond this: to it, the disk is full."""
    hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, hard))


@pytest.mark.parametrize("appendfsync", ["everysec", "always"])
def test_a_full_disk_is_told_and_gets_over_it(make_server: MakeServer, appendfsync: str) -> None:
    """Nothing that was acknowledged is lost, reads go on, and nobody is disconnected."""
    server = make_server(appendfsync=appendfsync)
    acknowledged = []
    with Wire(server) as wire, Wire(server) as reader:
        for number in range(1, 101):
            assert wire.call("WCPUT", "d", "r", number, "c", "v" * 1000) == 1
            acknowledged.append(number)
        log = max(server.directory.rglob("*.log"), key=lambda file: file.stat().st_size)
        limit_files(server, log.stat().st_size + 20_000)
        refused = 0
        for number in range(101, 201):
            reply = wire.call("WCPUT", "d", "r", number, "c", "v" * 1000)
            if reply == 1:
                acknowledged.append(number)
            else:
                assert str(reply).startswith("IOERR ")
                refused += 1
                for _ in range(2):  # it is told until a write succeeds
                    assert b"aof_last_write_status:err" in reader.call("INFO", "persistence")
            assert reader.call("PING") == b"PONG"
        assert refused > 0
        assert timestamps(reader) == acknowledged[::-1]
        limit_files(server, resource.RLIM_INFINITY)
        for number in range(201, 221):
            assert wire.call("WCPUT", "d", "r", number, "c", "v" * 1000) == 1
            acknowledged.append(number)
        assert wire.call("WCDATASET", "CREATE", "e") == b"OK"
        assert timestamps(reader) == acknowledged[::-1]
        assert b"aof_last_write_status:ok" in reader.call("INFO", "persistence")
    server.kill()
    server.start()
    with Wire(server) as wire:
        assert timestamps(wire) == acknowledged[::-1]
        assert wire.call("WCDATASET", "LIST") == [b"d", b"e"]


def timestamps(wire: Wire) -> list[int]:
    _, columns = wire.call("WCGET", "d", "r", "VERSIONS", "ALL", "NOVALUES")
    found: list[int] = columns[0][1]
    return found
