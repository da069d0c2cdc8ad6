"""client-output-buffer-limit: when a client that does not read its replies is cut off.

Others never notice such a client, but what waits for it takes memory. Knows no connection: it is
told how many bytes wait and what time it is.
"""

from __future__ import annotations

from commands.client import Client
from resp_server.settings import OutputLimit, OutputLimits


def limit_of(client: Client, limits: OutputLimits) -> OutputLimit:
    """The limit of its class. Whoever is sent what it did not ask for, piece by piece, is `pubsub`:
    listeners, and other than in Redis also those who monitor; all others are `normal`."""
    is_told = client.subscriptions.count > 0 or client.monitoring
    return limits.pubsub if is_told else limits.normal


class OutputWatch:
    """One client: since when it has been over the soft limit."""

    __slots__ = ("_over_since",)

    def __init__(self) -> None:
        self._over_since: float | None = None

    def exceeded(self, limit: OutputLimit, buffered_bytes: int, now: float) -> bool:
        """Whether it is to be cut off now. `now` is of any clock that does not go back, in seconds.

        Call it whenever bytes were added, and once in a while: the time of the soft limit begins
        and ends when this is called.
        """
        if not limit.soft_bytes or buffered_bytes < limit.soft_bytes:
            self._over_since = None
        elif self._over_since is None:
            self._over_since = now
        elif now - self._over_since > limit.soft_seconds:
            return True
        return 0 < limit.hard_bytes <= buffered_bytes
