"""Opening an engine, or a store for a check: the one place that chooses a store for it.

CannotOpen says why a directory cannot be served; nothing in it has been changed then, unless it
was RocksDB that refused.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from storage.directory import STORE_FOLDER, hold, hold_for_reading, prepare
from storage.embedded.engine import EmbeddedEngine
from storage.errors import CannotOpen, StorageError
from storage.maintenance.checking import Findings, Progress, check_store
from storage.memory.database import MemoryDatabase
from storage.rocks.database import RocksDatabase
from storage.rocks.options import RocksSettings

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
        return EmbeddedEngine(store, durable_commits=durable_commits)
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
        return EmbeddedEngine(store, read_only=True)
    except StorageError as error:
        store.close()
        raise CannotOpen(f"cannot open the store in {directory}: {error}") from error


def open_memory_engine() -> EmbeddedEngine:
    """An engine whose data goes with the process."""
    return EmbeddedEngine(MemoryDatabase())


def check_directory(directory: Path, progress: Progress = lambda name, cells: None) -> Findings:
    """Read a whole store that no server holds, and say what is in it and what is wrong with it.

    Nothing in the directory is changed: what RocksDB opens is a directory of symbolic links in the
    system's place for temporary files. CannotOpen where there is no store, or it is in use.
    """
    with hold_for_reading(directory), tempfile.TemporaryDirectory(prefix="colonnade-") as view:
        for file in (directory / STORE_FOLDER).iterdir():
            if not file.name.startswith(_WRITTEN_AT_OPENING):
                (Path(view) / file.name).symlink_to(file.absolute())
        store = RocksDatabase(Path(view), RocksSettings(), read_only=True)
        try:
            return check_store(store, progress)
        finally:
            store.close()
