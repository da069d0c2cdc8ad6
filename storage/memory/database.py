"""An ordered store in memory: sorted lists and dictionaries, gone with the process.

Answers storage.embedded.ordered.OrderedStore. It is for tests and for small data nobody minds
losing: an insert into a family of n keys moves up to n references.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from pathlib import Path

from storage.embedded.ordered import Family, FamilyStatistics, Kind, Operation
from storage.errors import StoreFailure

DEFAULT_FAMILY = "default"


class MemoryScan:
    """A view of a family. It copies nothing: the engine writes nothing while it reads one."""

    __slots__ = ("_end", "_family")

    def __init__(self, family: MemoryFamily, end: bytes | None) -> None:
        self._family = family
        self._end = end

    def walk(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        keys, values, end = self._family.keys, self._family.values, self._end
        for index in range(bisect_left(keys, start), len(keys)):
            key = keys[index]
            if end is not None and key >= end:
                return
            yield key, values[key]


class MemoryFamily:
    """One ordered range of keys."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.keys: list[bytes] = []
        self.values: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self.values.get(key)

    def scan(self, end: bytes | None) -> MemoryScan:
        return MemoryScan(self, end)

    def glance(self) -> MemoryScan:
        return MemoryScan(self, None)

    def statistics(self) -> FamilyStatistics:
        held = sum(len(key) + len(value) for key, value in self.values.items())
        return FamilyStatistics(len(self.keys), 0, held)

    def wear(self) -> tuple[int, int]:
        return len(self.keys), 0

    def compact(self) -> None:
        """Nothing to do: what is deleted is gone at once."""

    def apply(self, kind: Kind, first: bytes, second: bytes) -> None:
        if kind is Kind.PUT:
            if first not in self.values:
                insort(self.keys, first)
            self.values[first] = second
        elif kind is Kind.DELETE:
            self._remove(first, first + b"\x00")
        else:
            self._remove(first, second)

    def _remove(self, start: bytes, end: bytes) -> None:
        low, high = bisect_left(self.keys, start), bisect_left(self.keys, end)
        for key in self.keys[low:high]:
            del self.values[key]
        del self.keys[low:high]


class MemoryDatabase:
    """Families in a dictionary."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.degraded = False
        self._default = MemoryFamily(DEFAULT_FAMILY)
        self._families: dict[str, Family] = {}

    def families(self) -> dict[str, Family]:
        return dict(self._families)

    def default_family(self) -> Family:
        return self._default

    def create_family(self, name: str) -> Family:
        family = self._families[name] = MemoryFamily(name)
        return family

    def flush(self) -> None:
        """There are no files."""

    def checkpoint(self, path: Path) -> None:
        raise StoreFailure(f"data in memory has no files to copy to {path}")

    def ingest(self, family: Family, tables: Sequence[Path]) -> None:
        raise StoreFailure(f"data in memory cannot take over files for {family.name}")

    def drop_family(self, family: Family) -> None:
        del self._families[family.name]

    def write(self, operations: Sequence[Operation], *, durable: bool) -> None:
        for kind, family, first, second in operations:
            assert isinstance(family, MemoryFamily)
            family.apply(kind, first, second)

    def cache_bytes(self) -> int:
        return 0

    def figures(self) -> dict[str, int]:
        return {}

    def sync(self) -> None:
        """Nothing to do: there is no disk."""

    def reopen(self) -> None:
        """Nothing to do: it never fails."""

    def close(self) -> None:
        """Nothing to do: the data goes with the object."""
