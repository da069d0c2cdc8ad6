"""A report as a picture in SVG, written by hand: bars, with a mark where each target is.

The upper panel has calls a second as a part of redis-server's; longer is better. The lower one has
what has a limit, times and growth, as a part of that limit; shorter is better. What missed its
target has a colour of its own and says so. Knows results, and nothing of how they came.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from benchmarks.results import Comparison, Report, Row, Unit
from benchmarks.table import PEERS, servers_of

WIDTH, MARGIN = 960, 16
BARS_LEFT, BARS_WIDTH = 360, 360
TITLE_HEIGHT, AXIS_HEIGHT, GAP = 44, 24, 18
BAR_HEIGHT, ROW_SPACE = 13, 9
MOST_LENGTH = 4.0
"""A bar that would be longer is cut there: its figure is beside it."""
STYLE = """
    text { font: 12px system-ui, sans-serif; fill: #24292f }
    .title { font-weight: 600; font-size: 14px }
    .figure, .tick { font-variant-numeric: tabular-nums }
    .tick { fill: #6e7781; font-size: 11px }
    .grid { stroke: #d0d7de } .unit { stroke: #57606a }
    .target { stroke: #24292f; stroke-width: 2 }
    .reached { fill: #1a7f64 } .missed { fill: #c4571b } .plain { fill: #5b7fa6 }
    .other { fill-opacity: .5 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .tick { fill: #9198a1 }
      .grid { stroke: #3d444d } .unit { stroke: #9198a1 } .target { stroke: #e6edf3 }
      .reached { fill: #3fb38f } .missed { fill: #e8834a } .plain { fill: #7fa6d1 }
    }
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """`length` and `mark` in the panel's unit, `mark` None where there is nothing to mark.

    `other`: not of the first server.
    """

    length: float
    mark: float | None
    label: str
    kind: str
    other: bool


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    unit: str
    """What a length of 1 is."""
    rows: list[tuple[str, list[Bar]]]

    @property
    def height(self) -> int:
        bars = sum([len(bars) * BAR_HEIGHT + ROW_SPACE for _, bars in self.rows])
        return TITLE_HEIGHT + bars + AXIS_HEIGHT

    @property
    def most(self) -> float:
        """What the width of the panel stands for."""
        lengths = [bar.length for _, bars in self.rows for bar in bars]
        marks = [bar.mark for _, bars in self.rows for bar in bars if bar.mark is not None]
        return min(MOST_LENGTH, max([1.0, *lengths, *marks]) * 1.05)


def draw(report: Report) -> str:
    """The whole SVG file."""
    shown = [panel for panel in panels(report.rows) if panel.rows]
    height = sum([panel.height + GAP for panel in shown]) + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" role="img">',
        f"  <title>{escape(title(report))}</title>",
        f"  <style>{STYLE}  </style>",
    ]
    top = MARGIN
    for panel in shown:
        lines += panel_lines(panel, top)
        top += panel.height + GAP
    return "\n".join([*lines, "</svg>"]) + "\n"


def title(report: Report) -> str:
    servers = " and ".join(servers_of(report.rows)) or "nothing"
    return f"{servers}, measured {report.facts.get('date', '')}".strip()


# What is shown


def panels(rows: Sequence[Row]) -> Iterator[Panel]:
    servers = servers_of(rows)
    rates = [row for row in rows if row.key[0] in PEERS and row.unit is Unit.RATE]
    limited = [row for row in rows if row.target is not None and row not in rates]
    bars = bars_of(rates, servers, lambda row, ratio: ratio)
    yield Panel("Calls a second beside redis-server; longer is better", "redis-server", bars)
    bars = bars_of(limited, servers, share_of_limit)
    yield Panel("Times and growth beside their limits; shorter is better", "the limit", bars)


def share_of_limit(row: Row, ratio: float) -> float:
    """1 at the target, more where it is missed, whichever way it is meant."""
    assert row.target is not None
    bound = row.target.bound
    return (bound / ratio if ratio else math.inf) if row.target.at_least else ratio / bound


def bars_of(
    rows: Sequence[Row], servers: Sequence[str], length: Callable[[Row, float], float]
) -> list[tuple[str, list[Bar]]]:
    """Rows with a ratio, and what is written before their bars."""
    shown = []
    for row in rows:
        bars = [bar_of(row, each, servers, length) for each in row.comparisons if each.ratio]
        if bars:
            shown.append((f"{row.key}  {row.what}", bars))
    return shown


def bar_of(
    row: Row,
    comparison: Comparison,
    servers: Sequence[str],
    length: Callable[[Row, float], float],
) -> Bar:
    assert comparison.ratio is not None
    verdict = row.verdict(comparison)
    target = row.target_of(comparison)
    several = len(servers) > 1
    measured = f"{comparison.ratio:.2f}"
    parts = [f"{measured} {comparison.server}" if several else measured]
    parts += [] if target is None or several else [f"target {target}"]
    parts += ["missed"] if verdict == "MISSED" else []
    mark = None if target is None else length(row, target.bound)
    kind = {"reached": "reached", "MISSED": "missed"}.get(verdict, "plain")
    other = comparison.server != servers[0]
    return Bar(length(row, comparison.ratio), mark, ", ".join(parts), kind, other)


# How it is drawn


def panel_lines(panel: Panel, top: int) -> list[str]:
    bottom = top + panel.height - AXIS_HEIGHT
    lines = [text(MARGIN, top + 16, panel.title, "title"), *axis(panel, top + 32, bottom)]
    at = top + TITLE_HEIGHT
    for name, bars in panel.rows:
        lines.append(text(MARGIN, at + BAR_HEIGHT - 2, name, "name"))
        for bar in bars:
            lines += bar_lines(bar, at, panel.most)
            at += BAR_HEIGHT
        at += ROW_SPACE
    return lines


def axis(panel: Panel, top: int, bottom: int) -> list[str]:
    step = 0.25 if panel.most <= 1.5 else 0.5
    lines = []
    for place in range(math.floor(panel.most / step) + 1):
        value = place * step
        x = across(value, panel.most)
        lines.append(vertical(x, top, bottom, "unit" if value == 1 else "grid"))
        label = f"1 = {panel.unit}" if value == 1 else f"{value:g}"
        lines.append(text(x, bottom + 15, label, "tick", anchor="middle"))
    return lines


def bar_lines(bar: Bar, top: int, most: float) -> list[str]:
    length = across(min(bar.length, most), most) - BARS_LEFT
    kind = f"{bar.kind} other" if bar.other else bar.kind
    height = BAR_HEIGHT - 2
    lines = [
        f'  <rect class="{kind}" x="{BARS_LEFT}" y="{top}" width="{length:.1f}" height="{height}"/>'
    ]
    if bar.mark is not None:
        lines.append(vertical(across(bar.mark, most), top - 2, top + BAR_HEIGHT, "target"))
    lines.append(text(BARS_LEFT + BARS_WIDTH + 10, top + BAR_HEIGHT - 3, bar.label, "figure"))
    return lines


def across(value: float, most: float) -> float:
    return BARS_LEFT + BARS_WIDTH * value / most


def vertical(x: float, top: int, bottom: int, kind: str) -> str:
    return f'  <line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>'


def text(x: float, y: int, words: str, kind: str, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y}" text-anchor="{anchor}"'
    return f'  <text class="{kind}" {place}>{escape(words)}</text>'
