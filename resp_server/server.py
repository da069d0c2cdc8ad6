"""The server's life: open the store, listen, serve until told to stop, close in reverse.

Owns what lives as long as the process: engine, tick, connections, background tasks. Commands are
run by connections; what they mean is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from pathlib import Path

import commands.families  # noqa: F401 - fills the command table
from commands.context import CommandSettings
from resp_server.connection import Connection
from resp_server.information import Counters, Information
from resp_server.parser import CommandParser
from resp_server.settings import Settings
from resp_server.tick import Tick
from storage.embedded.engine import EmbeddedEngine
from storage.errors import StorageError
from storage.model import DatasetSettings, PageLimits
from storage.opening import open_engine, open_memory_engine
from storage.rocks.options import RocksSettings

log = logging.getLogger(__name__)

SYNC_INTERVAL_SECONDS = 1.0
STOP_PATIENCE_SECONDS = 10.0
DESCRIPTORS_BESIDE_CLIENTS = 4096
"""Files RocksDB may hold open, and some to spare."""


class CannotListen(Exception):
    """An address that cannot be listened on; the text says which and why."""


class Server:
    """One server. Answers resp_server.connection.Host."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._counters = Counters()
        self._connections: dict[int, Connection] = {}
        self._last_client = 0
        self._listeners: list[asyncio.Server] = []
        self._stop = asyncio.Event()
        self._syncing: asyncio.Task[None] | None = None
        self.command_settings = _command_settings(settings)
        self.loop = asyncio.get_running_loop()

    # Life

    async def run(self, *, on_signals: bool = True) -> None:
        """Serve until a signal or stop(). CannotOpen or CannotListen when it cannot begin."""
        await self.start()
        if on_signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                self.loop.add_signal_handler(number, self.stop)
        try:
            await self._stop.wait()
        finally:
            await self.shut_down()

    def stop(self) -> None:
        """Ask it to end; run() returns once it has."""
        self._stop.set()

    async def start(self) -> None:
        _raise_descriptor_limit(self._settings.maxclients)
        self.engine = _open_engine(self._settings)
        self.tick = Tick(self.loop, self.engine)
        self.facts = Information(
            self._settings, self._counters, self.engine, lambda: len(self._connections)
        )
        try:
            await self._listen()
        except BaseException:
            await self.engine.close()
            raise
        if self._settings.appendfsync == "everysec":
            self._syncing = self.loop.create_task(self._sync_every_second())
        log.info("ready to accept connections")

    async def shut_down(self) -> None:
        """Finish what was taken on, answer it, close the store."""
        log.info("shutting down")
        for listener in self._listeners:
            listener.close()
        self._remove_socket_file()
        for connection in list(self._connections.values()):
            connection.stop_reading()
        await self._wait_for_handlers()
        self.tick.end()
        for connection in list(self._connections.values()):
            connection.close()
        await self._wait_for_clients()
        if self._syncing is not None:
            self._syncing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._syncing
        await self.engine.close()
        log.info("the store is closed, bye")

    async def _wait_for_handlers(self) -> None:
        deadline = self.loop.time() + STOP_PATIENCE_SECONDS
        while any(connection.waits_for_handler for connection in self._connections.values()):
            if self.loop.time() > deadline:
                log.warning("some commands did not end in time and are given up")
                return
            await asyncio.sleep(0.01)

    async def _wait_for_clients(self) -> None:
        """Give those who read their last replies the time to do so."""
        deadline = self.loop.time() + 1.0
        while self._connections and self.loop.time() < deadline:
            await asyncio.sleep(0.01)

    # Listening

    async def _listen(self) -> None:
        settings = self._settings
        if settings.port:
            for address in settings.bind:
                await self._listen_on(address)
        if settings.unixsocket:
            await self._listen_on_socket_file(settings.unixsocket)
        if not self._listeners:
            raise CannotListen("nothing to listen on: port is 0 and there is no unixsocket")

    async def _listen_on(self, address: str) -> None:
        """An address with "-" in front may be missing on this machine, as in redis.conf."""
        host, port = address.removeprefix("-"), self._settings.port
        try:
            listener = await self.loop.create_server(
                lambda: Connection(self),
                None if host == "*" else host,
                port,
                backlog=self._settings.tcp_backlog,
            )
        except OSError as error:
            if address.startswith("-"):
                log.warning("not listening on %s: %s", host, error.strerror)
                return
            raise CannotListen(f"cannot listen on {host}:{port}: {error.strerror}") from error
        self._listeners.append(listener)
        log.info("listening on %s:%d", host, port)

    async def _listen_on_socket_file(self, path: str) -> None:
        try:
            with contextlib.suppress(FileNotFoundError):
                Path(path).unlink()
            listener = await self.loop.create_unix_server(lambda: Connection(self), path)
            Path(path).chmod(self._settings.unixsocketperm)
        except OSError as error:
            raise CannotListen(f"cannot listen on {path}: {error.strerror}") from error
        self._listeners.append(listener)
        log.info("listening on %s", path)

    def _remove_socket_file(self) -> None:
        if self._settings.unixsocket:
            with contextlib.suppress(OSError):
                Path(self._settings.unixsocket).unlink()

    # Background work

    async def _sync_every_second(self) -> None:
        while True:
            await asyncio.sleep(SYNC_INTERVAL_SECONDS)
            if self.engine.unsynced:
                try:
                    await self.loop.run_in_executor(None, self.engine.sync)
                except StorageError as error:
                    log.error("the log could not be brought to the disk: %s", error)

    # For connections

    def parser(self) -> CommandParser:
        settings = self._settings
        return CommandParser(settings.proto_max_bulk_len, settings.client_query_buffer_limit)

    def admit(self, connection: Connection) -> int | None:
        self._counters.connections_received += 1
        if len(self._connections) >= self._settings.maxclients:
            self._counters.connections_rejected += 1
            return None
        self._last_client += 1
        self._connections[self._last_client] = connection
        return self._last_client

    def forget(self, connection: Connection) -> None:
        client = getattr(connection, "client", None)
        if client is not None:
            self._connections.pop(client.identifier, None)

    def count_commands(self, count: int) -> None:
        self._counters.commands_processed += count


def _command_settings(settings: Settings) -> CommandSettings:
    return CommandSettings(
        password=settings.requirepass.encode("utf-8", "surrogateescape"),
        databases=settings.databases,
        limits=PageLimits(
            settings.wc_page_columns,
            settings.wc_page_rows,
            settings.wc_page_cells,
            settings.wc_page_bytes,
            settings.wc_page_scan,
        ),
        new_dataset=DatasetSettings(settings.wc_default_maxversions, settings.wc_default_ttl),
        auto_create=settings.wc_auto_create,
    )


def _open_engine(settings: Settings) -> EmbeddedEngine:
    if settings.wc_engine == "memory":
        return open_memory_engine()
    sizes = RocksSettings(settings.rocksdb_block_cache_size, settings.rocksdb_write_buffer_size)
    return open_engine(Path(settings.dir), sizes, durable_commits=settings.appendfsync == "always")


def _raise_descriptor_limit(clients: int) -> None:
    """Every client and every file of RocksDB takes a descriptor; take what the system allows."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = clients + DESCRIPTORS_BESIDE_CLIENTS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
        if granted < wanted:
            log.warning("%d open files allowed, %d wanted for maxclients", granted, wanted)
