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
from storage.embedded import row_reader, writing
from storage.embedded.ordered import Kind
from storage.embedded.rules import Budget, Rules
from storage.encoding import PLAIN, TOP_SEQUENCE, cell_key, row_prefix, value_header
from storage.errors import ColumnNameTooLong, CorruptData, RowKeyTooLong
from storage.memory.database import MemoryFamily
from storage.model import MAX_TIMESTAMP, NameRange, PageLimits, Selection, TimeRange
from storage.rocks import families

NO_COMPILER = "no compiler was there at install"
reading: Any = pytest.importorskip("storage.embedded._reading", reason=NO_COMPILER)
compiled_writing: Any = pytest.importorskip("storage.embedded._writing", reason=NO_COMPILER)
compiled_clock: Any = pytest.importorskip("storage._clock", reason=NO_COMPILER)

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


class ListIterator:
    """Has the methods of an iterator of RocksDB's; like it, it must not be stepped when invalid."""

    def __init__(self, keys: list[bytes], failure: Exception | None = None) -> None:
        self._keys, self._place, self._failure = keys, 0, failure

    def seek(self, start: bytes) -> None:
        self._place = sum(key < start for key in self._keys)

    def valid(self) -> bool:
        return self._place < len(self._keys)

    def key(self) -> bytes:
        return self._keys[self._place]

    def value(self) -> bytes:
        return b"v" + self._keys[self._place]

    def next(self) -> None:
        assert self.valid()
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
