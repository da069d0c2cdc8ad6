"""From the keys of a row, in order, to its visible cells: the twin in Python of _reading.pyx.

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

from collections.abc import Iterable

from storage.cursors import START, Position
from storage.embedded.ordered import Scan
from storage.embedded.rules import (
    CELL_OVERHEAD_BYTES,
    COLUMN_OVERHEAD_BYTES,
    NEVER,
    NO_LIMIT,
    STEPS_BEFORE_SEEK,
    Budget,
    Cut,
    Rules,
    expiry_of,
)
from storage.encoding import (
    PLAIN,
    SUFFIX_BYTES,
    TERMINATOR_BYTES,
    TOP_TIMESTAMP,
    column_prefix,
    end_of,
    first_at,
    name_bounds,
    row_prefix,
    split_value,
    unescape,
)
from storage.errors import CorruptData, StorageError
from storage.model import Cells, ColumnCells, Packed, Selection


class RowReader:
    """Reads rows of one dataset by one selection, within one budget."""

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
        self.first_expiry = NEVER
        """When the first of the cells that were found alive expires, in ms."""
        self.expired = 0
        """How many expired cells were met."""
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
                column = ColumnWalk(self, prefix)
                if position.returned is not None and start <= resume:
                    column.resume(resume, position.returned, position.live)
                cut = self._read_segment(max(start, resume), end, column, columns, count)
                if cut is not None:
                    return columns, cut
        return columns, None

    def read_packed(
        self, prefix: bytes, count: int, position: Position = START
    ) -> tuple[list[ColumnCells] | Packed, Cut | None]:
        """As read(). The compiled reader gives the columns Packed."""
        return self.read(prefix, count, position)

    def read_pages(
        self,
        rows: Iterable[bytes],
        count: int,
        *,
        packed: bool,
        most_keys: int,
        most_bytes: int,
        most_expired: int,
    ) -> list[tuple[bytes, list[ColumnCells] | Packed, Cut | None, int]]:
        """Rows from their beginning on, each with a whole budget, as read() or read_packed() gives
        them: (row, columns, where it was cut, when the first of its cells expires).

        The last is the one with which so many keys were looked at, the pages had so many bytes, or
        in which more expired cells were met; or the one before a row that cannot be read.
        """
        pages: list[tuple[bytes, list[ColumnCells] | Packed, Cut | None, int]] = []
        read, budget = self.read_packed if packed else self.read, self._budget
        for row in rows:
            budget.renew()
            self.first_expiry, self.expired = NEVER, 0
            try:
                columns, cut = read(row_prefix(row), count)
            except StorageError:
                self.expired = 0
                break
            pages.append((row, columns, cut, self.first_expiry))
            most_keys -= budget.limits.scan - budget.scan
            most_bytes -= budget.limits.bytes - budget.bytes
            if most_keys < 0 or most_bytes < 0 or self.expired > most_expired:
                break
        return pages

    def _segments(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """The key ranges that hold the selected columns, in order."""
        if self._selection.columns is None:
            start, end = name_bounds(prefix, end_of(prefix), self._selection.names)
            return [(start, end)] if end is not None and start < end else []
        starts = [column_prefix(prefix, column) for column in self._selection.columns]
        return [(start, end_of(start)) for start in starts]

    def _read_segment(
        self, start: bytes, end: bytes, column: ColumnWalk, columns: list[ColumnCells], count: int
    ) -> Cut | None:
        """Walk the keys of [start, end), collecting columns; a Cut where a limit stops it."""
        budget = self._budget
        one_column = self._selection.columns is not None
        while not (one_column and column.finished):
            skipped = 0
            for key, value in self._scan.walk(start):
                if key >= end:
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
                if one_column and column.finished:
                    return None
            else:
                return None
            start = column.skip_to
        return None

    def _take(
        self, column: ColumnWalk, payload: bytes, columns: list[ColumnCells], count: int
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
            expires = expiry_of(key, value, rules.ttl_ms)
            if expires >= rules.now:
                found += 1
                self.first_expiry = min(self.first_expiry, expires)
        return found

    @property
    def rules(self) -> Rules:
        return self._rules

    @property
    def selection(self) -> Selection:
        return self._selection


class ColumnWalk:
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
        "finished",
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
        self.finished = False
        """Whether nothing more is wanted of it."""
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
        if escaped != self.escaped or not escaped:
            self.escaped = escaped
            self._live = self.taken = 0
            self.cells = None
            self._resumed = self.finished = False
            if len(escaped) < TERMINATOR_BYTES:
                raise CorruptData(f"a key of no known form: {key[:64].hex()}")
        timestamp = TOP_TIMESTAMP - int.from_bytes(key[-10:-2], "big")
        expires = NEVER
        if self._ttl_ms:
            expires = timestamp + self._ttl_ms
            if expires < self._now:
                self._reader.expired += 1
                self.finish()  # all that lies below is older, so it has expired too
                return None
        if value[:1] == PLAIN:
            payload = value[1:]
        else:
            own, payload = split_value(value)
            if own is not None:
                if own < self._now:
                    self._reader.expired += 1
                    return None
                expires = min(expires, own)
        if expires < self._reader.first_expiry:
            self._reader.first_expiry = expires
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
        self.finished = True
        self.skip_to = end_of(self._prefix + self.escaped)

    def position(self, key: bytes) -> Position:
        """Where to go on when `key` was not looked at any more."""
        if key < self.skip_to:
            if self.finished:
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
