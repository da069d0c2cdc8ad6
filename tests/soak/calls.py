"""The calls a writer makes, and what each does to a store kept in plain Python.

A call knows its words and how it changes a `Store`, whose `apply` returns the reply it must get.
The store is what the server must show, in the shape a reader of it gets: a column is its visible
cells, newest first. Timestamps that the server makes are STAMPED here, since nobody knows them
beforehand; they are later than all others. Nothing expires while a test runs. Knows no sockets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tests.wire import Word, encode

STAMPED = 10**13
"""Stands for every timestamp that the server makes; given ones are below FIRST_STAMP."""
FIRST_STAMP = 10**12
LARGEST_INTEGER = 2**63 - 1

Cell = tuple[int, bytes]
Column = list[Cell]
Row = dict[bytes, Column]
Reply = int | bytes | list["Reply"]
REFUSED = b"refused"
"""Stands for an error: which one, the tests of the commands say."""


@dataclass(slots=True)
class Dataset:
    max_versions: int = 0
    rows: dict[bytes, Row] = field(default_factory=dict)


Store = dict[bytes, Dataset]


class Call(Protocol):
    """One call; inside a transaction or by itself."""

    def words(self) -> tuple[Word, ...]: ...

    def apply(self, store: Store) -> Reply:
        """Change the store as the server does; the reply of the server."""
        ...


def written(column: Column, timestamp: int, value: bytes, max_versions: int) -> Column:
    """The column with one more cell. What MAXVERSIONS hides goes: nothing brings it back here."""
    if timestamp == STAMPED:
        cells = [(timestamp, value), *column]
    else:
        above = [cell for cell in column if cell[0] > timestamp]
        cells = [*above, (timestamp, value), *(cell for cell in column if cell[0] < timestamp)]
    return cells[:max_versions] if max_versions else cells


def column_of(store: Store, dataset: bytes, row: bytes, column: bytes) -> Column:
    found = store.get(dataset)
    return found.rows.get(row, {}).get(column, []) if found else []


def delete(rows: dict[bytes, Row], row: bytes, columns: tuple[bytes, ...] | None) -> int:
    """What WCDEL without a range does and replies."""
    found = rows.get(row, {})
    doomed = [name for name in (found if columns is None else columns) if name in found]
    for name in doomed:
        del found[name]
    if not found:
        rows.pop(row, None)
    return min(len(doomed), 1) if columns is None else len(doomed)


@dataclass(frozen=True, slots=True)
class Put:
    """WCMPUT, or WCPUT where all cells are of one row. A timestamp is STAMPED for `*`."""

    dataset: bytes
    cells: tuple[tuple[bytes, int, bytes, bytes], ...]
    """Row, timestamp, column and value of each."""
    expiry: tuple[Word, ...] = ()
    """Words for an expiry after the end of every test."""

    def words(self) -> tuple[Word, ...]:
        rows = {row for row, _, _, _ in self.cells}
        words: list[Word] = ["WCPUT", self.dataset, *rows] if len(rows) == 1 else ["WCMPUT"]
        if len(rows) > 1:
            words.append(self.dataset)
        words += self.expiry
        for row, timestamp, column, value in self.cells:
            given: Word = "*" if timestamp == STAMPED else timestamp
            words += [given, column, value] if len(rows) == 1 else [row, given, column, value]
        return tuple(words)

    def apply(self, store: Store) -> Reply:
        dataset = store.setdefault(self.dataset, Dataset())
        for row, timestamp, column, value in self.cells:
            columns = dataset.rows.setdefault(row, {})
            before = columns.get(column, [])
            columns[column] = written(before, timestamp, value, dataset.max_versions)
        return len(self.cells)


@dataclass(frozen=True, slots=True)
class Increment:
    dataset: bytes
    row: bytes
    column: bytes
    amount: int

    def words(self) -> tuple[Word, ...]:
        return ("WCINCRBY", self.dataset, self.row, self.column, self.amount)

    def apply(self, store: Store) -> Reply:
        column = column_of(store, self.dataset, self.row, self.column)
        before = column[0][1] if column else b"0"
        if before != b"%d" % (int(before) if before.lstrip(b"-").isdigit() else 0):
            return REFUSED
        number = int(before) + self.amount
        if not -LARGEST_INTEGER <= number <= LARGEST_INTEGER:
            return REFUSED
        Put(self.dataset, ((self.row, STAMPED, self.column, b"%d" % number),)).apply(store)
        return number


@dataclass(frozen=True, slots=True)
class CompareAndSet:
    """WCCAS; `expected` None for IFABSENT."""

    dataset: bytes
    row: bytes
    column: bytes
    expected: bytes | None
    value: bytes

    def words(self) -> tuple[Word, ...]:
        comparison: tuple[Word, ...] = ("IFABSENT",)
        if self.expected is not None:
            comparison = ("IFEQ", self.expected)
        return ("WCCAS", self.dataset, self.row, self.column, *comparison, "*", self.value)

    def apply(self, store: Store) -> Reply:
        column = column_of(store, self.dataset, self.row, self.column)
        if (column[0][1] if column else None) != self.expected:
            return 0
        return Put(self.dataset, ((self.row, STAMPED, self.column, self.value),)).apply(store)


@dataclass(frozen=True, slots=True)
class Delete:
    """WCDEL, or WCMDEL for several rows."""

    dataset: bytes
    rows: tuple[bytes, ...]
    columns: tuple[bytes, ...] | None = None

    def words(self) -> tuple[Word, ...]:
        some: tuple[Word, ...] = ()
        if self.columns is not None:
            some = ("COLUMNS", len(self.columns), *self.columns)
        if len(self.rows) == 1:
            return ("WCDEL", self.dataset, self.rows[0], *some)
        return ("WCMDEL", self.dataset, "ROWS", len(self.rows), *self.rows, *some)

    def apply(self, store: Store) -> Reply:
        dataset = store.get(self.dataset)
        if dataset is None:
            return REFUSED
        return sum(delete(dataset.rows, row, self.columns) for row in self.rows)


@dataclass(frozen=True, slots=True)
class DeleteRange:
    """WCDEL of one column by RANGE; only where MAXVERSIONS hides nothing."""

    dataset: bytes
    row: bytes
    column: bytes
    first: int
    last: int

    def words(self) -> tuple[Word, ...]:
        given = ("RANGE", self.first, self.last)
        return ("WCDEL", self.dataset, self.row, "COLUMNS", 1, self.column, *given)

    def apply(self, store: Store) -> Reply:
        dataset = store.get(self.dataset)
        if dataset is None:
            return REFUSED
        before = column_of(store, self.dataset, self.row, self.column)
        after = [cell for cell in before if not self.first <= cell[0] <= self.last]
        if len(after) == len(before):
            return 0
        if after:
            dataset.rows[self.row][self.column] = after
        else:
            delete(dataset.rows, self.row, (self.column,))
        return 1


@dataclass(frozen=True, slots=True)
class Create:
    """WCDATASET CREATE ... IFNOTEXISTS."""

    dataset: bytes
    max_versions: int

    def words(self) -> tuple[Word, ...]:
        given = ("MAXVERSIONS", self.max_versions, "IFNOTEXISTS")
        return ("WCDATASET", "CREATE", self.dataset, *given)

    def apply(self, store: Store) -> Reply:
        store.setdefault(self.dataset, Dataset(self.max_versions))
        return b"OK"


@dataclass(frozen=True, slots=True)
class Drop:
    """WCDATASET DROP ... IFEXISTS."""

    dataset: bytes

    def words(self) -> tuple[Word, ...]:
        return ("WCDATASET", "DROP", self.dataset, "IFEXISTS")

    def apply(self, store: Store) -> Reply:
        store.pop(self.dataset, None)
        return b"OK"


@dataclass(frozen=True, slots=True)
class Unit:
    """What happens as a whole or not at all: one call, or a transaction of several."""

    calls: tuple[Call, ...]
    is_transaction: bool = False

    def encoded(self) -> bytes:
        calls = b"".join(encode(*call.words()) for call in self.calls)
        return encode("MULTI") + calls + encode("EXEC") if self.is_transaction else calls

    def apply(self, store: Store) -> list[Reply]:
        """The replies to its commands."""
        replies = [call.apply(store) for call in self.calls]
        if not self.is_transaction:
            return replies
        return [b"OK", *([b"QUEUED"] * len(replies)), replies]

    @property
    def reply_count(self) -> int:
        return len(self.calls) + 2 if self.is_transaction else 1
