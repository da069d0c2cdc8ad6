"""CLIENT and SHUTDOWN: ending, pausing, waking and silencing others, what is told of them, the end.

What single replies look like is compared with redis-server elsewhere (tests/compare).
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import hiredis
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.harness import MakeServer, ServerProcess, until
from tests.server.conftest import Connect
from tests.wire import MEGABYTE, Wire, encode

LONG_MS = 60_000
UNBLOCKED = "UNBLOCKED client unblocked via CLIENT UNBLOCK"


@pytest.fixture
def admin(other: Wire) -> Iterator[Wire]:
    """Nobody is paused any more when the test ends."""
    yield other
    other.call("CLIENT", "UNPAUSE")


def number_of(wire: Wire) -> int:
    identifier: int = wire.call("CLIENT", "ID")
    return identifier


def figures(admin: Wire, identifier: int) -> dict[str, str]:
    """A client's line of CLIENT LIST; empty when it is not there."""
    line: bytes = admin.call("CLIENT", "LIST", "ID", identifier)
    return dict(word.split("=", 1) for word in line.decode().split())


def names(admin: Wire) -> list[str]:
    lines: bytes = admin.call("CLIENT", "LIST")
    return [line.split(" name=")[1].split(" ")[0] for line in lines.decode().splitlines()]


def is_blocked(admin: Wire, identifier: int) -> bool:
    return "b" in figures(admin, identifier)["flags"]


def rows(wire: Wire, dataset: str, count: int = 10) -> int:
    """How many of the rows 0, 1, .. there are; 0 without the dataset."""
    found = wire.call("WCEXISTS", dataset, *range(count))
    if isinstance(found, hiredis.ReplyError):
        assert str(found).startswith("NODATASET")
        return 0
    assert isinstance(found, int)
    return found


def put(dataset: str, row: object) -> bytes:
    return encode("WCPUT", dataset, str(row), 1, "c", "v")


# Killing


def by_id(wire: Wire) -> list[object]:
    return ["ID", number_of(wire)]


def by_address(wire: Wire) -> list[object]:
    host, port = wire.socket.getsockname()
    return ["ADDR", f"{host}:{port}"]


def by_user(wire: Wire) -> list[object]:
    assert wire.call("AUTH", "fox", "any") == b"OK"
    return ["USER", "fox"]


def by_type(wire: Wire) -> list[object]:
    wire.send(encode("SUBSCRIBE", "a"))
    wire.read(1)
    return ["TYPE", "pubsub"]


def by_all(wire: Wire) -> list[object]:
    host, port = wire.socket.getpeername()
    words = [*by_address(wire), "LADDR", f"{host}:{port}", "SKIPME", "yes", *by_id(wire)]
    return [*words, *by_user(wire), *by_type(wire)]


@pytest.mark.parametrize("filter_of", [by_id, by_address, by_user, by_type, by_all])
def test_who_fits_is_gone_and_nobody_else(
    connect: Connect, admin: Wire, filter_of: Callable[[Wire], list[object]]
) -> None:
    admin.call("ACL", "SETUSER", "fox", "on", "nopass", "allcommands", "allchannels", "allkeys")
    victim, bystander = connect("victim"), connect("bystander")
    words = filter_of(victim)
    assert admin.call("CLIENT", "KILL", *map(str, words)) == 1
    assert victim.read_to_end() == b""
    until(lambda: "victim" not in names(admin))
    assert bystander.call("CLIENT", "GETNAME") == b"bystander"
    assert admin.call("CLIENT", "KILL", *map(str, words)) == 0
    admin.call("ACL", "DELUSER", "fox")


def test_filters_must_all_fit(connect: Connect, admin: Wire) -> None:
    first, second = connect(), connect()
    wrong = ["ID", str(number_of(first)), *map(str, by_address(second))]
    assert admin.call("CLIENT", "KILL", *wrong) == 0
    assert admin.call("CLIENT", "KILL", "ID", number_of(first), "TYPE", "pubsub") == 0
    assert (first.call("PING"), second.call("PING")) == (b"PONG", b"PONG")


@pytest.mark.parametrize("skip", ["yes", "no", ""])
def test_all_of_a_user_with_or_without_oneself(connect: Connect, admin: Wire, skip: str) -> None:
    admin.call("ACL", "SETUSER", "fox", "on", "nopass", "allcommands", "allchannels", "allkeys")
    foxes = [connect() for _ in range(3)]
    for fox in foxes:
        fox.call("AUTH", "fox", "any")
    killer, *others = foxes
    options = ["SKIPME", skip] if skip else []
    assert killer.call("CLIENT", "KILL", "USER", "fox", *options) == (3 if skip == "no" else 2)
    for other in others:
        assert other.read_to_end() == b""
    if skip == "no":
        assert killer.read_to_end() == b""
    else:
        assert killer.call("PING") == b"PONG"
    assert admin.call("PING") == b"PONG"
    admin.call("ACL", "DELUSER", "fox")


def test_who_kills_itself_in_a_pipeline_does_no_more(wire: Wire, admin: Wire, dataset: str) -> None:
    killing = encode("CLIENT", "KILL", "ID", number_of(wire), "SKIPME", "no")
    wire.send(put(dataset, 0), killing, put(dataset, 1), encode("PING"))
    assert wire.read(2) == [1, 1]
    assert wire.read_to_end() == b""
    assert rows(admin, dataset) == 1


def test_a_kill_in_the_midst_of_a_pipeline(connect: Connect, admin: Wire, dataset: str) -> None:
    """What was answered is there, and no answer is torn; others go on."""
    victim, calls = connect(), 20_000
    identifier = number_of(victim)
    data = b"".join(put(dataset, number) for number in range(calls))
    victim.socket.settimeout(0)
    sent = victim.socket.send(data)  # as much as fits; some of it waits in the server
    victim.socket.settimeout(20)
    until(lambda: rows(admin, dataset) == 10)
    assert admin.call("CLIENT", "KILL", "ID", identifier) == 1
    until(lambda: not figures(admin, identifier))
    answered = victim.read_to_end()
    count = len(answered) // 4
    assert answered == b":1\r\n" * count
    assert rows(admin, dataset, count) == count
    assert sent == len(data) or rows(admin, dataset, calls) < calls


def test_who_is_killed_is_gone_for_the_next_command(connect: Connect, admin: Wire) -> None:
    """Even in the same packet: it is not killed or listed again."""
    identifier = number_of(connect("victim"))
    killing = encode("CLIENT", "KILL", "ID", identifier)
    admin.send(killing, killing, encode("CLIENT", "LIST", "ID", identifier))
    assert admin.read(3) == [1, 0, b""]


def test_who_waits_is_killed_and_its_wait_forgotten(wire: Wire, admin: Wire) -> None:
    identifier = number_of(wire)
    wire.send(encode("WAIT", 1, 0), encode("ECHO", "never said"))
    until(lambda: is_blocked(admin, identifier))
    assert admin.call("CLIENT", "KILL", "ID", identifier) == 1
    assert wire.read_to_end() == b""
    until(lambda: b"blocked_clients:0\r\n" in admin.call("INFO", "clients"))
    assert admin.call("CLIENT", "UNBLOCK", identifier) == 0


# Pausing. What is sent while a pause holds it back is known to wait by the flag b


def test_a_pause_of_writes_holds_back_writes_alone(
    connect: Connect, admin: Wire, dataset: str
) -> None:
    writer, publisher, reader = connect(), connect(), connect()
    writer.call("WCPUT", dataset, "0", 1, "c", "v")
    assert admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE") == b"OK"
    identifiers = [number_of(writer), number_of(publisher)]
    writer.send(put(dataset, 1))
    publisher.send(encode("PUBLISH", "a", "x"))
    for identifier in identifiers:
        until(lambda: is_blocked(admin, identifier))  # noqa: B023 - called at once
    assert b"blocked_clients:2\r\n" in admin.call("INFO", "clients")
    assert rows(reader, dataset) == 1
    assert not (writer.has_something_to_read() or publisher.has_something_to_read())
    assert admin.call("CLIENT", "UNPAUSE") == b"OK"
    assert (writer.read(1), publisher.read(1)) == ([1], [0])
    assert rows(reader, dataset) == 2
    assert b"blocked_clients:0\r\n" in admin.call("INFO", "clients")


def test_a_pause_of_all_holds_back_reads_too_until_it_ends(
    connect: Connect, admin: Wire, dataset: str
) -> None:
    first, second = connect(), connect()
    begun = time.monotonic()
    assert admin.call("CLIENT", "PAUSE", 200, "ALL") == b"OK"
    admin.send(encode("PING"))
    first.send(encode("ECHO", "a"), put(dataset, 0), encode("ECHO", "b"))
    second.send(encode("ECHO", "c"))
    assert (first.read(3), second.read(1)) == ([b"a", 1, b"b"], [b"c"])
    assert admin.read(1) == [b"PONG"], "who paused all waits itself"
    assert time.monotonic() - begun >= 0.2


def test_a_pause_of_writes_ends_by_itself(wire: Wire, admin: Wire, dataset: str) -> None:
    begun = time.monotonic()
    admin.call("CLIENT", "PAUSE", 150, "WRITE")
    wire.send(encode("PING"), put(dataset, 0))
    assert wire.read(1) == [b"PONG"]
    assert time.monotonic() - begun < 0.15, "this machine is too slow for this test"
    assert wire.read(1) == [1]
    assert time.monotonic() - begun >= 0.15
    assert wire.call("WCPUT", dataset, "1", 1, "c", "v") == 1


def test_a_pause_in_force_is_never_made_shorter_or_narrower(
    wire: Wire, admin: Wire, dataset: str
) -> None:
    identifier = number_of(wire)
    admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE")
    assert admin.call("CLIENT", "PAUSE", 1, "WRITE") == b"OK"
    wire.send(put(dataset, 0))
    until(lambda: is_blocked(admin, identifier))
    assert admin.call("WAIT", 1, 50) == 0  # the server's own clock says that it would have ended
    assert is_blocked(admin, identifier), "the shorter one ended it"
    admin.call("CLIENT", "UNPAUSE")
    assert wire.read(1) == [1]


def test_a_pipeline_stops_at_the_first_write_and_keeps_its_order(
    wire: Wire, admin: Wire, dataset: str
) -> None:
    wire.call("WCDATASET", "CREATE", dataset)
    identifier = number_of(wire)
    admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE")
    exists = encode("WCEXISTS", dataset, "0", "1")
    wire.send(encode("ECHO", "a"), exists, put(dataset, 0), exists, encode("ECHO", "b"))
    assert wire.read(2) == [b"a", 0]
    until(lambda: is_blocked(admin, identifier))
    wire.send(put(dataset, 1), exists)
    assert not wire.has_something_to_read()
    admin.call("CLIENT", "UNPAUSE")
    assert wire.read(5) == [1, 1, b"b", 1, 2]


def test_a_long_pipeline_is_held_back_whole(wire: Wire, admin: Wire, dataset: str) -> None:
    """More than a turn, and more than the server takes on for a client that waits."""
    identifier, calls = number_of(wire), 5000
    admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE")
    wire.send(put(dataset, 0))
    until(lambda: is_blocked(admin, identifier))
    wire.send(*(encode("ECHO", f"{number}") for number in range(calls)))
    assert rows(admin, dataset) == 0
    admin.call("CLIENT", "UNPAUSE")
    assert wire.read(calls + 1) == [1, *(b"%d" % number for number in range(calls))]


def test_those_held_back_go_on_in_the_order_they_came(
    connect: Connect, admin: Wire, dataset: str
) -> None:
    writers = [connect() for _ in range(6)]
    identifiers = [number_of(writer) for writer in writers]
    order = [4, 1, 5, 0, 3, 2]
    admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE")
    for place in order:
        writers[place].send(encode("WCINCRBY", dataset, "r", "c", 1))
        until(lambda: is_blocked(admin, identifiers[place]))  # noqa: B023 - called at once
    admin.call("CLIENT", "UNPAUSE")
    assert [writers[place].read(1) for place in order] == [[1], [2], [3], [4], [5], [6]]


def test_a_transaction_that_writes_is_held_back_at_exec(
    connect: Connect, admin: Wire, dataset: str
) -> None:
    writer, reader = connect(), connect()
    admin.call("WCDATASET", "CREATE", dataset)
    for wire in (writer, reader):
        assert wire.call("MULTI") == b"OK"
        assert wire.call("WCEXISTS", dataset, "0") == b"QUEUED"
    assert writer.call("WCPUT", dataset, "0", 1, "c", "v") == b"QUEUED"
    identifier = number_in_list(admin, writer)
    admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE")
    writer.send(encode("EXEC"), encode("PING"))
    until(lambda: is_blocked(admin, identifier))
    assert reader.call("EXEC") == [0]
    assert rows(admin, dataset) == 0
    admin.call("CLIENT", "UNPAUSE")
    assert writer.read(2) == [[0, 1], b"PONG"]
    assert rows(admin, dataset) == 1


def number_in_list(admin: Wire, wire: Wire) -> int:
    """The number of a client that can no more be asked for it."""
    address = "addr={}:{} ".format(*wire.socket.getsockname())
    lines: bytes = admin.call("CLIENT", "LIST")
    (line,) = [line for line in lines.decode().splitlines() if address in line]
    return int(line.split(" ")[0].removeprefix("id="))


def test_a_watch_is_kept_over_a_pause(connect: Connect, admin: Wire, dataset: str) -> None:
    """A write that was held back too, and came before EXEC, makes it fail."""
    writer, watcher = connect(), connect()
    admin.call("WCDATASET", "CREATE", dataset)
    watcher.send(encode("WATCH", dataset), encode("MULTI"), put(dataset, 1))
    assert watcher.read(3) == [b"OK", b"OK", b"QUEUED"]
    numbers = [number_of(writer), number_in_list(admin, watcher)]
    admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE")
    for place, (wire, data) in enumerate([(writer, put(dataset, 0)), (watcher, encode("EXEC"))]):
        wire.send(data)
        until(lambda: is_blocked(admin, numbers[place]))  # noqa: B023 - called at once
    admin.call("CLIENT", "UNPAUSE")
    assert (writer.read(1), watcher.read(1)) == ([1], [None])


@pytest.mark.parametrize("end", ["close", "half", "cut", "kill"])
def test_what_one_wanted_who_left_in_a_pause_is_not_done(
    connect: Connect, admin: Wire, dataset: str, end: str
) -> None:
    """As in Redis, a client that waits is gone once it closes its side."""
    gone, stays = connect("gone"), connect()
    admin.call("WCDATASET", "CREATE", dataset)
    identifier = number_of(gone)
    admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE")
    gone.send(put(dataset, 0), put(dataset, 1))
    until(lambda: is_blocked(admin, identifier))
    if end == "close":
        gone.close()
    elif end == "half":
        gone.socket.shutdown(socket.SHUT_WR)
    elif end == "cut":
        gone.reset()
    else:
        assert admin.call("CLIENT", "KILL", "ID", identifier) == 1
    until(lambda: not figures(admin, identifier))
    assert b"blocked_clients:0\r\n" in admin.call("INFO", "clients")
    admin.call("CLIENT", "UNPAUSE")
    assert stays.call("WCPUT", dataset, "9", 1, "c", "v") == 1
    assert rows(admin, dataset) == 1


@pytest.mark.parametrize("calls", [0, 3000])
def test_nobody_waits_for_one_that_sends_no_more(wire: Wire, admin: Wire, calls: int) -> None:
    """Also when its end came before its pipeline was through to the command that waits."""
    identifier = number_of(wire)
    wire.send(*(encode("ECHO", f"{number}") for number in range(calls)), encode("WAIT", 1, 0))
    wire.socket.shutdown(socket.SHUT_WR)
    assert wire.read(calls) == [b"%d" % number for number in range(calls)]
    assert wire.read_to_end() == b""
    until(lambda: not figures(admin, identifier))
    assert b"blocked_clients:0\r\n" in admin.call("INFO", "clients")


def test_who_is_held_back_by_a_pause_is_not_unblocked(
    wire: Wire, admin: Wire, dataset: str
) -> None:
    identifier = number_of(wire)
    admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE")
    wire.send(put(dataset, 0))
    until(lambda: is_blocked(admin, identifier))
    assert admin.call("CLIENT", "UNBLOCK", identifier, "ERROR") == 0
    assert admin.call("CLIENT", "UNPAUSE") == b"OK"
    assert wire.read(1) == [1]


def test_a_paused_subscriber_still_hears(own: ServerProcess, connect: Connect) -> None:
    listener, publisher = connect(), connect()
    listener.send(encode("SUBSCRIBE", "a"))
    listener.read(1)
    lines = ["MULTI", "CLIENT PAUSE 100 ALL", "PUBLISH a x", "EXEC"]
    listener.send(encode("PING"))
    assert listener.read(1)[0] in (b"PONG", [b"pong", b""])
    publisher.send(*(encode(*line.split()) for line in lines))
    assert publisher.read(4)[-1] == [b"OK", 1]
    assert listener.read(1) == [[b"message", b"a", b"x"]]
    listener.send(encode("PING"))
    assert listener.read(1)[0] in (b"PONG", [b"pong", b""])


# Waking


@pytest.mark.parametrize(("reason", "ends"), [([], False), (["TIMEOUT"], False), (["error"], True)])
@pytest.mark.parametrize("waiting", ["WAIT 1 0", "WAIT 3 60000", "WAITAOF 0 1 0"])
def test_one_that_waits_is_woken(
    wire: Wire, admin: Wire, waiting: str, reason: list[str], ends: bool
) -> None:
    identifier = number_of(wire)
    wire.send(encode(*waiting.split()), encode("ECHO", "next"))
    until(lambda: is_blocked(admin, identifier))
    waking = encode("CLIENT", "UNBLOCK", identifier, *reason)
    admin.send(waking, waking)
    assert admin.read(2) == [1, 0], "once is enough"
    reply, following = wire.read(2)
    if ends:
        assert str(reply) == UNBLOCKED
    else:
        assert reply in (0, [0, 0], [1, 0])
    assert following == b"next"
    assert not is_blocked(admin, identifier)


def test_one_of_several_that_wait_is_woken(connect: Connect, admin: Wire) -> None:
    first, second = connect(), connect()
    numbers = [number_of(first), number_of(second)]
    for wire in (first, second):
        wire.send(encode("WAIT", 1, 0))
    until(lambda: all(is_blocked(admin, number) for number in numbers))
    assert admin.call("CLIENT", "UNBLOCK", numbers[1]) == 1
    assert second.read(1) == [0]
    assert is_blocked(admin, numbers[0])
    assert b"blocked_clients:1\r\n" in admin.call("INFO", "clients")
    assert not first.has_something_to_read()


# Silence


def test_writes_are_done_in_silence(wire: Wire, admin: Wire, dataset: str) -> None:
    wire.send(encode("CLIENT", "REPLY", "OFF"))
    wire.send(*(put(dataset, number) for number in range(1000)))
    wire.send(encode("NOSUCH"), encode("CLIENT", "ID"), encode("CLIENT", "REPLY", "ON"))
    wire.send(encode("WCEXISTS", dataset, *range(1000)))
    assert wire.read(2) == [b"OK", 1000]


def test_every_second_reply_is_skipped(wire: Wire) -> None:
    skip = encode("CLIENT", "REPLY", "SKIP")
    for number in range(500):
        wire.send(skip, encode("ECHO", "dropped"), encode("ECHO", str(number)))
    assert wire.read(500) == [b"%d" % number for number in range(500)]


def test_the_reply_of_one_that_waits_is_skipped(wire: Wire, admin: Wire) -> None:
    identifier = number_of(wire)
    wire.send(encode("CLIENT", "REPLY", "SKIP"), encode("WAIT", 1, 0), encode("ECHO", "next"))
    until(lambda: is_blocked(admin, identifier))
    assert admin.call("CLIENT", "UNBLOCK", identifier, "ERROR") == 1
    assert wire.read(1) == [b"next"]


def test_a_write_held_back_by_a_pause_stays_silent(wire: Wire, admin: Wire, dataset: str) -> None:
    identifier = number_of(wire)
    admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE")
    wire.send(encode("CLIENT", "REPLY", "SKIP"), put(dataset, 0), put(dataset, 1))
    until(lambda: is_blocked(admin, identifier))
    admin.call("CLIENT", "UNPAUSE")
    wire.send(encode("WCEXISTS", dataset, "0", "1"))
    assert wire.read(2) == [1, 2]


# What is told of them


def test_age_and_silence_grow(own: ServerProcess, admin: Wire) -> None:
    with Wire(own) as idle, Wire(own) as busy:
        numbers = [number_of(idle), number_of(busy)]
        until(lambda: busy.call("PING") == b"PONG" and figures(admin, numbers[0])["idle"] == "1")
        first, second = (figures(admin, number) for number in numbers)
    assert (first["age"], second["age"]) == ("1", "1")
    assert (first["cmd"], first["idle"]) == ("client|id", "1")
    assert (second["cmd"], second["idle"]) == ("ping", "0")


def test_half_a_command_is_counted_until_it_is_whole(wire: Wire, admin: Wire) -> None:
    identifier = number_of(wire)
    assert figures(admin, identifier)["qbuf"] == "0"
    data = encode("ECHO", "x" * 10_000)
    wire.send(data[:5000])
    until(lambda: int(figures(admin, identifier)["qbuf"]) >= 4900)
    assert int(figures(admin, identifier)["tot-mem"]) >= 4900
    wire.send(data[5000:])
    assert wire.read(1) == [b"x" * 10_000]
    assert figures(admin, identifier)["qbuf"] == "0"


def test_what_is_left_unread_is_counted(wire: Wire, admin: Wire) -> None:
    identifier = number_of(wire)
    wire.send(encode("ECHO", b"x" * (20 * MEGABYTE)))
    until(lambda: int(figures(admin, identifier)["omem"]) > MEGABYTE)
    wire.read(1)
    until(lambda: figures(admin, identifier)["omem"] == "0")


def test_subscriptions_transactions_and_users_are_told(connect: Connect, admin: Wire) -> None:
    admin.call("ACL", "SETUSER", "fox", "on", "nopass", "allcommands", "allchannels", "allkeys")
    listener, queueing = connect("ears"), connect()
    numbers = [number_of(listener), number_of(queueing)]
    listener.send(encode("SUBSCRIBE", "a", "b", "c"), encode("PSUBSCRIBE", "a*", "b*"))
    listener.send(encode("SSUBSCRIBE", "s"))
    listener.read(6)
    queueing.call("AUTH", "fox", "any")
    queueing.call("SELECT", 5)
    assert figures(admin, numbers[1])["multi"] == "-1"
    queueing.send(encode("MULTI"), encode("PING"), encode("ECHO", "x" * 500))
    queueing.read(3)
    ears, queue = (figures(admin, number) for number in numbers)
    assert [ears[name] for name in ("sub", "psub", "ssub", "flags")] == ["3", "2", "1", "P"]
    assert (ears["name"], ears["user"], ears["cmd"]) == ("ears", "default", "ssubscribe")
    assert [queue[name] for name in ("multi", "flags", "db", "user")] == ["2", "x", "5", "fox"]
    assert int(queue["multi-mem"]) >= 500
    listener.call("RESET")
    queueing.call("DISCARD")
    ears, queue = (figures(admin, number) for number in numbers)
    assert [ears[name] for name in ("sub", "psub", "ssub", "flags", "resp")] == [
        "0", "0", "0", "N", "2",
    ]  # fmt: skip
    assert (queue["multi"], queue["multi-mem"], queue["flags"]) == ("-1", "0", "N")
    queueing.call("AUTH", "default", "")
    admin.call("ACL", "DELUSER", "fox")


def test_no_evict_is_shown_until_it_is_taken_back(wire: Wire, admin: Wire) -> None:
    identifier = number_of(wire)
    shown = []
    for call in ("CLIENT NO-EVICT on", "CLIENT NO-EVICT off", "CLIENT NO-EVICT on", "RESET"):
        wire.call(*call.split())
        shown.append(figures(admin, identifier)["flags"])
    assert shown == ["e", "N", "e", "N"]


def test_the_library_is_told_and_outlives_reset(wire: Wire, admin: Wire) -> None:
    identifier = number_of(wire)
    assert wire.call("CLIENT", "SETINFO", "lib-name", "fox(1.2)") == b"OK"
    assert wire.call("CLIENT", "SETINFO", "LIB-VER", "7") == b"OK"
    assert isinstance(wire.call("CLIENT", "SETINFO", "LIB-VER", "a b"), hiredis.ReplyError)
    wire.call("RESET")
    found = figures(admin, identifier)
    assert (found["lib-name"], found["lib-ver"]) == ("fox(1.2)", "7")


def test_a_stock_client_tells_its_library(own: ServerProcess, protocol: int) -> None:
    with own.client(protocol=protocol, client_name="stock") as client:
        (found,) = [each for each in client.client_list() if each["name"] == "stock"]
        assert (found["lib-name"], found["lib-ver"]) == ("redis-py", redis.__version__)
        assert client.client_info()["id"] == client.client_id()
        assert client.client_kill_filter(_id=client.client_id(), skipme=True) == 0


# The end


@pytest.mark.parametrize("words", ["", "NOSAVE", "SAVE", "NOW", "now force nosave"])
def test_shutdown_keeps_what_was_written(make_server: MakeServer, words: str) -> None:
    """And what stands before it in the packet is answered, what stands behind it not done."""
    server = make_server()
    with Wire(server) as wire, Wire(server) as waiting, Wire(server) as idle:
        identifier = number_of(waiting)
        assert idle.call("PING") == b"PONG"
        waiting.send(encode("WAIT", 1, 0), put("d", 5))
        until(lambda: is_blocked(wire, identifier))
        wire.send(put("d", 0), put("d", 1), encode("SHUTDOWN", *words.split()), put("d", 2))
        assert wire.read_to_end() == b":1\r\n:1\r\n"
        assert waiting.read_to_end() in (b"", b"-" + UNBLOCKED.encode() + b"\r\n")
        assert idle.read_to_end() == b""
    assert server.process is not None
    assert server.process.wait(timeout=20) == 0
    assert "Traceback" not in server.log
    with Wire(server.start()) as wire:
        assert rows(wire, "d") == 2


def test_a_refused_shutdown_ends_nothing(wire: Wire, admin: Wire) -> None:
    for words in ("NOSAVE SAVE", "NOSUCH", "ABORT", "ABORT NOW"):
        assert isinstance(admin.call("SHUTDOWN", *words.split()), hiredis.ReplyError)
    assert (wire.call("PING"), admin.call("PING")) == (b"PONG", b"PONG")


def test_shutdown_in_a_pause_does_not_do_what_was_held_back(make_server: MakeServer) -> None:
    server = make_server()
    with Wire(server) as writer, Wire(server) as admin:
        identifier = number_of(writer)
        assert writer.call("WCPUT", "d", "0", 1, "c", "v") == 1
        admin.call("CLIENT", "PAUSE", LONG_MS, "WRITE")
        writer.send(put("d", 1))
        until(lambda: is_blocked(admin, identifier))
        admin.send(encode("SHUTDOWN"))
        assert admin.read_to_end() == writer.read_to_end() == b""
    assert server.process is not None
    assert server.process.wait(timeout=20) == 0
    with Wire(server.start()) as wire:
        assert rows(wire, "d") == 1, "a pause does not outlive the server either"
        assert wire.call("WCPUT", "d", "2", 1, "c", "v") == 1


def test_a_stock_client_ends_the_server(make_server: MakeServer) -> None:
    server = make_server()
    with server.client(retry=Retry(NoBackoff(), 0)) as client:
        client.shutdown(save=True, now=True)
    assert server.process is not None
    assert server.process.wait(timeout=20) == 0


# One too many


def test_a_place_is_free_once_somebody_is_killed(make_server: MakeServer) -> None:
    server = make_server(maxclients=3)
    with Wire(server) as admin, Wire(server) as first, Wire(server) as second:
        numbers = [number_of(each) for each in (first, second)]
        with Wire(server) as refused:
            assert refused.read_to_end() == b"-ERR max number of clients reached\r\n"
        assert b"rejected_connections:1\r\n" in admin.call("INFO", "stats")
        assert admin.call("CLIENT", "KILL", "ID", numbers[0]) == 1
        until(lambda: not figures(admin, numbers[0]))
        with Wire(server) as third:
            assert third.call("PING") == b"PONG"
        assert second.call("PING") == b"PONG"
