"""The guard around rocksdict: nothing outside of this folder imports it, so that nobody needs to.

It answers storage.embedded.ordered.OrderedStore. rocksdict 0.3.29 has traps, some of them memory
unsafe; tests/storage/test_rocksdict_traps.py pins each. How they are closed here, by the numbers
used there:

 1-3  Reads go through RocksScan alone: it keeps the ReadOptions and the bound alive beside the
      iterator, sets no lower bound, and never steps an iterator that is not valid: it has no key.
 4-6  No items(), no Snapshot, no prefix extractor: a walk that ends asks status() whether it
      ended early.
 7-8  no_slowdown is always set; a stall is StoreStalled with nothing applied. The batch is built
      anew from the operations for every attempt.
 9    ignore_missing_column_families is always set, a dropped family's handle is unusable, and a
      range delete that ends before it begins is not passed on.
 10   Every Options and WriteBatch is made by options.py and write(), in raw mode (and tables.py).
 11   The engine commits its group before it ingests; the files are moved, not copied.
 12   The engine deletes small rows by key and bounds a group.
 13   Every open names every family, the default one too, all sharing one cache.
 14   FORMAT is read by storage.directory before this module opens anything.
 15   The guard owns every rocksdict object; close() drops all of them and waits for threads.
 16   Writes are refused below a margin of free space; reopen() recovers, read-only if need be.
 17   compact() reads the count of background errors before it says that all went well. With a
      damaged table file the database is opened without paranoid checks: it is degraded.
 18   No secondary instances, no read-only opens beside a live one.
 19   flush, flush_wal and compact_range are the calls made from threads: they release the GIL.
 20   No TTL mode; expiry is the engine's.
 21   Errors are translated in translation.py, once.
 22   live_files() serves the check of a store alone: sizes come from the properties of a family.
 23   drop_family() does nothing to a family while files are written for it.
 24   An Rdict is let go of after its family was dropped, never before.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rocksdict import (
    AccessType,
    Checkpoint,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from storage.embedded.ordered import Family, Kind
from storage.errors import CannotOpen, StoreFailure, StoreStalled, WritesRefused
from storage.rocks.damage import Damage
from storage.rocks.families import RocksFamily, end_abandoned_scans, integer_property
from storage.rocks.options import MEGABYTE, RocksSettings, block_cache, rocksdb_options
from storage.rocks.translation import GONE, translated, translation

DEFAULT_FAMILY = "default"
SPACE_CHECK_SECONDS = RETRY_SECONDS = 0.5
PUT_OFF_SECONDS = 60.0
"""How long a drop is put off at most. On a full disk work on files does not end, and the room is
needed: better a few files that stay open."""
ASKED_AGAIN_SECONDS = 5.0
"""Who was put off asks again within this time, or the drop is another one."""
_OF_THE_DATABASE = {
    "background_errors": "background-errors",
    "block_cache_capacity_bytes": "block-cache-capacity",
    "block_cache_pinned_bytes": "block-cache-pinned-usage",
    "block_cache_usage_bytes": "block-cache-usage",
    "delayed_write_bytes_per_second": "actual-delayed-write-rate",
    "running_compactions": "num-running-compactions",
    "running_flushes": "num-running-flushes",
    "snapshots": "num-snapshots",
    "writes_stopped": "is-write-stopped",
}
"""Names in figures() -> properties that every family answers alike."""
_OF_EACH_FAMILY = {
    "files_in_first_level": "num-files-at-level0",
    "immutable_memtables": "num-immutable-mem-table",
    "live_sst_bytes": "live-sst-files-size",
    "memtable_bytes": "size-all-mem-tables",
    "pending_compaction_bytes": "estimate-pending-compaction-bytes",
    "pending_compactions": "compaction-pending",
    "pending_flushes": "mem-table-flush-pending",
    "sst_bytes": "total-sst-files-size",
}
"""Names in figures() -> properties to be added up over the families."""
_PUT, _DELETE = Kind.PUT, Kind.DELETE


class RocksDatabase:
    """One RocksDB database in a directory. One thread writes; sync and compact may use others."""

    def __init__(
        self,
        path: Path,
        settings: RocksSettings,
        *,
        read_only: bool = False,
        on_closed: Callable[[], None] = lambda: None,
    ) -> None:
        """Open or create it. CannotOpen with the reason when it cannot be opened.

        `read_only` never writes to its files, though it adds some to the directory. `on_closed` is
        called once RocksDB has let go of the files for good.
        """
        self._damage = Damage(path, strict=read_only)
        self._path = path
        self._settings = settings
        self._read_only = read_only
        self._on_closed = on_closed
        self._cache = block_cache(settings)
        self._quick, self._durable = _write_options(sync=False), _write_options(sync=True)
        self._idle = threading.Condition()
        self._borrowers: list[RocksFamily | None] = []
        """Whose families, or None, for each thread that is inside RocksDB."""
        self._put_off: dict[RocksFamily, tuple[float, float]] = {}
        """Families that were not dropped yet: until when they need not be, and when last asked."""
        self._space_checked = 0.0
        self._tried_to_write = 0.0
        self._families: dict[str, RocksFamily] = {}
        self._writable = False
        self._closed = False
        access = AccessType.read_only(False) if read_only else AccessType.read_write()
        try:
            self._rdict = self._open(access)
        except Exception as error:
            raise CannotOpen(_reason(path, str(error))) from error
        self._bind()
        self._writable = not read_only

    # Opening and closing

    def _open(self, access: AccessType) -> Rdict:
        """Open it with all of RocksDB's checks, or degraded if a table file does not pass them.

        Only then: without these checks RocksDB would also pass over damage in its log.
        """
        while True:
            try:
                rdict = self._open_as_told(access)
            except Exception as error:
                if not self._damage.allows_another_try(error):
                    raise
            else:
                self._damage.note_lost_log()
                return rdict

    def _open_as_told(self, access: AccessType) -> Rdict:
        names = [DEFAULT_FAMILY]
        if (self._path / "CURRENT").exists():
            names = Rdict.list_cf(str(self._path), self._options())
        options = self._options()
        options.create_if_missing(True)
        return Rdict(
            str(self._path),
            options,
            column_families={name: self._options() for name in names},
            access_type=access,
        )

    def _options(self) -> Options:
        damage = self._damage
        return rocksdb_options(
            self._settings, self._cache, strict=damage.strict, degraded=damage.degraded
        )

    # Damage

    @property
    def problems(self) -> list[str]:
        """What is known to be damaged, a line each, naming the file. It grows as damage is met."""
        return self._damage.problems

    @property
    def degraded(self) -> bool:
        """Whether it was opened in spite of a damaged table file. Reads that need that file fail;
        everything else works, except that its family is not compacted."""
        return self._damage.degraded

    def file_problems(self) -> list[str]:
        """Files of cells that are not there, or not of the size that they had, a line each."""
        problems = []
        with translated():
            files = self._rdict.live_files()
        for file in files:
            name, size = file["name"].lstrip("/"), file["size"]
            try:
                found = (self._path / name).stat().st_size
            except OSError as error:
                problems.append(f"{name} cannot be read: {error.strerror}")
            else:
                if found != size:
                    problems.append(f"{name} has {found} bytes instead of {size}")
        return sorted(problems)

    def boundaries(self) -> list[bytes]:
        """Keys at which files of cells begin, or have just ended, in order; of all families."""
        with translated():
            files = self._rdict.live_files()
        return sorted(
            {key for file in files for key in (file["start_key"], file["end_key"] + b"\0")}
        )

    def _bind(self) -> None:
        """Make the families match those of the database just opened, keeping known objects."""
        names = {DEFAULT_FAMILY, *Rdict.list_cf(str(self._path), self._options())}
        self._families = {name: self._bound(name) for name in sorted(names)}
        self._put_off.clear()

    def _bound(self, name: str) -> RocksFamily:
        family = self._families.get(name)
        if family is None:
            return RocksFamily(self, name, self._rdict)
        family.bind(self._rdict)
        return family

    def reopen(self) -> None:
        """Close and open again after a failure; read-only where writing is still impossible.

        Families stay usable, scans do not. StoreFailure when not even reading is possible.
        """
        self._release()
        if self._closed:
            raise StoreFailure("the store is closed")
        if self._read_only:
            raise StoreFailure("the store was opened for reading")
        try:
            self._rdict = self._open(AccessType.read_write())
            self._writable = True
        except Exception:
            with translated():
                self._rdict = self._open(AccessType.read_only(False))
        self._bind()

    def flush(self) -> None:
        """Bring to files what is in memory. RocksDB frees the interpreter while it does."""
        with self.borrowed(), translated():
            for family in list(self._families.values()):
                with self.borrowed(family):
                    family.flush()

    def checkpoint(self, path: Path) -> None:
        """A copy of all that is written, as hard links where that is possible. `path` is free."""
        with translated():
            Checkpoint(self._rdict).create_checkpoint(str(path))

    def close(self) -> None:
        self._closed = True
        self._release()
        self._families = {}
        self._on_closed()

    def _release(self) -> None:
        """Drop every object of rocksdict: while one lives, RocksDB keeps its lock on the files."""
        self._writable = False
        if self._rdict is GONE:
            return
        try:
            self._rdict.cancel_all_background(True)
        except Exception as error:  # a failed database may refuse; it is being closed anyway
            if not isinstance(translation(error), StoreFailure):
                raise
        with self._idle:
            self._idle.wait_for(lambda: not self._borrowers)
        for family in self._families.values():
            family.release()
        try:
            self._rdict.close()
        except Exception as error:  # after a failed write close() reports that failure again
            if not isinstance(translation(error), StoreFailure):
                raise
        self._rdict = GONE
        end_abandoned_scans()

    @contextmanager
    def borrowed(self, family: RocksFamily | None = None) -> Iterator[None]:
        """Held by a thread that is inside RocksDB, so that close() waits for it.

        `family`: it works on the files of this one, which is not dropped meanwhile.
        """
        with self._idle:
            self._borrowers.append(family)
        try:
            yield
        finally:
            with self._idle:
                self._borrowers.remove(family)
                self._idle.notify_all()

    def background_errors(self) -> int:
        """Errors RocksDB met on its own threads; it counts them on the default family alone."""
        return integer_property(self._rdict, "rocksdb.background-errors")

    def cache_bytes(self) -> int:
        with translated():
            return integer_property(self._rdict, "rocksdb.block-cache-usage")

    def figures(self) -> dict[str, int]:
        """RocksDB's properties: some three microseconds a family."""
        with translated():
            figures = {
                name: integer_property(self._rdict, f"rocksdb.{key}")
                for name, key in _OF_THE_DATABASE.items()
            }
            for name, key in _OF_EACH_FAMILY.items():
                families = self._families.values()
                figures[name] = sum([family.property(f"rocksdb.{key}") for family in families])
        return figures

    # Families

    def families(self) -> dict[str, Family]:
        return {name: family for name, family in self._families.items() if name != DEFAULT_FAMILY}

    def default_family(self) -> Family:
        return self._families[DEFAULT_FAMILY]

    def create_family(self, name: str) -> Family:
        self._check_space()
        try:
            self._rdict.create_column_family(name, self._options())
        except Exception as error:
            # It may have been created all the same, and only a new opening knows.
            self.reopen()
            raise translation(error) from error
        family = self._families[name] = RocksFamily(self, name, self._rdict)
        return family

    def drop_family(self, family: Family) -> None:
        """StoreStalled while files are written for it: it is as it was, try again soon.

        What is written for a family that is dropped meanwhile RocksDB keeps open, and with it its
        room on the disk, for as long as the database is.
        """
        known = self._families.get(family.name)
        if known is None or known is not family:
            raise StoreFailure(f"family {family.name} is not open")
        if not self._read_only and self._is_to_wait(known):
            raise StoreStalled
        del self._families[known.name]
        try:
            if not self._read_only:  # to whom only reads it is gone
                with translated():
                    self._rdict.drop_column_family(known.name)
        finally:
            # Not before: what it has in memory would be written to a file, and that waited for.
            known.release()

    def _is_to_wait(self, family: RocksFamily) -> bool:
        """Whether files are written for a family that is to be dropped, but not for too long."""
        now = time.monotonic()
        deadline, asked = self._put_off.pop(family, (0.0, 0.0))
        if family not in self._borrowers and not family.is_worked_on():
            return False
        if now - asked > ASKED_AGAIN_SECONDS:
            deadline = now + PUT_OFF_SECONDS
        if now < deadline:
            self._put_off[family] = (deadline, now)
        return now < deadline

    # Writing

    def ingest(self, family: Family, tables: Sequence[Path]) -> None:
        """Holds the interpreter, as a write does, but for milliseconds: the files are moved."""
        if not self._writable:
            self._try_to_write_again()
        self._check_space()
        if self._families.get(family.name) is not family:
            raise StoreFailure(f"family {family.name} is not open")
        self._families[family.name].ingest(tables)

    def write(self, operations: Sequence[tuple[Kind, Any, bytes, bytes]], *, durable: bool) -> None:
        if not self._writable:
            self._try_to_write_again()
        self._check_space()
        batch = WriteBatch(raw_mode=True)
        put = batch.put
        for kind, family, first, second in operations:
            if kind is _PUT:
                put(first, second, family.handle)
            elif kind is _DELETE:
                batch.delete(first, family.handle)
            elif first < second:  # a range that ends before it begins poisons the database
                batch.delete_range(first, second, family.handle)
        try:
            self._rdict.write(batch, self._durable if durable else self._quick)
        except Exception as error:
            # Damage that a compaction met stops all writes, and would again after a reopening.
            if str(error).startswith("Corruption"):
                self._damage.met(error)
            raise translation(error) from error

    def sync(self) -> None:
        with self.borrowed(), translated():
            self._rdict.flush_wal(True)

    def _try_to_write_again(self) -> None:
        """Opening takes milliseconds in which nobody is served: not for each of many writes."""
        now = time.monotonic()
        if now - self._tried_to_write < RETRY_SECONDS:
            raise WritesRefused("the store can only be read until it can be opened again")
        self._tried_to_write = now
        self.reopen()

    def _check_space(self) -> None:
        """Refuse to write before RocksDB meets the end of the disk, which it takes badly."""
        now = time.monotonic()
        if now - self._space_checked < SPACE_CHECK_SECONDS:
            return
        disk = os.statvfs(self._path)
        free = disk.f_bavail * disk.f_frsize
        margin = self._settings.free_space_margin_bytes
        if free < margin:
            raise WritesRefused(
                f"no space left: {free // MEGABYTE} MB free, writes need {margin // MEGABYTE} MB"
            )
        self._space_checked = now


def _write_options(*, sync: bool) -> WriteOptions:
    options = WriteOptions()
    options.sync = sync
    options.no_slowdown = True
    options.ignore_missing_column_families = True
    return options


def _reason(path: Path, text: str) -> str:
    if "lock hold by current process" in text or "While lock file" in text:
        return f"{path} is in use by another running server"
    return f"cannot open the store in {path}: {text}"
