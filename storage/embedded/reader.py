"""From keys in order to pages of visible cells.

One walk over a row's keys, newest cell of each column first, decides what is visible (expiry, then
the newest MAXVERSIONS), picks what the selection asks for and stops where the page is full. What
need not be looked at is skipped: a few keys by stepping, more by one seek. Knows the key grammar
and the model; knows nothing of groups, datasets' names or cursors as text.

A page that stops says at which Position to go on. A column that has given no cell yet is resumed
at its beginning, so that a newer cell written meanwhile is not missed; one that was cut is resumed
at the very cell, and how many visible cells lie above is counted again, because writes between two
pages may have pushed the rest out of the newest MAXVERSIONS. That counting is bounded too: where
more expired cells lie above than a page may examine, the count of the page before is taken.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from storage.cursors import START, Position
from storage.embedded.ordered import Scan
from storage.encoding import (
    PLAIN,
    SUFFIX_BYTES,
    TOP_TIMESTAMP,
    column_prefix,
    end_of,
    first_at,
    name_bounds,
    row_of,
    row_prefix_of,
    split_value,
    unescape,
)
from storage.model import (
    EVERYTHING,
    Cells,
    ColumnCells,
    DatasetSettings,
    PageLimits,
    Selection,
)

STEPS_BEFORE_SEEK = 8
"""A seek costs about as much as stepping over this many keys."""
ROW_OVERHEAD_BYTES = 64
COLUMN_OVERHEAD_BYTES = 24
CELL_OVERHEAD_BYTES = 40
"""What a row, a column and a cell add to a reply beside their name and value, at most."""
NO_LIMIT = sys.maxsize
NEVER = 2**64
"""Later than every expiry that can be stored."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides visibility at one moment: `now` and TTL in ms, TTL 0 never."""

    now: int
    max_versions: int
    ttl_ms: int

    @classmethod
    def of(cls, settings: DatasetSettings, now: int) -> Rules:
        return cls(now, settings.max_versions, settings.ttl_seconds * 1000)


class Budget:
    """What is left of one reply's limits. Shared by all rows of the reply."""

    __slots__ = ("bytes", "cells", "scan", "started")

    def __init__(self, limits: PageLimits) -> None:
        self.cells = limits.cells
        self.bytes = limits.bytes
        self.scan = limits.scan
        self.started = False
        """Whether the reply holds a cell: the first one is given whatever its size."""

    @classmethod
    def unlimited(cls) -> Budget:
        return cls(PageLimits(cells=NO_LIMIT, bytes=NO_LIMIT, scan=NO_LIMIT))

    def spent(self) -> bool:
        return self.cells <= 0 or self.bytes <= 0 or self.scan <= 0


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a page ended before its row did. `found`: a cell to return is known to lie there."""

    position: Position
    found: bool


class RowReader:
    """Reads rows of one dataset by one selection, within one budget.

    `count` is the most columns a row may give; None gives all that the selection names.
    """

    def __init__(
        self,
        scan: Scan,
        rules: Rules,
        selection: Selection,
        budget: Budget,
        *,
        values: bool = True,
    ) -> None:
        self._scan = scan
        self._rules = rules
        self._selection = selection
        self._budget = budget
        self._values = values
        self._versions = NO_LIMIT if selection.versions is None else selection.versions

    def read(
        self, prefix: bytes, count: int, position: Position = START
    ) -> tuple[list[ColumnCells], Cut | None]:
        """At most `count` columns of a row from `position` on, and where the page was cut.

        With a count of 0 it only looks whether, and where, there is a cell to return.
        """
        columns: list[ColumnCells] = []
        resume = prefix + position.bound
        if self._selection.times.oldest > self._selection.times.newest:
            return columns, None
        for start, end in self._segments(prefix):
            if end > resume:
                column = _Column(self, prefix)
                if position.returned is not None and start <= resume:
                    column.resume(resume, position.returned, position.live)
                cut = self._read_segment(max(start, resume), end, column, columns, count)
                if cut is not None:
                    return columns, cut
        return columns, None

    def _segments(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """The key ranges that hold the selected columns, in order."""
        if self._selection.columns is None:
            start, end = name_bounds(prefix, end_of(prefix), self._selection.names)
            return [(start, end)] if end is not None and start < end else []
        starts = [column_prefix(prefix, column) for column in self._selection.columns]
        return [(start, end_of(start)) for start in starts]

    def _read_segment(
        self, start: bytes, end: bytes, column: _Column, columns: list[ColumnCells], count: int
    ) -> Cut | None:
        """Walk the keys of [start, end), collecting columns; a Cut where a limit stops it."""
        budget = self._budget
        while True:
            skipped = 0
            for key, value in self._scan.walk(start):
                if key >= end or column.skip_to >= end:
                    budget.scan -= 1
                    return None
                if budget.scan <= 0:
                    return Cut(column.position(key), found=False)
                budget.scan -= 1
                if key < column.skip_to:
                    skipped += 1
                    if skipped > STEPS_BEFORE_SEEK:
                        break
                    continue
                payload = column.visit(key, value)
                if payload is not None and not self._take(column, payload, columns, count):
                    return Cut(column.found_position(key), found=True)
            else:
                return None
            start = column.skip_to

    def _take(
        self, column: _Column, payload: bytes, columns: list[ColumnCells], count: int
    ) -> bool:
        """Put a cell on the page; False when it does not fit."""
        budget = self._budget
        cost = CELL_OVERHEAD_BYTES + len(payload) if self._values else CELL_OVERHEAD_BYTES
        cells = column.cells
        if cells is None:
            if len(columns) >= count:
                return False
            cost += COLUMN_OVERHEAD_BYTES + len(column.escaped)
        if budget.cells <= 0 or (budget.bytes < cost and budget.started):
            budget.bytes = 0  # the reply ends here, also for the rows that were to follow
            return False
        if cells is None:
            cells = column.cells = []
            columns.append((unescape(column.escaped[:-2]), cells))
        budget.started = True
        budget.cells -= 1
        budget.bytes -= cost
        cells.append((column.timestamp, payload) if self._values else column.timestamp)  # type: ignore[arg-type]
        column.taken += 1
        if column.taken >= self._versions:
            column.finish()
        return True

    def count_unexpired(self, start: bytes, end: bytes, known: int) -> int:
        """How many cells in [start, end) have not expired, up to MAXVERSIONS.

        `known` is what a page before counted: the answer where there are too many to look at.
        """
        rules, found = self._rules, 0
        most_examined = self._budget.scan + rules.max_versions
        for examined, (key, value) in enumerate(self._scan.walk(start)):
            if key >= end or found >= rules.max_versions:
                break
            if examined >= most_examined:
                return max(found, known)
            found += expiry_of(key, value, rules.ttl_ms) >= rules.now
        return found

    @property
    def rules(self) -> Rules:
        return self._rules

    @property
    def selection(self) -> Selection:
        return self._selection


class _Column:
    """The column the walk is in: what was seen of it and from which key on to look again."""

    __slots__ = (
        "_live",
        "_max_versions",
        "_newest",
        "_now",
        "_oldest",
        "_prefix",
        "_prefix_bytes",
        "_reader",
        "_resumed",
        "_ttl_ms",
        "cells",
        "escaped",
        "skip_to",
        "taken",
        "timestamp",
    )

    def __init__(self, reader: RowReader, prefix: bytes) -> None:
        self._reader = reader
        self._prefix = prefix
        self._prefix_bytes = len(prefix)
        rules, times = reader.rules, reader.selection.times
        self._now, self._max_versions, self._ttl_ms = rules.now, rules.max_versions, rules.ttl_ms
        self._oldest, self._newest = times.oldest, times.newest
        self.escaped = b""
        self.skip_to = b""
        self.cells: Cells | None = None
        self.timestamp = 0
        self._live = 0
        self.taken = 0
        self._resumed = False

    def resume(self, key: bytes, returned: int, live: int) -> None:
        """Take up a column in its middle: `key` is the next cell to look at."""
        self.escaped = key[self._prefix_bytes : -SUFFIX_BYTES]
        self.taken = returned
        self._resumed = True
        if self._max_versions:
            self._live = self._reader.count_unexpired(key[:-SUFFIX_BYTES], key, live)
            if self._live >= self._max_versions:
                self.finish()

    def visit(self, key: bytes, value: bytes) -> bytes | None:
        """The payload of a cell if it is visible and in the time range, else None."""
        escaped = key[self._prefix_bytes : -SUFFIX_BYTES]
        if escaped != self.escaped:
            self.escaped = escaped
            self._live = self.taken = 0
            self.cells = None
            self._resumed = False
        timestamp = TOP_TIMESTAMP - int.from_bytes(key[-10:-2], "big")
        if self._ttl_ms and timestamp + self._ttl_ms < self._now:
            self.finish()  # all that lies below is older, so it has expired too
            return None
        if value[:1] == PLAIN:
            payload = value[1:]
        else:
            expires, payload = split_value(value)
            if expires is not None and expires < self._now:
                return None
        return payload if self._selects(timestamp) else None

    def _selects(self, timestamp: int) -> bool:
        """Whether an unexpired cell is visible and in the time range; sets where to go on."""
        if self._max_versions:
            if self._live >= self._max_versions:
                self.finish()
                return False
            self._live += 1
        if timestamp > self._newest:
            if not self._max_versions:
                self.skip_to = first_at(self._prefix + self.escaped, self._newest)
            return False
        if timestamp < self._oldest:
            self.finish()
            return False
        self.timestamp = timestamp
        return True

    def finish(self) -> None:
        """Nothing more is wanted of this column."""
        self.skip_to = end_of(self._prefix + self.escaped)

    def position(self, key: bytes) -> Position:
        """Where to go on when `key` was not looked at any more."""
        if key < self.skip_to:
            if self.skip_to == end_of(self._prefix + self.escaped):
                return Position(self.skip_to[self._prefix_bytes :])
            return self._position_at(key)
        column = key[self._prefix_bytes : -SUFFIX_BYTES]
        if column != self.escaped:
            return Position(column)
        return self._position_at(key)

    def found_position(self, key: bytes) -> Position:
        """Where to go on when the cell at `key` did not fit on the page."""
        if self.taken == 0 and not self._resumed:
            return Position(self.escaped)
        # The cell was counted as live when it was found, and will be again.
        return self._position_at(key, self._live - 1)

    def _position_at(self, key: bytes, live: int | None = None) -> Position:
        above = self._live if live is None else live
        return Position(key[self._prefix_bytes :], self.taken, max(0, above))


def expiry_of(key: bytes, value: bytes, ttl_ms: int) -> int:
    """The last millisecond at which a cell is alive, by its own expiry and the dataset's TTL."""
    expires = NEVER
    if value[:1] != PLAIN:
        own, _ = split_value(value)
        expires = NEVER if own is None else own
    if ttl_ms:
        timestamp = TOP_TIMESTAMP - int.from_bytes(key[-10:-2], "big")
        expires = min(expires, timestamp + ttl_ms)
    return expires


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
    reader = RowReader(scan, rules, selection, Budget.unlimited())
    versions = NO_LIMIT if selection.versions is None else selection.versions
    # With no prefix, what it takes for a column's name is the whole place: its row and its column.
    column = _Column(reader, b"")
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
