"""A connection to a running server, for the command line: commands out, replies back, in order.

`host:port`, or the path of a socket. The password comes from the environment, where other users of
the machine do not see it: COLONNADE_PASSWORD, or REDISCLI_AUTH as redis-cli has it. The options of
a command line are read elsewhere, in server.py.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import hiredis

TIMEOUT_SECONDS = 600.0
_READ_BYTES = 256 * 1024

Words = Sequence[bytes | int]

_TLS_REASONS = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for a certificate: --cert and --key",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it refused; it may ask for a certificate: --cert and --key",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not know who signed the certificate of --cert",
    "WRONG_VERSION_NUMBER": "it does not speak TLS there",
}
"""What OpenSSL calls it -> what it means to a user."""


class Refused(Exception):
    """The server cannot be reached, or answered an error."""


class Link:
    """One connection. Close it, or use it in a `with`."""

    def __init__(
        self,
        address: str,
        user: str | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> None:
        """Refused when it cannot be reached or does not let us in.

        `server_name` is whose certificate is expected with `tls`; None: the host of the address.
        """
        self._address = address
        try:
            self._socket = _connected(address, tls, server_name)
        except (OSError, ValueError) as error:
            raise Refused(f"cannot reach {address}: {_reason(error)}") from error
        self._replies = hiredis.Reader()
        self._answered = False
        try:
            self._log_in(user)
        except BaseException:
            self.close()
            raise

    def _log_in(self, user: str | None) -> None:
        password = os.environ.get("COLONNADE_PASSWORD") or os.environ.get("REDISCLI_AUTH")
        if password:
            self.call(b"AUTH", *([os.fsencode(user)] if user else []), os.fsencode(password))
        elif user:
            raise Refused(f"{user} has no password here: set COLONNADE_PASSWORD or REDISCLI_AUTH")

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
            raise Refused(f"lost the connection to {self._address}: {_reason(error)}") from error
        for reply in replies:
            for one in reply if isinstance(reply, list) else [reply]:
                if isinstance(one, hiredis.ReplyError):
                    raise Refused(str(one))
        return replies

    def _reply(self) -> Any:
        try:
            while (reply := self._replies.gets()) is False:
                received = self._socket.recv(_READ_BYTES)
                if not received:
                    raise ConnectionError("it was closed" + self._hint())
                self._replies.feed(received)
        except hiredis.ProtocolError:
            raise ConnectionError("what came is no reply" + self._hint()) from None
        self._answered = True
        return reply

    def _hint(self) -> str:
        """What may be wrong with a server that never answered."""
        unsuited = not (self._answered or isinstance(self._socket, ssl.SSLSocket))
        return " (a port for TLS needs --tls)" if unsuited else ""

    def fields(self, section: str) -> dict[str, str]:
        """A section of INFO."""
        text: bytes = self.call(b"INFO", section.encode())
        lines = [line.partition(":") for line in os.fsdecode(text).splitlines()]
        return {name: value for name, colon, value in lines if colon}

    def setting(self, name: str) -> str:
        """A directive's value; Refused if the server has no such directive."""
        reply: list[bytes] = self.call(b"CONFIG", b"GET", name.encode())
        if not reply:
            raise Refused(f"{self._address} has no setting {name}: is it a Colonnade server?")
        return os.fsdecode(reply[1])

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


def _connected(address: str, tls: ssl.SSLContext | None, server_name: str | None) -> socket.socket:
    if "/" in address:
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        opened.settimeout(TIMEOUT_SECONDS)
        opened.connect(address)
        return opened
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError("it is no HOST:PORT, and no path of a socket")
    host = host.strip("[]") or "127.0.0.1"
    opened = socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls is None:
        return opened
    try:
        return tls.wrap_socket(opened, server_hostname=server_name or host)
    except BaseException:
        opened.close()
        raise


def _reason(error: Exception) -> str:
    """In one line, with what to do about it where we know."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not accepted: {error.verify_message.rstrip('.')}"
            " (--cacert says who may have signed it, --sni whose it is)"
        )
    if isinstance(error, ssl.SSLError):
        return _TLS_REASONS.get(error.reason or "") or str(error)
    return str(error)
