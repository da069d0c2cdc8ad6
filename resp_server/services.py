"""What handlers may ask of the server, put together: answers commands.context.Server.

Owns what is shared by all clients and lives as long as the process; runs nothing by itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from commands.access.users import Users
from commands.client import Client
from commands.context import Context
from commands.observing.calls import CallStatistics
from commands.observing.latency import SYNC, LatencyMonitor
from commands.observing.memory import MemoryFigures
from commands.observing.slow_log import SlowLog
from commands.publishing.broker import Broker
from resp_server import process
from resp_server.clients import ClientRegistry
from resp_server.compactions import Compactions
from resp_server.configuration import Configuration
from resp_server.counters import Counters, Sampler
from resp_server.execution import Execution
from resp_server.information import Information, Sources
from resp_server.saving import Saving
from resp_server.settings import Settings
from resp_server.syncing import Syncing
from resp_server.version import REDIS_VERSION, VERSION
from storage.engine import Engine

log = logging.getLogger(__name__)


class Services:
    """Users, channels, statistics, configuration, clients; and the server's end."""

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        stop: Callable[[], None],
        users: Users,
        counters: Counters,
        file: Path | None = None,
        looks_into: str = "",
    ) -> None:
        """`looks_into` is what a server shows that only reads, for people."""
        self._settings = settings
        self._engine = engine
        self._loop = loop
        self._counters = counters
        self.users = users
        self.broker = Broker()
        self.calls = CallStatistics()
        self.slow_log = SlowLog()
        self.latency = LatencyMonitor()
        self.syncing = Syncing(settings, engine, loop, partial(self.note_latency, SYNC))
        self.saving = Saving(settings, engine, loop, self.syncing)
        self.compactions = Compactions(settings, engine)
        self.clients = ClientRegistry(loop)
        self.execution = Execution(
            self.clients,
            self.calls,
            self.slow_log,
            self.latency,
            users.denials,
            self.allows_debugging,
        )
        self.configuration = Configuration(
            settings, file, lambda: [user.line() for user in users.all()]
        )
        self.sampler = Sampler(counters, time.monotonic())
        self._run_id = os.urandom(20).hex()
        self.sources = Sources(
            settings,
            counters,
            self.sampler,
            engine,
            self.calls,
            self.broker,
            self.clients,
            saving=self.saving,
            syncing=self.syncing,
            run_id=self._run_id,
            config_file="" if file is None else str(file.absolute()),
            looks_into=looks_into,
        )
        self.facts = Information(self.sources)
        self._stop = stop

    def version(self) -> str:
        return VERSION

    def redis_version(self) -> str:
        return REDIS_VERSION

    def run_id(self) -> str:
        return self._run_id

    async def information(
        self, sections: frozenset[str], client: Client
    ) -> Mapping[str, Mapping[str, object]]:
        return await self.facts.sections(sections, client)

    async def memory(self) -> MemoryFigures:
        return await self.facts.memory()

    def release_memory(self) -> None:
        process.release_memory()

    def reset_statistics(self) -> None:
        self.calls.reset()
        self._counters.reset()
        self._engine.rows.hits = self._engine.rows.misses = 0
        self.sampler.reset()

    async def wait(self, client: Client, seconds: float | None) -> None:
        await self.clients.wait(client, seconds)

    # Saving

    async def sync(self) -> None:
        await self.saving.sync()

    async def save(self) -> None:
        await self.saving.save()

    def save_in_background(self) -> None:
        self.saving.save_in_background()

    def last_save(self) -> int:
        return self.saving.last_save()

    def note_latency(self, event: str, seconds: float) -> None:
        """For the latency monitor, if it took that long."""
        if seconds >= self.latency.limit_seconds:
            self.latency.add(event, int(seconds * 1000), int(time.time()))

    def has_log(self) -> bool:
        return self._settings.wc_engine == "rocksdb"

    # The rest

    def allows_debugging(self, client: Client) -> bool:
        allowed = self._settings.enable_debug_command
        return allowed == "yes" or (allowed == "local" and is_local(client))

    def shut_down(self) -> None:
        self._stop()

    async def run(self, context: Context, words: list[bytes]) -> Any:
        return await self.execution.run(context, words)


def is_local(client: Client) -> bool:
    """Whether a client is on this machine."""
    host = client.address.rpartition(":")[0]
    return client.by_socket_file or host.startswith("127.") or host == "[::1]"
