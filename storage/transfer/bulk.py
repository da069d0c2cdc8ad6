"""An import in bulk: cells of files become sorted tables, which a server takes over at once.

Shares of the files are turned into tables by processes of their own. Where many tables overlap,
they are merged, a range of keys by each process. A cell that is given twice is there once, as it
was given last. Nothing reaches the server before all tables are there. The keys are made by
storage.encoding alone.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import operator
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

from storage.encoding import cell_keys, stored_values
from storage.errors import CannotTransfer
from storage.rocks.tables import merge_tables, write_table
from storage.transfer.batches import CellBatch
from storage.transfer.mapping import Defaults
from storage.transfer.sources import Unit, batches_of, shares_of

SHARE_RECORDS = 500_000
RUN_CELLS = 1_100_000
RUN_BYTES = 320 * 1024 * 1024
"""What is sorted at a time, at most."""
CELL_BYTES = 150
"""What a cell takes in memory beside its key and value, about."""
MOST_PROCESSES = 8
"""Each may take twice RUN_BYTES and what its libraries need."""
FEW_RECORDS = 20_000
"""So many are not worth another process."""
MOST_OVERLAPPING = 8
"""So many tables RocksDB takes as they are, and merges them beside its other work; more of them
would make it slow down who writes."""
MOST_UNMERGED = 8_000_000
"""So many records go into tables that need not be merged here: larger ones take longer to sort, but
not as long as a merge."""
KNOWN_KEYS = 64
"""Of each table, from which ranges of about equal size are guessed."""
MOST_COMPLAINTS = 20
"""Told of one share; the others are counted."""


@dataclass(frozen=True, slots=True)
class Table:
    """A file of sorted cells, and some of its keys in order, the first and the last among them."""

    path: Path
    keys: tuple[bytes, ...]

    @classmethod
    def of(cls, path: Path, keys: Sequence[bytes]) -> Table:
        return cls(path, (*keys[:: 1 + len(keys) // KNOWN_KEYS], keys[-1]))


@dataclass(slots=True)
class Converted:
    """What became of one share, or of all."""

    tables: list[Table] = field(default_factory=list)
    cells: int = 0
    records: int = 0
    bad: int = 0
    complaints: list[tuple[str, int, str]] = field(default_factory=list)
    """File, line and reason of the first of them."""
    expiring: bool = False
    """Whether a cell has an expiry of its own."""

    def add(self, other: Converted) -> None:
        self.tables += other.tables
        self.cells += other.cells
        self.records += other.records
        self.bad += other.bad
        self.complaints += other.complaints
        self.expiring |= other.expiring


class _Stop(Exception):
    """At the first record that is no cell, if that is to end it."""


Progress = Callable[[int, int], None]
"""Called with how many records were read, and of about how many."""


@dataclass(slots=True)
class Run:
    """Stored cells side by side, as many as are sorted at a time."""

    keys: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)

    def sort(self) -> None:
        """By keys; of cells with one key the last stays."""
        order = sorted(range(len(self.keys)), key=self.keys.__getitem__)
        keys = [self.keys[place] for place in order]
        values = [self.values[place] for place in order]
        if any(map(operator.eq, keys, itertools.islice(keys, 1, None))):
            last = dict(zip(keys, values, strict=True))
            keys, values = list(last), list(last.values())
        self.keys, self.values = keys, values


def convert_all(
    units: Sequence[Unit],
    defaults: Defaults,
    folder: Path,
    *,
    stop: bool,
    progress: Progress,
    processes: int | None = None,
) -> Converted:
    """Tables of all cells in `folder`; of a cell in several of them the last by name counts.

    With `stop` the first record that is no cell ends it, and there may be no tables. Few records
    are not worth another process. CannotTransfer or StoreFailure if it cannot be done.
    """
    total, result = sum(unit.records for unit in units), Converted()
    if total <= FEW_RECORDS:
        result.add(convert(units, defaults, folder, 0, stop))
        return result
    workers = processes or min(MOST_PROCESSES, os.cpu_count() or 1)
    unmerged = -(-total // MOST_OVERLAPPING)
    shares = shares_of(units, unmerged if total <= MOST_UNMERGED else SHARE_RECORDS)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _prepare) as pool:
        try:
            for converted in _in_order(pool, shares, defaults, folder, stop, 2 * workers):
                result.add(converted)
                progress(result.records, total)
                if stop and result.bad:
                    return result
            if len(result.tables) > MOST_OVERLAPPING and overlap(result.tables):
                merge(pool, result.tables, folder, workers)
        except BrokenProcessPool as error:
            raise CannotTransfer(
                "a process was killed: perhaps there is not enough memory"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)
    return result


def _prepare() -> None:
    """Ctrl-C is for the parent, which waits for its children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # there are millions of objects, and no cycles


def _in_order(
    pool: Executor,
    shares: Sequence[Sequence[Unit]],
    defaults: Defaults,
    folder: Path,
    stop: bool,
    ahead: int,
) -> Iterator[Converted]:
    """What became of the shares in their order, a few of them under way at a time."""
    waiting: deque[Future[Converted]] = deque()
    for number, share in enumerate(shares):
        waiting.append(pool.submit(convert, share, defaults, folder, number, stop))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def overlap(tables: Sequence[Table]) -> bool:
    """Whether the range of one of them meets that of another."""
    ordered = sorted(tables, key=lambda table: table.keys[0])
    return any(one.keys[-1] >= other.keys[0] for one, other in itertools.pairwise(ordered))


def merge(pool: Executor, tables: list[Table], folder: Path, ranges: int) -> None:
    """Puts other tables into the folder in place of these, which do not overlap.

    `ranges` of keys are merged apart from each other, and are of about equal size.
    """
    known = sorted(key for table in tables for key in table.keys)
    bounds = [known[len(known) * number // ranges] for number in range(1, ranges)]
    paths = [table.path for table in tables]
    waiting = [
        pool.submit(merge_tables, paths, folder / f"merged-{number}", start, end)
        for number, (start, end) in enumerate(zip([b"", *bounds], [*bounds, None], strict=True))
    ]
    merged = [path for future in waiting for path in future.result()]
    for path in paths:
        path.unlink()
    for path in merged:
        path.rename(folder / f"{path.parent.name}-{path.name}")


def convert(
    units: Sequence[Unit], defaults: Defaults, folder: Path, number: int, stop: bool
) -> Converted:
    """Runs in a process of its own: the tables of one share."""
    result = Converted()
    try:
        for run, cells in enumerate(_runs(_batches(units, defaults, stop, result), result)):
            path = folder / f"{number:06d}-{run:06d}.sst"
            cells.sort()
            write_table(path, zip(cells.keys, cells.values, strict=True))
            result.tables.append(Table.of(path, cells.keys))
    except _Stop:
        pass
    result.records = sum(unit.records for unit in units)
    return result


def _batches(
    units: Sequence[Unit], defaults: Defaults, stop: bool, result: Converted
) -> Iterator[CellBatch]:
    for unit in units:

        def complain(line: int, reason: str, path: str = unit.path) -> None:
            result.bad += 1
            if len(result.complaints) < MOST_COMPLAINTS:
                result.complaints.append((path, line, reason))
            if stop:
                raise _Stop

        yield from batches_of(unit, defaults, complain)


def _runs(batches: Iterable[CellBatch], result: Converted) -> Iterator[Run]:
    """Stored cells and their keys as they come, as many as are sorted at a time."""
    run, room = Run(), RUN_BYTES
    for batch in batches:
        keys = cell_keys(batch.rows, batch.columns, batch.timestamps, batch.sequences)
        stored = stored_values(batch.values, batch.expiries)
        run.keys += keys
        run.values += stored
        result.cells += len(batch)
        result.expiring |= batch.expiries.count(None) < len(batch)
        room -= sum(map(len, keys)) + sum(map(len, stored)) + CELL_BYTES * len(batch)
        if room <= 0 or len(run.keys) >= RUN_CELLS:
            yield run
            run, room = Run(), RUN_BYTES
    if run.keys:
        yield run
