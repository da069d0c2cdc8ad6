"""What any engine must do: rows of versioned columns in datasets, kept and read back.

The embedded engine (storage/embedded/) never waits but while its store is stalled; an engine over
a distributed database may wait in every call. So calls are coroutines, and handlers above are
written once for both. Knows nothing of commands.

Every writing call is atomic. A call that raises StorageError wrote nothing. A write is safe only
once a commit() that follows it has returned: `on_settled` tells, with the failure or None, each
time all writes made until then have met their fate.

Within `async with engine.transaction()` the calls take effect one after the other as ever, and a
call that raises undoes nothing but itself; but all writes of the transaction are committed
together, or, in a crash or a failed commit, none. Whoever opens one waits for nothing but the
engine's calls until it ends: with the embedded engine those never wait within a transaction, so
that nobody's call comes in between.

`create_with` are the settings with which a write creates an unknown dataset; None refuses it with
NoSuchDataset. `expires_at` is Unix milliseconds, None never. A timestamp None is the clock's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from storage.commits import Commits
from storage.errors import StoreFailure
from storage.maintenance.survey import Totals
from storage.model import (
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

Settled = Callable[[StoreFailure | None], None]


class RememberedRows(Protocol):
    """What an engine remembers, in figures, and how much it may."""

    hits: int
    misses: int
    bytes: int
    limit_bytes: int
    """0: it remembers nothing."""

    def __len__(self) -> int:
        """Of how many rows it remembers something."""
        ...


class Engine(Protocol):
    """Datasets, rows, columns, cells."""

    on_settled: Settled
    commits: Commits
    """What became of the groups of writes so far."""
    unsynced: bool
    """Whether something was committed since the last sync()."""

    @property
    def rows(self) -> RememberedRows: ...

    read_only: bool
    """Whether nothing can be written at all: no call that does may be made."""

    def now(self) -> int:
        """The clock that stamps cells and decides expiry: Unix milliseconds, never going back."""
        ...

    # Datasets. All check the name: InvalidDatasetName, then NoSuchDataset.

    async def create_dataset(
        self, name: bytes, settings: DatasetSettings, *, if_not_exists: bool = False
    ) -> None:
        """DatasetExists unless `if_not_exists`."""
        ...

    async def alter_dataset(
        self, name: bytes, *, max_versions: int | None = None, ttl_seconds: int | None = None
    ) -> None: ...

    async def drop_dataset(self, name: bytes, *, if_exists: bool = False) -> None:
        """Outside of a transaction it is committed on return."""
        ...

    async def drop_all(self) -> None:
        """Drop every dataset, all or none; committed as drop_dataset is."""
        ...

    def dataset_names(self) -> list[bytes]:
        """Sorted."""
        ...

    def cache_bytes(self) -> int:
        """What the cache of blocks read from disk holds."""
        ...

    def figures(self) -> dict[str, int]:
        """What the store tells of itself, for operators; nothing where it has nothing to tell."""
        ...

    async def compact_worn(self) -> list[bytes]:
        """Have the files of those datasets compacted that hold mostly traces of deletions."""
        ...

    async def explain_compaction(
        self, name: bytes, *, max_versions: int | None = None, ttl_seconds: int | None = None
    ) -> Totals:
        """What a compaction would remove, under these settings instead of the dataset's."""
        ...

    def version(self, dataset: bytes) -> int:
        """A number that every call that changes the dataset replaces by one it never had before.

        Where there is no such dataset, its last drop is the change. Now and then the number of one
        that is not there is replaced for nothing. Reads, expiry and compaction change nothing.
        """
        ...

    async def dataset_info(self, name: bytes) -> DatasetInfo: ...

    async def compact_dataset(self, name: bytes) -> None:
        """Ask for dead cells to be collected in the background; returns at once."""
        ...

    # Writing

    async def put(
        self,
        dataset: bytes,
        cells: Sequence[NewCell],
        expires_at: int | None,
        create_with: DatasetSettings | None,
    ) -> None: ...

    def puts_at_once(self, dataset: bytes) -> bool:
        """Whether put_at_once() would take cells with names that are not too long."""
        ...

    def put_at_once(self, dataset: bytes, cells: Sequence[NewCell]) -> bool:
        """Do what put() does with cells that do not expire, if it need not wait.

        False, and nothing is done, where it would wait, create the dataset or refuse the cells.
        """
        ...

    async def increment(
        self,
        dataset: bytes,
        row: bytes,
        column: bytes,
        amount: int,
        create_with: DatasetSettings | None,
    ) -> int:
        """Add to the newest integer of a column; NotAnInteger, IncrementOverflow or
        NewestCellInFuture when that cannot be."""
        ...

    async def compare_and_put(
        self,
        dataset: bytes,
        cell: NewCell,
        expected: bytes | None,
        expires_at: int | None,
        create_with: DatasetSettings | None,
    ) -> bool:
        """Put the cell if the column's newest value is `expected` (None: if it has none).

        TimestampNotNewer when it would not be the newest visible cell.
        """
        ...

    async def delete(self, dataset: bytes, rows: Sequence[bytes], deletion: Deletion) -> list[int]:
        """For each of the rows 1 if it had a visible cell there, else 0; with named columns, how
        many of them had one. A row given again counts 0."""
        ...

    # Files, for tools on the same machine. StoreFailure where data is in memory.

    async def checkpoint_for_export(self) -> Path:
        """A new data directory with all that is written so far, until it is released."""
        ...

    def folder_for_import(self) -> Path:
        """A new folder to put tables of cells into, until they are ingested or it is released."""
        ...

    def release(self, folder: bytes) -> None:
        """Remove one of these by the last part of its path. NoSuchFolder if there is none."""
        ...

    async def ingest(
        self,
        dataset: bytes,
        folder: bytes,
        create_with: DatasetSettings | None,
        *,
        expiring: bool,
    ) -> int:
        """Put all cells of a folder's tables into a dataset, at once or not at all.

        How many tables there were; the folder is gone then. `expiring`: some cells have expiries of
        their own. CannotIngest those where they could uncover hidden cells, and within a
        transaction.
        """
        ...

    async def ingest_new(self, dataset: bytes, folder: bytes, settings: DatasetSettings) -> int:
        """Create a dataset with all cells of a folder's tables: even a crash leaves all or nothing.

        How many tables there were; the folder is gone then. DatasetExists; CannotIngest within a
        transaction.
        """
        ...

    # Reading. InvalidCursor for a cursor of something else.

    @property
    def remembers(self) -> bool:
        """Whether answers are remembered at all."""
        ...

    def remembered(self, dataset: bytes, row: bytes, query: Query) -> bytes | None:
        """What was remembered for a query of a row, by its number, if it still is the answer."""
        ...

    def remembered_first(
        self, dataset: bytes, rows: Iterable[bytes], query: Query, most_bytes: int
    ) -> list[bytes]:
        """What is remembered of rows, up to the first of which nothing is; the last of it begins
        within `most_bytes`."""
        ...

    def remember(self, dataset: bytes, row: bytes, query: Query, page: Page, answer: bytes) -> None:
        """Keep what was made of a page that read_row has given, unless that has changed since."""
        ...

    def read_first(
        self, dataset: bytes, rows: Iterable[bytes], query: Query, most_bytes: int
    ) -> list[tuple[bytes, Page]]:
        """Rows and what read_row() gives of them, up to the first for which it would have to wait,
        or fail, or of which something is remembered; the last of it begins within `most_bytes`.

        What has to be looked up for it may be held until the next commit().
        """
        ...

    async def read_row(
        self, dataset: bytes, row: bytes, selection: Selection, request: PageRequest
    ) -> Page: ...

    async def read_rows(
        self,
        dataset: bytes,
        rows: Sequence[bytes],
        selection: Selection,
        request: PageRequest,
    ) -> list[Page]:
        """A page a row, in the order asked, within one reply's limits."""
        ...

    async def read_columns(
        self, dataset: bytes, row: bytes, names: NameRange, request: PageRequest
    ) -> tuple[bytes, list[bytes]]:
        """(cursor, names of the columns that have a visible cell)."""
        ...

    async def scan(
        self, dataset: bytes, rows: NameRange, selection: Selection, request: PageRequest
    ) -> RowsPage: ...

    async def count_rows(self, dataset: bytes, rows: Sequence[bytes]) -> int:
        """How many of the rows have a visible cell, repeats counted."""
        ...

    # Lifecycle

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """What is written until its end is committed together. Its end does not commit yet."""
        ...

    def commit(self) -> StoreFailure | None:
        """Bring all writes so far to the log; a failure is told to `on_settled` and returned.

        StoreStalled: none is there yet, call again soon. So it is while a transaction is open.
        """
        ...

    def try_writing(self) -> StoreFailure | None:
        """Commit something that changes nothing, to learn whether writes succeed. As commit()."""
        ...

    async def make_checkpoint(self, directory: Path) -> float:
        """Make `directory`, which must be free, a data directory with all that is written so far.

        How long nobody was served for it, in seconds. StoreFailure, with nothing left there, when
        it cannot be.
        """
        ...

    @property
    def degraded(self) -> bool:
        """Whether the store was opened although files of it are damaged: see `problems`."""
        ...

    @property
    def problems(self) -> list[str]:
        """What is known to be damaged, a line each, without names of folders. It may grow."""
        ...

    def sync(self) -> None:
        """Bring the log to the disk. Blocks; may be called on a thread. StoreFailure: fail()."""
        ...

    def fail(self, error: Exception) -> StoreFailure:
        """What was written last is in an unknown state: tell `on_settled` and open the store again.

        The failure as it was told.
        """
        ...

    async def close(self) -> None:
        """Commit, stop background work and let go of all files."""
        ...
