"""The visible cells of a dataset in order, a batch at a time, as of one moment.

What is visible is decided by storage.embedded.reader, as for every read. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise, repeat

from storage.cursors import START, Position
from storage.embedded.datasets import Dataset
from storage.embedded.reader import RowReader, read_rows, walk_visible
from storage.embedded.rules import NO_LIMIT, Budget, Rules
from storage.encoding import (
    PLAIN,
    SUFFIX_BYTES,
    name_bounds,
    row_prefix,
    split_names,
    split_value,
    stamps_of,
)
from storage.model import NameRange, PageLimits, Selection, TimeRange
from storage.transfer.batches import CellBatch, WideBatch

BATCH_CELLS = 122_880
"""Rows of a Parquet row group: what DuckDB takes at a time, and others find sensible too."""
BATCH_BYTES = 64 * 1024 * 1024
CELL_BYTES = 128
"""What a cell takes in a batch beside its value, about."""
_ROWS_A_READ = 1000


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
    cells = walk_visible(dataset.family.scan(end), rules, selection, start)
    while (batch := _next_batch(cells, batch_cells)) is not None:
        yield batch


def _next_batch(cells: Iterator[tuple[bytes, bytes, bytes]], most: int) -> CellBatch | None:
    keys, values, expiries = list[bytes](), list[bytes](), list[int | None]()
    room, place, starts = BATCH_BYTES, b"", list[int]()  # where another column begins
    for key, stored, payload in islice(cells, most):
        if key[:-SUFFIX_BYTES] != place:
            place = key[:-SUFFIX_BYTES]
            starts.append(len(keys))
        keys.append(key)
        values.append(payload)
        expiries.append(None if stored[:1] == PLAIN else split_value(stored)[0])
        room -= len(payload) + CELL_BYTES
        if room <= 0:
            break
    if not keys:
        return None
    # Names are split off once for each column.
    rows, columns = split_names([keys[start] for start in starts])
    counts = [end - start for start, end in pairwise([*starts, len(keys)])]
    times, sequences = stamps_of(keys)
    return CellBatch(
        list(chain.from_iterable(map(repeat, rows, counts))),
        list(chain.from_iterable(map(repeat, columns, counts))),
        times,
        values,
        expiries,
        sequences,
    )


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
