"""A family as it will be once operations that are still in the group are committed.

An overlay lies over a family and takes the operations one by one, in their order; reads go through
both. It is kept up, not built anew: an operation costs a few searches among the overlay's own keys,
a read one there beside its search in the family below. A range of keys that was deleted is passed
by one seek. Knows nothing of rows, of transactions or of who reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.embedded.ordered import Family, FamilyStatistics, Kind, Scan
from storage.embedded.sorted_keys import SortedKeys


class HiddenRanges:
    """Ranges of keys, joined where they overlap or touch."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts = SortedKeys()
        self._ends: dict[bytes, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self._ends)

    def add(self, start: bytes, end: bytes) -> None:
        """Hide [start, end), which is not empty."""
        before = self._starts.last_up_to(start)
        if before is not None and self._ends[before] >= start:
            start = before
        for joined in self._starts.remove_between(start, end + b"\x00"):
            end = max(end, self._ends.pop(joined))
        self._starts.add(start)
        self._ends[start] = end

    def end_at(self, key: bytes) -> bytes | None:
        """Where the range that holds this key ends; None when none does."""
        start = self._starts.last_up_to(key)
        if start is None:
            return None
        end = self._ends[start]
        return end if key < end else None

    def first_from(self, key: bytes) -> bytes | None:
        """Where the first range begins that begins at this key or later."""
        return next(self._starts.walk(key), None)


class Overlay:
    """A Family: the operations applied so far on top of another one."""

    __slots__ = ("_below", "_hidden", "_keys", "_values", "name")

    def __init__(self, below: Family) -> None:
        self.name = below.name
        self._below = below
        self._keys = SortedKeys()
        self._values: dict[bytes, bytes] = {}
        """What was put and not deleted since: it counts before what lies below."""
        self._hidden = HiddenRanges()
        """What was deleted: nothing of the family below is seen there."""

    def apply(self, kind: Kind, first: bytes, second: bytes) -> None:
        """One operation, as in storage.embedded.ordered.Operation."""
        if kind is Kind.PUT:
            if first not in self._values:
                self._keys.add(first)
            self._values[first] = second
        elif kind is Kind.DELETE:
            self._hide(first, first + b"\x00")
        elif first < second:
            self._hide(first, second)

    def _hide(self, start: bytes, end: bytes) -> None:
        for key in self._keys.remove_between(start, end):
            del self._values[key]
        self._hidden.add(start, end)

    def get(self, key: bytes) -> bytes | None:
        put = self._values.get(key)
        if put is not None or self._hidden.end_at(key) is not None:
            return put
        return self._below.get(key)

    def scan(self, end: bytes | None) -> OverlayScan:
        return OverlayScan(self._below.scan(end), end, self._keys, self._values, self._hidden)

    def glance(self) -> OverlayScan:
        return self.scan(None)

    def wear(self) -> tuple[int, int]:
        return self._below.wear()

    def statistics(self) -> FamilyStatistics:
        """Those of the family below: they are estimates anyway."""
        return self._below.statistics()

    def compact(self) -> None:
        self._below.compact()


class OverlayScan:
    """A Scan over both. No operation may be applied while it is in use."""

    __slots__ = ("_below", "_end", "_hidden", "_keys", "_values")

    def __init__(
        self,
        below: Scan,
        end: bytes | None,
        keys: SortedKeys,
        values: dict[bytes, bytes],
        hidden: HiddenRanges,
    ) -> None:
        self._below = below
        self._end = end
        self._keys = keys
        self._values = values
        self._hidden = hidden

    def walk(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        own, values = self._own_keys(start), self._values
        put = next(own, None)
        for key, value in self._seen_below(start):
            while put is not None and put < key:
                yield put, values[put]
                put = next(own, None)
            if key != put:
                yield key, value
        while put is not None:
            yield put, values[put]
            put = next(own, None)

    def _own_keys(self, start: bytes) -> Iterator[bytes]:
        for key in self._keys.walk(start):
            if self._end is not None and key >= self._end:
                return
            yield key

    def _seen_below(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """What the family below holds outside of the hidden ranges."""
        hidden = self._hidden
        if not hidden:
            yield from self._below.walk(start)
            return
        end = hidden.end_at(start)
        bound = start if end is None else end
        while True:
            next_hidden = hidden.first_from(bound)
            for cell in self._below.walk(bound):
                key = cell[0]
                if next_hidden is None or key < next_hidden:
                    yield cell
                    continue
                end = hidden.end_at(key)
                if end is None:
                    yield cell
                elif end != key + b"\x00":  # one key is passed by stepping
                    bound = end
                    break
                next_hidden = hidden.first_from(key + b"\x00")
            else:
                return
