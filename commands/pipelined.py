"""Calls that stand one after another in what a client sent: what they ask for together. The twin in
Python of _pipelined.pyx.

Knows nothing of the store.
"""

from __future__ import annotations

from collections.abc import Iterator

from commands.arguments import timestamp_or_clock
from commands.errors import CommandError
from storage.compiled import twin
from storage.model import NewCell

SINGLE_CELL_WORDS = 6
"""WCPUT dataset row timestamp column value."""


def single_cells_in_python(commands: list[list[bytes]], place: int, most: int) -> list[NewCell]:
    """The cells of the commands from `place` on, up to the first that does not, as the one there
    does, write one cell without an expiry into that dataset."""
    cells: list[NewCell] = []
    name, dataset = commands[place][0], commands[place][1:2]
    for words in commands[place : place + most]:
        if len(words) != SINGLE_CELL_WORDS or words[0] != name or words[1:2] != dataset:
            break
        _, _, row, timestamp, column, value = words
        try:
            cells.append((row, timestamp_or_clock(timestamp), column, value))
        except CommandError:
            break
    return cells


def rows_asked_alike_in_python(
    commands: list[list[bytes]], place: int, most: int
) -> Iterator[bytes]:
    """The rows of the commands from `place` on, up to the first that is not, but for its row, the
    same as the one there."""
    first = commands[place]
    fixed, options = first[:2], first[3:]
    for words in commands[place : place + most]:
        if len(words) < 3 or words[:2] != fixed or words[3:] != options:
            break
        yield words[2]


single_cells = twin("commands._pipelined", "single_cells", single_cells_in_python)
rows_asked_alike = twin("commands._pipelined", "rows_asked_alike", rows_asked_alike_in_python)
