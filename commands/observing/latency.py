"""The latency monitor: spikes of named events, like "command", over a threshold.

An event's history holds the worst spike of each second in which there was one. Whoever times
something compares with `limit_seconds` and calls add() for what took that long.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

COMMAND = "command"
FAST_COMMAND = "fast-command"
"""A spike of a command that is declared fast."""
COMMIT = "commit"
"""Writes went into the store's log."""
SYNC = "fsync"
"""The log went to the disk."""
HISTORY_SECONDS = 160
"""How many seconds with spikes an event remembers."""

Sample = tuple[int, int]
"""(Unix seconds, the worst spike of that second in milliseconds)"""


@dataclass(slots=True)
class Event:
    """One event's spikes; there is at least one."""

    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=HISTORY_SECONDS))
    """The oldest first."""
    worst_ms: int = 0
    """Of all, also of those that are not remembered any more."""

    def add(self, milliseconds: int, unix_seconds: int) -> None:
        self.worst_ms = max(self.worst_ms, milliseconds)
        if self.samples and self.samples[-1][0] == unix_seconds:
            _, before = self.samples.pop()
            milliseconds = max(before, milliseconds)
        self.samples.append((unix_seconds, milliseconds))


class LatencyMonitor:
    """A short history of each event."""

    def __init__(self, threshold_ms: int = 0) -> None:
        self.events: dict[str, Event] = {}
        self.limit_seconds = math.inf
        """What took this long or longer is to be added; the hot path compares with it."""
        self.threshold_ms = threshold_ms

    @property
    def threshold_ms(self) -> int:
        """0: nothing is remembered."""
        return self._threshold_ms

    @threshold_ms.setter
    def threshold_ms(self, milliseconds: int) -> None:
        self._threshold_ms = milliseconds
        self.limit_seconds = milliseconds / 1e3 if milliseconds > 0 else math.inf

    def add(self, event: str, milliseconds: int, unix_seconds: int) -> None:
        """Remember an event that took at least the threshold."""
        if self._threshold_ms <= 0 or milliseconds < self._threshold_ms:
            return
        self.events.setdefault(event, Event()).add(milliseconds, unix_seconds)

    def reset(self, names: Iterable[str] | None = None) -> int:
        """Forget these events, or all; the number of those there were."""
        wanted = list(self.events if names is None else names)
        return sum([self.events.pop(name, None) is not None for name in wanted])
