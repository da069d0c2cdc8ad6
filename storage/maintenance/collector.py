"""The collector: takes dead cells out of a dataset, then has the store compact its files.

Invariants:
 1. It deletes a cell only if it has expired, or if MAXVERSIONS newer unexpired cells of its column
    lie above it none of which expires before it does. No read ever showed, or could come to show,
    such a cell.
 2. Each slice looks at the data as of that moment, with everything written before in the log, and
    adds its deletes before anything else can be written.
 3. What it remembers of a column from one slice to the next is thrown away, and the column begun
    again, when anything was deleted from the dataset meanwhile; a change of settings or a drop
    ends the run.

It runs on the loop in slices of a few hundred cells, one dataset at a time; the compaction itself
runs on a thread. A crash at any point loses nothing visible. Knows nothing of commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Protocol

from storage.embedded.datasets import Dataset
from storage.embedded.deleter import SMALL_SPAN, KeptExpiries
from storage.embedded.ordered import Kind, Operation
from storage.embedded.reader import expiry_of
from storage.encoding import SUFFIX_BYTES
from storage.errors import StoreFailure

log = logging.getLogger(__name__)

SLICE_CELLS = 500
"""Cells looked at before others get their turn: about half a millisecond."""
MAX_RESTARTS = 100
"""A column that is deleted from all the time is left for the next run."""


class Collectable(Protocol):
    """What the collector needs of an engine."""

    def open_dataset(self, name: bytes) -> Dataset | None: ...
    def now(self) -> int: ...
    async def settle(self) -> None:
        """Return once every write so far is in the log."""
        ...

    def append(self, operations: Sequence[Operation]) -> None: ...
    def note_compaction(self, dataset: Dataset, removed_cells: int) -> None: ...


class Collector:
    """Collects one dataset after another, as they are asked for."""

    def __init__(self, engine: Collectable) -> None:
        self._engine = engine
        self._wanted: dict[bytes, None] = {}
        self._task: asyncio.Task[None] | None = None

    def request(self, name: bytes) -> None:
        """Collect this dataset soon. Asking again before it has begun changes nothing."""
        self._wanted[name] = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def stop(self) -> None:
        """End the run between two slices."""
        self._wanted.clear()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _work(self) -> None:
        while self._wanted:
            name = next(iter(self._wanted))
            del self._wanted[name]
            try:
                await self._collect(name)
            except StoreFailure as failure:
                log.error("compaction of %s failed: %s", name.decode(), failure)
            except Exception:
                log.exception("compaction of %s failed", name.decode())

    async def _collect(self, name: bytes) -> None:
        dataset = self._engine.open_dataset(name)
        if dataset is None:
            return
        run = _Run(dataset)
        while not run.finished:
            await self._engine.settle()
            if self._engine.open_dataset(name) is not dataset or run.outdated:
                log.info("compaction of %s ended early: the dataset was changed", name.decode())
                return
            self._engine.append(run.slice(self._engine.now()))
            await asyncio.sleep(0)
        await self._engine.settle()
        try:
            await asyncio.to_thread(dataset.family.compact)
        except StoreFailure:
            if self._engine.open_dataset(name) is dataset:
                raise
        if self._engine.open_dataset(name) is dataset:
            self._engine.note_compaction(dataset, run.removed_cells)
            log.info("compaction of %s removed %d cells", name.decode(), run.removed_cells)


class _Run:
    """One pass over a dataset: how far it is, and what it knows of the column it is in."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._settings = dataset.settings
        self._bound = b""
        self._column = b""
        self._kept = KeptExpiries(self._settings.max_versions)
        self._deletes = dataset.deletes
        self._restarts = 0
        self.removed_cells = 0
        self.finished = False

    @property
    def outdated(self) -> bool:
        return self._dataset.settings != self._settings

    def slice(self, now: int) -> list[Operation]:
        """Look at the next cells; return the operations that remove the dead ones among them."""
        self._forget_if_deleted_from()
        runs: list[list[bytes]] = [[]]
        cells = self._dataset.family.scan(None).walk(self._bound)
        for looked_at, (key, value) in enumerate(cells):
            if looked_at == SLICE_CELLS:
                self._bound = key
                break
            if self._is_dead(key, value, now):
                runs[-1].append(key)
            elif runs[-1]:
                runs.append([])
        else:
            self.finished = True
        self.removed_cells += sum(map(len, runs))
        return [operation for run in runs for operation in self._removal(run)]

    def _forget_if_deleted_from(self) -> None:
        """Begin the column again if something above may be gone (invariant 3)."""
        if self._deletes == self._dataset.deletes:
            return
        self._deletes = self._dataset.deletes
        if self._settings.max_versions and self._bound.startswith(self._column) and self._column:
            self._restarts += 1
            self._bound = self._column
            if self._restarts > MAX_RESTARTS:
                self._bound = self._column[:-1] + b"\x01"
                log.info("compaction leaves a busy column of %s for later", self._dataset.name)
        self._column = b""

    def _is_dead(self, key: bytes, value: bytes, now: int) -> bool:
        column = key[:-SUFFIX_BYTES]
        if column != self._column:
            self._column = column
            self._restarts = 0
            self._kept = KeptExpiries(self._settings.max_versions)
        expires = expiry_of(key, value, self._settings.ttl_seconds * 1000)
        if expires < now:
            return True
        if not self._settings.max_versions:
            return False
        if not self._kept.keeps(expires):
            return True
        self._kept.add(expires)
        return False

    def _removal(self, keys: list[bytes]) -> list[Operation]:
        """Neighbouring dead keys, with nothing live between them."""
        family = self._dataset.family
        if len(keys) > SMALL_SPAN:
            return [(Kind.DELETE_RANGE, family, keys[0], keys[-1] + b"\x00")]
        return [(Kind.DELETE, family, key, b"") for key in keys]
