"""The group: all writes since the last commit, of all clients, on their way to the log as one.

It keeps operations, not a batch, because a batch is used up by a failed attempt. It also knows
which rows they touch, so that a read of such a row commits first. Knows nothing of commands or of
who waits for the commit.
"""

from __future__ import annotations

from collections.abc import Iterable

from storage.embedded.ordered import Operation

MAX_OPERATIONS = 20_000
"""A larger group is committed at once: one batch holds the interpreter for as long as it takes."""


class Group:
    """Operations in order, and the row prefixes they touch by dataset name."""

    __slots__ = ("_rows", "operations")

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._rows: dict[bytes, set[bytes]] = {}

    def rows_of(self, dataset: bytes) -> set[bytes]:
        """The touched rows of a dataset, for adding to: their prefixes."""
        rows = self._rows.get(dataset)
        if rows is None:
            rows = self._rows[dataset] = set()
        return rows

    def touches(self, dataset: bytes, prefixes: Iterable[bytes]) -> bool:
        """Whether any of these rows waits for the commit."""
        rows = self._rows.get(dataset)
        return rows is not None and not rows.isdisjoint(prefixes)

    def touches_dataset(self, dataset: bytes) -> bool:
        return dataset in self._rows

    def clear(self) -> None:
        self.operations = []
        self._rows = {}
