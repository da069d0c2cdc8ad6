"""Opening an engine: the one place that chooses a store for it.

CannotOpen says why a directory cannot be served; nothing in it has been changed then.
"""

from __future__ import annotations

from pathlib import Path

from storage.directory import prepare
from storage.embedded.engine import EmbeddedEngine
from storage.errors import CannotOpen, StorageError
from storage.memory.database import MemoryDatabase
from storage.rocks.database import RocksDatabase
from storage.rocks.options import RocksSettings


def open_engine(
    directory: Path,
    settings: RocksSettings | None = None,
    *,
    durable_commits: bool = False,
) -> EmbeddedEngine:
    """The engine over RocksDB in a directory, which is created if need be."""
    store = RocksDatabase(prepare(directory), settings or RocksSettings())
    try:
        return EmbeddedEngine(store, durable_commits=durable_commits)
    except StorageError as error:
        store.close()
        raise CannotOpen(f"cannot open the store in {directory}: {error}") from error


def open_memory_engine() -> EmbeddedEngine:
    """An engine whose data goes with the process."""
    return EmbeddedEngine(MemoryDatabase())
