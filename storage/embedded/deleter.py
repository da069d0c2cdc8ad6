"""Which keys a delete takes away, so that no answer depends on whether compaction came first.

Compaction may have dropped a cell that is hidden under MAXVERSIONS newer ones, unless it could
become visible again by their expiry alone. So where a delete (or a rewriting with an earlier
expiry) takes out a cell that compaction would have kept, what lies below it in its column and is
not visible at that moment has to go too: otherwise it would come back on a store that was not
compacted, and stay away on one that was. Knows the key grammar; writes nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace

from storage.embedded.ordered import Family, Kind, Operation, Scan
from storage.embedded.reader import holds_visible
from storage.embedded.rules import NEVER, Rules, expiry_of
from storage.encoding import (
    SUFFIX_BYTES,
    after,
    cell_suffix,
    column_prefix,
    end_of,
    first_at,
    row_prefix,
    timestamp_of,
    unescape,
)
from storage.model import Deletion, NewCell, Selection, TimeRange

SMALL_SPAN = 32
"""Up to so many keys are deleted one by one: range deletes are dear to later reads."""

Chosen = Callable[[bytes, int], bool]
"""Whether a cell, by its key and its expiry in ms, is among those that go (or expire earlier)."""


class KeptExpiries:
    """The rule of what compaction keeps, fed with a column's unexpired cells, newest first.

    A cell is kept when fewer than MAXVERSIONS newer unexpired cells live at least as long as it.
    """

    __slots__ = ("_latest", "_max_versions")

    def __init__(self, max_versions: int) -> None:
        self._max_versions = max_versions
        self._latest: list[int] = []
        """A heap of the MAXVERSIONS latest expiries of the cells above."""

    def keeps(self, expires: int) -> bool:
        latest = self._latest
        return len(latest) < self._max_versions or latest[0] < expires

    def add(self, expires: int) -> None:
        latest = self._latest
        if len(latest) < self._max_versions:
            heappush(latest, expires)
        elif expires > latest[0]:
            heapreplace(latest, expires)


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """What a choice of cells means for a column under MAXVERSIONS.

    `hit`: a visible cell is among the chosen. `drop_from`: from this key to the end of the column
    everything goes besides them, or None.
    """

    hit: bool
    drop_from: bytes | None


def plan_column(
    scan: Scan, prefix: bytes, rules: Rules, chosen: Chosen, last_chosen: bytes
) -> ColumnPlan:
    """Walk a column once. `last_chosen` is a key after which no cell is chosen."""
    kept = KeptExpiries(rules.max_versions)
    live, hit, above = 0, False, False
    for key, value in scan.walk(prefix):
        if not key.startswith(prefix):
            break
        expires = expiry_of(key, value, rules.ttl_ms)
        if expires < rules.now:
            continue
        live += 1
        visible = live <= rules.max_versions
        if above and not visible:
            return ColumnPlan(hit, key)
        if not above:
            if key > last_chosen or (not visible and not kept.keeps(_latest_below(key, rules))):
                break
            if chosen(key, expires):
                hit |= visible
                above = kept.keeps(expires)
            kept.add(expires)
        elif visible and chosen(key, expires):
            hit = True
    return ColumnPlan(hit, None)


def _latest_below(key: bytes, rules: Rules) -> int:
    """The latest expiry that this cell or an older one of its column can have."""
    return timestamp_of(key) + rules.ttl_ms if rules.ttl_ms else NEVER


class RowDeleter:
    """Collects the operations of one delete in one row, and whether it met visible cells."""

    def __init__(
        self, family: Family, view: Family, prefix: bytes, rules: Rules, deletion: Deletion
    ) -> None:
        """`view` is what the family holds, with writes that are on their way to it."""
        self._family = family
        self._view = view
        self._prefix = prefix
        self._rules = rules
        self._deletion = deletion
        self._scan = view.scan(end_of(prefix))
        self.operations: list[Operation] = []

    def delete(self) -> int:
        """Plan it; the reply of WCDEL: 1 or 0 for the row, or how many named columns had a cell."""
        deletion = self._deletion
        if deletion.columns is not None:
            names = sorted(set(deletion.columns))
            prefixes = [column_prefix(self._prefix, name) for name in names]
            return sum([self._delete_column(prefix) for prefix in prefixes])
        if deletion.times is None and deletion.timestamps is None:
            return int(self._delete_whole(self._prefix, Selection(versions=None)))
        return int(any([self._delete_column(prefix) for prefix in self._columns()]))

    def _columns(self) -> Iterator[bytes]:
        """The prefixes of the row's columns, one seek each."""
        scan = self._view.scan(end_of(self._prefix))
        bound = self._prefix
        while found := next(scan.walk(bound), None):
            prefix = found[0][:-SUFFIX_BYTES]
            yield prefix
            bound = end_of(prefix)

    def _delete_column(self, prefix: bytes) -> bool:
        deletion = self._deletion
        if deletion.times is not None:
            return self._delete_times(prefix, [deletion.times])
        if deletion.timestamps is not None:
            moments = sorted(set(deletion.timestamps), reverse=True)
            return self._delete_times(prefix, [TimeRange(moment, moment) for moment in moments])
        return self._delete_whole(prefix, self._selection_of(prefix))

    def _selection_of(self, prefix: bytes, times: TimeRange | None = None) -> Selection:
        name = unescape(prefix[len(self._prefix) : -2])
        if times is None:
            return Selection(columns=(name,), versions=None)
        return Selection(columns=(name,), versions=None, times=times)

    def _delete_whole(self, prefix: bytes, selection: Selection) -> bool:
        """A row's or a column's every cell."""
        hit = holds_visible(self._scan, self._rules, self._prefix, selection)
        self._drop(prefix, end_of(prefix))
        return hit

    def _delete_times(self, prefix: bytes, ranges: list[TimeRange]) -> bool:
        """The cells of a column in any of the ranges, which are in order, newest first."""
        ranges = [times for times in ranges if times.oldest <= times.newest]
        if not ranges:
            return False
        hit = self._plan(prefix, ranges) if self._rules.max_versions else self._any(prefix, ranges)
        for times in ranges:
            self._drop(first_at(prefix, times.newest), after(prefix, times.oldest))
        return hit

    def _any(self, prefix: bytes, ranges: list[TimeRange]) -> bool:
        return any(
            holds_visible(self._scan, self._rules, self._prefix, self._selection_of(prefix, times))
            for times in ranges
        )

    def _plan(self, prefix: bytes, ranges: list[TimeRange]) -> bool:
        def chosen(key: bytes, _expires: int) -> bool:
            timestamp = timestamp_of(key)
            return any(times.oldest <= timestamp <= times.newest for times in ranges)

        last = after(prefix, ranges[-1].oldest)
        plan = plan_column(self._scan, prefix, self._rules, chosen, last)
        if plan.drop_from is not None:
            self._drop(plan.drop_from, end_of(prefix))
        return plan.hit

    def _drop(self, start: bytes, end: bytes) -> None:
        self.operations += drop_span(self._family, self._scan, start, end)


def drop_span(family: Family, scan: Scan, start: bytes, end: bytes) -> list[Operation]:
    """The operations that delete every key of [start, end): by key when they are few."""
    keys: list[bytes] = []
    for key, _ in scan.walk(start):
        if key >= end:
            break
        if len(keys) == SMALL_SPAN:
            return [(Kind.DELETE_RANGE, family, start, end)]
        keys.append(key)
    return [(Kind.DELETE, family, key, b"") for key in keys]


def drop_below_rewritten(
    family: Family, view: Family, rules: Rules, cells: Sequence[NewCell], expires_at: int
) -> list[Operation]:
    """What goes because a put of these cells gives existing ones an earlier expiry."""
    if not rules.max_versions:
        return []
    columns: dict[bytes, dict[bytes, int]] = {}
    for row, timestamp, column, _ in cells:
        place = column_prefix(row_prefix(row), column)
        if timestamp is not None:
            expires = min(expires_at, timestamp + rules.ttl_ms if rules.ttl_ms else NEVER)
            columns.setdefault(place, {})[place + cell_suffix(timestamp, 0)] = expires
    dropped: list[Operation] = []
    for place, rewritten in columns.items():
        if any(view.get(key) is not None for key in rewritten):
            dropped += _drop_below_in_column(family, view, place, rules, rewritten)
    return dropped


def _drop_below_in_column(
    family: Family, view: Family, prefix: bytes, rules: Rules, rewritten: dict[bytes, int]
) -> list[Operation]:
    """What goes when a column's cells, by key, are rewritten to expire at the given moments."""
    scan = view.scan(end_of(prefix))

    def chosen(key: bytes, expires: int) -> bool:
        return rewritten.get(key, NEVER) < expires

    plan = plan_column(scan, prefix, rules, chosen, max(rewritten))
    if plan.drop_from is None:
        return []
    return drop_span(family, scan, plan.drop_from, end_of(prefix))
