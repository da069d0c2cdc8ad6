"""A dataset of a store that is only read, as sorted tables that a server can take over.

Cells go as the store holds them: all versions, sequences and expiries, those beyond MAXVERSIONS
too. Only what has expired is left out. Knows no server, and not where the store is from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from storage.embedded.datasets import Dataset
from storage.embedded.rules import expiry_of
from storage.rocks.tables import write_tables

CELLS_TOLD = 10_000
"""After so many cells it is told how far it is."""

Counted = Callable[[int, int], None]
"""Told how many cells were looked at, and about how many there are."""


def copy_cells(dataset: Dataset, folder: Path, now: int, tell: Counted) -> int:
    """Write the cells that live at `now` (Unix ms) into tables in `folder`; how many there are.

    StoreFailure where the store cannot be read, or the tables not be written.
    """
    copied = 0

    def living() -> Iterator[tuple[bytes, bytes]]:
        nonlocal copied
        ttl_ms = dataset.settings.ttl_seconds * 1000
        about = dataset.family.statistics().estimated_keys
        for number, pair in enumerate(dataset.family.scan(None).walk(b"")):
            if number % CELLS_TOLD == 0:
                tell(number, about)
            if expiry_of(*pair, ttl_ms) >= now:
                copied += 1
                yield pair

    for _ in write_tables(living(), folder):
        pass
    return copied
