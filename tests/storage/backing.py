"""Stores to back up, and what they hold, for the tests of backups."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage.backup.repository import OBJECTS, Made, Origin, Repository, now_ms
from storage.embedded.engine import EmbeddedEngine
from storage.model import EVERYTHING, DatasetSettings, NameRange, PageLimits, PageRequest
from storage.opening import open_engine, open_reader

State = dict[bytes, dict[bytes, list[tuple[int, bytes]]]]
"""Row -> column -> cells, newest first."""

_ALL = PageRequest(PageLimits(10**6, 10**6, 10**6, 10**9, 10**6))


def at_once(call: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(call)


def put(engine: EmbeddedEngine, row: bytes, value: bytes, *, expires_at: int | None = None) -> None:
    at_once(engine.put(b"d", [(row, None, b"c", value)], expires_at, DatasetSettings()))


def fill(engine: EmbeddedEngine, rows: int, start: int = 0) -> None:
    """Rows whose values do not compress."""
    cells = [(b"row%06d" % row, None, b"c", os.urandom(200)) for row in range(start, start + rows)]
    at_once(engine.put(b"d", cells, None, DatasetSettings()))


def state(engine: EmbeddedEngine) -> State:
    page = at_once(engine.scan(b"d", NameRange(), EVERYTHING, _ALL))
    return {row: dict(columns) for row, columns, _ in page.rows}


def state_of(directory: Path) -> State:
    reader = open_reader(directory)
    try:
        return state(reader)
    finally:
        at_once(reader.close())


@contextmanager
def store(directory: Path) -> Iterator[EmbeddedEngine]:
    engine = open_engine(directory)
    try:
        yield engine
    finally:
        at_once(engine.close())


def add(repository: Repository, engine: EmbeddedEngine, scratch: Path, **options: Any) -> Made:
    """A backup of what the engine holds now."""
    engine.checkpoint(scratch)
    try:
        return repository.add(scratch, Origin("0.1.0", "a test", now_ms()), **options)
    finally:
        for path in sorted(scratch.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        scratch.rmdir()


def is_whole(repository: Repository, name: str) -> bool:
    """Whether all objects of a backup are there, going by their sizes."""
    there = repository.place.sizes(OBJECTS)
    return repository.manifest(name).hashes.items() <= there.items()


def objects(repository: Repository) -> set[str]:
    return set(repository.place.sizes(OBJECTS))
