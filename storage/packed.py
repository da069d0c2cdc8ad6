"""The columns of a page in one piece: what the compiled reader gives to those who only pass it on.

A page of many cells would be as many objects, several a cell, made to be written and forgotten.
Knows nothing of how cells are read, or written to clients.

In `data` stand, for each column, the length of its name, its number of cells (COLUMN) and the name;
then, for each cell, its timestamp and the length of its value (CELL), and the value. Without values
that length is NO_VALUE. Numbers are the processor's own: nothing of this leaves the process.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from storage.model import ColumnCells, Packed

COLUMN = Struct("=II")
CELL = Struct("=QI")
NO_VALUE = 2**32 - 1


def unpacked(packed: Packed) -> list[ColumnCells]:
    """The same as objects."""
    columns: list[ColumnCells] = []
    data, place = packed.data, 0
    for _ in range(packed.count):
        name_bytes, count = COLUMN.unpack_from(data, place)
        place += COLUMN.size
        name = data[place : place + name_bytes]
        place += name_bytes
        cells: list[Any] = []
        for _ in range(count):
            timestamp, value_bytes = CELL.unpack_from(data, place)
            place += CELL.size
            if value_bytes == NO_VALUE:
                cells.append(timestamp)
                continue
            cells.append((timestamp, data[place : place + value_bytes]))
            place += value_bytes
        columns.append((name, cells))
    return columns
