"""Whether a connection's commands are taken on: a gate that several reasons can hold shut.

While it is shut hardly anything more is read from the socket, so that a client that is too fast, or
does not read its replies, fills its own buffers and nobody's memory. Knows nothing of commands.
"""

from __future__ import annotations

from asyncio import Transport
from typing import Final


class Reason:
    """Why no command is taken on for now. Plain bits: an enum's cost the hot path too much."""

    NONE: Final = 0
    HANDLER: Final = 1
    """A handler waits; the next command's reply must not overtake its own."""
    TURN: Final = 2
    """This connection had its share of the tick."""
    REPLIES: Final = 4
    """The client does not read as fast as it asks."""
    STALL: Final = 8
    """The store cannot take more writes for the moment."""
    PAUSE: Final = 16
    """CLIENT PAUSE holds its next command back."""
    CLOSING: Final = 32
    """The connection is about to end."""


BEHIND_BYTES = 64 * 1024
"""What a shut gate lets in before reading is paused: while it is read, a client's end is seen."""


class Gate:
    """Whether commands are run; pauses and resumes the reading of one transport."""

    __slots__ = ("_behind", "_paused", "_reasons", "_transport", "open")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._reasons: int = Reason.NONE
        self._paused = False
        self._behind = 0
        self.open = True

    def hold(self, reason: int) -> None:
        self._reasons |= reason
        self.open = False

    def came(self, count: int) -> None:
        """So many bytes came although the gate is shut."""
        self._behind += count
        if self._behind > BEHIND_BYTES and not self._paused and not self._transport.is_closing():
            self._transport.pause_reading()
            self._paused = True

    def release(self, reason: int) -> bool:
        """Take a reason away; True when that opened the gate."""
        if self.open:
            return False
        self._reasons &= ~reason
        self.open = self._reasons == Reason.NONE
        if not self.open:
            return False
        self._behind = 0
        if self._paused and not self._transport.is_closing():
            self._transport.resume_reading()
        self._paused = False
        return True

    def holds(self, reason: int) -> bool:
        return bool(self._reasons & reason)
