"""Running a handler without a trip through the loop, and handing it to a task if it waits.

A handler is a coroutine, and with the embedded engine it hardly ever waits: stepping it by hand
costs a tenth of a task. When it does wait, the future it waits for has been taken out of it
already, so a Suspended coroutine gives that future to its task first, and is the handler from
there on.

Its outcome is told at the very step in which the handler ends, not when the task is seen to be
done: between the two a commit could happen, and fail, that the outcome depends on. Knows nothing of
commands or connections.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

Finished = Callable[[Any, Exception | None], None]
"""Told once: (value, None) or (None, error)."""


class Suspended(Coroutine[Any, Any, None]):
    """A coroutine that was stepped once and waits for `awaited`, made ready for a task."""

    __slots__ = ("_awaited", "_coroutine", "_finished", "_started")

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], awaited: Any, finished: Finished
    ) -> None:
        self._coroutine = coroutine
        self._awaited = awaited
        self._finished = finished
        self._started = False

    def send(self, value: Any) -> Any:
        if not self._started:
            self._started = True
            awaited, self._awaited = self._awaited, None
            return awaited
        return self._step(self._coroutine.send, value)

    def throw(self, kind: Any, value: Any = None, traceback: Any = None) -> Any:
        if not self._started:
            self._started = True
            self._give_up_future()
        return self._step(self._coroutine.throw, kind if value is None else value)

    def _step(self, step: Callable[[Any], Any], given: Any) -> Any:
        try:
            return step(given)
        except StopIteration as done:
            self._finished(done.value, None)
            raise
        except Exception as error:
            self._finished(None, error)
            raise StopIteration from None

    def _give_up_future(self) -> None:
        """The task was cancelled before it ever waited: nobody will take the result."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            awaited._asyncio_future_blocking = False
            awaited.cancel()

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Any:
        raise TypeError("a suspended handler belongs to a task")
