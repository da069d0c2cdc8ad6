"""Cells into a server by its commands: WCMPUT after WCMPUT, many on their way at a time.

For small files, which go in as one transaction, and for servers on other machines. Knows nothing of
files or of how cells came about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from resp_server.cli.link import Link, Words
from storage.transfer.mapping import ImportedCell

CELLS_A_COMMAND = 250
BYTES_A_COMMAND = 256 * 1024
COMMANDS_AT_A_TIME = 16


def send(
    link: Link, dataset: bytes, cells: Iterable[ImportedCell], sent: Callable[[int], None]
) -> int:
    """How many cells the server has taken; `sent` is told as they go. Refused ends it midway."""
    total, waiting = 0, list[Words]()
    for command in commands_of(dataset, cells):
        waiting.append(command)
        if len(waiting) >= COMMANDS_AT_A_TIME:
            total += sum(link.pipeline(waiting))
            waiting = []
            sent(total)
    return total + (sum(link.pipeline(waiting)) if waiting else 0)


def send_at_once(link: Link, dataset: bytes, cells: Iterable[ImportedCell]) -> int:
    """As send(), as one transaction: all cells, or none. For not too many."""
    commands = list(commands_of(dataset, cells))
    if not commands:
        return 0
    link.call(b"MULTI")
    try:
        link.pipeline(commands)
    except BaseException:
        link.call(b"DISCARD")
        raise
    replies: list[int] = link.call(b"EXEC")
    return sum(replies)


def commands_of(dataset: bytes, cells: Iterable[ImportedCell]) -> Iterator[Words]:
    """WCMPUT commands: neighbours with one expiry share one.

    Cells that differ in nothing but their sequence are one cell to a command: of neighbours, the
    first is the newest and is taken.
    """
    words: list[bytes | int] = []
    expiry: int | None = None
    place: tuple[bytes, bytes, int] | None = None
    stamped = False
    room, size = CELLS_A_COMMAND, 0
    for row, column, timestamp, sequence, value, expires in cells:
        same = place == (row, column, timestamp) and stamped
        place, stamped = (row, column, timestamp), sequence > 0
        if same:
            continue
        if words and (expires != expiry or room <= 0 or size >= BYTES_A_COMMAND):
            yield words
            words = []
        if not words:
            words = [b"WCMPUT", dataset]
            words += [] if expires is None else [b"PXAT", max(1, expires)]
            expiry, room, size = expires, CELLS_A_COMMAND, 0
        words += (row, timestamp, column, value)
        room -= 1
        size += len(row) + len(column) + len(value)
    if words:
        yield words
