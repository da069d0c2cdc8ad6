"""Folders through which tools on the same machine take cells out of the engine and bring them in.

A checkpoint to export from, and tables of cells to be ingested. Knows nothing of what the tools do
with them, and nothing of single cells.
"""

from __future__ import annotations

from pathlib import Path

from storage.embedded.committing import Committing
from storage.embedded.ordered import Family, OrderedStore
from storage.embedded.scratch import Scratch
from storage.errors import CannotIngest, DatasetExists
from storage.model import DatasetSettings


class Exchange(Committing):
    """The files of an engine: see storage.engine.Engine."""

    def __init__(
        self, store: OrderedStore, scratch: Scratch, *, durable: bool, read_only: bool
    ) -> None:
        super().__init__(store, durable=durable, read_only=read_only)
        self._scratch = scratch

    async def checkpoint_for_export(self) -> Path:
        directory = self._scratch.free("export")
        await self.make_checkpoint(directory)
        return directory

    def folder_for_import(self) -> Path:
        return self._scratch.make("import")

    def release(self, folder: bytes) -> None:
        self._scratch.remove(folder)

    async def ingest(
        self,
        dataset: bytes,
        folder: bytes,
        create_with: DatasetSettings | None,
        *,
        expiring: bool,
    ) -> int:
        if self._transactions:
            raise CannotIngest("files cannot be ingested within a transaction")
        tables = sorted(self._scratch.find(folder).glob("*.sst"))
        if self._datasets.get(dataset) is None:
            self._create_for(dataset, [], create_with)
        await self.settle()
        found = self._datasets.find(dataset)
        if expiring and found.settings.max_versions and not _is_empty(found.family):
            # An expiry earlier than a cell had may show what is hidden below: see deleter.py.
            raise CannotIngest("a dataset with MAXVERSIONS and cells takes no expiring ones")
        if tables:
            self.rows.forget_dataset(found)
            self._glances.clear()
            self._store.ingest(found.family, tables)
            found.version += 1
            # What is remembered of its cells is void: some may have been replaced.
            found.deletes += 1
        self._scratch.remove(folder)
        return len(tables)

    async def ingest_new(self, dataset: bytes, folder: bytes, settings: DatasetSettings) -> int:
        if self._transactions:
            raise CannotIngest("files cannot be ingested within a transaction")
        tables = sorted(self._scratch.find(folder).glob("*.sst"))
        await self.settle()
        # A family of that name may have yet to end: emptied after the tables, it would lose them.
        while emptying := self._datasets.emptying(dataset):
            self.append(emptying)
            await self.settle()
        if self._datasets.get(dataset) is not None:
            raise DatasetExists(dataset)
        created = self._datasets.create(dataset, settings, self._clock.now())
        try:
            # Before the entry is in the log: a family without one is dropped by the next start.
            if tables:
                self._glances.clear()
                self._store.ingest(created.family, tables)
        except BaseException:
            self._datasets.drop(created)
            raise
        await self.settle()
        self._scratch.remove(folder)
        return len(tables)


def _is_empty(family: Family) -> bool:
    return next(family.scan(None).walk(b""), None) is None
