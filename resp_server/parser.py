"""Bytes from a client -> commands, each a list of bytes. No I/O.

hiredis does the work; it was made for replies, so what it would swallow is caught around it:
a header that announces more than the limits is found before hiredis sees it (it would make room
for it at once), inline commands are read here, and everything that is not an array of bulk strings
is refused.

`feed` bytes, then `take` commands until there are none. Where the input is split never matters: a
header that the end of a chunk cuts is held back until its end has come. A ProtocolError is final.
"""

from __future__ import annotations

import re
from collections import deque

import hiredis

MAX_MULTIBULK = 1_048_576
MAX_INLINE_BYTES = 64 * 1024

_LARGE_HEADER = re.compile(rb"\n[*$][0-9]{7}")
_HEADER = re.compile(rb"([*$])([0-9]{7,})")
_MAX_DIGITS = 19
_CUT_HEADER = re.compile(rb"(?:\A|\n)([*$][0-9]{0,32}\r?)\Z")
_CUT_HEADER_BYTES = 36
_INCOMPLETE = object()
_ESCAPES = {ord("n"): 10, ord("r"): 13, ord("t"): 9, ord("b"): 8, ord("a"): 7}
_HEX_BYTE = re.compile(rb"x[0-9a-fA-F]{2}")


class ProtocolError(Exception):
    """The client's bytes are no RESP; the text is what Redis would say."""


class CommandParser:
    """One client's parser. `max_bulk_bytes` bounds an argument, `max_buffer_bytes` a command."""

    __slots__ = (
        "_between_commands",
        "_buffered",
        "_error",
        "_held",
        "_inline",
        "_max_buffer",
        "_max_bulk",
        "_reader",
        "_waiting",
    )

    def __init__(self, max_bulk_bytes: int, max_buffer_bytes: int) -> None:
        self._max_bulk = max_bulk_bytes
        self._max_buffer = max_buffer_bytes
        self._reader = hiredis.Reader(notEnoughData=_INCOMPLETE, replyError=_WrongType)
        self._waiting: deque[bytes] = deque()
        """Chunks that hiredis has not been given yet."""
        self._held = b""
        """The end of the last chunk, if it may be a header cut in two."""
        self._inline = b""
        """An inline command whose end has not come."""
        self._error: ProtocolError | None = None
        self._between_commands = True
        """Whether the next byte for hiredis begins a command."""
        self._buffered = 0
        """Bytes given to hiredis since a command came out of it."""

    def feed(self, chunk: bytes) -> None:
        if self._held:
            chunk, self._held = self._held + chunk, b""
        if chunk[-1:] != b"\n":
            cut = _CUT_HEADER.search(chunk, max(0, len(chunk) - _CUT_HEADER_BYTES))
            if cut is not None:
                self._held = cut.group(1)
                chunk = chunk[: cut.start(1)]
        if chunk:
            self._waiting.append(chunk)

    def take(self, most: int) -> list[list[bytes]]:
        """The next commands, none of them empty, at most `most`; none when more bytes are needed.

        A ProtocolError is raised once the commands before it are taken.
        """
        commands: list[list[bytes]] = []
        try:
            while len(commands) < most and self._more(commands, most):
                pass
        except ProtocolError as error:
            self._error = error
        if self._error is not None and not commands:
            raise self._error
        return commands

    def _more(self, commands: list[list[bytes]], most: int) -> bool:
        """Take what hiredis holds, then give it the next chunk; False when there is none."""
        try:
            full = self._drain(commands, most)
        except ProtocolError:
            raise
        except Exception as error:  # whatever hiredis raises, the client's bytes caused
            text = str(error).removeprefix("Protocol error").lstrip(":, ")
            raise ProtocolError(f"Protocol error: {text or type(error).__name__}") from None
        if full:
            return True
        if not self._waiting or self._error is not None:
            return False
        if self._between_commands and self._waiting[0][:1] != b"*":
            words = self._take_inline()
            if words:
                commands.append(words)
            return words is not None
        self._give_chunk(len(commands) > 0)
        return True

    def _drain(self, commands: list[list[bytes]], most: int) -> bool:
        """Take the commands that hiredis has in full; True when there are enough of them."""
        has_data, parse = self._reader.has_data, self._reader.gets
        while has_data() or not self._between_commands:
            command = parse()
            if type(command) is list:
                for word in command:
                    if type(word) is not bytes:
                        raise ProtocolError("Protocol error: expected '$'")
                if command:
                    commands.append(command)
            elif command is _INCOMPLETE:
                self._between_commands = False
                return False
            elif command is not None:
                raise ProtocolError("Protocol error: expected '*'")
            self._between_commands = True
            if len(commands) == most:
                return True
        return False

    def _give_chunk(self, progress: bool) -> None:
        """Give hiredis the next chunk, or the part of it before a header that is too large."""
        chunk = self._waiting.popleft()
        start = self._large_header(chunk)
        if start == 0:
            # hiredis holds nothing: it waits for a header. Holding something, it is inside data.
            if not self._reader.has_data():
                raise ProtocolError(_LENGTH_ERRORS[chunk[:1]])
            start = self._large_header(chunk, 1)
        if start > 0:
            self._waiting.appendleft(chunk[start:])
            chunk = chunk[:start]
        self._buffered = len(chunk) + (0 if progress else self._buffered)
        if self._buffered > self._max_buffer:
            raise ProtocolError("Protocol error: too large a command")
        self._reader.feed(chunk)

    def _large_header(self, chunk: bytes, start: int = 0) -> int:
        """Where a header, or data that looks like one, announces too much; -1 if nowhere."""
        if start == 0 and self._too_large(_HEADER.match(chunk)):
            return 0
        for found in _LARGE_HEADER.finditer(chunk, start):
            if self._too_large(_HEADER.match(chunk, found.start() + 1)):
                return found.start() + 1
        return -1

    def _too_large(self, header: re.Match[bytes] | None) -> bool:
        if header is None:
            return False
        limit = MAX_MULTIBULK if header.group(1) == b"*" else self._max_bulk
        return len(header.group(2)) > _MAX_DIGITS or int(header.group(2)) > limit

    def _take_inline(self) -> list[bytes] | None:
        """The words of an inline command; None when its line has not ended yet."""
        chunk = self._inline + self._waiting.popleft()
        end = chunk.find(b"\n")
        if end > MAX_INLINE_BYTES or (end < 0 and len(chunk) > MAX_INLINE_BYTES):
            raise ProtocolError("Protocol error: too big inline request")
        if end < 0:
            self._inline = chunk
            return self._take_inline() if self._waiting else None
        self._inline = b""
        if end + 1 < len(chunk):
            self._waiting.appendleft(chunk[end + 1 :])
        return split_inline(chunk[:end].removesuffix(b"\r"))


_LENGTH_ERRORS = {
    b"*": "Protocol error: invalid multibulk length",
    b"$": "Protocol error: invalid bulk length",
}


class _WrongType(Exception):
    """What hiredis makes of `-text`, which no client sends as an argument."""


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
    while index < len(line) and not line[index : index + 1].isspace():
        quote = line[index : index + 1]
        if quote not in (b'"', b"'"):
            word.append(line[index])
            index += 1
            continue
        index = _take_quoted(line, index + 1, quote, word)
        if index < len(line) and not line[index : index + 1].isspace():
            raise ProtocolError("Protocol error: unbalanced quotes in request")
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
    raise ProtocolError("Protocol error: unbalanced quotes in request")


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
