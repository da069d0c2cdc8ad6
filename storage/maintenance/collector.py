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

Where to look, a survey of a checkpoint in another process tells, so that live data is not walked
over on the loop; a small dataset is walked as a whole. The loop looks in slices of a few hundred
cells, one dataset at a time; the compaction of the files runs on a thread. A crash at any point
loses nothing visible, and the next run goes on with what is left. Knows nothing of commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import Protocol

from storage.embedded.datasets import Dataset
from storage.embedded.deleter import SMALL_SPAN
from storage.embedded.ordered import Kind, Operation
from storage.embedded.rules import STEPS_BEFORE_SEEK
from storage.encoding import end_of
from storage.errors import StoreFailure
from storage.maintenance.judging import LIVE, Judge
from storage.maintenance.survey import WHOLE, Span, Survey, Totals
from storage.model import DatasetSettings

log = logging.getLogger(__name__)

SLICE_CELLS = 500
"""Cells looked at before others get their turn: about half a millisecond."""
SMALL_DATASET_CELLS = 50_000
"""Up to so many are looked at here: another process would cost more."""
SPANS_AT_ONCE = 500
"""So many spans of a survey are gone through together."""
MOST_ROWS = 1_000
"""Rows that wait to be collected by themselves. Others wait until they are read again."""
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
    def survey_elsewhere(
        self, name: bytes, settings: DatasetSettings
    ) -> AsyncGenerator[Span | int | Totals, None] | None:
        """Survey a dataset as it is now in another process; None if there are no files."""
        ...


class Collector:
    """Collects one dataset after another, as they are asked for."""

    def __init__(self, engine: Collectable) -> None:
        self._engine = engine
        self._wanted: dict[bytes, bool] = {}
        """What is to be done next, and whether dead cells are to be looked for, or only files
        compacted."""
        self._rows: dict[tuple[bytes, bytes], None] = {}
        """Rows to be collected before that: (dataset, the row's prefix)."""
        self._state: dict[bytes, str] = {}
        self._task: asyncio.Task[None] | None = None

    def request(self, name: bytes, *, files_only: bool = False) -> None:
        """Collect this dataset soon. Asking again before it has begun changes nothing."""
        self._wanted[name] = self._wanted.get(name, False) or not files_only
        self._begin()

    def request_row(self, name: bytes, prefix: bytes) -> None:
        """Take the dead cells out of this row soon; nothing if many rows wait for that already."""
        if len(self._rows) < MOST_ROWS:
            self._rows[name, prefix] = None
            self._begin()

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    def state(self, name: bytes) -> str:
        """What is being done to a dataset, for people to read."""
        return self._state.get(name, "waiting" if name in self._wanted else "idle")

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def stop(self) -> None:
        """End the run between two slices."""
        self._wanted.clear()
        self._rows.clear()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _work(self) -> None:
        while self._rows or self._wanted:
            # In turn: rows in heavy use must not keep a compaction waiting for ever.
            if self._rows:
                name = next(iter(self._rows))[0]
                await self._reported(name, self._collect_rows(name))
            if self._wanted:
                name = next(iter(self._wanted))
                looks = self._wanted.pop(name)
                await self._reported(
                    name, self._collect(name) if looks else self._compact_files(name)
                )

    async def _reported(self, name: bytes, work: Awaitable[object]) -> None:
        """Do it; what goes wrong is for the log."""
        try:
            await work
        except StoreFailure as failure:
            log.error("compaction of %s failed: %s", name.decode(), failure)
        except Exception:
            log.exception("compaction of %s failed", name.decode())
        finally:
            self._state.pop(name, None)

    async def _collect_rows(self, name: bytes) -> None:
        """The rows of this dataset that wait to be collected by themselves."""
        prefixes = sorted(prefix for dataset, prefix in self._rows if dataset == name)
        for prefix in prefixes:
            del self._rows[name, prefix]
        dataset = self._engine.open_dataset(name)
        if dataset is None:
            return
        run = _Run(dataset)
        run.spans.extend(Span(prefix, end_of(prefix)) for prefix in prefixes)
        if not await self._remove(name, dataset, run):
            return
        await self._engine.settle()  # a task did this: no tick follows that would commit it
        log.debug("%d cells of %s that reads met had expired", run.removed_cells, name.decode())

    async def _collect(self, name: bytes) -> None:
        dataset = self._engine.open_dataset(name)
        if dataset is None:
            return
        run = _Run(dataset)
        async with contextlib.aclosing(self._spans(name, dataset)) as spans:
            async for span in spans:
                run.spans.append(span)
                if len(run.spans) >= SPANS_AT_ONCE and not await self._remove(name, dataset, run):
                    return
        if not await self._remove(name, dataset, run):
            return
        if await self._compact_files(name):
            self._engine.note_compaction(dataset, run.removed_cells)
            log.info("compaction of %s removed %d cells", name.decode(), run.removed_cells)

    async def _compact_files(self, name: bytes) -> bool:
        """Whether the dataset is still there in the end."""
        self._state[name] = "compacting files"
        await self._engine.settle()
        dataset = self._engine.open_dataset(name)
        if dataset is None:
            return False
        try:
            await asyncio.to_thread(dataset.family.compact)
        except StoreFailure:
            if self._engine.open_dataset(name) is dataset:
                raise
        return self._engine.open_dataset(name) is dataset

    async def _remove(self, name: bytes, dataset: Dataset, run: _Run) -> bool:
        """Go through the spans of the run; whether the dataset is still what it was."""
        while not run.finished:
            await self._engine.settle()
            if self._engine.open_dataset(name) is not dataset or run.outdated:
                log.info("compaction of %s ended early: the dataset was changed", name.decode())
                return False
            self._engine.append(run.slice(self._engine.now()))
            await asyncio.sleep(0)
        return True

    async def _spans(self, name: bytes, dataset: Dataset) -> AsyncGenerator[Span, None]:
        """Where dead cells may lie, in the order of keys."""
        self._state[name] = "looking"
        estimated = dataset.family.statistics().estimated_keys
        findings = None
        if estimated > SMALL_DATASET_CELLS:
            findings = self._engine.survey_elsewhere(name, dataset.settings)
        if findings is None:
            yield WHOLE
            return
        async with contextlib.aclosing(findings):
            async for finding in findings:
                if isinstance(finding, Span):
                    yield finding
                elif isinstance(finding, int):
                    part = min(100, 100 * finding // max(estimated, 1))
                    self._state[name] = f"looked at {part}%"

    async def explain(self, name: bytes, settings: DatasetSettings) -> Totals:
        """What a run would remove under these settings, as of now. StoreFailure."""
        dataset = self._engine.open_dataset(name)
        if dataset is None:
            return Totals()
        await self._engine.settle()
        if dataset.family.statistics().estimated_keys > SMALL_DATASET_CELLS:
            findings = self._engine.survey_elsewhere(name, settings)
            if findings is not None:
                async with contextlib.aclosing(findings):
                    async for finding in findings:
                        if isinstance(finding, Totals):
                            return finding
        survey = Survey(settings, self._engine.now())
        for looked_at, (key, value) in enumerate(dataset.family.scan(None).walk(b""), start=1):
            survey.look(key, value)
            if looked_at % SLICE_CELLS == 0:
                await asyncio.sleep(0)
        return survey.end()


class _Run:
    """One pass over parts of a dataset: how far it is, and what it knows of the column it is in."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._settings = dataset.settings
        self._judge = Judge(self._settings)
        self.spans: deque[Span] = deque()
        """What is to be gone through, in the order of keys."""
        self._bound = b""
        self._last: bytes | None = b""
        self._within = False
        """Whether it is in the middle of a span: at `_bound`, which ends with `_last`."""
        self._deletes = dataset.deletes
        self._busy_column = b""
        self._restarts = 0
        """How often the busy column was begun again."""
        self.removed_cells = 0

    @property
    def finished(self) -> bool:
        return not (self._within or self.spans)

    @property
    def outdated(self) -> bool:
        return self._dataset.settings != self._settings

    def slice(self, now: int) -> list[Operation]:
        """Look at the next cells; return the operations that remove the dead ones among them.

        Small spans share a slice: it goes on to the next one unless that begins before the end of
        the last, in whose column it then is, and whose deletes have to be written first.
        """
        self._forget_if_deleted_from()
        left, operations = self._look(SLICE_CELLS, now) if self._within else (SLICE_CELLS, [])
        while left > 0 and self.spans and not self._within:
            span = self.spans[0]
            if operations and (self._last is None or span.start <= self._last):
                break
            self.spans.popleft()
            self._bound, self._last, self._within = span.start, span.last, True
            self._judge.forget()
            left, more = self._look(left, now)
            left -= STEPS_BEFORE_SEEK  # what it costs to go to the next span
            operations += more
        return operations

    def _look(self, most: int, now: int) -> tuple[int, list[Operation]]:
        """Look at up to `most` cells of the span; how many more it might have been."""
        runs: list[list[bytes]] = [[]]
        judge, last = self._judge, self._last
        looked_at = 0
        for key, value in self._dataset.family.scan(None).walk(self._bound):
            looked_at += 1
            if last is not None and key > last:
                break
            if looked_at > most:
                self._bound = key
                return 0, self._removals(runs)
            if judge.verdict(key, value, now) != LIVE:
                runs[-1].append(key)
            elif runs[-1]:
                runs.append([])
        self._within = False
        return most - looked_at, self._removals(runs)

    def _removals(self, runs: list[list[bytes]]) -> list[Operation]:
        self.removed_cells += sum(map(len, runs))
        return [operation for run in runs for operation in self._removal(run)]

    def _forget_if_deleted_from(self) -> None:
        """Begin the column again if something above may be gone (invariant 3)."""
        if self._deletes == self._dataset.deletes:
            return
        self._deletes = self._dataset.deletes
        column = self._judge.column
        if self._settings.max_versions and self._bound.startswith(column) and column:
            self._restarts = self._restarts + 1 if column == self._busy_column else 1
            self._busy_column = self._bound = column
            if self._restarts > MAX_RESTARTS:
                self._bound = column[:-1] + b"\x01"
                log.info("compaction leaves a busy column of %s for later", self._dataset.name)
        self._judge.forget()

    def _removal(self, keys: list[bytes]) -> list[Operation]:
        """Neighbouring dead keys, with nothing live between them."""
        family = self._dataset.family
        if len(keys) > SMALL_SPAN:
            return [(Kind.DELETE_RANGE, family, keys[0], keys[-1] + b"\x00")]
        return [(Kind.DELETE, family, key, b"") for key in keys]
