"""What is compared with redis-server: P1 to P9 of the targets, and Zipf's mixes, in both languages.

A group of works has servers and data of its own. Values have 40 bytes. Numbers, and with them rows,
are random. In P4 the event is the member of the sorted set, 40 bytes as well, and unique, so that
the log grows by each call. redis-benchmark has random numbers but no rising ones: the score is
random, so ZADD inserts where WCPUT appends. Each round writes a log of its own, or later rounds
would meet a longer one: {round} in a word is its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.load import NUMBER, Call, Load, Numbers, Words, call
from benchmarks.results import Target, Unit
from benchmarks.servers import Family, Variant
from benchmarks.sitting import CELLS_A_ROW, Scale

VALUE = "x" * 40
ROW = f"row:{NUMBER}"
DATASET = "bench"
UNIQUE = 2**31 - 1
KINDS = ("click", "view", "search", "save", "share")
VERSIONS = CELLS_A_ROW // len(KINDS)
FIRST_MOMENT_MS = 1_700_000_000_000
FIELDS = [f"field:{place:02}" for place in range(CELLS_A_ROW)]
ZIPF_FIELDS = FIELDS[:10]
HOT_ROWS = 2_000
"""As many rows of CELLS_A_ROW cells fit well into the default row cache."""


@dataclass(frozen=True, slots=True)
class Work:
    """`loads` by family. Compared are calls a second, or for Unit.TIME the 99th percentiles."""

    key: str
    what: str
    against: str
    loads: Mapping[Family, Load]
    target: Target | None
    variant: Variant = Variant.DEFAULT
    unit: Unit = Unit.RATE
    warmed: bool = False
    """Whether everything is read once before it is measured."""


@dataclass(frozen=True, slots=True)
class Group:
    """Works on the same servers, which are first given `fill_count` calls of `fill`."""

    works: list[Work]
    fill: Mapping[Family, Call] = field(default_factory=dict)
    fill_count: int = 0


def both(colonnade: Load, redis: Load) -> Mapping[Family, Load]:
    return {Family.COLONNADE: colonnade, Family.REDIS: redis}


def filling(colonnade: Call, redis: Call) -> Mapping[Family, Call]:
    return {Family.COLONNADE: colonnade, Family.REDIS: redis}


PUT = call("WCPUT", DATASET, ROW, "*", "column", VALUE)
SET = call("HSET", ROW, "column", VALUE)
GET = call("WCGET", DATASET, ROW, "COLUMNS", "1", "column")
GET_ROW = call("WCGET", DATASET, ROW)
GET_ALL = call("HGETALL", ROW)


def weighted(of: Call, weight: int) -> Call:
    return Call(of.commands, weight)


def groups(scale: Scale) -> list[Group]:
    """All of them, in the order of their keys."""
    return [
        writes(scale),
        events(scale),
        single_cells(scale),
        pages(scale),
        latency(scale),
        durable(scale),
        zipf(scale),
    ]


def writes(scale: Scale) -> Group:
    def work(key: str, what: str, pipeline: int, calls: int, target: float) -> Work:
        count = scale.count(calls)
        loads = both(
            Load((PUT,), count, scale.rows, pipeline, simple=True),
            Load((SET,), count, scale.rows, pipeline, simple=True),
        )
        return Work(key, f"WCPUT one cell, {what}", "HSET", loads, Target(target))

    return Group(
        [
            work("P1", "no pipeline", 1, 200_000, 0.95),
            work("P2", "pipeline 16", 16, 800_000, 0.35),
            work("P3", "pipeline 64", 64, 1_000_000, 0.35),
            growing_log(scale),
        ]
    )


def growing_log(scale: Scale) -> Work:
    append = call("WCPUT", DATASET, "log:{round}", "*", "event", VALUE)
    add = call("ZADD", "log:{round}", NUMBER, NUMBER + VALUE[len(NUMBER) :])
    count = scale.count(500_000)
    loads = both(
        Load((append,), count, UNIQUE, 16, simple=True),
        Load((add,), count, UNIQUE, 16, simple=True),
    )
    return Work("P4", "WCPUT to one log, pipeline 16", "ZADD", loads, Target(0.90))


def events(scale: Scale) -> Group:
    """Newest events of each kind: a row of Colonnade is five sorted sets of Redis."""
    read = call("WCGET", DATASET, ROW, "COLUMNS", "5", *KINDS, "VERSIONS", str(VERSIONS))
    newest = ("0", str(VERSIONS - 1), "WITHSCORES")
    ranges = Call(tuple(("ZREVRANGE", f"{ROW}:{kind}", *newest) for kind in KINDS))
    count = scale.count(60_000)
    work = Work(
        "P5",
        f"WCGET 5 columns x {VERSIONS} versions, uncached",
        "five ZREVRANGE in one pipeline",
        both(Load((read,), count, scale.wide_rows), Load((ranges,), count, scale.wide_rows)),
        Target(1.2),
        Variant.UNCACHED,
        warmed=True,
    )
    return Group([work], filling(put_events(), add_events()), scale.wide_rows)


def moments() -> list[str]:
    return [str(FIRST_MOMENT_MS + 1_000 * version) for version in range(VERSIONS)]


def put_events() -> Call:
    cells = [word for kind in KINDS for moment in moments() for word in (moment, kind, VALUE)]
    return call("WCPUT", DATASET, ROW, *cells)


def add_events() -> Call:
    commands = []
    for kind in KINDS:
        members = [word for moment in moments() for word in (moment, moment + VALUE[len(moment) :])]
        commands.append(("ZADD", f"{ROW}:{kind}", *members))
    return Call(tuple(commands))


def cached_and_not(
    key: str,
    what: str,
    against: str,
    colonnade: tuple[Call, ...],
    redis: tuple[Call, ...],
    load: Load,
    targets: tuple[float | None, float | None],
    cached_rows: int,
) -> list[Work]:
    """The same work with and without the row cache; `load` says how, for both languages.

    Where nothing is written, all that is asked for was read once before.
    """
    works = []
    for variant, bound in zip((Variant.UNCACHED, Variant.CACHED), targets, strict=True):
        rows = cached_rows if variant is Variant.CACHED else load.keyspace
        loads = both(like(load, colonnade, rows), like(load, redis, rows))
        target = None if bound is None else Target(bound)
        warmed = len(colonnade) == 1
        named = f"{what}, {variant.value}"
        works.append(Work(key, named, against, loads, target, variant, warmed=warmed))
    return works


def like(load: Load, calls: tuple[Call, ...], keyspace: int) -> Load:
    return Load(
        calls, load.count, keyspace, load.pipeline, load.connections, load.numbers, load.simple
    )


def single_cells(scale: Scale) -> Group:
    load = Load((), scale.count(500_000), scale.rows, 16, simple=True)
    works = cached_and_not(
        "P6",
        "WCGET 1 column, newest, pipeline 16",
        "HGETALL of one field",
        (GET,),
        (GET_ALL,),
        load,
        (0.25, 0.6),
        scale.rows,
    )
    return Group(works, filling(PUT, SET), scale.rows)


def pages(scale: Scale) -> Group:
    load = Load((), scale.count(100_000), scale.wide_rows, 16)
    works = cached_and_not(
        "P7",
        f"WCGET page of {CELLS_A_ROW} columns, pipeline 16",
        f"HGETALL of {CELLS_A_ROW} fields",
        (GET_ROW,),
        (GET_ALL,),
        load,
        (0.45, 2.0),
        min(HOT_ROWS, scale.wide_rows),
    )
    return Group(works, row_of(FIELDS), scale.wide_rows)


def row_of(fields: list[str]) -> Mapping[Family, Call]:
    cells = [word for name in fields for word in ("*", name, VALUE)]
    pairs = [word for name in fields for word in (name, VALUE)]
    return filling(call("WCPUT", DATASET, ROW, *cells), call("HSET", ROW, *pairs))


MIXED_CALLS = (weighted(GET, 1), weighted(PUT, 1))


def latency(scale: Scale) -> Group:
    count = scale.count(200_000)
    loads = both(
        Load(MIXED_CALLS, count, scale.rows),
        Load((weighted(GET_ALL, 1), weighted(SET, 1)), count, scale.rows),
    )
    what = "p99, half WCGET, half WCPUT, no pipeline"
    target = Target(1.5, at_least=False)
    work = Work("P8", what, "p99, HGETALL and HSET", loads, target, unit=Unit.TIME)
    return Group([work], filling(PUT, SET), scale.rows)


def durable(scale: Scale) -> Group:
    count = scale.count(100_000)
    loads = both(
        Load((PUT,), count, scale.rows, simple=True), Load((SET,), count, scale.rows, simple=True)
    )
    what, against = "WCPUT, appendfsync always", "HSET, appendfsync always"
    return Group([Work("P9", what, against, loads, Target(1.0), Variant.DURABLE)])


def zipf(scale: Scale) -> Group:
    """Rows of ten fields, read whole, written a field at a time, some far oftener than others."""
    puts = [("WCPUT", DATASET, ROW, "*", name, VALUE) for name in ZIPF_FIELDS]
    sets = [("HSET", ROW, name, VALUE) for name in ZIPF_FIELDS]
    load = Load((), scale.count(300_000), scale.rows, 16, numbers=Numbers.ZIPF)
    works = []
    for reads in (90, 50):
        works += cached_and_not(
            f"Z{reads}",
            f"Zipf, {reads}% reads, pipeline 16",
            f"{reads}% HGETALL, {100 - reads}% HSET",
            mix(GET_ROW, puts, reads),
            mix(GET_ALL, sets, reads),
            load,
            (None, None),
            scale.rows,
        )
    return Group(works, row_of(ZIPF_FIELDS), scale.rows)


def mix(read: Call, writes: Sequence[Words], reads_percent: int) -> tuple[Call, ...]:
    """Reads, and each of the writes as often as the others."""
    each = 100 - reads_percent
    return (
        weighted(read, reads_percent * len(writes)),
        *[Call((words,), each) for words in writes],
    )
