"""A client's bytes -> commands, byte for byte as Redis reads them: slow, exact, in plain Python.

It takes over a connection for good where hiredis, made for replies, does not do: inline commands,
and anything that is wrong or merely unusual. Errors have Redis's texts. No I/O.
"""

from __future__ import annotations

import re

from storage.integers import parse_integer

MAX_MULTIBULK = 1_048_576
MAX_LINE_BYTES = 64 * 1024
RESTRICTED_WORDS = 10
RESTRICTED_BYTES = 16_384
"""What Redis takes from a client that has to log in: words in a command, bytes in a word."""

_ESCAPES = {ord("n"): 10, ord("r"): 13, ord("t"): 9, ord("b"): 8, ord("a"): 7}
_WORD_ENDS = b" \n\r\t\x00"
"""Redis passes over more kinds of space between words, but ends a word at these alone."""
_HEX_BYTE = re.compile(rb"x[0-9a-fA-F]{2}")


class ProtocolError(Exception):
    """The client's bytes are no commands; the text is what Redis would say. It is final."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Protocol error: {text}")


class CarefulParser:
    """Feed bytes, then call `next` until it returns None."""

    __slots__ = (
        "_buffer",
        "_gathered",
        "_length",
        "_missing",
        "_position",
        "_words",
        "max_bulk_bytes",
        "restricted",
    )

    def __init__(self, max_bulk_bytes: int, *, restricted: bool = False) -> None:
        self.max_bulk_bytes = max_bulk_bytes
        self.restricted = restricted
        """Whether it takes only what a client needs to log in."""
        self._buffer = bytearray()
        self._position = 0
        self._missing = 0
        """Arguments still to come of the command that has begun."""
        self._length: int | None = None
        """The length of the next argument, once its header is read."""
        self._words: list[bytes] = []
        self._gathered = 0
        """Bytes of the command that has begun, without its headers."""

    def feed(self, chunk: bytes) -> None:
        del self._buffer[: self._position]
        self._position = 0
        self._buffer += chunk

    @property
    def _unread(self) -> int:
        return len(self._buffer) - self._position

    @property
    def is_between_commands(self) -> bool:
        """Whether the next byte begins a command."""
        return not (self._missing or self._unread)

    @property
    def buffered(self) -> int:
        """What it holds of a command that is not complete."""
        return self._unread + self._gathered

    @property
    def waits_for_line(self) -> bool:
        """Whether it holds the beginning of a header or inline command, without the line's end."""
        return self._length is None and self._unread > 0

    def next(self) -> list[bytes] | None:
        """The next command, never empty; None when more bytes are needed."""
        while True:
            if not self._missing:
                if not self._unread:
                    return None
                if self._buffer[self._position] != ord("*"):
                    line = self._take_line("too big inline request")
                    words = None if line is None else split_inline(line.removesuffix(b"\r"))
                    if words or words is None:
                        return words
                    continue
                line = self._take_header("too big mbulk count string")
                if line is None:
                    return None
                count = _count(line[1:], MAX_MULTIBULK, "invalid multibulk length")
                if self.restricted and count > RESTRICTED_WORDS:
                    raise ProtocolError("unauthenticated multibulk length")
                self._missing = max(0, count)
                self._words = []
            while self._missing:
                if not self._take_argument():
                    return None
            self._gathered = 0
            if self._words:
                return self._words

    def _take_argument(self) -> bool:
        """Read one more argument of the command; False when it is not here in full."""
        if self._length is None:
            line = self._take_header("too big bulk count string")
            if line is None:
                return False
            if line[:1] != b"$":
                raise ProtocolError(f"expected '$', got '{line[:1].decode('latin-1')}'")
            length = _count(line[1:], self.max_bulk_bytes, "invalid bulk length")
            if length < 0:
                raise ProtocolError("invalid bulk length")
            if self.restricted and length > RESTRICTED_BYTES:
                raise ProtocolError("unauthenticated bulk length")
            self._length = length
        if self._unread < self._length + 2:
            return False
        end = self._position + self._length
        self._words.append(bytes(self._buffer[self._position : end]))
        self._position = end + 2
        self._gathered += self._length
        self._length = None
        self._missing -= 1
        return True

    def _take_header(self, too_long: str) -> bytes | None:
        """Up to the next carriage return, which some other byte follows, as Redis has it."""
        end = self._buffer.find(b"\r", self._position, self._position + MAX_LINE_BYTES + 1)
        if end < 0 and self._unread > MAX_LINE_BYTES:
            raise ProtocolError(too_long)
        if end < 0 or end + 1 == len(self._buffer):
            return None
        line = bytes(self._buffer[self._position : end])
        self._position = end + 2
        return line

    def _take_line(self, too_long: str) -> bytes | None:
        """Up to the next line feed, without it; None when it has not come yet."""
        end = self._buffer.find(b"\n", self._position, self._position + MAX_LINE_BYTES + 1)
        if end < 0:
            if self._unread > MAX_LINE_BYTES:
                raise ProtocolError(too_long)
            return None
        line = bytes(self._buffer[self._position : end])
        self._position = end + 1
        return line


def _count(text: bytes, most: int, wrong: str) -> int:
    value = parse_integer(text)
    if value is None or value > most:
        raise ProtocolError(wrong)
    return value


def split_inline(line: bytes) -> list[bytes]:
    """The words of a line as Redis splits it: quotes, and escapes inside double quotes."""
    words: list[bytes] = []
    index = 0
    while True:
        while line[index : index + 1].isspace() or line[index : index + 1] == b"\x00":
            index += 1
        if index >= len(line):
            return words
        word, index = _take_word(line, index)
        words.append(word)


def _take_word(line: bytes, index: int) -> tuple[bytes, int]:
    word = bytearray()
    while index < len(line) and line[index] not in _WORD_ENDS:
        quote = line[index : index + 1]
        if quote not in (b'"', b"'"):
            word.append(line[index])
            index += 1
            continue
        index = _take_quoted(line, index + 1, quote, word)
        if index < len(line) and not line[index : index + 1].isspace():
            raise ProtocolError("unbalanced quotes in request")
        break
    return bytes(word), index


def _take_quoted(line: bytes, index: int, quote: bytes, word: bytearray) -> int:
    """Append what stands before the closing quote; return where the line goes on after it."""
    while index < len(line):
        byte = line[index : index + 1]
        if byte == quote:
            return index + 1
        if byte == b"\\" and index + 1 < len(line):
            index += _take_escape(line, index + 1, quote, word) + 1
            continue
        word += byte
        index += 1
    raise ProtocolError("unbalanced quotes in request")


def _take_escape(line: bytes, index: int, quote: bytes, word: bytearray) -> int:
    """Append what the escape stands for; return how many bytes follow the backslash."""
    if quote == b"'":
        if line[index : index + 1] == b"'":
            word += b"'"
            return 1
        word += b"\\"
        return 0
    if _HEX_BYTE.match(line, index):
        word.append(int(line[index + 1 : index + 3], 16))
        return 3
    word.append(_ESCAPES.get(line[index], line[index]))
    return 1
