"""How far an export or an import is, on standard error: counts, their rate and the time left.

A bar by rich if that is installed, else a line now and then. Nothing is shown where nobody looks:
standard error must be a terminal.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator

Counted = Callable[[int, int], None]
"""Told what is done and about how much there is to do, 0 where nobody knows."""

_SECONDS_BETWEEN_LINES = 0.5


def counted(title: str, unit: str) -> contextlib.AbstractContextManager[Counted]:
    """Shows what it is told until the end of the `with`."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext(_shows_nothing)
    if importlib.util.find_spec("rich") is not None:
        return _bar(title, unit)
    return _line(title, unit)


def _shows_nothing(_done: int, _total: int) -> None:
    """Nobody looks."""


@contextlib.contextmanager
def _bar(title: str, unit: str) -> Iterator[Counted]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    began = time.monotonic()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, rate="")

        def tell(done: int, total: int) -> None:
            # The total is an estimate, which what is done may pass.
            most = max(done, total) if total else None
            bar.update(task, completed=done, total=most, rate=_rate(done, began, unit))

        yield tell


@contextlib.contextmanager
def _line(title: str, unit: str) -> Iterator[Counted]:
    began = last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            seconds = max(0, total - done) * (now - began) / max(1, done)
            left = f", {seconds:.0f} s left" if total else ""
            told = f"{title}: {done} {unit}, {_rate(done, began, unit)}{left}"
            print(f"\r\033[K{told}", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print(end="\r\033[K", file=sys.stderr, flush=True)


def _rate(done: int, began: float, unit: str) -> str:
    return f"{done / max(0.001, time.monotonic() - began):,.0f} {unit}/s"
