"""The embedded engine: datasets and cells over an ordered store in this process.

What becomes of its writes is the business of committing.py, and of exchange.py that of files. Knows
nothing of sockets or commands.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from storage.catalog import check_name
from storage.cursors import FINISHED, START, Binding
from storage.embedded.datasets import Dataset
from storage.embedded.deleter import RowDeleter, drop_below_rewritten
from storage.embedded.exchange import Exchange
from storage.embedded.group import MAX_OPERATIONS
from storage.embedded.newest import Newest, check_newer, incremented, newest_of
from storage.embedded.ordered import Operation, OrderedStore
from storage.embedded.pages import (
    check_columns,
    first_pages,
    names_in_row,
    page_of_row,
    page_of_scan,
    pages_of_rows,
    row_binding,
)
from storage.embedded.reader import RowReader, holds_visible
from storage.embedded.rules import Budget
from storage.embedded.scratch import Scratch
from storage.embedded.writing import puts
from storage.encoding import (
    PLAIN,
    column_prefix,
    end_of,
    row_prefix,
    value_header,
)
from storage.errors import (
    ColumnNameTooLong,
    DatasetExists,
    RowKeyTooLong,
    StoreFailure,
    StoreStalled,
)
from storage.maintenance.collector import Collector
from storage.maintenance.survey import Span, Totals
from storage.maintenance.surveyor import surveyed
from storage.model import (
    MAX_NAME_BYTES,
    DatasetInfo,
    DatasetSettings,
    Deletion,
    NameRange,
    NewCell,
    Page,
    PageRequest,
    Query,
    RowsPage,
    Selection,
)

log = logging.getLogger(__name__)

WORN_DELETIONS, WORN_PART = 10_000, 0.25
"""Files with so many deletions, and such a part of all entries, are worth compacting."""
MOST_EXPIRED = 100
"""A row in which a read has to step over more is collected at once, and not with its dataset."""
MOST_KEYS_AT_ONCE = 1_000
"""About as many are read in one go where others may wait."""


class EmbeddedEngine(Exchange):
    """Answers storage.engine.Engine over any OrderedStore."""

    def __init__(
        self,
        store: OrderedStore,
        *,
        durable_commits: bool = False,
        read_only: bool = False,
        scratch: Path | None = None,
    ) -> None:
        """Read the catalog. `durable_commits`: a commit returns only once it is on the disk.
        `read_only`: nothing will be written, not even the clock. `scratch` is where checkpoints for
        background work may lie; without it that work is done in this process."""
        super().__init__(store, Scratch(scratch), durable=durable_commits, read_only=read_only)
        self._collector = Collector(self)

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
        settings = dataset.settings.altered(max_versions, ttl_seconds)
        self._datasets.store(dataset, dataset.entry.altered(settings))
        self.rows.forget_dataset(dataset)
        dataset.version += 1

    async def drop_dataset(self, name: bytes, *, if_exists: bool = False) -> None:
        check_name(name)
        if if_exists and self._datasets.get(name) is None:
            return
        self._drop(name)
        await self._settle_unless_in_transaction()

    async def drop_all(self) -> None:
        for name in self._datasets.names():
            self._drop(name)
        await self._settle_unless_in_transaction()

    def _drop(self, name: bytes) -> None:
        found = self._datasets.find(name)
        self.rows.forget_dataset(found)
        self._datasets.drop(found)

    def dataset_names(self) -> list[bytes]:
        return self._datasets.names()

    def cache_bytes(self) -> int:
        return self._store.cache_bytes()

    def figures(self) -> dict[str, int]:
        return self._store.figures()

    def version(self, dataset: bytes) -> int:
        found = self._datasets.get(dataset)
        return self._datasets.absent_version(dataset) if found is None else found.version

    async def dataset_info(self, name: bytes) -> DatasetInfo:
        found = self._datasets.find(name).info()
        return replace(found, compaction=self._collector.state(name))

    async def compact_worn(self) -> list[bytes]:
        worn = []
        for name in self._datasets.names():
            entries, deletions = self._datasets.find(name).family.wear()
            if deletions >= WORN_DELETIONS and deletions >= WORN_PART * entries:
                self._collector.request(name, files_only=True)
                worn.append(name)
        return worn

    async def explain_compaction(
        self, name: bytes, *, max_versions: int | None = None, ttl_seconds: int | None = None
    ) -> Totals:
        settings = self._datasets.find(name).settings.altered(max_versions, ttl_seconds)
        return await self._collector.explain(name, settings)

    async def compact_dataset(self, name: bytes) -> None:
        self._datasets.find(name)
        self._collector.request(name)

    def survey_elsewhere(
        self, name: bytes, settings: DatasetSettings
    ) -> AsyncGenerator[Span | int | Totals, None] | None:
        return self._surveyed(name, settings) if self._scratch.exists else None

    async def _surveyed(
        self, name: bytes, settings: DatasetSettings
    ) -> AsyncGenerator[Span | int | Totals, None]:
        directory = self._scratch.free("survey")
        await self.make_checkpoint(directory)
        try:
            findings = surveyed(directory, name, settings, self.now())
            async with contextlib.aclosing(findings):
                async for finding in findings:
                    yield finding
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def note_compaction(self, dataset: Dataset, removed_cells: int) -> None:
        entry = dataset.entry.compacted(self._clock.now(), removed_cells)
        self._datasets.store(dataset, entry)
        # A task did this, not a command: no tick follows that would commit it.
        with contextlib.suppress(StoreStalled):
            self.commit()

    async def close(self) -> None:
        await self._collector.stop()
        with contextlib.suppress(StoreFailure):  # it was logged, and told to whom it concerns
            await self.settle()
        if not self.read_only:
            self._store_clock()
        self._glances.clear()
        self._store.close()

    # Writing

    async def put(
        self,
        dataset: bytes,
        cells: Sequence[NewCell],
        expires_at: int | None,
        create_with: DatasetSettings | None,
    ) -> None:
        if self._stalled:
            self._refuse_if_full()
        found = self._datasets.get(dataset) or self._create_for(dataset, cells, create_with)
        dropped: Sequence[Operation] = ()
        if expires_at is not None and found.settings.max_versions:
            touched = [row_prefix(row) for row, _, _, _ in cells]
            found, view = await self._find_settled(dataset, touched)
            rules = found.rules(self._clock.now())
            dropped = drop_below_rewritten(found.family, view, rules, cells, expires_at)
            # A cell above may expire earlier now: what a compaction remembers of it is void.
            found.deletes += 1
        # From here on nothing waits.
        self._join(found, cells, PLAIN if expires_at is None else value_header(expires_at), dropped)
        if len(self._group.operations) > MAX_OPERATIONS:
            await self._settle_unless_in_transaction()

    def puts_at_once(self, dataset: bytes) -> bool:
        if self._stalled or len(self._group.operations) >= MAX_OPERATIONS:
            return False
        return self._datasets.get(dataset) is not None

    def put_at_once(self, dataset: bytes, cells: Sequence[NewCell]) -> bool:
        found = self._datasets.get(dataset)
        if found is None or self._stalled or len(self._group.operations) >= MAX_OPERATIONS:
            return False
        try:
            self._join(found, cells, PLAIN)
        except (RowKeyTooLong, ColumnNameTooLong):
            return False
        return True

    def _join(
        self,
        dataset: Dataset,
        cells: Sequence[NewCell],
        header: bytes,
        dropped: Sequence[Operation] = (),
    ) -> None:
        """Have the group write cells, or nothing if one of them cannot be written. The hot path."""
        group, waiting = self._group, dataset.waiting_rows
        made, prefixes = puts(dataset.family, cells, header, self._clock.stamp)
        if dataset.cache_number:
            self.rows.forget_cells(dataset, cells)
        if not waiting:
            group.touched.append(waiting)
        waiting.update(prefixes)
        if dropped:
            group.operations += dropped
        group.operations += made
        dataset.version += 1

    async def increment(
        self,
        dataset: bytes,
        row: bytes,
        column: bytes,
        amount: int,
        create_with: DatasetSettings | None,
    ) -> int:
        newest = await self._newest(dataset, row, column, create_with)
        value, expires_at = incremented(newest, amount, self._clock.now())
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
        ttl_ms = self._ttl_ms(dataset, create_with)
        check_newer(newest, timestamp, expires_at, ttl_ms, self._clock.now())
        await self.put(dataset, [cell], expires_at, create_with)
        return True

    def _ttl_ms(self, name: bytes, create_with: DatasetSettings | None) -> int:
        """The TTL of a dataset that exists or is about to be created."""
        dataset = self._datasets.get(name)
        settings = dataset.settings if dataset is not None else create_with
        return settings.ttl_seconds * 1000 if settings is not None else 0

    async def _newest(
        self, name: bytes, row: bytes, column: bytes, create_with: DatasetSettings | None
    ) -> Newest | None:
        """The newest visible cell of a column, also of a dataset that a write would create."""
        prefix = row_prefix(row)
        place = column_prefix(prefix, column)
        if create_with is not None and self._datasets.get(name) is None:
            check_name(name)
            return None
        dataset, view = await self._find_settled(name, [prefix])
        return newest_of(view, place, dataset.rules(self._clock.now()))

    async def delete(self, dataset: bytes, rows: Sequence[bytes], deletion: Deletion) -> list[int]:
        prefixes = [row_prefix(row) for row in rows]
        check_columns(deletion.columns)
        self._refuse_if_full()
        found, view = await self._find_settled(dataset, prefixes)
        rules = found.rules(self._clock.now())
        deleters = {
            prefix: RowDeleter(found.family, view, prefix, rules, deletion) for prefix in prefixes
        }
        counts = {prefix: deleter.delete() for prefix, deleter in deleters.items()}
        operations = [operation for each in deleters.values() for operation in each.operations]
        if operations:
            for row in rows:
                self.rows.forget(found, row)
            found.deletes += 1
            found.version += 1
            self._group.operations += operations
            found.touch(self._group, prefixes)
        return [counts.pop(prefix, 0) for prefix in prefixes]

    # Reading

    @property
    def remembers(self) -> bool:
        return self.rows.limit_bytes > 0

    def remembered(self, dataset: bytes, row: bytes, query: Query) -> bytes | None:
        found = self._datasets.get(dataset)
        if found is None or not self.rows.limit_bytes:
            return None
        return self.rows.find(found, row, query.number, self._clock.now())

    def remembered_first(
        self, dataset: bytes, rows: Iterable[bytes], query: Query, most_bytes: int
    ) -> list[bytes]:
        found = self._datasets.get(dataset)
        if found is None or not found.cache_number:
            return []
        return self.rows.find_first(found, rows, query.number, self._clock.now(), most_bytes)

    def remember(self, dataset: bytes, row: bytes, query: Query, page: Page, answer: bytes) -> None:
        found = self._datasets.get(dataset)
        if found is None or not self.rows.limit_bytes:
            return
        if found.version != page.version:
            return
        # What was read within a transaction may hold what is never committed.
        if not found.waits_for((row_prefix(row),)):
            self.rows.keep(found, row, query.number, answer, page.first_expiry)

    async def read_row(
        self, dataset: bytes, row: bytes, selection: Selection, request: PageRequest
    ) -> Page:
        prefix, position = row_prefix(row), START
        if request.cursor != FINISHED:
            position = row_binding(dataset, row, selection).decode(request.cursor)
        found = self._datasets.find(dataset)
        view = found.family
        if found.waiting_rows:
            found, view = await self._find_settled(dataset, (prefix,))
        rules, scan = found.rules(self._clock.now()), view.scan(end_of(prefix))
        reader = RowReader(scan, rules, selection, Budget(request.limits), values=request.values)
        page = page_of_row(reader, dataset, row, selection, request, found.version, position)
        self._note_expired(found, row, reader)
        return page

    def _note_expired(self, dataset: Dataset, row: bytes, reader: RowReader) -> None:
        """This row was read last."""
        # Not while writes fail: the row would be met, and the failure with it, at every read.
        if reader.expired > MOST_EXPIRED and not (self.read_only or self.commits.failed_in_a_row):
            self._collector.request_row(dataset.name, row_prefix(row))

    def read_first(
        self, dataset: bytes, rows: Iterable[bytes], query: Query, most_bytes: int
    ) -> list[tuple[bytes, Page]]:
        found = self._datasets.get(dataset)
        if found is None:
            return []
        selection, request, now = query.selection, query.request, self._clock.now()
        if found.waiting_rows or self.remembers:
            rows = self._to_be_read(found, rows, query, now)
        try:
            glance = self._glance(found)
        except StoreFailure:
            return []  # and who asks for one row is told
        rules, budget = found.rules(now), Budget(request.limits)
        reader = RowReader(glance, rules, selection, budget, values=request.values)
        pages = first_pages(
            reader,
            dataset,
            rows,
            selection,
            request,
            found.version,
            most_keys=MOST_KEYS_AT_ONCE,
            most_bytes=most_bytes,
            most_expired=MOST_EXPIRED,
        )
        if pages:
            self._note_expired(found, pages[-1][0], reader)
        if self.remembers:
            self.rows.misses += len(pages)
        return pages

    def _to_be_read(
        self, dataset: Dataset, rows: Iterable[bytes], query: Query, now: int
    ) -> Iterator[bytes]:
        """Up to the first to which something waits to be written, or of which something is
        remembered."""
        for row in rows:
            if len(row) > MAX_NAME_BYTES:  # it is refused to who asks for it alone
                return
            if dataset.waiting_rows and dataset.waits_for((row_prefix(row),)):
                return
            if self.rows.knows(dataset, row, query.number, now):
                return
            yield row

    async def read_rows(
        self,
        dataset: bytes,
        rows: Sequence[bytes],
        selection: Selection,
        request: PageRequest,
    ) -> list[Page]:
        prefixes = [row_prefix(row) for row in rows]
        check_columns(selection.columns)
        found, view = await self._find_settled(dataset, prefixes)
        rules = found.rules(self._clock.now())
        return pages_of_rows(view, rules, dataset, rows, selection, request)

    async def read_columns(
        self, dataset: bytes, row: bytes, names: NameRange, request: PageRequest
    ) -> tuple[bytes, list[bytes]]:
        prefix = row_prefix(row)
        selection = Selection(names=names)
        binding = Binding(b"columns", (dataset, row), selection)
        position = binding.decode(request.cursor)
        found, view = await self._find_settled(dataset, [prefix])
        rules = found.rules(self._clock.now())
        scan = view.scan(end_of(prefix))
        columns, rest = names_in_row(scan, rules, prefix, selection, request, position)
        return binding.encode(rest), columns

    async def scan(
        self, dataset: bytes, rows: NameRange, selection: Selection, request: PageRequest
    ) -> RowsPage:
        binding = Binding(b"scan", (dataset,), selection, rows)
        position = binding.decode(request.cursor)
        check_columns(selection.columns)
        found, view = await self._find_settled(dataset, None)
        rules = found.rules(self._clock.now())
        return page_of_scan(view, rules, dataset, rows, selection, request, binding, position)

    async def count_rows(self, dataset: bytes, rows: Sequence[bytes]) -> int:
        prefixes = [row_prefix(row) for row in rows]
        found, view = await self._find_settled(dataset, prefixes)
        rules = found.rules(self._clock.now())
        return sum(holds_visible(view.scan(end_of(prefix)), rules, prefix) for prefix in prefixes)
