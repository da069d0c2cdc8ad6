"""The embedded engine: datasets and cells over an ordered store in this process.

One thread calls it. Writes gather in a group until commit(); a read of a row which the group
touches commits first, so everybody reads what was written. Nothing here waits, except a call that
has to commit while the store is stalled: that one sleeps and tries again. Whatever was looked up
before such a wait is looked up again after it. Knows nothing of sockets, commands or files.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from storage.catalog import CLOCK_KEY, check_name, decode_clock, encode_clock
from storage.clock import HybridClock, wall_clock_ms
from storage.cursors import START, Binding, Position
from storage.embedded.datasets import Dataset, Datasets
from storage.embedded.deleter import RowDeleter, drop_below_rewritten
from storage.embedded.group import MAX_OPERATIONS, Group
from storage.embedded.ordered import Kind, Operation, OrderedStore
from storage.embedded.reader import (
    NEVER,
    NO_LIMIT,
    Budget,
    RowReader,
    Rules,
    expiry_of,
    holds_visible,
    read_rows,
)
from storage.encoding import (
    PLAIN,
    cell_suffix,
    column_prefix,
    end_of,
    name_bounds,
    row_prefix,
    split_value,
    timestamp_of,
    value_header,
)
from storage.engine import Settled
from storage.errors import (
    DatasetExists,
    IncrementOverflow,
    NewestCellInFuture,
    NotAnInteger,
    StoreFailure,
    StoreStalled,
    TimestampNotNewer,
)
from storage.integers import parse_integer
from storage.maintenance.collector import Collector
from storage.model import (
    DatasetInfo,
    DatasetSettings,
    Deletion,
    NameRange,
    NewCell,
    Page,
    PageRequest,
    RowsPage,
    Selection,
)

log = logging.getLogger(__name__)

STALL_RETRY_SECONDS = 0.003
CLOCK_AHEAD_WARNING_MS = 60_000
_PUT = Kind.PUT


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest visible cell of a column. Times in Unix milliseconds."""

    timestamp: int
    expires_at: int | None
    value: bytes


class EmbeddedEngine:
    """Answers storage.engine.Engine over any OrderedStore."""

    def __init__(self, store: OrderedStore, *, durable_commits: bool = False) -> None:
        """Read the catalog. `durable_commits`: a commit returns only once it is on the disk."""
        self.durable_commits = durable_commits
        self.on_settled: Settled = _nobody_waits
        self._store = store
        self._catalog = store.default_family()
        self._group = Group()
        self._datasets = Datasets(store, self._group)
        self._clock = HybridClock(decode_clock(self._catalog.get(CLOCK_KEY)))
        self._collector = Collector(self)
        self._failure: StoreFailure | None = None
        self._failures = 0
        self.unsynced = False
        """Whether a commit has not been followed by a sync()."""
        self._warn_of_clock()

    def _warn_of_clock(self) -> None:
        ahead = self._clock.last_ms - wall_clock_ms()
        if ahead > CLOCK_AHEAD_WARNING_MS:
            log.warning("the stored clock is %d s ahead of this machine's", ahead // 1000)

    # Datasets

    def open_dataset(self, name: bytes) -> Dataset | None:
        return self._datasets.get(name)

    async def create_dataset(
        self, name: bytes, settings: DatasetSettings, *, if_not_exists: bool = False
    ) -> None:
        if self._datasets.get(name) is None:
            self._datasets.create(name, settings, self._clock.now())
        elif not if_not_exists:
            raise DatasetExists(name)

    async def alter_dataset(
        self, name: bytes, *, max_versions: int | None = None, ttl_seconds: int | None = None
    ) -> None:
        dataset = self._datasets.find(name)
        old = dataset.settings
        settings = DatasetSettings(
            old.max_versions if max_versions is None else max_versions,
            old.ttl_seconds if ttl_seconds is None else ttl_seconds,
        )
        self._datasets.store(dataset, dataset.entry.altered(settings))

    async def drop_dataset(self, name: bytes, *, if_exists: bool = False) -> None:
        check_name(name)
        while True:
            await self.settle()  # nothing may be on its way to a family that is dropped
            if if_exists and self._datasets.get(name) is None:
                return None
            dataset = self._datasets.find(name)
            try:
                return self._datasets.drop(dataset)
            except StoreStalled:
                await asyncio.sleep(STALL_RETRY_SECONDS)
            except StoreFailure as failure:
                raise self._fail(failure) from failure

    def dataset_names(self) -> list[bytes]:
        return self._datasets.names()

    async def dataset_info(self, name: bytes) -> DatasetInfo:
        return self._datasets.find(name).info()

    async def compact_dataset(self, name: bytes) -> None:
        self._datasets.find(name)
        self._collector.request(name)

    def note_compaction(self, dataset: Dataset, removed_cells: int) -> None:
        entry = dataset.entry.compacted(self._clock.now(), removed_cells)
        self._datasets.store(dataset, entry)
        # A task did this, not a command: no tick follows that would commit it.
        with contextlib.suppress(StoreStalled):
            self.commit()

    # The group

    def now(self) -> int:
        return self._clock.now()

    def commit(self) -> StoreFailure | None:
        group, clock = self._group, self._clock
        operations, reserved = group.operations, clock.reserved_ms
        if clock.needs_reservation:
            reserved = clock.next_reservation()
            # A list of its own: a stalled commit is tried again, with a later reservation.
            operations = [*operations, (_PUT, self._catalog, CLOCK_KEY, encode_clock(reserved))]
        elif not operations:
            return None
        try:
            self._store.write(operations, durable=self.durable_commits)
        except StoreStalled:
            raise
        except Exception as error:
            return self._fail(error)
        clock.reserved_ms = reserved
        group.clear()
        self.unsynced = True
        self.on_settled(None)
        return None

    def _fail(self, error: Exception) -> StoreFailure:
        """The group's outcome is unknown: say so to all who wait, and start afresh from disk."""
        log.error("writing to the store failed: %s", error, exc_info=error)
        self._group.clear()
        failure = error if isinstance(error, StoreFailure) else StoreFailure(str(error))
        self._failure = failure
        self._failures += 1
        try:
            self._store.reopen()
            self._datasets.load()
        except StoreFailure as again:
            log.error("the store cannot be opened again: %s", again)
        self.on_settled(failure)
        return failure

    async def settle(self) -> None:
        """Commit, waiting while the store is stalled. Raises the failure if it fails."""
        failures = self._failures
        while self._group.operations:
            try:
                self.commit()
            except StoreStalled:
                await asyncio.sleep(STALL_RETRY_SECONDS)
            # Somebody else's commit may have failed meanwhile, and taken the group with it.
            if self._failures != failures and self._failure is not None:
                raise self._failure

    async def _find_settled(self, name: bytes, prefixes: Sequence[bytes]) -> Dataset:
        """The dataset, with everything written to these rows in the log."""
        dataset = self._datasets.find(name)
        if dataset.waiting_rows and not dataset.waiting_rows.isdisjoint(prefixes):
            await self.settle()
            return self._datasets.find(name)
        return dataset

    def append(self, operations: Sequence[Operation]) -> None:
        self._group.operations += operations

    def sync(self) -> None:
        self.unsynced = False
        self._store.sync()

    async def close(self) -> None:
        await self._collector.stop()
        with contextlib.suppress(StoreFailure):  # it was logged, and told to whom it concerns
            await self.settle()
        # The exact last stamp: after a clean stop the clock need not run ahead of the wall.
        stop = (_PUT, self._catalog, CLOCK_KEY, encode_clock(self._clock.last_ms))
        try:
            self._store.write([stop], durable=True)
        except (StoreFailure, StoreStalled) as error:
            log.error("the clock could not be stored: %s", error)
        self._store.close()

    # Writing

    async def put(
        self,
        dataset: bytes,
        cells: Sequence[NewCell],
        expires_at: int | None,
        create_with: DatasetSettings | None,
    ) -> None:
        found = self._datasets.get(dataset) or self._create_for(dataset, cells, create_with)
        dropped: list[Operation] = []
        if expires_at is not None and found.settings.max_versions:
            dropped = await self._drop_below_rewritten(dataset, cells, expires_at)
            found = self._datasets.find(dataset)
            # A cell above may expire earlier now: what a compaction remembers of it is void.
            found.deletes += 1
        # From here on nothing waits. This loop is the hot path of the whole program.
        group, family, rows = self._group, found.family, found.waiting_rows
        operations, before = group.operations, len(group.operations)
        header = PLAIN if expires_at is None else value_header(expires_at)
        stamp = self._clock.stamp
        if not rows:
            group.touched.append(rows)
        operations += dropped
        try:
            for row, timestamp, column, value in cells:
                prefix = row_prefix(row)
                suffix = stamp() if timestamp is None else cell_suffix(timestamp, 0)
                operations.append(
                    (_PUT, family, column_prefix(prefix, column) + suffix, header + value)
                )
                rows.add(prefix)
        except BaseException:
            del operations[before:]
            raise
        if len(operations) > MAX_OPERATIONS:
            await self.settle()

    def _create_for(
        self, name: bytes, cells: Sequence[NewCell], create_with: DatasetSettings | None
    ) -> Dataset:
        """The dataset for a write to an unknown one, once nothing else can refuse the write."""
        check_name(name)
        for row, _, column, _ in cells:
            column_prefix(row_prefix(row), column)
        if create_with is None:
            return self._datasets.find(name)
        return self._datasets.create(name, create_with, self._clock.now())

    async def _drop_below_rewritten(
        self, name: bytes, cells: Sequence[NewCell], expires_at: int
    ) -> list[Operation]:
        """Under MAXVERSIONS: what goes because the call gives existing cells an earlier expiry."""
        dataset = await self._find_settled(name, [row_prefix(row) for row, _, _, _ in cells])
        rules = dataset.rules(self._clock.now())
        columns: dict[bytes, dict[bytes, int]] = {}
        for row, timestamp, column, _ in cells:
            place = column_prefix(row_prefix(row), column)
            if timestamp is not None:
                expires = min(expires_at, timestamp + rules.ttl_ms if rules.ttl_ms else NEVER)
                columns.setdefault(place, {})[place + cell_suffix(timestamp, 0)] = expires
        dropped: list[Operation] = []
        for place, rewritten in columns.items():
            if any(dataset.family.get(key) is not None for key in rewritten):
                dropped += drop_below_rewritten(dataset.family, place, rules, rewritten)
        return dropped

    async def increment(
        self,
        dataset: bytes,
        row: bytes,
        column: bytes,
        amount: int,
        create_with: DatasetSettings | None,
    ) -> int:
        newest = await self._newest(dataset, row, column, create_with)
        value, expires_at = amount, None
        if newest is not None:
            old = parse_integer(newest.value)
            if old is None:
                raise NotAnInteger
            value, expires_at = old + amount, newest.expires_at
        if not -(2**63) <= value < 2**63:
            raise IncrementOverflow
        if newest is not None and newest.timestamp > self._clock.now():
            raise NewestCellInFuture
        await self.put(dataset, [(row, None, column, b"%d" % value)], expires_at, create_with)
        return value

    async def compare_and_put(
        self,
        dataset: bytes,
        cell: NewCell,
        expected: bytes | None,
        expires_at: int | None,
        create_with: DatasetSettings | None,
    ) -> bool:
        row, timestamp, column, _ = cell
        newest = await self._newest(dataset, row, column, create_with)
        if (newest.value if newest is not None else None) != expected:
            return False
        self._check_newer(newest, timestamp, expires_at, self._ttl_ms(dataset, create_with))
        await self.put(dataset, [cell], expires_at, create_with)
        return True

    def _ttl_ms(self, name: bytes, create_with: DatasetSettings | None) -> int:
        """The TTL of a dataset that exists or is about to be created."""
        dataset = self._datasets.get(name)
        settings = dataset.settings if dataset is not None else create_with
        return settings.ttl_seconds * 1000 if settings is not None else 0

    def _check_newer(
        self, newest: Newest | None, timestamp: int | None, expires_at: int | None, ttl_ms: int
    ) -> None:
        """TimestampNotNewer unless a cell of this timestamp would be its column's newest."""
        now = self._clock.now()
        moment = now if timestamp is None else timestamp
        expires = min(
            NEVER if expires_at is None else expires_at, moment + ttl_ms if ttl_ms else NEVER
        )
        if expires < now:
            raise TimestampNotNewer
        if newest is None:
            return
        # A stamp of the clock is newer than all cells of its millisecond, a given timestamp is not.
        if newest.timestamp > moment or (newest.timestamp == moment and timestamp is not None):
            raise TimestampNotNewer

    async def _newest(
        self, name: bytes, row: bytes, column: bytes, create_with: DatasetSettings | None
    ) -> Newest | None:
        """The newest visible cell of a column, also of a dataset that a write would create."""
        prefix = row_prefix(row)
        place = column_prefix(prefix, column)
        if create_with is not None and self._datasets.get(name) is None:
            check_name(name)
            return None
        dataset = await self._find_settled(name, [prefix])
        rules = dataset.rules(self._clock.now())
        for key, stored in dataset.family.scan(end_of(place)).walk(place):
            if expiry_of(key, stored, rules.ttl_ms) >= rules.now:
                expires_at, value = split_value(stored)
                return Newest(timestamp_of(key), expires_at, value)
        return None

    async def delete(self, dataset: bytes, rows: Sequence[bytes], deletion: Deletion) -> int:
        prefixes = list(dict.fromkeys([row_prefix(row) for row in rows]))
        _check_columns(deletion.columns)
        found = await self._find_settled(dataset, prefixes)
        rules = found.rules(self._clock.now())
        deleters = [RowDeleter(found.family, prefix, rules, deletion) for prefix in prefixes]
        total = sum([deleter.delete() for deleter in deleters])
        operations = [operation for deleter in deleters for operation in deleter.operations]
        if operations:
            found.deletes += 1
            self._group.operations += operations
            found.touch(self._group, prefixes)
        return total

    # Reading

    async def read_row(
        self, dataset: bytes, row: bytes, selection: Selection, request: PageRequest
    ) -> Page:
        prefix = row_prefix(row)
        binding = _row_binding(dataset, row, selection)
        position = binding.decode(request.cursor)
        found = await self._find_settled(dataset, [prefix])
        rules = found.rules(self._clock.now())
        return self._page(found, rules, prefix, selection, request, binding, position)

    def _page(
        self,
        dataset: Dataset,
        rules: Rules,
        prefix: bytes,
        selection: Selection,
        request: PageRequest,
        binding: Binding,
        position: Position = START,
        budget: Budget | None = None,
    ) -> Page:
        budget = budget or Budget(request.limits)
        scan = dataset.family.scan(end_of(prefix))
        reader = RowReader(scan, rules, selection, budget, values=request.values)
        columns, cut = reader.read(prefix, _columns_a_page(selection, request), position)
        return Page(binding.encode(cut.position if cut else None), columns)

    async def read_rows(
        self,
        dataset: bytes,
        rows: Sequence[bytes],
        selection: Selection,
        request: PageRequest,
    ) -> list[Page]:
        prefixes = [row_prefix(row) for row in rows]
        _check_columns(selection.columns)
        found = await self._find_settled(dataset, prefixes)
        rules = found.rules(self._clock.now())
        budget = Budget(request.limits)
        pages: list[Page] = []
        for row, prefix in zip(rows, prefixes, strict=True):
            binding = _row_binding(dataset, row, selection)
            if budget.spent():
                pages.append(Page(binding.encode(START), []))
                continue
            scan_before = budget.scan
            pages.append(
                self._page(found, rules, prefix, selection, request, binding, START, budget)
            )
            if budget.scan == scan_before:
                budget.scan -= 1  # a missing row is not free either
        return pages

    async def read_columns(
        self, dataset: bytes, row: bytes, names: NameRange, request: PageRequest
    ) -> tuple[bytes, list[bytes]]:
        prefix = row_prefix(row)
        selection = Selection(names=names)
        binding = Binding(b"columns", (dataset, row), selection)
        position = binding.decode(request.cursor)
        found = await self._find_settled(dataset, [prefix])
        rules = found.rules(self._clock.now())
        page = self._page(found, rules, prefix, selection, request, binding, position)
        return page.cursor, [name for name, _ in page.columns]

    async def scan(
        self, dataset: bytes, rows: NameRange, selection: Selection, request: PageRequest
    ) -> RowsPage:
        binding = Binding(b"scan", (dataset,), selection, rows)
        position = binding.decode(request.cursor)
        _check_columns(selection.columns)
        found = self._datasets.find(dataset)
        if found.waiting_rows:
            await self.settle()
            found = self._datasets.find(dataset)
        start, end = name_bounds(b"", None, rows)
        if end is not None and start >= end:
            return RowsPage(binding.encode(None), [])
        scan, budget = found.family.scan(end), Budget(request.limits)
        reader = RowReader(
            scan, found.rules(self._clock.now()), selection, budget, values=request.values
        )
        read, rest = read_rows(
            reader,
            scan,
            start,
            position,
            limit=request.limits.rows if request.rows is None else request.rows,
            count=_columns_a_page(selection, request),
            budget=budget,
        )
        return RowsPage(
            binding.encode(rest),
            [
                (row, columns, _row_binding(dataset, row, selection).encode(goes_on))
                for row, columns, goes_on in read
            ],
        )

    async def count_rows(self, dataset: bytes, rows: Sequence[bytes]) -> int:
        prefixes = [row_prefix(row) for row in rows]
        found = await self._find_settled(dataset, prefixes)
        rules = found.rules(self._clock.now())
        return sum(
            holds_visible(found.family.scan(end_of(prefix)), rules, prefix) for prefix in prefixes
        )


def _nobody_waits(_failure: StoreFailure | None) -> None:
    """The listener of an engine that is used as a library, without one."""


def _check_columns(columns: Sequence[bytes] | None) -> None:
    """ColumnNameTooLong before anything is looked up or written."""
    for column in columns or ():
        column_prefix(b"", column)


def _row_binding(dataset: bytes, row: bytes, selection: Selection) -> Binding:
    return Binding(b"row", (dataset, row), selection)


def _columns_a_page(selection: Selection, request: PageRequest) -> int:
    if request.columns is not None:
        return request.columns
    return request.limits.columns if selection.columns is None else NO_LIMIT
