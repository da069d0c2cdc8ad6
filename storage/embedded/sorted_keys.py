"""Byte strings in order, with cheap insertion: a list of short sorted lists.

One long list would move half of itself at every insertion, and a transaction may write a million
keys between as many reads. Knows nothing of what the keys mean.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

MOST_IN_BUCKET = 1_000
"""A bucket that grows beyond is split in two."""


class SortedKeys:
    """A set of byte strings that is walked in order. It must not change during a walk."""

    __slots__ = ("_buckets", "_firsts")

    def __init__(self) -> None:
        self._buckets: list[list[bytes]] = []
        self._firsts: list[bytes] = []
        """The first key of each bucket; no bucket is empty."""

    def _bucket_of(self, key: bytes) -> int:
        """The bucket where the key is or would be."""
        return max(bisect_right(self._firsts, key) - 1, 0)

    def add(self, key: bytes) -> None:
        """Put in a key that is not there yet."""
        if not self._buckets:
            self._buckets.append([key])
            self._firsts.append(key)
            return
        at = self._bucket_of(key)
        bucket = self._buckets[at]
        insort(bucket, key)
        self._firsts[at] = bucket[0]
        if len(bucket) > MOST_IN_BUCKET:
            half = len(bucket) // 2
            self._buckets.insert(at + 1, bucket[half:])
            self._firsts.insert(at + 1, bucket[half])
            del bucket[half:]

    def remove_between(self, start: bytes, end: bytes) -> list[bytes]:
        """Take out the keys of [start, end), and return them in order."""
        removed: list[bytes] = []
        at = self._bucket_of(start)
        while at < len(self._buckets) and self._firsts[at] < end:
            bucket = self._buckets[at]
            low, high = bisect_left(bucket, start), bisect_left(bucket, end)
            removed += bucket[low:high]
            del bucket[low:high]
            if bucket:
                self._firsts[at] = bucket[0]
                at += 1
            else:
                del self._buckets[at], self._firsts[at]
        return removed

    def last_up_to(self, key: bytes) -> bytes | None:
        """The greatest key that is not greater than this one."""
        at = bisect_right(self._firsts, key) - 1
        if at < 0:
            return None
        bucket = self._buckets[at]
        return bucket[bisect_right(bucket, key) - 1]

    def walk(self, start: bytes) -> Iterator[bytes]:
        """The keys in order from `start` on."""
        first = self._bucket_of(start)
        for at in range(first, len(self._buckets)):
            bucket = self._buckets[at]
            for index in range(bisect_left(bucket, start) if at == first else 0, len(bucket)):
                yield bucket[index]
