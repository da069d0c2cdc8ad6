"""What a setting of RocksDB does: the storage library in this process, without server and socket.

    python benchmarks/tuning.py --set rocksdb-block-size=4kb,16kb
    python benchmarks/tuning.py --with rocksdb-compression=none --set rocksdb-block-size=4kb,16kb
    python benchmarks/tuning.py --set rocksdb-write-buffer-size=16mb,8mb+rocksdb-block-size=8kb

Each value after --set is measured in every round, in a process and a directory of its own; who
goes first changes from round to round. A figure is the median of the rounds. Times are microseconds
a call: of processor, for the thread that calls, and after the stroke by the clock. The former are
to be compared where others use the machine too. +- tells how far the rounds of a value were from
their median, half of them nearer. The files are in the system's cache: what is measured is what it
costs to find, read and unpack blocks, not what a disk takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.machine import described
from resp_server.server import rocks_settings
from resp_server.settings import BadSetting, from_command_line
from storage.directory import STORE_FOLDER
from storage.embedded.committing import STALL_RETRY_SECONDS
from storage.embedded.engine import EmbeddedEngine
from storage.errors import StoreStalled
from storage.model import DatasetSettings, NameRange, PageLimits, PageRequest, Selection
from storage.opening import open_engine
from storage.rocks.options import MEGABYTE, RocksSettings

BASE = ["rocksdb-block-cache-size=8mb"]
"""Unless --with says otherwise: most rows of a million cells are not in a cache of that size."""
COLUMNS_A_ROW = 100
KINDS = tuple(b"kind:%d" % number for number in range(5))
EVENTS_A_LOG = 1_000
VERSIONS = 20
SCANNED_ROWS = 10
BUSY_PART = 40
"""One of so many rows is busy, so that the cache holds it."""
READS_A_GROUP = 4
SETTINGS = DatasetSettings()
PAGE = PageRequest(PageLimits())
SCAN = PageRequest(PageLimits(), rows=SCANNED_ROWS)
IDLE_CHECK_SECONDS = 0.05
BACKGROUND = ("running_flushes", "running_compactions", "pending_flushes", "pending_compactions")

Figures = dict[str, tuple[float, ...]]
"""What was measured -> (processor us, us by the clock), or (amount,)."""
Call = Callable[[int], Awaitable[object]]
"""A call about the row or the log of this number."""


@dataclass(frozen=True, slots=True)
class Amounts:
    cells: int
    """In rows; a quarter as many go into logs."""
    datasets: int

    @property
    def rows(self) -> int:
        return max(1, self.cells // COLUMNS_A_ROW)

    @property
    def events(self) -> int:
        return self.cells // 4

    @property
    def logs(self) -> int:
        return max(1, self.events // EVENTS_A_LOG)

    @property
    def calls(self) -> int:
        return max(10, self.cells // 500)


@dataclass(slots=True)
class Stopwatch:
    """Adds up seconds of this thread and of the clock, and knows the longest."""

    used: float = 0.0
    passed: float = 0.0
    _used: float = 0.0
    _passed: float = 0.0

    def __enter__(self) -> None:
        self._used, self._passed = time.thread_time(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.used += time.thread_time() - self._used
        self.passed += time.perf_counter() - self._passed

    def each(self, calls: int) -> tuple[float, float]:
        """Microseconds."""
        return self.used * 1e6 / calls, self.passed * 1e6 / calls


# One value of a setting


def measured(directory: str, settings: RocksSettings, amounts: Amounts) -> Figures:
    """Everything, of a new store in a directory that is free."""

    async def all_of_it() -> Figures:
        engine = open_engine(Path(directory), settings)
        try:
            return await Measurement(engine, Path(directory) / STORE_FOLDER, amounts).run()
        finally:
            await engine.close()

    return asyncio.run(all_of_it())


@dataclass(slots=True)
class Measurement:
    engine: EmbeddedEngine
    store: Path
    amounts: Amounts
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    figures: Figures = field(default_factory=dict)
    commits: list[float] = field(default_factory=list)
    """Seconds by the clock that each took, stalls and all."""
    put_bytes: int = 0

    async def run(self) -> Figures:
        figures, engine = self.figures, self.engine
        for number in range(self.amounts.datasets):
            await engine.create_dataset(b"d%d" % number, SETTINGS)
        others = seconds_of_other_threads()
        await self.put_rows()
        await self.append_to_logs()
        await self.idle()
        puts = self.amounts.cells + self.amounts.events
        others = seconds_of_other_threads() - others
        figures["a put, other threads"] = (others * 1e6 / puts,)
        figures["stalls"] = (engine.commits.stalls,)
        figures["a commit, 99.9th percentile, ms"] = (
            1e3 * sorted(self.commits)[len(self.commits) * 999 // 1000],
        )
        figures["files in the first level"] = (engine.figures()["files_in_first_level"],)
        figures["on disk, MB"] = (self.bytes_on_disk() / MEGABYTE,)
        await self.read_all("loaded")
        others = seconds_of_other_threads()
        self.compact()
        figures["compacting, processor s"] = (seconds_of_other_threads() - others,)
        figures["on disk when compacted, MB"] = (self.bytes_on_disk() / MEGABYTE,)
        figures["written to files, a byte put"] = (self.bytes_to_files() / self.put_bytes,)
        await self.read_all("compacted")
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        figures["highest memory, MB"] = (highest * 1024 / MEGABYTE,)
        return figures

    # Writing

    async def put_rows(self) -> None:
        """All cells of all rows in random order: each row's columns one after the other."""
        rows = [place % self.amounts.rows for place in range(self.amounts.cells)]
        self.chance.shuffle(rows)
        filled = [0] * self.amounts.rows

        def cells(some: Sequence[int]) -> Iterator[tuple[bytes, bytes]]:
            for number in some:
                filled[number] += 1
                yield row_of(number), column_of(filled[number] - 1)

        half = len(rows) // 2
        await self.put("put, 64 a commit", cells(rows[:half]), half, 64)
        await self.put("put, 800 a commit", cells(rows[half:]), len(rows) - half, 800)

    async def append_to_logs(self) -> None:
        events = (
            (log_of(self.chance.randrange(self.amounts.logs)), self.chance.choice(KINDS))
            for _ in range(self.amounts.events)
        )
        reads, watch = READS_A_GROUP * (self.amounts.events // 64), Stopwatch()

        async def read_some() -> None:
            numbers = [self.chance.randrange(self.amounts.rows) for _ in range(READS_A_GROUP)]
            with watch:
                for number in numbers:
                    await self.read_cell(number)

        await self.put("append to a log, 64 a commit", events, self.amounts.events, 64, read_some)
        self.figures["amid appends: 1 column"] = watch.each(reads)

    async def put(
        self,
        name: str,
        cells: Iterator[tuple[bytes, bytes]],
        count: int,
        group: int,
        between: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        watch = Stopwatch()
        for start in range(0, count, group):
            prepared = [self.prepared(*next(cells)) for _ in range(min(group, count - start))]
            with watch:
                for dataset, cell in prepared:
                    await self.engine.put(dataset, [cell], None, None)
                began = time.perf_counter()
                await self.commit()
                self.commits.append(time.perf_counter() - began)
            if between is not None:
                await between()
        self.figures[name] = watch.each(count)

    def prepared(
        self, row: bytes, column: bytes
    ) -> tuple[bytes, tuple[bytes, int | None, bytes, bytes]]:
        """(dataset, cell); the value packs about as well as what people store."""
        state = self.chance.choice((b"open", b"done", b"late"))
        value = b'{"state":"%b","by":"%013x"}' % (state, self.chance.getrandbits(52))
        self.put_bytes += len(row) + len(column) + len(value)
        return self.dataset_of(row), (row, None, column, value)

    def dataset_of(self, row: bytes) -> bytes:
        return b"d%d" % (int(row[-12:]) % self.amounts.datasets)

    async def commit(self) -> None:
        while True:
            try:
                failure = self.engine.commit()
            except StoreStalled:
                await asyncio.sleep(STALL_RETRY_SECONDS)
            else:
                if failure is not None:
                    raise failure
                return

    async def idle(self) -> None:
        """Wait until nothing is left to be flushed or compacted by itself."""
        while any([self.engine.figures()[name] for name in BACKGROUND]):
            await asyncio.sleep(IDLE_CHECK_SECONDS)

    def compact(self) -> None:
        for name in self.engine.dataset_names():
            dataset = self.engine.open_dataset(name)
            assert dataset is not None
            dataset.family.compact()

    # Reading

    async def read_all(self, state: str) -> None:
        rows, logs, calls = self.amounts.rows, self.amounts.logs, self.amounts.calls
        for name, call, numbers, count in (
            ("1 column", self.read_cell, rows, calls),
            ("100 columns", self.read_page, rows, calls),
            ("5 columns x 20 versions", self.read_log, logs, calls),
            (f"scan of {SCANNED_ROWS} rows", self.scan, rows, calls // SCANNED_ROWS),
        ):
            await self.read(f"{state}: {name}", call, numbers, count)
            await self.read(f"{state}, in the cache: {name}", call, numbers // BUSY_PART, count)

    async def read(self, name: str, call: Call, numbers: int, count: int) -> None:
        for number in range(min(numbers, count)):  # what the cache can hold is in it then
            await call(number)
        asked = [self.chance.randrange(max(1, numbers)) for _ in range(count)]
        watch = Stopwatch()
        with watch:
            for number in asked:
                await call(number)
        self.figures[name] = watch.each(count)

    async def read_cell(self, number: int) -> None:
        row, column = row_of(number), column_of(COLUMNS_A_ROW // 2)
        await self.engine.read_row(self.dataset_of(row), row, Selection(columns=(column,)), PAGE)

    async def read_page(self, number: int) -> None:
        row = row_of(number)
        page = await self.engine.read_row(self.dataset_of(row), row, Selection(), PAGE)
        assert len(page.columns) == COLUMNS_A_ROW

    async def read_log(self, number: int) -> None:
        log = log_of(number)
        selection = Selection(columns=KINDS, versions=VERSIONS)
        await self.engine.read_row(self.dataset_of(log), log, selection, PAGE)

    async def scan(self, number: int) -> None:
        row = row_of(number)
        rows = NameRange(start=row)
        await self.engine.scan(self.dataset_of(row), rows, Selection(), SCAN)

    # Files

    def bytes_on_disk(self) -> int:
        return sum(file.stat().st_size for file in self.store.glob("*.sst"))

    def bytes_to_files(self) -> int:
        """All that went to files of cells: RocksDB's LOG tells of each."""
        mark, total = "EVENT_LOG_v1 ", 0
        for log in self.store.glob("LOG*"):
            for line in log.read_text().splitlines():
                if mark in line:
                    event = json.loads(line.partition(mark)[2])
                    if event["event"] == "table_file_creation":
                        total += event["file_size"]
        return total


def seconds_of_other_threads() -> float:
    """Processor time that RocksDB's own have used so far."""
    return time.process_time() - time.thread_time()


def row_of(number: int) -> bytes:
    return b"row:%012d" % number


def log_of(number: int) -> bytes:
    return b"log:%012d" % number


def column_of(number: int) -> bytes:
    return b"field:%02d" % number


# The command line


def reading() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/tuning.py", description="What a setting of RocksDB does."
    )
    parser.add_argument("--set", required=True, metavar="DIRECTIVE=VALUE,VALUE", dest="varied")
    parser.add_argument("--with", nargs="*", default=[], metavar="DIRECTIVE=VALUE", dest="given")
    parser.add_argument("--cells", type=int, default=1_000_000, help="default 1,000,000")
    parser.add_argument("--datasets", type=int, default=1, help="rows are spread over; default 1")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    return parser


def variants_of(varied: str, given: Sequence[str]) -> dict[str, RocksSettings]:
    """Value -> settings. BadSetting for what is no directive, or no value of it."""
    name, _, values = varied.partition("=")
    return {
        value: settings_of([*BASE, *given, *f"{name}={value}".split("+")])
        for value in values.split(",")
    }


def settings_of(assignments: Sequence[str]) -> RocksSettings:
    words = []
    for assignment in assignments:
        name, _, value = assignment.partition("=")
        words += [f"--{name}", value]
    return rocks_settings(from_command_line(words))


def rounds_of(
    variants: dict[str, RocksSettings], amounts: Amounts, rounds: int
) -> dict[str, list[Figures]]:
    """Value -> what each round gave."""
    found: dict[str, list[Figures]] = {value: [] for value in variants}
    for number in range(rounds):
        values = list(variants)
        for value in values[number % len(values) :] + values[: number % len(values)]:
            found[value].append(in_a_process(variants[value], amounts))
            print(f"round {number + 1} of {rounds}: {value}", file=sys.stderr, flush=True)
    return found


def in_a_process(settings: RocksSettings, amounts: Amounts) -> Figures:
    """Its memory and its processor time are of nothing else."""
    with (
        tempfile.TemporaryDirectory(prefix="colonnade-bench-") as folder,
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
    ):
        return pool.submit(measured, f"{folder}/data", settings, amounts).result()


def table_of(found: dict[str, list[Figures]]) -> list[list[str]]:
    """What was measured, how far rounds differ, and a column for each value."""
    names = list(next(iter(found.values()))[0])
    lines = [["", "+-", *found]]
    for name in names:
        rounds = [[figures[name] for figures in each] for each in found.values()]
        lines.append([name, spread(rounds), *[figure(each) for each in rounds]])
    return lines


def figure(rounds: Sequence[tuple[float, ...]]) -> str:
    medians = [statistics.median(values) for values in zip(*rounds, strict=True)]
    return " / ".join([f"{value:.2f}" if value < 100 else f"{value:.0f}" for value in medians])


def spread(variants: Sequence[Sequence[tuple[float, ...]]]) -> str:
    """The usual distance of a round from its value's median, in parts of that."""
    distances = []
    for rounds in variants:
        firsts = [figures[0] for figures in rounds]
        middle = statistics.median(firsts)
        distances += [abs(value - middle) / middle for value in firsts if middle]
    return f"{statistics.median(distances):.0%}" if distances else ""


def main() -> None:
    options = reading().parse_args()
    amounts = Amounts(options.cells, options.datasets)
    try:
        variants = variants_of(options.varied, options.given)
    except BadSetting as error:
        sys.exit(str(error))
    print(described())
    print(f"{amounts}, {options.rounds} rounds, with {' '.join([*BASE, *options.given])}")
    print(options.varied.partition("=")[0])
    table = table_of(rounds_of(variants, amounts, options.rounds))
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    for name, *cells in table:
        placed = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        print("  ".join([name.ljust(widths[0]), *placed]))


if __name__ == "__main__":
    main()
