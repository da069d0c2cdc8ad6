"""How far a command is, on standard error: what is done of how much, how fast, how long yet.

A bar if rich is installed, else a line. Nothing is shown where nobody looks: standard error must be
a terminal. Knows nothing of what is being done.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of about how much; 0: nobody knows."""
Counted = Callable[[int, int], None]
"""As Progress, where one thing alone is being done."""
Draw = Callable[[str, int, int, str], None]
"""Puts an action, what is done, the total (0: unknown) and words about them on the terminal."""

BYTES = "bytes"
"""The unit that is shown as sizes: kB, MB, GB."""
_PACE_SECONDS = 0.2


@contextlib.contextmanager
def shown(unit: str = BYTES, *, endless: str | None = None) -> Iterator[Progress]:
    """Shows what it is told, until the end of the `with`.

    `unit` is what is counted; `endless` what an action counts whose total is unknown, if that is
    something else.
    """
    if not sys.stderr.isatty():
        yield lambda action, done, total: None
        return
    with _bar() if importlib.util.find_spec("rich") is not None else _line() as draw:
        yield _Teller(draw, unit, endless or unit)


@contextlib.contextmanager
def counted(title: str, unit: str) -> Iterator[Counted]:
    """As shown(), for one action."""
    with shown(unit) as tell:
        yield lambda done, total: tell(title, done, total)


class _Teller:
    """Draws each action when it begins, and a few times a second from then on."""

    def __init__(self, draw: Draw, unit: str, endless: str) -> None:
        self._draw = draw
        self._unit, self._endless = unit, endless
        self._action: str | None = None
        self._began = self._drawn = 0.0
        self._first = 0

    def __call__(self, action: str, done: int, total: int) -> None:
        now = time.monotonic()
        if action != self._action:
            self._action, self._began, self._first = action, now, done
        elif now - self._drawn < _PACE_SECONDS:
            return
        self._drawn = now
        most = max(done, total) if total else 0  # the total is an estimate, which may be passed
        unit = self._unit if total else self._endless
        rate = (done - self._first) / (now - self._began) if now > self._began else 0.0
        self._draw(action, done, most, in_words(done, most, rate, unit))


def in_words(done: int, total: int, rate: float, unit: str) -> str:
    """`1,500 of 4,500 cells, 500/s, 0:00:06 left`; without what is not known, which is 0."""
    words, noun = _amount(done, unit), "" if unit == BYTES else f" {unit}"
    words += f" of {_amount(total, unit)}{noun}" if total else noun
    if rate > 0:
        words += f", {_amount(rate, unit)}/s"
        if total:
            words += f", {timedelta(seconds=round((total - done) / rate))} left"
    return words


def _amount(number: float, unit: str) -> str:
    if unit != BYTES:
        return f"{number:,.0f}"
    for name in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {name}" if name == "bytes" else f"{number:.1f} {name}"
        number /= 1000
    return f"{number:,.1f} TB"


@contextlib.contextmanager
def _bar() -> Iterator[Draw]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    action, told = "{task.description}", "{task.fields[words]}"
    columns = (TextColumn(action, markup=False), BarColumn(), TextColumn(told, markup=False))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task, present = bar.add_task("", visible=False), ""

        def draw(action: str, done: int, total: int, words: str) -> None:
            nonlocal task, present
            if action != present:
                bar.remove_task(task)
                task, present = bar.add_task(action, total=None, words=words), action
            bar.update(task, completed=done, total=total or None, words=words)

        yield draw


@contextlib.contextmanager
def _line() -> Iterator[Draw]:
    def draw(action: str, _done: int, _total: int, words: str) -> None:
        room = shutil.get_terminal_size().columns - 1
        print(end=f"\r\033[K{f'{action}: {words}'[:room]}", file=sys.stderr, flush=True)

    try:
        yield draw
    finally:
        print(end="\r\033[K", file=sys.stderr, flush=True)
