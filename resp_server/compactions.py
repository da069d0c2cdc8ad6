"""Compaction by the clock: the daily one of all datasets, and the one of worn files.

Knows when; what a compaction does is the engine's.
"""

from __future__ import annotations

import logging

from resp_server.scheduling import Schedule
from resp_server.settings import Settings
from storage.engine import Engine

log = logging.getLogger(__name__)


class Compactions:
    """The two schedules of one server."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self._engine = engine
        self.schedules = (
            Schedule(lambda: settings.wc_compaction_cron, self._compact_all),
            Schedule(lambda: settings.wc_compaction_checker_cron, self._compact_worn),
        )

    def changed(self) -> None:
        """The expressions may be others."""
        for schedule in self.schedules:
            schedule.changed()

    async def _compact_all(self) -> None:
        names = self._engine.dataset_names()
        log.info("compaction of %d datasets begins, as scheduled", len(names))
        for name in names:
            await self._engine.compact_dataset(name)

    async def _compact_worn(self) -> None:
        for name in await self._engine.compact_worn():
            log.info("the files of %s hold many deletions and are compacted", name.decode())
