"""An engine driven call by call, at a time that stands still until a test moves it.

Also what tests of it share: cells put into one row, pages put together, keys counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from storage.clock import HybridClock
from storage.embedded.engine import EmbeddedEngine
from storage.encoding import split_key
from storage.model import (
    ALL_NAMES,
    EVERYTHING,
    ColumnCells,
    DatasetSettings,
    Deletion,
    NameRange,
    NewCell,
    Page,
    PageLimits,
    PageRequest,
    RowsPage,
    Selection,
    TimeRange,
)
from storage.rocks.options import RocksSettings

T = TypeVar("T")

NOW = 1_700_000_000_000
DEFAULTS = DatasetSettings()
SMALL = RocksSettings(block_cache_bytes=1 << 20, write_buffer_bytes=1 << 16)
UNLIMITED = PageLimits(columns=10**9, rows=10**9, cells=10**9, bytes=10**12, scan=10**9)
TOO_LONG = b"x" * 65_536
Columns = list[tuple[bytes, list[tuple[int, bytes]]]]


class Store:
    """An engine and the time it believes in. `now` may be set, in milliseconds."""

    def __init__(self, engine: EmbeddedEngine, runner: asyncio.Runner) -> None:
        self.engine = engine
        self.now = NOW
        self._runner = runner
        engine._clock = HybridClock(wall_ns=lambda: self.now * 1_000_000)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(call)

    def create(self, max_versions: int = 0, ttl_seconds: int = 0, name: bytes = b"d") -> None:
        self.run(self.engine.create_dataset(name, DatasetSettings(max_versions, ttl_seconds)))

    def put(self, *cells: NewCell, expires_at: int | None = None, name: bytes = b"d") -> None:
        self.run(self.engine.put(name, cells, expires_at, DEFAULTS))

    def write(self, *timestamps: int | None, expires_at: int | None = None) -> None:
        """Cells of the one column, in one call."""
        self.put(*[(b"r", at, b"c", b"v") for at in timestamps], expires_at=expires_at)

    def shown(self) -> list[int]:
        """The timestamps that can be seen in the one column."""
        return [timestamp for _, cells in self.read() for timestamp, _ in cells]

    def page(
        self,
        selection: Selection = EVERYTHING,
        row: bytes = b"r",
        limits: PageLimits = UNLIMITED,
        cursor: bytes = b"0",
        columns: int | None = None,
        name: bytes = b"d",
    ) -> Page:
        request = PageRequest(limits, columns=columns, cursor=cursor)
        return self.run(self.engine.read_row(name, row, selection, request))

    def pages(
        self,
        selection: Selection = EVERYTHING,
        row: bytes = b"r",
        limits: PageLimits = UNLIMITED,
        cursor: bytes = b"0",
        columns: int | None = None,
    ) -> Iterator[Page]:
        """Page after page, until the cursor says that nothing is left."""
        page = self.page(selection, row, limits, cursor, columns)
        seen = {cursor}
        while page.cursor != b"0":
            yield page
            assert page.cursor not in seen, "a page did not move the position on"
            seen.add(page.cursor)
            page = self.page(selection, row, limits, page.cursor, columns)
        yield page

    def read(self, selection: Selection = EVERYTHING, row: bytes = b"r") -> Columns:
        page = self.page(selection, row)
        assert page.cursor == b"0"
        return plain(page.columns)

    def scan(
        self,
        rows: NameRange = ALL_NAMES,
        selection: Selection = EVERYTHING,
        limits: PageLimits = UNLIMITED,
        cursor: bytes = b"0",
        limit: int | None = None,
    ) -> RowsPage:
        request = PageRequest(limits, rows=limit, cursor=cursor)
        return self.run(self.engine.scan(b"d", rows, selection, request))

    def scan_pages(
        self, rows: NameRange, selection: Selection, limits: PageLimits
    ) -> Iterator[RowsPage]:
        page = self.scan(rows, selection, limits)
        seen = set[bytes]()
        while page.cursor != b"0":
            yield page
            assert page.cursor not in seen, "a page did not move the position on"
            seen.add(page.cursor)
            page = self.scan(rows, selection, limits, page.cursor)
        yield page

    def delete(
        self,
        *rows: bytes,
        columns: tuple[bytes, ...] | None = None,
        times: TimeRange | None = None,
        timestamps: Sequence[int] | None = None,
    ) -> int:
        deletion = Deletion(columns, times, timestamps)
        return sum(self.run(self.engine.delete(b"d", rows or (b"r",), deletion)))

    def delete_at(self, *timestamps: int) -> int:
        return self.delete(timestamps=timestamps)

    def increment(self, amount: int, column: bytes = b"c") -> int:
        return self.run(self.engine.increment(b"d", b"r", column, amount, DEFAULTS))

    def compare_and_put(
        self,
        expected: bytes | None,
        timestamp: int | None = None,
        expires_at: int | None = None,
    ) -> bool:
        cell = (b"r", timestamp, b"c", b"new")
        return self.run(self.engine.compare_and_put(b"d", cell, expected, expires_at, DEFAULTS))

    def compact(self, name: bytes = b"d") -> None:
        self.run(compact(self.engine, name))

    def stored(self, name: bytes = b"d") -> list[tuple[bytes, bytes, int, int]]:
        """What the family holds, visible or not."""
        self.run(self.engine.settle())
        return [split_key(key) for key, _ in raw_cells(self.engine, name)]

    def stored_timestamps(self) -> list[int]:
        return [timestamp for _, _, timestamp, _ in self.stored()]


async def compact(engine: EmbeddedEngine, name: bytes) -> None:
    await engine.compact_dataset(name)
    await collected(engine)


async def collected(engine: EmbeddedEngine) -> None:
    task = engine._collector._task
    if task is not None:
        await task
    assert not engine._collector.running


def raw_cells(engine: EmbeddedEngine, name: bytes) -> list[tuple[bytes, bytes]]:
    dataset = engine.open_dataset(name)
    assert dataset is not None
    return list(dataset.family.scan(None).walk(b""))


def plain(columns: Iterable[ColumnCells]) -> Columns:
    """The columns of one page or of several, with values: what a page cut is one again."""
    joined: Columns = []
    for name, cells in columns:
        if not joined or joined[-1][0] != name:
            joined.append((name, []))
        for cell in cells:
            assert isinstance(cell, tuple)
            joined[-1][1].append(cell)
    return joined


def some_columns(store: Store) -> None:
    store.put(*[(b"r", at, name, b"%d" % at) for name in (b"a", b"ab", b"b") for at in (1, 2, 3)])


def joined(pages: Iterable[Page]) -> Columns:
    return plain(column for page in pages for column in page.columns)


class CountingFamily:
    """A family that counts the keys its scans hand out."""

    def __init__(self, family: Any) -> None:
        self._family = family
        self.name = family.name
        self.keys_read = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._family, name)

    def scan(self, end: bytes | None) -> Any:
        return _CountingScan(self, self._family.scan(end))


class _CountingScan:
    def __init__(self, counter: CountingFamily, scan: Any) -> None:
        self._counter = counter
        self._scan = scan

    def walk(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._scan.walk(start):
            self._counter.keys_read += 1
            yield key, value


def counting(store: Store) -> CountingFamily:
    store.run(store.engine.settle())
    dataset = store.engine.open_dataset(b"d")
    assert dataset is not None
    counter = CountingFamily(dataset.family)
    dataset.family = counter
    return counter
