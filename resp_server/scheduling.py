"""Doing something at the moments of a cron expression, in the local time of this machine.

Knows nothing of what is done. The machine's clock and the expression may change at any time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

from cronsim import CronSim

log = logging.getLogger(__name__)

LONGEST_SLEEP_SECONDS = 20.0
"""How long a change of the machine's clock may go unnoticed."""


def next_moment(expression: str, now: datetime) -> datetime:
    """The first moment after `now`, which is local time without a zone, as the result is."""
    moment: datetime = next(CronSim(expression, now))
    return moment


class Schedule:
    """One expression, and what it calls."""

    def __init__(
        self, expression: Callable[[], str], action: Callable[[], Awaitable[object]]
    ) -> None:
        """`expression` gives the one that holds now, "" for never."""
        self._expression = expression
        self._action = action
        self._changed = asyncio.Event()
        self.next_time = 0
        """Unix seconds; 0: never."""

    def changed(self) -> None:
        """The expression may be another one."""
        self._changed.set()

    async def run(self) -> None:
        """For ever. What an action raises is logged, and the next moment comes all the same."""
        while True:
            if await self._wait():
                try:
                    await self._action()
                except Exception:
                    log.exception("what was scheduled failed")

    async def _wait(self) -> bool:
        """Whether it is time; False: the expression has to be looked at again."""
        self._changed.clear()
        expression = self._expression()
        if not expression:
            self.next_time = 0
            await self._changed.wait()
            return False
        moment = next_moment(expression, datetime.now())
        self.next_time = int(moment.timestamp())
        while (left := (moment - datetime.now()).total_seconds()) > 0:
            try:
                await asyncio.wait_for(self._changed.wait(), min(left, LONGEST_SLEEP_SECONDS))
            except TimeoutError:
                continue
            return False
        return True
