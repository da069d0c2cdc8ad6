"""A door is one socket that listens, and what happens to those who come to it.

Through a plain door one is a client at once. Through an encrypted one, only when the handshake is
done: until then they are few at a time and have little time, and their failures are nobody's news.
Knows a factory of protocols, not what a connection does, and not which doors there should be.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from resp_server.tls import ServerContext, accepted

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10.0
MOST_HANDSHAKES = 256
"""At a door. When more come, the oldest is given up: an honest one is over in moments."""
GOODBYE_SECONDS = 10.0
"""How long a TLS connection that is closed may take to read its last replies and to agree."""
ACCEPT_AGAIN_SECONDS = 1.0

ProtocolFactory = Callable[[], asyncio.Protocol]


class Door(Protocol):
    async def ready(self) -> None:
        """Once it takes clients; until then they wait, and are not refused."""
        ...

    def close(self) -> None:
        """Take nobody any more. Those who are in stay; those in a handshake are sent away."""
        ...


class PlainDoor:
    """Addresses without TLS, and unix sockets."""

    def __init__(
        self, listening: socket.socket, backlog: int, protocol_factory: ProtocolFactory
    ) -> None:
        """`listening` listens already: its clients wait until the loop gets to them."""
        self._listening = listening
        self._server: asyncio.Server | None = None
        self._opening = asyncio.get_running_loop().create_task(
            self._open(backlog, protocol_factory)
        )

    async def _open(self, backlog: int, protocol_factory: ProtocolFactory) -> None:
        loop = asyncio.get_running_loop()
        by_file = isinstance(self._listening.getsockname(), str)
        create = loop.create_unix_server if by_file else loop.create_server
        self._server = await create(protocol_factory, sock=self._listening, backlog=backlog)

    async def ready(self) -> None:
        await self._opening

    def close(self) -> None:
        self._opening.cancel()
        if self._server is None:
            self._listening.close()
        else:
            self._server.close()


class TlsDoor:
    """Addresses with TLS. Connections are accepted here, so that handshakes can be counted."""

    def __init__(
        self,
        listening: socket.socket,
        context: ServerContext,
        protocol_factory: ProtocolFactory,
    ) -> None:
        self.context = context
        """What the next handshakes use; it may be exchanged at any time."""
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._protocol_factory = protocol_factory
        self._handshakes: dict[asyncio.Task[None], None] = {}
        """In the order they began."""
        listening.setblocking(False)
        self._accepting = self._loop.create_task(self._accept_all())

    async def ready(self) -> None:
        pass

    def close(self) -> None:
        self._accepting.cancel()
        self._listening.close()
        for handshake in self._handshakes:
            handshake.cancel()

    async def _accept_all(self) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._listening)
            except ConnectionError:  # it left before it was taken
                continue
            except OSError as error:  # no descriptors left, as a rule
                log.warning("a TLS connection could not be accepted: %s", error.strerror)
                await asyncio.sleep(ACCEPT_AGAIN_SECONDS)
                continue
            if len(self._handshakes) >= MOST_HANDSHAKES:
                next(iter(self._handshakes)).cancel()
            handshake = self._loop.create_task(self._shake_hands(connection))
            self._handshakes[handshake] = None
            handshake.add_done_callback(self._handshakes.pop)

    async def _shake_hands(self, connection: socket.socket) -> None:
        accepted.set(connection)
        try:
            await self._loop.connect_accepted_socket(
                self._protocol_factory,
                connection,
                ssl=self.context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=GOODBYE_SECONDS,
            )
        except OSError as error:  # all that TLS and the network raise
            log.debug("a connection did not become a TLS client: %s", error)


class SocketFile:
    """The file of a unix socket: what it replaces, whom it lets in, and taking it away again."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._identity: tuple[int, int] | None = None

    def bind(self, unbound: socket.socket, permissions: int) -> None:
        """0 leaves the permissions to the system. OSError if it cannot be.

        Nobody can connect before it listens, so nobody gets in before the permissions are set.
        """
        if self._path.is_socket():  # of a server that was killed; other files are not ours to take
            self._path.unlink()
        unbound.bind(str(self._path))
        self._identity = self._identity_now()
        if permissions:
            self._path.chmod(permissions)

    def remove(self) -> None:
        """Unless another server has put its own in the place."""
        with contextlib.suppress(OSError):
            if self._identity == self._identity_now():
                self._path.unlink()

    def _identity_now(self) -> tuple[int, int]:
        status = self._path.stat()
        return status.st_dev, status.st_ino
