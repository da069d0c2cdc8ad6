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

from resp_server.tls import ServerContext, accepted

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10.0
MOST_HANDSHAKES = 256
"""At a door. When more come, the oldest is given up: an honest one is over in moments."""
GOODBYE_SECONDS = 10.0
"""How long a TLS connection that is closed may take to read its last replies and to agree."""
ACCEPT_AGAIN_SECONDS = 1.0
ACCEPTED_A_TURN = 64

ProtocolFactory = Callable[[], asyncio.Protocol]


class Doorkeeper:
    """Accepts connections and has each taken on by `_take`, whose OSErrors are nobody's news."""

    def __init__(self, listening: socket.socket) -> None:
        """`listening` listens already: who has come waits until the loop gets to it."""
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._taking: dict[asyncio.Task[None], None] = {}
        """In the order they came."""
        self._later: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        self._loop.add_reader(listening, self._accept)

    async def _take(self, connection: socket.socket) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Take nobody any more. Those who have come stay."""
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()

    def _accept(self) -> None:
        # The loop's own servers accept one a turn, which makes newcomers wait while others work.
        for _ in range(ACCEPTED_A_TURN):
            try:
                connection, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:  # it left before it was taken
                continue
            except OSError as error:  # no descriptors left, as a rule
                log.warning("a connection could not be accepted: %s", error.strerror)
                self._loop.remove_reader(self._listening)
                self._later = self._loop.call_later(ACCEPT_AGAIN_SECONDS, self._accept_again)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._take_quietly(connection))
            self._taking[task] = None
            task.add_done_callback(lambda task: self._taking.pop(task, None))

    def _accept_again(self) -> None:
        self._later = None
        self._loop.add_reader(self._listening, self._accept)

    async def _take_quietly(self, connection: socket.socket) -> None:
        try:
            await self._take(connection)
        except OSError as error:  # all that TLS and the network raise
            log.debug("a connection did not become a client: %s", error)
            connection.close()


class PlainDoor(Doorkeeper):
    """Addresses without TLS, and unix sockets."""

    def __init__(self, listening: socket.socket, protocol_factory: ProtocolFactory) -> None:
        self._protocol_factory = protocol_factory
        super().__init__(listening)

    async def _take(self, connection: socket.socket) -> None:
        await self._loop.connect_accepted_socket(self._protocol_factory, connection)


class TlsDoor(Doorkeeper):
    """Addresses with TLS."""

    def __init__(
        self,
        listening: socket.socket,
        context: ServerContext,
        protocol_factory: ProtocolFactory,
    ) -> None:
        self.context = context
        """What the next handshakes use; it may be exchanged at any time."""
        self._protocol_factory = protocol_factory
        super().__init__(listening)

    def close(self) -> None:
        """As of any door; and those in a handshake are sent away."""
        super().close()
        for task in self._taking:
            task.cancel()

    async def _take(self, connection: socket.socket) -> None:
        if len(self._taking) > MOST_HANDSHAKES:
            oldest = next(iter(self._taking))
            del self._taking[oldest]  # now: others of this turn must find the next oldest
            oldest.cancel()
        accepted.set(connection)
        await self._loop.connect_accepted_socket(
            self._protocol_factory,
            connection,
            ssl=self.context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=GOODBYE_SECONDS,
        )


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
