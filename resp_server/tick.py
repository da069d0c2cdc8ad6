"""The end of a loop tick: one commit for all writes of all connections, then their replies.

Every reply waits in its connection until the tick ends, so that no client is told of a write that
is not in the log, and one commit serves all who were ready together. Knows nothing of sockets;
what it needs of a connection is in Replying.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from storage.engine import Engine
from storage.errors import StoreFailure, StoreStalled

STALL_RETRY_SECONDS = 0.003
NOTED_SECONDS = 0.001


class Replying(Protocol):
    """A connection with replies that wait."""

    @property
    def has_unsettled(self) -> bool:
        """Whether one of them tells of a write that is not in the log yet."""
        ...

    def settle(self, failure: StoreFailure | None) -> None:
        """The writes answered so far are in the log, or failed: then their replies say so."""
        ...

    def stall(self) -> None:
        """Take no more commands on until flushed."""
        ...

    def flush(self) -> None:
        """Send all replies."""
        ...


class Tick:
    """Gathers the connections that have replies, and ends the tick once per turn of the loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        engine: Engine,
        on_commit: Callable[[float, StoreFailure | None], None] = lambda _seconds, _failure: None,
    ) -> None:
        """`on_commit` is told of commits that took NOTED_SECONDS or failed, and of the next one."""
        self._loop = loop
        self._on_commit = on_commit
        self._failed = False
        self._engine = engine
        self._replying: dict[Replying, None] = {}
        self._scheduled = False
        engine.on_settled = self._settled

    def add(self, connection: Replying) -> None:
        """This connection has replies to send at the end of the tick."""
        self._replying[connection] = None
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.end)

    def end(self) -> None:
        """Commit and send. While the store is stalled, those whose writes wait go on waiting."""
        started = time.perf_counter()
        try:
            failure = self._engine.commit()
        except StoreStalled:
            self._scheduled = True
            self._loop.call_later(STALL_RETRY_SECONDS, self.end)
            ready = [waiting for waiting in self._replying if not waiting.has_unsettled]
            for connection in ready:
                del self._replying[connection]
            for connection in self._replying:
                connection.stall()
        else:
            seconds = time.perf_counter() - started
            if failure is not None or self._failed or seconds >= NOTED_SECONDS:
                self._failed = failure is not None
                self._on_commit(seconds, failure)
            self._scheduled = False
            ready, self._replying = list(self._replying), {}
        for connection in ready:
            connection.flush()

    def _settled(self, failure: StoreFailure | None) -> None:
        for connection in self._replying:
            connection.settle(failure)
