"""The group: all writes since the last commit, of all clients, on their way to the log as one.

It keeps operations, not a batch, because a batch is used up by a failed attempt. It also knows
which rows they touch, so that a read of such a row commits first. Knows nothing of commands or of
who waits for the commit.
"""

from __future__ import annotations

from storage.embedded.ordered import Operation

MAX_OPERATIONS = 20_000
"""A larger group is committed at once: one batch holds the interpreter for as long as it takes."""


class Group:
    """Operations in order, and the sets of row prefixes that they touch, one a dataset."""

    __slots__ = ("operations", "touched")

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.touched: list[set[bytes]] = []
        """Owned by the datasets (Dataset.waiting_rows); cleared with the group."""

    def clear(self) -> None:
        self.operations = []
        for rows in self.touched:
            rows.clear()
        self.touched.clear()
