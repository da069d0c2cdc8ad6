"""Bytes -> choices: how a target that wants numbers and options reads them out of its input.

Where the bytes are at an end, everything is 0 and empty: every input is a whole one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Taken from the front, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def take(self, size: int) -> bytes:
        """The next ones; fewer at the end."""
        taken = self._data[self._place : self._place + size]
        self._place += len(taken)
        return taken

    def number(self, size: int = 1) -> int:
        """One of so many bytes."""
        return int.from_bytes(self.take(size), "big")

    def flag(self) -> bool:
        return self.number() % 2 == 1

    def pick(self, values: Sequence[T]) -> T:
        return values[self.number() % len(values)]

    def short(self) -> bytes:
        """Bytes with their number, up to 255, in front of them."""
        return self.take(self.number())

    def maybe_short(self) -> bytes | None:
        return self.short() if self.flag() else None

    def rest(self) -> bytes:
        return self.take(len(self._data))
