"""How often amounts were how large: counts between fixed bounds, and their sum.

For what happens a few times a tick at most, like a commit: noting one takes a fraction of a
microsecond. Knows nothing of what is counted. The standard library only.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate


class Distribution:
    """Counts of amounts. The bounds ascend; an amount that is equal to one is within it."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def note(self, amount: float) -> None:
        self._counts[bisect_left(self._bounds, amount)] += 1
        self.sum += amount

    @property
    def total(self) -> int:
        """How many amounts there are."""
        return sum(self._counts)

    def within(self) -> list[tuple[float, int]]:
        """Each bound with the number of amounts that are not over it; infinity has them all."""
        return list(zip((*self._bounds, math.inf), accumulate(self._counts), strict=True))
