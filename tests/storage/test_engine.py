"""The engine, over RocksDB and in memory: both pass the same tests.

`Store` drives it call by call, at a time that stands still until the test moves it. Most tests need
one column only: `write` gives it cells by their timestamps, `shown` says which can be seen. What
holds in general is tried on random data, against a second opinion in a few lines of plain Python.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from storage.clock import HybridClock
from storage.cursors import Binding, Position
from storage.embedded.engine import EmbeddedEngine
from storage.embedded.ordered import Kind
from storage.encoding import split_key, split_value
from storage.errors import (
    ColumnNameTooLong,
    DatasetExists,
    IncrementOverflow,
    InvalidCursor,
    InvalidDatasetName,
    NewestCellInFuture,
    NoSuchDataset,
    NotAnInteger,
    RowKeyTooLong,
    StorageError,
    StoreFailure,
    TimestampNotNewer,
)
from storage.maintenance import collector
from storage.model import (
    ALL_NAMES,
    ALL_TIME,
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
from storage.opening import open_engine, open_memory_engine
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


@pytest.fixture(params=["rocks", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    engine = (
        open_engine(tmp_path / "data", SMALL) if request.param == "rocks" else open_memory_engine()
    )
    with asyncio.Runner() as runner:
        yield Store(engine, runner)
        runner.run(engine.close())


def random_stories(max_examples: int) -> settings:
    """Many examples share one engine, and so a fixture: each empties its datasets first."""
    return settings(
        max_examples=max_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


# Datasets


def test_datasets_are_created_listed_and_dropped(store: Store) -> None:
    for name in (b"b", b"a:1", b"B"):
        store.create(name=name)
    assert store.engine.dataset_names() == [b"B", b"a:1", b"b"]
    store.run(store.engine.drop_dataset(b"a:1"))
    assert store.engine.dataset_names() == [b"B", b"b"]


def test_a_dataset_that_exists_is_not_created_again(store: Store) -> None:
    store.create(max_versions=3)
    with pytest.raises(DatasetExists):
        store.create(max_versions=5)
    store.run(store.engine.create_dataset(b"d", DatasetSettings(5), if_not_exists=True))
    assert store.run(store.engine.dataset_info(b"d")).settings == DatasetSettings(3)


def test_a_dropped_dataset_takes_its_cells_along(store: Store) -> None:
    store.write(1)
    store.run(store.engine.drop_dataset(b"d"))
    store.create()
    assert store.read() == []
    assert store.stored() == []


def test_a_drop_takes_writes_along_that_were_on_their_way(store: Store) -> None:
    store.create()
    store.engine.commit()
    store.write(1)
    store.run(store.engine.drop_dataset(b"d"))
    store.write(2)
    assert store.shown() == [2]


def test_an_unknown_dataset_may_be_dropped_if_it_exists(store: Store) -> None:
    store.run(store.engine.drop_dataset(b"d", if_exists=True))
    with pytest.raises(NoSuchDataset):
        store.run(store.engine.drop_dataset(b"d"))


def test_datasets_do_not_see_each_other(store: Store) -> None:
    store.put((b"r", 1, b"c", b"1"), name=b"a")
    store.put((b"r", 1, b"c", b"2"), name=b"b")
    assert plain(store.page(name=b"a").columns) == [(b"c", [(1, b"1")])]
    assert plain(store.page(name=b"b").columns) == [(b"c", [(1, b"2")])]


def test_altered_settings_count_from_the_next_read_on(store: Store) -> None:
    store.create()
    store.write(NOW, NOW - 1_000, NOW - 2_000)
    store.run(store.engine.alter_dataset(b"d", max_versions=2))
    assert store.shown() == [NOW, NOW - 1_000]
    store.run(store.engine.alter_dataset(b"d", ttl_seconds=1))
    assert store.run(store.engine.dataset_info(b"d")).settings == DatasetSettings(2, 1)
    store.now += 1
    assert store.shown() == [NOW]


def test_info_tells_when_a_dataset_was_created_and_compacted(store: Store) -> None:
    store.create(max_versions=1)
    store.write(3, 2, 1)
    store.engine.commit()
    assert store.run(store.engine.dataset_info(b"d")).estimated_cells == 3
    store.now += 5
    store.compact()
    info = store.run(store.engine.dataset_info(b"d"))
    assert (info.name, info.created_ms) == (b"d", NOW)
    assert (info.last_compaction_ms, info.last_compaction_removed_cells) == (NOW + 5, 2)


def calls_of(store: Store, name: bytes) -> list[Coroutine[Any, Any, object]]:
    """Every call that names a dataset and does not create it."""
    engine, request, cell = store.engine, PageRequest(UNLIMITED), (b"r", 1, b"c", b"v")
    return [
        engine.alter_dataset(name, max_versions=1),
        engine.drop_dataset(name),
        engine.dataset_info(name),
        engine.compact_dataset(name),
        engine.put(name, [cell], None, None),
        engine.put(name, [cell], NOW, None),
        engine.increment(name, b"r", b"c", 1, None),
        engine.compare_and_put(name, cell, None, None, None),
        engine.delete(name, [b"r"], Deletion()),
        engine.read_row(name, b"r", EVERYTHING, request),
        engine.read_rows(name, [b"r"], EVERYTHING, request),
        engine.read_columns(name, b"r", ALL_NAMES, request),
        engine.scan(name, ALL_NAMES, EVERYTHING, request),
        engine.count_rows(name, [b"r"]),
    ]


def test_every_call_refuses_an_unknown_dataset(store: Store) -> None:
    for call in calls_of(store, b"nobody"):
        with pytest.raises(NoSuchDataset):
            store.run(call)
    assert store.engine.dataset_names() == []


def test_every_call_refuses_a_bad_name(store: Store) -> None:
    engine, cell = store.engine, (b"r", 1, b"c", b"v")
    creating = [
        engine.create_dataset(b"a/b", DEFAULTS),
        engine.put(b"a/b", [cell], None, DEFAULTS),
        engine.increment(b"a/b", b"r", b"c", 1, DEFAULTS),
        engine.compare_and_put(b"a/b", cell, None, None, DEFAULTS),
    ]
    for call in [*calls_of(store, b"a/b"), *creating]:
        with pytest.raises(InvalidDatasetName):
            store.run(call)
    assert store.engine.dataset_names() == []


def test_a_write_creates_a_dataset_with_the_settings_it_brings(store: Store) -> None:
    brought = DatasetSettings(2, 60)
    store.run(store.engine.put(b"d", [(b"r", 1, b"c", b"v")], None, brought))
    assert store.run(store.engine.dataset_info(b"d")).settings == brought


# Writing and reading


def test_any_bytes_are_names_and_values(store: Store) -> None:
    names = [
        b"",
        b"\x00",
        b"\x00\x00",
        b"\x00\x01",
        b"\r\n",
        b"a",
        b"a\x00",
        b"a\x00b",
        b"\xff\xff",
    ]
    store.put(*[(row, 1, column, row + column) for row in names for column in names])
    for row in names:
        assert store.read(row=row) == [(column, [(1, row + column)]) for column in names]


def test_the_bytes_of_a_row_do_not_wander_into_its_column(store: Store) -> None:
    store.put((b"a\x00b", 1, b"c", b"one"))
    store.put((b"a", 1, b"b\x00c", b"two"))
    assert store.read(row=b"a\x00b") == [(b"c", [(1, b"one")])]
    assert store.read(row=b"a") == [(b"b\x00c", [(1, b"two")])]


def test_an_older_cell_goes_below_the_newer_ones(store: Store) -> None:
    store.write(5)
    store.write(0, 2**63 - 1)
    assert store.shown() == [2**63 - 1, 5, 0]


def test_the_same_timestamp_replaces_the_cell(store: Store) -> None:
    store.put((b"r", 1, b"c", b"old"))
    store.put((b"r", 1, b"c", b"new"))
    assert store.read() == [(b"c", [(1, b"new")])]


def test_stamped_cells_of_a_millisecond_stay_apart_above_the_given_one(store: Store) -> None:
    store.put((b"r", None, b"c", b"1"), (b"r", None, b"c", b"2"))
    store.put((b"r", NOW, b"c", b"given"), (b"r", None, b"c", b"3"))
    assert store.read() == [(b"c", [(NOW, b"3"), (NOW, b"2"), (NOW, b"1"), (NOW, b"given")])]


def test_after_65535_stamps_of_a_millisecond_comes_the_next(store: Store) -> None:
    store.write(*[None] * 65_536)
    assert store.shown() == [NOW + 1] + [NOW] * 65_535
    assert store.engine.now() == NOW + 1


def test_a_missing_row_is_an_empty_page(store: Store) -> None:
    store.create()
    assert store.page() == Page(b"0", [])


def some_columns(store: Store) -> None:
    store.put(*[(b"r", at, name, b"%d" % at) for name in (b"a", b"ab", b"b") for at in (1, 2, 3)])


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), {b"a": [3], b"ab": [3], b"b": [3]}),
        (Selection(versions=2), {b"a": [3, 2], b"ab": [3, 2], b"b": [3, 2]}),
        (Selection(columns=(b"a", b"x")), {b"a": [3]}),
        (Selection(columns=(b"a", b"b"), versions=None), {b"a": [3, 2, 1], b"b": [3, 2, 1]}),
        (Selection(names=NameRange(prefix=b"a")), {b"a": [3], b"ab": [3]}),
        (Selection(names=NameRange(start=b"ab")), {b"ab": [3], b"b": [3]}),
        (Selection(names=NameRange(stop=b"ab")), {b"a": [3]}),
        (Selection(names=NameRange(b"a", b"aa", b"b")), {b"ab": [3]}),
        (Selection(names=NameRange(start=b"b", stop=b"a")), {}),
        (Selection((b"a",), versions=None, times=TimeRange(2, 3)), {b"a": [3, 2]}),
        (Selection((b"a",), versions=1, times=TimeRange(0, 2)), {b"a": [2]}),
        (Selection((b"a",), versions=None, times=TimeRange(4, 9)), {}),
        (Selection((b"a",), versions=None, times=TimeRange(3, 2)), {}),
    ],
)
def test_a_selection_picks_columns_and_cells(
    selection: Selection, expected: dict[bytes, list[int]], store: Store
) -> None:
    some_columns(store)
    found = {name: [at for at, _ in cells] for name, cells in store.read(selection)}
    assert found == expected


def test_without_values_a_page_holds_timestamps(store: Store) -> None:
    some_columns(store)
    request = PageRequest(UNLIMITED, values=False)
    page = store.run(store.engine.read_row(b"d", b"r", Selection(versions=2), request))
    assert page.columns == [(name, [3, 2]) for name in (b"a", b"ab", b"b")]


def test_only_the_newest_max_versions_are_visible(store: Store) -> None:
    store.create(max_versions=2)
    store.write(1, 2, 3)
    assert store.shown() == [3, 2]
    assert store.read(Selection(versions=None, times=TimeRange(0, 1))) == []
    assert store.read(Selection(versions=None, times=TimeRange(0, 2))) == [(b"c", [(2, b"v")])]


def test_a_cell_lives_through_the_millisecond_of_its_expiry(store: Store) -> None:
    store.write(1, expires_at=NOW + 10)
    store.now += 10
    assert store.shown() == [1]
    store.now += 1
    assert store.shown() == []


def test_when_a_cell_expires_the_older_one_shows_again(store: Store) -> None:
    store.create(max_versions=1)
    store.write(1)
    store.write(2, expires_at=NOW)
    assert store.shown() == [2]
    store.now += 1
    assert store.shown() == [1]


def test_the_ttl_of_the_dataset_counts_from_the_timestamp(store: Store) -> None:
    store.create(ttl_seconds=1)
    store.write(NOW - 1_000, NOW - 1_001, NOW + 5)
    store.write(NOW, expires_at=NOW + 3)
    assert store.shown() == [NOW + 5, NOW, NOW - 1_000]
    store.now += 4
    assert store.shown() == [NOW + 5]
    store.now = NOW + 1_006
    assert store.shown() == []


def test_a_write_that_has_expired_replaces_and_is_never_seen(store: Store) -> None:
    store.write(1, 2)
    store.write(2, expires_at=NOW - 1)
    assert store.shown() == [1]


def test_rows_of_one_call_are_all_written(store: Store) -> None:
    store.put((b"r1", 1, b"c", b"1"), (b"r2", 2, b"d", b"2"))
    assert store.read(row=b"r1") == [(b"c", [(1, b"1")])]
    assert store.read(row=b"r2") == [(b"d", [(2, b"2")])]


BAD_CELLS = [(TOO_LONG, 1, b"c", b"v"), (b"r", 1, TOO_LONG, b"v")]


@pytest.mark.parametrize("bad", BAD_CELLS, ids=["row", "column"])
def test_a_call_with_a_long_name_writes_nothing_and_creates_nothing(
    bad: NewCell, store: Store
) -> None:
    good: NewCell = (b"r", 1, b"c", b"v")
    row, _, column, _ = bad
    for call in (
        store.engine.put(b"d", [good, bad], None, DEFAULTS),
        store.engine.put(b"d", [good, bad], NOW, DatasetSettings(1)),
        store.engine.increment(b"d", row, column, 1, DEFAULTS),
        store.engine.compare_and_put(b"d", bad, None, None, DEFAULTS),
    ):
        with pytest.raises((RowKeyTooLong, ColumnNameTooLong)):
            store.run(call)
    assert store.engine.dataset_names() == []
    assert store.engine._group.operations == []


@pytest.mark.parametrize("expires_at", [None, NOW + 9])
@pytest.mark.parametrize("bad", BAD_CELLS, ids=["row", "column"])
def test_a_call_with_a_long_name_leaves_a_dataset_as_it_was(
    bad: NewCell, expires_at: int | None, store: Store
) -> None:
    store.create(max_versions=1)
    store.write(2, 1)
    with pytest.raises((RowKeyTooLong, ColumnNameTooLong)):
        store.put((b"r", 2, b"c", b"new"), bad, expires_at=expires_at)
    assert store.read() == [(b"c", [(2, b"v")])]
    assert store.stored_timestamps() == [2, 1]


def test_reads_and_deletes_refuse_a_long_name(store: Store) -> None:
    store.write(1)
    with pytest.raises(RowKeyTooLong):
        store.read(row=TOO_LONG)
    with pytest.raises(RowKeyTooLong):
        store.delete(b"r", TOO_LONG)
    with pytest.raises(ColumnNameTooLong):
        store.read(Selection(columns=(TOO_LONG,)))
    with pytest.raises(ColumnNameTooLong):
        store.delete(columns=(b"c", TOO_LONG))
    assert store.shown() == [1]


# The group


def test_a_read_of_a_touched_row_sees_the_write_before_the_commit(store: Store) -> None:
    store.create()
    store.engine.commit()
    settled: list[StoreFailure | None] = []
    store.engine.on_settled = settled.append
    store.write(1)
    assert store.read(row=b"other") == []
    assert settled == []
    assert store.shown() == [1]
    assert settled == [None]
    dataset = store.engine.open_dataset(b"d")
    assert dataset is not None
    assert dataset.waiting_rows == set()


@pytest.mark.parametrize(
    "reads",
    [
        lambda store: store.scan().rows,
        lambda store: store.run(store.engine.count_rows(b"d", [b"r"])),
        lambda store: store.delete(),
        lambda store: store.delete_at(1),
        lambda store: not store.compare_and_put(None),
        lambda store: store.page().columns,
    ],
)
def test_every_call_sees_what_waits_in_the_group(
    reads: Callable[[Store], object], store: Store
) -> None:
    store.create()
    store.engine.commit()
    store.write(1)
    assert reads(store)


def test_a_put_after_a_delete_in_one_group_stays(store: Store) -> None:
    store.write(1)
    store.engine.commit()
    store.delete()
    store.write(1)
    store.engine.commit()
    assert store.shown() == [1]


def test_a_commit_without_writes_settles_nothing(store: Store) -> None:
    store.write(1)
    settled: list[StoreFailure | None] = []
    store.engine.on_settled = settled.append
    assert store.engine.commit() is None
    assert settled == [None]
    assert store.engine.commit() is None
    assert settled == [None]


# Pages


def joined(pages: Iterable[Page]) -> Columns:
    return plain(column for page in pages for column in page.columns)


def test_a_page_ends_at_each_of_its_limits(store: Store) -> None:
    some_columns(store)
    cut_after = {
        PageLimits(columns=2): [3, 3],
        PageLimits(cells=4): [3, 1],
        PageLimits(bytes=1): [1],
        PageLimits(scan=5): [3, 2],
    }
    for limits, expected in cut_after.items():
        page = store.page(limits=limits)
        assert [len(cells) for _, cells in page.columns] == expected
        assert page.cursor != b"0"
        assert joined(store.pages(limits=limits)) == store.read()


def test_named_columns_all_fit_on_a_page_unless_it_says_otherwise(store: Store) -> None:
    some_columns(store)
    named = Selection(columns=(b"a", b"ab", b"b"))
    page = store.page(named, limits=PageLimits(columns=1))
    assert [name for name, _ in page.columns] == [b"a", b"ab", b"b"]
    assert [name for name, _ in store.page(named, columns=2).columns] == [b"a", b"ab"]


def test_the_last_page_says_that_nothing_is_left(store: Store) -> None:
    some_columns(store)
    assert store.page(columns=3).cursor == b"0"
    assert store.page(limits=PageLimits(cells=9)).cursor == b"0"


def test_the_first_cell_is_given_whatever_its_size(store: Store) -> None:
    store.put((b"r", 1, b"c", b"x" * 1_000))
    assert store.page(limits=PageLimits(bytes=1)).columns == [(b"c", [(1, b"x" * 1_000)])]


def test_count_and_values_may_change_from_page_to_page(store: Store) -> None:
    some_columns(store)
    first = store.page(Selection(), columns=1)
    request = PageRequest(UNLIMITED, columns=2, rows=7, cursor=first.cursor, values=False)
    second = store.run(store.engine.read_row(b"d", b"r", Selection(), request))
    assert second == Page(b"0", [(b"ab", [3]), (b"b", [3])])


def test_a_cursor_is_of_one_dataset_row_selection_and_call(store: Store) -> None:
    some_columns(store)
    store.create(name=b"e")
    cursor = store.page(Selection(), columns=1).cursor
    request = PageRequest(UNLIMITED, cursor=cursor)
    for call in (
        store.engine.read_row(b"e", b"r", Selection(), request),
        store.engine.read_row(b"d", b"s", Selection(), request),
        store.engine.read_row(b"d", b"r", Selection(versions=2), request),
        store.engine.read_columns(b"d", b"r", ALL_NAMES, request),
        store.engine.scan(b"d", ALL_NAMES, Selection(), request),
    ):
        with pytest.raises(InvalidCursor):
            store.run(call)


def test_a_column_is_cut_no_more_often_than_versions_allow(store: Store) -> None:
    store.write(5, 4, 3, 2, 1)
    pages = store.pages(Selection(versions=3), limits=PageLimits(cells=2))
    assert [page.columns for page in pages] == [
        [(b"c", [(5, b"v"), (4, b"v")])],
        [(b"c", [(3, b"v")])],
    ]


def next_page(store: Store, before: Page, selection: Selection = EVERYTHING) -> list[int]:
    page = store.page(selection, cursor=before.cursor)
    return [timestamp for _, cells in plain(page.columns) for timestamp, _ in cells]


@pytest.mark.parametrize(
    ("newer", "left"), [([], [4, 3]), ([6], [4]), ([6, 7], []), ([6, 7, 8], [])]
)
def test_writes_between_pages_push_cells_out_of_max_versions(
    newer: list[int], left: list[int], store: Store
) -> None:
    store.create(max_versions=3)
    store.write(5, 4, 3, 2)
    first = store.page(limits=PageLimits(cells=1))
    assert first.columns == [(b"c", [(5, b"v")])]
    store.write(*newer)
    assert next_page(store, first) == left


def test_expiry_between_pages_lets_older_cells_in_under_max_versions(store: Store) -> None:
    store.create(max_versions=2)
    store.write(4, expires_at=NOW)
    store.write(3, 2, 1)
    first = store.page(limits=PageLimits(cells=1))
    assert next_page(store, first) == [3]
    store.now += 1
    assert next_page(store, first) == [3, 2]


def test_a_cursor_survives_the_delete_of_what_it_points_at(store: Store) -> None:
    store.write(5, 4, 3)
    first = store.page(limits=PageLimits(cells=1))
    store.delete_at(4)
    assert next_page(store, first) == [3]
    store.delete()
    assert next_page(store, first) == []


@pytest.mark.parametrize("limits", [PageLimits(columns=1), PageLimits(cells=1), PageLimits(scan=1)])
def test_a_column_that_has_given_nothing_is_read_from_its_newest_cell(
    limits: PageLimits, store: Store
) -> None:
    store.put((b"r", 1, b"a", b"a"), (b"r", 1, b"b", b"old"))
    first = store.page(Selection(), limits=limits)
    assert first.columns == [(b"a", [(1, b"a")])]
    store.put((b"r", 2, b"b", b"new"))
    second = store.page(Selection(), cursor=first.cursor)
    assert second == Page(b"0", [(b"b", [(2, b"new")])])


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


@pytest.mark.parametrize(("max_versions", "most"), [(0, 110), (5, 215)])
def test_no_page_examines_many_more_cells_than_it_may(
    max_versions: int, most: int, store: Store
) -> None:
    """Under MAXVERSIONS a page in the middle of a column counts again, within the same limit."""
    store.create(max_versions)
    store.write(*range(1, 1_000), expires_at=NOW)
    store.write(0)
    store.now += 1
    counter = counting(store)
    pages = []
    for page in store.pages(limits=PageLimits(scan=100)):
        assert counter.keys_read <= most
        counter.keys_read = 0
        pages.append(page)
    assert len(pages) >= 10
    assert pages[-1].columns == [(b"c", [(0, b"v")])]


@pytest.mark.parametrize("limits", [PageLimits(scan=43), PageLimits(scan=50, cells=1)])
@pytest.mark.parametrize("max_versions", [1, 2, 3])
def test_below_many_expired_cells_pages_hold_what_the_whole_does(
    max_versions: int, limits: PageLimits, store: Store
) -> None:
    """More of them than a page may examine: it takes the word of the page before."""
    store.create(max_versions)
    store.write(*range(10, 310), expires_at=NOW - 1)
    store.write(4, 3, 2, 1)
    assert joined(store.pages(limits=limits)) == store.read()
    assert store.shown() == [4, 3, 2][:max_versions]


def test_skipping_a_long_column_takes_one_seek(store: Store) -> None:
    store.write(*range(1_000))
    store.put((b"r", 1, b"d", b"v"))
    counter = counting(store)
    assert store.read(Selection()) == [(b"c", [(999, b"v")]), (b"d", [(1, b"v")])]
    assert counter.keys_read <= 15


def test_a_late_page_costs_what_the_first_does(store: Store) -> None:
    store.put(*[(b"r", 1, b"%04d" % number, b"v") for number in range(1_000)])
    counter = counting(store)
    costs = []
    for _ in store.pages(columns=10):
        costs.append(counter.keys_read)
        counter.keys_read = 0
    assert len(costs) == 100
    assert max(costs) - min(costs) <= 1


# Several rows


def test_rows_are_read_in_the_order_asked_repeats_included(store: Store) -> None:
    store.put((b"a", 1, b"c", b"1"), (b"b", 1, b"c", b"2"))
    request = PageRequest(UNLIMITED)
    pages = store.run(store.engine.read_rows(b"d", [b"b", b"x", b"a", b"b"], EVERYTHING, request))
    values = [[value for _, cells in plain(page.columns) for _, value in cells] for page in pages]
    assert values == [[b"2"], [], [b"1"], [b"2"]]
    assert {page.cursor for page in pages} == {b"0"}


def test_a_row_that_the_reply_does_not_reach_has_a_cursor(store: Store) -> None:
    store.put((b"a", 1, b"c", b"1"), (b"b", 1, b"c", b"2"))
    request = PageRequest(PageLimits(cells=1))
    pages = store.run(store.engine.read_rows(b"d", [b"a", b"b", b"x"], EVERYTHING, request))
    assert pages[0] == Page(b"0", [(b"c", [(1, b"1")])])
    assert [page.columns for page in pages[1:]] == [[], []]
    assert b"0" not in [page.cursor for page in pages[1:]]
    assert store.page(row=b"b", cursor=pages[1].cursor) == Page(b"0", [(b"c", [(1, b"2")])])
    assert store.page(row=b"x", cursor=pages[2].cursor) == Page(b"0", [])


def test_a_row_that_is_not_there_costs_the_reply_something(store: Store) -> None:
    store.create()
    request = PageRequest(PageLimits(scan=2))
    pages = store.run(store.engine.read_rows(b"d", [b"x"] * 4, EVERYTHING, request))
    assert [page.cursor == b"0" for page in pages] == [True, True, False, False]


def test_columns_are_listed_in_pages(store: Store) -> None:
    some_columns(store)
    store.put((b"r", 1, b"gone", b"v"), expires_at=NOW - 1)
    request = PageRequest(UNLIMITED, columns=2)
    cursor, names = store.run(store.engine.read_columns(b"d", b"r", ALL_NAMES, request))
    assert names == [b"a", b"ab"]
    request = PageRequest(UNLIMITED, cursor=cursor)
    last = store.run(store.engine.read_columns(b"d", b"r", ALL_NAMES, request))
    assert last == (b"0", [b"b"])


def test_rows_with_a_visible_cell_are_counted(store: Store) -> None:
    store.put((b"a", 1, b"c", b"v"), (b"b", 1, b"c", b""))
    store.put((b"gone", 1, b"c", b"v"), expires_at=NOW - 1)
    rows = [b"a", b"b", b"gone", b"missing", b"a"]
    assert store.run(store.engine.count_rows(b"d", rows)) == 3


def test_a_scan_gives_rows_in_order_within_its_bounds(store: Store) -> None:
    store.put(*[(row, 1, b"c", b"v") for row in (b"b", b"a", b"\xff", b"", b"ab")])
    store.put((b"gone", 1, b"c", b"v"), expires_at=NOW - 1)

    def rows(names: NameRange) -> list[bytes]:
        page = store.scan(names)
        assert page.cursor == b"0"
        return [row for row, _, _ in page.rows]

    assert rows(ALL_NAMES) == [b"", b"a", b"ab", b"b", b"\xff"]
    assert rows(NameRange(prefix=b"a")) == [b"a", b"ab"]
    assert rows(NameRange(start=b"ab", stop=b"\xff")) == [b"ab", b"b"]
    assert rows(NameRange(start=b"b", stop=b"b")) == []


def test_a_scan_has_a_cursor_for_rows_and_one_inside_each(store: Store) -> None:
    for row in (b"1", b"2", b"3"):
        store.put(*[(row, 1, column, b"v") for column in (b"a", b"b", b"c")])
    limits = PageLimits(columns=2)
    page = store.scan(limits=limits, limit=2)
    assert [(row, [name for name, _ in columns]) for row, columns, _ in page.rows] == [
        (b"1", [b"a", b"b"]),
        (b"2", [b"a", b"b"]),
    ]
    for row, _, cursor in page.rows:
        assert store.page(row=row, cursor=cursor) == Page(b"0", [(b"c", [(1, b"v")])])
    last = store.scan(limits=limits, limit=2, cursor=page.cursor)
    assert (last.cursor, [row for row, _, _ in last.rows]) == (b"0", [b"3"])


def test_a_scan_passes_few_rows_without_the_wanted_column_at_a_time(store: Store) -> None:
    store.put(*[(b"%03d" % number, 1, b"c", b"v") for number in range(200)])
    store.put((b"200", 1, b"wanted", b"v"))
    counter = counting(store)
    found, limits = [], PageLimits(scan=20)
    for page in store.scan_pages(ALL_NAMES, Selection((b"wanted",)), limits):
        assert counter.keys_read <= 50
        counter.keys_read = 0
        found += [row for row, _, _ in page.rows]
    assert found == [b"200"]


def test_a_row_not_begun_is_scanned_with_what_was_written_to_it_meanwhile(store: Store) -> None:
    store.put((b"1", 1, b"c", b"v"), (b"2", 1, b"c", b"v"))
    page = store.scan(limits=PageLimits(scan=1))
    store.put((b"2", 2, b"a", b"new"))
    rest = store.scan(cursor=page.cursor)
    assert rest.rows == [(b"2", [(b"a", [(2, b"new")]), (b"c", [(1, b"v")])], b"0")]


@random_stories(200)
@given(
    st.binary(max_size=30),
    st.one_of(st.none(), st.integers(0, 5)),
    st.sampled_from([EVERYTHING, Selection(), Selection((b"a", b"b"), times=TimeRange(2, 2))]),
)
def test_a_forged_cursor_begins_elsewhere_or_is_invalid(
    store: Store, bound: bytes, returned: int | None, selection: Selection
) -> None:
    """The digest is no secret: whoever works it out may begin where he likes."""
    store.run(store.engine.create_dataset(b"d", DatasetSettings(2), if_not_exists=True))
    some_columns(store)
    position = Position(bound.replace(b"0", b"\x00"), returned)
    cursor = Binding(b"row", (b"d", b"r"), selection).encode(position)
    with contextlib.suppress(InvalidCursor):
        found = {name for page in store.pages(selection, cursor=cursor) for name, _ in page.columns}
        assert found <= {b"a", b"ab", b"b"}
    cursor = Binding(b"scan", (b"d",), selection, ALL_NAMES).encode(position)
    with contextlib.suppress(InvalidCursor):
        assert {row for row, _, _ in store.scan(ALL_NAMES, selection, cursor=cursor).rows} <= {b"r"}


# Random rows and limits

ROWS = st.sampled_from([b"", b"a", b"a\x00", b"\xff"])
COLUMNS = st.sampled_from([b"", b"a", b"a\x00", b"b", b"\xff"])
SETTINGS = st.builds(DatasetSettings, st.integers(0, 3), st.sampled_from([0, 1]))
NEAR = st.one_of(st.integers(NOW - 3, NOW + 3), st.integers(NOW - 1_003, NOW - 997))
EXPIRIES = st.one_of(st.none(), st.integers(NOW - 2, NOW + 4))
CONTENT = st.dictionaries(
    st.tuples(ROWS, COLUMNS, NEAR), st.tuples(st.binary(max_size=30), EXPIRIES), max_size=40
)
Content = dict[tuple[bytes, bytes, int], tuple[bytes, int | None]]
LIMITS = st.builds(
    PageLimits,
    columns=st.integers(1, 4),
    rows=st.integers(1, 3),
    cells=st.integers(1, 6),
    bytes=st.integers(1, 400),
    scan=st.integers(1, 8),
)
MAYBE_NAMES = st.one_of(st.none(), st.sampled_from([b"", b"a", b"a\x00", b"b", b"\xff"]))
RANGES = st.builds(NameRange, MAYBE_NAMES, MAYBE_NAMES, MAYBE_NAMES)
TIMES = st.one_of(st.just(ALL_TIME), st.builds(TimeRange, NEAR, NEAR))
VERSIONS = st.one_of(st.none(), st.integers(1, 3))
SELECTIONS = st.one_of(
    st.builds(Selection, st.none(), RANGES, VERSIONS, TIMES),
    st.builds(
        Selection,
        st.sets(COLUMNS).map(lambda names: tuple(sorted(names))),
        st.just(ALL_NAMES),
        VERSIONS,
        TIMES,
    ),
)


def wanted(name: bytes, names: NameRange) -> bool:
    return (
        (names.prefix is None or name.startswith(names.prefix))
        and (names.start is None or name >= names.start)
        and (names.stop is None or name < names.stop)
    )


def lives_until(timestamp: int, expires_at: int | None, ttl_seconds: int) -> int:
    own = 2**64 if expires_at is None else expires_at
    return min(own, timestamp + ttl_seconds * 1_000) if ttl_seconds else own


def expected_row(
    content: Content, row: bytes, selection: Selection, kept: DatasetSettings, now: int
) -> Columns:
    """What a read of a row has to answer, by the definition of a visible cell."""
    found: Columns = []
    for column in sorted({column for holder, column, _ in content if holder == row}):
        named = column in selection.columns if selection.columns is not None else True
        if not named or not wanted(column, selection.names):
            continue
        living = [
            (at, value)
            for (holder, name, at), (value, expires_at) in sorted(content.items(), reverse=True)
            if (holder, name) == (row, column)
            and lives_until(at, expires_at, kept.ttl_seconds) >= now
        ]
        visible = living[: kept.max_versions or None]
        oldest, newest = selection.times.oldest, selection.times.newest
        chosen = [cell for cell in visible if oldest <= cell[0] <= newest][: selection.versions]
        if chosen:
            found.append((column, chosen))
    return found


def emptied(store: Store, name: bytes, kept: DatasetSettings) -> None:
    """The dataset with these settings and no cells: much cheaper than a new one."""
    engine = store.engine
    store.run(engine.create_dataset(name, DEFAULTS, if_not_exists=True))
    rows = {row for row, _, _, _ in store.stored(name)}
    store.run(engine.delete(name, list(rows), Deletion()))
    given = {"max_versions": kept.max_versions, "ttl_seconds": kept.ttl_seconds}
    store.run(engine.alter_dataset(name, **given))
    assert store.stored(name) == []


def filled(store: Store, kept: DatasetSettings, content: Content) -> None:
    emptied(store, b"d", kept)
    for (row, column, timestamp), (value, expires_at) in content.items():
        store.put((row, timestamp, column, value), expires_at=expires_at)


@random_stories(100)
@given(SETTINGS, CONTENT, ROWS, SELECTIONS, LIMITS)
def test_the_pages_of_a_row_add_up_to_the_whole(
    store: Store,
    kept: DatasetSettings,
    content: Content,
    row: bytes,
    selection: Selection,
    limits: PageLimits,
) -> None:
    filled(store, kept, content)
    whole = expected_row(content, row, selection, kept, NOW)
    assert store.read(selection, row) == whole
    pages = list(store.pages(selection, row, limits, columns=limits.columns))
    assert joined(pages) == whole
    for page in pages:
        sizes = [len(value) for _, cells in plain(page.columns) for _, value in cells]
        assert len(page.columns) <= limits.columns
        assert len(sizes) <= min(limits.cells, limits.scan)
        assert sum(sizes) <= limits.bytes or len(sizes) == 1


@random_stories(100)
@given(SETTINGS, CONTENT, RANGES, SELECTIONS, LIMITS)
def test_the_pages_of_a_scan_add_up_to_the_whole(
    store: Store,
    kept: DatasetSettings,
    content: Content,
    names: NameRange,
    selection: Selection,
    limits: PageLimits,
) -> None:
    filled(store, kept, content)
    whole = [
        (row, columns)
        for row in sorted({row for row, _, _ in content})
        if wanted(row, names) and (columns := expected_row(content, row, selection, kept, NOW))
    ]
    assert [(row, plain(columns)) for row, columns, _ in store.scan(names, selection).rows] == whole
    found: list[tuple[bytes, Columns]] = []
    for page in store.scan_pages(names, selection, limits):
        assert len(page.rows) <= limits.rows
        for row, begun, cursor in page.rows:
            rest = store.pages(selection, row, cursor=cursor) if cursor != b"0" else ()
            found.append((row, joined([Page(cursor, begun), *rest])))
    assert found == whole


# Deleting


def test_a_row_is_deleted_and_can_be_written_again(store: Store) -> None:
    some_columns(store)
    store.put((b"other", 1, b"c", b"v"))
    assert store.delete() == 1
    assert store.read() == []
    assert store.delete() == 0
    store.write(1)
    assert store.shown() == [1]
    assert store.read(row=b"other") == [(b"c", [(1, b"v")])]


def test_named_columns_are_deleted_and_counted(store: Store) -> None:
    some_columns(store)
    store.put((b"r", 1, b"gone", b"v"), expires_at=NOW - 1)
    assert store.delete(columns=(b"a", b"a", b"b", b"gone", b"x")) == 2
    assert [name for name, _ in store.read()] == [b"ab"]


def test_a_delete_in_several_rows_counts_each_once(store: Store) -> None:
    for row in (b"1", b"2", b"3"):
        store.put((row, 1, b"c", b"v"))
    assert store.delete(b"1", b"3", b"1", b"x") == 2
    assert [row for row, _, _ in store.scan().rows] == [b"2"]


def test_cells_are_deleted_by_range(store: Store) -> None:
    store.write(5, 4, 3, 2, 1)
    assert store.delete(times=TimeRange(2, 4)) == 1
    assert store.shown() == [5, 1]
    assert store.delete(times=TimeRange(2, 4)) == 0
    assert store.delete(times=TimeRange(5, 1)) == 0
    assert store.shown() == [5, 1]


def test_cells_are_deleted_by_timestamps(store: Store) -> None:
    some_columns(store)
    assert store.delete(columns=(b"a", b"b", b"x"), timestamps=[3, 1, 3, 7]) == 2
    assert store.read() == [
        (b"a", [(2, b"2")]),
        (b"ab", [(3, b"3"), (2, b"2"), (1, b"1")]),
        (b"b", [(2, b"2")]),
    ]


def test_a_timestamp_means_every_cell_of_its_millisecond(store: Store) -> None:
    store.write(None, None, NOW, NOW + 1, NOW - 1)
    assert store.delete_at(NOW) == 1
    assert store.shown() == [NOW + 1, NOW - 1]


@pytest.mark.parametrize("cells", [10, 100])
def test_few_cells_and_many_are_deleted_alike(cells: int, store: Store) -> None:
    store.put(*[(b"q", 1, b"c", b"v"), (b"r\x00", 1, b"c", b"v")])
    store.write(*range(cells))
    assert store.delete(times=TimeRange(1, cells - 2)) == 1
    assert store.stored_timestamps() == [1, cells - 1, 0, 1]
    assert store.delete() == 1
    assert [row for row, _, _ in store.scan().rows] == [b"q", b"r\x00"]


def test_a_delete_by_time_brings_no_hidden_cell_back(store: Store) -> None:
    store.create(max_versions=2)
    store.write(5, 4, 3, 2)
    assert store.delete_at(5) == 1
    assert store.shown() == [4]
    assert store.stored_timestamps() == [4]


def test_a_delete_of_a_cell_that_could_show_drops_what_hides_below(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, expires_at=NOW)
    store.write(4, 3)
    assert store.delete_at(4) == 0
    store.now += 1
    assert store.shown() == []


def four_hidden_by_one(store: Store) -> None:
    """Under MAXVERSIONS 1: 2 shows after 5 has expired, and 1 at last; 4 and 3 never do."""
    store.create(max_versions=1)
    for timestamp, lifetime in [(5, 9), (4, 5), (3, 8), (2, 20), (1, 99)]:
        store.write(timestamp, expires_at=NOW + lifetime)
    assert store.shown() == [5]


@pytest.mark.parametrize(
    ("deleted", "later", "at_last"), [(4, [2], [1]), (3, [2], [1]), (2, [], []), (1, [2], [])]
)
def test_a_delete_of_a_hidden_cell_drops_what_is_below_if_it_could_show(
    deleted: int, later: list[int], at_last: list[int], store: Store
) -> None:
    four_hidden_by_one(store)
    assert store.delete_at(deleted) == 0
    store.now = NOW + 10
    assert store.shown() == later
    store.now = NOW + 21
    assert store.shown() == at_last


@pytest.mark.parametrize(("cells", "kind"), [(10, Kind.DELETE), (100, Kind.DELETE_RANGE)])
def test_a_long_row_is_deleted_at_one_stroke(cells: int, kind: Kind, store: Store) -> None:
    store.write(*range(cells))
    store.engine.commit()
    store.delete()
    kinds = [operation[0] for operation in store.engine._group.operations]
    assert set(kinds) == {kind}
    assert len(kinds) <= 10


def test_without_max_versions_a_delete_by_time_takes_only_what_it_names(store: Store) -> None:
    store.write(5, 4, 3)
    assert store.delete_at(4) == 1
    assert store.shown() == [5, 3]


def test_an_earlier_expiry_brings_no_hidden_cell_back(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, 4)
    store.write(5, expires_at=NOW)
    assert store.shown() == [5]
    store.now += 1
    assert store.shown() == []


def test_a_later_expiry_leaves_what_could_show_below(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, expires_at=NOW)
    store.write(4)
    store.write(5, expires_at=NOW + 3)
    store.now += 4
    assert store.shown() == [4]


def test_the_same_expiry_again_drops_nothing(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, expires_at=NOW)
    store.write(4)
    store.write(5, expires_at=NOW)
    store.now += 1
    assert store.shown() == [4]


def test_an_earlier_expiry_of_what_could_not_show_drops_nothing(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, expires_at=NOW + 9)
    store.write(4, expires_at=NOW + 5)
    store.write(3, expires_at=NOW + 20)
    store.write(4, expires_at=NOW + 2)
    store.now += 10
    assert store.shown() == [3]


def test_a_new_cell_with_an_expiry_drops_nothing(store: Store) -> None:
    store.create(max_versions=1)
    store.write(4)
    store.write(5, expires_at=NOW)
    store.now += 1
    assert store.shown() == [4]


# Increments and comparisons


def test_an_absent_column_counts_as_0(store: Store) -> None:
    assert store.increment(5) == 5
    assert store.increment(-7) == -2
    assert store.read() == [(b"c", [(NOW, b"-2"), (NOW, b"5")])]


def test_an_increment_keeps_the_expiry_of_the_cell_before(store: Store) -> None:
    store.put((b"r", 1, b"c", b"41"), expires_at=NOW + 5)
    assert store.increment(1) == 42
    store.now += 6
    assert store.shown() == []
    assert store.increment(1) == 1


@pytest.mark.parametrize("value", [b"", b"x", b"1.0", b"+1", b"01", b" 1", b"-0", b"9" * 19])
def test_what_is_no_integer_is_not_incremented(value: bytes, store: Store) -> None:
    store.put((b"r", 1, b"c", value))
    with pytest.raises(NotAnInteger):
        store.increment(1)
    assert store.read() == [(b"c", [(1, value)])]


@pytest.mark.parametrize(("value", "amount"), [(2**63 - 1, 1), (-(2**63), -1)])
def test_an_increment_does_not_overflow(value: int, amount: int, store: Store) -> None:
    store.put((b"r", 1, b"c", b"%d" % value))
    with pytest.raises(IncrementOverflow):
        store.increment(amount)
    assert store.shown() == [1]
    assert store.increment(-amount) == value - amount


def test_a_cell_in_the_future_is_not_incremented(store: Store) -> None:
    store.put((b"r", NOW + 1, b"c", b"1"))
    with pytest.raises(NewestCellInFuture):
        store.increment(1)
    assert store.shown() == [NOW + 1]
    store.now += 1
    assert store.increment(1) == 2
    assert store.shown() == [NOW + 1, NOW + 1]


def test_a_cell_is_put_if_the_newest_value_is_as_expected(store: Store) -> None:
    store.put((b"r", 1, b"c", b"old"), (b"r", 0, b"c", b"older"))
    assert not store.compare_and_put(b"older", 2)
    assert not store.compare_and_put(None, 2)
    assert store.shown() == [1, 0]
    assert store.compare_and_put(b"old", 2)
    assert store.read(Selection()) == [(b"c", [(2, b"new")])]


def test_an_absent_column_is_told_from_an_empty_value(store: Store) -> None:
    assert not store.compare_and_put(b"")
    assert store.engine.dataset_names() == []
    assert store.compare_and_put(None, 1)
    store.put((b"r", 2, b"c", b""))
    assert not store.compare_and_put(None, 3)
    assert store.compare_and_put(b"", 3)


def test_a_compared_cell_has_to_be_the_newest(store: Store) -> None:
    store.put((b"r", NOW, b"c", b"old"))
    for timestamp in (NOW - 1, NOW):
        with pytest.raises(TimestampNotNewer):
            store.compare_and_put(b"old", timestamp)
    assert store.shown() == [NOW]
    assert store.compare_and_put(b"old", None)
    assert store.shown() == [NOW, NOW]


def test_a_compared_cell_may_not_have_expired(store: Store) -> None:
    store.create(ttl_seconds=1)
    for timestamp, expires_at in [(NOW, NOW - 1), (NOW - 1_001, None)]:
        with pytest.raises(TimestampNotNewer):
            store.compare_and_put(None, timestamp, expires_at)
    assert store.shown() == []
    assert store.compare_and_put(None, NOW - 1_000, NOW)


def test_a_clock_behind_a_future_cell_does_not_put(store: Store) -> None:
    store.put((b"r", NOW + 1, b"c", b"old"))
    with pytest.raises(TimestampNotNewer):
        store.compare_and_put(b"old", None)
    assert store.shown() == [NOW + 1]


# Compaction


def kept_by_the_rule(engine: EmbeddedEngine, name: bytes, now: int) -> list[bytes]:
    """The keys that compaction has to leave, by the words of docs/disk-format.md."""
    dataset = engine.open_dataset(name)
    assert dataset is not None
    kept, columns = [], dict[bytes, list[int]]()
    for key, value in raw_cells(engine, name):
        expires_at, _ = split_value(value)
        until = lives_until(split_key(key)[2], expires_at, dataset.settings.ttl_seconds)
        above = columns.setdefault(key[:-10], [])
        if until >= now:
            outliving = [other for other in above if other >= until]
            if not 0 < dataset.settings.max_versions <= len(outliving):
                kept.append(key)
            above.append(until)
    return kept


def test_compaction_removes_what_nobody_can_see(store: Store) -> None:
    store.create(max_versions=2)
    store.write(9, expires_at=NOW - 1)
    store.write(5, 4, 3, 2)
    store.compact()
    assert store.stored_timestamps() == [5, 4]


def test_compaction_leaves_what_may_show_again(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, expires_at=NOW)
    store.write(4, 3)
    store.compact()
    assert store.stored_timestamps() == [5, 4]
    store.now += 1
    assert store.shown() == [4]


def test_compaction_takes_long_runs_of_dead_cells(store: Store) -> None:
    store.create(max_versions=3)
    store.write(*range(2_000))
    store.put((b"r", 1, b"b", b"v"), (b"r", 1, b"d", b"v"))
    store.compact()
    assert store.stored_timestamps() == [1, 1_999, 1_998, 1_997, 1]
    info = store.run(store.engine.dataset_info(b"d"))
    assert info.last_compaction_removed_cells == 1_997


def test_a_change_of_settings_ends_a_compaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "SLICE_CELLS", 2)
    store.create(max_versions=1)
    store.write(*range(100))

    async def alter_meanwhile() -> None:
        await store.engine.compact_dataset(b"d")
        await asyncio.sleep(0)
        await store.engine.alter_dataset(b"d", max_versions=2)
        await collected(store.engine)

    store.run(alter_meanwhile())
    assert len(store.stored_timestamps()) > 90
    assert store.run(store.engine.dataset_info(b"d")).last_compaction_ms == 0


def test_a_dataset_may_be_dropped_while_it_is_compacted(store: Store) -> None:
    store.create(max_versions=1)
    store.write(*range(100))

    async def drop_meanwhile(turns: int) -> None:
        await store.engine.compact_dataset(b"d")
        for _ in range(turns):
            await asyncio.sleep(0)
        await store.engine.drop_dataset(b"d")
        await collected(store.engine)

    for turns in range(6):
        store.run(drop_meanwhile(turns))
        assert store.engine.dataset_names() == []
        store.write(1)
        assert store.shown() == [1]


def compact_while(
    store: Store, monkeypatch: pytest.MonkeyPatch, turns: int, *calls: Coroutine[Any, Any, object]
) -> None:
    """The calls come after some turns of the loop, in each of which one cell is looked at."""
    monkeypatch.setattr(collector, "SLICE_CELLS", 1)

    async def both() -> None:
        await store.engine.compact_dataset(b"d")
        for _ in range(turns):
            await asyncio.sleep(0)
        for call in calls:
            await call
        await collected(store.engine)

    store.run(both())


@pytest.mark.parametrize("turns", range(7))
def test_a_compaction_forgets_cells_that_are_deleted_meanwhile(
    turns: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(max_versions=2)
    store.write(9, 8, 7)
    compact_while(
        store,
        monkeypatch,
        turns,
        store.engine.delete(b"d", [b"r"], Deletion(timestamps=[9])),
        store.engine.put(b"d", [(b"r", 5, b"c", b"v"), (b"r", 4, b"c", b"v")], None, None),
    )
    assert store.shown() == [8, 5]


@pytest.mark.parametrize("turns", range(7))
def test_a_compaction_leaves_no_dead_cell_because_of_a_delete_elsewhere(
    turns: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(max_versions=1)
    store.write(5, 4, 3, 2, 1)
    store.put((b"s", 1, b"c", b"v"))
    compact_while(store, monkeypatch, turns, store.engine.delete(b"d", [b"s"], Deletion()))
    assert store.stored_timestamps() == [5]


@pytest.mark.parametrize("turns", range(7))
def test_a_compaction_heeds_an_earlier_expiry_that_came_meanwhile(
    turns: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(max_versions=2)
    store.write(9, 8)
    compact_while(
        store,
        monkeypatch,
        turns,
        store.engine.put(b"d", [(b"r", 9, b"c", b"v")], NOW, None),
        store.engine.put(b"d", [(b"r", 5, b"c", b"v"), (b"r", 4, b"c", b"v")], None, None),
    )
    assert store.shown() == [9, 8]
    store.now += 1
    assert store.shown() == [8, 5]


Step = tuple[Any, ...]
SMALL_COLUMNS = st.sampled_from([b"a", b"a", b"a", b"b"])
MOMENTS = st.sampled_from([NOW - 1_000, NOW - 2, NOW - 1, NOW, NOW + 1])
LIFETIMES = st.sampled_from([None, None, 0, 1, 2, 8])
PUTS = st.tuples(
    st.just("put"),
    st.lists(st.tuples(st.one_of(st.none(), MOMENTS), SMALL_COLUMNS), min_size=1, max_size=3),
    LIFETIMES,
)
WHICH = st.one_of(st.none(), st.sets(SMALL_COLUMNS, min_size=1).map(tuple))
DELETES = st.one_of(
    st.tuples(st.just("delete"), WHICH, st.builds(TimeRange, MOMENTS, MOMENTS), st.none()),
    st.tuples(st.just("delete"), WHICH, st.none(), st.lists(MOMENTS, min_size=1, max_size=2)),
    st.tuples(st.just("delete"), WHICH, st.none(), st.none()),
)
WAITS = st.tuples(st.just("wait"), st.sampled_from([1, 2, 3, 997, 998, 999, 1_000]))
INCREMENTS = st.tuples(st.just("increment"), SMALL_COLUMNS)
CHANGES = st.one_of(PUTS, PUTS, DELETES, INCREMENTS)
STEPS = st.one_of(PUTS, CHANGES, WAITS, st.sampled_from([("narrow",), ("compact",)]))
BEGINNINGS = st.lists(PUTS, max_size=4)
READS = [
    EVERYTHING,
    Selection(),
    Selection(versions=None, times=TimeRange(NOW - 2, NOW + 1)),
    Selection(columns=(b"a",), versions=2, times=TimeRange(0, NOW)),
]


async def take(engine: EmbeddedEngine, name: bytes, step: Step, now: int) -> object:
    """Do one step of a story to a dataset; the reply that a client would get."""
    try:
        match step:
            case ("put", cells, lifetime):
                new = [(b"r", at, column, b"1") for at, column in cells]
                expires_at = None if lifetime is None else now + lifetime
                await engine.put(name, new, expires_at, None)
            case ("delete", columns, times, timestamps):
                return await engine.delete(name, [b"r"], Deletion(columns, times, timestamps))
            case ("increment", column):
                return await engine.increment(name, b"r", column, 1, None)
            case ("narrow",):  # wider settings may bring back what was hidden, or not
                old = (await engine.dataset_info(name)).settings.max_versions
                await engine.alter_dataset(name, max_versions=max(1, old - 1) if old else 3)
    except StorageError as error:
        return str(error)
    return None


async def answers(engine: EmbeddedEngine, name: bytes) -> list[list[ColumnCells]]:
    request = PageRequest(UNLIMITED)
    return [(await engine.read_row(name, b"r", read, request)).columns for read in READS]


async def happens_to_both(store: Store, step: Step) -> None:
    """One of the two datasets is compacted; no reply tells which."""
    if step[0] == "wait":
        store.now += step[1]
    replies = [await take(store.engine, name, step, store.now) for name in (b"plain", b"compacted")]
    assert replies[0] == replies[1]
    await nobody_sees_a_difference(store)


async def nobody_sees_a_difference(store: Store) -> None:
    assert await answers(store.engine, b"compacted") == await answers(store.engine, b"plain")


async def nor_at_any_later_time(store: Store) -> None:
    """Compact for good, see that the dead are gone, and let everything expire step by step."""
    await compact(store.engine, b"compacted")
    await store.engine.settle()
    assert [key[:-2] for key, _ in raw_cells(store.engine, b"compacted")] == [
        key[:-2] for key in kept_by_the_rule(store.engine, b"plain", store.now)
    ]
    for wait in [1] * 9 + [985] + [1] * 9 + [1_000]:
        store.now += wait
        await nobody_sees_a_difference(store)


def begin_again(store: Store, kept: DatasetSettings) -> None:
    store.run(collected(store.engine))
    store.now = NOW
    store.engine._clock = HybridClock(wall_ns=lambda: store.now * 1_000_000)
    for name in (b"plain", b"compacted"):
        emptied(store, name, kept)


@random_stories(150)
@given(SETTINGS, BEGINNINGS, st.lists(STEPS, max_size=15))
def test_no_answer_depends_on_whether_compaction_came_first(
    store: Store, kept: DatasetSettings, beginning: list[Step], story: list[Step]
) -> None:
    async def tell() -> None:
        for step in [*beginning, ("compact",), *story]:
            if step[0] == "compact":
                await compact(store.engine, b"compacted")
            await happens_to_both(store, step)
        await nor_at_any_later_time(store)

    begin_again(store, kept)
    store.run(tell())


@random_stories(150)
@given(SETTINGS, BEGINNINGS, st.lists(st.tuples(st.integers(0, 3), CHANGES), max_size=5))
@example(
    DatasetSettings(2),
    [("put", [(NOW, b"a"), (NOW - 1, b"a")], None)],
    [(1, ("put", [(NOW, b"a")], 0)), (0, ("put", [(NOW - 2, b"a")], None))],
)
def test_no_answer_depends_on_a_compaction_that_is_under_way(
    store: Store, kept: DatasetSettings, beginning: list[Step], story: list[tuple[int, Step]]
) -> None:
    """Before each change the compaction has a few turns, in each of which it looks at one cell."""

    async def tell() -> None:
        for step in beginning:
            await happens_to_both(store, step)
        await store.engine.compact_dataset(b"compacted")
        for turns, step in story:
            for _ in range(turns):
                await asyncio.sleep(0)
            await happens_to_both(store, step)
        await collected(store.engine)
        await nobody_sees_a_difference(store)
        await nor_at_any_later_time(store)

    begin_again(store, kept)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(collector, "SLICE_CELLS", 1)
        store.run(tell())
