"""The storage library by itself, of each Colonnade in turn: runs library.py in processes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.load import HERE, Failure
from benchmarks.results import Row, Unit
from benchmarks.servers import Product, environment
from benchmarks.sitting import Sitting, in_turn

CALLS = 100_000
TIMEOUT_SECONDS = 600.0


def measure(sitting: Sitting) -> list[Row]:
    """A row for each thing that library.py measures."""
    rows: dict[str, Row] = {}
    for number in sitting.rounds:
        for product in in_turn(sitting.colonnades, number):
            for name, rate in _rates(product, sitting.scale.count(CALLS)).items():
                row = rows.setdefault(name, _row(sitting, name))
                row.of(product.name).measured.append(rate)
                told = f"{product.name:20} {rate / 1000:8.1f} k/s  {name}"
                sitting.tell(f"S          round {number}  {told}")
    return list(rows.values())


def _row(sitting: Sitting, name: str) -> Row:
    row = Row("S", f"in process: {name}", "", Unit.RATE, None)
    for product in sitting.colonnades:
        row.of(product.name)
    return row


def _rates(product: Product, calls: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="colonnade-bench-") as folder:
        words = [sys.executable, "-P", str(HERE / "library.py"), str(Path(folder) / "data")]
        done = subprocess.run(
            [*words, str(calls)],
            cwd=product.checkout,
            env=environment(product),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
    if done.returncode:
        reason = (done.stderr.splitlines() or ["no reason given"])[-1]
        raise Failure(f"the storage library of {product.name}: {reason}")
    rates: dict[str, float] = json.loads(done.stdout)
    return rates
