"""Whether clients should be sent here: the server is not ending, and its last write succeeded.

After a failed write the store is asked to write something that changes nothing, now and then:
a server that nobody is sent to gets no writes that could show that its disk has room again. Knows
no HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from storage.commits import Commits
from storage.errors import StoreFailure, StoreStalled

TRY_AGAIN_SECONDS = 1.0


class Writing(Protocol):
    """What is asked of an engine."""

    commits: Commits

    def try_writing(self) -> StoreFailure | None: ...


class Readiness:
    """Of one server."""

    def __init__(
        self,
        engine: Writing,
        is_stopping: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` in seconds."""
        self._engine = engine
        self._is_stopping = is_stopping
        self._clock = clock
        self._tried = -TRY_AGAIN_SECONDS

    def objection(self) -> str:
        """Why not, on one line; empty when it is ready."""
        if self._is_stopping():
            return "shutting down"
        if not self._engine.commits.failed_in_a_row:
            return ""
        self._try_again()
        if not self._engine.commits.failed_in_a_row:
            return ""
        return " ".join(f"the last write failed: {self._engine.commits.last_failure}".split())

    def _try_again(self) -> None:
        now = self._clock()
        if now - self._tried < TRY_AGAIN_SECONDS:
            return
        self._tried = now
        try:
            self._engine.try_writing()
        except StoreStalled:
            return  # what became of it will be seen the next time
