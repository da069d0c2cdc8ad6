"""Bytes from a client -> commands, each a list of bytes. No I/O.

Commands that a chunk holds as a whole are taken from it by scanning.py, where that is compiled.
hiredis does the rest as long as the bytes are what they should be. It was made for replies, so what
it would swallow is caught around it:

- A chunk that begins between two commands is given to it as it is. If it does not begin like a
  command, or ends inside one and holds anything suspicious (a header that announces too much, a
  type that no client sends), or if hiredis cannot read on, then CarefulParser reads again from the
  last place known to lie between two commands, less what was taken since, and reads this
  connection from then on.
- In a chunk that begins inside a command each suspicious place is looked at when hiredis has got
  all before it: unfinished data it holds back, so if it holds nothing, the place is a header, and
  not part of somebody's data.

`feed` bytes, then `take` commands. A header that the end of a chunk cuts is held back until its end
has come, so that it is always seen in one piece.
"""

from __future__ import annotations

import re
from collections import deque

import hiredis

from resp_server.careful import MAX_MULTIBULK, CarefulParser, ProtocolError
from resp_server.scanning import find_suspicious, holds_huge_collection, take_whole

_COMMAND_START = re.compile(rb"\*([0-9]{1,7})\r\n")
_HEADER = re.compile(rb"([*$])([0-9]{1,19})\r\n")
MAX_HISTORY_BYTES = 1024 * 1024
"""How much is kept for reading it again. Beyond it, what hiredis cannot read is a final error."""
_CUT_HEADER = re.compile(rb"([*$%~>|][0-9]{0,32}\r?)\Z")
_CUT_HEADER_BYTES = 36
_INCOMPLETE = object()


class CommandParser:
    """One client's parser. `max_bulk_bytes` bounds an argument, `max_buffer_bytes` a command."""

    __slots__ = (
        "_between_commands",
        "_buffered",
        "_careful",
        "_error",
        "_held",
        "_history",
        "_history_bytes",
        "_incomplete",
        "_last",
        "_max_buffer",
        "_max_bulk",
        "_reader",
        "_restricted",
        "_taken",
        "_waiting",
    )

    def __init__(self, max_bulk_bytes: int, max_buffer_bytes: int) -> None:
        self._max_bulk = max_bulk_bytes
        self._max_buffer = max_buffer_bytes
        self._reader = hiredis.Reader(notEnoughData=_INCOMPLETE, replyError=_Refused)
        self._careful: CarefulParser | None = None
        """Reads this connection once something unusual has come."""
        self._waiting: deque[bytes] = deque()
        """Chunks that were not given to hiredis yet."""
        self._held = b""
        """The end of the last chunk, if it may be a header cut in two."""
        self._history: list[bytes] | None = None
        """What hiredis was given since a chunk began between two commands."""
        self._history_bytes = 0
        self._taken = 0
        """Commands taken from that."""
        self._last: list[bytes] = []
        """The last one of them."""
        self._incomplete: bytes | None = None
        """The chunk that began there, until it was found to end inside a command."""
        self._between_commands = True
        """Whether the next byte for hiredis begins a command."""
        self._buffered = 0
        """Bytes given to hiredis since a command came out of it."""
        self._error: ProtocolError | None = None
        self._restricted = False
        """Whether the connection is read carefully only because it was restricted."""

    def restrict(self) -> None:
        """Of a new connection: it may send small commands only, until lift()."""
        self._restricted = True
        self._careful = CarefulParser(self._max_bulk, restricted=True)

    def lift(self) -> None:
        """From the next command on it may send anything; between two commands hiredis goes on."""
        if self._careful is not None:
            self._careful.restricted = False

    def limit(self, max_bulk_bytes: int, max_buffer_bytes: int) -> None:
        """Other limits than at first, for what comes next."""
        self._max_bulk, self._max_buffer = max_bulk_bytes, max_buffer_bytes
        if self._careful is not None:
            self._careful.max_bulk_bytes = max_bulk_bytes

    @property
    def failed(self) -> bool:
        """Whether the next take() raises."""
        return self._error is not None

    @property
    def buffered(self) -> int:
        """Bytes that came and are in no command taken yet, about."""
        waiting = sum(map(len, self._waiting)) + len(self._held)
        return waiting + (self._buffered if self._careful is None else self._careful.buffered)

    def feed(self, chunk: bytes) -> None:
        if self._held:
            chunk, self._held = self._held + chunk, b""
        if self._careful is None and chunk[-1:] != b"\n":
            cut = _CUT_HEADER.search(chunk, max(0, len(chunk) - _CUT_HEADER_BYTES))
            if cut is not None:
                self._held = cut.group(1)
                chunk = chunk[: cut.start(1)]
        if chunk:
            self._waiting.append(chunk)

    def take(self, most: int) -> list[list[bytes]]:
        """The next commands, none of them empty; fewer than `most` when more bytes are needed.

        A ProtocolError is raised once the commands before it are taken, and from then on.
        """
        commands = self._take_whole(most)
        if commands and not self._waiting:
            return commands
        try:
            while self._error is None and len(commands) < most:
                if self._careful is not None:
                    more = self._take_carefully(self._careful, commands, most)
                else:
                    more = self._take_quickly(commands, most)
                if not more:
                    break
        except ProtocolError as error:
            self._error = error
        if self._error is not None and not commands:
            raise self._error
        return commands

    def _take_quickly(self, commands: list[list[bytes]], most: int) -> bool:
        """Take what hiredis has, then give it the next chunk; False when there is none."""
        before = len(commands)
        try:
            self._drain(commands, most)
        except Exception as error:  # whatever hiredis raises, the client's bytes caused
            self._count_taken(commands, before)
            self._turn_careful(error)
            return True
        if len(commands) > before:
            self._count_taken(commands, before)
            self._buffered = 0
        if not self._waiting or len(commands) == most:
            return False
        self._give_chunk()
        return True

    def _take_whole(self, most: int) -> list[list[bytes]]:
        """Take what is whole in the next chunk, if that is the next thing to be read."""
        waiting = self._waiting
        if not waiting or not self._between_commands or self._careful is not None:
            return []
        if self._error is not None or self._reader.has_data():
            return []
        chunk = waiting[0]
        commands, used = take_whole(chunk, most, self._max_bulk)
        if used == len(chunk):
            waiting.popleft()
        elif used:
            waiting[0] = chunk[used:]
        if commands:
            self._buffered = 0
        return commands

    def _count_taken(self, commands: list[list[bytes]], before: int) -> None:
        if len(commands) > before:
            self._taken += len(commands) - before
            if self._history is not None:  # else it is not needed, and may be large
                self._last = commands[-1]

    def _drain(self, commands: list[list[bytes]], most: int) -> None:
        """Take the commands that hiredis has in full."""
        has_data, parse = self._reader.has_data, self._reader.gets
        while has_data() or not self._between_commands:
            command = parse()
            if type(command) is list:
                for word in command:
                    if type(word) is not bytes:
                        raise ProtocolError("expected '$'")
                self._between_commands = True
                if not command:
                    continue
                commands.append(command)
                if len(commands) == most:
                    return
            elif command is _INCOMPLETE:
                self._between_commands = False
                self._check_incomplete()
                return
            elif command is None:
                raise _Unusual  # `*-1`, which Redis passes over, or `$-1`, an inline command
            else:
                raise ProtocolError("expected '*'")

    def _check_incomplete(self) -> None:
        """A chunk ended inside a command: raise if it will never be one."""
        chunk, self._incomplete = self._incomplete, None
        if chunk is None:
            return
        # An empty array is no command's beginning, so what follows it begins anew.
        if chunk.startswith(b"*0\r\n") or find_suspicious(chunk, 1) >= 0:
            probe = CarefulParser(self._max_bulk)
            probe.feed(chunk)
            while probe.next() is not None:
                pass
            # A header without end, which hiredis would gather for ever; or it waits inside of
            # something that was read to its end.
            if probe.waits_for_line or probe.is_between_commands:
                raise _Unusual

    def _give_chunk(self) -> None:
        """Give hiredis the next chunk, or the part of it before something suspicious."""
        chunk = self._waiting.popleft()
        if self._between_commands:
            self._incomplete = chunk
            self._history = []
            self._history_bytes = self._taken = 0
            self._last = []
            if holds_huge_collection(chunk) or len(chunk) > self._max_bulk:
                chunk = self._before_suspicious(chunk, find_suspicious(chunk))
            self._remember(chunk)
            start = _COMMAND_START.match(chunk)
            if start is None or int(start.group(1)) > MAX_MULTIBULK:
                self._turn_careful(None)
                return
        else:
            place = find_suspicious(chunk)
            if place == 0 and not self._reader.has_data():
                self._check_header(chunk)
            chunk = self._before_suspicious(chunk, place)
            self._remember(chunk)
        self._buffered += len(chunk)
        if self._buffered > self._max_buffer:
            raise ProtocolError("too large a command")
        self._reader.feed(chunk)

    def _remember(self, chunk: bytes) -> None:
        if self._history is not None:
            self._history.append(chunk)
            self._history_bytes += len(chunk)
            if self._history_bytes > MAX_HISTORY_BYTES and len(self._history) > 1:
                self._history = None
                self._last = []

    def _before_suspicious(self, chunk: bytes, place: int) -> bytes:
        """The part that can be given at once; the rest, from the first suspicious `place` behind
        the beginning on, waits to be looked at then."""
        if place == 0:
            place = find_suspicious(chunk, 1)
        if place < 0:
            return chunk
        self._waiting.appendleft(chunk[place:])
        return chunk[:place]

    def _check_header(self, chunk: bytes) -> None:
        """Raise unless the chunk begins with an argument's header."""
        header = _HEADER.match(chunk)
        if chunk[:1] == b"$":
            if header is None or int(header.group(2)) > self._max_bulk:
                raise ProtocolError("invalid bulk length")
        else:
            raise ProtocolError(f"expected '$', got '{chunk[:1].decode('latin-1')}'")

    # Reading carefully

    def _turn_careful(self, cause: Exception | None) -> None:
        """Read again what is remembered, carefully, and all that follows it."""
        if self._history is None:
            if isinstance(cause, ProtocolError):
                raise cause
            raise ProtocolError("invalid request") from None
        careful = self._careful = CarefulParser(self._max_bulk)
        careful.feed(b"".join(self._history))
        last: list[bytes] | None = self._last
        for _ in range(self._taken):
            last = careful.next()
        if last != self._last:  # hiredis has read something else: nothing may run twice
            raise ProtocolError("invalid request")
        self._waiting.append(self._held)
        self._held = b""
        self._history = None

    def _take_carefully(
        self, careful: CarefulParser, commands: list[list[bytes]], most: int
    ) -> bool:
        while len(commands) < most:
            words = careful.next()
            if words is None:
                break
            commands.append(words)
        else:
            return True
        if not self._waiting:
            if self._restricted and not careful.restricted and careful.is_between_commands:
                self._restricted = False
                self._careful = None
            return False
        careful.feed(self._waiting.popleft())
        if careful.buffered > self._max_buffer:
            raise ProtocolError("too large a command")
        return True


class _Unusual(Exception):
    """Nothing wrong yet, but better read carefully."""


class _Refused(Exception):
    """What hiredis makes of `-text`, which no client sends as an argument."""
