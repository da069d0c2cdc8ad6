"""Opening an engine, or a store for a check: the one place that chooses a store for it.

CannotOpen says why a directory cannot be served; nothing in it has been changed then, unless it
was RocksDB that refused.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from storage.directory import STORE_FOLDER, hold, hold_for_reading, prepare
from storage.embedded.engine import EmbeddedEngine
from storage.errors import CannotOpen, StorageError
from storage.maintenance.checking import Findings, Progress, check_store
from storage.memory.database import MemoryDatabase
from storage.rocks.database import RocksDatabase
from storage.rocks.options import RocksSettings

SCRATCH_FOLDER = "checkpoints"
"""In the data directory: what background work reads. Nothing of it outlives the work."""
_WRITTEN_AT_OPENING = ("LOCK", "LOG", "rocksdict-config.json")
"""What the library writes even if it only reads, by the beginning of the name."""


def open_engine(
    directory: Path,
    settings: RocksSettings | None = None,
    *,
    durable_commits: bool = False,
) -> EmbeddedEngine:
    """The engine over RocksDB in a directory, which is created if need be."""
    path = prepare(directory)
    holder = hold(directory)
    try:
        store = RocksDatabase(path, settings or RocksSettings(), on_closed=holder.release)
    except BaseException:
        holder.release()
        raise
    try:
        scratch = directory / SCRATCH_FOLDER
        shutil.rmtree(scratch, ignore_errors=True)  # what a crash has left there
        return EmbeddedEngine(store, durable_commits=durable_commits, scratch=scratch)
    except StorageError as error:
        store.close()
        raise CannotOpen(f"cannot open the store in {directory}: {error}") from error


def open_reader(directory: Path, settings: RocksSettings | None = None) -> EmbeddedEngine:
    """An engine that reads a checkpoint or a backup, in any process, and is never written to.

    Nobody else may write there meanwhile. RocksDB adds files of its own to the directory.
    """
    with hold_for_reading(directory):
        store = RocksDatabase(directory / STORE_FOLDER, settings or RocksSettings(), read_only=True)
    try:
        return _reader(store, directory)
    except CannotOpen:
        store.close()
        raise


def open_memory_engine() -> EmbeddedEngine:
    """An engine whose data goes with the process."""
    return EmbeddedEngine(MemoryDatabase())


@contextlib.contextmanager
def reading(directory: Path, settings: RocksSettings | None = None) -> Iterator[EmbeddedEngine]:
    """An engine that reads a store that no server holds, and keeps servers out meanwhile.

    Nothing in the directory is changed. CannotOpen where there is no store, or it is in use.
    """
    with hold_for_reading(directory), _linked(_store_files(directory)) as view:
        store = RocksDatabase(view, settings or RocksSettings(), read_only=True)
        try:
            yield _reader(store, directory)
        finally:
            store.close()


def _reader(store: RocksDatabase, directory: Path) -> EmbeddedEngine:
    try:
        return EmbeddedEngine(store, read_only=True)
    except StorageError as error:
        raise CannotOpen(f"cannot open the store in {directory}: {error}") from error


def _store_files(directory: Path) -> dict[str, Path]:
    return {file.name: file for file in (directory / STORE_FOLDER).iterdir()}


@contextlib.contextmanager
def _linked(files: Mapping[str, Path]) -> Iterator[Path]:
    """A directory of symbolic links to the files of a store, for RocksDB to read and write to."""
    with tempfile.TemporaryDirectory(prefix="colonnade-") as view:
        for name, file in files.items():
            if not name.startswith(_WRITTEN_AT_OPENING):
                (Path(view) / name).symlink_to(file.absolute())
        yield Path(view)


def check_directory(directory: Path, progress: Progress = lambda name, cells: None) -> Findings:
    """Read a whole store that no server holds, and say what is in it and what is wrong with it.

    Nothing in the directory is changed: what RocksDB opens is a directory of symbolic links in the
    system's place for temporary files. CannotOpen where there is no store, or it is in use.
    """
    with hold_for_reading(directory):
        return check_files(_store_files(directory), progress)


def check_files(
    files: Mapping[str, Path], progress: Progress = lambda name, cells: None
) -> Findings:
    """As check_directory(), of a store whose files lie anywhere: name in the store -> file."""
    with _linked(files) as view:
        store = RocksDatabase(view, RocksSettings(), read_only=True)
        try:
            return check_store(store, progress)
        finally:
            store.close()
