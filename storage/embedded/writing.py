"""Cells to write -> operations of the store. _writing.pyx is the compiled twin: the hot path.

Knows the grammar of keys and values; knows nothing of groups or of what is there already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from storage.compiled import twin
from storage.embedded.ordered import Family, Kind, Operation
from storage.encoding import cell_suffix, column_prefix, row_prefix
from storage.model import NewCell

_PUT = Kind.PUT


def puts_in_python(
    family: Family, cells: Sequence[NewCell], header: bytes, stamp: Callable[[], bytes]
) -> tuple[list[Operation], list[bytes]]:
    """A put each, and the prefixes of the rows, in order. RowKeyTooLong, ColumnNameTooLong.

    `header` stands before every value; `stamp` gives the end of a key where no timestamp is given.
    """
    operations: list[Operation] = []
    prefixes: list[bytes] = []
    for row, timestamp, column, value in cells:
        prefix = row_prefix(row)
        place = column_prefix(prefix, column)
        suffix = stamp() if timestamp is None else cell_suffix(timestamp, 0)
        operations.append((_PUT, family, place + suffix, header + value))
        prefixes.append(prefix)
    return operations, prefixes


puts = twin("storage.embedded._writing", "puts", puts_in_python)
