"""The storage library in this process: no server, no socket, no protocol. Prints JSON.

    python -P benchmarks/library.py DIRECTORY CALLS

It stores a row of 100 cells for each ten calls, and then makes so many calls, fewer of what takes
longer. Between these figures and a server's lies the way through sockets, parser and replies.
-P keeps this folder off the path, so that PYTHONPATH says whose storage is measured.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from storage.engine import Engine
from storage.model import DatasetSettings, PageLimits, PageRequest, Selection
from storage.opening import open_engine

DATASET = b"bench"
VALUE = b"x" * 40
CALLS_A_ROW = 10
COLUMNS = [b"field:%02d" % place for place in range(100)]
A_COMMIT = 50
"""As many calls as a turn of the server's loop has from as many clients."""
PAGE = PageRequest(PageLimits())
SETTINGS = DatasetSettings()

Step = Callable[[bytes], Awaitable[None]]


def row_of(place: int) -> bytes:
    return b"row:%012d" % place


async def fill(engine: Engine, rows: int) -> None:
    for place in range(rows):
        cells = [(row_of(place), None, column, VALUE) for column in COLUMNS]
        await engine.put(DATASET, cells, None, SETTINGS)
        engine.commit()


async def rate_of(step: Step, calls: int, rows: int) -> float:
    """Calls a second, on random rows."""
    chosen = [row_of(random.randrange(rows)) for _ in range(calls)]
    began = time.perf_counter()
    for row in chosen:
        await step(row)
    return calls / (time.perf_counter() - began)


def steps(engine: Engine) -> dict[str, tuple[Step, int]]:
    """What is measured, and how many calls of it for each thousand that are asked for."""

    async def put(row: bytes) -> None:
        await engine.put(DATASET, [(row, None, b"column", VALUE)], None, SETTINGS)
        engine.commit()

    async def put_many(row: bytes) -> None:
        for _ in range(A_COMMIT):
            await engine.put(DATASET, [(row, None, b"column", VALUE)], None, SETTINGS)
        engine.commit()

    async def read_cell(row: bytes) -> None:
        await engine.read_row(DATASET, row, Selection(columns=(b"field:50",)), PAGE)

    async def read_page(row: bytes) -> None:
        page = await engine.read_row(DATASET, row, Selection(), PAGE)
        assert len(page.columns) == PAGE.limits.columns

    return {
        "newest cell of one column": (read_cell, 1000),
        "page of 100 columns": (read_page, 100),
        "put of one cell, a commit each": (put, 1000),
        f"puts of one cell, {A_COMMIT} a commit": (put_many, 20),
    }


async def measure(directory: Path, calls: int) -> dict[str, float]:
    engine, rows = open_engine(directory), max(1, calls // CALLS_A_ROW)
    try:
        await fill(engine, rows)
        rates = {}
        for name, (step, share) in steps(engine).items():
            rate = await rate_of(step, max(1, calls * share // 1000), rows)
            rates[name] = rate * A_COMMIT if step.__name__ == "put_many" else rate
        return rates
    finally:
        await engine.close()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1]), int(sys.argv[2])))))
