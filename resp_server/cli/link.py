"""A connection to a running server, for the command line: commands out, replies back, in order.

`host:port`, or the path of a socket. The password comes from the environment, where other users of
the machine do not see it: COLONNADE_PASSWORD, or REDISCLI_AUTH as redis-cli has it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import hiredis

DEFAULT_SERVER = "127.0.0.1:6379"
TIMEOUT_SECONDS = 600.0
_READ_BYTES = 256 * 1024

Words = Sequence[bytes | int]


class Refused(Exception):
    """The server cannot be reached, or answered an error."""


class Link:
    """One connection. Close it, or use it in a `with`."""

    def __init__(self, address: str, user: str | None = None) -> None:
        """Refused when it cannot be reached or does not let us in."""
        self._address = address
        try:
            self._socket = _connected(address)
        except (OSError, ValueError) as error:
            raise Refused(f"cannot reach {address}: {error}") from error
        self._replies = hiredis.Reader()
        try:
            self._log_in(user)
        except BaseException:
            self.close()
            raise

    def _log_in(self, user: str | None) -> None:
        password = os.environ.get("COLONNADE_PASSWORD") or os.environ.get("REDISCLI_AUTH")
        if password is not None:
            self.call(b"AUTH", *([user.encode()] if user else []), os.fsencode(password))

    def call(self, *words: bytes | int) -> Any:
        """One command's reply; Refused with the server's words if it is an error."""
        return self.pipeline([words])[0]

    def pipeline(self, commands: Sequence[Words]) -> list[Any]:
        """The replies of all; Refused if one of them, or one inside them, is an error."""
        try:
            packed = [hiredis.pack_command(tuple(words)) for words in commands]  # type: ignore[arg-type]
            self._socket.sendall(b"".join(packed))
            replies = [self._reply() for _ in commands]
        except OSError as error:
            raise Refused(f"lost the connection to {self._address}: {error}") from error
        for reply in replies:
            for one in reply if isinstance(reply, list) else [reply]:
                if isinstance(one, hiredis.ReplyError):
                    raise Refused(str(one))
        return replies

    def _reply(self) -> Any:
        while (reply := self._replies.gets()) is False:
            received = self._socket.recv(_READ_BYTES)
            if not received:
                raise ConnectionError("it was closed")
            self._replies.feed(received)
        return reply

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Link:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _connected(address: str) -> socket.socket:
    if "/" in address:
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        opened.settimeout(TIMEOUT_SECONDS)
        opened.connect(address)
        return opened
    host, _, port = address.rpartition(":")
    opened = socket.create_connection(
        (host.strip("[]") or "127.0.0.1", int(port)), timeout=TIMEOUT_SECONDS
    )
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened
