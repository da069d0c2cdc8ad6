"""The end of a tick: replies wait for the commit, and tell the truth when it fails.

Tick by itself with an engine and connections that only take notes; then real connections, without
sockets, over the engine in memory whose store stalls or fails when it is told to.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast
from unittest import mock

import pytest

import commands.families  # noqa: F401 - fills the command table
from commands.access.users import Users
from commands.context import CommandSettings
from commands.table import TABLE
from resp_server import connection as connection_module
from resp_server.connection import COMMANDS_PER_TURN, REPLY_BYTES_PER_TURN, Connection
from resp_server.counters import Counters
from resp_server.parser import CommandParser
from resp_server.services import Services
from resp_server.settings import Settings
from resp_server.syncing import SLOW_SECONDS, Syncing
from resp_server.tick import STALL_RETRY_SECONDS, Tick
from storage.embedded.engine import EmbeddedEngine
from storage.embedded.ordered import Operation
from storage.engine import Engine
from storage.errors import StoreFailure, StoreStalled
from storage.memory.database import MemoryDatabase
from tests.harness import eventually
from tests.wire import encode

DISK_FULL = StoreFailure("No space left on device")


# Tick by itself


class Loop:
    """Keeps what it is to call, and calls it when told."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []
        self.later: list[tuple[float, Callable[[], object]]] = []

    def call_soon(self, callback: Callable[[], object]) -> None:
        self.soon.append(callback)

    def call_later(self, delay: float, callback: Callable[[], object]) -> None:
        self.later.append((delay, callback))

    def turn(self) -> None:
        """Call what was asked for before this turn."""
        callbacks, self.soon = self.soon, []
        for callback in callbacks:
            callback()

    def wait(self) -> None:
        """Let the time pass that somebody waits for."""
        callbacks, self.later = self.later, []
        for _, callback in callbacks:
            callback()


class NotingEngine:
    """Commits as often as it is asked; `outcomes` are those of the next commits."""

    def __init__(self, notes: list[str]) -> None:
        self.on_settled: Callable[[StoreFailure | None], None] = lambda _failure: None
        self.outcomes: list[StoreFailure | type[StoreStalled] | None] = []
        self._notes = notes

    def commit(self) -> StoreFailure | None:
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is StoreStalled:
            self._notes.append("stalled")
            raise StoreStalled
        assert not isinstance(outcome, type)
        self._notes.append("commit fails" if outcome else "commit")
        self.on_settled(outcome)
        return outcome

    def tell(self, failure: StoreFailure) -> None:
        self.on_settled(failure)


class NotingConnection:
    """Answers resp_server.tick.Replying."""

    def __init__(self, name: str, notes: list[str], *, unsettled: bool = False) -> None:
        self.has_unsettled = unsettled
        self._name = name
        self._notes = notes

    def settle(self, failure: StoreFailure | None) -> None:
        self._notes.append(f"{self._name} {'fails' if failure else 'settles'}")
        self.has_unsettled = False

    def stall(self) -> None:
        self._notes.append(f"{self._name} stalls")

    def flush(self) -> None:
        self._notes.append(f"{self._name} flushes")

    def seal(self) -> None:
        self._notes.append(f"{self._name} seals")
        self.has_unsettled = False

    def send_sealed(self, failure: StoreFailure | None) -> None:
        self._notes.append(f"{self._name} sends {'failures' if failure else 'sealed'}")


class NotingSyncing:
    """As much of a Syncing as a Tick needs. `outcomes` are those of the next syncs."""

    def __init__(self, notes: list[str]) -> None:
        self.is_due = False
        self.on_thread = False
        self.outcomes: list[StoreFailure] = []
        self.fail: Callable[[StoreFailure], None] = lambda _failure: None
        self.started: list[Begun] = []
        self._notes = notes

    def run(self) -> StoreFailure | None:
        failure = self.outcomes.pop(0) if self.outcomes else None
        self._notes.append("sync fails" if failure else "sync")
        if failure is not None:
            self.fail(failure)
        return failure

    def start(self) -> Begun:
        self._notes.append("sync starts")
        self.started.append(Begun())
        return self.started[-1]


class Begun:
    """A future of which the end is somebody's to say."""

    def __init__(self) -> None:
        self._outcome: StoreFailure | None = None
        self._callbacks: list[Callable[[Begun], object]] = []

    def add_done_callback(self, callback: Callable[[Begun], object]) -> None:
        self._callbacks.append(callback)

    def result(self) -> StoreFailure | None:
        return self._outcome

    def end(self, outcome: StoreFailure | None = None) -> None:
        self._outcome = outcome
        for callback in self._callbacks:
            callback(self)


class Ticking:
    """A Tick among those who take notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.loop = Loop()
        self.engine = NotingEngine(self.notes)
        self.syncing = NotingSyncing(self.notes)
        self.tick = Tick(
            cast(asyncio.AbstractEventLoop, self.loop),
            cast(Engine, self.engine),
            cast(Syncing, self.syncing),
        )
        self.syncing.fail = self.engine.tell

    def connection(self, name: str, *, unsettled: bool = False) -> NotingConnection:
        return NotingConnection(name, self.notes, unsettled=unsettled)


@pytest.fixture
def ticking() -> Ticking:
    return Ticking()


def test_replies_wait_for_the_commit(ticking: Ticking) -> None:
    ticking.tick.add(ticking.connection("a", unsettled=True))
    assert ticking.notes == []
    ticking.loop.turn()
    assert ticking.notes == ["commit", "a settles", "a flushes"]


def test_one_commit_serves_all_of_a_tick(ticking: Ticking) -> None:
    first, second = ticking.connection("a", unsettled=True), ticking.connection("b")
    for connection in (first, second, first, second):
        ticking.tick.add(connection)
    assert len(ticking.loop.soon) == 1
    ticking.loop.turn()
    assert ticking.notes == ["commit", "a settles", "b settles", "a flushes", "b flushes"]


def test_each_tick_flushes_those_of_that_tick(ticking: Ticking) -> None:
    first, second = ticking.connection("a"), ticking.connection("b")
    ticking.tick.add(first)
    ticking.loop.turn()
    ticking.tick.add(second)
    ticking.loop.turn()
    assert [note for note in ticking.notes if "flushes" in note] == ["a flushes", "b flushes"]
    assert ticking.loop.soon == []


def test_one_that_replies_while_others_are_flushed_comes_in_the_next_tick(
    ticking: Ticking,
) -> None:
    first, second = ticking.connection("a"), ticking.connection("b")
    first.flush = lambda: ticking.tick.add(second)  # type: ignore[method-assign]
    ticking.tick.add(first)
    ticking.loop.turn()
    assert "b flushes" not in ticking.notes
    ticking.loop.turn()
    assert ticking.notes[-2:] == ["b settles", "b flushes"]


def test_a_failure_is_told_before_the_replies_go(ticking: Ticking) -> None:
    ticking.engine.outcomes = [DISK_FULL]
    ticking.tick.add(ticking.connection("a", unsettled=True))
    ticking.loop.turn()
    assert ticking.notes == ["commit fails", "a fails", "a flushes"]


def test_a_stall_keeps_back_those_whose_writes_wait(ticking: Ticking) -> None:
    ticking.engine.outcomes = [StoreStalled, StoreStalled]
    ticking.tick.add(ticking.connection("writer", unsettled=True))
    ticking.tick.add(ticking.connection("reader"))
    ticking.loop.turn()
    assert ticking.notes == ["stalled", "writer stalls", "reader flushes"]
    assert [delay for delay, _ in ticking.loop.later] == [STALL_RETRY_SECONDS]
    ticking.loop.wait()
    assert ticking.notes[3:] == ["stalled", "writer stalls"]
    ticking.loop.wait()
    assert ticking.notes[5:] == ["commit", "writer settles", "writer flushes"]
    assert (ticking.loop.soon, ticking.loop.later) == ([], [])


def test_others_join_a_tick_that_is_stalled(ticking: Ticking) -> None:
    ticking.engine.outcomes = [StoreStalled]
    ticking.tick.add(ticking.connection("writer", unsettled=True))
    ticking.loop.turn()
    ticking.tick.add(ticking.connection("reader"))
    ticking.loop.turn()
    ticking.loop.wait()
    assert ticking.notes[-2:] == ["writer flushes", "reader flushes"]
    assert (ticking.loop.soon, ticking.loop.later) == ([], [])


def test_a_stall_that_ends_in_a_failure(ticking: Ticking) -> None:
    ticking.engine.outcomes = [StoreStalled, DISK_FULL]
    ticking.tick.add(ticking.connection("writer", unsettled=True))
    ticking.loop.turn()
    ticking.loop.wait()
    assert ticking.notes[-3:] == ["commit fails", "writer fails", "writer flushes"]


def test_a_tick_after_a_stall_is_an_ordinary_one(ticking: Ticking) -> None:
    ticking.engine.outcomes = [StoreStalled]
    ticking.tick.add(ticking.connection("a", unsettled=True))
    ticking.loop.turn()
    ticking.loop.wait()
    ticking.tick.add(ticking.connection("b", unsettled=True))
    ticking.loop.turn()
    assert ticking.notes[-3:] == ["commit", "b settles", "b flushes"]


# Tick with appendfsync always


def test_replies_wait_for_the_sync(ticking: Ticking) -> None:
    ticking.syncing.is_due = True
    ticking.tick.add(ticking.connection("a", unsettled=True))
    ticking.tick.add(ticking.connection("b", unsettled=True))
    ticking.loop.turn()
    assert ticking.notes == ["commit", "sync", "a flushes", "b flushes"]


def test_a_failed_sync_is_told_before_the_replies_go(ticking: Ticking) -> None:
    ticking.syncing.is_due = True
    ticking.syncing.outcomes = [DISK_FULL]
    ticking.tick.add(ticking.connection("a", unsettled=True))
    ticking.loop.turn()
    assert ticking.notes == ["commit", "sync fails", "a fails", "a flushes"]


def test_while_a_thread_syncs_the_next_tick_gathers(ticking: Ticking) -> None:
    ticking.syncing.is_due = ticking.syncing.on_thread = True
    ticking.tick.add(ticking.connection("a", unsettled=True))
    ticking.loop.turn()
    assert ticking.notes == ["commit", "a seals", "sync starts"]
    ticking.tick.add(ticking.connection("b", unsettled=True))
    ticking.tick.end()
    assert (ticking.loop.soon, ticking.notes[3:]) == ([], [])
    ticking.syncing.started[0].end()
    assert ticking.notes[3:] == ["a sends sealed"]
    ticking.loop.turn()
    assert ticking.notes[4:] == ["commit", "b seals", "sync starts"]
    ticking.syncing.started[1].end()
    assert ticking.notes[7:] == ["b sends sealed"]
    assert ticking.loop.soon == []


def test_a_sync_that_fails_on_a_thread(ticking: Ticking) -> None:
    ticking.syncing.is_due = ticking.syncing.on_thread = True
    ticking.tick.add(ticking.connection("a", unsettled=True))
    ticking.loop.turn()
    ticking.syncing.started[0].end(DISK_FULL)
    assert ticking.notes[3:] == ["a sends failures"]


def test_readers_of_a_stalled_tick_wait_for_what_they_read(ticking: Ticking) -> None:
    """A read may have committed what it found, before the stall came."""
    ticking.syncing.is_due = True
    ticking.engine.outcomes = [StoreStalled]
    ticking.tick.add(ticking.connection("reader"))
    ticking.loop.turn()
    assert ticking.notes == ["stalled", "sync", "reader flushes"]


# Real connections


class FragileDatabase(MemoryDatabase):
    """A store in memory that fails and stalls as often as it is told to."""

    failures = 0
    stalls = 0
    failing_syncs = 0
    syncs = 0
    """How many have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[threading.Event] = []
        """The next syncs wait for these."""

    def sync(self) -> None:
        if self.held:
            assert self.held.pop(0).wait(20)
        self.syncs += 1
        if self.failing_syncs:
            self.failing_syncs -= 1
            raise StoreFailure(str(DISK_FULL))

    def write(self, operations: Sequence[Operation], *, durable: bool = False) -> None:
        if self.stalls:
            self.stalls -= 1
            raise StoreStalled
        if self.failures:
            self.failures -= 1
            raise StoreFailure(str(DISK_FULL))
        super().write(operations, durable=durable)


class Transport:
    """What a connection needs of one; keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written += data

    def writelines(self, parts: list[bytes]) -> None:
        self.write(b"".join(parts))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> tuple[str, int] | None:
        return None if name == "socket" else ("127.0.0.1", 1)

    def take(self) -> bytes:
        written, self.written = self.written, b""
        return written


class Host:
    """Answers resp_server.connection.Host."""

    def __init__(self) -> None:
        self.database = FragileDatabase()
        self.engine = EmbeddedEngine(self.database)
        self.loop = asyncio.get_running_loop()
        self.command_settings = CommandSettings()
        self.settings = Settings()
        self.server = Services(
            self.settings, self.engine, self.loop, lambda: None, Users(TABLE), Counters()
        )
        self.tick = Tick(self.loop, self.engine, self.server.syncing)
        self.clients = self.server.clients
        self.execution = self.server.execution

    def parser(self) -> CommandParser:
        return CommandParser(2**29, 2**30)

    def admit(self, _connection: Connection, _peer: object) -> bytes | None:
        return None

    def forget(self, _connection: Connection) -> None:
        pass

    def count_traffic(self, commands: int, bytes_in: int) -> None:
        pass

    def count_sent(self, bytes_out: int) -> None:
        pass

    def execution_count(self) -> int:
        return sum(calls.count for calls in self.server.calls.by_command.values())

    def connect(self) -> tuple[Connection, Transport]:
        connection, transport = Connection(self), Transport()
        connection.connection_made(cast(asyncio.Transport, transport))
        return connection, transport


def run(scenario: Callable[[Host], Coroutine[Any, Any, None]]) -> None:
    async def hosted() -> None:
        host = Host()
        try:
            async with asyncio.timeout(20):
                await scenario(host)
        finally:
            await host.engine.close()

    # Turns end by count alone: a busy machine would end one where a test expects it to go on.
    with mock.patch.object(connection_module, "TURN_SECONDS", 60.0):
        asyncio.run(hosted())


async def until_written(transport: Transport, size: int = 1) -> bytes:
    await eventually(lambda: len(transport.written) >= size)
    return transport.take()


PUT = encode("WCPUT", "d", "r", 1, "c", "v")
GET = encode("WCGET", "d", "r")
MULTI, EXEC = encode("MULTI"), encode("EXEC")
IOERR = b"-IOERR No space left on device\r\n"
FOUND = b"*2\r\n$1\r\n0\r\n*1\r\n*2\r\n$1\r\nc\r\n*1\r\n*2\r\n:1\r\n$1\r\nv\r\n"


def test_nothing_is_sent_before_the_end_of_the_tick() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        connection.data_received(PUT + encode("PING"))
        assert transport.take() == b""
        assert await until_written(transport) == b":1\r\n+PONG\r\n"

    run(scenario)


def test_a_failed_commit_is_answered_to_every_write_and_to_no_read() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        other, other_transport = host.connect()
        host.database.failures = 1
        connection.data_received(encode("PING") + PUT + encode("ECHO", "a") + PUT)
        other.data_received(PUT + encode("WCPUT", "d"))
        assert await until_written(transport) == b"+PONG\r\n" + IOERR + b"$1\r\na\r\n" + IOERR
        assert (await until_written(other_transport)).startswith(IOERR + b"-ERR wrong number")
        connection.data_received(PUT + GET)
        assert await until_written(transport) == b":1\r\n" + FOUND

    run(scenario)


def test_a_commit_that_fails_for_a_read_in_the_same_turn() -> None:
    """The connection is not at the end of its turn, and its write is lost all the same."""

    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        connection.data_received(encode("WCDATASET", "CREATE", "d"))
        assert await until_written(transport) == b"+OK\r\n"
        host.database.failures = 1
        connection.data_received(PUT + GET + GET)
        assert await until_written(transport) == IOERR + IOERR + b"*2\r\n$1\r\n0\r\n*0\r\n"

    run(scenario)


def test_a_failure_does_not_reach_back_to_what_was_committed_in_the_same_turn() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        connection.data_received(encode("WCDATASET", "CREATE", "d"))
        assert await until_written(transport) == b"+OK\r\n"
        # The read commits the first write; the commit of the second is the one that fails.
        connection.data_received(PUT + GET)
        host.database.failures = 1
        connection.data_received(encode("WCPUT", "d", "r", 2, "c", "w"))
        assert await until_written(transport) == b":1\r\n" + FOUND + IOERR

    run(scenario)


def test_a_failure_that_another_connection_brings_about() -> None:
    async def scenario(host: Host) -> None:
        writer, writer_transport = host.connect()
        reader, reader_transport = host.connect()
        reader.data_received(encode("WCDATASET", "CREATE", "d"))
        await until_written(reader_transport)
        host.database.failures = 1
        writer.data_received(PUT)
        reader.data_received(GET + encode("PING"))
        assert await until_written(writer_transport) == IOERR
        assert await until_written(reader_transport) == IOERR + b"+PONG\r\n"

    run(scenario)


def test_a_stall_holds_writers_and_lets_others_through() -> None:
    async def scenario(host: Host) -> None:
        writer, writer_transport = host.connect()
        reader, reader_transport = host.connect()
        host.database.stalls = 3
        writer.data_received(PUT + encode("PING"))
        reader.data_received(encode("PING"))
        assert await until_written(reader_transport) == b"+PONG\r\n"
        assert host.database.stalls == 2
        assert writer_transport.take() == b""
        writer.data_received(encode("ECHO", "later"))
        reader.data_received(encode("PING"))
        expected = b":1\r\n+PONG\r\n$5\r\nlater\r\n"
        assert await until_written(writer_transport, len(expected)) == expected
        assert host.database.stalls == 0
        assert await until_written(reader_transport) == b"+PONG\r\n"

    run(scenario)


def test_a_write_that_waits_out_a_stall_inside_its_handler() -> None:
    """A read of what a stalled group touches has to wait; the connection's order is kept."""

    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        host.database.stalls = 3
        connection.data_received(PUT + GET + encode("PING"))
        expected = b":1\r\n" + FOUND + b"+PONG\r\n"
        assert await until_written(transport, len(expected)) == expected
        assert host.database.stalls == 0

    run(scenario)


def test_a_stall_then_a_failure_for_one_that_waits() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        connection.data_received(encode("WCDATASET", "CREATE", "d"))
        await until_written(transport)
        host.database.stalls, host.database.failures = 2, 1
        connection.data_received(PUT + GET + encode("PING"))
        expected = IOERR + IOERR + b"+PONG\r\n"
        assert await until_written(transport, len(expected)) == expected

    run(scenario)


def test_a_client_that_leaves_during_a_stall() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        host.database.stalls = 2
        connection.data_received(PUT)
        await asyncio.sleep(0)
        transport.closed = True
        connection.connection_lost(None)
        await eventually(lambda: not host.database.stalls)
        other, other_transport = host.connect()
        other.data_received(GET)
        assert await until_written(other_transport) == FOUND

    run(scenario)


def test_one_turn_runs_no_more_than_its_share() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        other, other_transport = host.connect()
        connection.data_received(encode("PING") * 4 * COMMANDS_PER_TURN)
        assert host.execution_count() <= COMMANDS_PER_TURN
        other.data_received(encode("PING"))
        assert await until_written(other_transport) == b"+PONG\r\n"
        assert host.execution_count() < 4 * COMMANDS_PER_TURN
        size = len(b"+PONG\r\n") * 4 * COMMANDS_PER_TURN
        assert await until_written(transport, size) == b"+PONG\r\n" * 4 * COMMANDS_PER_TURN

    run(scenario)


def test_settling_clears_what_was_unsettled() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        connection.data_received(PUT)
        assert connection.has_unsettled
        connection.settle(None)
        assert not connection.has_unsettled
        connection.settle(DISK_FULL)
        assert await until_written(transport) == b":1\r\n"

    run(scenario)


# appendfsync always


@pytest.fixture(params=[False, True], ids=["on the loop", "on a thread"])
def on_thread(request: pytest.FixtureRequest) -> bool:
    found: bool = request.param
    return found


def always(host: Host, *, on_thread: bool) -> None:
    host.settings.appendfsync = "always"
    host.server.syncing.on_thread = on_thread
    if on_thread:  # and leave it there, however quick it is
        host.server.syncing._average_seconds = 1000 * SLOW_SECONDS


def test_one_sync_for_all_writes_of_a_tick(on_thread: bool) -> None:
    async def scenario(host: Host) -> None:
        always(host, on_thread=on_thread)
        first, first_transport = host.connect()
        second, second_transport = host.connect()
        first.data_received(PUT * 3 + GET)
        second.data_received(PUT + encode("PING"))
        assert await until_written(first_transport) == b":1\r\n" * 3 + FOUND
        assert await until_written(second_transport) == b":1\r\n+PONG\r\n"
        assert host.database.syncs == 1
        first.data_received(encode("PING"))
        assert await until_written(first_transport) == b"+PONG\r\n"
        assert host.database.syncs == 1, "nothing was written since"

    run(scenario)


def test_a_failed_sync_is_answered_to_its_writes(on_thread: bool) -> None:
    async def scenario(host: Host) -> None:
        always(host, on_thread=on_thread)
        writer, writer_transport = host.connect()
        reader, reader_transport = host.connect()
        host.database.failing_syncs = 1
        writer.data_received(encode("PING") + PUT + encode("PING"))
        reader.data_received(encode("PING"))
        expected = b"+PONG\r\n" + IOERR + b"+PONG\r\n"
        assert await until_written(writer_transport, len(expected)) == expected
        assert await until_written(reader_transport) == b"+PONG\r\n"
        assert host.server.syncing.last_error == str(DISK_FULL)
        writer.data_received(PUT)
        assert await until_written(writer_transport) == b":1\r\n"
        assert host.server.syncing.last_error == ""

    run(scenario)


def test_what_comes_while_a_thread_syncs_waits_for_the_next_sync() -> None:
    async def scenario(host: Host) -> None:
        always(host, on_thread=True)
        connection, transport = host.connect()
        connection.data_received(PUT)
        host.tick.end()
        assert host.server.syncing.running == 1
        connection.data_received(PUT + GET + encode("QUIT"))
        assert transport.take() == b""
        assert await until_written(transport) == b":1\r\n"
        assert not transport.closed
        await eventually(lambda: transport.closed)
        assert transport.take() == b":1\r\n" + FOUND + b"+OK\r\n"
        assert host.database.syncs == 2

    run(scenario)


def test_the_end_of_the_server_waits_for_the_sync() -> None:
    async def scenario(host: Host) -> None:
        always(host, on_thread=True)
        connection, transport = host.connect()
        connection.data_received(PUT)
        host.tick.end()
        connection.data_received(PUT)
        await host.tick.finish()
        assert transport.take() == b":1\r\n:1\r\n"
        assert host.database.syncs == 2

    run(scenario)


def test_a_sync_that_somebody_else_began_is_none_of_ours_before_it_has_ended(
    on_thread: bool,
) -> None:
    """SAVE and WAITAOF have one of their own, which takes away the mark that something is due."""

    async def scenario(host: Host) -> None:
        always(host, on_thread=on_thread)
        connection, transport = host.connect()
        release = threading.Event()
        host.database.held.append(release)
        connection.data_received(PUT)
        assert host.engine.commit() is None
        begun = host.server.syncing.start()
        await eventually(lambda: not host.engine.unsynced)  # its thread has begun
        if on_thread:  # one after the other, so this one waits for that
            host.tick.end()
            assert transport.take() == b""
            release.set()
        assert await until_written(transport) == b":1\r\n"
        assert host.database.syncs >= 1, "nothing was on the disk when the reply went"
        release.set()
        await begun

    run(scenario)


def test_where_it_is_done_follows_from_how_long_it_takes() -> None:
    async def scenario(host: Host) -> None:
        syncing = host.server.syncing
        for seconds, on_thread in ((0.0001, False), (0.01, True), (0.0004, True)):
            for _ in range(100):
                syncing._ended(seconds, None)
            assert syncing.on_thread is on_thread
        for _ in range(100):
            syncing._ended(0.0001, None)
        assert not syncing.on_thread

    run(scenario)


# A store that is stalled for long


def test_when_much_waits_already_further_writes_are_refused() -> None:
    async def scenario(host: Host) -> None:
        host.engine.most_waiting_bytes = 5000
        host.database.stalls = 1_000_000
        large = encode("WCPUT", "d", "r", 1, "c", "x" * 3000)
        waiting = [host.connect() for _ in range(3)]
        refused = []
        for connection, _ in waiting:
            connection.data_received(large)
            host.tick.end()
        for call in (large, encode("WCDEL", "d", "r"), MULTI + large + EXEC):
            connection, transport = host.connect()
            connection.data_received(call + encode("PING"))
            refused.append(await until_written(transport))
        busy = b"-BUSY 0 MB of writes wait for the disk, try again in a second\r\n"
        assert refused[0] == refused[1] == busy + b"+PONG\r\n"
        assert refused[2].endswith(b"+QUEUED\r\n" + busy + b"+PONG\r\n")
        host.database.stalls = 0
        for _, transport in waiting[:2]:
            assert await until_written(transport) == b":1\r\n"
        connection, transport = host.connect()
        connection.data_received(large)
        assert await until_written(transport) == b":1\r\n"

    run(scenario)


# Pipelines of which neighbours are answered together


def puts(row: str, count: int) -> bytes:
    return b"".join(encode("WCPUT", "d", row, 1, f"c{number}", "v") for number in range(count))


GET_KEPT = encode("WCGET", "d", "kept")


async def remembering(host: Host) -> tuple[Connection, Transport]:
    """A connection, and a row called kept whose reply, FOUND, is at hand."""
    host.engine.rows.limit_bytes = 1_000_000
    connection, transport = host.connect()
    connection.data_received(encode("WCPUT", "d", "kept", 1, "c", "v") + GET_KEPT)
    assert await until_written(transport) == b":1\r\n" + FOUND
    return connection, transport


def test_a_failed_commit_is_answered_to_every_write_of_a_pipeline_and_to_nothing_else() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = await remembering(host)
        other, other_transport = host.connect()
        host.database.failures, host.engine.rows.hits = 1, 0
        connection.data_received(
            encode("PING") + puts("r", 3) + GET_KEPT * 2 + puts("s", 70) + encode("ECHO", "a")
            + encode("WCPUT", "d", "r", "never", "c", "v") + puts("t", 2) + GET_KEPT
        )  # fmt: skip
        other.data_received(GET_KEPT * 2 + puts("u", 2))
        replies = await until_written(transport)
        assert host.engine.rows.hits == 5, "these were not the replies that were at hand"
        before, _, after = replies.partition(b"$1\r\na\r\n")
        assert before == b"+PONG\r\n" + IOERR * 3 + FOUND * 2 + IOERR * 70
        refusal, _, after = after.partition(b"\r\n")
        assert refusal.startswith(b"-ERR ")
        assert after == IOERR * 2 + FOUND
        assert await until_written(other_transport) == FOUND * 2 + IOERR * 2
        # Nothing of it is there, and what was at hand is read anew.
        host.engine.rows.hits = 0
        connection.data_received(encode("WCEXISTS", "d", "r", "s", "t", "u") + GET_KEPT)
        assert await until_written(transport) == b":0\r\n" + FOUND
        assert host.engine.rows.hits == 0

    run(scenario)


def test_a_pipeline_waits_out_a_stall_and_loses_nothing() -> None:
    async def scenario(host: Host) -> None:
        writer, transport = await remembering(host)
        late, late_transport = host.connect()
        reader, reader_transport = host.connect()
        host.database.stalls = 4
        writer.data_received(puts("r", 70) + GET_KEPT + encode("PING"))
        await eventually(lambda: host.database.stalls < 4)
        late.data_received(puts("s", 3) + GET_KEPT * 2 + puts("s", 5))
        reader.data_received(GET_KEPT * 3)
        while host.database.stalls:
            assert transport.written == late_transport.written == b"", "told of what waits"
            await asyncio.sleep(0)
        expected = b":1\r\n" * 70 + FOUND + b"+PONG\r\n"
        assert await until_written(transport, len(expected)) == expected
        expected = b":1\r\n" * 3 + FOUND * 2 + b":1\r\n" * 5
        assert await until_written(late_transport, len(expected)) == expected
        assert await until_written(reader_transport, 3 * len(FOUND)) == FOUND * 3
        for row, columns in (("r", 70), ("s", 5)):
            reader.data_received(encode("WCCOLS", "d", row, "COUNT", 100))
            names = await until_written(reader_transport)
            assert names.startswith(b"*2\r\n$1\r\n0\r\n*%d\r\n" % columns)

    run(scenario)


def test_readers_of_what_is_at_hand_do_not_wait_for_the_stall() -> None:
    async def scenario(host: Host) -> None:
        writer, transport = await remembering(host)
        reader, reader_transport = host.connect()
        host.database.stalls = 1_000
        writer.data_received(puts("r", 3))
        reader.data_received(GET_KEPT * 3)
        assert not reader.has_unsettled
        assert writer.has_unsettled
        assert await until_written(reader_transport) == FOUND * 3
        assert transport.written == b""
        host.database.stalls = 0
        assert await until_written(transport) == b":1\r\n" * 3

    run(scenario)


@pytest.mark.parametrize("call", [PUT, GET_KEPT], ids=["writes", "reads"])
def test_a_long_pipeline_does_not_keep_others_waiting(call: bytes) -> None:
    async def scenario(host: Host) -> None:
        connection, transport = await remembering(host)
        other, other_transport = host.connect()
        count, before = 10_000, host.execution_count()
        connection.data_received(call * count)
        assert 0 < host.execution_count() - before <= COMMANDS_PER_TURN
        other.data_received(encode("PING"))
        assert await until_written(other_transport) == b"+PONG\r\n"
        assert host.execution_count() - before < count // 10
        reply = b":1\r\n" if call == PUT else FOUND
        assert await until_written(transport, len(reply) * count) == reply * count
        assert host.execution_count() - before == count + 1

    run(scenario)


def test_a_turn_replies_no_more_than_its_share_of_bytes() -> None:
    async def scenario(host: Host) -> None:
        host.engine.rows.limit_bytes = 64_000_000
        connection, transport = host.connect()
        size, count = REPLY_BYTES_PER_TURN // 3, 20
        ask = encode("WCGET", "d", "r")
        connection.data_received(encode("WCPUT", "d", "r", 1, "c", "v" * size) + ask)
        reply = (await until_written(transport, size))[len(b":1\r\n") :]
        before = host.execution_count()
        connection.data_received(ask * count)
        assert 0 < host.execution_count() - before <= 5
        assert await until_written(transport, len(reply) * count) == reply * count

    run(scenario)


def test_a_sync_comes_before_the_replies_of_a_pipeline(on_thread: bool) -> None:
    async def scenario(host: Host) -> None:
        connection, transport = await remembering(host)
        always(host, on_thread=on_thread)
        host.database.failing_syncs, before = 1, host.database.syncs
        connection.data_received(puts("r", 3) + GET_KEPT + puts("s", 3))
        expected = IOERR * 3 + FOUND + IOERR * 3
        assert await until_written(transport, len(expected)) == expected
        assert host.database.syncs == before + 1
        connection.data_received(puts("r", 3) + GET_KEPT)
        assert await until_written(transport) == b":1\r\n" * 3 + FOUND
        assert host.database.syncs == before + 2

    run(scenario)
