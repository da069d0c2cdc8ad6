"""An import in bulk: cells of files become sorted tables, which a server takes over at once.

Units are turned into tables by processes of their own. Where many overlap, one more process merges
them. A cell that is given twice is there once, as it was given last. Nothing reaches the server
before all tables are there. The keys are made by storage.encoding alone.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from storage.encoding import PLAIN, cell_suffix, column_prefix, row_prefix, value_header
from storage.rocks.tables import merge_tables, write_table
from storage.transfer.mapping import Defaults, ImportedCell
from storage.transfer.sources import Unit, cells_of

RUN_CELLS = 1_000_000
RUN_BYTES = 192 * 1024 * 1024
CELL_BYTES = 150
"""What a cell takes in memory beside its key and value, about."""
FEW_RECORDS = 20_000
"""So many are not worth another process."""
MOST_OVERLAPPING = 8
"""So many tables RocksDB takes as they are, and merges them beside its other work; more of them
would make it slow down who writes."""
MOST_COMPLAINTS = 20
"""Told of one unit; the others are counted."""


@dataclass(frozen=True, slots=True)
class Table:
    """A file of sorted cells, and the keys it begins and ends with."""

    path: Path
    first: bytes
    last: bytes


@dataclass(slots=True)
class Converted:
    """What became of one unit, or of all."""

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
    are not worth another process.
    """
    total, result = sum(unit.records for unit in units), Converted()
    if total <= FEW_RECORDS:
        for number, unit in enumerate(units):
            result.add(convert(unit, defaults, folder, number, stop))
        _merge_if_needed(result.tables, folder)
        return result
    workers = processes or max(1, min(len(units), os.cpu_count() or 1))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _prepare) as pool:
        try:
            for converted in _in_order(pool, units, defaults, folder, stop, 2 * workers):
                result.add(converted)
                progress(result.records, total)
                if stop and result.bad:
                    return result
            pool.submit(_merge_if_needed, result.tables, folder).result()
        finally:
            pool.shutdown(cancel_futures=True)
    return result


def _prepare() -> None:
    """Ctrl-C is for the parent, which waits for its children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # there are millions of tuples, and no cycles


def _in_order(
    pool: ProcessPoolExecutor,
    units: Sequence[Unit],
    defaults: Defaults,
    folder: Path,
    stop: bool,
    ahead: int,
) -> Iterator[Converted]:
    """What became of the units in their order, a few of them under way at a time."""
    waiting: deque[Future[Converted]] = deque()
    for number, unit in enumerate(units):
        waiting.append(pool.submit(convert, unit, defaults, folder, number, stop))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _overlap(tables: Sequence[Table]) -> bool:
    ordered = sorted(tables, key=lambda table: table.first)
    return any(one.last >= other.first for one, other in itertools.pairwise(ordered))


def _merge_if_needed(tables: Sequence[Table], folder: Path) -> None:
    if len(tables) > MOST_OVERLAPPING and _overlap(tables):
        for path in merge_tables([table.path for table in tables], folder / "merged"):
            path.rename(folder / path.name)


def convert(unit: Unit, defaults: Defaults, folder: Path, number: int, stop: bool) -> Converted:
    """Runs in a process of its own: the tables of one unit."""
    result = Converted()

    def complain(line: int, reason: str) -> None:
        result.bad += 1
        if len(result.complaints) < MOST_COMPLAINTS:
            result.complaints.append((unit.path, line, reason))
        if stop:
            raise _Stop

    try:
        for run, pairs in enumerate(_runs(cells_of(unit, defaults, complain), result)):
            path = folder / f"{number:06d}-{run:06d}.sst"
            keys = sorted(pairs)
            write_table(path, zip(keys, map(pairs.__getitem__, keys), strict=True))
            result.tables.append(Table(path, keys[0], keys[-1]))
    except _Stop:
        pass
    result.records = unit.records
    return result


def _runs(cells: Iterator[ImportedCell], result: Converted) -> Iterator[dict[bytes, bytes]]:
    """Stored cells by their keys, as many as are sorted at a time; of a key the last."""
    pairs: dict[bytes, bytes] = {}
    room, last_row, last_column, prefix, place = RUN_BYTES, None, None, b"", b""
    for row, column, timestamp, sequence, value, expires in cells:
        if row != last_row:
            last_row, prefix, last_column = row, row_prefix(row), None
        if column != last_column:
            last_column, place = column, column_prefix(prefix, column)
        stored = (PLAIN if expires is None else value_header(expires)) + value
        pairs[place + cell_suffix(timestamp, sequence)] = stored
        result.cells += 1
        result.expiring |= expires is not None
        room -= len(place) + len(stored) + CELL_BYTES
        if room <= 0 or len(pairs) >= RUN_CELLS:
            yield pairs
            pairs, room = {}, RUN_BYTES
    if pairs:
        yield pairs
