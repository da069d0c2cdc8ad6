"""Calls of one pipeline get what the same calls get one by one, and leave the same behind.

The server may answer neighbours together (commands.table.quickly): no reply, no figure, no listener
and no bystander may show that it did. What becomes of them when a commit fails: test_tick.py.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hiredis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.against_model.steered import Limits, SteeredServer
from tests.compare import wire as typed
from tests.harness import MakeServer, until
from tests.server.conftest import Connect
from tests.wire import MEGABYTE, PATIENCE_SECONDS, Wire, encode, resident_bytes

Call = tuple[str, ...]
Run = tuple[list[Call], int]
"""Calls that follow one another, so many times."""

LONG = "x" * 65_536
"""A row or a column may have a byte less."""
LONG_MS = 60_000
MORE_THAN_AT_ONCE = 150
_names = itertools.count(1)


# The same as one by one: two servers whose clocks the test holds, so that they stamp alike


class Pair:
    """A server that is sent pipelines, and one that gets the same calls one by one and remembers
    no rows."""

    def __init__(self, directory: Path, limits: Limits) -> None:
        self.servers: list[SteeredServer] = []
        for name, its_limits in (("pipelines", limits), ("calls", Limits(row_cache_bytes=0))):
            (directory / name).mkdir()
            self.servers.append(SteeredServer(directory / name, its_limits))

    def pass_ms(self, milliseconds: int) -> None:
        now = max(server.clock.now for server in self.servers) + milliseconds
        for server in self.servers:
            server.clock.now = now

    def connect(self, protocol: int) -> tuple[typed.Wire, typed.Wire]:
        wires = [typed.Wire(server.running().port, PATIENCE_SECONDS) for server in self.servers]
        for wire in wires:
            wire.call("HELLO", str(protocol))
        return wires[0], wires[1]

    def close(self) -> None:
        for server in self.servers:
            server.process.close()


@pytest.fixture(scope="module", params=[None, 0, 3_000], ids=["remembers", "forgets", "little"])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"), Limits(row_cache_bytes=request.param))
    yield made
    made.close()


DATASETS = st.sampled_from(["d", "d", "d", "d", "e", "absent", "no/name"])
"""d, e and absent stand for datasets of the example's own; into the last two nothing is put."""
WRITTEN = st.sampled_from(["d", "d", "d", "d", "e", "no/name"])
ROWS = st.sampled_from(["r", "r", "r", "s", "t", ""])
COLUMNS = st.sampled_from(["a", "a", "b", ""])
TIMES = st.sampled_from(["1", "1", "2", "3", "9223372036854775807", "*"])
NO_TIMES = st.sampled_from(["", "-1", "01", "1.5", "x", "9223372036854775808", "**"])
VALUES = st.text("uvw", max_size=3)
PUT_NAMES = st.sampled_from(["WCPUT", "WCPUT", "WCPUT", "wcput", "WcPut"])
GET_NAMES = st.sampled_from(["WCGET", "WCGET", "WCGET", "wcget", "wCGET"])
OPTIONS: st.SearchStrategy[Call] = st.sampled_from(
    [
        (), (), (), ("VERSIONS", "ALL"), ("versions", "all"), ("COUNT", "1"), ("NOVALUES",),
        ("COLUMNS", "1", "a"), ("PREFIX", "a"), ("RANGE", "2", "+"), ("CURSOR", "0"),
        ("CURSOR", "7"), ("COUNT", "0"), ("COUNT",), ("COLUMNS", "2", "a"), ("NONE",),
        ("COLUMNS", "70", *map(str, range(70))),
    ]
)  # fmt: skip

PUT: st.SearchStrategy[Call] = st.tuples(PUT_NAMES, WRITTEN, ROWS, TIMES, COLUMNS, VALUES)
GET: st.SearchStrategy[Call] = st.builds(
    lambda name, dataset, row, options: (name, dataset, row, *options),
    GET_NAMES, DATASETS, ROWS, OPTIONS,
)  # fmt: skip
ODD_PUT: st.SearchStrategy[Call] = st.one_of(
    st.tuples(PUT_NAMES, WRITTEN, ROWS, NO_TIMES, COLUMNS, VALUES),
    st.tuples(PUT_NAMES, WRITTEN, st.just("long"), TIMES, COLUMNS, VALUES),
    st.tuples(PUT_NAMES, WRITTEN, ROWS, TIMES, st.just("long"), VALUES),
    st.tuples(PUT_NAMES, WRITTEN, ROWS, TIMES, COLUMNS, VALUES, TIMES, COLUMNS, VALUES),
    st.tuples(
        PUT_NAMES, WRITTEN, ROWS, st.sampled_from(["EX", "px"]), st.sampled_from(["1", "40", "0"]),
        TIMES, COLUMNS, VALUES,
    ),
    st.tuples(PUT_NAMES, WRITTEN, ROWS, TIMES, COLUMNS),
    st.tuples(PUT_NAMES),
)  # fmt: skip
OTHER: st.SearchStrategy[Call] = st.one_of(
    st.sampled_from(
        [
            ("PING",), ("MULTI",), ("EXEC",), ("DISCARD",), ("WATCH", "d"), ("NOBODY",),
            ("WCGET",), ("WCGET", "d"), ("WCINCRBY", "d", "r", "n", "1"), ("WCCOLS", "d", "r"),
            ("WCDATASET", "CREATE", "d", "MAXVERSIONS", "1"), ("WCDATASET", "DROP", "d"),
            ("WCDATASET", "ALTER", "d", "MAXVERSIONS", "1"),
            ("WCDATASET", "ALTER", "d", "TTL", "1"), ("HELLO", "2"), ("HELLO", "3"),
        ]
    ),
    st.tuples(st.just("WCDEL"), WRITTEN, ROWS),
)  # fmt: skip
SOME: st.SearchStrategy[list[Call]] = st.one_of(
    st.lists(PUT, min_size=1, max_size=6), st.lists(GET, min_size=1, max_size=6)
)
ALIKE: st.SearchStrategy[list[Call]] = st.builds(
    lambda call, rows: [(*call[:2], row, *call[3:]) for row in rows],
    st.one_of(PUT, GET), st.lists(ROWS, min_size=1, max_size=4),
)  # fmt: skip
RUNS: st.SearchStrategy[Run] = st.one_of(
    st.tuples(SOME, st.sampled_from([1, 1, 2])),
    # Now and then of more than are answered at once.
    st.tuples(ALIKE, st.sampled_from([1, 2, 2, 40])),
    st.tuples(st.lists(st.one_of(PUT, ODD_PUT), min_size=1, max_size=4), st.just(1)),
    st.tuples(st.lists(OTHER, min_size=1, max_size=2), st.just(1)),
    st.tuples(
        st.builds(
            lambda begin, queued, end: [begin, *queued, end],
            st.sampled_from([("MULTI",), ("WATCH", "d")]), SOME,
            st.sampled_from([("EXEC",), ("DISCARD",), ("MULTI",)]),
        ),
        st.just(1),
    ),
)  # fmt: skip
PIPELINES = st.lists(RUNS, min_size=8, max_size=16)
MOMENTS = st.sampled_from([0, 0, 1, 40, 1_000])


def encoded(pipeline: list[Run], names: dict[str, str]) -> list[bytes]:
    calls = itertools.chain.from_iterable(run * times for run, times in pipeline)
    return [encode(call[0], *(names.get(word, word) for word in call[1:])) for call in calls]


def contents(wire: typed.Wire, names: dict[str, str]) -> list[typed.Reply]:
    """Whatever is in the datasets; a transaction that was left open ends before."""
    found = [wire.call("DISCARD"), wire.call("HELLO", "3")]
    for name in ("d", "e"):
        scan = ("WCSCAN", names[name], "LIMIT", "100", "COUNT", "100", "VERSIONS", "ALL")
        found += [wire.call(*scan), wire.call("WCDATASET", "DROP", names[name])]
    return found


@pytest.mark.parametrize("protocol", [2, 3])
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(PIPELINES, MOMENTS), min_size=2, max_size=3))
def test_a_pipeline_is_answered_as_its_calls_are(
    pair: Pair, protocol: int, steps: list[tuple[list[Run], int]]
) -> None:
    number = next(_names)
    names = {"long": LONG} | {name: f"{name}{number}" for name in ("d", "e", "absent")}
    pair.pass_ms(10_000)
    at_once, one_by_one = pair.connect(protocol)
    with at_once, one_by_one:
        for pipeline, moment in steps:
            calls = encoded(pipeline, names)
            at_once.send(b"".join(calls))
            for call in calls:
                one_by_one.send(call)
                assert at_once.read() == one_by_one.read(), call[:200]
            pair.pass_ms(moment)
        assert contents(at_once, names) == contents(one_by_one, names)


# What is refused


def puts(dataset: str, count: int) -> list[bytes]:
    return [encode("WCPUT", dataset, f"r{row}", 1, "c", f"v{row}") for row in range(count)]


def gets(dataset: str, count: int) -> list[bytes]:
    return [encode("WCGET", dataset, f"r{row}") for row in range(count)]


def row_of(number: int) -> list[Any]:
    """WCGET's reply for a row of puts()."""
    return [b"0", [[b"c", [[1, b"v%d" % number]]]]]


def exchange(wire: Wire, *calls: bytes) -> list[Any]:
    return wire.exchange(b"".join(calls), len(calls))


def rows_of(wire: Wire, dataset: str, count: int) -> int:
    """How many of the rows of puts() are there."""
    there: int = wire.call("WCEXISTS", dataset, *(f"r{row}" for row in range(count)))
    return there


@pytest.mark.parametrize(
    "wrong",
    [
        ("WCPUT", "{}", LONG, 1, "c", "v"),
        ("WCPUT", "{}", "r", 1, LONG, "v"),
        ("WCPUT", "{}", "r", "never", "c", "v"),
        ("WCPUT", "{}", "r", 1, "c"),
        ("WCPUT", "no/name", "r", 1, "c", "v"),
        ("WCPUT", "{}", "r", "EX", 0, 1, "c", "v"),
        ("WCGET", "{}", "r0", "NONE"),
        ("WCGET", "absent", "r0"),
    ],
    ids=lambda wrong: f"{wrong[0]} {wrong[1]} {wrong[2][:2]} {str(wrong[3:])[:20]}",
)
def test_one_refusal_among_calls_is_the_only_one(
    wire: Wire, dataset: str, wrong: tuple[str, ...]
) -> None:
    refused = encode(*(dataset if word == "{}" else word for word in wrong))
    exchange(wire, *puts(dataset, 3), *gets(dataset, 3))
    (alone,) = exchange(wire, refused)
    assert isinstance(alone, hiredis.ReplyError)
    for place in range(4):
        calls = [*puts(dataset, 3), *gets(dataset, 3)]
        written = exchange(wire, *calls[:place], refused, *calls[place:])
        read = exchange(wire, *calls[3 : 3 + place], refused, *calls[3 + place :])
        for replies, others in ((written, [1, 1, 1]), (read, [])):
            assert str(replies.pop(place)) == str(alone)
            assert replies == [*others, row_of(0), row_of(1), row_of(2)]


# What is told of it


def figures(wire: Wire, section: str, name: str) -> dict[str, str]:
    """The figures in a line of INFO, like calls=1,usec=2."""
    told = wire.call("INFO", section).decode()
    (line,) = re.findall(rf"^{name}:(\S+)", told, re.MULTILINE)
    return dict(figure.split("=") for figure in line.split(","))


def test_all_calls_are_counted(wire: Wire, other: Wire, dataset: str) -> None:
    count = MORE_THAN_AT_ONCE
    wire.call("WCDATASET", "CREATE", dataset)
    other.call("CONFIG", "RESETSTAT")
    wrong = [encode("WCPUT", dataset, "r", "never", "c", "v"), encode("WCPUT", dataset)]
    pipeline = [*puts(dataset, count), *wrong, *gets(dataset, count), *gets(dataset, count)]
    pipeline += [encode("WCGET", dataset, "r0", "NONE"), *puts(dataset, 1)]
    exchange(wire, *pipeline)
    names = ("calls", "failed_calls", "rejected_calls")
    put = figures(other, "commandstats", "cmdstat_wcput")
    get = figures(other, "commandstats", "cmdstat_wcget")
    assert [int(put[name]) for name in names] == [count + 2, 1, 1]
    assert [int(get[name]) for name in names] == [2 * count + 1, 1, 0]
    assert int(put["usec"]) > 0
    latency = figures(other, "latencystats", "latency_percentiles_usec_wcput")
    assert 0 < float(latency["p50"]) <= float(latency["p99.9"])
    histogram = other.call("LATENCY", "HISTOGRAM", "wcput", "wcget")
    assert [(calls[1], calls[3][-1]) for calls in histogram[1::2]] == [
        (count + 2, count + 2), (2 * count + 1, 2 * count + 1),
    ]  # fmt: skip


def test_what_is_remembered_is_counted_once_a_call(wire: Wire, other: Wire, dataset: str) -> None:
    exchange(wire, *puts(dataset, 10))
    other.call("CONFIG", "RESETSTAT")
    for _ in range(3):
        exchange(wire, *gets(dataset, 12))
    stats = other.call("INFO", "stats").decode()
    counted = [re.findall(rf"wc_row_cache_{name}:(\d+)", stats) for name in ("hits", "misses")]
    assert counted == [["24"], ["12"]]


def test_a_row_asked_for_again_and_again_is_remembered_once(
    wire: Wire, other: Wire, dataset: str
) -> None:
    def held_bytes() -> int:
        stats = other.call("INFO", "stats").decode()
        return int(re.findall(r"wc_row_cache_bytes:(\d+)", stats)[0])

    exchange(wire, *puts(dataset, 2))
    before = held_bytes()
    exchange(wire, *gets(dataset, 1))
    once = held_bytes() - before
    exchange(wire, *puts(dataset, 1))
    assert held_bytes() == before
    exchange(wire, *gets(dataset, 1) * 7)
    assert held_bytes() - before == once > 0


def test_the_slow_log_has_each_call_with_its_own_words(
    wire: Wire, other: Wire, dataset: str
) -> None:
    count = MORE_THAN_AT_ONCE
    wire.call("WCDATASET", "CREATE", dataset)
    other.call("CONFIG", "SET", "slowlog-log-slower-than", 0, "slowlog-max-len", 10_000)
    other.call("SLOWLOG", "RESET")
    exchange(wire, *puts(dataset, count), *gets(dataset, count) * 2)
    other.call("CONFIG", "SET", "slowlog-log-slower-than", -1)
    entries = [entry[3] for entry in other.call("SLOWLOG", "GET", -1)][::-1]
    logged = [words for words in entries if words[0].startswith(b"WC")]
    asked = [[b"WCGET", dataset.encode(), b"r%d" % row] for row in range(count)]
    assert logged[:count] == [
        [b"WCPUT", dataset.encode(), b"r%d" % row, b"1", b"c", b"v%d" % row] for row in range(count)
    ]
    assert logged[count:] == asked * 2


def test_a_monitor_is_shown_each_call(connect: Connect, other: Wire, dataset: str) -> None:
    count, writer = MORE_THAN_AT_ONCE, connect()
    exchange(writer, *puts(dataset, count), *gets(dataset, count))
    with_monitor = connect()
    assert with_monitor.call("MONITOR") == b"OK"
    exchange(writer, *puts(dataset, count), *gets(dataset, 1) * count)
    shown = [line.split(b"] ")[1] for line in with_monitor.read(2 * count)]
    name = b'"%b"' % dataset.encode()
    assert shown == [
        *(b'"WCPUT" %b "r%d" "1" "c" "v%d"' % (name, row, row) for row in range(count)),
        *([b'"WCGET" %b "r0"' % name] * count),
    ]
    other.call("RESET")


def test_a_monitor_that_comes_within_the_pipeline_is_shown_the_rest(
    connect: Connect, dataset: str
) -> None:
    """It is the writer itself, which is told before its own replies."""
    wire = connect()
    wire.send(*puts(dataset, 3), encode("MONITOR"), *puts(dataset, 2))
    assert wire.read(4) == [1, 1, 1, b"OK"]
    rest = wire.read(4)
    assert [reply for reply in rest if reply == 1] == [1, 1]
    lines = [reply.split(b"] ")[1] for reply in rest if reply != 1]
    assert lines == [
        b'"WCPUT" "%b" "r%d" "1" "c" "v%d"' % (dataset.encode(), row, row) for row in range(2)
    ]


def test_each_write_is_published(connect: Connect, other: Wire, dataset: str) -> None:
    count, writer, listener = MORE_THAN_AT_ONCE, connect(), connect()
    listener.call("SUBSCRIBE", "__keyevent@0__:wcput")
    exchange(writer, *puts(dataset, count))
    # From the middle of a pipeline on, in which the writer itself asks for it.
    on, off = (encode("CONFIG", "SET", "notify-keyspace-events", flags) for flags in ("Ew", ""))
    again = [encode("WCPUT", dataset, f"s{row}", 1, "c", "v") for row in range(count)]
    exchange(writer, *puts(dataset, 5), on, *again, off, *puts(dataset, 5))
    expected = [b"%b/s%d" % (dataset.encode(), row) for row in range(count)]
    assert [message[2] for message in listener.read(count)] == expected
    other.call("PUBLISH", "__keyevent@0__:wcput", "last")
    assert listener.read(1)[0][2] == b"last"


def test_the_last_command_is_known(connect: Connect, other: Wire, dataset: str) -> None:
    wire = connect()
    identifier = wire.call("CLIENT", "ID")
    exchange(wire, *puts(dataset, 5), *gets(dataset, 5), encode("PING"))
    for calls, name in ((gets(dataset, 5), b"wcget"), (puts(dataset, 5), b"wcput")):
        exchange(wire, *calls)
        assert b" cmd=%b " % name in other.call("CLIENT", "LIST", "ID", identifier)


# The state of the client


def test_a_silenced_client_is_told_nothing_and_writes(wire: Wire, dataset: str) -> None:
    count = MORE_THAN_AT_ONCE
    off, on = (encode("CLIENT", "REPLY", word) for word in ("OFF", "ON"))
    wire.send(encode("PING"), off, *puts(dataset, count), *gets(dataset, count) * 2, on)
    wire.send(*gets(dataset, 2))
    assert wire.read(4) == [b"PONG", b"OK", row_of(0), row_of(1)]
    assert rows_of(wire, dataset, count) == count


def test_one_reply_is_skipped_and_no_more(wire: Wire, dataset: str) -> None:
    skip = encode("CLIENT", "REPLY", "SKIP")
    exchange(wire, *puts(dataset, 3), *gets(dataset, 3))
    wire.send(*puts(dataset, 2), skip, *puts(dataset, 4), skip, *gets(dataset, 3))
    wire.send(*gets(dataset, 3))
    assert wire.read(10) == [1] * 5 + [row_of(row) for row in (1, 2, 0, 1, 2)]


def test_a_limited_user_is_refused_within_a_pipeline(
    connect: Connect, other: Wire, dataset: str
) -> None:
    mine, wire = f"{dataset}mine", connect()
    rules = ("on", ">few", "resetkeys", f"~{mine}*", "+@all")
    assert other.call("ACL", "SETUSER", f"few{dataset}", *rules) == b"OK"
    log_in, before = encode("AUTH", f"few{dataset}", "few"), gets(dataset, 3)
    exchange(wire, *puts(dataset, 3), *before)
    allowed, refused = puts(mine, 3), [*puts(dataset, 3), *before]
    replies = exchange(wire, *before, *puts(dataset, 3), log_in, *allowed, *refused, *allowed)
    assert replies[:10] == [row_of(0), row_of(1), row_of(2), 1, 1, 1, b"OK", 1, 1, 1]
    assert [str(reply)[:6] for reply in replies[10:16]] == ["NOPERM"] * 6
    assert replies[16:] == [1, 1, 1]


def test_who_has_to_log_in_writes_nothing_before(make_server: MakeServer) -> None:
    server = make_server(requirepass="secret")
    with Wire(server) as wire:
        calls = [*puts("d", 3), encode("AUTH", "secret"), *gets("d", 1) * 2, *puts("d", 2)]
        replies = exchange(wire, *calls)
        assert [str(reply)[:6] for reply in replies[:3]] == ["NOAUTH"] * 3
        assert replies[3] == b"OK"
        assert [str(reply)[:9] for reply in replies[4:6]] == ["NODATASET"] * 2
        assert replies[6:] == [1, 1]


def test_a_transaction_within_a_pipeline(wire: Wire, dataset: str) -> None:
    exchange(wire, *puts(dataset, 4), *gets(dataset, 4))
    calls = [*gets(dataset, 2), encode("MULTI"), *puts(dataset, 2), *gets(dataset, 2)]
    replies = exchange(wire, *calls, encode("EXEC"), *gets(dataset, 2))
    assert replies[2] == b"OK"
    assert replies[3:7] == [b"QUEUED"] * 4
    assert replies[7] == [1, 1, row_of(0), row_of(1)]
    assert replies[:2] == replies[8:] == [row_of(0), row_of(1)]


def test_a_transaction_that_watched_what_a_pipeline_wrote(connect: Connect, dataset: str) -> None:
    watcher, writer = connect(), connect()
    for written, outcome in ((3, None), (0, [b"PONG"])):
        exchange(writer, *puts(dataset, 3))
        assert watcher.call("WATCH", dataset) == b"OK"
        exchange(writer, *puts(dataset, written), *gets(dataset, 3) * 2)
        assert watcher.call("MULTI") == b"OK"
        assert watcher.call("PING") == b"QUEUED"
        assert watcher.call("EXEC") == outcome


def test_nothing_is_done_after_quit(wire: Wire, other: Wire, dataset: str) -> None:
    wire.send(*puts(dataset, 2), encode("QUIT"), encode("WCPUT", dataset, "r7", 1, "c", "v"))
    assert wire.read_to_end() == b":1\r\n:1\r\n+OK\r\n"
    assert rows_of(other, dataset, 10) == 2


# The others


def is_held_back(wire: Wire, identifier: int) -> bool:
    line: bytes = wire.call("CLIENT", "LIST", "ID", identifier)
    return b" flags=b " in line


def test_a_pause_holds_back_writes_and_what_stands_behind_them(
    connect: Connect, other: Wire, dataset: str
) -> None:
    wire = connect()
    identifier = wire.call("CLIENT", "ID")
    exchange(wire, *puts(dataset, 3), *gets(dataset, 3))
    new = [encode("WCPUT", dataset, f"s{row}", 1, "c", "v") for row in range(3)]
    pause = encode("CLIENT", "PAUSE", LONG_MS, "WRITE")
    wire.send(new[0], *gets(dataset, 3), pause, *gets(dataset, 3), *new[1:], *gets(dataset, 2))
    remembered = [row_of(0), row_of(1), row_of(2)]
    assert wire.read(8) == [1, *remembered, b"OK", *remembered]
    until(lambda: is_held_back(other, identifier))
    assert other.call("WCEXISTS", dataset, "s0", "s1", "s2") == 1
    assert not wire.has_something_to_read()
    assert other.call("CLIENT", "UNPAUSE") == b"OK"
    assert wire.read(4) == [1, 1, *remembered[:2]]
    assert other.call("WCEXISTS", dataset, "s0", "s1", "s2") == 3


def test_pipelines_of_several_clients_are_all_kept(connect: Connect, dataset: str) -> None:
    """Each sends its own before any reads, so that the server has several at a time."""
    wires, count = [connect() for _ in range(4)], 1_000
    for number, wire in enumerate(wires):
        wire.send(
            *(encode("WCPUT", dataset, "r", 1, f"{number}.{n}", n) for n in range(count)),
            *[encode("WCGET", dataset, "r", "COLUMNS", 1, f"{number}.{count - 1}")] * 2,
        )
    for number, wire in enumerate(wires):
        last = [b"0", [[b"%d.%d" % (number, count - 1), [[1, b"%d" % (count - 1)]]]]]
        assert wire.read(count + 2) == [1] * count + [last, last]
    (row,) = wires[0].call("WCSCAN", dataset, "COUNT", 10_000)[1]
    counted = Counter(column.split(b".")[0] for column, _ in row[1])
    assert counted == {b"%d" % number: count for number in range(len(wires))}


def test_large_answers_that_nobody_reads_wait_unasked(make_server: MakeServer) -> None:
    """What is remembered is at hand for all of a pipeline, and must not all be written at once."""
    server, asked = make_server(wc_row_cache_bytes="64mb"), 300
    value = b"x" * MEGABYTE
    with Wire(server) as other, Wire(server) as greedy:
        identifier = greedy.call("CLIENT", "ID")
        assert exchange(greedy, encode("WCPUT", "d", "r", 1, "c", value)) == [1]
        reply = [b"0", [[b"c", [[1, value]]]]]
        assert greedy.call("WCGET", "d", "r") == greedy.call("WCGET", "d", "r") == reply
        before = resident_bytes(server)
        greedy.send(*[encode("WCGET", "d", "r")] * asked)

        def waiting_bytes() -> int:
            told = other.call("CLIENT", "LIST", "ID", identifier)
            return int(re.findall(rb" omem=(\d+)", told)[0])

        until(lambda: waiting_bytes() > 0)
        assert other.call("PING") == b"PONG"
        assert waiting_bytes() < 8 * MEGABYTE
        for _ in range(asked):
            assert greedy.read(1) == [reply]
        assert resident_bytes(server) - before < 64 * MEGABYTE
