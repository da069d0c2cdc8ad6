"""Asking a running server a few things, over one blocking connection. Knows no command."""

from __future__ import annotations

import os
import socket
from typing import Any

import hiredis

PASSWORD_VARIABLE = "REDISCLI_AUTH"
TIMEOUT_SECONDS = 600.0


class ServerRefuses(Exception):
    """The server's error reply, or why it cannot be asked."""


class Connection:
    """One connection to `host:port`, or to the path of a unix socket."""

    def __init__(self, address: str, user: str | None = None) -> None:
        """ServerRefuses if nobody answers. The password is that of the variable REDISCLI_AUTH."""
        self._address = address
        try:
            self._socket = _connected(address)
        except (OSError, ValueError) as error:
            raise ServerRefuses(f"no server answers at {address}: {error}") from error
        self._reader = hiredis.Reader()
        password = os.environ.get(PASSWORD_VARIABLE)
        if password is not None:
            self.ask("AUTH", *([user] if user else []), password)

    def ask(self, *words: str) -> Any:
        """The reply; ServerRefuses with its text if it is an error."""
        try:
            # It is typed as if a command had one word.
            self._socket.sendall(hiredis.pack_command(words))  # type: ignore[arg-type]
            while (reply := self._reader.gets()) is False:
                data = self._socket.recv(65536)
                if not data:
                    raise ServerRefuses(f"the server at {self._address} has closed the connection")
                self._reader.feed(data)
        except OSError as error:
            raise ServerRefuses(f"the server at {self._address}: {error}") from error
        if isinstance(reply, hiredis.ReplyError):
            raise ServerRefuses(str(reply))
        return reply

    def fields(self, section: str) -> dict[str, str]:
        """A section of INFO."""
        text: str = self.ask("INFO", section).decode()
        lines = [line.partition(":") for line in text.splitlines()]
        return {name: value for name, colon, value in lines if colon}

    def setting(self, name: str) -> str:
        """A directive's value."""
        reply: list[bytes] = self.ask("CONFIG", "GET", name)
        return os.fsdecode(reply[1])

    def close(self) -> None:
        self._socket.close()


def _connected(address: str) -> socket.socket:
    if "/" in address:
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(TIMEOUT_SECONDS)
        connected.connect(address)
        return connected
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]") or "127.0.0.1", int(port)), TIMEOUT_SECONDS)
