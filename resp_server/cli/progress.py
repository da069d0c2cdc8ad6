"""How far a backup or a restore is, on the standard error: a bar if rich is installed, else a line.

Nothing is shown where nobody looks: when the standard error is no terminal.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from collections.abc import Iterator

from storage.backup.repository import Progress, no_progress

_LINE_SECONDS = 0.2


@contextlib.contextmanager
def shown() -> Iterator[Progress]:
    """What to call with (what is being done, bytes done, of how many; 0: unknown)."""
    if not sys.stderr.isatty():
        yield no_progress
    elif importlib.util.find_spec("rich") is not None:
        with _bar() as progress:
            yield progress
    else:
        with _line() as progress:
            yield progress


@contextlib.contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task, present = bar.add_task(""), ""

        def tell(action: str, done: int, total: int) -> None:
            nonlocal present
            if action != present:
                present = action
                bar.reset(task)
            bar.update(task, description=action, completed=done, total=total or None)

        yield tell


@contextlib.contextmanager
def _line() -> Iterator[Progress]:
    last = 0.0

    def tell(action: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _LINE_SECONDS:
            last = now
            share = f" {100 * done // total}%" if total else ""
            print(f"\r\033[K{action}: {done}{share}", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print(end="\r\033[K", file=sys.stderr, flush=True)
