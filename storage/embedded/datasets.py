"""The open datasets: the catalog in memory, and its entries on their way to disk.

Finds, creates, alters and drops; knows nothing of cells. Changes of entries go into the group, so
that they reach the log together with the writes that needed them. A family is created before its
entry is committed and ends after the entry's end was: it has no part in the group, so a crash in
between leaves a family without an entry, which the next start drops. If a dropped name is created
again before its family has ended, it takes that over, and the group empties it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

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
from storage.embedded.deleter import drop_span
from storage.embedded.group import ALL_ROWS, Group
from storage.embedded.ordered import Family, Kind, Operation, OrderedStore
from storage.embedded.rules import Rules
from storage.encoding import AFTER_ALL_KEYS
from storage.errors import NoSuchDataset, StoreFailure, StoreStalled
from storage.model import DatasetInfo, DatasetSettings

MOST_LAST_DROPS = 10_000
END_SECONDS = 0.003
"""How long families may be ended before others get their turn. The end of one takes about two
milliseconds, and of hundreds it may be asked at once."""
VERSIONS_APART = 2**48
"""Between the first versions of two objects: none is written to so often."""


@dataclass(slots=True, eq=False)
class Dataset:
    """An open dataset. Dropped and created again, or read from disk again, it is another object."""

    name: bytes
    family: Family
    entry: Entry
    version: int
    """Rises whenever calls change it, from a number that no other object of its name reaches."""
    deletes: int = 0
    """How many calls took cells out or let them expire earlier: background work checks what it
    remembers by it."""
    cache_number: int = 0
    """What row_cache.py knows it by; 0 while it knows nothing of it."""
    waiting_rows: set[bytes] = field(default_factory=set)
    """The prefixes of rows with writes in the group, or ALL_ROWS."""

    def touch(self, group: Group, prefixes: Iterable[bytes]) -> None:
        """Note that the group holds writes to these rows."""
        if not self.waiting_rows:
            group.touched.append(self.waiting_rows)
        self.waiting_rows.update(prefixes)

    def waits_for(self, prefixes: Sequence[bytes] | None) -> bool:
        """Whether the group holds writes to one of these rows; None means all there are."""
        waiting = self.waiting_rows
        if not waiting or prefixes is None or ALL_ROWS in waiting:
            return bool(waiting)
        return not waiting.isdisjoint(prefixes)

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
        self.outdated = False
        """Whether a group was lost and the disk could not be read since: what it held of these
        datasets is still in here."""
        self._versions = count(VERSIONS_APART, VERSIONS_APART)
        self._drops = 0
        """How many datasets were dropped since the start."""
        self._last_drops: dict[bytes, int] = {}
        """Which of these was the last of a name, for those after _forgotten_drops."""
        self._forgotten_drops = 0
        self.leaving: dict[str, Family] = {}
        """The families of datasets that the group drops, by name: they end once it is on disk."""
        self.parting: dict[str, Family] = {}
        """Those whose entry's end is on disk, but that the store works on, or that wait for their
        turn."""
        self.get = self._open.get
        """The dataset of that name, or None. The hot path: it must cost one lookup."""
        self.load()

    def load(self) -> None:
        """Make them what the catalog on disk says; a family without an entry was never finished."""
        stored, orphans = self._stored()
        self.outdated = False
        self.leaving.clear()
        self.parting.clear()
        self._open.clear()
        for name, (family, entry) in stored.items():
            self._open[name] = Dataset(name, family, entry, next(self._versions))
        self.parting.update({orphan.name: orphan for orphan in orphans})
        self._end_parting(math.inf)

    def keep(self) -> None:
        """The group is lost and the disk cannot be read: go on with what is known, for now."""
        self.outdated = True
        self.leaving.clear()
        self.parting.clear()
        for dataset in self._open.values():
            dataset.version = next(self._versions)

    def catch_up(self) -> None:
        """The disk can be read again: StoreFailure unless it says what was known all the time."""
        known = {name: (dataset.family, dataset.entry) for name, dataset in self._open.items()}
        if known != self._stored()[0]:
            raise StoreFailure(
                "the store was opened again, and not all was in it that was expected"
            )
        self.outdated = False

    def _stored(self) -> tuple[dict[bytes, tuple[Family, Entry]], list[Family]]:
        """The datasets on disk, and the families that belong to none."""
        families = self._store.families()
        stored: dict[bytes, tuple[Family, Entry]] = {}
        for key, value in self._catalog.scan(ENTRY_END).walk(ENTRY_PREFIX):
            name = name_of_entry(key)
            family = families.pop(family_name(name), None)
            if family is None:
                raise StoreFailure(f"dataset '{name.decode('latin-1')}' has lost its data files")
            stored[name] = (family, decode_entry(name, value))
        return stored, list(families.values())

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
        left = self._left_family(family_name(name))
        emptying: list[Operation] = []
        if left is None:
            family = self._store.create_family(family_name(name))
        else:
            family, emptying = left, self._emptying(left)
            self.leaving.pop(left.name, None)
            self.parting.pop(left.name, None)
        dataset = Dataset(name, family, Entry(settings, created_ms=now), next(self._versions))
        if left is not None:
            dataset.touch(self._group, [ALL_ROWS])  # the family shows the old cells until a commit
        self._group.operations += emptying
        self._open[name] = dataset
        self.store(dataset, dataset.entry)
        return dataset

    def emptying(self, name: bytes) -> list[Operation]:
        """What empties the family that create() would take over; nothing if it is or has none.

        For who puts files into a new dataset: they have to be in the log before.
        """
        left = None if name in self._open else self._left_family(family_name(name))
        return self._emptying(left) if left is not None else []

    def _emptying(self, family: Family) -> list[Operation]:
        return drop_span(family, self._group.view(family).scan(None), b"", AFTER_ALL_KEYS)

    def _left_family(self, name: str) -> Family | None:
        """What is left of a dataset that was dropped, or whose creation failed halfway.

        StoreFailure while outdated: a family of that name may be somebody's after all.
        """
        left = self.leaving.get(name) or self.parting.get(name)
        if left is None:
            if self.outdated:
                raise StoreFailure("the store has yet to be opened again")
            left = self._store.families().get(name)
        return left

    def store(self, dataset: Dataset, entry: Entry) -> None:
        """Give a dataset another entry, from the next call on and, by the group, on disk."""
        dataset.entry = entry
        self._group.operations.append(
            (Kind.PUT, self._catalog, entry_key(dataset.name), encode_entry(entry))
        )

    def drop(self, dataset: Dataset) -> None:
        """Take it out of the catalog, from the next call on and, by the group, on disk."""
        self._group.operations.append((Kind.DELETE, self._catalog, entry_key(dataset.name), b""))
        del self._open[dataset.name]
        self._note_drop(dataset.name)
        self.leaving[dataset.family.name] = dataset.family

    def _note_drop(self, name: bytes) -> None:
        self._drops += 1
        self._last_drops[name] = self._drops
        if len(self._last_drops) > MOST_LAST_DROPS:
            self._last_drops.clear()
            self._forgotten_drops = self._drops

    def absent_version(self, name: bytes) -> int:
        """That of a dataset that is not there: 0 or less, and less after it came and went."""
        return -self._last_drops.get(name, self._forgotten_drops)

    def end_leaving(self) -> None:
        """Let go of the data of dropped datasets. Their entries' end must be on the disk before.

        A family's end is at once, and an entry without a family cannot be opened.
        """
        self.parting.update(self.leaving)
        self.leaving.clear()
        self.end_parting()

    def end_parting(self) -> None:
        """Let go of what was put off, as far as the store does not work on it. Quick."""
        self._end_parting(END_SECONDS)

    def _end_parting(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for name in list(self.parting):
            family = self.parting.pop(name)
            try:
                self._store.drop_family(family)
            except StoreStalled:
                self.parting[name] = family  # behind those whose turn has yet to come
            if time.monotonic() > deadline:
                break
