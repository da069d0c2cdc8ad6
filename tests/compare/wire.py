"""A raw connection that keeps the type of each reply exactly as it came: RESP2 and RESP3.

No client library does: hiredis, for one, gives a status and a bulk string as the same bytes.
`Reply` is one reply; `str(reply)` shows it on one line, which is what reports print and what
differences.py writes down. Knows nothing of commands.
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from typing import BinaryIO, Self

_LINES = {
    b"+": "status",
    b"-": "error",
    b":": "integer",
    b",": "double",
    b"(": "big number",
    b"#": "boolean",
}
_TEXTS = {b"$": "bulk", b"=": "verbatim", b"!": "bulk error"}
_LISTS = {b"*": "array", b"~": "set", b">": "push"}
_MAPS = {b"%": "map", b"|": "attribute"}
_MARKS = {kind: mark.decode() for mark, kind in (_LINES | _TEXTS | _LISTS | _MAPS).items()}


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply. `value` is the text, or the elements; a map's keys and values alternate.

    A null is of the kind it was sent as: "null" (RESP3), "null bulk" or "null array". What is no
    reply of the protocol is a kind too: "silence", where one was awaited and none came in time,
    and "end", where the server closed the connection.
    """

    kind: str
    value: bytes | tuple[Reply, ...] = b""

    @property
    def text(self) -> bytes:
        """The bytes of a text; none of a list."""
        return self.value if isinstance(self.value, bytes) else b""

    @property
    def elements(self) -> tuple[Reply, ...]:
        """The elements of a list; none of a text."""
        return self.value if isinstance(self.value, tuple) else ()

    @property
    def pairs(self) -> tuple[tuple[Reply, Reply], ...]:
        """The pairs of a map, or of the array that RESP2 has for it."""
        return tuple(zip(self.elements[::2], self.elements[1::2], strict=True))

    def __str__(self) -> str:
        mark = _MARKS.get(self.kind, f"<{self.kind}>")
        if isinstance(self.value, tuple):
            return f"{mark}[{', '.join(str(element) for element in self.value)}]"
        shown = self.value.decode("latin-1")
        quoted = self.kind in _TEXTS.values() or not shown.isprintable()
        return mark + (repr(shown) if quoted else shown)


SILENCE = Reply("silence")
END = Reply("end")


class Wire:
    """A TCP connection to a server on loopback."""

    def __init__(self, port: int, patience_seconds: float) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file: BinaryIO = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    @property
    def address(self) -> str:
        """This side's address, as CLIENT LIST shows it."""
        host, port = self.socket.getsockname()
        return f"{host}:{port}"

    @property
    def server_address(self) -> str:
        host, port = self.socket.getpeername()
        return f"{host}:{port}"

    def send(self, data: bytes) -> None:
        """Send. That the server has closed already shows at the next read."""
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(data)

    def call(self, *words: bytes | str) -> Reply:
        """Send a command and read one reply."""
        self.send(encode([word if isinstance(word, bytes) else word.encode() for word in words]))
        return self.read()

    def read(self) -> Reply:
        """The next reply; SILENCE or END where there is none. After SILENCE, read no more."""
        try:
            return self._read()
        except TimeoutError:
            return SILENCE
        except (ConnectionError, EOFError):
            return END

    def read_to_end(self, last: bytes | None = None) -> tuple[Reply, ...]:
        """All replies until this one, or until the server closes, END among them; SILENCE if it
        does not."""
        replies = [self.read()]
        stops = {SILENCE, END} | ({Reply("bulk", last)} if last is not None else set())
        while replies[-1] not in stops:
            replies.append(self.read())
        return tuple(replies)

    def finish(self) -> tuple[Reply, ...]:
        """What the server had still to say, once it is told that no more commands come."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        return self.read_to_end()[:-1]

    def _read(self) -> Reply:
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError
        mark, rest = line[:1], line[1:-2]
        if mark == b"_":
            return Reply("null")
        if mark in _LINES:
            return Reply(_LINES[mark], rest)
        if rest == b"-1":
            return Reply("null bulk" if mark in _TEXTS else "null array")
        if mark in _TEXTS:
            return Reply(_TEXTS[mark], self._exactly(int(rest) + 2)[:-2])
        if mark in _LISTS:
            return Reply(_LISTS[mark], tuple(self._read() for _ in range(int(rest))))
        if mark in _MAPS:
            return Reply(_MAPS[mark], tuple(self._read() for _ in range(2 * int(rest))))
        raise ValueError(f"not a reply: {line!r}")

    def _exactly(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError
        return data


def encode(words: list[bytes]) -> bytes:
    """A command as an array of bulk strings."""
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%b\r\n" % (len(word), word) for word in words
    )
