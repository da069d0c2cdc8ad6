"""What became of a writer's calls when the server was killed.

A writer's calls are made in order, so of those without an answer some first ones may have happened
and the others not; those with an answer must have. Anything else is `Lost`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tests.soak.calls import FIRST_STAMP, STAMPED, Column, Dataset, Row, Store, Unit

LIFE = re.compile(rb"life (\d+), ")
SHOWN = 12


class Lost(AssertionError):
    """The server does not hold what it said it did, or holds a part of a call."""


def as_expected(rows: dict[bytes, Row]) -> dict[bytes, Row]:
    """Rows as read from the server, with timestamps that it made as STAMPED."""
    return {
        row: {
            name: [(time if time < FIRST_STAMP else STAMPED, value) for time, value in cells]
            for name, cells in columns.items()
        }
        for row, columns in rows.items()
    }


def fate(store: Store, unanswered: Sequence[Unit], found: Store) -> int:
    """How many unanswered calls happened; `store` becomes what the server holds."""
    # A difference is told from what was acknowledged, before the others change it.
    differences = list(explained(store, found))
    if not differences:
        return 0
    for done, unit in enumerate(unanswered, 1):
        unit.apply(store)
        if store == found:
            return done
    raise Lost(
        f"no number of the {len(unanswered)} unanswered calls explains the {len(differences)} "
        "differences from what was acknowledged:\n" + "\n".join(differences[:SHOWN])
    )


def explained(store: Store, found: Store) -> Iterator[str]:
    """Where two stores differ, in words."""
    for name in sorted({*store, *found}):
        mine, other = store.get(name), found.get(name)
        if mine is None or other is None:
            yield f"dataset {name!r}: expected {known(mine)}, found {known(other)}"
            continue
        if mine.max_versions != other.max_versions:
            yield f"{name!r}: MAXVERSIONS {mine.max_versions}, found {other.max_versions}"
        for row in sorted({*mine.rows, *other.rows}):
            expected, got = mine.rows.get(row, {}), other.rows.get(row, {})
            for column in sorted({*expected, *got}):
                if expected.get(column) != got.get(column):
                    cells = shortened(expected.get(column)), shortened(got.get(column))
                    yield f"{name!r} {row!r} {column!r}: expected {cells[0]}, found {cells[1]}"


def known(dataset: Dataset | None) -> str:
    return "none" if dataset is None else f"one of {len(dataset.rows)} rows"


def shortened(column: Column | None) -> str:
    if column is None:
        return "nothing"
    shown = [(time, value[:40]) for time, value in column[:4]]
    return f"{len(column)} cells {shown!r}"


class Stamps:
    """The server's own timestamps: never going back, over restarts too.

    `begun` holds for each life of the server a timestamp that it made at its beginning.
    """

    def __init__(self) -> None:
        self.begun: list[int] = []

    def begin(self, stamp: int, rows_by_dataset: dict[bytes, dict[bytes, Row]]) -> None:
        """A new life, whose first timestamp is `stamp`, begins with these rows."""
        for dataset, rows in rows_by_dataset.items():
            for row, columns in rows.items():
                for name, cells in columns.items():
                    where = f"{dataset!r} {row!r} {name!r}"
                    self._check_column(where, cells)
                    self._check_not_after(where, cells, stamp)
        self.begun.append(stamp)

    def _check_column(self, where: str, cells: Column) -> None:
        times = [time for time, _ in cells]
        if times != sorted(times, reverse=True):
            raise Lost(f"{where}: cells out of order, {times}")
        for time, value in cells:
            life = LIFE.match(value)
            if life is not None and time >= FIRST_STAMP:
                number = int(life[1])
                if number < len(self.begun) and time < self.begun[number]:
                    begun = self.begun[number]
                    raise Lost(f"{where}: written in life {number} at {time}, begun at {begun}")

    def _check_not_after(self, where: str, cells: Column, stamp: int) -> None:
        for time, value in cells:
            if time > stamp:
                raise Lost(f"{where}: {value[:40]!r} of {time} is later than a new one of {stamp}")
