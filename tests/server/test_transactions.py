"""MULTI, EXEC, WATCH: one step for those who look on, for a crash and for the log.

What single replies look like is compared with redis-server elsewhere (tests/compare).
"""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Any

import hiredis
import pytest

from tests.harness import MakeServer, ServerProcess, until
from tests.server.test_tick import IOERR, Host, run, until_written
from tests.wire import Wire, encode

QUEUED = b"QUEUED"
QUEUED_COMMANDS = 10_000


def pipeline(wire: Wire, *lines: str) -> list[Any]:
    """Send commands in one packet; a reply each."""
    wire.send(*(encode(*line.split(" ")) for line in lines))
    return wire.read(len(lines))


def transact(wire: Wire, *lines: str) -> Any:
    """What EXEC replies when all of these are queued."""
    begun, *queued, result = pipeline(wire, "MULTI", *lines, "EXEC")
    assert begun == b"OK"
    assert queued == [QUEUED] * len(lines)
    return result


def value_of(wire: Wire, dataset: str, row: str = "r") -> Any:
    """The newest value of the row's column c; None without one."""
    reply = wire.call("WCGET", dataset, row, "COLUMNS", 1, "c")
    if isinstance(reply, hiredis.ReplyError):
        assert str(reply).startswith("NODATASET")
        return None
    return reply[1][0][1][0][1] if reply[1] else None


def page(*columns: list[Any]) -> list[Any]:
    return [b"0", list(columns)]


def column(name: bytes, *cells: list[Any]) -> list[Any]:
    return [name, list(cells)]


# What a transaction sees


def test_it_reads_what_it_wrote(wire: Wire, other: Wire, dataset: str) -> None:
    wire.call("WCPUT", dataset, "r", 1, "c", "old")
    first = page(column(b"c", [2, b"new"], [1, b"old"]))
    second = page(column(b"c", [9, b"swapped"], [2, b"new"], [1, b"old"]))
    result = transact(
        wire,
        f"WCPUT {dataset} r 2 c new",
        f"WCGET {dataset} r VERSIONS ALL",
        f"WCCAS {dataset} r c IFEQ old 9 wrong",
        f"WCCAS {dataset} r c IFEQ new 9 swapped",
        f"WCMGET {dataset} ROWS 2 r s VERSIONS ALL",
        f"WCINCRBY {dataset} s n 5",
        f"WCINCRBY {dataset} s n 5",
        f"WCEXISTS {dataset} r s t",
        f"WCMPUT {dataset} t 1 c v u 1 c v",
        f"WCCOLS {dataset} t",
        f"WCDEL {dataset} t",
        f"WCDEL {dataset} t",
        f"WCMDEL {dataset} ROWS 2 t u",
        f"WCEXISTS {dataset} r s t u",
        f"WCSCAN {dataset} PREFIX r VERSIONS ALL",
    )
    assert result == [
        1, first, 0, 1, [second, page()], 5, 10, 2, 2, [b"0", [b"c"]], 1, 0, 1, 2,
        [b"0", [[b"r", second[1], b"0"]]],
    ]  # fmt: skip
    assert other.call("WCGET", dataset, "r", "VERSIONS", "ALL") == second
    assert other.call("WCEXISTS", dataset, "r", "s", "t", "u") == 2


def test_datasets_are_dropped_and_created(wire: Wire, other: Wire, dataset: str) -> None:
    new = f"{dataset}new"
    wire.call("WCPUT", dataset, "r", 1, "c", "old")
    result = transact(
        wire,
        f"WCDATASET DROP {dataset}",
        f"WCGET {dataset} r",
        f"WCDATASET CREATE {dataset} MAXVERSIONS 1",
        f"WCGET {dataset} r",
        f"WCPUT {dataset} r 2 c b 1 c a",
        f"WCGET {dataset} r VERSIONS ALL",
        f"WCDATASET CREATE {new}",
        f"WCPUT {new} r 1 c v",
        f"WCDATASET DROP {new}",
        f"WCDATASET LIST {new}",
        f"WCPUT {new} r 5 c w",
    )
    gone = result.pop(1)
    assert str(gone).startswith("NODATASET")
    found = page(column(b"c", [2, b"b"]))
    assert result == [b"OK", b"OK", page(), 2, found, b"OK", 1, b"OK", [], 1]
    assert other.call("WCGET", dataset, "r", "VERSIONS", "ALL") == found
    assert other.call("WCGET", new, "r", "VERSIONS", "ALL") == page(column(b"c", [5, b"w"]))


def test_everything_is_dropped(wire: Wire, other: Wire, dataset: str) -> None:
    for name in (dataset, f"{dataset}b"):
        wire.call("WCPUT", name, "r", 1, "c", "old")
    result = transact(
        wire,
        f"WCPUT {dataset} r 2 c new",
        "FLUSHALL",
        "WCDATASET LIST",
        f"WCPUT {dataset}b r 3 c last",
        f"WCGET {dataset}b r VERSIONS ALL",
    )
    found = page(column(b"c", [3, b"last"]))
    assert result == [1, b"OK", [], 1, found]
    assert other.call("WCDATASET", "LIST") == [f"{dataset}b".encode()]
    assert other.call("WCGET", f"{dataset}b", "r", "VERSIONS", "ALL") == found


def test_what_fails_leaves_the_others(wire: Wire, other: Wire, dataset: str) -> None:
    wire.call("WCPUT", dataset, "r", 1, "c", "word")
    result = transact(
        wire,
        f"WCPUT {dataset} r 2 c before",
        f"WCINCRBY {dataset} r c 1",
        f"WCPUT {dataset} r x c v",
        f"WCDATASET CREATE {dataset}",
        "WCGET nosuchdataset r",
        "SELECT 99",
        f"WCPUT {dataset} r 3 c after",
    )
    failed = [isinstance(value, hiredis.ReplyError) for value in result]
    assert failed == [False, True, True, True, True, True, False]
    assert (result[0], result[-1]) == (1, 1)
    found = page(column(b"c", [3, b"after"], [2, b"before"], [1, b"word"]))
    assert other.call("WCGET", dataset, "r", "VERSIONS", "ALL") == found


@pytest.mark.parametrize(
    "refused",
    ["NOSUCH", "WCPUT", "WCDATASET NOSUCH", "WCPUT {0} r 1 c", "SAVE", "SHUTDOWN", "EXEC x"],
)
def test_what_cannot_be_queued_spoils_all_of_it(wire: Wire, dataset: str, refused: str) -> None:
    replies = pipeline(
        wire, "MULTI", f"WCPUT {dataset} r 1 c v", refused.format(dataset), "PING", "EXEC", "PING"
    )
    assert replies[:2] == [b"OK", QUEUED]
    assert isinstance(replies[2], hiredis.ReplyError)
    spoilt_by_exec = refused.startswith("EXEC")
    assert replies[3] == (b"PONG" if spoilt_by_exec else QUEUED)
    expected = "ERR EXEC without MULTI" if spoilt_by_exec else "EXECABORT"
    assert str(replies[4]).startswith(expected)
    assert replies[5] == b"PONG"
    assert value_of(wire, dataset) is None


def test_ten_thousand_commands(wire: Wire, other: Wire, dataset: str) -> None:
    puts = [encode("WCPUT", dataset, number, 1, "c", number) for number in range(QUEUED_COMMANDS)]
    data = encode("MULTI") + b"".join(puts) + encode("WCINCRBY", dataset, "n", "c", 1)
    replies = wire.exchange(data + encode("EXEC"), QUEUED_COMMANDS + 3)
    assert replies[1:-1] == [QUEUED] * (QUEUED_COMMANDS + 1)
    assert replies[-1] == [1] * (QUEUED_COMMANDS + 1)
    assert other.call("WCEXISTS", dataset, *range(QUEUED_COMMANDS)) == QUEUED_COMMANDS


def test_byte_by_byte(wire: Wire, dataset: str) -> None:
    data = b"".join(
        encode(*line.split())
        for line in ("MULTI", f"WCPUT {dataset} r 1 c v", f"WCEXISTS {dataset} r", "EXEC", "EXEC")
    )
    for byte in data:
        wire.send(bytes([byte]))
    *replies, last = wire.read(5)
    assert replies == [b"OK", QUEUED, QUEUED, [1, 1]]
    assert str(last) == "ERR EXEC without MULTI"


# Its end without EXEC


@pytest.mark.parametrize(
    ("end", "reply"),
    [("DISCARD", b"OK"), ("RESET", b"RESET"), ("QUIT", b"OK"), ("close", b""), ("reset", b"")],
)
def test_what_was_queued_is_forgotten(
    wire: Wire, other: Wire, dataset: str, end: str, reply: bytes
) -> None:
    other.call("WCPUT", dataset, "r", 1, "c", "old")
    identifier = wire.call("CLIENT", "ID")
    assert wire.call("WATCH", dataset) == b"OK"
    assert pipeline(wire, "MULTI", f"WCPUT {dataset} r 2 c new") == [b"OK", QUEUED]
    if reply:
        assert wire.call(end) == reply
    elif end == "close":
        wire.close()
    else:
        wire.reset()
    if end in ("DISCARD", "RESET"):
        assert wire.call("CLIENT", "ID") == identifier
        assert str(wire.call("EXEC")) == "ERR EXEC without MULTI"
        other.call("WCPUT", dataset, "s", 1, "c", "v")
        assert transact(wire, "PING") == [b"PONG"], "it watches nothing any more"
    else:
        until(lambda: not other.call("CLIENT", "LIST", "ID", identifier))
    assert value_of(other, dataset) == b"old"


# WATCH: `d` has a row r with the columns c, a word, and n, a number; `gone` is no dataset

CHANGES = [
    "WCPUT d r 5 c v",
    "WCPUT d other EX 60 * c v",
    "WCPUT d r 1 c word",
    "WCMPUT d r 5 c v s 5 c v",
    "WCDEL d r",
    "WCDEL d r COLUMNS 1 c",
    "WCDEL d r RANGE - +",
    "WCMDEL d ROWS 2 s r",
    "WCINCRBY d r n 1",
    "WCCAS d r c IFEQ word 5 v",
    "WCCAS d r new IFABSENT 5 v",
    "WCDATASET ALTER d TTL 100",
    "WCDATASET DROP d",
    "WCDATASET DROP d + WCDATASET CREATE d",
    "WCDATASET DROP d + WCPUT d r 1 c word r 1 n 1",
    "FLUSHALL",
    "FLUSHALL ASYNC",
    "FLUSHALL + WCDATASET CREATE d",
    "WCPUT gone r 1 c v",
    "WCDATASET CREATE gone",
    "WCDATASET CREATE gone + WCDATASET DROP gone",
]
NO_CHANGES = [
    "PING",
    "WCPUT elsewhere r 1 c v",
    "WCPUT d r x c v",
    "WCPUT d r 5 c",
    "WCPUT d r EX 0 5 c v",
    "WCINCRBY d r c 1",
    "WCINCRBY d r n 9223372036854775807",
    "WCCAS d r c IFEQ another 5 v",
    "WCCAS d r c IFABSENT 5 v",
    "WCCAS d r c IFEQ word 0 v",
    "WCDEL d s",
    "WCDEL d r COLUMNS 1 x",
    "WCDEL d r RANGE 7 9",
    "WCDEL gone r",
    "WCMDEL d ROWS 2 s t",
    "WCDATASET CREATE d",
    "WCDATASET CREATE d IFNOTEXISTS",
    "WCDATASET ALTER d",
    "WCDATASET ALTER gone TTL 5",
    "WCDATASET DROP gone IFEXISTS",
    "WCDATASET DROP elsewhere",
    "WCGET d r + WCSCAN d + WCCOLS d r + WCEXISTS d r + WCMGET d ROWS 1 r",
    "WCDATASET INFO d + WCDATASET LIST + INFO everything",
    "FLUSHDB",
    "SAVE",
    "MULTI + WCPUT d r 5 c v + DISCARD",
    "MULTI + WCPUT d r 5 c v + NOSUCH + EXEC",
]


@pytest.fixture
def prepared(other: Wire) -> Wire:
    other.send(encode("FLUSHALL"), encode("WCPUT", "elsewhere", "r", 1, "c", "v"))
    other.send(encode("WCPUT", "d", "r", 1, "c", "word", 1, "n", "1"))
    assert other.read(3) == [b"OK", 1, 2]
    return other


@pytest.mark.parametrize("by_itself", [False, True], ids=["by another", "by itself"])
@pytest.mark.parametrize("changes", CHANGES)
def test_a_change_of_what_is_watched(
    wire: Wire, prepared: Wire, changes: str, by_itself: bool
) -> None:
    assert wire.call("WATCH", "nothing", "d", "gone") == b"OK"
    pipeline(wire if by_itself else prepared, *changes.split(" + "))
    assert transact(wire, "WCPUT marked r 1 c v") is None
    assert value_of(prepared, "marked") is None
    assert transact(wire, "PING") == [b"PONG"], "after EXEC nothing is watched"


def test_a_change_by_anothers_transaction(wire: Wire, prepared: Wire) -> None:
    wire.call("WATCH", "d")
    assert transact(prepared, "WCPUT d r 5 c v") == [1]
    assert transact(wire, "PING") is None


@pytest.mark.parametrize("calls", NO_CHANGES)
def test_what_changes_nothing_of_what_is_watched(wire: Wire, prepared: Wire, calls: str) -> None:
    wire.call("WATCH", "d", "gone")
    pipeline(prepared, *calls.split(" + "))
    pipeline(wire, *calls.split(" + ")) if "MULTI" not in calls else None
    assert transact(wire, "PING") == [b"PONG"]


def test_a_compaction_changes_nothing(wire: Wire, prepared: Wire) -> None:
    prepared.call("WCDATASET", "ALTER", "d", "MAXVERSIONS", 1)
    prepared.call("WCPUT", "d", "r", 2, "c", "w", 3, "c", "word")

    def info() -> dict[bytes, Any]:
        flat = prepared.call("WCDATASET", "INFO", "d")
        return dict(zip(flat[::2], flat[1::2], strict=True))

    wire.call("WATCH", "d")
    assert prepared.call("WCDATASET", "COMPACT", "d") == b"OK"
    until(lambda: bool(info()[b"last-compaction-removed-cells"] == 2))
    assert transact(wire, "PING") == [b"PONG"]


def test_what_others_watch_is_theirs(wire: Wire, prepared: Wire) -> None:
    assert wire.call("WATCH", "d") == prepared.call("WATCH", "d") == b"OK"
    assert transact(wire, "WCPUT d r 2 c v") == [1]
    assert transact(prepared, "PING") is None
    assert prepared.call("WATCH", "d") == b"OK"
    assert transact(prepared, "WCGET d r COLUMNS 1 n") == [page(column(b"n", [1, b"1"]))]


def test_counting_with_watch_loses_nothing(own: ServerProcess, protocol: int, dataset: str) -> None:
    """Several clients read, add and write; each starts over when another was quicker."""
    rounds, lost = 25, []

    def count() -> None:
        with Wire(own) as mine:
            mine.call("HELLO", protocol)
            for _ in range(rounds):
                while True:
                    mine.call("WATCH", dataset)
                    number = int(value_of(mine, dataset) or 0) + 1
                    if transact(mine, f"WCPUT {dataset} r * c {number}") is not None:
                        break
                    lost.append(number)

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Wire(own) as reader:
        assert value_of(reader, dataset) == b"%d" % (3 * rounds)


# One for those who look on


def test_nobody_sees_half_of_it(own: ServerProcess, wire: Wire, dataset: str) -> None:
    """One writes a number into rows of two datasets, over and over; another looks."""
    rounds = 300
    lines = [
        f"WCPUT {dataset} a 1 c {{0}}",
        "ECHO {0}",
        f"WCGET {dataset} a",
        f"WCPUT {dataset}b b 1 c {{0}}",
        f"WCPUT {dataset} z 1 c {{0}}",
    ]
    written = [
        encode(*line.format(number).split())
        for number in range(rounds)
        for line in ("MULTI", *lines, "EXEC")
    ]

    def write() -> None:
        with Wire(own) as writer:
            writer.exchange(b"".join(written), len(written))

    wire.call("WCPUT", dataset, "a", 1, "c", -1, 1, "other", "")
    wire.call("WCPUT", dataset, "z", 1, "c", -1)
    wire.call("WCPUT", f"{dataset}b", "b", 1, "c", -1)
    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while thread.is_alive():
        one = wire.call("WCMGET", dataset, "ROWS", 2, "a", "z", "COLUMNS", 1, "c")
        both = transact(wire, f"WCGET {dataset} z", f"WCGET {dataset}b b")
        for first, second in (one, both):
            assert first == second
            seen.add(first[1][0][1][0][1])
    thread.join()
    assert len(seen) > 2, "it looked at too few moments"
    assert value_of(wire, f"{dataset}b", "b") == b"%d" % (rounds - 1)


def test_a_pause_that_ends_within_it_lets_nobody_in(
    wire: Wire, other: Wire, own: ServerProcess, dataset: str
) -> None:
    wire.call("WCPUT", dataset, "r", 1, "c", "old")
    with Wire(own) as admin:
        identifier = other.call("CLIENT", "ID")
        assert admin.call("CLIENT", "PAUSE", 60_000, "WRITE") == b"OK"
        other.send(encode("WCPUT", dataset, "r", 2, "c", "new"), encode("PING"))
        until(lambda: b"flags=b" in admin.call("CLIENT", "LIST", "ID", identifier))
        look = f"WCGET {dataset} r"
        before, unpaused, after = transact(wire, look, "CLIENT UNPAUSE", look)
    assert unpaused == b"OK"
    assert before == after == page(column(b"c", [1, b"old"]))
    assert other.read(2) == [1, b"PONG"]


# Commands that are special


def test_subscribing_within_it(wire: Wire, other: Wire) -> None:
    result = transact(wire, "ECHO before", "SUBSCRIBE a b", "PSUBSCRIBE c*")
    assert result == [b"before", [b"subscribe", b"a", 1], [b"psubscribe", b"c*", 3]]
    assert wire.read(1) == [[b"subscribe", b"b", 2]]
    assert [other.call("PUBLISH", name, "x") for name in ("a", "b", "c1")] == [1, 1, 1]
    messages = [[b"message", b"a", b"x"], [b"message", b"b", b"x"]]
    assert wire.read(3) == [*messages, [b"pmessage", b"c*", b"c1", b"x"]]


@pytest.mark.parametrize("line", ["WAIT 1 0", "WAIT 5 60000", "CLIENT UNBLOCK 1", "WAITAOF 0 1 0"])
def test_nothing_waits_within_it(wire: Wire, line: str) -> None:
    assert transact(wire, line, "PING") in ([0, b"PONG"], [[1, 0], b"PONG"], [[0, 0], b"PONG"])


def test_it_cannot_become_a_monitor(wire: Wire, other: Wire) -> None:
    refused, pong = transact(wire, "MONITOR", "PING")
    assert str(refused) == "ERR MONITOR isn't allowed for DENY BLOCKING client"
    assert pong == b"PONG"
    other.call("ECHO", "secret")
    assert wire.call("PING") == b"PONG"


def test_a_pause_begins_after_it(wire: Wire, own: ServerProcess, dataset: str) -> None:
    lines = ["CLIENT PAUSE 60000 ALL", f"WCPUT {dataset} r 1 c v", "CLIENT UNPAUSE", "PING"]
    assert transact(wire, *lines) == [b"OK", 1, b"OK", b"PONG"]
    # One that nobody can end but the time
    assert transact(wire, "CLIENT PAUSE 50 ALL", f"WCPUT {dataset} r 2 c w") == [b"OK", 1]
    assert value_of(wire, dataset) == b"w"


def test_silence_begun_within_it_is_kept(wire: Wire) -> None:
    lines = ("MULTI", "ECHO a", "CLIENT REPLY OFF", "ECHO b", "EXEC", "ECHO c", "CLIENT REPLY ON")
    wire.send(*(encode(*line.split()) for line in lines), encode("PING"))
    assert wire.read(6) == [b"OK", QUEUED, QUEUED, QUEUED, b"OK", b"PONG"]


def test_silence_ended_within_it_is_ended(wire: Wire) -> None:
    lines = ("CLIENT REPLY OFF", "MULTI", "ECHO a", "CLIENT REPLY ON", "ECHO b", "EXEC", "PING")
    wire.send(*(encode(*line.split()) for line in lines))
    assert wire.read(2) == [[b"a", b"OK", b"b"], b"PONG"]


def test_a_reply_skipped_within_it_leaves_a_whole_reply(wire: Wire) -> None:
    """Redis announces one value more than it sends."""
    wire.send(encode("MULTI"), encode("CLIENT", "REPLY", "SKIP"), encode("ECHO", "a"))
    wire.send(encode("EXEC"), encode("ECHO", "skipped"), encode("ECHO", "answered"))
    assert wire.read(5) == [b"OK", QUEUED, QUEUED, [None, b"a"], b"answered"]


@pytest.mark.parametrize("names", ["a", "a b"])
def test_a_silenced_client_that_subscribes_within_it_hears_that_alone(
    wire: Wire, names: str
) -> None:
    lines = ("MULTI", "ECHO x", f"SUBSCRIBE {names}", "ECHO y", "EXEC")
    wire.send(encode("CLIENT", "REPLY", "OFF"), *(encode(*line.split()) for line in lines))
    told = [[b"subscribe", name.encode(), place] for place, name in enumerate(names.split(), 1)]
    assert wire.read(len(told)) == told
    wire.send(encode("RESET"))
    assert wire.read(1) == [b"RESET"]


def test_the_protocol_changes_within_it(own: ServerProcess) -> None:
    with Wire(own) as wire:
        hello, info = transact(wire, "HELLO 3", "CLIENT TRACKINGINFO")
        assert hello[b"proto"] == 3
        assert isinstance(info, dict)
        hello, info = transact(wire, "HELLO 2", "CLIENT TRACKINGINFO")
        assert isinstance(hello, list)
        assert isinstance(info, list)


def test_who_one_is_changes_within_it(wire: Wire, other: Wire, dataset: str) -> None:
    other.call("ACL", "SETUSER", "fox", "on", ">p", "~x*", "&*", "+@all", "-echo")
    result = transact(
        wire, f"WCPUT {dataset} r 1 c v", "SELECT 3", "AUTH fox p", "ACL WHOAMI", "ECHO a",
        f"WCPUT {dataset} r 2 c w", "AUTH fox wrong", "ACL WHOAMI",
    )  # fmt: skip
    assert [result[place] for place in (0, 1, 2, 3, 7)] == [1, b"OK", b"OK", b"fox", b"fox"]
    assert [str(result[place]).split()[0] for place in (4, 5, 6)] == [
        "NOPERM",
        "NOPERM",
        "WRONGPASS",
    ]
    assert b" db=3 " in wire.call("CLIENT", "INFO")
    assert value_of(other, dataset) == b"v"
    assert other.call("ACL", "DELUSER", "fox") == 1


def test_one_that_kills_itself_within_it_gets_its_reply(wire: Wire, dataset: str) -> None:
    identifier = wire.call("CLIENT", "ID")
    killing = f"CLIENT KILL ID {identifier} SKIPME no"
    assert transact(wire, killing, f"WCPUT {dataset} r 1 c v") == [1, 1]
    assert wire.read_to_end() == b""


# One for the log

PUT = encode("WCPUT", "d", "r", 1, "c", "v")
GET = encode("WCGET", "d", "r")
MULTI, EXEC, PING = encode("MULTI"), encode("EXEC"), encode("PING")


def test_a_failed_commit_is_answered_to_exec() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        host.database.failures = 1
        connection.data_received(MULTI + PUT + GET + EXEC + PING)
        queued = b"+OK\r\n" + b"+QUEUED\r\n" * 2
        assert await until_written(transport) == queued + IOERR + b"+PONG\r\n"
        connection.data_received(GET + MULTI + PUT + EXEC)
        replies = await until_written(transport)
        assert replies.startswith(b"-NODATASET ")
        assert replies.endswith(b"*1\r\n:1\r\n")

    run(scenario)


def test_a_failed_commit_fails_a_transaction_that_saw_what_it_lost() -> None:
    """It wrote nothing itself, but read what another had written."""

    async def scenario(host: Host) -> None:
        writer, writer_transport = host.connect()
        reader, reader_transport = host.connect()
        host.database.failures = 1
        writer.data_received(PUT)
        reader.data_received(MULTI + GET + EXEC)
        assert await until_written(writer_transport) == IOERR
        assert await until_written(reader_transport) == b"+OK\r\n+QUEUED\r\n" + IOERR

    run(scenario)


def test_a_failed_commit_of_a_transaction_that_drops_and_creates() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        connection.data_received(PUT)
        assert await until_written(transport) == b":1\r\n"
        connection.data_received(GET)
        found = await until_written(transport)
        host.database.failures = 1
        drop, put = encode("WCDATASET", "DROP", "d"), encode("WCPUT", "d", "r", 9, "c", "w")
        connection.data_received(MULTI + drop + put + encode("FLUSHALL") + put + EXEC)
        assert (await until_written(transport)).endswith(b"+QUEUED\r\n" + IOERR)
        connection.data_received(GET)
        assert await until_written(transport) == found

    run(scenario)


def test_a_failed_commit_is_told_although_a_reply_is_to_be_skipped() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        host.database.failures = 1
        connection.data_received(MULTI + encode("CLIENT", "REPLY", "SKIP") + PUT + EXEC)
        assert await until_written(transport) == b"+OK\r\n" + b"+QUEUED\r\n" * 2 + IOERR

    run(scenario)


def test_a_stall_holds_it_until_all_of_it_is_in_the_log() -> None:
    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        host.database.stalls = 3
        connection.data_received(MULTI + PUT + GET + EXEC + PING)
        replies = await until_written(transport)
        assert host.database.stalls == 0
        assert replies.startswith(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n")
        assert replies.endswith(b"+PONG\r\n")

    run(scenario)


WITHIN = [
    "WCGET d r", "WCMGET d ROWS 1 r", "WCSCAN d", "WCCOLS d r", "WCEXISTS d r", "WCDEL d r",
    "WCMDEL d ROWS 1 r", "WCINCRBY d r n 1", "WCCAS d r c IFEQ v 5 w", "WCPUT d r EX 9 * c v",
    "WCDATASET CREATE e", "WCDATASET DROP d", "WCDATASET ALTER d MAXVERSIONS 1",
    "WCDATASET COMPACT d", "WCDATASET INFO d", "FLUSHALL", "BGSAVE", "BGREWRITEAOF", "LASTSAVE",
    "WAIT 1 0", "WAITAOF 1 1 0", "INFO everything", "MEMORY STATS", "MEMORY DOCTOR",
    "MEMORY USAGE d", "MEMORY PURGE", "LATENCY DOCTOR", "CONFIG SET timeout 5", "CONFIG RESETSTAT",
    "COMMAND DOCS", "CLIENT LIST", "CLIENT PAUSE 1", "CLIENT UNPAUSE", "SUBSCRIBE a",
    "PUBLISH a x", "ACL SETUSER fox on", "ACL LIST", "SLOWLOG GET", "SWAPDB 0 1",
]  # fmt: skip


@pytest.mark.parametrize("line", WITHIN)
def test_no_command_hands_over_to_others_within_it(line: str) -> None:
    """Whatever it does, EXEC is one step: else somebody else's command could come in between."""

    async def scenario(host: Host) -> None:
        connection, transport = host.connect()
        words = line.split()
        connection.data_received(PUT + MULTI + PUT + encode(*words) + PUT + EXEC + encode("QUIT"))
        while not transport.closed:  # a turn may end in between
            assert not connection.waits_for_handler
            await asyncio.sleep(0)
        replies = transport.take()
        assert replies.startswith(b":1\r\n+OK\r\n" + b"+QUEUED\r\n" * 3 + b"*3\r\n:1\r\n")
        assert b"\r\n-" not in replies

    run(scenario)


# One for a crash

WRITERS = 3
ROWS = ("a", "b", "c")


class Writer(threading.Thread):
    """Writes number after number, each in one EXEC into rows of two datasets, until it is cut off.

    A pipeline of several EXECs is on its way at any time.
    """

    def __init__(self, server: ServerProcess, name: str, first: int) -> None:
        super().__init__()
        self.wire = Wire(server)
        self.row = name
        self.next = first
        self.acknowledged = first - 1
        self.problem: object = None

    def run(self) -> None:
        try:
            while True:
                numbers = range(self.next, self.next + 5)
                self.next += len(numbers)
                self.wire.send(*map(self.written, numbers))
                for number in numbers:
                    *_, result = self.wire.read(6)
                    if result != [1, 2, number, 1]:
                        self.problem = result
                        return
                    self.acknowledged = number
        except (OSError, AssertionError):  # the server is gone
            self.wire.close()

    def written(self, number: int) -> bytes:
        row = self.row
        return b"".join(
            [
                MULTI,
                encode("WCPUT", "first", f"{row}1", number, "c", number),
                encode("WCPUT", "second", f"{row}2", number, "c", number, number, "d", "x" * 500),
                encode("WCINCRBY", "second", f"{row}3", "c", 1),
                encode("WCPUT", "first", f"{row}4", number, "c", number),
                EXEC,
            ]
        )


def numbers_of(wire: Wire, name: str) -> list[list[int]]:
    """The numbers that each of a writer's rows holds, the newest first."""
    found = []
    for dataset, row in (("first", f"{name}1"), ("second", f"{name}2"), ("first", f"{name}4")):
        reply = wire.call("WCGET", dataset, row, "COLUMNS", 1, "c", "VERSIONS", "ALL", "NOVALUES")
        found.append(reply[1][0][1] if reply[1] else [])
    return found


def test_after_a_kill_all_or_nothing_of_each_is_there(make_server: MakeServer) -> None:
    chance = random.Random(20)
    server = make_server(wc_page_cells=1_000_000, wc_page_columns=1_000_000)
    last = dict.fromkeys(ROWS, 0)
    for _ in range(3):
        writers = [Writer(server, name, last[name] + 1) for name in ROWS]
        for writer in writers:
            writer.start()
        wanted = sum(last.values()) + chance.randrange(50, 600)
        until(lambda: sum(writer.acknowledged for writer in writers) >= wanted)  # noqa: B023
        server.kill()
        for writer in writers:
            writer.join()
            assert writer.problem is None
        server.start()
        with Wire(server) as wire:
            for writer in writers:
                first, *rest = numbers_of(wire, writer.row)
                assert rest == [first] * len(rest), "half of an EXEC is there"
                assert first == list(range(len(first), 0, -1))
                assert writer.acknowledged <= len(first) < writer.next
                assert value_of(wire, "second", f"{writer.row}3") == b"%d" % len(first)
                last[writer.row] = len(first)
