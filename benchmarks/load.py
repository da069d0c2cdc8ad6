"""Calls for a server, and how fast it answers them: by redis-benchmark, or by a driver of our own.

redis-benchmark sends one command with random numbers. The driver (driver.c) draws from several
calls, each of one or more commands, and tells latencies. It is compiled into a temporary folder;
where that cannot be, driver.py does the same, slower. Both count calls the same way: a connection
sends a pipeline, waits for all replies, and sends the next. Knows nothing of what is compared.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

CONNECTIONS = 50
NUMBER = "__rand_int__"
"""In a word of a call: one number of twelve digits below Load.keyspace, drawn for each call."""
TIMEOUT_SECONDS = 1200.0
HERE = Path(__file__).resolve().parent
COMPILE_OPTIONS = ("-O2", "-std=gnu11")

Words = tuple[str, ...]
"""A command."""


class Failure(Exception):
    """The benchmark cannot go on; the text says why."""


@dataclass(frozen=True, slots=True)
class Call:
    """Commands that are sent together, and how often compared with the load's other calls."""

    commands: tuple[Words, ...]
    weight: int = 1

    def encoded(self) -> bytes:
        return b"".join([encode(words) for words in self.commands])


def call(*words: str, weight: int = 1) -> Call:
    """Of one command."""
    return Call((words,), weight)


class Numbers(Enum):
    """How NUMBER is drawn."""

    UNIFORM = "uniform"
    ZIPF = "zipf"
    SEQUENCE = "sequence"


@dataclass(frozen=True, slots=True)
class Load:
    """`count` calls, 0 for endless ones; `pipeline` of them at a time on each connection.

    `simple`: redis-benchmark is to send it. That draws a number for each NUMBER, not each call.
    """

    calls: tuple[Call, ...]
    count: int
    keyspace: int
    pipeline: int = 1
    connections: int = CONNECTIONS
    numbers: Numbers = Numbers.UNIFORM
    simple: bool = False
    seed: int = 1
    """Loads with the same one draw the same."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Calls a second; latencies of a pipeline, in microseconds."""

    rate: float
    p50_us: float
    p99_us: float
    longest_us: float
    generator: str


def encode(words: Words) -> bytes:
    """A command as it goes over the wire; NUMBER is as long as what takes its place."""
    parts = [word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join([b"$%d\r\n%b\r\n" % (len(p), p) for p in parts])


@dataclass(frozen=True, slots=True)
class Generators:
    """What gives the load here. `remark` says why the driver is not the compiled one."""

    driver: tuple[str, ...]
    redis_benchmark: str | None
    compiler: str | None
    remark: str = ""

    @property
    def driver_name(self) -> str:
        return "driver.c" if self.compiler else "driver.py"


def prepare(stack: ExitStack) -> Generators:
    """Compile the driver into a folder that is there until the stack closes."""
    benchmark = shutil.which("redis-benchmark")
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="colonnade-driver-"))
    slow = (sys.executable, str(HERE / "driver.py"))
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        return Generators(slow, benchmark, None, "there is no C compiler: driver.py gives the load")
    program = Path(folder) / "driver"
    command = [compiler, *COMPILE_OPTIONS, "-o", str(program), str(HERE / "driver.c"), "-lm"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        why = (made.stderr.splitlines() or ["no reason given"])[0]
        return Generators(slow, benchmark, None, f"driver.py gives the load: {why}")
    return Generators((str(program),), benchmark, compiler)


def run(load: Load, host: str, port: int, generators: Generators) -> Measured:
    """Send it all. Failure where a reply was an error."""
    if load.simple and generators.redis_benchmark:
        return _run_redis_benchmark(load, host, port, generators.redis_benchmark)
    with Driving(load, host, port, generators) as driving:
        return driving.wait()


# The driver


class Driving:
    """A load under way, from the moment its connections are there."""

    def __init__(self, load: Load, host: str, port: int, generators: Generators) -> None:
        self._name = generators.driver_name
        amounts = (load.connections, load.pipeline, load.count, load.keyspace)
        words = [host, str(port), *map(str, amounts), load.numbers.value, str(load.seed)]
        with tempfile.TemporaryFile() as calls:
            calls.write(b"".join([_described(each) for each in load.calls]))
            calls.seek(0)
            self._process = subprocess.Popen(
                [*generators.driver, *words],
                bufsize=0,  # or a line that is read would take with it what wait() is to read
                stdin=calls,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def stop(self) -> Measured:
        """End it once the calls under way are answered."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> Measured:
        try:
            out, complaints = self._process.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as expired:
            raise Failure(f"a load took over {TIMEOUT_SECONDS:.0f} s") from expired
        if self._process.returncode:
            raise Failure(f"{self._name}: {complaints.decode(errors='replace').strip()}")
        return _measured(json.loads(out), self._name)

    def __enter__(self) -> Driving:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def _described(call: Call) -> bytes:
    """As driver.c reads it."""
    data = call.encoded()
    return b"%d %d %d\n%b" % (call.weight, len(call.commands), len(data), data)


def _measured(found: dict[str, Any], generator: str) -> Measured:
    if found["errors"]:
        raise Failure(f"{found['errors']} errors, the first: {found['first_error']}")
    rate = found["calls"] / found["seconds"]
    return Measured(rate, found["p50_us"], found["p99_us"], found["longest_us"], generator)


# redis-benchmark


def _run_redis_benchmark(load: Load, host: str, port: int, program: str) -> Measured:
    ((words,),) = [each.commands for each in load.calls]
    amounts = ("-c", load.connections, "-n", load.count, "-P", load.pipeline, "-r", load.keyspace)
    command = [program, "-h", host, "-p", str(port), *map(str, amounts), "--csv", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as expired:
        # It goes on trying for ever when nobody listens any more.
        raise Failure(f"redis-benchmark took over {TIMEOUT_SECONDS:.0f} s") from expired
    lines = list(csv.DictReader(done.stdout.splitlines()))
    # An error reply makes redis-benchmark print the error and leave with only the heading printed.
    if done.returncode or not lines or "Error from server" in done.stderr:
        raise Failure(f"redis-benchmark: {done.stderr.strip() or done.stdout.strip()}")
    line = lines[0]
    p50, p99, longest = [float(line[f"{name}_latency_ms"]) * 1000 for name in ("p50", "p99", "max")]
    return Measured(float(line["rps"]), p50, p99, longest, "redis-benchmark")


@contextmanager
def told_as(name: str) -> Iterator[None]:
    """A Failure within says what it happened to."""
    try:
        yield
    except Failure as failure:
        raise Failure(f"{name}: {failure}") from failure
