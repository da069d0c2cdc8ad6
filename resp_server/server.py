"""The server's life: open the store, listen, serve until told to stop, close in reverse.

Owns what lives as long as the process: engine, tick, connections, background tasks. Commands are
run by connections; what they mean is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from functools import partial
from pathlib import Path

import commands.families  # noqa: F401 - fills the command table
from commands.access.users import Users
from commands.context import CommandSettings
from commands.errors import CommandError, ProtectedModeDenial
from commands.observing.latency import COMMIT
from commands.table import TABLE
from resp_server.connection import Connection
from resp_server.counters import SAMPLE_SECONDS, Counters
from resp_server.descriptors import allow_clients
from resp_server.listening import Listeners
from resp_server.live import ALL_NAMES, Live
from resp_server.metrics.service import Monitoring, open_monitoring
from resp_server.parser import CommandParser
from resp_server.process import allowed_memory_bytes
from resp_server.protected import refuses
from resp_server.reply import encode_error
from resp_server.scheduling import Schedule
from resp_server.services import Services
from resp_server.settings import BadSetting, Settings
from resp_server.supervision import announced
from resp_server.tick import Tick
from storage.backup.looking import Look
from storage.embedded.engine import EmbeddedEngine
from storage.opening import open_engine, open_memory_engine
from storage.rocks.options import RocksSettings

log = logging.getLogger(__name__)

SYNC_INTERVAL_SECONDS = 1.0
OVERDUE_SECONDS = 1.0
STOP_PATIENCE_SECONDS = 10.0
AUTOMATIC_CACHE_BYTES = 64 * 1024**2, 1024**3
"""The cache of blocks is an eighth of the memory, but not less or more."""


class Server:
    """One server. Answers resp_server.connection.Host."""

    def __init__(
        self, settings: Settings, file: Path | None = None, look: Look | None = None
    ) -> None:
        """`file` is the configuration file it was started with, which CONFIG REWRITE writes. With
        `look` it shows that, and changes nothing on the disk."""
        self._settings = settings
        self._file = file
        self._look = look
        self._counters = Counters()
        self._stop = asyncio.Event()
        self._background: list[asyncio.Task[None]] = []
        self._monitoring: Monitoring | None = None
        self.command_settings = CommandSettings()
        self.loop = asyncio.get_running_loop()
        self.listeners = Listeners(settings, lambda: Connection(self))

    # Life

    async def run(self, *, on_signals: bool = True) -> None:
        """Serve until a signal or stop(). CannotOpen or CannotListen when it cannot begin."""
        await self.start()
        if on_signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                self.loop.add_signal_handler(number, self.stop)
        try:
            with announced(self._settings.pidfile, self._settings.supervised):
                await self._stop.wait()
        finally:
            await self.shut_down()

    def stop(self) -> None:
        """Ask it to end; run() returns once it has."""
        self._stop.set()

    async def start(self) -> None:
        """CannotOpen, CannotListen or BadSetting when it cannot begin; nothing is left open."""
        allow_clients(self._settings.maxclients)
        users = _users(self._settings)
        self.engine = _open_engine(self._settings) if self._look is None else self._look.engine
        try:
            self._put_together(users)
            if not self.engine.read_only:
                self.server.saving.clean()
            self._monitoring = await open_monitoring(self.server.sources, self._stop.is_set)
            self.listeners.open()
        except BaseException:
            self._close_monitoring()
            await self.engine.close()
            raise
        self._background = [
            self.loop.create_task(self._sync_every_second()),
            self.loop.create_task(self._keep_house()),
            *(self.loop.create_task(each.run()) for each in self._schedules()),
        ]
        log.info("ready to accept connections")

    def _schedules(self) -> list[Schedule]:
        if self.engine.read_only:
            return []
        return [self.server.saving.schedule, *self.server.compactions.schedules]

    def _put_together(self, users: Users) -> None:
        """Everything that lives as long as the engine."""
        settings = self._settings
        self.server = Services(
            settings,
            self.engine,
            self.loop,
            self.stop,
            users,
            self._counters,
            self._file,
            "" if self._look is None else self._look.source,
        )
        note = partial(self.server.note_latency, COMMIT)
        self.tick = Tick(self.loop, self.engine, self.server.syncing, note)
        self.clients = self.server.clients
        self.execution = self.server.execution
        self.live = Live(settings, self.command_settings, self.server, self.engine, self.listeners)
        self.live.apply(ALL_NAMES - {"requirepass"})
        self.server.configuration.add_listener(self.live.apply)
        self.server.configuration.add_listener(self._limit_input)
        users.on_change = self.clients.user_changed

    async def shut_down(self) -> None:
        """Finish what was taken on, answer it, close the store."""
        log.info("shutting down")
        self.listeners.close()
        for connection in self._connections():
            connection.stop_reading()
        self.clients.unblock_all()
        await self.server.saving.stop()
        await self._wait_for_handlers()
        await self.tick.finish()
        for connection in self._connections():
            connection.close()
        await self._wait_for_clients()
        for task in self._background:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._close_monitoring()
        await self.engine.close()
        log.info("the store is closed, bye")

    def _close_monitoring(self) -> None:
        if self._monitoring is not None:
            self._monitoring.close()

    async def _wait_for_handlers(self) -> None:
        deadline = self.loop.time() + STOP_PATIENCE_SECONDS
        while any(connection.waits_for_handler for connection in self._connections()):
            if self.loop.time() > deadline:
                log.warning("some commands did not end in time and are given up")
                return
            await asyncio.sleep(0.01)

    async def _wait_for_clients(self) -> None:
        """Give those who read their last replies the time to do so."""
        deadline = self.loop.time() + 1.0
        while len(self.clients) and self.loop.time() < deadline:
            await asyncio.sleep(0.01)

    # Background work

    async def _sync_every_second(self) -> None:
        while True:
            await asyncio.sleep(SYNC_INTERVAL_SECONDS)
            if self._settings.appendfsync == "everysec" and self.engine.unsynced:
                await self.server.syncing.start()

    async def _keep_house(self) -> None:
        """Sample rates, and send away who was idle, or left too much unread, for too long."""
        looked = time.monotonic()
        while True:
            due = time.monotonic() + SAMPLE_SECONDS
            await asyncio.sleep(SAMPLE_SECONDS)
            now = time.monotonic()
            self._counters.loop_lag.note(max(0.0, now - due))
            self.server.sampler.sample(now)
            self.engine.tidy()
            if now - looked >= OVERDUE_SECONDS:
                looked = now
                for connection in self._connections():
                    connection.check_overdue(now)

    # For connections

    def parser(self) -> CommandParser:
        settings = self._settings
        return CommandParser(settings.proto_max_bulk_len, settings.client_query_buffer_limit)

    def admit(self, connection: Connection, peer: object) -> bytes | None:
        self._counters.connections_received += 1
        if len(self.clients) >= self._settings.maxclients:
            self._counters.connections_rejected += 1
            return encode_error("ERR", "max number of clients reached")
        protected_mode = self._settings.protected_mode
        if refuses(peer, self.server.users.default, protected_mode=protected_mode):
            self._counters.connections_rejected += 1
            denial = ProtectedModeDenial()
            return encode_error(denial.code, str(denial))
        return None

    @property
    def settings(self) -> Settings:
        return self._settings

    def forget(self, connection: Connection) -> None:
        self.server.broker.forget(connection)
        self.clients.remove(connection)

    def count_traffic(self, commands: int, bytes_in: int) -> None:
        counters = self._counters
        counters.commands_processed += commands
        counters.input_bytes += bytes_in
        counters.reads += 1

    def count_sent(self, bytes_out: int) -> None:
        self._counters.output_bytes += bytes_out
        self._counters.writes += 1

    def _limit_input(self, _names: frozenset[str]) -> None:
        settings = self._settings
        for connection in self._connections():
            connection.limit_input(settings.proto_max_bulk_len, settings.client_query_buffer_limit)

    def _connections(self) -> list[Connection]:
        return [end for end in self.clients.ends() if isinstance(end, Connection)]


def _users(settings: Settings) -> Users:
    """Those of the configuration. BadSetting when they are wrong."""
    users = Users(TABLE)
    users.all_channels_at_first = settings.acl_pubsub_default == "allchannels"
    users.set_default_password(_encoded(settings.requirepass))
    declarations = [[_encoded(word) for word in words] for words in settings.user]
    try:
        users.start(declarations, settings.aclfile)
    except CommandError as error:
        raise BadSetting(str(error)) from None
    return users


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _open_engine(settings: Settings) -> EmbeddedEngine:
    if settings.wc_engine == "memory":
        return open_memory_engine()
    return open_engine(Path(settings.dir), rocks_settings(settings))


def block_cache_bytes(settings: Settings) -> int:
    """As it is configured, or what suits the memory there is."""
    suitable = allowed_memory_bytes() // 8
    least, most = AUTOMATIC_CACHE_BYTES
    return settings.rocksdb_block_cache_size or max(least, min(suitable, most))


def rocks_settings(settings: Settings) -> RocksSettings:
    return RocksSettings(
        block_cache_bytes=block_cache_bytes(settings),
        block_bytes=settings.rocksdb_block_size,
        compression=settings.rocksdb_compression,
        bottommost_compression=settings.rocksdb_bottommost_compression,
        write_buffer_bytes=settings.rocksdb_write_buffer_size,
        write_buffers=settings.rocksdb_max_write_buffer_number,
        all_write_buffers_bytes=settings.rocksdb_db_write_buffer_size,
        log_bytes=settings.rocksdb_max_total_wal_size,
        level0_files_to_compact=settings.rocksdb_level0_file_num_compaction_trigger,
        level0_files_to_slow_down=settings.rocksdb_level0_slowdown_writes_trigger,
        level0_files_to_stop=settings.rocksdb_level0_stop_writes_trigger,
        level_base_bytes=settings.rocksdb_max_bytes_for_level_base,
        file_bytes=settings.rocksdb_target_file_size_base,
        background_jobs=settings.rocksdb_max_background_jobs,
        rate_bytes_per_second=settings.rocksdb_rate_limiter_bytes_per_sec,
        open_files=settings.rocksdb_max_open_files,
    )
