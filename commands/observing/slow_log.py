"""The slow log: the last calls that took longer than a limit, in Redis's form.

Whoever runs commands compares with `limit_seconds` and calls add() for what took that long. Nothing
in here is a password, and no entry holds much of what a client sent.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from commands.observing.redaction import name_of, redacted

MOST_WORDS = 32
MOST_WORD_BYTES = 128


@dataclass(frozen=True, slots=True)
class SlowCall:
    """One entry."""

    identifier: int
    unix_seconds: int
    microseconds: int
    words: list[bytes]
    """Shortened, and without passwords."""
    address: str
    client_name: bytes


class SlowLog:
    """The newest first. Limits are settable at any time."""

    def __init__(self, slower_than_us: int = 10_000, most: int = 128) -> None:
        self.most = most
        """How many entries are kept; a lower number is felt when the next one comes."""
        self.entries: deque[SlowCall] = deque()
        self.limit_seconds = 0.0
        """A call that took this long or longer is to be added; the hot path compares with it."""
        self._next_identifier = 0
        self.slower_than_us = slower_than_us

    @property
    def slower_than_us(self) -> int:
        """Negative: nothing is logged; 0: everything."""
        return self._slower_than_us

    @slower_than_us.setter
    def slower_than_us(self, microseconds: int) -> None:
        self._slower_than_us = microseconds
        self.limit_seconds = math.inf if microseconds < 0 else microseconds / 1e6

    def add(
        self, words: list[bytes], seconds: float, unix_seconds: int, address: str, name: bytes
    ) -> None:
        """Log a call, words and all as they came, if it took as long as the limit."""
        if seconds < self.limit_seconds:
            return
        shown = shortened(redacted(name_of(words), words))
        self.entries.appendleft(
            SlowCall(self._next_identifier, unix_seconds, int(seconds * 1e6), shown, address, name)
        )
        self._next_identifier += 1
        while len(self.entries) > self.most:
            self.entries.pop()

    def reset(self) -> None:
        """Forget all entries; numbers go on."""
        self.entries.clear()


def shortened(words: list[bytes]) -> list[bytes]:
    """At most 32 words, at most 128 bytes of each; what is left out is told in Redis's form."""
    if len(words) > MOST_WORDS:
        kept = words[: MOST_WORDS - 1]
        more = b"... (%d more arguments)" % (len(words) - len(kept))
        return [*map(_shortened_word, kept), more]
    return [_shortened_word(word) for word in words]


def _shortened_word(word: bytes) -> bytes:
    if len(word) <= MOST_WORD_BYTES:
        return word
    return word[:MOST_WORD_BYTES] + b"... (%d more bytes)" % (len(word) - MOST_WORD_BYTES)
