"""What the embedded engine asks of a store: byte keys in order, in families, written atomically.

Two stores answer it: storage/rocks/ (on disk) and storage/memory/. Knows nothing of rows or
columns. Errors are those of storage.errors: StoreFailure and StoreStalled, never a library's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Protocol


class Kind(IntEnum):
    PUT = 0
    DELETE = 1
    DELETE_RANGE = 2


@dataclass(frozen=True, slots=True)
class FamilyStatistics:
    """What a family holds: an estimate of its keys, and bytes on disk and in memory."""

    estimated_keys: int
    disk_bytes: int
    memtable_bytes: int


class Scan(Protocol):
    """A consistent view of a family's keys before a bound, as of the moment it was made."""

    def walk(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in order from `start` on. A new walk ends the one before.

        Raises StoreFailure where the store cannot read on: a walk that ends has seen all there is.
        """
        ...


class Family(Protocol):
    """One ordered range of keys: a dataset, or the catalog. Dies when it is dropped."""

    name: str

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, end: bytes | None) -> Scan:
        """A view of the keys before `end`, or of all."""
        ...

    def glance(self) -> Scan:
        """A view of all keys for short walks from several places.

        StoreFailure where so much was deleted that a walk there is better bounded.
        """
        ...

    def statistics(self) -> FamilyStatistics: ...

    def wear(self) -> tuple[int, int]:
        """(entries in the files, how many of them only say that something was deleted)."""
        ...

    def compact(self) -> None:
        """Rewrite the files of the family without what was deleted. Blocks; safe on a thread."""
        ...


Operation = tuple[Kind, Family, bytes, bytes]
"""(PUT, family, key, value), (DELETE, family, key, b"") or (DELETE_RANGE, family, start, end)."""


class OrderedStore(Protocol):
    """Families of ordered keys and one log for all of them."""

    @property
    def problems(self) -> list[str]:
        """What is known to be damaged, a line each, without names of folders. It may grow."""
        ...

    @property
    def degraded(self) -> bool:
        """Whether it was opened although files of it are damaged."""
        ...

    def families(self) -> dict[str, Family]:
        """All families but the default one, by name."""
        ...

    def default_family(self) -> Family: ...

    def create_family(self, name: str) -> Family: ...

    def drop_family(self, family: Family) -> None:
        """It ends at once, for all who know it. StoreStalled while its files are worked on: ask
        again soon."""
        ...

    def flush(self) -> None:
        """Bring to files what is in memory, so that a checkpoint has little left to do.

        Any thread may call it. StoreFailure when that cannot be, or the store changes meanwhile.
        """
        ...

    def checkpoint(self, path: Path) -> None:
        """Make a copy of all that is written. StoreFailure when that cannot be."""
        ...

    def ingest(self, family: Family, tables: Sequence[Path]) -> None:
        """Put all that is in these tables (storage.rocks.tables) on top of a family: all or none.

        The files are used up. Of a key in several the last one counts. StoreFailure.
        """
        ...

    def write(self, operations: Sequence[Operation], *, durable: bool) -> None:
        """Apply all or nothing, in order. On return they are in the log, on the disk if `durable`.

        StoreStalled: nothing was applied, try again soon. StoreFailure: the outcome of these
        operations is unknown until the store is opened again; nothing earlier is lost.
        """
        ...

    def cache_bytes(self) -> int:
        """What its cache of blocks holds; 0 without one."""
        ...

    def figures(self) -> dict[str, int]:
        """What it tells of itself beyond that, by names of its own. Quick; StoreFailure."""
        ...

    def sync(self) -> None:
        """Bring the log to the disk. Blocks; safe on a thread."""
        ...

    def reopen(self) -> None:
        """Close and open again after a failure. All families and scans handed out are dead."""
        ...

    def close(self) -> None: ...
