"""Cursors: a position comes back as it went, for what it was made for and for nothing else.

Whatever else a client sends is an invalid cursor: never another error, never a position.
"""

from __future__ import annotations

import base64
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from storage.cursors import FINISHED, START, Binding, Position
from storage.encoding import cell_suffix
from storage.errors import InvalidCursor
from storage.model import ALL_NAMES, EVERYTHING, NameRange, Selection, TimeRange

BINDING = Binding(b"row", (b"d", b"r"), Selection())
MIDDLE = Position(b"c\x00\x00" + cell_suffix(1_700_000_000_000, 0), 3, 4)
CURSOR = BINDING.encode(MIDDLE)

NAMES = st.binary(max_size=8)
MAYBE_NAMES = st.one_of(st.none(), NAMES)
RANGES = st.builds(NameRange, MAYBE_NAMES, MAYBE_NAMES, MAYBE_NAMES)
TIMES = st.builds(TimeRange, st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
COLUMNS = st.one_of(st.none(), st.lists(NAMES, max_size=3).map(lambda names: tuple(sorted(names))))
SELECTIONS = st.builds(Selection, COLUMNS, RANGES, st.one_of(st.none(), st.integers(1)), TIMES)
BOUNDS = st.builds(Position, st.binary(max_size=40))
CELLS = st.builds(
    lambda names, suffix, returned, live: Position(names + b"\0\0" + suffix, returned, live),
    st.binary(max_size=40),
    st.binary(min_size=10, max_size=10),
    st.integers(0, 2**64 - 2),
    st.integers(0, 2**64 - 1),
)

OTHERS = {
    "kind": Binding(b"columns", (b"d", b"r"), Selection()),
    "dataset": Binding(b"row", (b"e", b"r"), Selection()),
    "row": Binding(b"row", (b"d", b"s"), Selection()),
    "no row": Binding(b"row", (b"d",), Selection()),
    "a letter from dataset to row": Binding(b"row", (b"", b"dr"), Selection()),
    "columns": Binding(b"row", (b"d", b"r"), Selection(columns=(b"c",))),
    "no columns": Binding(b"row", (b"d", b"r"), Selection(columns=())),
    "prefix": Binding(b"row", (b"d", b"r"), Selection(names=NameRange(prefix=b""))),
    "from": Binding(b"row", (b"d", b"r"), Selection(names=NameRange(start=b""))),
    "to": Binding(b"row", (b"d", b"r"), Selection(names=NameRange(stop=b""))),
    "versions": Binding(b"row", (b"d", b"r"), Selection(versions=2)),
    "all versions": Binding(b"row", (b"d", b"r"), EVERYTHING),
    "oldest": Binding(b"row", (b"d", b"r"), Selection(times=TimeRange(oldest=1))),
    "newest": Binding(b"row", (b"d", b"r"), Selection(times=TimeRange(newest=1))),
    "rows of a scan": Binding(b"row", (b"d", b"r"), Selection(), ALL_NAMES),
}


@settings(deadline=None)
@given(NAMES, NAMES, SELECTIONS, st.one_of(st.none(), RANGES), st.one_of(BOUNDS, CELLS))
def test_a_position_comes_back(
    dataset: bytes, row: bytes, selection: Selection, rows: NameRange | None, position: Position
) -> None:
    binding = Binding(b"kind", (dataset, row), selection, rows)
    cursor = binding.encode(position)
    assert re.fullmatch(rb"[A-Za-z0-9_-]{2,}", cursor)
    assert Binding(b"kind", (dataset, row), selection, rows).decode(cursor) == position


def test_0_is_the_end_when_it_is_given_and_the_beginning_when_it_is_taken() -> None:
    assert BINDING.encode(None) == FINISHED == b"0"
    assert BINDING.decode(b"0") == START


def test_the_beginning_has_a_cursor_of_its_own() -> None:
    cursor = BINDING.encode(START)
    assert cursor != FINISHED
    assert BINDING.decode(cursor) == START


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_cursor_of_something_else_is_invalid(other: Binding) -> None:
    with pytest.raises(InvalidCursor):
        other.decode(CURSOR)
    assert other.decode(other.encode(MIDDLE)) == MIDDLE


def test_no_two_of_these_are_taken_for_one_another() -> None:
    assert len({binding.encode(START) for binding in OTHERS.values()}) == len(OTHERS)


@settings(deadline=None)
@given(SELECTIONS, SELECTIONS)
@example(Selection(columns=(b"a", b"b")), Selection(columns=(b"ab",)))
@example(Selection(columns=(b"a", b"")), Selection(columns=(b"a",)))
def test_other_options_are_other_cursors(one: Selection, other: Selection) -> None:
    cursors = [Binding(b"row", (b"d", b"r"), chosen).encode(START) for chosen in (one, other)]
    assert (cursors[0] == cursors[1]) == (one == other)


def test_a_column_option_is_not_taken_for_a_name_range() -> None:
    named = Selection(columns=(b"names", b"p", b"s", b"t"))
    ranged = Selection(names=NameRange(b"p", b"s", b"t"))
    assert Binding(b"k", (), named).encode(START) != Binding(b"k", (), ranged).encode(START)


@pytest.mark.parametrize(
    "garbage",
    [b"", b"1", b"00", b"=", b"0=", b"?", b"\x00", b"\xff\xfe", b"*", CURSOR + b"A", b" " + CURSOR],
)
def test_garbage_is_an_invalid_cursor(garbage: bytes) -> None:
    with pytest.raises(InvalidCursor):
        BINDING.decode(garbage)


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(base64.urlsafe_b64encode)))
def test_any_bytes_are_an_invalid_cursor(garbage: bytes) -> None:
    if garbage != FINISHED:
        with pytest.raises(InvalidCursor):
            BINDING.decode(garbage)


@pytest.mark.parametrize("kept", range(1, len(CURSOR)))
def test_a_cursor_cut_short_is_invalid(kept: int) -> None:
    with pytest.raises(InvalidCursor):
        BINDING.decode(CURSOR[:kept])


@settings(deadline=None)
@given(st.integers(0, len(CURSOR) - 1), st.integers(0, 255))
def test_a_cursor_with_another_letter_is_no_other_position(place: int, letter: int) -> None:
    """The last letter has bits that mean nothing: two may read the same."""
    altered = CURSOR[:place] + bytes([letter]) + CURSOR[place + 1 :]
    try:
        assert BINDING.decode(altered) == MIDDLE
    except InvalidCursor:
        assert altered != CURSOR


@pytest.mark.parametrize("bound", [b"", b"\x00" * 11, b"c\x00\x01" + b"\x00" * 9, b"c" * 20])
def test_a_cell_that_no_key_ends_in_is_invalid(bound: bytes) -> None:
    assert BINDING.decode(BINDING.encode(Position(bound))) == Position(bound)
    with pytest.raises(InvalidCursor):
        BINDING.decode(BINDING.encode(Position(bound, 0)))
