"""An export: a dataset's visible cells, as of one moment, into Parquet files in order.

The files have their names once all are whole: an export that was interrupted leaves nothing.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from storage.catalog import family_name
from storage.embedded.engine import EmbeddedEngine
from storage.errors import CannotTransfer, NoSuchDataset
from storage.model import ALL_NAMES, ALL_TIME, NameRange, Selection, TimeRange
from storage.transfer.cells import cell_batches, wide_batches
from storage.transfer.destinations import Destination
from storage.transfer.parquet import CELLS, cells_table, wide_schema, wide_table, writer

ROWS_A_FILE = 10_000_000

Progress = Callable[[int, int], None]
"""Called with how many rows of the files are written, and about how many there will be."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What to export. `versions` None is all; `wide` None is one row of a file for each cell."""

    dataset: bytes
    rows: NameRange = ALL_NAMES
    times: TimeRange = ALL_TIME
    versions: int | None = None
    wide: tuple[bytes, ...] | None = None
    rows_per_file: int = ROWS_A_FILE


@dataclass(frozen=True, slots=True)
class Exported:
    """What became of it. `rows` are those of the files: cells, or rows of a wide export."""

    files: list[str]
    rows: int


def export(
    engine: EmbeddedEngine, request: ExportRequest, destination: Destination, progress: Progress
) -> Exported:
    """NoSuchDataset, or CannotTransfer where files of such an export are there already."""
    dataset = engine.open_dataset(request.dataset)
    if dataset is None:
        raise NoSuchDataset(request.dataset)
    stem = family_name(request.dataset).removeprefix("d:")
    _check_free(destination, stem)
    estimate = dataset.family.statistics().estimated_keys
    schema = CELLS if request.wide is None else wide_schema(request.wide)
    files = _Files(destination, stem, schema, request.rows_per_file)
    try:
        # While one table is compressed and written, the next one is read.
        with ThreadPoolExecutor(1) as writing:
            waiting = deque[Future[None]]()
            for table in _tables(engine, request, schema):
                waiting.append(writing.submit(files.write, table))
                if len(waiting) > 1:
                    waiting.popleft().result()
                    progress(files.rows, estimate)
            for last in waiting:
                last.result()
        progress(files.rows, estimate)
        files.finish()
    except BaseException:
        files.abandon()
        raise
    return Exported(files.names, files.rows)


def _check_free(destination: Destination, stem: str) -> None:
    taken = [name for name in destination.names() if _is_of(name, stem)]
    if taken:
        raise CannotTransfer(f"{taken[0]} is there already: choose an empty place, or remove it")


def _is_of(name: str, stem: str) -> bool:
    number = name.removeprefix(f"{stem}-").removesuffix(".parquet")
    return number.isdecimal() and name == f"{stem}-{number}.parquet"


def _tables(engine: EmbeddedEngine, request: ExportRequest, schema: Any) -> Iterator[Any]:
    dataset = engine.open_dataset(request.dataset)
    assert dataset is not None
    rules = dataset.rules(engine.now())
    if request.wide is not None:
        wide = wide_batches(dataset, rules, request.rows, request.wide, request.times)
        return (wide_table(batch, schema) for batch in wide)
    selection = Selection(versions=request.versions, times=request.times)
    return (cells_table(batch) for batch in cell_batches(dataset, rules, request.rows, selection))


class _Files:
    """Numbered files, one after another. Row groups are not divided among two of them unless a
    file is full in their midst."""

    def __init__(self, destination: Destination, stem: str, schema: Any, rows: int) -> None:
        self._destination = destination
        self._stem = stem
        self._schema = schema
        self._rows_per_file = rows
        self._room = 0
        self._writer: Any = None
        self._file: Any = None
        self.names: list[str] = []
        self.rows = 0

    def write(self, table: Any) -> None:
        while len(table):
            if self._room == 0:
                self._begin_file()
            part = table.slice(0, self._room)
            self._writer.write_table(part)
            self._room -= len(part)
            self.rows += len(part)
            table = table.slice(len(part))

    def _begin_file(self) -> None:
        self._end_file()
        name = f"{self._stem}-{len(self.names):05d}.parquet"
        self._file = self._destination.open(name)
        self._writer = writer(self._file, self._schema)
        self.names.append(name)
        self._room = self._rows_per_file

    def _end_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._file.close()
            self._writer = self._file = None

    def finish(self) -> None:
        """An export without a cell is one file without a row: its columns are there."""
        if not self.names:
            self._begin_file()
        self._end_file()
        self._destination.finish()

    def abandon(self) -> None:
        """Whatever it was that failed, perhaps the place itself: nothing that is left stays."""
        for opened in (self._writer, self._file):
            if opened is not None:
                with contextlib.suppress(Exception):
                    opened.close()
        self._destination.abandon()
