"""tcp-keepalive: the system asks a silent client whether it is still there.

A machine that vanished says nothing any more: without this its connections would stay for ever.
TCP_NODELAY needs nothing here: uvloop and asyncio set it on every TCP connection.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Protocol

PROBES = 3
"""Unanswered ones after which the client is given up: after twice the interval, about."""


class HasOptions(Protocol):
    """A socket, or what a transport shows of one."""

    def setsockopt(self, level: int, option: int, value: int, /) -> Any: ...


def keep_alive_options(interval_seconds: int) -> list[tuple[int, int, int]]:
    """Level, option and value of each option to set, with Redis's numbers; none for 0.

    The first question after so many seconds of silence, the next ones a third of that apart.
    """
    if not interval_seconds:
        return []
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    apart = max(1, interval_seconds // 3)
    for name, value in (
        ("TCP_KEEPIDLE", interval_seconds),
        ("TCP_KEEPINTVL", apart),
        ("TCP_KEEPCNT", PROBES),
    ):
        if hasattr(socket, name):  # where there is none, the system's own time is taken
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


def keep_alive(connection: HasOptions, interval_seconds: int) -> None:
    """Set them on a TCP connection. What the system does not take, like a time too long for it,
    stays as the system has it."""
    for level, option, value in keep_alive_options(interval_seconds):
        with contextlib.suppress(OSError):
            connection.setsockopt(level, option, value)
