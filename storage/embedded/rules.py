"""What decides which cells are visible and where a reply ends, and what these costs are counted by.

Knows the grammar of stored values; reads nothing itself.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from storage.cursors import Position
from storage.encoding import PLAIN, TOP_TIMESTAMP, split_value
from storage.model import DatasetSettings, PageLimits

STEPS_BEFORE_SEEK = 8
"""A seek costs about as much as stepping over this many keys."""
ROW_OVERHEAD_BYTES = 64
COLUMN_OVERHEAD_BYTES = 24
CELL_OVERHEAD_BYTES = 40
"""What a row, a column and a cell add to a reply beside their name and value, at most."""
NO_LIMIT = sys.maxsize
NEVER = 2**64
"""Later than every expiry that can be stored."""


@dataclass(slots=True)  # frozen it would cost every read four times as much
class Rules:
    """What decides visibility at one moment: `now` and TTL in ms, TTL 0 never."""

    now: int
    max_versions: int
    ttl_ms: int

    @classmethod
    def of(cls, settings: DatasetSettings, now: int) -> Rules:
        return cls(now, settings.max_versions, settings.ttl_seconds * 1000)


class Budget:
    """What is left of one reply's limits. Shared by all rows of the reply."""

    __slots__ = ("bytes", "cells", "limits", "scan", "started")

    def __init__(self, limits: PageLimits) -> None:
        self.limits = limits
        self.renew()

    def renew(self) -> None:
        """All of it is left."""
        limits = self.limits
        self.cells = limits.cells
        self.bytes = limits.bytes
        self.scan = limits.scan
        self.started = False
        """Whether the reply holds a cell: the first one is given whatever its size."""

    @classmethod
    def unlimited(cls) -> Budget:
        return cls(PageLimits(cells=NO_LIMIT, bytes=NO_LIMIT, scan=NO_LIMIT))

    def spent(self) -> bool:
        return self.cells <= 0 or self.bytes <= 0 or self.scan <= 0


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a page ended before its row did. `found`: a cell to return is known to lie there."""

    position: Position
    found: bool


def expiry_of(key: bytes, value: bytes, ttl_ms: int) -> int:
    """The last millisecond at which a cell is alive, by its own expiry and the dataset's TTL."""
    expires = NEVER
    if value[:1] != PLAIN:
        own, _ = split_value(value)
        expires = NEVER if own is None else own
    if ttl_ms:
        timestamp = TOP_TIMESTAMP - int.from_bytes(key[-10:-2], "big")
        expires = min(expires, timestamp + ttl_ms)
    return expires
