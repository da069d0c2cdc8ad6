"""A survey of a dataset: where its dead cells lie and how many there are. Changes nothing.

Dead cells are told as spans of keys, not one by one: whoever removes them has to look again anyway,
because a survey is old news. Knows an ordered store, no files and no processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from storage.embedded.ordered import Family
from storage.maintenance.judging import EXPIRED, LIVE, Judge
from storage.model import DatasetSettings

MOST_LIVE_BETWEEN = 100
"""Spans with no more live cells between them are told as one."""
CELLS_BETWEEN_PROGRESS = 100_000


class Span(NamedTuple):
    """Keys from `start` to `last`, both included; `start` may lie before the first of them.

    Under MAXVERSIONS it begins where a column does, because what is surplus depends on what lies
    above. `last` None: to the end of the dataset.
    """

    start: bytes
    last: bytes | None


WHOLE = Span(b"", None)


@dataclass(slots=True)
class Totals:
    """Cells looked at, and how many of them are dead; bytes of keys and values, uncompressed."""

    cells: int = 0
    bytes: int = 0
    expired_cells: int = 0
    expired_bytes: int = 0
    surplus_cells: int = 0
    surplus_bytes: int = 0

    def add(self, verdict: int, size: int) -> None:
        self.cells += 1
        self.bytes += size
        if verdict == EXPIRED:
            self.expired_cells += 1
            self.expired_bytes += size
        elif verdict != LIVE:
            self.surplus_cells += 1
            self.surplus_bytes += size


class Survey:
    """One walk over a dataset as it is under some settings at some moment."""

    def __init__(
        self,
        settings: DatasetSettings,
        now: int,
        tell: Callable[[Span], None] = lambda span: None,
        progress: Callable[[int], None] = lambda cells: None,
    ) -> None:
        """`tell` is given the spans in order, `progress` now and then how many cells were seen."""
        self._judge = Judge(settings)
        self._by_column = settings.max_versions > 0
        self._now = now
        self._tell = tell
        self._progress = progress
        self._start: bytes | None = None
        self._last = b""
        self._live_since = 0
        self.totals = Totals()

    def walk(self, family: Family) -> Totals:
        """Look at all there is."""
        for key, value in family.scan(None).walk(b""):
            self.look(key, value)
        return self.end()

    def look(self, key: bytes, value: bytes) -> None:
        """At the next cell."""
        verdict = self._judge.verdict(key, value, self._now)
        totals = self.totals
        totals.add(verdict, len(key) + len(value))
        if verdict == LIVE:
            self._live_since += 1
            if self._start is not None and self._live_since > MOST_LIVE_BETWEEN:
                self._end_span()
        else:
            if self._start is None:
                self._start = self._judge.column if self._by_column else key
            self._last = key
            self._live_since = 0
        if totals.cells % CELLS_BETWEEN_PROGRESS == 0:
            self._progress(totals.cells)

    def end(self) -> Totals:
        """There are no more cells."""
        self._end_span()
        return self.totals

    def _end_span(self) -> None:
        if self._start is not None:
            self._tell(Span(self._start, self._last))
            self._start = None
