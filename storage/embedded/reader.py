"""Rows in order, and questions about them, by reading one row after another.

How one row is read is row_reader.py's to know, or that of its compiled twin; what decides is in
rules.py. Knows nothing of groups, datasets' names or cursors as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from storage.compiled import twin
from storage.cursors import START, Position
from storage.embedded import row_reader
from storage.embedded.ordered import Scan
from storage.embedded.rules import NO_LIMIT, ROW_OVERHEAD_BYTES, STEPS_BEFORE_SEEK, Budget, Rules
from storage.encoding import end_of, row_of, row_prefix_of
from storage.model import EVERYTHING, ColumnCells, Selection

if TYPE_CHECKING:
    from storage.embedded.row_reader import RowReader as RowReader
else:
    RowReader = twin("storage.embedded._reading", "RowReader", row_reader.RowReader)


def holds_visible(
    scan: Scan, rules: Rules, prefix: bytes, selection: Selection = EVERYTHING
) -> bool:
    """Whether a row has a visible cell in the selection."""
    reader = RowReader(scan, rules, selection, Budget.unlimited())
    _, cut = reader.read(prefix, count=0)
    return cut is not None


def read_rows(
    reader: RowReader,
    scan: Scan,
    start: bytes,
    position: Position,
    *,
    limit: int,
    count: int,
    budget: Budget,
) -> tuple[list[tuple[bytes, list[ColumnCells], Position | None]], Position | None]:
    """Rows from `start` or `position` on that have a cell in the selection.

    Gives at most `limit` of (row, columns, where to go on inside the row) and where to go on among
    the rows. Once the page is full, it only looks whether there is a further row.
    """
    rows: list[tuple[bytes, list[ColumnCells], Position | None]] = []
    full = False
    bound = max(start, position.bound)
    while True:
        first = next(scan.walk(bound), None)
        if first is None:
            return rows, None
        if budget.scan <= 0:
            return rows, Position(bound)
        prefix = row_prefix_of(first[0])
        within = _within(position, prefix)
        scan_before, bytes_before = budget.scan, budget.bytes
        budget.bytes -= ROW_OVERHEAD_BYTES + 2 * len(prefix)  # its key, and a cursor inside it
        columns, cut = reader.read(prefix, 0 if full else count, within)
        if budget.scan == scan_before:
            budget.scan -= 1  # a row without the wanted columns is not free either
        if columns:
            rows.append((row_of(prefix), columns, cut.position if cut else None))
            full = len(rows) >= limit or budget.spent()
        elif cut is not None:
            # A row not begun is read from its start next time, for what is written to it meanwhile.
            if cut.found and within == START:
                return rows, Position(prefix)
            return rows, replace(cut.position, bound=prefix + cut.position.bound)
        else:
            budget.bytes = bytes_before
        bound = end_of(prefix)


def _within(position: Position, prefix: bytes) -> Position:
    """The part of a scan's position that lies inside the row with this prefix."""
    if not position.bound.startswith(prefix):
        return START
    return replace(position, bound=position.bound[len(prefix) :])


def walk_visible(
    scan: Scan, rules: Rules, selection: Selection, start: bytes
) -> Iterator[tuple[bytes, bytes, bytes]]:
    """(key, stored value, payload) of all visible cells from `start` on, whatever their row.

    Of the selection, `times` and `versions` count; its columns do not. For those who read all there
    is and answer nobody meanwhile: nothing bounds it.
    """
    reader = row_reader.RowReader(scan, rules, selection, Budget.unlimited())
    versions = NO_LIMIT if selection.versions is None else selection.versions
    # With no prefix, what it takes for a column's name is the whole place: its row and its column.
    column = row_reader.ColumnWalk(reader, b"")
    while True:
        skipped = 0
        for key, value in scan.walk(start):
            if key < column.skip_to:
                skipped += 1
                if skipped > STEPS_BEFORE_SEEK:
                    break
                continue
            payload = column.visit(key, value)
            if payload is not None:
                column.taken += 1
                if column.taken >= versions:
                    column.finish()
                yield key, value, payload
        else:
            return
        start = column.skip_to
