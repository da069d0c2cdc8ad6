"""The visible cells of a dataset in order, a batch at a time, as of one moment.

What is visible is decided by storage.embedded.reader, as for every read. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from storage.cursors import START, Position
from storage.embedded.datasets import Dataset
from storage.embedded.reader import (
    NO_LIMIT,
    Budget,
    RowReader,
    Rules,
    read_rows,
    walk_visible,
)
from storage.encoding import (
    PLAIN,
    SUFFIX_BYTES,
    name_bounds,
    row_prefix,
    split_key,
    split_value,
    stamp_of,
)
from storage.model import NameRange, PageLimits, Selection, TimeRange

BATCH_CELLS = 122_880
"""Rows of a Parquet row group: what DuckDB takes at a time, and others find sensible too."""
BATCH_BYTES = 64 * 1024 * 1024
CELL_BYTES = 64
"""What a cell takes in a batch beside its names and value, about."""
_ROWS_A_READ = 1000


@dataclass(slots=True)
class CellBatch:
    """Cells side by side, as a table of columns. Times are Unix milliseconds."""

    rows: list[bytes] = field(default_factory=list)
    columns: list[bytes] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    expiries: list[int | None] = field(default_factory=list)
    """The cells' own expiries; a dataset's TTL is not among them."""
    sequences: list[int] = field(default_factory=list)
    """What tells apart cells that the server stamped in one millisecond; 0 for given timestamps."""

    def __len__(self) -> int:
        return len(self.rows)


def cell_batches(
    dataset: Dataset,
    rules: Rules,
    rows: NameRange,
    selection: Selection,
    *,
    batch_cells: int = BATCH_CELLS,
) -> Iterator[CellBatch]:
    """All visible cells of these rows: by row, by column, the newest first."""
    start, end = name_bounds(b"", None, rows)
    if end is not None and start >= end:
        return
    batch, room, place, row, column = CellBatch(), BATCH_BYTES, b"", b"", b""
    for key, stored, payload in walk_visible(dataset.family.scan(end), rules, selection, start):
        if key[:-SUFFIX_BYTES] != place:
            place = key[:-SUFFIX_BYTES]
            row, column, _, _ = split_key(key)
        timestamp, sequence = stamp_of(key)
        batch.rows.append(row)
        batch.columns.append(column)
        batch.timestamps.append(timestamp)
        batch.values.append(payload)
        batch.expiries.append(None if stored[:1] == PLAIN else split_value(stored)[0])
        batch.sequences.append(sequence)
        room -= len(row) + len(column) + len(payload) + CELL_BYTES
        if room <= 0 or len(batch.rows) >= batch_cells:
            yield batch
            batch, room = CellBatch(), BATCH_BYTES
    if batch.rows:
        yield batch


WideBatch = tuple[list[bytes], list[list[bytes | None]]]
"""Row keys, and for each wanted column the newest value in each of these rows, or None."""


def wide_batches(
    dataset: Dataset,
    rules: Rules,
    rows: NameRange,
    columns: Sequence[bytes],
    times: TimeRange,
    *,
    batch_rows: int = BATCH_CELLS,
) -> Iterator[WideBatch]:
    """The newest visible value of each of the columns, for the rows that have one of them."""
    start, end = name_bounds(b"", None, rows)
    if end is not None and start >= end:
        return
    selection = Selection(columns=tuple(sorted(set(columns))), times=times)
    scan = dataset.family.scan(end)
    keys, values, room = _empty_wide(columns)
    position: Position | None = START
    while position is not None:
        budget = Budget(PageLimits(cells=NO_LIMIT, bytes=BATCH_BYTES, scan=NO_LIMIT))
        read, position = read_rows(
            RowReader(scan, rules, selection, budget),
            scan,
            start,
            position,
            limit=_ROWS_A_READ,
            count=NO_LIMIT,
            budget=budget,
        )
        for row, found, cut in read:
            newest = {name: cells[0][1] for name, cells in found}  # type: ignore[index]
            if cut is not None:  # a row of more than BATCH_BYTES: its rest, whatever its size
                rest = RowReader(scan, rules, selection, Budget.unlimited())
                newest |= _rest_of_row(rest, row, cut)
            keys.append(row)
            for name, column in zip(columns, values, strict=True):
                value = newest.get(name)
                column.append(value)
                room -= 0 if value is None else len(value)
            room -= len(row) + CELL_BYTES
            if room <= 0 or len(keys) >= batch_rows:
                yield keys, values
                keys, values, room = _empty_wide(columns)
    if keys:
        yield keys, values


def _empty_wide(columns: Sequence[bytes]) -> tuple[list[bytes], list[list[bytes | None]], int]:
    return [], [[] for _ in columns], BATCH_BYTES


def _rest_of_row(reader: RowReader, row: bytes, position: Position) -> dict[bytes, bytes]:
    found, _ = reader.read(row_prefix(row), NO_LIMIT, position)
    return {name: cells[0][1] for name, cells in found}  # type: ignore[index]
