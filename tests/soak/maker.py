"""Makes up what a writer does, from a random number generator.

Every value names the life of the server and the number of the call it was made for, so that no two
calls write the same. Rows of a writer begin with its name; its own dataset is called by its name.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.soak.calls import (
    STAMPED,
    Call,
    CompareAndSet,
    Create,
    Delete,
    DeleteRange,
    Drop,
    Increment,
    Put,
    Store,
    Unit,
    column_of,
)

EVERYTHING, FEW = b"everything", b"few"
"""The datasets all writers share: one that keeps all cells of a column, and one that keeps 3."""
SHARED = {EVERYTHING: 0, FEW: 3}
COLUMNS = [b"", b"\0", b"\0\0", b"\xff", b"a", b"a\0b", b"\r\n", b"z" * 40]
COUNTERS = [b"count", b"count\0"]
ROW_ENDS = [b"", b"\0", b"\0\0", b"\1", b"a", b"a\0", b"ab", b"\r\n", b"\xff", b"\xff\xff"]
TIMES = 12
"""How many different timestamps are given: few, so that cells are replaced."""
BIG_CELLS = 1_500


class Maker:
    """The units of one writer. `life` is how often the server has been started."""

    def __init__(self, name: bytes, generator: random.Random, *, restless: bool = False) -> None:
        """`restless`: mostly creates and drops its own dataset."""
        self.name = name
        self.life = 0
        self._random = generator
        self._serial = 0
        kinds: dict[Callable[[Store], Call], float] = {
            self._put: 35,
            self._put_rows: 18,
            self._increment: 15,
            self._compare_and_set: 6,
            self._delete: 9,
            self._delete_rows: 2,
            self._delete_range: 4,
            self._create: 25 if restless else 1,
            self._drop: 25 if restless else 1,
            self._put_much: 0.3,
        }
        self._kinds, self._weights = list(kinds), list(kinds.values())

    def unit(self, store: Store) -> Unit:
        """The next one; `store` gives values for it to compare with."""
        if self._random.random() > 0.15:
            return Unit((self._call(store),))
        calls = tuple(self._call(store) for _ in range(self._random.randrange(1, 9)))
        return Unit(calls, is_transaction=True)

    def _call(self, store: Store) -> Call:
        (make,) = self._random.choices(self._kinds, self._weights)
        return make(store)

    # Words

    def _value(self) -> bytes:
        self._serial += 1
        filling = b"." * self._random.choice([0, 0, 0, 10, 300])
        return b"life %d, %s, %d %s" % (self.life, self.name, self._serial, filling)

    def _dataset(self) -> bytes:
        return self._random.choice([EVERYTHING, FEW, self.name])

    def _row(self) -> bytes:
        return self.name + self._random.choice(ROW_ENDS)

    def _time(self) -> int:
        return STAMPED if self._random.random() < 0.5 else self._random.randrange(TIMES)

    # Calls

    def _put(self, _store: Store) -> Call:
        row, dataset = self._row(), self._dataset()
        cells = tuple(
            (row, self._time(), self._random.choice(COLUMNS), self._value())
            for _ in range(self._random.randrange(1, 7))
        )
        expires = dataset == EVERYTHING and self._random.random() < 0.2
        return Put(dataset, cells, ("EX", 10_000_000) if expires else ())

    def _put_rows(self, _store: Store) -> Call:
        cells = tuple(
            (self._row(), self._time(), self._random.choice(COLUMNS), self._value())
            for _ in range(self._random.randrange(2, 9))
        )
        return Put(self._dataset(), cells)

    def _put_much(self, _store: Store) -> Call:
        """So much that the log is written in more than one piece."""
        row = self.name + b"big"
        value = self._value() + b"." * 300
        cells = tuple((row, 1, b"%05d" % number, value) for number in range(BIG_CELLS))
        return Put(self.name, cells)

    def _increment(self, _store: Store) -> Call:
        column = self._random.choice([*COUNTERS, *COUNTERS, COLUMNS[0]])
        amount = self._random.choice([1, 1, 7, -3, 10**6])
        return Increment(self._dataset(), self._row(), column, amount)

    def _compare_and_set(self, store: Store) -> Call:
        dataset, row, name = self._dataset(), self._row(), self._random.choice(COLUMNS)
        column = column_of(store, dataset, row, name)
        expected = column[0][1] if column else None
        return CompareAndSet(dataset, row, name, expected, self._value())

    def _delete(self, _store: Store) -> Call:
        some = tuple(self._random.sample(COLUMNS + COUNTERS, self._random.randrange(1, 5)))
        return Delete(
            self._dataset(), (self._row(),), None if self._random.random() < 0.6 else some
        )

    def _delete_rows(self, _store: Store) -> Call:
        rows = self._random.sample(ROW_ENDS, self._random.randrange(2, 5))
        return Delete(self._dataset(), tuple(self.name + end for end in rows))

    def _delete_range(self, _store: Store) -> Call:
        first, last = sorted(self._random.sample(range(TIMES), 2))
        return DeleteRange(EVERYTHING, self._row(), self._random.choice(COLUMNS), first, last)

    def _create(self, _store: Store) -> Call:
        return Create(self.name, self._random.choice([0, 0, 1, 3]))

    def _drop(self, _store: Store) -> Call:
        return Drop(self.name)
