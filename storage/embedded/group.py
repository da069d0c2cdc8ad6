"""The group: all writes since the last commit, of all clients, on their way to the log as one.

It keeps operations, not a batch, because a batch is used up by a failed attempt. It also knows
which rows they touch, so that a read of such a row commits first or, within a transaction, reads
through the group. Knows nothing of commands or of who waits for the commit.
"""

from __future__ import annotations

from storage.embedded.ordered import Family, Operation
from storage.embedded.overlay import Overlay

MAX_OPERATIONS = 5_000
"""A larger group is committed at once, if no transaction is open: one batch holds the interpreter
for as long as it takes."""

ALL_ROWS = b""
"""Among touched row prefixes: every row is touched. No row's prefix is empty."""


class Group:
    """Operations in order, and the sets of row prefixes that they touch, one a dataset."""

    __slots__ = ("_bytes", "_counted", "_overlaid", "_overlays", "operations", "touched")

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.touched: list[set[bytes]] = []
        """Owned by the datasets (Dataset.waiting_rows); cleared with the group."""
        self._overlays: dict[Family, Overlay] = {}
        self._overlaid = 0
        """How many of the operations the overlays have taken."""
        self._counted = self._bytes = 0

    def view(self, family: Family) -> Family:
        """The family with the operations of the group on top, until the next of them comes."""
        if self._overlaid < len(self.operations):
            overlays = self._overlays
            for kind, target, first, second in self.operations[self._overlaid :]:
                overlay = overlays.get(target)
                if overlay is None:
                    overlay = overlays[target] = Overlay(target)
                overlay.apply(kind, first, second)
            self._overlaid = len(self.operations)
        return self._overlays.get(family, family)

    def count_bytes(self) -> int:
        """The size of all keys and values in it. Costs what came since it was asked last."""
        for _, _, first, second in self.operations[self._counted :]:
            self._bytes += len(first) + len(second)
        self._counted = len(self.operations)
        return self._bytes

    def clear(self) -> None:
        self.operations = []
        self._counted = self._bytes = 0
        for rows in self.touched:
            rows.clear()
        self.touched.clear()
        if self._overlaid:
            self._overlays = {}
            self._overlaid = 0
