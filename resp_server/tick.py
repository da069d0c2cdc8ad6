"""The end of a loop tick: one commit for all writes of all connections, then their replies.

Every reply waits in its connection until the tick ends, so that no client is told of a write that
is not in the log, and one commit serves all who were ready together. With `appendfsync always` they
wait for the log to be on the disk, too: one sync for all writes of the tick. While a thread does
it, connections go on and the next tick gathers; it ends after that sync.

Knows nothing of sockets; what it needs of a connection is in Replying.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from resp_server.syncing import Syncing
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

    def seal(self) -> None:
        """Put the replies so far aside: those to come belong to the next tick."""
        ...

    def send_sealed(self, failure: StoreFailure | None) -> None:
        """Send what was put aside; after a failure, its writes' replies say so."""
        ...


class Tick:
    """Gathers the connections that have replies, and ends the tick once per turn of the loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        engine: Engine,
        syncing: Syncing,
        on_slow_commit: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        """`on_slow_commit` is told of commits that took NOTED_SECONDS or more, and how long."""
        self._loop = loop
        self._on_slow_commit = on_slow_commit
        self._engine = engine
        self._syncing = syncing
        self._replying: dict[Replying, None] = {}
        self._sealed: list[Replying] = []
        self._sync: asyncio.Future[StoreFailure | None] | None = None
        """The sync that a thread does, if one does."""
        self._scheduled = False
        engine.on_settled = self._settled

    def add(self, connection: Replying) -> None:
        """This connection has replies to send at the end of the tick."""
        self._replying[connection] = None
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.end)

    def end(self) -> None:
        """Commit, sync if it is due, and send."""
        if self._sync is not None:
            return  # its end ends the next tick
        started = time.perf_counter()
        try:
            self._engine.commit()
        except StoreStalled:
            self._stall()
            return
        seconds = time.perf_counter() - started
        if seconds >= NOTED_SECONDS:
            self._on_slow_commit(seconds)
        if self._syncing.is_due:
            if self._syncing.on_thread:
                self._seal()
                return
            self._syncing.run()
        self._scheduled = False
        ready, self._replying = self._replying, {}
        for connection in ready:
            connection.flush()

    async def finish(self) -> None:
        """End the last tick: all that was answered is sent, unless the store is stalled."""
        while self._sync is not None:
            await asyncio.wait([self._sync])
        self._syncing.on_thread = False
        self.end()

    def _stall(self) -> None:
        """Those whose writes wait go on waiting; the others are served."""
        self._scheduled = True
        self._loop.call_later(STALL_RETRY_SECONDS, self.end)
        if self._syncing.is_due:  # what a read found may have been committed in this tick
            self._syncing.run()
        ready = [waiting for waiting in self._replying if not waiting.has_unsettled]
        for connection in ready:
            del self._replying[connection]
        for connection in self._replying:
            connection.stall()
        for connection in ready:
            connection.flush()

    # With a thread

    def _seal(self) -> None:
        self._scheduled = True
        self._sealed, self._replying = list(self._replying), {}
        for connection in self._sealed:
            connection.seal()
        self._sync = self._syncing.start()
        self._sync.add_done_callback(self._synced)

    def _synced(self, sync: asyncio.Future[StoreFailure | None]) -> None:
        self._sync = None
        sealed, self._sealed = self._sealed, []
        for connection in sealed:
            connection.send_sealed(sync.result())
        self._scheduled = bool(self._replying)
        if self._replying:
            self._loop.call_soon(self.end)

    def _settled(self, failure: StoreFailure | None) -> None:
        if failure is None and self._syncing.is_due:
            return  # they are settled by the sync
        for connection in self._replying:
            connection.settle(failure)
