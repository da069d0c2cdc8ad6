"""Values whose type in the protocol says more than their Python type does.

A handler returns int, bytes (a bulk string), None, list or tuple (an array), dict (a map), or one
of these. resp_server.reply writes them; nothing here knows how.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Status(bytes):
    """A status line, like OK: a word of the server's own."""

    __slots__ = ()


class Verbatim(bytes):
    """A text for people, like INFO's, which RESP3 marks as such."""

    __slots__ = ()


class Flags(list[Any]):
    """Values without order, mostly words: a set in RESP3, an array in RESP2."""

    __slots__ = ()


class Push(tuple[Any, ...]):
    """A message out of turn: a push in RESP3, an array in RESP2."""

    __slots__ = ()


class Messages(list[Any]):
    """Any number of values instead of one reply: the pushes of SUBSCRIBE; none at all for CLIENT
    REPLY SKIP."""

    __slots__ = ()


class Failure:
    """An error as a value, for one that stands inside EXEC's reply."""

    __slots__ = ("code", "text")

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        self.text = text


class Written:
    """A reply as it is sent, written before."""

    __slots__ = ("encoded",)

    def __init__(self, encoded: bytes) -> None:
        self.encoded = encoded


class AllWritten(list[bytes]):
    """Replies to calls that stand one after another, each written before."""

    __slots__ = ()


class Kept:
    """A reply that may be given again: `keep` is told how it was written.

    It holds integers, strings and arrays, which both versions of the protocol write alike.
    """

    __slots__ = ("keep", "value")

    def __init__(self, value: Reply, keep: Callable[[bytes], None]) -> None:
        self.value = value
        self.keep = keep


class NullArray:
    """The absence of an array, which RESP2 tells apart from that of a string."""

    __slots__ = ()


OK = Status(b"OK")
PONG = Status(b"PONG")
RESET = Status(b"RESET")
QUEUED = Status(b"QUEUED")
NO_REPLY = Messages()
NULL_ARRAY = NullArray()

Reply = Any
"""What a handler returns: see the top of this module. Any, because it nests without end."""
