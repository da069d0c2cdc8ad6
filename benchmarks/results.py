"""Figures, what they are compared with, and what was to be reached. Knows no server and no load.

A row of the table has a comparison for each server that was measured. A comparison has a figure for
each round and one to hold against it, measured just before or after. What counts is the median of
the rounds' ratios: figures of a machine drift from minute to minute, ratios of neighbours hardly.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class Unit(Enum):
    """What a figure is: calls a second, a time of one call, memory."""

    RATE = "k/s"
    TIME = "us"
    MEMORY = "MB"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a ratio."""

    bound: float
    at_least: bool = True

    def reached(self, ratio: float) -> bool:
        return ratio >= self.bound if self.at_least else ratio <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


@dataclass(slots=True)
class Comparison:
    """One server's figures, in calls a second, microseconds or megabytes, round by round.

    `reference` is empty where there was nothing to compare with. The targets are Colonnade's: what
    else was measured is only compared.
    """

    server: str
    has_target: bool = True
    measured: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        pairs = zip(self.measured, self.reference, strict=False)
        ratios = [figure / other for figure, other in pairs if other]
        return statistics.median(ratios) if ratios else None


@dataclass(slots=True)
class Row:
    """`what` was measured and what it is compared `against`; `remarks` say what is not as usual."""

    key: str
    what: str
    against: str
    unit: Unit
    target: Target | None
    comparisons: list[Comparison] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def verdict(self, comparison: Comparison) -> str:
        """Empty where there is no target or nothing was compared."""
        target = self.target_of(comparison)
        if target is None or comparison.ratio is None:
            return ""
        return "reached" if target.reached(comparison.ratio) else "MISSED"

    def target_of(self, comparison: Comparison) -> Target | None:
        return self.target if comparison.has_target else None

    def of(self, server: str) -> Comparison:
        """The comparison of this server, which is made if it is not there yet."""
        for comparison in self.comparisons:
            if comparison.server == server:
                return comparison
        self.comparisons.append(Comparison(server))
        return self.comparisons[-1]


@dataclass(slots=True)
class Report:
    """A whole run. `facts` are of machine and servers, for people; `runs` each load by itself."""

    facts: dict[str, Any]
    rows: list[Row]
    remarks: list[str] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)


def as_json(report: Report) -> dict[str, Any]:
    rows = []
    for row in report.rows:
        comparisons = [
            {**asdict(each), "ratio": each.ratio, "verdict": row.verdict(each)}
            for each in row.comparisons
        ]
        rows.append({**asdict(row), "unit": row.unit.value, "comparisons": comparisons})
    return {"facts": report.facts, "remarks": report.remarks, "rows": rows, "runs": report.runs}


def from_json(found: dict[str, Any]) -> Report:
    """What as_json() made."""
    return Report(found["facts"], [_row(row) for row in found["rows"]], found["remarks"], [])


def _row(found: dict[str, Any]) -> Row:
    target = found["target"]
    return Row(
        found["key"],
        found["what"],
        found["against"],
        Unit(found["unit"]),
        None if target is None else Target(target["bound"], target["at_least"]),
        [
            Comparison(each["server"], each["has_target"], each["measured"], each["reference"])
            for each in found["comparisons"]
        ],
        found["remarks"],
    )
