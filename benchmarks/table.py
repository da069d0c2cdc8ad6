"""A report as tables: for a terminal, and in Markdown. Knows results, not how they came."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.results import Comparison, Report, Row, Unit

PEERS, ITSELF, DIRECT = "PZ", "G", "S"
"""With what letter the keys of rows begin that are compared with redis-server, and so on."""
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Section:
    """A table; the columns of `numbers` are aligned to the right."""

    title: str
    header: list[str]
    lines: list[list[str]]
    numbers: frozenset[str]


def figure(unit: Unit, values: Sequence[float]) -> str:
    """The median, in the unit's words; calls a second are thousands without a word."""
    if not values:
        return NOTHING
    value = statistics.median(values)
    if unit is Unit.RATE:
        return f"{value / 1000:.1f}"
    if unit is Unit.MEMORY:
        return f"{value:.0f} MB"
    return f"{value:.0f} us" if value < 1000 else f"{value / 1000:.1f} ms"


def ratio(comparison: Comparison) -> str:
    return NOTHING if comparison.ratio is None else f"{comparison.ratio:.2f}"


def servers_of(rows: Sequence[Row]) -> list[str]:
    """In the order in which they appear."""
    return list(dict.fromkeys(each.server for row in rows for each in row.comparisons))


def sections(report: Report) -> list[Section]:
    """Those that have rows."""
    made = [
        compared(report, PEERS, "Beside redis-server", ("Colonnade k/s", "Redis k/s")),
        compared(report, ITSELF, "Beside itself", ("measured", "to compare")),
        direct(report),
    ]
    return [section for section in made if section.lines]


def compared(report: Report, letters: str, title: str, sides: tuple[str, str]) -> Section:
    rows = [row for row in report.rows if row.key[0] in letters]
    several = len(servers_of(rows)) > 1
    measured = "measured k/s" if several and letters == PEERS else sides[0]
    numbers = [measured, sides[1], "ratio"]
    named = ["server"] if several else []
    header = ["", "what", "compared with", *named, *numbers, "target", "verdict"]
    lines = [line for row in rows for line in lines_of(row, several)]
    return Section(title, header, lines, frozenset(numbers))


def lines_of(row: Row, several: bool) -> list[list[str]]:
    """One for each server; one without figures if there is none."""
    lines: list[list[str]] = []
    for comparison in row.comparisons or [Comparison(NOTHING)]:
        figures = [figure(row.unit, comparison.measured), figure(row.unit, comparison.reference)]
        named = [comparison.server] if several else []
        outcome = [str(row.target_of(comparison) or NOTHING), row.verdict(comparison) or NOTHING]
        told = [row.key, row.what, row.against] if not lines else ["", "", ""]
        lines.append([*told, *named, *figures, ratio(comparison), *outcome])
    return lines


def direct(report: Report) -> Section:
    rows = [row for row in report.rows if row.key[0] in DIRECT]
    servers = servers_of(rows)
    lines = []
    for row in rows:
        by_server = {each.server: figure(row.unit, each.measured) for each in row.comparisons}
        lines.append([row.what, *[by_server.get(name, NOTHING) for name in servers]])
    numbers = [f"{name} k/s" for name in servers]
    return Section("The storage library alone", ["what", *numbers], lines, frozenset(numbers))


# As text


def heading(facts: dict[str, Any]) -> list[str]:
    """Machine, versions and amounts, a line each."""
    lines = []
    for name, fact in facts.items():
        if isinstance(fact, dict):
            fact = ", ".join(f"{key} {value}" for key, value in fact.items())
        lines.append(f"{name}: {fact}")
    return lines


def as_text(report: Report) -> str:
    blocks = ["\n".join(heading(report.facts))]
    blocks += [section_as_text(section) for section in sections(report)]
    remarks = [*remarks_of(report.rows), *report.remarks]
    return "\n\n".join([*blocks, "\n".join(remarks)]).rstrip() + "\n"


def remarks_of(rows: Sequence[Row]) -> list[str]:
    return [f"{row.key} {row.what}: {', '.join(row.remarks)}" for row in rows if row.remarks]


def section_as_text(section: Section) -> str:
    table = [section.header, *section.lines]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = [section.title]
    for cells in table:
        placed = [
            cell.rjust(width) if name in section.numbers else cell.ljust(width)
            for cell, width, name in zip(cells, widths, section.header, strict=True)
        ]
        lines.append("  ".join(placed).rstrip())
    return "\n".join(lines)


# In Markdown


def as_markdown(report: Report) -> str:
    blocks = ["\n".join(f"- {line}" for line in heading(report.facts))]
    blocks += [section_as_markdown(section) for section in sections(report)]
    remarks = [f"- {text}" for text in (*remarks_of(report.rows), *report.remarks)]
    return "\n\n".join([*blocks, "\n".join(remarks)]).rstrip() + "\n"


def section_as_markdown(section: Section) -> str:
    rules = ["---:" if name in section.numbers else "---" for name in section.header]
    table = [section.header, rules, *section.lines]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    return "\n".join([f"### {section.title}", "", *lines])
