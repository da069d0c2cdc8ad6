"""MONITOR: who looks on sees what others do, in order and whole, but no secrets.

What single lines look like is compared with redis-server elsewhere (tests/compare).
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hiredis
import pytest

from tests.harness import MakeServer, ServerProcess, until
from tests.server.conftest import Connect
from tests.wire import Wire, Word, encode

END = "end of what is shown"
LINE = re.compile(rb"(\d+\.\d{6}) \[(\d+) (\S+)\] (.+)", re.DOTALL)
SECRET = "hole-in-the-wall"


@pytest.fixture(scope="module")
def own_directives() -> dict[str, object]:
    return {"client_output_buffer_limit": "pubsub 1mb 0 0"}


@pytest.fixture
def look_on(connect: Connect) -> Callable[[], Wire]:
    """Makes monitors."""

    def make() -> Wire:
        wire = connect()
        assert wire.call("MONITOR") == b"OK"
        return wire

    return make


@pytest.fixture
def monitor(other: Wire, look_on: Callable[[], Wire]) -> Wire:
    """One that looks on; the other was there before it."""
    return look_on()


def address_of(wire: Wire) -> bytes:
    return "{}:{}".format(*wire.socket.getsockname()).encode()


def lines(monitor: Wire, speaker: Wire) -> list[tuple[bytes, ...]]:
    """Time, database, address and words of what a monitor was shown by now."""
    assert speaker.call("ECHO", END) == END.encode()
    found: list[tuple[bytes, ...]] = []
    while END.encode() not in (line := monitor.read(1)[0]):
        match = LINE.fullmatch(line)
        assert match, line
        found.append(match.groups())
    return found


def shown(monitor: Wire, speaker: Wire) -> list[bytes]:
    """The words alone."""
    return [words for *_, words in lines(monitor, speaker)]


def flags_of(wire: Wire, identifier: int) -> bytes:
    line: bytes = wire.call("CLIENT", "LIST", "ID", identifier)
    return line.partition(b" flags=")[2].split(b" ")[0]


# What is shown


def test_all_of_several_clients_are_shown_in_order(
    own: ServerProcess, monitor: Wire, other: Wire
) -> None:
    """Each under its address and database, with the time; writes show in the order they came."""
    calls, before = 300, time.time()
    with Wire(own) as second, Wire(own) as third:
        clients = [other, second, third]
        for database, client in enumerate(clients):
            assert client.call("SELECT", database) == b"OK"

        def write(place: int) -> list[int]:
            data = b"".join(encode("WCINCRBY", "d", "r", "c", 1) for _ in range(calls))
            return clients[place].exchange(data, calls)

        with ThreadPoolExecutor(len(clients)) as pool:
            counts = list(pool.map(write, range(len(clients))))
        found = lines(monitor, other)[len(clients) :]
        addresses = [address_of(client) for client in clients]
    after = time.time()
    assert {words for *_, words in found} == {b'"WCINCRBY" "d" "r" "c" "1"'}
    times = [float(moment) for moment, *_ in found]
    assert times == sorted(times)
    assert before - 0.001 <= times[0] <= times[-1] <= after
    # The replies tell in which order they were run.
    start = min(min(replies) for replies in counts)
    by_reply = {reply: place for place, replies in enumerate(counts) for reply in replies}
    expected = [by_reply[start + number] for number in range(3 * calls)]
    assert [addresses.index(address) for _, _, address, _ in found] == expected
    assert [int(database) for _, database, _, _ in found] == expected


def test_a_pipeline_is_shown_whole(monitor: Wire, other: Wire) -> None:
    calls = 3000
    data = b"".join(encode("ECHO", f"{number}") for number in range(calls))
    assert len(other.exchange(data, calls)) == calls
    assert shown(monitor, other) == [b'"ECHO" "%d"' % number for number in range(calls)]


def test_the_commands_of_a_transaction_are_shown_as_it_runs(
    own: ServerProcess, monitor: Wire, other: Wire
) -> None:
    """With nobody's in between; what was discarded was never run."""
    queued = [f"WCPUT d r{number} 1 c v" for number in range(5)]
    other.send(*(encode(*line.split()) for line in ["MULTI", *queued]))
    other.read(6)
    with Wire(own) as second:
        assert second.call("ECHO", "in the meantime") == b"in the meantime"
    assert other.call("EXEC") == [1] * 5
    other.send(encode("MULTI"), encode("WCDEL", "d", "r1"), encode("DISCARD"))
    other.read(3)
    within = [b'"WCPUT" "d" "r%d" "1" "c" "v"' % number for number in range(5)]
    assert shown(monitor, other) == [
        b'"MULTI"', b'"ECHO" "in the meantime"', *within, b'"EXEC"', b'"MULTI"', b'"DISCARD"',
    ]  # fmt: skip


def test_one_that_waits_is_shown_when_it_is_done(
    own: ServerProcess, monitor: Wire, other: Wire
) -> None:
    with Wire(own) as waiting:
        identifier = waiting.call("CLIENT", "ID")
        waiting.send(encode("WAIT", 1, 0))
        until(lambda: flags_of(other, identifier) == b"b")
        assert other.call("CLIENT", "UNBLOCK", identifier) == 1
        assert waiting.read(1) == [0]
        assert shown(monitor, other) == [b'"CLIENT" "ID"', b'"WAIT" "1" "0"']


def test_what_a_pause_holds_back_is_shown_once_when_it_is_done(
    own: ServerProcess, monitor: Wire, other: Wire
) -> None:
    with Wire(own) as writer:
        identifier = writer.call("CLIENT", "ID")
        other.call("CLIENT", "PAUSE", 60_000, "WRITE")
        writer.send(encode("WCPUT", "d", "paused", 1, "c", "v"))
        until(lambda: flags_of(other, identifier) == b"b")
        assert shown(monitor, other) == [b'"CLIENT" "ID"']
        other.call("CLIENT", "UNPAUSE")
        assert writer.read(1) == [1]
    assert shown(monitor, other) == [b'"WCPUT" "d" "paused" "1" "c" "v"']


@pytest.mark.parametrize(
    "call",
    ["NOSUCH x", "WCPUT d", "CLIENT NOSUCH", "CLIENT LIST", "CONFIG GET *", "ACL LIST"],
)
def test_what_is_refused_or_administers_is_not_shown(monitor: Wire, other: Wire, call: str) -> None:
    other.call(*call.split())
    assert shown(monitor, other) == []


def test_what_fails_is_shown(monitor: Wire, other: Wire) -> None:
    assert isinstance(other.call("WCGET", "nosuchdataset", "r"), hiredis.ReplyError)
    assert shown(monitor, other) == [b'"WCGET" "nosuchdataset" "r"']


def test_what_a_user_may_not_do_is_not_shown(
    own: ServerProcess, monitor: Wire, other: Wire
) -> None:
    other.call("ACL", "SETUSER", "fox", "on", "nopass", "~seen", "+@all", "-echo")
    with Wire(own) as fox:
        fox.call("AUTH", "fox", "any")
        for call in ("ECHO a", "WCGET hidden r", "PING"):
            fox.call(*call.split())
    other.call("ACL", "DELUSER", "fox")
    assert shown(monitor, other)[1:] == [b'"PING"']


# Any bytes


def quoted_by_redis(word: bytes) -> bytes:
    """A word as Redis quotes it, by its own description."""
    named = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}
    pieces = [
        named.get(byte) or (bytes([byte]) if 32 <= byte < 127 else b"\\x%02x" % byte)
        for byte in word
    ]
    return b'"%b"' % b"".join(pieces)


@pytest.mark.parametrize(
    "word", [bytes(range(256)), b"", b" ", b"\r\n+OK\r\n", "ä€𝄞".encode(), b"x" * 100_000]
)
def test_any_bytes_are_shown_in_one_line(monitor: Wire, other: Wire, word: bytes) -> None:
    assert other.call("ECHO", word) == word
    other.send(encode("WCPUT", "d", word[:500], 1, word[:500], word))
    assert other.read(1) == [1]
    name, whole = quoted_by_redis(word[:500]), quoted_by_redis(word)
    expected = [b'"ECHO" ' + whole, b'"WCPUT" "d" %b "1" %b %b' % (name, name, whole)]
    assert shown(monitor, other) == expected


def test_the_unix_socket_is_shown_by_its_path(make_server: MakeServer, tmp_path: Path) -> None:
    path = tmp_path / "s"
    server = make_server(unixsocket=path)
    with Wire(server) as monitor, socket.socket(socket.AF_UNIX) as client:
        assert monitor.call("MONITOR") == b"OK"
        client.connect(str(path))
        client.sendall(encode("PING"))
        assert client.recv(100) == b"+PONG\r\n"
        assert monitor.read(1)[0].endswith(b'[0 unix:%b] "PING"' % str(path).encode())


# Secrets

SECRETIVE: list[tuple[Word, ...]] = [
    ("AUTH", SECRET),
    ("AUTH", "default", SECRET),
    ("AUTH", "nobody", SECRET),
    ("auth", SECRET, SECRET),
    ("HELLO", 2, "AUTH", "default", SECRET),
    ("hello", 3, "setname", "auth", "auth", "nobody", SECRET),
    ("HELLO", 2, "SETNAME", "x", "AUTH", "default", SECRET),
    ("ACL", "SETUSER", "fox", f">{SECRET}"),
    ("acl", "setuser", "fox", f"<{SECRET}"),
    ("CONFIG", "SET", "requirepass", SECRET),
    ("config", "set", "maxclients", 1000, "REQUIREPASS", SECRET),
    ("CONFIG", "SET", "requirepass", ""),
    ("ACL", "DRYRUN", "default", "auth", SECRET),
    ("ACL", "DELUSER", "fox"),
]


@pytest.mark.parametrize("in_transaction", [False, True], ids=["alone", "in a transaction"])
def test_no_secret_is_shown(monitor: Wire, other: Wire, in_transaction: bool) -> None:
    if in_transaction:
        other.call("MULTI")
    for words in SECRETIVE:
        other.call(*words)
    if in_transaction:
        assert len(other.call("EXEC")) == len(SECRETIVE)
    assert other.call("AUTH", "default", "any") == b"OK"
    found = shown(monitor, other)
    assert not any(SECRET.encode() in line for line in found)
    assert sum(b'"(redacted)"' in line for line in found) >= 4, "that they were said is shown"
    assert not any(line.lower().startswith((b'"config"', b'"acl"')) for line in found)


def test_who_logs_in_with_a_password_is_shown_without_it(make_server: MakeServer) -> None:
    server = make_server(requirepass=SECRET)
    with Wire(server) as monitor, server.client(password=SECRET, username="default") as client:
        assert monitor.call("AUTH", SECRET) == b"OK"
        assert monitor.call("MONITOR") == b"OK"
        assert client.ping() is True
        data = b""
        while b'"PING"' not in data:
            data += monitor.read(1)[0] + b"\n"
        assert b"(redacted)" in data
        assert SECRET.encode() not in data
        with Wire(server) as stranger:
            for words in (("AUTH", "wrong"), ("PING",), ("MONITOR",), ("AUTH", SECRET)):
                stranger.call(*words)
            stranger.call("ECHO", END)
        while END.encode() not in (line := monitor.read(1)[0]):
            assert SECRET.encode() not in line
            assert b"wrong" not in line
            assert b"MONITOR" not in line


def test_who_may_not_administer_may_not_look_on(own: ServerProcess, other: Wire) -> None:
    other.call("ACL", "SETUSER", "fox", "on", "nopass", "+@all", "-@admin")
    with Wire(own) as fox:
        fox.call("AUTH", "fox", "any")
        assert str(fox.call("MONITOR")).startswith("NOPERM")
        assert other.call("PING") == b"PONG"
        assert fox.call("ECHO", "next") == b"next"
    other.call("ACL", "DELUSER", "fox")


# Several, and their end


def test_several_monitors_see_the_same(look_on: Callable[[], Wire], other: Wire) -> None:
    monitors = [look_on() for _ in range(5)]
    for monitor in monitors[:-1]:  # each saw those that came after it say HELLO
        monitor.read(len(monitors) - 1 - monitors.index(monitor))
    for number in range(100):
        other.call("WCPUT", "d", number, 1, "c", "v")
    other.call("ECHO", END)
    stories = [monitor.read(101) for monitor in monitors]
    assert stories == [stories[0]] * 5
    assert stories[0][0].endswith(b'"WCPUT" "d" "0" "1" "c" "v"')


@pytest.mark.parametrize("end", ["RESET", "QUIT", "close", "cut", "kill"])
def test_a_monitor_ends_and_others_go_on(
    look_on: Callable[[], Wire], own: ServerProcess, other: Wire, end: str
) -> None:
    with Wire(own) as ending:
        identifier = ending.call("CLIENT", "ID")
        assert ending.call("MONITOR") == b"OK"
        stays = look_on()
        ending.read(1)
        assert flags_of(other, identifier) == b"O"
        if end == "RESET":
            ending.send(encode("RESET"))
            assert ending.read_until(b"+RESET\r\n").endswith(b"+RESET\r\n")
        elif end == "QUIT":
            ending.send(encode("QUIT"))
            assert ending.read_to_end() == b"+OK\r\n"
        elif end == "close":
            ending.close()
        elif end == "cut":
            ending.reset()
        else:
            assert other.call("CLIENT", "KILL", "ID", identifier) == 1
            assert ending.read_to_end() == b""
        until(lambda: flags_of(other, identifier) == (b"N" if end == "RESET" else b""))
        shown(stays, other)
        for number in range(10):
            other.call("ECHO", f"{number}")
        assert shown(stays, other) == [b'"ECHO" "%d"' % number for number in range(10)]


def test_after_reset_one_may_look_on_again(own: ServerProcess, monitor: Wire, other: Wire) -> None:
    other.call("PING")
    assert monitor.read(1)[0].endswith(b'"PING"')
    monitor.send(encode("RESET"))
    replies = monitor.read_until(b"+RESET\r\n")
    assert replies.endswith(b"+RESET\r\n")
    other.call("ECHO", "not seen")
    assert monitor.call("ECHO", "an ordinary client") == b"an ordinary client"
    assert monitor.call("MONITOR") == b"OK"
    other.call("ECHO", "seen again")
    assert monitor.read(1)[0].endswith(b'"ECHO" "seen again"')


def test_a_monitor_gets_its_own_replies_too(monitor: Wire, other: Wire) -> None:
    monitor.send(encode("ECHO", "a"))
    other.call("ECHO", "b")
    monitor.send(encode("ECHO", "c"))
    found = monitor.read(5)
    assert sorted(reply for reply in found if len(reply) == 1) == [b"a", b"c"]
    told = [reply[-3:] for reply in found if len(reply) > 1]
    assert sorted(told) == [b'"a"', b'"b"', b'"c"']


def test_a_silenced_monitor_is_shown_nothing(own: ServerProcess, other: Wire) -> None:
    with Wire(own) as monitor:
        identifier = monitor.call("CLIENT", "ID")
        monitor.send(encode("CLIENT", "REPLY", "OFF"), encode("MONITOR"))
        until(lambda: flags_of(other, identifier) == b"O")
        assert other.call("ECHO", "not seen") == b"not seen"
        monitor.send(encode("RESET"))
        assert monitor.read_until(b"RESET\r\n") == b"+RESET\r\n"


# One that does not read


def test_a_slow_monitor_is_cut_off_and_others_do_not_notice(
    look_on: Callable[[], Wire], own: ServerProcess, other: Wire
) -> None:
    attentive = look_on()
    value = b"x" * 100_000
    with Wire(own) as silent:
        identifier = silent.call("CLIENT", "ID")
        assert silent.call("MONITOR") == b"OK"
        shown(attentive, other)
        said = 0
        while flags_of(other, identifier):
            other.send(*(encode("WCPUT", "slow", said + step, 1, "c", value) for step in range(5)))
            assert other.read(5) == [1] * 5
            for step in range(5):
                assert b'"WCPUT" "slow" "%d" "1" "c" "xxx' % (said + step) in attentive.read(1)[0]
            said += 5
            assert said < 600, "it was not cut off"
    assert shown(attentive, other) == []
    assert "Traceback" not in own.log
