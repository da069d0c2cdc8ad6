"""The compiled readers against their twins in Python: same pages, same cuts, same budgets left."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import clock, compiled
from storage.cursors import START, Position
from storage.embedded import row_cache, row_reader, writing
from storage.embedded.ordered import Kind
from storage.embedded.rules import Budget, Rules
from storage.encoding import PLAIN, TOP_SEQUENCE, cell_key, row_prefix, value_header
from storage.errors import ColumnNameTooLong, CorruptData, RowKeyTooLong
from storage.memory.database import MemoryFamily
from storage.model import MAX_TIMESTAMP, NameRange, Packed, PageLimits, Selection, TimeRange
from storage.packed import unpacked
from storage.rocks import families

NO_COMPILER = "no compiler was there at install"
reading: Any = pytest.importorskip("storage.embedded._reading", reason=NO_COMPILER)
compiled_writing: Any = pytest.importorskip("storage.embedded._writing", reason=NO_COMPILER)
compiled_clock: Any = pytest.importorskip("storage._clock", reason=NO_COMPILER)
compiled_row_cache: Any = pytest.importorskip("storage.embedded._row_cache", reason=NO_COMPILER)

NOW = 1_000
COLUMNS = st.sampled_from([b"", b"\x00", b"\x00\x01", b"a", b"a\x00", b"ab", b"b", b"\xff"])
TIMES = st.one_of(st.integers(0, 40), st.integers(NOW - 20, NOW + 20), st.just(MAX_TIMESTAMP))
EXPIRIES = st.one_of(st.none(), st.integers(NOW - 2, NOW + 50), st.just(MAX_TIMESTAMP))
CELLS = st.lists(
    st.tuples(COLUMNS, TIMES, st.integers(0, 3), EXPIRIES, st.binary(max_size=6)), max_size=60
)
FEW = st.one_of(st.integers(0, 5), st.integers(0, 200))
SELECTIONS = st.builds(
    Selection,
    st.one_of(st.none(), st.sets(COLUMNS).map(lambda names: tuple(sorted(names)))),
    st.builds(
        NameRange,
        st.one_of(st.none(), COLUMNS),
        st.one_of(st.none(), COLUMNS),
        st.one_of(st.none(), COLUMNS),
    ),
    st.one_of(st.none(), st.integers(1, 4)),
    st.builds(TimeRange, st.one_of(st.just(0), TIMES), st.one_of(st.just(MAX_TIMESTAMP), TIMES)),
)
LIMITS = st.builds(PageLimits, cells=FEW, bytes=st.integers(0, 1_000), scan=st.integers(0, 100))
BOUNDS = st.tuples(st.integers(0, 200), st.integers(0, 5_000), st.integers(0, 20))
RULES = st.builds(
    Rules, st.just(NOW), st.integers(0, 4), st.sampled_from([0, 1, 15, 2_000, MAX_TIMESTAMP])
)


def family_of(cells: list[tuple[bytes, int, int, int | None, bytes]]) -> MemoryFamily:
    """A row called r, between two others."""
    family = MemoryFamily("d:d")
    for row in (b"q", b"r", b"s"):
        for column, timestamp, sequence, expires_at, value in cells:
            stored = value_header(expires_at) + value
            family.apply(Kind.PUT, cell_key(row, column, timestamp, sequence), stored)
    return family


def told(
    kind: type[Any], family: MemoryFamily, rules: Rules, selection: Selection, limits: PageLimits,
    count: int, position: Position, *, values: bool,
) -> Any:  # fmt: skip
    """What a reader of this kind gives, leaves of its budget, and knows of expiry."""
    budget = Budget(limits)
    reader = kind(family.scan(None), rules, selection, budget, values=values)
    columns, cut = reader.read(row_prefix(b"r"), count, position)
    left = (budget.cells, budget.bytes, budget.scan, budget.started)
    return columns, cut, left, reader.first_expiry, reader.expired


@settings(max_examples=400)
@given(CELLS, RULES, SELECTIONS, LIMITS, FEW, st.booleans())
def test_both_read_the_same_page_after_page(
    cells: list[tuple[bytes, int, int, int | None, bytes]],
    rules: Rules,
    selection: Selection,
    limits: PageLimits,
    count: int,
    values: bool,
) -> None:
    family, position = family_of(cells), START
    for _ in range(20):
        mine, theirs = (
            told(kind, family, rules, selection, limits, count, position, values=values)
            for kind in (reading.RowReader, row_reader.RowReader)
        )
        assert mine == theirs
        cut = mine[1]
        if cut is None or cut.position == position:
            break
        position = cut.position


@given(st.binary(max_size=30), st.binary(max_size=12))
def test_both_refuse_the_same_keys_and_values(tail: bytes, stored: bytes) -> None:
    family = MemoryFamily("d:d")
    family.apply(Kind.PUT, row_prefix(b"r") + tail, stored)
    outcomes = []
    for kind in (reading.RowReader, row_reader.RowReader):
        reader = kind(family.scan(None), Rules(NOW, 2, 0), Selection(), Budget(PageLimits()))
        try:
            outcomes.append(reader.read(row_prefix(b"r"), 5))
        except CorruptData as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def plainly(columns: Any) -> Any:
    return unpacked(columns) if isinstance(columns, Packed) else columns


@settings(max_examples=300)
@given(CELLS, RULES, SELECTIONS, LIMITS, FEW, st.booleans(), st.booleans(), st.data())
def test_both_read_the_same_rows_in_one_go(
    cells: list[tuple[bytes, int, int, int | None, bytes]],
    rules: Rules,
    selection: Selection,
    limits: PageLimits,
    count: int,
    values: bool,
    packed: bool,
    data: st.DataObject,
) -> None:
    family = family_of(cells)
    rows = data.draw(st.lists(st.sampled_from([b"q", b"r", b"s", b"none", b"\0", b"x" * 65_536])))
    bounds = dict(zip(("most_keys", "most_bytes", "most_expired"), data.draw(BOUNDS), strict=True))
    found = []
    for kind in (reading.RowReader, row_reader.RowReader):
        reader = kind(family.scan(None), rules, selection, Budget(limits), values=values)
        pages = reader.read_pages(iter(rows), count, packed=packed, **bounds)
        plain = [(row, plainly(columns), cut, first) for row, columns, cut, first in pages]
        found.append((plain, reader.expired))
    assert found[0] == found[1]


def test_the_compiled_reader_packs_what_is_to_be_packed() -> None:
    """A page that is not would be right as well, and slow."""
    cells: list[tuple[bytes, int, int, int | None, bytes]] = [
        (b"a\0b", 5, 0, None, b"1"),
        (b"a", 4, 0, None, b""),
        (b"a", 3, 0, None, b"3"),
    ]
    family = family_of(cells)
    for values, plain in ((True, [(4, b""), (3, b"3")]), (False, [4, 3])):
        reader = reading.RowReader(
            family.scan(None),
            Rules(NOW, 0, 0),
            Selection(versions=None),
            Budget(PageLimits()),
            values=values,
        )
        columns, cut = reader.read_packed(row_prefix(b"r"), 10)
        assert isinstance(columns, Packed)
        assert cut is None
        assert unpacked(columns) == [(b"a", plain), (b"a\0b", [(5, b"1")] if values else [5])]


class ListIterator:
    """Has the methods of an iterator of RocksDB's; like it, it must not be stepped when invalid."""

    def __init__(self, keys: list[bytes], failure: Exception | None = None) -> None:
        self._keys, self._place, self._failure = keys, 0, failure

    def seek(self, start: bytes) -> None:
        self._place = sum(key < start for key in self._keys)

    def key(self) -> bytes | None:
        return self._keys[self._place] if self._place < len(self._keys) else None

    def value(self) -> bytes:
        return b"v" + self._keys[self._place]

    def next(self) -> None:
        assert self.key() is not None
        self._place += 1

    def status(self) -> None:
        if self._failure is not None:
            raise self._failure


@pytest.mark.parametrize("walk", [reading.Walk, families.walk_in_python])
def test_a_walk_gives_all_from_its_start_and_then_nothing(walk: Any) -> None:
    found = walk(None, ListIterator([b"a", b"b", b"c"]), b"b", lambda error: error)
    assert list(found) == [(b"b", b"vb"), (b"c", b"vc")]
    assert next(found, None) is None
    assert next(found, None) is None


@pytest.mark.parametrize("walk", [reading.Walk, families.walk_in_python])
def test_a_walk_that_met_an_error_says_so(walk: Any) -> None:
    iterator = ListIterator([b"a"], OSError("a bad block"))
    found = walk(None, iterator, b"", lambda error: CorruptData(str(error)))
    assert next(found) == (b"a", b"va")
    with pytest.raises(CorruptData, match="a bad block"):
        next(found)
    assert next(found, None) is None


NAMES = st.one_of(st.binary(max_size=6), st.sampled_from([b"\0", b"a\0b\0", b"x" * 65_535]))


@given(
    st.lists(st.tuples(NAMES, st.one_of(st.none(), TIMES), NAMES, st.binary(max_size=5))),
    st.sampled_from([None, 5, MAX_TIMESTAMP]),
)
def test_both_make_the_same_puts(
    cells: list[tuple[bytes, int | None, bytes, bytes]], expires_at: int | None
) -> None:
    family = MemoryFamily("d:d")
    made = []
    for puts in (compiled_writing.puts, writing.puts_in_python):
        stamps = (b"%010d" % number for number in itertools.count())
        made.append(puts(family, cells, value_header(expires_at), stamps.__next__))
    assert made[0] == made[1]


@pytest.mark.parametrize("puts", [compiled_writing.puts, writing.puts_in_python])
def test_neither_takes_names_that_are_too_long(puts: Any) -> None:
    family, long = MemoryFamily("d:d"), b"x" * 65_536
    with pytest.raises(RowKeyTooLong):
        puts(family, [(long, 1, b"c", b"v")], PLAIN, lambda: b"")
    with pytest.raises(ColumnNameTooLong):
        puts(family, [(b"r", 1, long, b"v")], PLAIN, lambda: b"")


@pytest.mark.parametrize(
    "cell", [(None, 1, b"c", b"v"), (b"r", 1, None, b"v"), (b"r", 1, b"", None)]
)
def test_a_cell_of_nothing_is_refused_and_not_read(cell: Any) -> None:
    with pytest.raises(TypeError):
        compiled_writing.puts(MemoryFamily("d:d"), [cell], PLAIN, lambda: b"")


@given(
    st.integers(0, 2_000),
    st.lists(st.tuples(st.integers(0, 2_000), st.sampled_from(["now", "stamp", "last stamp"]))),
)
def test_both_clocks_tell_the_same(stored_ms: int, readings: list[tuple[int, str]]) -> None:
    walls = [0]
    mine, theirs = (
        kind(stored_ms, lambda: walls[-1] * 1_000_000 + 7)
        for kind in (compiled_clock.HybridClock, clock.HybridClock)
    )
    for wall_ms, question in readings:
        walls.append(wall_ms)
        if question == "last stamp":
            mine.sequence = theirs.sequence = TOP_SEQUENCE
        tell = "now" if question == "now" else "stamp"
        assert getattr(mine, tell)() == getattr(theirs, tell)()
        assert mine.sequence == theirs.sequence
        assert mine.needs_reservation == theirs.needs_reservation
        assert mine.next_reservation() == theirs.next_reservation()
        mine.reserved_ms = theirs.reserved_ms = theirs.last_ms + wall_ms % 2


@pytest.mark.parametrize(
    ("setting", "expected"), [("1", set()), ("0", {"storage.embedded._reading"})]
)
def test_the_environment_may_do_without(setting: str, expected: set[str]) -> None:
    program = "import storage.embedded.reader, storage.compiled as c; print(*sorted(c.IN_USE))"
    environment = {**os.environ, compiled.PURE_VARIABLE: setting}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == expected


# What is remembered of rows. The twins differ in what they forget first, and in an answer's size.

ROW_CACHES = pytest.mark.parametrize(
    "module", [compiled_row_cache, row_cache], ids=["compiled", "python"]
)
PLENTY = 10**9
FOREVER = 2**70


class Asked:
    """As much of a dataset as a row cache needs."""

    def __init__(self) -> None:
        self.cache_number = 0


class Remembered:
    """What a row cache was told and has not been told to forget: what it may answer.

    If the cache has room for everything, it is also what it must answer.
    """

    def __init__(self, *, is_all: bool) -> None:
        self.is_all = is_all
        self.rows: dict[tuple[object, bytes], dict[int, tuple[int, bytes]]] = {}

    def find(self, place: tuple[object, bytes], query: int, now: int) -> bytes | None:
        right_until, value = self.rows.get(place, {}).get(query, (now, None))
        if right_until >= now:
            return value
        if self.is_all:
            del self.rows[place]  # what has expired takes its row along
        return None

    def keep(self, place: tuple[object, bytes], query: int, value: bytes, until: int) -> None:
        answers = self.rows.setdefault(place, {})
        if self.is_all and len(answers) == row_cache.MOST_ANSWERS:
            answers.clear()
        answers[query] = (until, value)

    def bytes(self, overhead: int) -> int:
        return sum(
            overhead + len(row) + len(value)
            for (_, row), answers in self.rows.items()
            for _, value in answers.values()
        )


class Compared:
    """A row cache with room for everything or for little, and what it may answer."""

    def __init__(self, module: Any, limit_bytes: int) -> None:
        self.overhead: int = module.OVERHEAD_BYTES
        self.cache = module.RowCache(limit_bytes)
        self.model = Remembered(is_all=limit_bytes == PLENTY)
        self.datasets = [Asked() for _ in range(3)]
        self.eras: list[object] = [object() for _ in self.datasets]
        """What was kept of a dataset before it was forgotten is there, but nobody's any more."""
        self.numbers = itertools.count()
        self.now = 0

    def place(self, dataset: int, row: bytes) -> tuple[object, bytes]:
        return self.eras[dataset], row

    def ask(self, dataset: int, row: bytes, query: int, size: int, lasts: int) -> None:
        """As a reader does: what is not known is read, and kept for so many milliseconds."""
        found = self.cache.find(self.datasets[dataset], row, query, self.now)
        expected = self.model.find(self.place(dataset, row), query, self.now)
        assert found == expected or (found is None and not self.model.is_all)
        if found is None:
            value, until = b"%d " % next(self.numbers) + b"x" * size, self.now + lasts
            self.model.keep(self.place(dataset, row), query, value, until)
            self.cache.keep(self.datasets[dataset], row, query, value, until)

    def ask_several(self, dataset: int, rows: list[bytes], query: int, most_bytes: int) -> None:
        figures = self.cache.hits, self.cache.misses
        asked = iter(rows)
        found = self.cache.find_first(self.datasets[dataset], asked, query, self.now, most_bytes)
        expected: list[bytes] = []
        for row in rows:
            value = self.model.find(self.place(dataset, row), query, self.now)
            if value is None or sum(map(len, expected)) > most_bytes:
                break
            expected.append(value)
        assert found == expected[: len(found)]
        assert len(found) == len(expected) or not self.model.is_all
        assert (self.cache.hits, self.cache.misses) == (figures[0] + len(found), figures[1])

    def forget(self, dataset: int, rows: list[bytes], *, as_cells: bool) -> None:
        if as_cells:
            cells = [(row, None, b"c", b"v") for row in rows]
            self.cache.forget_cells(self.datasets[dataset], cells)
        for row in rows:
            self.model.rows.pop(self.place(dataset, row), None)
            if not as_cells:
                self.cache.forget(self.datasets[dataset], row)

    def forget_dataset(self, dataset: int) -> None:
        self.cache.forget_dataset(self.datasets[dataset])
        self.eras[dataset] = object()

    def clear(self) -> None:
        self.cache.clear()
        self.model = Remembered(is_all=self.model.is_all)
        assert (len(self.cache), self.cache.bytes) == (0, 0)

    def limit(self, limit_bytes: int) -> None:
        if not self.model.is_all:
            self.cache.limit_bytes = limit_bytes
            assert self.cache.limit_bytes == limit_bytes

    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds

    def check(self) -> None:
        held = self.cache.bytes
        assert 0 <= held <= self.cache.limit_bytes
        assert (held == 0) == (len(self.cache) == 0)
        assert len(self.cache) * self.overhead <= held
        if self.model.is_all:
            assert held == self.model.bytes(self.overhead)
            assert len(self.cache) == len(self.model.rows)


SOME_ROWS = st.sampled_from([b"", b"a", b"b", b"c", b"d" * 300])
SOME_QUERIES = st.one_of(st.integers(1, 3), st.integers(1, row_cache.MOST_ANSWERS + 3))
SOME_DATASETS = st.integers(0, 2)
STEPS = st.lists(
    st.one_of(
        st.builds(
            lambda *given: ("ask", given, {}),
            SOME_DATASETS, SOME_ROWS, SOME_QUERIES, st.sampled_from([0, 1, 100, 600]),
            st.sampled_from([FOREVER, FOREVER, 5, 0]),
        ),
        st.builds(
            lambda *given: ("ask_several", given, {}),
            SOME_DATASETS, st.lists(SOME_ROWS, max_size=6), SOME_QUERIES,
            st.sampled_from([0, 4, 150, PLENTY]),
        ),
        st.builds(
            lambda dataset, rows, as_cells: ("forget", (dataset, rows), {"as_cells": as_cells}),
            SOME_DATASETS, st.lists(SOME_ROWS, max_size=3), st.booleans(),
        ),
        st.builds(lambda dataset: ("forget_dataset", (dataset,), {}), SOME_DATASETS),
        st.just(("clear", (), {})),
        st.builds(
            lambda most: ("limit", (most,), {}), st.sampled_from([0, 1, 600, 1_000, 3_000, 9_000])
        ),
        st.builds(lambda ms: ("wait", (ms,), {}), st.sampled_from([1, 5, 6])),
    ),
    max_size=60,
)  # fmt: skip


@ROW_CACHES
@pytest.mark.parametrize("limit_bytes", [PLENTY, 9_000, 1_000], ids=["plenty", "some", "little"])
@given(steps=STEPS)
def test_a_row_cache_answers_what_it_was_told_and_nothing_stale(
    module: Any, limit_bytes: int, steps: list[tuple[str, tuple[Any, ...], dict[str, Any]]]
) -> None:
    compared = Compared(module, limit_bytes)
    for name, arguments, options in steps:
        getattr(compared, name)(*arguments, **options)
        compared.check()
    compared.limit(0)
    compared.check()


@pytest.fixture
def asked() -> Asked:
    return Asked()


def fill(cache: Any, asked: Asked, rows: range, query: int = 1) -> None:
    for row in rows:
        cache.keep(asked, b"%d" % row, query, b"%d" % row, FOREVER)


def known(cache: Any, asked: Asked, rows: range) -> list[int]:
    return [row for row in rows if cache.find(asked, b"%d" % row, 1, 0) is not None]


@ROW_CACHES
@pytest.mark.parametrize("at_once", [False, True])
def test_rows_in_use_outlive_those_that_are_not(module: Any, asked: Asked, at_once: bool) -> None:
    room, cache = 100, module.RowCache(100 * (module.OVERHEAD_BYTES + 6))
    fill(cache, asked, range(room))
    assert len(cache) == room
    used = range(0, room, 2)
    if at_once:
        rows = [b"%d" % row for row in used]
        assert cache.find_first(asked, iter(rows), 1, 0, PLENTY) == rows
    else:
        assert known(cache, asked, used) == list(used)
    fill(cache, asked, range(room, room + room // 2 - 1))
    assert known(cache, asked, used) == list(used)
    assert known(cache, asked, range(room)) != list(range(room))
    # And those that are not used again go after all.
    fill(cache, asked, range(1_000, 1_000 + 4 * room))
    assert known(cache, asked, range(room)) == []


@ROW_CACHES
def test_a_row_cache_of_many_datasets_forgets_each_alone(module: Any) -> None:
    cache, datasets = module.RowCache(PLENTY), [Asked() for _ in range(300)]
    for asked in datasets:
        fill(cache, asked, range(3))
    for asked in datasets[::2]:
        cache.forget_dataset(asked)
    found = [known(cache, asked, range(3)) for asked in datasets]
    assert found == [[], [0, 1, 2]] * 150
    for asked in datasets:
        fill(cache, asked, range(5, 6), query=2)
        assert known(cache, asked, range(5, 6)) == []
    cache.limit_bytes = 0
    assert (len(cache), cache.bytes) == (0, 0)
    cache.limit_bytes = PLENTY
    for asked in datasets:
        fill(cache, asked, range(3))
    assert len(cache) == 900


@ROW_CACHES
def test_what_is_too_large_is_not_kept(module: Any, asked: Asked) -> None:
    cache = module.RowCache(8_000)
    for size, kept in ((1_000, True), (1_001, False)):
        cache.keep(asked, b"%d" % size, 1, b"v" * size, FOREVER)
        assert (cache.find(asked, b"%d" % size, 1, 0) is not None) is kept
    cache.keep(asked, b"r" * 20_000, 1, b"v", FOREVER)
    assert cache.bytes <= 8_000


@pytest.mark.parametrize(
    "arguments",
    [
        (None, 1, b"v", 1), ("r", 1, b"v", 1), (b"r", 1, None, 1), (b"r", 1, "v", 1),
        (b"r", -1, b"v", 1), (b"r", 1, b"v", -1),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_refused(arguments: Any, asked: Asked) -> None:
    cache = compiled_row_cache.RowCache(PLENTY)
    with pytest.raises((TypeError, OverflowError)):
        cache.keep(asked, *arguments)
    assert (len(cache), cache.bytes) == (0, 0)
    fill(cache, asked, range(3))
    assert known(cache, asked, range(3)) == [0, 1, 2]
