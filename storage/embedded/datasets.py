"""The open datasets: the catalog in memory, and its entries on their way to disk.

Finds, creates, alters and drops; knows nothing of cells. Changes of entries go into the group, so
that they reach the log together with the writes that needed them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from storage.catalog import (
    ENTRY_END,
    ENTRY_PREFIX,
    Entry,
    check_name,
    decode_entry,
    encode_entry,
    entry_key,
    family_name,
    name_of_entry,
)
from storage.embedded.group import Group
from storage.embedded.ordered import Family, Kind, OrderedStore
from storage.embedded.reader import Rules
from storage.errors import NoSuchDataset, StoreFailure
from storage.model import DatasetInfo, DatasetSettings


@dataclass(slots=True, eq=False)
class Dataset:
    """An open dataset. Dropped and created again, it is another object."""

    name: bytes
    family: Family
    entry: Entry
    deletes: int = 0
    """How many calls took cells out or let them expire earlier: background work checks what it
    remembers by it."""
    waiting_rows: set[bytes] = field(default_factory=set)
    """The prefixes of rows with writes in the group."""

    def touch(self, group: Group, prefixes: Iterable[bytes]) -> None:
        """Note that the group holds writes to these rows."""
        if not self.waiting_rows:
            group.touched.append(self.waiting_rows)
        self.waiting_rows.update(prefixes)

    @property
    def settings(self) -> DatasetSettings:
        return self.entry.settings

    def rules(self, now: int) -> Rules:
        return Rules.of(self.entry.settings, now)

    def info(self) -> DatasetInfo:
        held, entry = self.family.statistics(), self.entry
        return DatasetInfo(
            self.name,
            entry.settings,
            entry.created_ms,
            held.estimated_keys,
            held.disk_bytes,
            held.memtable_bytes,
            entry.last_compaction_ms,
            entry.last_compaction_removed_cells,
        )


class Datasets:
    """All datasets of a store, by name."""

    def __init__(self, store: OrderedStore, group: Group) -> None:
        self._store = store
        self._group = group
        self._catalog = store.default_family()
        self._open: dict[bytes, Dataset] = {}
        self.get = self._open.get
        """The dataset of that name, or None. The hot path: it must cost one lookup."""
        self.load()

    def load(self) -> None:
        """Make them what the catalog on disk says; a family without an entry was never finished."""
        families = self._store.families()
        self._open.clear()
        for key, stored in self._catalog.scan(ENTRY_END).walk(ENTRY_PREFIX):
            name = name_of_entry(key)
            family = families.pop(family_name(name), None)
            if family is None:
                raise StoreFailure(f"dataset '{name.decode('latin-1')}' has lost its data files")
            self._open[name] = Dataset(name, family, decode_entry(name, stored))
        for orphan in families.values():
            self._store.drop_family(orphan)

    def names(self) -> list[bytes]:
        return sorted(self._open)

    def find(self, name: bytes) -> Dataset:
        """InvalidDatasetName or NoSuchDataset when there is none."""
        dataset = self._open.get(name)
        if dataset is None:
            check_name(name)
            raise NoSuchDataset(name)
        return dataset

    def create(self, name: bytes, settings: DatasetSettings, now: int) -> Dataset:
        """A new dataset, empty; its name must be free."""
        check_name(name)
        family = family_name(name)
        unfinished = self._store.families().get(family)
        if unfinished is not None:
            self._store.drop_family(unfinished)
        dataset = Dataset(name, self._store.create_family(family), Entry(settings, created_ms=now))
        self._open[name] = dataset
        self.store(dataset, dataset.entry)
        return dataset

    def store(self, dataset: Dataset, entry: Entry) -> None:
        """Give a dataset another entry, from the next call on and, by the group, on disk."""
        dataset.entry = entry
        self._group.operations.append(
            (Kind.PUT, self._catalog, entry_key(dataset.name), encode_entry(entry))
        )

    def drop(self, dataset: Dataset) -> None:
        """Take it out of the catalog, on the disk, then let go of its data.

        Nothing may wait in the group. StoreStalled: nothing has happened. It is all done in one go,
        so that nobody can create the name again in between; and the entry's end is on the disk
        first, because a family's end is at once, and an entry without a family cannot be opened.
        """
        entry = (Kind.DELETE, self._catalog, entry_key(dataset.name), b"")
        self._store.write([entry], durable=True)
        del self._open[dataset.name]
        self._store.drop_family(dataset.family)
