"""Column families and the scans of their keys: a part of the guard (see database.py).

Knows nothing of opening and closing, nor of groups.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import GeneratorType
from typing import Any, Protocol

from rocksdict import (
    BottommostLevelCompaction,
    CompactOptions,
    IngestExternalFileOptions,
    Rdict,
    RdictIter,
    ReadOptions,
)

from storage.compiled import twin
from storage.embedded.ordered import FamilyStatistics
from storage.errors import StoreFailure
from storage.rocks.translation import GONE, translated, translation

MOST_DELETED_AT_A_GLANCE = 100


def walk_in_python(
    _owner: RocksScan,
    iterator: RdictIter,
    start: bytes,
    translation: Callable[[Exception], Exception],
) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values from `start` on: the twin of Walk in storage/embedded/_reading.pyx."""
    key, value, step = iterator.key, iterator.value, iterator.next
    iterator.seek(start)
    while (found := key()) is not None:  # else it is not valid, and must not be stepped
        yield found, value()
        step()
    # An iterator that met a damaged block merely has no key; only status() tells.
    try:
        iterator.status()
    except Exception as error:
        # A traceback keeps this frame: what it holds would keep the database from closing.
        del iterator, key, value, step
        raise translation(error) from error


walk_over = twin("storage.embedded._reading", "Walk", walk_in_python)
"""Keeps its first argument alive, turns errors with its last."""


class RocksScan:
    """One iterator with what it points into. Holds a view of the family until it is dropped."""

    __slots__ = ("_bound", "_iterator", "_options")

    def __init__(self, rdict: Rdict, end: bytes | None, most_deleted: int = 0) -> None:
        """`most_deleted`: a walk that meets more deleted keys than that in a row fails."""
        # The iterator points into the options and they into the bound: all three live together.
        self._bound = end
        self._options = ReadOptions()
        if end is not None:
            self._options.set_iterate_upper_bound(end)
        if most_deleted:
            self._options.set_max_skippable_internal_keys(most_deleted)
        try:
            self._iterator: RdictIter = rdict.iter(self._options)
        except Exception as error:
            raise translation(error) from error

    def end(self) -> None:
        """Drop the iterator; the scan is dead."""
        self._iterator = GONE

    def walk(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        return walk_over(self, self._iterator, start, translation)


class Lender(Protocol):
    """The database of a family, as far as a family knows it."""

    def borrowed(self, family: RocksFamily | None = None) -> AbstractContextManager[None]: ...

    def background_errors(self) -> int: ...


class RocksFamily:
    """A column family. It outlives a reopening of the database, which binds it again."""

    __slots__ = ("_database", "_rdict", "handle", "name")

    def __init__(self, database: Lender, name: str, rdict: Rdict) -> None:
        self.name = name
        self._database = database
        self.bind(rdict)

    def bind(self, rdict: Rdict) -> None:
        self._rdict = rdict.get_column_family(self.name)
        self.handle: Any = rdict.get_column_family_handle(self.name)

    def release(self) -> None:
        """Let go of RocksDB's objects, so that it can close or drop the family."""
        self._rdict = GONE
        self.handle = GONE

    def get(self, key: bytes) -> bytes | None:
        try:
            found: bytes | None = self._rdict.get(key)
        except Exception as error:
            raise translation(error) from error
        return found

    def scan(self, end: bytes | None) -> RocksScan:
        return RocksScan(self._rdict, end)

    def glance(self) -> RocksScan:
        return RocksScan(self._rdict, None, MOST_DELETED_AT_A_GLANCE)

    def statistics(self) -> FamilyStatistics:
        with translated():
            return FamilyStatistics(
                integer_property(self._rdict, "rocksdb.estimate-num-keys"),
                integer_property(self._rdict, "rocksdb.total-sst-files-size"),
                integer_property(self._rdict, "rocksdb.cur-size-all-mem-tables"),
            )

    def ingest(self, tables: Sequence[Path]) -> None:
        options = IngestExternalFileOptions()
        options.set_move_files(True)
        with translated():
            self._rdict.ingest_external_file([str(table) for table in tables], options)

    def property(self, name: str) -> int:
        return integer_property(self._rdict, name)

    def is_worked_on(self) -> bool:
        """Whether files are written for it just now, or soon without another write to it.

        A compaction that somebody waits for may be between two of its steps: it is not told here.
        """
        with translated():
            full_buffers = self.property("rocksdb.num-immutable-mem-table")
            return bool(
                self.property("rocksdb.mem-table-flush-pending")
                # Flushes are those of all families: one is this one's only if it has full buffers.
                or (full_buffers and self.property("rocksdb.num-running-flushes"))
                or self.property("rocksdb.compaction-pending")
                or self._is_compacted()
            )

    def _is_compacted(self) -> bool:
        """No property tells, but a table for people does: the files, and how many of them are."""
        text = self._rdict.property_value("rocksdb.cfstats-no-file-histogram") or ""
        return re.search(r"^ *Sum +\d+/0 ", text, flags=re.MULTILINE) is None

    def wear(self) -> tuple[int, int]:
        with translated():
            text = self._rdict.property_value("rocksdb.aggregated-table-properties") or ""
        found = dict(re.findall(r"# (entries|deletions|range deletions)=(\d+)", text))
        deletions = int(found.get("deletions", 0)) + int(found.get("range deletions", 0))
        return int(found.get("entries", 0)), deletions

    def flush(self) -> None:
        self._rdict.flush()

    def compact(self) -> None:
        rdict = self._rdict  # the family may be dropped or bound anew meanwhile
        options = CompactOptions()
        # Without this the lowest level is left as it is, and deleted cells go on taking room.
        options.set_bottommost_level_compaction(BottommostLevelCompaction.force_optimized())
        with self._database.borrowed(self), translated():
            errors_before = self._database.background_errors()
            rdict.compact_range(None, None, options)
            if self._database.background_errors() > errors_before:
                raise StoreFailure(f"the compaction of family {self.name} met an error")


def integer_property(rdict: Rdict, name: str) -> int:
    """A number that RocksDB tells of a family, 0 where it does not."""
    return rdict.property_int_value(name) or 0


def end_abandoned_scans() -> None:
    """Let go of iterators that somebody's traceback or half-run walk still holds.

    Only here, where a database closes: keeping a list of all scans would cost every read. It ends
    the scans of all databases of the process, none of which is in use while this one closes.
    """
    gc.collect()
    for found in gc.get_objects():
        if isinstance(found, GeneratorType) and found.gi_code is walk_in_python.__code__:
            found.close()
        elif type(found) is RocksScan or type(found) is walk_over:
            found.end()
