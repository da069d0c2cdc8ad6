"""Words that are hard on a client library, and what WCGET replies for the rows they make.

The programs in other languages have the same in their own words: node/scenarios.mjs, go/main.go,
java/Scenarios.java. Knows no client and no server.
"""

from __future__ import annotations

import itertools
import os

COMMANDS_IN_PIPELINE = 10_000
EVERY_BYTE = bytes(range(256))
ROW = b"row\r\n\0" + EVERY_BYTE
COLUMN = b"\0\r\n$5\r\nhello\r\n"

WRITE_ROW = ("1", EVERY_BYTE, b"", "2", COLUMN, EVERY_BYTE)
"""Timestamp, column, value, twice: what WCPUT is told about ROW."""
WRITTEN_ROW = [b"0", [[EVERY_BYTE, [[1, b""]]], [COLUMN, [[2, EVERY_BYTE]]]]]
EMPTY_ROW = [b"0", []]

_numbers = itertools.count(1)


def new_name() -> str:
    """A name for a dataset or a channel that no other test of this run uses."""
    return f"python-{os.getpid()}-{next(_numbers)}"


def one_cell(timestamp: int, value: bytes) -> list[object]:
    """A row with one column `c` and one cell, as WCGET replies."""
    return [b"0", [[b"c", [[timestamp, value]]]]]
