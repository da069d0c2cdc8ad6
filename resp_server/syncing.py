"""Bringing the log to the disk, as `appendfsync` says: on which thread, and how it went.

    always     the end of each tick, before any reply of that tick is sent (tick.py)
    everysec   once a second, on a thread
    no         when the system likes; SAVE, WAITAOF and the end of the server bring it there

On a quick disk the loop waits for it: a thread's way back costs more. On a slow one a thread does,
and the loop goes on; which it is is measured all the time. A log that could not be brought to the
disk is in an unknown state: the engine is told, and opens its store again, which writes anew what
the log holds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from resp_server.settings import Settings
from storage.distribution import Distribution
from storage.errors import StoreFailure

log = logging.getLogger(__name__)

SLOW_SECONDS = 0.0005
"""On average longer than this: a thread does it."""
QUICK_SECONDS = 0.00025
"""On average shorter than this: the loop does it again."""
BOUNDS_SECONDS = (
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0,
)  # fmt: skip
_WEIGHT = 0.1
"""Of one more measurement in the average."""


class Log(Protocol):
    """What is needed of an engine."""

    @property
    def unsynced(self) -> bool: ...

    def sync(self) -> None: ...

    def fail(self, error: Exception) -> StoreFailure: ...


class Noted(Protocol):
    def __call__(self, seconds: float) -> None:
        """A sync took so long."""
        ...


class Syncing:
    """One log's."""

    def __init__(
        self, settings: Settings, engine: Log, loop: asyncio.AbstractEventLoop, noted: Noted
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._loop = loop
        self._noted = noted
        self._thread = ThreadPoolExecutor(1, "fsync")
        self._average_seconds = 0.0
        self.on_thread = False
        """Whether `always` leaves it to a thread."""
        self.running = 0
        """How many are under way on a thread."""
        self.failures = 0
        self.seconds = Distribution(BOUNDS_SECONDS)
        self.last_seconds = 0.0
        self.last_success = int(time.time())
        """Unix seconds."""
        self.last_error = ""
        """Why the last one failed; empty if it did not."""

    @property
    def is_due(self) -> bool:
        """Whether replies have to wait for it now."""
        pending = self._engine.unsynced or self.running > 0  # who began one took the mark away
        return pending and self._settings.appendfsync == "always"

    def run(self) -> StoreFailure | None:
        """Do it here and now."""
        return self._ended(*self._measured())

    def start(self) -> asyncio.Future[StoreFailure | None]:
        """Do it on a thread; the future's result is the failure, told on the loop."""
        self.running += 1
        result: asyncio.Future[StoreFailure | None] = self._loop.create_future()
        worker = self._loop.run_in_executor(self._thread, self._measured)

        def ended(outcome: asyncio.Future[tuple[float, Exception | None]]) -> None:
            self.running -= 1
            failure = self._ended(*outcome.result())
            if not result.cancelled():
                result.set_result(failure)

        worker.add_done_callback(ended)
        return result

    def _measured(self) -> tuple[float, Exception | None]:
        started = time.perf_counter()
        error = None
        try:
            self._engine.sync()
        except Exception as raised:
            error = raised
        return time.perf_counter() - started, error

    def _ended(self, seconds: float, error: Exception | None) -> StoreFailure | None:
        self.last_seconds = seconds
        self.seconds.note(seconds)
        self._average_seconds += _WEIGHT * (seconds - self._average_seconds)
        self.on_thread = self._average_seconds > (QUICK_SECONDS if self.on_thread else SLOW_SECONDS)
        self._noted(seconds)
        if error is None:
            self.last_success, self.last_error = int(time.time()), ""
            return None
        self.failures += 1
        self.last_error = str(error)
        log.error("the log could not be brought to the disk: %s", error)
        return self._engine.fail(error)
