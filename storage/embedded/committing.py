"""Writes on their way to the log: they gather in a group, which commits, fails or waits as one.

The base of the embedded engine. One thread calls it. A read of a row which the group touches
commits first, so everybody reads what was written. While a transaction is open nothing is
committed: such a read sees the group on top of the store. Nothing here waits, except a call outside
of a transaction that has to commit while the store is stalled: that one sleeps and tries again.
Whatever was looked up before such a wait is looked up again after it. Knows datasets, and nothing
of cells.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from storage import clock
from storage.catalog import CLOCK_KEY, check_name, decode_clock, encode_clock
from storage.clock import wall_clock_ms
from storage.commits import Commits
from storage.compiled import twin
from storage.directory import make
from storage.embedded import row_cache
from storage.embedded.datasets import Dataset, Datasets
from storage.embedded.group import Group
from storage.embedded.ordered import Family, Kind, Operation, OrderedStore, Scan
from storage.encoding import column_prefix, row_prefix
from storage.engine import Settled
from storage.errors import StoreBusy, StoreFailure, StoreStalled, WritesRefused
from storage.model import DatasetSettings, NewCell

log = logging.getLogger(__name__)

STALL_RETRY_SECONDS = 0.003
CLOCK_AHEAD_WARNING_MS = 60_000
MOST_WAITING_BYTES = 64 * 1024 * 1024
_PUT = Kind.PUT
RowCache = twin("storage.embedded._row_cache", "RowCache", row_cache.RowCache)
HybridClock = twin("storage._clock", "HybridClock", clock.HybridClock)


class Committing:
    """One store, its datasets, and the group of what is written to them."""

    def __init__(self, store: OrderedStore, *, durable: bool, read_only: bool) -> None:
        """Read the catalog; see EmbeddedEngine."""
        self.read_only = read_only
        self.durable_commits = durable
        self.on_settled: Settled = _nobody_waits
        self._store = store
        self._catalog = store.default_family()
        self._group = Group()
        self._datasets = Datasets(store, self._group)
        self._clock = HybridClock(decode_clock(self._catalog.get(CLOCK_KEY)))
        self.rows = RowCache()
        self._failure: StoreFailure | None = None
        self.commits = Commits()
        self._transactions = 0
        """How many are open. More than one only if a transaction waits for something else."""
        self._stalled = False
        """Whether the last commit was put off."""
        self.most_waiting_bytes = MOST_WAITING_BYTES
        """While the store is stalled, no write joins a group larger than this."""
        self.unsynced = False
        """Whether a commit has not been followed by a sync()."""
        self._glances: dict[Dataset, Scan] = {}
        """Views that several calls share, none older than the last commit."""
        self._warn_of_clock()

    def _warn_of_clock(self) -> None:
        ahead = self._clock.last_ms - wall_clock_ms()
        if ahead > CLOCK_AHEAD_WARNING_MS:
            log.warning("the stored clock is %d s ahead of this machine's", ahead // 1000)

    def _refuse_if_full(self) -> None:
        """StoreBusy while the store is stalled and much waits for it already."""
        if self._stalled and not self._transactions:
            waiting = self._group.count_bytes()
            if waiting > self.most_waiting_bytes:
                raise StoreBusy(waiting)

    def now(self) -> int:
        return self._clock.now()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        # Its writes are the group's like all others. What makes them one is that no commit comes
        # in between, and nothing but a commit ever takes writes out of the group.
        self._refuse_if_full()
        self._transactions += 1
        try:
            yield
        finally:
            self._transactions -= 1

    def commit(self) -> StoreFailure | None:
        self._glances.clear()
        if self._transactions:
            raise StoreStalled("a transaction is open")
        group, clock, datasets = self._group, self._clock, self._datasets
        operations, reserved = group.operations, clock.reserved_ms
        if clock.needs_reservation and not self.read_only:
            reserved = clock.next_reservation()
            # A list of its own: a stalled commit is tried again, with a later reservation.
            operations = [*operations, (_PUT, self._catalog, CLOCK_KEY, encode_clock(reserved))]
        elif not operations:
            return None
        try:
            if datasets.outdated:
                self._store.reopen()
                datasets.catch_up()
            # Families that end after this commit: the end of their entries is on the disk first.
            durable = self.durable_commits or bool(datasets.leaving)
            began = time.perf_counter()
            self._store.write(operations, durable=durable)
            seconds = time.perf_counter() - began
        except StoreStalled:
            self._stalled = True
            self.commits.stalls += 1
            raise
        except Exception as error:
            return self.fail(error)
        clock.reserved_ms = reserved
        group.clear()
        self._stalled = False
        self.unsynced = not durable
        if failed := self.commits.failed_in_a_row:
            log.info("writing works again, after %d failed groups", failed)
        self.commits.note(len(operations), seconds)
        self.on_settled(None)
        if datasets.leaving:
            self._end_leaving()
        return None

    def try_writing(self) -> StoreFailure | None:
        if not self._group.operations:  # what is on the disk already, or would be safe there
            reserved = encode_clock(self._clock.reserved_ms)
            self.append([(_PUT, self._catalog, CLOCK_KEY, reserved)])
        return self.commit()

    def _end_leaving(self) -> None:
        try:
            self._datasets.end_leaving()
        except StoreFailure as failure:
            # The datasets are gone all the same: what is left of them is dropped by reading anew.
            log.error("the data of a dropped dataset cannot be removed: %s", failure)
            self._reload()

    def fail(self, error: Exception) -> StoreFailure:
        """The group's outcome is unknown: say so to all who wait, and start afresh from disk."""
        self.commits.note_failure(str(error))
        if self.commits.failed_in_a_row == 1:
            # Not of each: on a full disk they all fail, and the log may be on it too.
            log.error("writing to the store failed: %s", error, exc_info=error)
        self._group.clear()
        self._stalled = False
        failure = error if isinstance(error, StoreFailure) else StoreFailure(str(error))
        self._failure = failure
        self._reload(reopen=not isinstance(error, WritesRefused))
        self.on_settled(failure)
        return failure

    def _reload(self, *, reopen: bool = True) -> None:
        self.rows.clear()
        self._glances.clear()
        try:
            if reopen:
                self._store.reopen()
            self._datasets.load()
        except StoreFailure as failure:
            log.error("the store cannot be opened again: %s", failure)
            self._datasets.keep()

    async def settle(self) -> None:
        """Commit, waiting while the store is stalled. Raises the failure if it fails."""
        failures = self.commits.failures
        while self._group.operations:
            try:
                self.commit()
            except StoreStalled:
                await asyncio.sleep(STALL_RETRY_SECONDS)
            # Somebody else's commit may have failed meanwhile, and taken the group with it.
            if self.commits.failures != failures and self._failure is not None:
                raise self._failure

    def _glance(self, dataset: Dataset) -> Scan:
        """What is committed of a dataset, for short walks; it is not to be kept."""
        glance = self._glances.get(dataset)
        if glance is None:
            glance = self._glances[dataset] = dataset.family.glance()
        return glance

    async def _settle_unless_in_transaction(self) -> None:
        if not self._transactions:
            await self.settle()

    async def _find_settled(
        self, name: bytes, prefixes: Sequence[bytes] | None
    ) -> tuple[Dataset, Family]:
        """The dataset, and a view of it that has everything written to these rows (None: to any).

        The view is the dataset's family, or what the group will make of it. It is only to be read.
        """
        dataset = self._datasets.find(name)
        if not dataset.waits_for(prefixes):
            return dataset, dataset.family
        if self._transactions:
            return dataset, self._group.view(dataset.family)
        await self.settle()
        dataset = self._datasets.find(name)
        return dataset, dataset.family

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

    def append(self, operations: Sequence[Operation]) -> None:
        self._group.operations += operations

    @property
    def degraded(self) -> bool:
        return self._store.degraded

    @property
    def problems(self) -> list[str]:
        return self._store.problems

    def sync(self) -> None:
        if self.read_only:
            return  # all there is to read was on the disk before
        self.unsynced = False
        try:
            self._store.sync()
        except BaseException:
            self.unsynced = True
            raise

    def checkpoint(self, directory: Path) -> None:
        """Make `directory`, which must be free, a data directory with all that is written so far.

        Table files are hard links, so it takes milliseconds and pins what they hold until it is
        removed. StoreFailure, with nothing left there, when it cannot be; StoreStalled: try again.
        """
        failure = self.commit()
        if failure is not None:
            raise failure
        try:
            folder = make(directory)
        except OSError as error:
            raise StoreFailure(f"cannot copy to {directory.name}: {error.strerror}") from error
        try:
            self._store.checkpoint(folder)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise

    async def make_checkpoint(self, directory: Path) -> float:
        """As checkpoint(), waiting while the store is stalled."""
        # The loop stands still for a checkpoint, and most of that would be this.
        with contextlib.suppress(StoreFailure):
            await asyncio.to_thread(self._store.flush)
        while True:
            began = time.perf_counter()
            try:
                self.checkpoint(directory)
                return time.perf_counter() - began
            except StoreStalled:
                await asyncio.sleep(STALL_RETRY_SECONDS)

    def tidy(self) -> None:
        """Do what was put off, if it can be done by now. Quick: call it now and then."""
        if self._datasets.parting and not self.read_only:
            with contextlib.suppress(StoreFailure):  # at the latest the next opening does it
                self._datasets.end_parting()

    def _store_clock(self) -> None:
        # The exact last stamp: after a clean stop the clock need not run ahead of the wall.
        stop = (_PUT, self._catalog, CLOCK_KEY, encode_clock(self._clock.last_ms))
        try:
            self._store.write([stop], durable=True)
        except (StoreFailure, StoreStalled) as error:
            log.error("the clock could not be stored: %s", error)


def _nobody_waits(_failure: StoreFailure | None) -> None:
    """The listener of an engine that is used as a library, without one."""
