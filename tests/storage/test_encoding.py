"""Keys and values of cells: bytes worked out by hand, and what must hold for any bytes.

The vectors are not made by the code under test. They are a promise to data already written: a
change here is a new format, not a mended test. Grammar: docs/disk-format.md.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from storage.encoding import (
    TOP_SEQUENCE,
    after,
    cell_key,
    column_prefix,
    end_of,
    escape,
    first_at,
    name_bounds,
    prefix_end,
    row_of,
    row_prefix,
    row_prefix_of,
    split_key,
    split_value,
    stamp_of,
    timestamp_of,
    unescape,
    value_header,
)
from storage.errors import ColumnNameTooLong, CorruptData, RowKeyTooLong
from storage.model import MAX_TIMESTAMP, NameRange

AWKWARD_BYTES = st.lists(st.sampled_from(b"\x00\x01\x02a\xfe\xff"), max_size=6).map(bytes)
NAMES = st.one_of(AWKWARD_BYTES, st.binary(max_size=20))
TIMESTAMPS = st.one_of(st.sampled_from([0, 1, MAX_TIMESTAMP]), st.integers(0, MAX_TIMESTAMP))
SEQUENCES = st.one_of(st.sampled_from([0, 1, TOP_SEQUENCE]), st.integers(0, TOP_SEQUENCE))
CELLS = st.tuples(NAMES, NAMES, TIMESTAMPS, SEQUENCES)
MAYBE_NAMES = st.one_of(st.none(), AWKWARD_BYTES)
RANGES = st.builds(NameRange, MAYBE_NAMES, MAYBE_NAMES, MAYBE_NAMES)

untimed = settings(deadline=None)

KEYS = [
    (b"", b"", 0, 0, "0000 0000 ffffffffffffffff ffff"),
    (b"", b"", MAX_TIMESTAMP, 65_535, "0000 0000 8000000000000000 0000"),
    (b"r", b"c", 0, 1, "72 0000 63 0000 ffffffffffffffff fffe"),
    (b"r", b"c", 1, 0, "72 0000 63 0000 fffffffffffffffe ffff"),
    (b"r", b"c", 256, 256, "72 0000 63 0000 fffffffffffffeff feff"),
    (b"row", b"col", 1_700_000_000_000, 0, "726f77 0000 636f6c 0000 fffffe74301a97ff ffff"),
    (b"row", b"col", 1_700_000_000_000, 65_535, "726f77 0000 636f6c 0000 fffffe74301a97ff 0000"),
    (b"\x00", b"", 0, 0, "0001 0000 0000 ffffffffffffffff ffff"),
    (b"", b"\x00", 0, 0, "0000 0001 0000 ffffffffffffffff ffff"),
    (b"\x00\x00", b"\x00\x01", 0, 0, "00010001 0000 000101 0000 ffffffffffffffff ffff"),
    (b"a\x00b", b"c", 0, 0, "61000162 0000 63 0000 ffffffffffffffff ffff"),
    (b"a", b"b\x00c", 0, 0, "61 0000 62000163 0000 ffffffffffffffff ffff"),
    (b"\xff", b"\xff\xff", 0, 0, "ff 0000 ffff 0000 ffffffffffffffff ffff"),
]

VALUES = [
    (None, b"", "00"),
    (None, b"v", "00 76"),
    (None, b"\x00\x01\xff", "00 0001ff"),
    (0, b"", "01 0000000000000000"),
    (1, b"\x00", "01 0000000000000001 00"),
    (1_700_000_000_000, b"v", "01 0000018bcfe56800 76"),
    (MAX_TIMESTAMP, b"\xff", "01 7fffffffffffffff ff"),
]

MALFORMED_KEYS = [
    "",
    "61",
    "6100",
    "61 0000",
    "61 0000 62",
    "61 0000 62 0000",
    "61 0000 62 0000 ffffffffffffffff ff",
    "61 0000 62 ffffffffffffffff ffff",
    "61 0000 62 0000 63 0000 ffffffffffffffff ffff",
    "61 0000 62 0000 00 ffffffffffffffff ffff",
    "61 0000 62 0000 7fffffffffffffff ffff",
    "61 0002 0000 62 0000 ffffffffffffffff ffff",
    "61 0000 00ff 0000 ffffffffffffffff ffff",
]

MALFORMED_VALUES = ["", "02", "03 0000000000000000 76", "80", "ff 76", "01", "01 00000000000000"]


@pytest.mark.parametrize(("row", "column", "timestamp", "sequence", "key"), KEYS)
def test_a_key_has_these_bytes(
    row: bytes, column: bytes, timestamp: int, sequence: int, key: str
) -> None:
    stored = bytes.fromhex(key)
    assert cell_key(row, column, timestamp, sequence) == stored
    assert split_key(stored) == (row, column, timestamp, sequence)


@pytest.mark.parametrize(("expires_at", "payload", "value"), VALUES)
def test_a_value_has_these_bytes(expires_at: int | None, payload: bytes, value: str) -> None:
    stored = bytes.fromhex(value)
    assert value_header(expires_at) + payload == stored
    assert split_value(stored) == (expires_at, payload)


@pytest.mark.parametrize("key", MALFORMED_KEYS)
def test_what_is_no_key_is_corrupt(key: str) -> None:
    with pytest.raises(CorruptData):
        split_key(bytes.fromhex(key))


@pytest.mark.parametrize("value", MALFORMED_VALUES)
def test_what_is_no_value_is_corrupt(value: str) -> None:
    with pytest.raises(CorruptData):
        split_value(bytes.fromhex(value))


@untimed
@given(st.integers(2, 255), st.binary(max_size=20))
def test_a_flag_that_this_release_does_not_know_is_corrupt(flags: int, rest: bytes) -> None:
    with pytest.raises(CorruptData):
        split_value(bytes([flags]) + rest)


@untimed
@given(CELLS)
def test_a_key_gives_back_what_it_was_made_of(cell: tuple[bytes, bytes, int, int]) -> None:
    row, column, timestamp, sequence = cell
    key = cell_key(row, column, timestamp, sequence)
    assert split_key(key) == cell
    assert (timestamp_of(key), stamp_of(key)) == (timestamp, (timestamp, sequence))
    assert row_prefix_of(key) == row_prefix(row)
    assert row_of(row_prefix_of(key)) == row


@st.composite
def damaged_keys(draw: st.DrawFn) -> bytes:
    """A key in which a few bytes were replaced by others, by none or by more."""
    key = cell_key(*draw(CELLS))
    start = draw(st.integers(0, len(key)))
    return key[:start] + draw(AWKWARD_BYTES) + key[start + draw(st.integers(0, 3)) :]


@untimed
@given(st.one_of(damaged_keys(), st.binary(max_size=40)))
@example(bytes.fromhex("6100020000 620000 ffffffffffffffffffff"))
def test_bytes_are_the_key_of_one_cell_or_corrupt(key: bytes) -> None:
    try:
        cell = split_key(key)
    except CorruptData:
        return
    assert cell_key(*cell) == key


@untimed
@given(st.one_of(st.none(), TIMESTAMPS), st.binary(max_size=20))
def test_a_value_gives_back_what_it_was_made_of(expires_at: int | None, payload: bytes) -> None:
    assert split_value(value_header(expires_at) + payload) == (expires_at, payload)


@untimed
@given(NAMES)
def test_an_escaped_name_holds_no_terminator(name: bytes) -> None:
    assert b"\x00\x00" not in escape(name) + b"\x01"
    assert unescape(escape(name)) == name


@untimed
@given(CELLS, CELLS)
@example((b"a\x00b", b"c", 0, 0), (b"a", b"b\x00c", 0, 0))
@example((b"a", b"", 0, 0), (b"a\x00", b"", 0, 0))
@example((b"a", b"\xff", 0, 0), (b"a\x01", b"", 0, 0))
def test_keys_sort_by_row_then_column_then_newest_first(
    one: tuple[bytes, bytes, int, int], other: tuple[bytes, bytes, int, int]
) -> None:
    def place(cell: tuple[bytes, bytes, int, int]) -> tuple[bytes, bytes, int, int]:
        row, column, timestamp, sequence = cell
        return row, column, -timestamp, -sequence

    assert (cell_key(*one) < cell_key(*other)) == (place(one) < place(other))
    assert (cell_key(*one) == cell_key(*other)) == (one == other)


def test_a_nul_does_not_move_bytes_from_the_row_to_the_column() -> None:
    assert cell_key(b"a\x00b", b"c", 7, 0) != cell_key(b"a", b"b\x00c", 7, 0)


@untimed
@given(NAMES, CELLS)
@example(b"a", (b"a\x00", b"", 0, 0))
def test_the_cells_of_a_row_lie_between_its_prefix_and_the_end_of_it(
    row: bytes, cell: tuple[bytes, bytes, int, int]
) -> None:
    prefix = row_prefix(row)
    assert (prefix <= cell_key(*cell) < end_of(prefix)) == (cell[0] == row)


@untimed
@given(NAMES, NAMES, CELLS)
@example(b"a", b"b", (b"a", b"b\x00", 0, 0))
def test_the_cells_of_a_column_lie_between_its_prefix_and_the_end_of_it(
    row: bytes, column: bytes, cell: tuple[bytes, bytes, int, int]
) -> None:
    prefix = column_prefix(row_prefix(row), column)
    assert (prefix <= cell_key(*cell) < end_of(prefix)) == (cell[:2] == (row, column))


@untimed
@given(TIMESTAMPS, TIMESTAMPS, SEQUENCES)
@example(5, 5, 0)
@example(5, 5, TOP_SEQUENCE)
def test_bounds_in_time_take_every_sequence_of_a_millisecond(
    moment: int, timestamp: int, sequence: int
) -> None:
    prefix = column_prefix(row_prefix(b"r"), b"c")
    key = cell_key(b"r", b"c", timestamp, sequence)
    assert (key >= first_at(prefix, moment)) == (timestamp <= moment)
    assert (key >= after(prefix, moment)) == (timestamp < moment)


@untimed
@given(AWKWARD_BYTES, AWKWARD_BYTES)
@example(b"\xff\xff", b"\xff\xff\xff")
def test_prefix_end_is_the_first_string_after_all_with_the_prefix(
    prefix: bytes, text: bytes
) -> None:
    end = prefix_end(prefix)
    assert text.startswith(prefix) == (prefix <= text and (end is None or text < end))


def wanted(name: bytes, names: NameRange) -> bool:
    """What PREFIX, FROM and TO say, word for word."""
    return (
        (names.prefix is None or name.startswith(names.prefix))
        and (names.start is None or name >= names.start)
        and (names.stop is None or name < names.stop)
    )


@untimed
@given(NAMES, RANGES)
@example(b"a", NameRange(stop=b"a\x00"))
@example(b"a\x00", NameRange(prefix=b"a\x00"))
@example(b"\xff", NameRange(prefix=b"\xff"))
def test_name_bounds_hold_the_rows_of_a_range(row: bytes, names: NameRange) -> None:
    start, end = name_bounds(b"", None, names)
    key = cell_key(row, b"c", 5, 0)
    assert (start <= key and (end is None or key < end)) == wanted(row, names)


@untimed
@given(NAMES, CELLS, RANGES)
@example(b"r", (b"r", b"\xff", 0, 0), NameRange(prefix=b"\xff"))
@example(b"r", (b"r\x00", b"c", 0, 0), NameRange())
def test_name_bounds_hold_the_columns_of_a_range_and_of_one_row(
    row: bytes, cell: tuple[bytes, bytes, int, int], names: NameRange
) -> None:
    prefix = row_prefix(row)
    start, end = name_bounds(prefix, end_of(prefix), names)
    assert end is not None
    within = start <= cell_key(*cell) < end
    assert within == (cell[0] == row and wanted(cell[1], names))


def test_the_longest_names_are_65535_bytes() -> None:
    longest = b"\x00" * 65_535
    assert split_key(cell_key(longest, longest, 0, 0)) == (longest, longest, 0, 0)
    with pytest.raises(RowKeyTooLong):
        row_prefix(longest + b"\x00")
    with pytest.raises(ColumnNameTooLong):
        column_prefix(b"", longest + b"\x00")
