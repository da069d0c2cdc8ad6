"""A server on a clock that the test holds, and with the page limits that it wants."""

from __future__ import annotations

import itertools
import mmap
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness import ServerProcess, until

HOUR_MS = 3_600_000

Word = bytes | str | int

STEERED = """
import mmap, runpy, struct, sys, time
with open(sys.argv.pop(1), "r+b") as held:
    clock = mmap.mmap(held.fileno(), 8)
# Half a millisecond more, so that no rounding of a float finds the millisecond before.
time.time_ns = lambda: struct.unpack("<q", clock[:8])[0] * 1_000_000 + 500_000
time.time = lambda: time.time_ns() / 1e9
runpy.run_module("resp_server", run_name="__main__", alter_sys=True)
"""


class Clock:
    """What time it is for a server, in milliseconds; it moves when it is set."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(8))
        with path.open("r+b") as held:
            self._wall = mmap.mmap(held.fileno(), 8)
        self.now = time.time_ns() // 1_000_000

    @property
    def now(self) -> int:
        return self._now

    @now.setter
    def now(self, now: int) -> None:
        self._now = now
        self._wall[:8] = struct.pack("<q", now)

    def turn_back(self, milliseconds: int) -> None:
        """The wall clock goes back. Where it stamped `now`, the server's must stay there."""
        self._wall[:8] = struct.pack("<q", self._now - milliseconds)

    def start_of_example(self) -> int:
        """Well past all that was written, and the same distance from a full second every time."""
        self.now = (self.now // HOUR_MS + 30) * HOUR_MS + 500
        return self.now


@dataclass(frozen=True, slots=True)
class Limits:
    """Where pages end. Without `scan` and `bytes` they end only where a client can count.

    `row_cache_bytes` bounds what is remembered of rows, which no answer may show.
    """

    columns: int = 3
    rows: int = 2
    cells: int = 5
    bytes: int | None = None
    scan: int | None = None
    row_cache_bytes: int | None = None

    @property
    def countable(self) -> bool:
        return self.bytes is None and self.scan is None

    def directives(self) -> dict[str, int]:
        names = {name: f"wc_page_{name}" for name in self.__slots__}
        names["row_cache_bytes"] = "wc_row_cache_bytes"
        given = {directive: getattr(self, name) for name, directive in names.items()}
        return {directive: value for directive, value in given.items() if value is not None}


class SteeredServer:
    """A server, its clock and its limits, shared by the examples of a module."""

    def __init__(self, directory: Path, limits: Limits) -> None:
        self.limits = limits
        self.clock = Clock(directory / "clock")
        self.process = ServerProcess(
            directory / "data",
            command=(sys.executable, "-c", STEERED, str(directory / "clock")),
            **limits.directives(),
        )
        self.names = (f"model{number}" for number in itertools.count())

    def running(self) -> ServerProcess:
        process = self.process.process
        if process is None or process.poll() is not None:
            self.process.start()
        return self.process


def execute(client: Any, *words: Word) -> Any:
    """Any command: redis-py types neither it nor its reply."""
    return client.execute_command(*words)


def await_compaction(client: Any, dataset: str, since: int) -> dict[bytes, Any]:
    """What WCDATASET INFO says once the last compaction is as late as `since`; RESP2 only."""
    information: dict[bytes, Any] = {}

    def is_over() -> bool:
        reply = execute(client, "WCDATASET", "INFO", dataset)
        information.update(zip(reply[::2], reply[1::2], strict=True))
        return bool(information[b"last-compaction-ms"] >= since)

    until(is_over)
    return information
