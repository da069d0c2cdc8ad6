"""Every column of four cells, which live ten minutes, two hours, for ever or no more."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence

from tests.against_model.conversation import Conversation
from tests.against_model.ingredients import Expiry, Interval, Moment
from tests.against_model.steered import HOUR_MS, SteeredServer
from tests.model import Cell, Settings, Unsettled, Write, written

AGES = range(4)
SECONDS = [Moment("start", -1_000 * age) for age in AGES]
LIVES = [
    Expiry("PXAT", Moment("start", 600_000)),
    Expiry("PXAT", Moment("start", 2 * HOUR_MS)),
    Expiry("PXAT", Moment("start", -1)),
]
ENDS: list[int | None] = [None, 0, 1, 2]
COLUMNS = list(itertools.product(ENDS, repeat=len(AGES)))
ROWS = range(len(COLUMNS))

Act = Callable[["EveryColumn"], None]


def cells_ending(end: int | None) -> list[tuple[int, int]]:
    """Row and age of all the cells that live so long."""
    return [(row, age) for row in ROWS for age in AGES if COLUMNS[row][age] == end]


class EveryColumn:
    """A dataset with a row for every such column, all treated alike."""

    def __init__(self, server: SteeredServer, chosen: Settings) -> None:
        self.talk = talk = Conversation(server)
        talk.rows = [bytes([number]) for number in ROWS]
        talk.columns, talk.moments, talk.expiries = [b"column"], SECONDS, LIVES
        self.chosen = chosen

    def fill(self) -> None:
        self.talk.create(self.chosen, if_not_exists=False)
        for end in ENDS:
            self.write(cells_ending(end), end)

    def write(self, cells: list[tuple[int, int]], end: int | None) -> None:
        words, expires_at = self.talk.expiry(end)
        writes = [
            Write(self.talk.row(row), self.talk.time(age), b"column", b"%d" % age)
            for row, age in cells
        ]
        if writes:
            self.talk._send_put("WCMPUT", writes, words, expires_at)

    def rewrite(self, age: int, end: int | None) -> None:
        self.write([(row, age) for row in ROWS if self.is_settled(row, age, end)], end)

    def is_settled(self, row: int, age: int, end: int | None) -> bool:
        """Whether the contract says what this rewrite leaves behind."""
        talk = self.talk
        dataset = talk.model.dataset(talk.dataset)
        cell = Cell(talk.time(age), 0, b"", talk.expiry(end)[1])
        column = dataset.rows[talk.row(row)][b"column"]
        with contextlib.suppress(Unsettled):
            return bool(written(column, [cell], dataset.settings, talk.now))
        return False

    def count(self) -> None:
        for row in ROWS:
            self.talk.increment(row, 0, 1)

    def delete(self, hits: Interval | list[int]) -> None:
        self.talk.delete(list(ROWS), None, hits, True)


def deleting(*ages: int) -> Act:
    return lambda every: every.delete(list(ages))


def deleting_between(first: int, last: int) -> Act:
    return lambda every: every.delete(Interval(last, first))


def rewriting(age: int, end: int | None) -> Act:
    return lambda every: every.rewrite(age, end)


DELETES = {
    f"delete {ages}": deleting(*ages)
    for size in (1, 2)
    for ages in itertools.combinations(AGES, size)
}
REWRITES = {f"rewrite {age} to end {end}": rewriting(age, end) for age in AGES for end in ENDS}
ACTS: dict[str, Act] = {
    **DELETES,
    **REWRITES,
    "delete between": deleting_between(1, 2),
    "compact": lambda every: every.talk.compact(awaited=True),
    "wait": lambda every: every.talk.wait_for_an_expiry(beyond=1),
    "count": EveryColumn.count,
    "one version": lambda every: every.talk.alter(1, None),
    "half an hour": lambda every: every.talk.alter(None, 1800),
}


def perform(server: SteeredServer, chosen: Settings, acts: Sequence[str]) -> None:
    every = EveryColumn(server, chosen)
    try:
        every.fill()
        for act in acts:
            ACTS[act](every)
    finally:
        every.talk.teardown()
