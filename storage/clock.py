"""The server's clock: hybrid, in milliseconds, never going back.

It is max(wall clock, last reading), with a sequence that tells apart the cells stamped within one
millisecond. `reserved` is the moment up to which the catalog on disk vouches for it: the engine
stores a later one before the clock passes it, so that no restart ever goes back. Knows nothing of
how that is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from storage.encoding import TOP_SEQUENCE, cell_suffix

RESERVE_MS = 5_000
"""How far ahead of the clock the catalog is kept."""


NS_PER_MS = 1_000_000


def wall_clock_ms() -> int:
    return time.time_ns() // NS_PER_MS


class HybridClock:
    """Readings and stamps that never go back, from the moment `stored_ms` on."""

    __slots__ = ("_wall_ns", "last_ms", "reserved_ms", "sequence")

    def __init__(self, stored_ms: int = 0, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self._wall_ns = wall_ns
        self.last_ms = stored_ms
        # Stamps of the stored millisecond may have been given out before the restart.
        self.sequence = TOP_SEQUENCE
        self.reserved_ms = stored_ms

    def now(self) -> int:
        """The current millisecond; decides what has expired."""
        wall = self._wall_ns() // NS_PER_MS
        if wall > self.last_ms:
            self.last_ms = wall
            self.sequence = 0
        return self.last_ms

    def stamp(self) -> bytes:
        """The end of a new cell's key: its timestamp in ms and a sequence of 1..65535, encoded.

        Later than every stamp before.
        """
        wall = self._wall_ns() // NS_PER_MS
        if wall > self.last_ms:
            self.last_ms = wall
            self.sequence = 1
        elif self.sequence < TOP_SEQUENCE:
            self.sequence += 1
        else:
            self.last_ms += 1
            self.sequence = 1
        return cell_suffix(self.last_ms, self.sequence)

    @property
    def needs_reservation(self) -> bool:
        return self.last_ms >= self.reserved_ms

    def next_reservation(self) -> int:
        return self.last_ms + RESERVE_MS
