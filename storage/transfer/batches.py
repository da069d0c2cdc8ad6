"""Cells side by side, as a table of columns: how they travel between files and keys.

Work is done on whole columns of a batch where that can be, because there are millions of cells.
Knows nothing of files and of keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CellBatch:
    """All columns are of one length. Times are Unix milliseconds."""

    rows: Sequence[bytes]
    columns: Sequence[bytes]
    timestamps: Sequence[int]
    values: Sequence[bytes]
    expiries: Sequence[int | None]
    """The cells' own expiries; a dataset's TTL is not among them."""
    sequences: Sequence[int]
    """What tells apart cells that a server stamped in one millisecond; 0 for given timestamps."""

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self) -> Iterator[tuple[bytes, bytes, int, int, bytes, int | None]]:
        """(row, column, timestamp, sequence, value, expires) of each."""
        return zip(
            self.rows, self.columns, self.timestamps, self.sequences, self.values, self.expiries,
            strict=True,
        )  # fmt: skip


WideBatch = tuple[list[bytes], list[list[bytes | None]]]
"""Row keys, and for each wanted column the newest value in each of these rows, or None."""
