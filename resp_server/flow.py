"""Whether a connection's commands are taken on: a gate that several reasons can hold shut.

While it is shut nothing more is read from the socket, so that a client that is too fast, or does
not read its replies, fills its own buffers and nobody's memory. Knows nothing of commands.
"""

from __future__ import annotations

from asyncio import Transport
from enum import Flag, auto


class Reason(Flag):
    """Why no command is taken on for now."""

    NONE = 0
    HANDLER = auto()
    """A handler waits; the next command's reply must not overtake its own."""
    TURN = auto()
    """This connection had its share of the tick."""
    REPLIES = auto()
    """The client does not read as fast as it asks."""
    STALL = auto()
    """The store cannot take more writes for the moment."""
    CLOSING = auto()
    """The connection is about to end."""


class Gate:
    """Pauses and resumes the reading of one transport."""

    __slots__ = ("_reasons", "_transport", "open")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._reasons = Reason.NONE
        self.open = True

    def hold(self, reason: Reason) -> None:
        if self.open and not self._transport.is_closing():
            self._transport.pause_reading()
        self._reasons |= reason
        self.open = False

    def release(self, reason: Reason) -> bool:
        """Take a reason away; True when that opened the gate."""
        if self.open:
            return False
        self._reasons &= ~reason
        self.open = self._reasons is Reason.NONE
        if not self.open:
            return False
        if not self._transport.is_closing():
            self._transport.resume_reading()
        return True

    def holds(self, reason: Reason) -> bool:
        return bool(self._reasons & reason)
