"""The table and the chart in docs/performance.md: what lies between two marks is replaced."""

from __future__ import annotations

from pathlib import Path

from benchmarks.chart import draw
from benchmarks.load import Failure
from benchmarks.results import Report
from benchmarks.table import as_markdown

PAGE, CHART = "performance.md", "performance.svg"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def write_documents(report: Report, folder: Path) -> None:
    """Into the page, which must be there and have the marks, and the chart beside it."""
    page = folder / PAGE
    changed = replaced(page.read_text(), block(report))
    (folder / CHART).write_text(draw(report))
    page.write_text(changed)


def block(report: Report) -> str:
    picture = f"![Bars of the ratios below, with their targets]({CHART})"
    return f"{picture}\n\n{as_markdown(report)}"


def replaced(page: str, measured: str) -> str:
    """The page with this between the marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Failure(f"{PAGE} has no lines {BEGIN} and {END}: put them where the table goes")
    return f"{before}{begin}\n\n{measured}\n{end}{after}"
