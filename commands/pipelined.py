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


def single_cells_in_python(
    commands: list[list[bytes]], place: int, most: int
) -> list[tuple[bytes, list[NewCell]]]:
    """What the commands from `place` on write, up to the first that does not, by the name of the
    one there, write one cell without an expiry: (dataset, cells) for each change of the dataset."""
    found: list[tuple[bytes, list[NewCell]]] = []
    name = commands[place][0]
    for words in commands[place : place + most]:
        if len(words) != SINGLE_CELL_WORDS or words[0] != name:
            break
        _, dataset, row, timestamp, column, value = words
        try:
            cell = (row, timestamp_or_clock(timestamp), column, value)
        except CommandError:
            break
        if not found or found[-1][0] != dataset:
            found.append((dataset, []))
        found[-1][1].append(cell)
    return found


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
