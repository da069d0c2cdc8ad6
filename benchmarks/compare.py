"""Colonnade beside redis-server: the same load on the same machine, one after the other.

    python benchmarks/compare.py [--quick] [--rounds 3] [--json FILE]

Starts both servers on loopback in directories of their own, Colonnade with its default settings,
redis-server in memory only (the ceiling people compare with), and runs redis-benchmark on each in
turn: 50 connections, 40-byte values. Figures of a machine drift from minute to minute, so what
counts is the ratio of two runs that follow each other; the table has the median of the rounds.

    P1  write one cell (WCPUT) or field (HSET) of 100,000 random rows, a call at a time
    P2  the same in pipelines of 16
    P3  the same in pipelines of 64
    P4  append to one growing log in pipelines of 16: WCPUT at the server's clock, or ZADD

In P4 the event is the member, 40 bytes as well, and unique so that the log grows by each call.
redis-benchmark has random numbers but no rising ones: the score is random, so ZADD inserts where
WCPUT appends. Each round writes a log of its own, or later rounds would meet a longer one.

G1 is a ratio within Colonnade: page 1,000 of a row of 100,000 columns to page 1, by redis-py.
Without redis-server the table has Colonnade's figures alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import redis

ROOT = Path(__file__).resolve().parent.parent
CONNECTIONS = 50
ROWS = 100_000
VALUE = "x" * 40
START_TIMEOUT_SECONDS = 30.0
LOAD_TIMEOUT_SECONDS = 300.0
QUICK_DIVISOR = 10
PAGE_COLUMNS = 100
PAGES = 1_000
PAGE_TARGET = 1.2


@dataclass(frozen=True, slots=True)
class Workload:
    """One load in the words of both servers; `{round}` in them is the number of the round.

    `random_numbers` is how many values __rand_int__ takes. The targets are ratios to redis-server.
    """

    name: str
    what: str
    pipeline: int
    requests: int
    random_numbers: int
    colonnade: Sequence[str]
    redis: Sequence[str]
    target: float | None
    later_target: float


PUT = ("WCPUT", "bench", "row:__rand_int__", "*", "column", VALUE)
SET = ("HSET", "row:__rand_int__", "column", VALUE)
APPEND = ("WCPUT", "bench", "log:{round}", "*", "event", VALUE)
ADD = ("ZADD", "log:{round}", "__rand_int__", "__rand_int__" + VALUE[12:])  # 12 digits each
UNIQUE = 2**31 - 1

WORKLOADS = (
    Workload("P1", "one cell, no pipeline", 1, 200_000, ROWS, PUT, SET, 0.80, 0.95),
    Workload("P2", "one cell, pipeline 16", 16, 800_000, ROWS, PUT, SET, 0.25, 0.35),
    Workload("P3", "one cell, pipeline 64", 64, 1_000_000, ROWS, PUT, SET, 0.25, 0.35),
    Workload("P4", "one log, pipeline 16", 16, 500_000, UNIQUE, APPEND, ADD, None, 0.90),
)


class Failure(Exception):
    """The comparison cannot go on; the text says why."""


# Servers


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    port: int
    process: subprocess.Popen[bytes]
    log_path: Path

    def client(self) -> redis.Redis:
        return redis.Redis(host="127.0.0.1", port=self.port, socket_timeout=60)

    def version(self) -> str:
        """What the server calls itself: its own version if it tells one, else Redis's."""
        with self.client() as client:
            facts: dict[str, Any] = client.info("server")
        return str(facts.get(f"{self.name}_version") or facts.get("redis_version", "unknown"))

    def resident_megabytes(self) -> float:
        """What the kernel says the process occupies, or NaN where there is no /proc."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return float("nan")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def colonnade_command(port: int, directory: Path) -> list[str]:
    return [sys.executable, "-m", "resp_server", "--port", str(port), "--dir", str(directory)]


def redis_command(port: int, directory: Path) -> list[str]:
    place = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory)]
    return ["redis-server", *place, "--save", "", "--appendonly", "no"]


@contextmanager
def running(name: str, command: list[str], port: int, directory: Path) -> Iterator[Server]:
    """The server while the block runs; ended after it, whatever happened."""
    log_path = directory / "output.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        server = Server(name, port, process, log_path)
        wait_until_it_answers(server)
        yield server
    finally:
        end(process)


def wait_until_it_answers(server: Server) -> None:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while server.process.poll() is None and time.monotonic() < deadline:
        try:
            with server.client() as client:
                client.ping()
            return
        except redis.ConnectionError:
            time.sleep(0.05)
    tail = "\n".join(server.log_path.read_text(errors="replace").splitlines()[-10:])
    raise Failure(f"{server.name} did not start:\n{tail}")


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start(stack: ExitStack, name: str) -> Server:
    """Start the server on data of its own; both are gone when the stack closes."""
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{name}-bench-")))
    data = directory / "data"
    data.mkdir()
    port = free_port()
    command = (colonnade_command if name == "colonnade" else redis_command)(port, data)
    return stack.enter_context(running(name, command, port, directory))


# Load


def measure(server: Server, workload: Workload, words: Sequence[str], requests: int) -> float:
    """Calls a second, as redis-benchmark counts them."""
    load = ["-c", str(CONNECTIONS), "-n", str(requests), "-P", str(workload.pipeline)]
    random_numbers = ["-r", str(workload.random_numbers)]
    command = ["redis-benchmark", "-p", str(server.port), *load, *random_numbers, "--csv", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LOAD_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as expired:
        # It goes on trying for ever when nobody listens any more.
        text = f"{workload.name} on {server.name} took over {LOAD_TIMEOUT_SECONDS:.0f} s"
        raise Failure(text) from expired
    lines = list(csv.DictReader(done.stdout.splitlines()))
    # An error reply makes redis-benchmark print the error and leave with only the heading printed.
    if done.returncode or not lines or "Error from server" in done.stderr:
        raise Failure(f"{workload.name} on {server.name}: {done.stderr.strip() or done.stdout}")
    return float(lines[0]["rps"])


@dataclass(frozen=True, slots=True)
class Result:
    """Calls a second of each round; redis is empty where there is no redis-server."""

    workload: Workload
    colonnade: list[float]
    redis: list[float]

    @property
    def ratio(self) -> float | None:
        """The median of the ratios of neighbouring runs."""
        if not self.redis:
            return None
        pairs = zip(self.colonnade, self.redis, strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)


def run_round(servers: list[Server], number: int, divisor: int, results: list[Result]) -> None:
    """Every load on every server; who goes first changes from round to round."""
    order = servers if number % 2 else servers[::-1]
    for result in results:
        for server in order:
            load = result.workload
            ours = server.name == "colonnade"
            words = [word.format(round=number) for word in (load.colonnade if ours else load.redis)]
            rate = measure(server, load, words, load.requests // divisor)
            (result.colonnade if ours else result.redis).append(rate)
            note(f"round {number}  {load.name}  {server.name:9}  {rate / 1000:7.1f} k calls/s")


# Pages


def send(client: redis.Redis, *words: str | int | bytes) -> Any:
    return client.execute_command(*words)


def write_wide_row(client: redis.Redis) -> None:
    columns = [f"column:{number:06}" for number in range(PAGES * PAGE_COLUMNS)]
    for begin in range(0, len(columns), 1_000):
        triples = [word for name in columns[begin : begin + 1_000] for word in ("*", name, VALUE)]
        send(client, "WCPUT", "bench", "wide", *triples)


def read_page(client: redis.Redis, cursor: bytes) -> tuple[bytes, int]:
    """The next cursor and how many columns the page had."""
    words = ("COUNT", PAGE_COLUMNS, "CURSOR", cursor)
    following, columns = send(client, "WCGET", "bench", "wide", *words)
    return following, len(columns)


def cursor_of_last_page(client: redis.Redis) -> bytes:
    cursor = b"0"
    for _ in range(PAGES - 1):
        cursor, count = read_page(client, cursor)
        if count != PAGE_COLUMNS or cursor == b"0":
            raise Failure(f"a page of the wide row had {count} columns and the cursor {cursor!r}")
    return cursor


def page_cost_ratio(server: Server, samples: int) -> float:
    """Median time of page 1,000 to that of page 1, sampled in turn."""
    with server.client() as client:
        write_wide_row(client)
        cursors = (b"0", cursor_of_last_page(client))
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(samples):
            for cursor, taken in zip(cursors, seconds, strict=True):
                before = time.perf_counter()
                read_page(client, cursor)
                taken.append(time.perf_counter() - before)
    first, last = map(statistics.median, seconds)
    return last / first


# Report


@dataclass(frozen=True, slots=True)
class Report:
    versions: dict[str, str]
    idle_megabytes: float
    results: list[Result]
    page_ratio: float

    def as_json(self) -> dict[str, Any]:
        loads = [{**asdict(result), "ratio": result.ratio} for result in self.results]
        return {
            "versions": self.versions,
            "processors": processors(),
            "idle_resident_megabytes": self.idle_megabytes,
            "workloads": loads,
            "page_1000_to_page_1": self.page_ratio,
        }


def processors() -> int:
    """The processors this process may use: servers and load share them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def kilo(rates: list[float]) -> str:
    return f"{statistics.median(rates) / 1000:.1f}" if rates else "-"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def verdict(result: Result) -> str:
    """Whether the target was met, where there is one and something to compare with."""
    if result.ratio is None or result.workload.target is None:
        return ""
    return "met" if result.ratio >= result.workload.target else "missed"


def print_report(report: Report) -> None:
    names = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    print(f"{names}, {processors()} processors, {CONNECTIONS} connections, medians")
    print(f"Colonnade at rest: {report.idle_megabytes:.0f} MB resident\n")
    line = "{:24} {:>10} {:>8} {:>6} {:>7} {:>6}  {}"
    print(line.format("k calls/s", "colonnade", "redis", "ratio", "target", "later", ""))
    for result in report.results:
        load = result.workload
        rates = (kilo(result.colonnade), kilo(result.redis), number(result.ratio))
        targets = (number(load.target), number(load.later_target))
        print(line.format(f"{load.name} {load.what}", *rates, *targets, verdict(result)).rstrip())
    ratio = number(report.page_ratio)
    print(f"\nG1 page 1,000 of a wide row to page 1: {ratio} x (target at most {PAGE_TARGET})")
    if not any(result.redis for result in report.results):
        print("redis-server is not installed, so there is nothing to compare with.")


# The program


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare Colonnade with redis-server.")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--quick", action="store_true", help="a tenth of the requests")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds is at least 1")
    return options


def compare(rounds: int, divisor: int) -> Report:
    with ExitStack() as stack:
        colonnade = start(stack, "colonnade")
        idle_megabytes = colonnade.resident_megabytes()
        servers = [colonnade]
        if shutil.which("redis-server"):
            servers.append(start(stack, "redis"))
        versions = {server.name: server.version() for server in servers}
        versions["Python"] = platform.python_version()
        results = [Result(workload, [], []) for workload in WORKLOADS]
        for round_number in range(1, rounds + 1):
            run_round(servers, round_number, divisor, results)
        page_ratio = page_cost_ratio(colonnade, 500 // divisor)
        return Report(versions, idle_megabytes, results, page_ratio)


def leave(_number: int, _frame: FrameType | None) -> None:
    """Leave by an exception, so that the servers are ended on the way out."""
    sys.exit(1)


def main() -> int:
    options = parse_options()
    signal.signal(signal.SIGTERM, leave)
    if shutil.which("redis-benchmark") is None:
        note("redis-benchmark is missing; it comes with Redis (Debian: redis-tools).")
        return 1
    try:
        report = compare(options.rounds, QUICK_DIVISOR if options.quick else 1)
    except Failure as error:
        note(str(error))
        return 1
    except KeyboardInterrupt:
        note("stopped")
        return 130
    print_report(report)
    if options.json:
        options.json.write_text(json.dumps(report.as_json(), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
