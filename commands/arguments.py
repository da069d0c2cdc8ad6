"""Reading arguments: a cursor with a small vocabulary, and the numbers of the protocol.

Every function raises the error the user reads; none of them looks at the store. `Arguments` goes
over the words after the fixed ones; handlers say what may come, in any order or in a fixed one.
"""

from __future__ import annotations

from collections.abc import Callable

from commands.errors import InvalidExpireTime, InvalidTimestamp, NotAnInteger, SyntaxProblem
from storage.integers import MAX_INTEGER, parse_integer
from storage.model import MAX_TIMESTAMP, TimeRange

EXPIRY_KEYWORDS = frozenset((b"EX", b"PX", b"EXAT", b"PXAT"))


class Arguments:
    """The words of a command from `start` on, taken one after another."""

    __slots__ = ("_index", "_words")

    def __init__(self, words: list[bytes], start: int) -> None:
        self._words = words
        self._index = start

    @property
    def left(self) -> int:
        return max(0, len(self._words) - self._index)

    def take(self) -> bytes:
        """The next word; SyntaxProblem when there is none."""
        if self._index >= len(self._words):
            raise SyntaxProblem
        word = self._words[self._index]
        self._index += 1
        return word

    def take_keyword(self) -> bytes:
        """The next word in upper case, for comparing with keywords."""
        return self.take().upper()

    def take_integer(self, least: int, most: int = MAX_INTEGER) -> int:
        return integer(self.take(), least, most)

    def take_counted(self) -> list[bytes]:
        """`n word [word ...]`: the n words. SyntaxProblem when there are fewer."""
        count = self.take_integer(1)
        if count > self.left:
            raise SyntaxProblem
        words = self._words[self._index : self._index + count]
        self._index += count
        return words

    def expect_end(self) -> None:
        if self.left:
            raise SyntaxProblem


Option = Callable[[Arguments], None]


def takes_nothing(_arguments: Arguments) -> None:
    """The option that is a flag: it is its own value."""


def take_options(arguments: Arguments, options: dict[bytes, Option]) -> set[bytes]:
    """Read keywords in any order until the end, each at most once; return those that came."""
    seen: set[bytes] = set()
    while arguments.left:
        keyword = arguments.take_keyword()
        option = options.get(keyword)
        if option is None or keyword in seen:
            raise SyntaxProblem
        seen.add(keyword)
        option(arguments)
    return seen


def integer(word: bytes, least: int, most: int = MAX_INTEGER) -> int:
    """A signed 64-bit integer within bounds; NotAnInteger otherwise."""
    value = parse_integer(word)
    if value is None or not least <= value <= most:
        raise NotAnInteger
    return value


def timestamp(word: bytes) -> int:
    """Milliseconds, 0..2^63-1; InvalidTimestamp otherwise."""
    value = parse_integer(word)
    if value is None or value < 0:
        raise InvalidTimestamp
    return value


def timestamp_or_clock(word: bytes) -> int | None:
    """As timestamp(); None for `*`, the server's clock."""
    return None if word == b"*" else timestamp(word)


def time_range(arguments: Arguments) -> TimeRange:
    """`start end`, inclusive; `-` and `+` are the ends of time."""
    return TimeRange(_end_of_range(arguments.take()), _end_of_range(arguments.take()))


def _end_of_range(word: bytes) -> int:
    if word == b"-":
        return 0
    return MAX_TIMESTAMP if word == b"+" else timestamp(word)


def expiry(keyword: bytes, word: bytes, now: int, command: str) -> int:
    """The moment (Unix ms) that EX, PX, EXAT or PXAT names; `now` is the server's clock."""
    value = integer(word, -(2**63))
    moment = value * 1000 if keyword in (b"EX", b"EXAT") else value
    if keyword in (b"EX", b"PX"):
        moment += now
    if value <= 0 or moment > MAX_TIMESTAMP:
        raise InvalidExpireTime(command)
    return moment
