"""Values whose type in the protocol says more than their Python type does.

A handler returns int, bytes (a bulk string), None, list or tuple (an array), dict (a map), or one
of these. resp_server.reply writes them; nothing here knows how.
"""

from __future__ import annotations

from typing import Any


class Status(bytes):
    """A status line, like OK: a word of the server's own."""

    __slots__ = ()


class Verbatim(bytes):
    """A text for people, like INFO's, which RESP3 marks as such."""

    __slots__ = ()


class Flags(list[bytes]):
    """Words without order: a set in RESP3, an array in RESP2."""

    __slots__ = ()


OK = Status(b"OK")
PONG = Status(b"PONG")
RESET = Status(b"RESET")

Reply = Any
"""What a handler returns: see the top of this module. Any, because it nests without end."""
