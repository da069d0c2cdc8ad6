"""What a client may cost: replies it leaves unread, silence, too long a command, its place.

Whoever is over a limit is cut off; the others do not notice.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands.access.user import User
from commands.client import Client
from resp_server.idle import is_idle
from resp_server.output_limit import OutputWatch, limit_of
from resp_server.settings import OutputLimit, OutputLimits, Settings
from tests.harness import MakeServer, ServerProcess, until
from tests.wire import MEGABYTE, MEMORY_LIMIT, Wire, encode, resident_bytes

KINDS = ["channels", "patterns", "shard_channels"]


def new_client(**state: Any) -> Client:
    user = User(b"default", [], enabled=True, without_password=True)
    client = Client(1, "127.0.0.1:1", "127.0.0.1:2", user, authenticated=True)
    for attribute, value in state.items():
        setattr(client, attribute, value)
    return client


def cut_off(wire: Wire) -> bool:
    """Once the server has ended the connection, whatever it had sent before."""
    with contextlib.suppress(ConnectionError):
        wire.read_to_end()
    return True


# Output buffers


@pytest.mark.parametrize(
    ("limit", "buffered", "over"),
    [
        (OutputLimit(0, 0, 0), [0, 10**12], [False, False]),
        (OutputLimit(100, 0, 0), [99, 100, 101], [False, True, True]),
        (OutputLimit(100, 0, 0), [100, 99], [True, False]),
        # The soft limit: one reading a second
        (OutputLimit(0, 50, 2), [50, 50, 50, 50], [False, False, False, True]),
        (OutputLimit(0, 50, 2), [49, 49, 49, 49], [False, False, False, False]),
        (OutputLimit(0, 50, 2), [50, 50, 49, 50, 50, 50, 50], [*[False] * 6, True]),
        (OutputLimit(0, 50, 0), [50, 50], [False, True]),
        (OutputLimit(100, 50, 9), [50, 100], [False, True]),
        (OutputLimit(0, 0, 5), [10**9] * 9, [False] * 9),
    ],
)
def test_when_a_client_leaves_too_much_unread(
    limit: OutputLimit, buffered: list[int], over: list[bool]
) -> None:
    watch = OutputWatch()
    found = [watch.exceeded(limit, count, 1000.0 + now) for now, count in enumerate(buffered)]
    assert found == over


def test_a_limit_that_is_switched_off_and_on_begins_anew() -> None:
    watch, soft, none = OutputWatch(), OutputLimit(0, 50, 2), OutputLimit(0, 0, 0)
    limits = [soft, none, soft, soft, soft]
    assert not any([watch.exceeded(limit, 60, 10.0 + now) for now, limit in enumerate(limits)])
    assert watch.exceeded(soft, 60, 15.0)


@pytest.mark.parametrize("kind", KINDS)
def test_listeners_have_a_limit_of_their_own(kind: str) -> None:
    normal, pubsub = OutputLimit(1, 1, 1), OutputLimit(2, 2, 2)
    limits = OutputLimits(normal=normal, replica=normal, pubsub=pubsub)
    client = new_client()
    assert limit_of(client, limits) == normal
    getattr(client.subscriptions, kind)[b"news"] = None
    assert limit_of(client, limits) == pubsub
    assert limit_of(new_client(monitoring=True), limits) == pubsub


def test_the_default_limits_are_those_of_redis() -> None:
    assert Settings().client_output_buffer_limit == OutputLimits(
        normal=OutputLimit(0, 0, 0),
        replica=OutputLimit(256 * MEGABYTE, 64 * MEGABYTE, 60),
        pubsub=OutputLimit(32 * MEGABYTE, 8 * MEGABYTE, 60),
    )


def clients_of(wire: Wire) -> int:
    """How many there are, by INFO."""
    found: bytes = wire.call("INFO", "clients")
    return int(found.partition(b"connected_clients:")[2].split()[0])


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that cuts subscribers off at two megabytes."""
    running = ServerProcess(
        tmp_path_factory.mktemp("limited") / "data", client_output_buffer_limit="pubsub 2mb 0 0"
    )
    yield running.start()
    running.close()


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("subscribe", ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"])
def test_a_subscriber_that_never_reads_is_cut_off(
    limited: ServerProcess, protocol: int, subscribe: str
) -> None:
    server = limited
    publish = "SPUBLISH" if subscribe == "SSUBSCRIBE" else "PUBLISH"
    with Wire(server) as silent, Wire(server) as attentive, Wire(server) as publisher:
        for wire in (silent, attentive):
            wire.call("HELLO", protocol)
            wire.send(encode(subscribe, "news"))
            wire.read(1)
        sent = 0
        message = "x" * 100_000
        while (heard := publisher.call(publish, "news", message)) == 2:
            sent += 1
            attentive.read(1)
            assert sent < 500, "nobody was cut off"
        attentive.read(heard)
        assert cut_off(silent)
        assert attentive.call("PING") in (b"PONG", [b"pong", b""])
        until(lambda: clients_of(publisher) == 2)
        assert resident_bytes(server) < MEMORY_LIMIT
    assert "Traceback" not in server.log


def test_a_subscriber_over_the_soft_limit_has_its_seconds(make_server: MakeServer) -> None:
    server = make_server(client_output_buffer_limit="pubsub 0 1mb 1")
    with Wire(server) as silent, Wire(server) as publisher:
        silent.call("SUBSCRIBE", "news")
        begun = time.monotonic()
        for _ in range(150):
            assert publisher.call("PUBLISH", "news", "x" * 100_000) == 1, "cut off too early"
        assert time.monotonic() - begun < 1, "this machine is too slow for this test"
        until(lambda: clients_of(publisher) == 1)
        assert time.monotonic() - begun > 1


def test_a_subscriber_that_reads_in_time_stays(make_server: MakeServer) -> None:
    server = make_server(client_output_buffer_limit="pubsub 0 1mb 1")
    with Wire(server) as slow, Wire(server) as publisher:
        slow.call("SUBSCRIBE", "news")
        for _ in range(100):
            publisher.call("PUBLISH", "news", "x" * 100_000)
        assert len(slow.read(100)) == 100
        assert publisher.call("WAIT", 1, 2500) == 0  # longer than the limit by the server's clock
        assert clients_of(publisher) == 2


def test_a_reply_over_the_limit_of_normal_clients(make_server: MakeServer) -> None:
    server = make_server(client_output_buffer_limit="normal 4mb 0 0")
    with Wire(server) as greedy, Wire(server) as other:
        value = b"x" * (40 * MEGABYTE)
        greedy.send(encode("ECHO", value))
        assert cut_off(greedy)
        assert other.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0") == b"OK"
        assert other.call("ECHO", value) == value


def test_a_monitor_that_never_reads_is_cut_off(limited: ServerProcess) -> None:
    """Other than in Redis, where it is limited by nothing."""
    server = limited
    with Wire(server) as silent, Wire(server) as other:
        assert silent.call("MONITOR") == b"OK"
        for _ in range(300):
            assert other.call("ECHO", "x" * 100_000)
        assert cut_off(silent)
        assert clients_of(other) == 1


# Silence


@pytest.mark.parametrize(
    ("timeout", "silence", "state", "idle"),
    [
        (10, 10.5, {}, True),
        (10, 10, {}, False),
        (10, 0, {}, False),
        (0, 10**9, {}, False),
        (10, 11, {"blocked": True}, False),
        (10, 11, {"monitoring": True}, False),
        (10, 11, {"name": b"somebody", "database": 3}, True),
    ],
)
def test_who_is_idle(timeout: int, silence: float, state: dict[str, Any], idle: bool) -> None:
    client = new_client(**state, last_active=1000.0)
    assert is_idle(client, timeout, 1000.0 + silence) == idle


@pytest.mark.parametrize("kind", KINDS)
def test_who_listens_is_never_idle(kind: str) -> None:
    client = new_client(last_active=0.0)
    getattr(client.subscriptions, kind)[b"news"] = None
    assert not is_idle(client, 1, 100.0)


def test_idle_clients_are_cut_off(make_server: MakeServer) -> None:
    server = make_server(timeout=1)
    with (
        Wire(server) as idle,
        Wire(server) as busy,
        Wire(server) as listening,
        Wire(server) as monitoring,
        Wire(server) as silent,
    ):
        assert idle.call("PING") == b"PONG"
        listening.call("SUBSCRIBE", "news")
        assert monitoring.call("MONITOR") == b"OK"
        begun = time.monotonic()
        until(lambda: busy.call("PING") == b"PONG" and clients_of(busy) == 3)
        assert 1 < time.monotonic() - begun < 5
        assert cut_off(idle)
        assert cut_off(silent), "who never said anything is idle too"
        assert busy.call("PUBLISH", "news", "still there") == 1
        listening.send(encode("PING"))
        assert len(listening.read(2)) == 2
    assert "Traceback" not in server.log


def test_the_timeout_can_be_set_while_it_runs(make_server: MakeServer) -> None:
    server = make_server()
    with Wire(server) as idle, Wire(server) as busy:
        assert idle.call("PING") == b"PONG"
        assert busy.call("CONFIG", "SET", "timeout", 1) == b"OK"
        until(lambda: clients_of(busy) == 1)
        assert cut_off(idle)


# Commands that are too long


@pytest.mark.parametrize(
    "begin",
    [
        b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % (2 * MEGABYTE),
        b"*100\r\n" + b"$60000\r\n%b\r\n" % (b"x" * 60_000) * 17,
        b"",
    ],
    ids=["one argument", "many arguments", "a line"],
)
def test_a_command_over_the_limit_is_cut_off_while_it_comes(
    make_server: MakeServer, begin: bytes
) -> None:
    server = make_server(client_query_buffer_limit=MEGABYTE)
    with Wire(server) as endless, Wire(server) as other:
        sent = 0
        with pytest.raises(ConnectionError):
            endless.send(begin)
            while sent < 200 * MEGABYTE:
                endless.send(b"x" * 65_536)
                sent += 65_536
        assert other.call("ECHO", "x" * 900_000) == b"x" * 900_000
        assert resident_bytes(server) < MEMORY_LIMIT
    assert "Traceback" not in server.log


# One client too many


def test_maxclients_can_be_set_while_it_runs(make_server: MakeServer) -> None:
    server = make_server()
    with Wire(server) as first, Wire(server) as second:
        assert first.call("CONFIG", "SET", "maxclients", 2) == b"OK"
        with Wire(server) as refused:
            assert refused.read_to_end() == b"-ERR max number of clients reached\r\n"
        assert second.call("PING") == b"PONG"
        assert first.call("CONFIG", "SET", "maxclients", 3) == b"OK"
        with Wire(server) as third:
            assert third.call("PING") == b"PONG"


def test_those_who_come_by_the_unix_socket_are_counted_too(
    make_server: MakeServer, tmp_path: Path
) -> None:
    server = make_server(maxclients=1, unixsocket=tmp_path / "s")
    with Wire(server) as first, socket.socket(socket.AF_UNIX) as second:
        assert first.call("PING") == b"PONG"
        second.connect(str(tmp_path / "s"))
        assert second.recv(100) == b"-ERR max number of clients reached\r\n"
