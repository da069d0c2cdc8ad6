"""What goes into Colonnade and out of it in bulk, and how long it takes.

    python benchmarks/transfers.py [--cells 1000000] [--place FOLDER] [--json FILE]

Starts a server of its own on loopback, in a fresh directory that is gone afterwards, and runs the
commands that people run. Cells are events: 20 for each user in random order, over 5 columns, each
with a value of 40 bytes.

    put      WCPUT of one cell in pipelines of 1,000, by redis-py on one connection
    import   the same cells as Parquet, CSV and NDJSON, each into a dataset of its own
    export   all cells into Parquet
    backup   one; another after a tenth of the cells was written again, 200,000 at most; verify
             and restore it
    compact  what MAXVERSIONS 2 leaves over is counted and removed, while somebody else reads rows

Figures of a machine drift from minute to minute. So each import is compared with a put just before
it: what counts is their ratio. Files are made shortly before they are needed and removed after it:
10,000,000 cells take about 4 GB of disk, and a few hundred megabytes of memory.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib.metadata
import json
import os
import platform
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import redis

ROOT = Path(__file__).resolve().parent.parent
EVENTS_OF_A_USER = 20
COLUMNS = ("click", "repin", "save", "search", "view")
MAX_VERSIONS = 2
FIELDS = ("row", "column", "timestamp", "value")
FIRST_MOMENT_MS = 1_700_000_000_000
BATCH_CELLS = 50_000
PIPELINE = 1_000
FEW_CELLS, PUT_CELLS = 30_000, 100_000
MORE_CELLS = 200_000
TARGET = 5.0
"""How many times as fast as puts an import is to be."""
READS_BEFORE = 3_000
PAUSE_SECONDS = 0.001
START_TIMEOUT_SECONDS = 30.0
LOOK_SECONDS = 0.1
NOT_COMPILED = "PYTHONDONTWRITEBYTECODE"
MEGABYTE = 1024 * 1024


class Failure(Exception):
    """It cannot go on; the text says why."""


# Events

Event = tuple[str, str, int, str]
"""Row, column, milliseconds, value."""


def events(cells: int) -> Iterator[list[Event]]:
    """The same ones each time, a batch at a time; each a cell of its own."""
    chance = random.Random(20)
    users = max(1, cells // EVENTS_OF_A_USER)
    for begin in range(0, cells, BATCH_CELLS):
        yield [
            (
                f"user:{chance.randrange(users):08}",
                chance.choice(COLUMNS),
                FIRST_MOMENT_MS + number * 100,
                f"{chance.getrandbits(160):040x}",
            )
            for number in range(begin, min(cells, begin + BATCH_CELLS))
        ]


def write_parquet(path: Path, cells: int) -> None:
    schema = pa.schema(
        [("row", pa.string()), ("column", pa.string()), ("timestamp", pa.int64()),
         ("value", pa.string())]
    )  # fmt: skip
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in events(cells):
            columns = [list(column) for column in zip(*batch, strict=True)]
            writer.write_table(pa.table(dict(zip(FIELDS, columns, strict=True)), schema=schema))


def write_csv(path: Path, cells: int) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        for batch in events(cells):
            writer.writerows(batch)


def write_ndjson(path: Path, cells: int) -> None:
    with path.open("w") as file:
        for batch in events(cells):
            for event in batch:
                file.write(json.dumps(dict(zip(FIELDS, event, strict=True))) + "\n")


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "csv": write_csv,
    "ndjson": write_ndjson,
    "parquet": write_parquet,
}
"""The last one's dataset is used for what follows."""


# The server


@dataclass(frozen=True, slots=True)
class Server:
    port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, protocol=3, socket_timeout=600)

    def most_megabytes(self) -> float:
        """The most it occupied so far, or NaN where there is no /proc."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return float("nan")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def running(place: Path) -> Iterator[Server]:
    """A server while the block runs; ended after it, whatever happened."""
    port, log_path = free_port(), place / "output.log"
    command = [
        sys.executable,
        "-m",
        "resp_server",
        "--port",
        str(port),
        "--dir",
        str(place / "data"),
    ]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        server = Server(port, process)
        wait_until_it_answers(server, log_path)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_until_it_answers(server: Server, log_path: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while server.process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(redis.ConnectionError), server.client() as client:
            client.ping()
            return
        time.sleep(LOOK_SECONDS)
    raise Failure(f"the server did not start:\n{log_path.read_text(errors='replace')}")


# Measuring


@dataclass(slots=True)
class Row:
    """A line of the table. `most_megabytes` is that of the largest process that did it."""

    what: str
    seconds: float
    cells: int = 0
    ratio: float | None = None
    most_megabytes: float | None = None
    remark: str = ""


@dataclass(slots=True)
class Report:
    cells: int
    versions: dict[str, str]
    load_before: float
    """How busy the machine was: an import wants all of it."""
    rows: list[Row] = field(default_factory=list)
    latencies_ms: dict[str, tuple[float, float, int]] = field(default_factory=dict)
    """While what was going on: the median, p99, and how many reads."""
    server_most_megabytes: float = 0.0

    def add(self, row: Row) -> None:
        self.rows.append(row)
        note(f"{row.what}: {row.seconds:.1f} s {row.remark}")


_ALONE = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, capture_output=True, text=True)
seconds = time.perf_counter() - began
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([done.returncode, done.stdout + done.stderr, seconds, most]))
"""
"""Runs a command from a small process: at first a child is as large as who starts it."""


def colonnade(*words: object) -> tuple[float, float]:
    """The seconds that a command took, its start included, and megabytes of its largest process."""
    command = [sys.executable, "-m", "resp_server.cli", *map(str, words)]
    # Installed programs are compiled once, so these are, too.
    surroundings = {key: value for key, value in os.environ.items() if key != NOT_COMPILED}
    told = subprocess.run(
        [sys.executable, "-c", _ALONE, *command],
        cwd=ROOT,
        env=surroundings,
        check=True,
        stdout=subprocess.PIPE,
    )
    code, text, seconds, most = json.loads(told.stdout)
    if code:
        raise Failure(f"colonnade {' '.join(map(str, words))}: {text}")
    return seconds, most * (1 if sys.platform == "darwin" else 1024) / MEGABYTE


def put(server: Server, dataset: str, cells: int, name: str = "") -> float:
    """Cells a second. With `name` they are rows of their own, which begin so."""
    some = [event for batch in events(cells) for event in batch]
    with server.client() as client:
        began = time.perf_counter()
        for begin in range(0, len(some), PIPELINE):
            pipeline = client.pipeline(transaction=False)
            for row, column, at, value in some[begin : begin + PIPELINE]:
                pipeline.execute_command("WCPUT", dataset, name + row, at, column, value)
            pipeline.execute()
        return len(some) / (time.perf_counter() - began)


class Reader:
    """Somebody else, who reads rows one after another: how long each read takes."""

    def __init__(self, server: Server, dataset: str, cells: int) -> None:
        self._server = server
        self._dataset = dataset
        self._users = max(1, cells // EVENTS_OF_A_USER)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.seconds: list[float] = []

    def _run(self) -> None:
        chance = random.Random(7)
        with self._server.client() as client:
            while not self._ends.wait(PAUSE_SECONDS):
                row = f"user:{chance.randrange(self._users):08}"
                began = time.perf_counter()
                client.execute_command("WCGET", self._dataset, row, "VERSIONS", MAX_VERSIONS)
                self.seconds.append(time.perf_counter() - began)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def figures(self) -> tuple[float, float, int]:
        """The median and p99 in milliseconds, and how many reads."""
        ordered = sorted(self.seconds)
        p99 = ordered[int(len(ordered) * 0.99)]
        return statistics.median(ordered) * 1000, p99 * 1000, len(ordered)


# The parts, in their order


def warm_up(server: Server, place: Path) -> None:
    """Libraries are read from the disk by who needs them first."""
    for kind, write in WRITERS.items():
        path = place / f"few.{kind}"
        write(path, FEW_CELLS)
        colonnade("import", "few", path, "--server", server.address, "--via", "tables")
    colonnade("export", "few", place / "few", "--server", server.address)
    with server.client() as client:
        client.execute_command("WCDATASET", "DROP", "few")


def measure_imports(server: Server, place: Path, report: Report) -> None:
    for kind, write in WRITERS.items():
        path = place / f"events.{kind}"
        note(f"making {path.name}")
        write(path, report.cells)
        put_cells = min(PUT_CELLS, report.cells)
        rate = put(server, "puts", put_cells)
        report.add(Row(f"put before {kind}", put_cells / rate, put_cells))
        at = ("--server", server.address, "--via", "tables")
        seconds, most = colonnade("import", kind, path, *at)
        ratio = report.cells / seconds / rate
        size = f"{path.stat().st_size / MEGABYTE:,.0f} MB"
        report.add(Row(f"import {kind}", seconds, report.cells, ratio, most, size))
        path.unlink()
        with server.client() as client:
            for dataset in ("puts", *([] if kind == last_kind() else [kind])):
                client.execute_command("WCDATASET", "DROP", dataset)


def last_kind() -> str:
    return list(WRITERS)[-1]


def measure_export(server: Server, place: Path, report: Report) -> None:
    target = place / "exported"
    seconds, most = colonnade("export", last_kind(), target, "--server", server.address)
    rows = sum(pq.read_metadata(path).num_rows for path in target.iterdir())
    if rows != report.cells:
        raise Failure(f"{rows} cells were exported, of {report.cells}")
    size = f"{folder_bytes(target) / MEGABYTE:,.0f} MB"
    report.add(Row("export parquet", seconds, report.cells, None, most, size))
    shutil.rmtree(target)


def measure_backups(server: Server, place: Path, report: Report) -> None:
    target, restored = place / "backups", place / "restored"
    at = ("--server", server.address)
    before = 0
    for what in ("first", "second"):
        seconds, most = colonnade("backup", target, *at)
        after = folder_bytes(target)
        size = f"{(after - before) / MEGABYTE:,.0f} MB sent"
        report.add(Row(f"backup, {what}", seconds, 0, None, most, size))
        before = after
        if what == "first":
            put(server, last_kind(), min(MORE_CELLS, report.cells // 10), "later:")
    seconds, most = colonnade("verify", target)
    report.add(Row("verify", seconds, 0, None, most))
    seconds, most = colonnade("restore", target, restored)
    size = f"{folder_bytes(restored) / MEGABYTE:,.0f} MB"
    report.add(Row("restore", seconds, 0, None, most, size))
    shutil.rmtree(target)
    shutil.rmtree(restored)


def measure_compaction(server: Server, report: Report) -> None:
    dataset = last_kind()
    with server.client() as client:
        compact(client, dataset)  # what the imports have left to do is done
        client.execute_command("WCDATASET", "ALTER", dataset, "MAXVERSIONS", MAX_VERSIONS)
        with reading(server, report, "nothing else") as reader:
            while len(reader.seconds) < READS_BEFORE:
                time.sleep(LOOK_SECONDS)
        with reading(server, report, "EXPLAIN"):
            began = time.perf_counter()
            found = facts_of(client.execute_command("WCDATASET", "EXPLAIN", dataset))
            seconds = time.perf_counter() - began
        remark = f"{int(found['surplus-cells']):,} of {int(found['cells']):,} cells to remove"
        report.add(Row("explain", seconds, report.cells, None, None, remark))
        before = disk_megabytes(client, dataset)
        with reading(server, report, "COMPACT"):
            began = time.perf_counter()
            compact(client, dataset)
            seconds = time.perf_counter() - began
        freed = before - disk_megabytes(client, dataset)
        remark = f"{freed:,.0f} of {before:,.0f} MB freed"
        report.add(Row("compact", seconds, report.cells, None, None, remark))


@contextlib.contextmanager
def reading(server: Server, report: Report, meanwhile: str) -> Iterator[Reader]:
    with Reader(server, last_kind(), report.cells) as reader:
        yield reader
    if reader.seconds:
        report.latencies_ms[meanwhile] = reader.figures()


def compact(client: redis.Redis, dataset: str) -> None:
    """Compact, and wait for its end."""
    client.execute_command("WCDATASET", "COMPACT", dataset)
    while facts_of(client.execute_command("WCDATASET", "INFO", dataset))["compaction"] != "idle":
        time.sleep(LOOK_SECONDS)


def disk_megabytes(client: redis.Redis, dataset: str) -> float:
    facts = facts_of(client.execute_command("WCDATASET", "INFO", dataset))
    return int(facts["disk-bytes"]) / MEGABYTE


def facts_of(reply: dict[bytes, Any]) -> dict[str, str]:
    return {
        name.decode(): value.decode() if isinstance(value, bytes) else str(value)
        for name, value in reply.items()
    }


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


# Report


def processors() -> int:
    """The processors this process may use: server and commands share them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def print_report(report: Report) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    print(f"{versions}; {processors()} processors, load {report.load_before:.1f} before")
    print(f"{report.cells:,} cells\n")
    line = "{:20} {:>8} {:>10} {:>8} {:>7} {:>8}  {}"
    print(line.format("", "seconds", "k cells/s", "to put", "target", "most MB", "").rstrip())
    for row in report.rows:
        rate = f"{row.cells / row.seconds / 1000:,.1f}" if row.cells else ""
        ratio = "" if row.ratio is None else f"{row.ratio:.1f} x"
        met = "" if row.ratio is None else ("met" if row.ratio >= TARGET else "missed")
        most = "" if row.most_megabytes is None else f"{row.most_megabytes:,.0f}"
        cells = (row.what, f"{row.seconds:.1f}", rate, ratio, met, most, row.remark)
        print(line.format(*cells).rstrip())
    print("\nreads of a row      p50 ms    p99 ms    reads")
    for what, (median, p99, reads) in report.latencies_ms.items():
        print(f"{what:16} {median:9.2f} {p99:9.2f} {reads:8,}")
    print(f"\nthe server took {report.server_most_megabytes:,.0f} MB at most")


# The program


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure imports, exports, backups, a compaction.")
    parser.add_argument("--cells", type=int, default=1_000_000, help="default 1,000,000")
    parser.add_argument("--place", type=Path, help="a folder to work in; else that of the system")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    if options.cells < PIPELINE:
        parser.error(f"--cells is at least {PIPELINE}")
    return options


def measure(cells: int, place: Path | None) -> Report:
    load_before = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="colonnade-transfers-", dir=place) as folder,
        running(Path(folder)) as server,
    ):
        with server.client() as client:
            version = client.info("server")["colonnade_version"]
        libraries = {name: importlib.metadata.version(name) for name in ("pyarrow", "redis")}
        known = {"Colonnade": version, "Python": platform.python_version(), **libraries}
        report = Report(cells, known, load_before)
        warm_up(server, Path(folder))
        measure_imports(server, Path(folder), report)
        measure_export(server, Path(folder), report)
        measure_backups(server, Path(folder), report)
        measure_compaction(server, report)
        report.server_most_megabytes = server.most_megabytes()
        return report


def leave(_number: int, _frame: FrameType | None) -> None:
    """Leave by an exception, so that the server is ended on the way out."""
    sys.exit(1)


def main() -> int:
    options = parse_options()
    signal.signal(signal.SIGTERM, leave)
    try:
        report = measure(options.cells, options.place)
    except (Failure, redis.RedisError) as error:
        note(str(error))
        return 1
    except KeyboardInterrupt:
        note("stopped")
        return 130
    print_report(report)
    if options.json:
        options.json.write_text(json.dumps(asdict(report), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
