"""Answers about rows, kept until the row changes or the first cell in them expires: the twin in
Python of _row_cache.pyx.

A query is known by its number, and an answer is bytes: what they are is the caller's to know. The
rows used least lately go first. Knows nothing of how rows are read.

No answer may be stale. A write or a delete forgets the row; whatever else may change what a read of
a dataset shows gives the dataset another number, by which nothing kept before is found.

All that is kept are bytes, numbers and tuples of them, which Python's collector of cycles does not
visit: there may be hundreds of thousands, and while it visits objects nobody is served.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import count

from storage.embedded.datasets import Dataset
from storage.model import NewCell

OVERHEAD_BYTES = 450
"""What an answer takes here beside its bytes and its row's key, measured with short ones."""
LARGEST_PART = 8
"""An answer that takes more than this part of the limit is not kept."""
MOST_ANSWERS = 8
"""Of one row, to as many queries."""

Place = tuple[int, bytes]
"""A dataset's number and a row's key."""
Answer = tuple[int, int, bytes]
"""The query's number, the last ms at which it is right, and what was answered."""


class RowCache:
    """The answers of one engine, of no more than about `limit_bytes`; 0 keeps none."""

    def __init__(self, limit_bytes: int = 0) -> None:
        self._limit = limit_bytes
        self._rows: OrderedDict[Place, tuple[Answer, ...]] = OrderedDict()
        self._numbers = count(1)
        self.bytes = 0
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def limit_bytes(self) -> int:
        return self._limit

    @limit_bytes.setter
    def limit_bytes(self, limit: int) -> None:
        self._limit = limit
        self._make_room()

    def find(self, dataset: Dataset, row: bytes, query: int, now: int) -> bytes | None:
        """The answer, if it is known and still right at `now` (ms)."""
        place = (dataset.cache_number, row)
        for number, right_until, value in self._rows.get(place, ()):
            if number == query:
                if right_until < now:
                    self.forget(dataset, row)
                    break
                self.hits += 1
                self._rows.move_to_end(place)
                return value
        self.misses += 1
        return None

    def knows(self, dataset: Dataset, row: bytes, query: int, now: int) -> bool:
        """Whether find() would find something. It does not count."""
        answers = self._rows.get((dataset.cache_number, row), ())
        return any(number == query and right_until >= now for number, right_until, _ in answers)

    def find_first(
        self, dataset: Dataset, rows: Iterable[bytes], query: int, now: int, most_bytes: int
    ) -> list[bytes]:
        """The answers about rows, up to the first that is not known, and to about `most_bytes`."""
        found: list[bytes] = []
        misses = self.misses
        for row in rows:
            value = self.find(dataset, row, query, now)
            if value is None:
                break
            found.append(value)
            most_bytes -= len(value)
            if most_bytes < 0:
                break
        self.misses = misses  # it was not asked for in particular, and will be
        return found

    def keep(
        self, dataset: Dataset, row: bytes, query: int, value: bytes, right_until: int
    ) -> None:
        """Up to this millisecond, or until the row changes. What is too large is not kept."""
        if len(value) * LARGEST_PART > self._limit:
            return
        if not dataset.cache_number:
            dataset.cache_number = next(self._numbers)
        place = (dataset.cache_number, row)
        answers = self._rows.get(place, ())
        if any(number == query for number, _, _ in answers):
            return  # whoever finds it out of date forgets the row
        self._rows.pop(place, None)
        if len(answers) == MOST_ANSWERS:
            self.bytes -= _size(row, answers)
            answers = ()
        answer = (query, right_until, value)
        self._rows[place] = (*answers, answer)
        self.bytes += _size(row, (answer,))
        if self.bytes > self._limit:
            self._make_room()

    def forget(self, dataset: Dataset, row: bytes) -> None:
        """The row changes."""
        answers = self._rows.pop((dataset.cache_number, row), None)
        if answers is not None:
            self.bytes -= _size(row, answers)

    def forget_cells(self, dataset: Dataset, cells: Iterable[NewCell]) -> None:
        """The rows of these cells change."""
        for row, _, _, _ in cells:
            self.forget(dataset, row)

    def forget_dataset(self, dataset: Dataset) -> None:
        """What reads of it show may change. What was kept is in the way of nobody, and ages."""
        dataset.cache_number = 0

    def clear(self) -> None:
        self._rows.clear()
        self.bytes = 0

    def _make_room(self) -> None:
        while self.bytes > self._limit:
            (_, row), answers = self._rows.popitem(last=False)
            self.bytes -= _size(row, answers)


def _size(row: bytes, answers: tuple[Answer, ...]) -> int:
    return sum([OVERHEAD_BYTES + len(row) + len(value) for _, _, value in answers])
