"""What the process's memory is used for: plain figures, and what follows from them.

The server reads the figures off the system and the store; INFO's memory section, MEMORY STATS and
MEMORY DOCTOR are made from them. Everything is in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """One moment's."""

    used: int
    """What the process keeps in memory of its own, without the files it maps."""
    resident: int
    """All of the process that is in memory."""
    peak: int
    """The most that `used` was seen to be."""
    startup: int
    """What `used` was when the server was ready."""
    system: int
    """The machine's memory; 0 where it does not tell."""
    clients: int
    """What waits to be read by the server or by its clients."""
    memtables: int
    """The writes that the store has not brought to its files yet."""
    cache: int
    """Blocks of the store's files that are kept in memory."""
    files: int
    """The store's files. They are not in memory."""

    @property
    def datasets(self) -> int:
        """What is kept in memory of the datasets."""
        return min(self.used, self.memtables + self.cache)

    @property
    def overhead(self) -> int:
        return self.used - self.datasets

    @property
    def datasets_percent(self) -> float:
        """Of what was taken since the start, what the datasets have."""
        return min(100.0, 100 * self.datasets / max(1, self.used - self.startup))

    @property
    def peak_percent(self) -> float:
        """Of the peak, what is used now."""
        return 100 * self.used / max(1, self.peak)

    @property
    def resident_ratio(self) -> float:
        """Resident over used: well above 1 when memory was given up that the system has not back,
        or when files are mapped."""
        return self.resident / max(1, self.used)
