"""Replies of one client on their way to the end of a tick, and which of them tell of writes.

Knows nothing of ticks or sockets.
"""

from __future__ import annotations

from resp_server.reply import encode_error
from storage.errors import StoreFailure

LARGE_BYTES = 2_048
"""Where the first reply is larger, those behind it are taken to be large, too."""


class WaitingReplies(list[bytes]):
    """Encoded replies and messages in order."""

    __slots__ = ("messages", "writes")

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []
        """Places of replies that tell of writes not in the log yet."""
        self.messages: list[int] = []
        """Those of messages that tell of such writes."""

    @property
    def has_unsettled(self) -> bool:
        return bool(self.writes or self.messages)

    def settle(self, failure: StoreFailure | None) -> None:
        """The writes so far are in the log, or failed: then replies say so, and nobody hears."""
        if failure is not None:
            for place in self.writes:
                self[place] = encode_error(failure.code, str(failure))
            for place in self.messages:
                self[place] = b""
        self.writes.clear()
        self.messages.clear()

    def take(self) -> list[bytes]:
        """All of it, small ones put together; nothing is left."""
        as_they_are = len(self) == 1 or len(self[0]) > LARGE_BYTES  # what is large is not copied
        taken = self[:] if as_they_are else [b"".join(self)]
        self.clear()
        self.writes.clear()
        self.messages.clear()
        return taken
