"""Bytes on disk: what was written comes back and keeps its order; anything else is CorruptData.

An input is

    which(1) data
"""

from __future__ import annotations

from collections.abc import Callable

from storage import catalog, encoding
from storage.errors import CorruptData, InvalidDatasetName
from storage.integers import MAX_INTEGER, MIN_INTEGER, parse_integer
from storage.model import MAX_TIMESTAMP, NameRange
from tests.fuzz.choices import Choices
from tests.fuzz.target import Target

Cell = tuple[bytes, bytes, int, int]


def any_key(choices: Choices) -> None:
    data = choices.rest()
    try:
        prefix = encoding.row_prefix_of(data)
        assert data.startswith(prefix)
        cell = encoding.split_key(data)
    except CorruptData:
        return
    assert encoding.cell_key(*cell) == data
    assert encoding.row_of(prefix) == cell[0]
    assert encoding.stamp_of(data) == cell[2:]
    assert encoding.timestamp_of(data) == cell[2]


def any_value(choices: Choices) -> None:
    data = choices.rest()
    try:
        expires_at, payload = encoding.split_value(data)
    except CorruptData:
        return
    assert encoding.value_header(expires_at) + payload == data


def cell_of(choices: Choices) -> Cell:
    timestamp = choices.number(8) & MAX_TIMESTAMP
    return choices.short(), choices.short(), timestamp, choices.number(2)


def two_cells(choices: Choices) -> None:
    """Keys are in the order of rows, then columns, then from the newest to the oldest."""
    one, other = cell_of(choices), cell_of(choices)
    keys = [encoding.cell_key(*cell) for cell in (one, other)]
    assert [encoding.split_key(key) for key in keys] == [one, other]
    assert (keys[0] < keys[1]) == (_order(one) < _order(other))
    row, column, timestamp, _ = one
    row_prefix = encoding.row_prefix(row)
    prefix = encoding.column_prefix(row_prefix, column)
    for start, cell, key in ((row_prefix, other[:1], keys[1]), (prefix, other[:2], keys[1])):
        within = start <= key < encoding.end_of(start)
        assert within == key.startswith(start) == (cell == one[: len(cell)])
    if other[:2] == one[:2]:
        assert (keys[1] >= encoding.first_at(prefix, timestamp)) == (other[2] <= timestamp)
        assert (keys[1] >= encoding.after(prefix, timestamp)) == (other[2] < timestamp)


def _order(cell: Cell) -> tuple[bytes, bytes, int, int]:
    row, column, timestamp, sequence = cell
    return row, column, -timestamp, -sequence


def name_range(choices: Choices) -> None:
    """A range of keys holds the names of the range and no others."""
    names = NameRange(choices.maybe_short(), choices.maybe_short(), choices.maybe_short())
    base = encoding.row_prefix(choices.short())
    name = choices.short()
    key = encoding.column_prefix(base, name) + encoding.cell_suffix(choices.number(7), 0)
    for end in (encoding.end_of(base), None):
        start, stop = encoding.name_bounds(base, end, names)
        inside = start <= key and (stop is None or key < stop)
        assert inside == (
            (names.prefix is None or name.startswith(names.prefix))
            and (names.start is None or name >= names.start)
            and (names.stop is None or name < names.stop)
        )
        if names == NameRange():
            assert (start, stop) == (base, end)


def any_entry(choices: Choices) -> None:
    name, data = choices.short(), choices.rest()
    try:
        entry = catalog.decode_entry(name, data)
    except CorruptData:
        return
    assert catalog.decode_entry(name, catalog.encode_entry(entry)) == entry


def any_clock(choices: Choices) -> None:
    data = choices.rest()
    try:
        milliseconds = catalog.decode_clock(data)
    except CorruptData:
        assert len(data) != 8
        return
    assert catalog.encode_clock(milliseconds) == data


def any_name(choices: Choices) -> None:
    data = choices.rest()
    catalog.name_of_family(data.decode("utf-8", "replace"))
    try:
        catalog.check_name(data)
    except InvalidDatasetName:
        return
    family = catalog.family_name(data)
    assert catalog.name_of_family(family) == data
    assert catalog.name_of_entry(catalog.entry_key(data)) == data
    assert catalog.ENTRY_PREFIX < catalog.entry_key(data) < catalog.ENTRY_END


def any_integer(choices: Choices) -> None:
    data = choices.rest()
    number = parse_integer(data)
    try:
        written = int(data.decode("ascii"))
    except ValueError:
        assert number is None
        return
    canonical = b"%d" % written == data and MIN_INTEGER <= written <= MAX_INTEGER
    assert number == (written if canonical else None)


KINDS: tuple[Callable[[Choices], None], ...] = (
    any_key, any_value, two_cells, name_range, any_entry, any_clock, any_name, any_integer,
)  # fmt: skip


def run(data: bytes) -> None:
    choices = Choices(data)
    choices.pick(KINDS)(choices)


TARGET = Target(
    run,
    tokens=(
        b"\x00\x00", b"\x00\x01", b"\xff", b"\x00", b"\x01", b"maxversions", b"ttl", b"created-ms",
        b"last-compaction-ms", b"last-compaction-removed-cells", b"9223372036854775807",
        b"-9223372036854775808", b"d:", b"%00", b'{"maxversions": 1, "ttl": 2, "created-ms": 3, '
        b'"last-compaction-ms": 4, "last-compaction-removed-cells": 5}', b"NaN", b"1e9", b"true",
    ),
    max_bytes=600,
)  # fmt: skip
