"""Where clients come in: which doors there are, as `bind`, `port`, `tls-port`, the other TLS
directives and `unixsocket` say, at the start and after CONFIG SET.

All that is configured is opened, or nothing of it. Knows a factory of protocols, not what a
connection does; what happens at a door is in doors.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from resp_server.doors import Doorkeeper, PlainDoor, SocketFile, TlsDoor
from resp_server.settings import BadSetting, Settings
from resp_server.tls import BadTls, ServerContext, server_context

log = logging.getLogger(__name__)

_FAMILY_MISSING = frozenset(
    (errno.EAFNOSUPPORT, errno.EPFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT)
)
"""The system has no such addresses at all, like IPv6; they are passed over, as in Redis."""

_MOVES = {
    "bind": "Failed to bind to specified addresses.",
    "port": "Unable to listen on this port. Check server logs.",
    "tls-port": "Unable to listen on this port. Check server logs.",
}
"""Directives that open and close doors, and Redis's words when that cannot be."""
_TLS_REFUSED = "Unable to update TLS configuration. Check server logs."


class CannotListen(Exception):
    """An address that cannot be listened on; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Place:
    """One address as the configuration has it, "-" in front if it may be missing."""

    address: str
    port: int
    encrypted: bool

    def __str__(self) -> str:
        host = self.address.removeprefix("-")
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class Listeners:
    """All doors of the server."""

    def __init__(
        self, settings: Settings, protocol_factory: Callable[[], asyncio.Protocol]
    ) -> None:
        """`settings` are looked at in open() and changed()."""
        self._settings = settings
        self._protocol_factory = protocol_factory
        self._context: ServerContext | None = None
        self._doors: dict[Place, Doorkeeper] = {}
        self._file_door: Doorkeeper | None = None
        self._socket_file: SocketFile | None = None
        self._opened = False

    def open(self) -> None:
        """Begin to take clients. CannotListen, with nothing left open, if any place cannot be."""
        try:
            self._open_all()
        except BadTls as error:
            raise CannotListen(f"cannot offer TLS: {error}") from error
        except BaseException:
            self.close()
            raise

    def _open_all(self) -> None:
        self._context = _tls_context(self._settings)
        self._switch_to(self._wanted())
        self._open_socket_file()
        if not self._all_doors():
            raise CannotListen(
                "nothing to listen on: no address with a port or tls-port, and no unixsocket"
            )
        self._opened = True

    def close(self) -> None:
        """Take nobody any more. Those who are in stay."""
        for door in self._all_doors():
            door.close()
        self._doors.clear()
        if self._socket_file is not None:
            self._socket_file.remove()
        self._file_door = self._socket_file = None
        self._opened = False

    def changed(self, names: frozenset[str]) -> None:
        """Follow a change of these directives; setting a TLS file again reads it again.

        BadSetting with Redis's words when that cannot be; then the log says why, and all is as it
        was. Does nothing while not open.
        """
        if not self._opened:
            return
        context, places = self._context, list(self._doors)
        try:
            if any(name.startswith("tls-") for name in names):
                self.reload_tls()
            if not names.isdisjoint(_MOVES):
                wanted = self._wanted()
                self._switch_to(wanted)
                if wanted and not self._doors:
                    raise CannotListen(
                        "cannot listen on any of these addresses: this machine has none of them"
                    )
        except (BadTls, CannotListen) as error:
            log.warning("%s", error)
            self._go_back(context, places)
            raise _refusal(error, names) from None

    def reload_tls(self) -> None:
        """Read the TLS directives and their files anew, for the handshakes that begin from now on.

        BadTls if they cannot be used; then all is as it was. Does nothing while not open.
        """
        if self._opened:
            self._use(_tls_context(self._settings))

    def _go_back(self, context: ServerContext | None, places: list[Place]) -> None:
        self._use(context)
        try:
            self._switch_to(places)
        except CannotListen as error:
            log.error("%s, as before", error)

    def _use(self, context: ServerContext | None) -> None:
        self._context = context
        for door in self._doors.values():
            if isinstance(door, TlsDoor) and context is not None:
                door.context = context

    # Doors

    def _all_doors(self) -> list[Doorkeeper]:
        by_file = [] if self._file_door is None else [self._file_door]
        return [*self._doors.values(), *by_file]

    def _wanted(self) -> list[Place]:
        settings = self._settings
        ports = ((settings.port, False), (settings.tls_port, True))
        return [
            Place(address, port, encrypted)
            for port, encrypted in ports
            for address in filter(None, settings.bind if port else ())
        ]

    def _switch_to(self, places: list[Place]) -> None:
        """Close all other doors and open those that are not open yet. CannotListen at the first
        that cannot be.

        In that order: `*` cannot be had beside 127.0.0.1 with the same port.
        """
        for place in [place for place in self._doors if place not in places]:
            self._doors.pop(place).close()
        for place in places:
            listening = None if place in self._doors else bind_place(place)
            if listening is not None:
                self._doors[place] = self._door(place, listening)

    def _door(self, place: Place, listening: socket.socket) -> Doorkeeper:
        with _named(str(place), listening):
            listening.listen(self._settings.tcp_backlog)
        log.info("listening on %s%s", place, " with TLS" if place.encrypted else "")
        if place.encrypted:
            assert self._context is not None
            return TlsDoor(listening, self._context, self._protocol_factory)
        return PlainDoor(listening, self._protocol_factory)

    def _open_socket_file(self) -> None:
        path = self._settings.unixsocket
        if not path:
            return
        listening = socket.socket(socket.AF_UNIX)
        with _named(path, listening):
            self._socket_file = SocketFile(path)
            self._socket_file.bind(listening, self._settings.unixsocketperm)
            listening.listen(self._settings.tcp_backlog)
        log.info("listening on %s", path)
        self._file_door = PlainDoor(listening, self._protocol_factory)


def _tls_context(settings: Settings) -> ServerContext | None:
    """None without a tls-port: then the files need not be there. BadTls if they are no good."""
    return server_context(settings) if settings.tls_port else None


def _refusal(error: BadTls | CannotListen, names: frozenset[str]) -> BadSetting:
    """What CONFIG SET is told of it."""
    if isinstance(error, CannotListen):
        name = next(name for name in _MOVES if name in names)
        return BadSetting(_MOVES[name], name)
    return BadSetting(_TLS_REFUSED, min(name for name in names if name.startswith("tls-")))


def bind_place(place: Place) -> socket.socket | None:
    """A socket that does not listen yet; None for an address that is missing and may be.

    CannotListen if the system does not let it be had.
    """
    optional = place.address.startswith("-")
    try:
        return _bound(place.address.removeprefix("-"), place.port)
    except socket.gaierror as error:
        may_be, reason = optional, error.strerror
    except OSError as error:
        is_missing = optional and error.errno == errno.EADDRNOTAVAIL
        may_be = is_missing or error.errno in _FAMILY_MISSING
        reason = error.strerror
    except ValueError as error:  # it cannot even be asked for
        may_be, reason = False, str(error)
    if not may_be:
        raise CannotListen(f"cannot listen on {place}: {reason}")
    log.warning("not listening on %s: %s", place, reason)
    return None


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    name = None if host in ("*", "::*") else host
    found = socket.getaddrinfo(name, port, family, socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    unbound = socket.socket(family, socket.SOCK_STREAM)
    try:
        unbound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # or `*` and `::*` could not be had together
            unbound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        unbound.bind(found[0][4])
    except BaseException:
        unbound.close()
        raise
    return unbound


@contextlib.contextmanager
def _named(name: str, listening: socket.socket) -> Iterator[None]:
    """If the system refuses something in here, it is CannotListen with this name."""
    try:
        yield
    except OSError as error:
        listening.close()
        raise CannotListen(f"cannot listen on {name}: {error.strerror or error}") from error
