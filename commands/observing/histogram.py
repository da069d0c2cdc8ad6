"""Durations in buckets: 128 to each doubling, so that a percentile is right to a hundredth.

A bucket is the sign, the exponent and the first seven bits of the mantissa of a float of
nanoseconds: the upper half of its four bytes is all that sorting a duration in takes. From 128 ns
on these are the buckets of the HDR histograms that Redis keeps; below they are finer.
"""

from __future__ import annotations

import math
import struct
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

_CUT_BITS = 23 - 7
"""The bits of a float's mantissa that are cut off."""
_UPPER_HALF = 1 if sys.byteorder == "little" else 0
_FIRST_BOUND_NS = 1024


class Histogram:
    """Counts of durations. Zero is a duration; there is no longest one."""

    __slots__ = ("_counts", "seconds", "total")

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.total = 0
        """How many durations there are."""
        self.seconds = 0.0
        """All together; whoever adds durations adds it, as they know it already."""

    def add(self, seconds: Sequence[float]) -> None:
        """Sort many in at once: less than a tenth of a microsecond each."""
        nanoseconds = [duration * 1e9 for duration in seconds]
        halves = memoryview(struct.pack(f"{len(seconds)}f", *nanoseconds)).cast("H")
        self._counts.update(halves[_UPPER_HALF::2].tolist())
        self.total += len(seconds)

    def percentile_us(self, percent: float) -> float:
        """The duration in microseconds that so many percent do not exceed: the longest of its
        bucket, for 0 percent the shortest of the first. 0.0 when there are none."""
        if not self.total:
            return 0.0
        wanted = max(1, int(min(percent, 100.0) / 100 * self.total + 0.5))
        seen = 0
        bucket = 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen >= wanted:
                break
        return (_shortest_ns(bucket) if percent == 0 else _longest_ns(bucket)) / 1000

    def cumulative(self) -> dict[int, int]:
        """How many were not longer than a bound: whole microseconds, each bound twice the one
        before -> count. Only bounds where the count grew; the last one has them all."""
        found: dict[int, int] = {}
        seen = 0
        bound_ns = _FIRST_BOUND_NS
        for bucket in sorted(self._counts):
            if bucket > _bucket(bound_ns) and seen:
                found[_longest_ns(_bucket(bound_ns)) // 1000] = seen
            while bucket > _bucket(bound_ns):
                bound_ns *= 2
            seen += self._counts[bucket]
        if seen:
            found[_longest_ns(_bucket(bound_ns)) // 1000] = seen
        return found

    def within(self, bounds_seconds: Sequence[float]) -> list[int]:
        """How many were not longer than each of the bounds, which ascend. The bucket that a bound
        lies in counts as a whole: it is right to a hundredth of the bound."""
        buckets = [_bucket(bound * 1e9) for bound in bounds_seconds]
        counts = [0] * (len(buckets) + 1)
        for bucket, count in self._counts.items():
            counts[bisect_left(buckets, bucket)] += count
        return list(accumulate(counts[:-1]))


def _bucket(nanoseconds: float) -> int:
    (pattern,) = struct.unpack("<i", struct.pack("<f", nanoseconds))
    return int(pattern) >> _CUT_BITS


def _shortest_ns(bucket: int) -> float:
    (nanoseconds,) = struct.unpack("<f", struct.pack("<i", bucket << _CUT_BITS))
    return float(nanoseconds)


def _longest_ns(bucket: int) -> int:
    """The longest whole number of nanoseconds in the bucket."""
    return max(0, math.ceil(_shortest_ns(bucket + 1)) - 1)
