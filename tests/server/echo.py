"""Listeners in the test's own process, with a protocol behind them that says what it is told.

For tests of what happens at the doors: no server, no commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, cast

import uvloop

from resp_server.listening import Listeners
from resp_server.settings import Settings
from tests.harness import eventually, free_port

PATIENCE_SECONDS = 15.0


class Echo(asyncio.Protocol):
    """One connection of the server's side."""

    def __init__(self, connected: list[Echo]) -> None:
        self._connected = connected

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._connected.append(self)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self._connected.remove(self)


class Doors:
    """Open listeners, and who came in."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.connected: list[Echo] = []
        self.complaints: list[dict[str, Any]] = []
        """What the loop was told of errors that nobody handles."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, complaint: self.complaints.append(complaint))
        self.listeners = Listeners(settings, lambda: Echo(self.connected))

    def change(self, **values: object) -> None:
        """As CONFIG SET does, but that the values stay changed when it is refused."""
        for attribute, value in values.items():
            setattr(self.settings, attribute, value)
        self.listeners.changed(frozenset(name.replace("_", "-") for name in values))

    async def until_empty(self) -> None:
        await eventually(lambda: not self.connected)


@contextlib.asynccontextmanager
async def opened(**directives: Any) -> AsyncIterator[Doors]:
    """Doors of these directives; on a port of their own if none is given."""
    directives.setdefault("port", free_port())
    doors = Doors(Settings(**directives))
    doors.listeners.open()
    try:
        yield doors
    finally:
        doors.listeners.close()
        for echo in list(doors.connected):
            echo.transport.abort()
        await doors.until_empty()
        await asyncio.sleep(0)
        assert doors.complaints == []


@contextlib.asynccontextmanager
async def connected(
    host: str, port: int, context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def answers(host: str, port: int, context: ssl.SSLContext | None = None) -> bool:
    """Whether one can come in there and is understood; False where nobody listens."""
    try:
        async with connected(host, port, context) as (reader, writer):
            return await says(reader, writer)
    except OSError:
        return False


async def says(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether the other side is there and echoes."""
    writer.write(b"hello")
    return await reader.readexactly(5) == b"hello"


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run an asynchronous test to its end, on the server's own kind of loop."""

    async def in_time() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await test()

    uvloop.run(in_time())
