"""Cursors: where a page ended, as a short URL-safe string that the client carries.

    cursor := base64url( digest(8) mark(8, big-endian) live(8, big-endian) bound )

`bound` is the part of a key at which the next page begins. `mark` 0 says that it is a plain lower
bound; n+1 says that it is the key of a cell whose column has already given n cells, and `live` how
many unexpired cells lay above it. `digest` is over all that follows it and ties the cursor to what
it was made for: dataset, row and every option that shapes the answer. It is no secret, only a check
against mix-ups: all a forged cursor can do is begin elsewhere in the very row or dataset that the
command names anyway. Knows nothing of how a page is read.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from binascii import Error as BadBase64
from dataclasses import dataclass

from storage.encoding import SUFFIX_BYTES
from storage.errors import InvalidCursor
from storage.model import NameRange, Selection

FINISHED = b"0"
"""The cursor that says that nothing is left, and, given by a client, that all is."""

_DIGEST_BYTES = 8
_NUMBERS = struct.Struct(">QQ")
_HEADER_BYTES = _DIGEST_BYTES + _NUMBERS.size


@dataclass(frozen=True, slots=True)
class Position:
    """Where reading goes on: a lower bound, or a cell whose column has given `returned` cells.

    `live` is how many unexpired cells of the column lay above that cell when the page ended.
    """

    bound: bytes = b""
    returned: int | None = None
    live: int = 0


START = Position()


class Binding:
    """What a cursor belongs to. The digest is taken only when a cursor is read or written."""

    __slots__ = ("_kind", "_names", "_place", "_selection")

    def __init__(
        self,
        kind: bytes,
        place: tuple[bytes, ...],
        selection: Selection,
        names: NameRange | None = None,
    ) -> None:
        """`kind` is the command family, `place` the dataset and row, `names` a scan's rows."""
        self._kind = kind
        self._place = place
        self._selection = selection
        self._names = names

    def _digest(self, rest: bytes) -> bytes:
        selection = self._selection
        parts: list[bytes | int | None] = [self._kind, *self._place]
        for names in (self._names, selection.names):
            if names is not None:
                parts += [b"names", names.prefix, names.start, names.stop]
        parts += [selection.versions, selection.times.oldest, selection.times.newest]
        if selection.columns is not None:
            parts += [b"columns", *selection.columns]
        state = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        for part in [*parts, rest]:
            state.update(_framed(part))
        return state.digest()

    def encode(self, position: Position | None) -> bytes:
        """The cursor of a position; of None, the one that says that nothing is left."""
        if position is None:
            return FINISHED
        mark = 0 if position.returned is None else position.returned + 1
        rest = _NUMBERS.pack(mark, position.live) + position.bound
        return base64.urlsafe_b64encode(self._digest(rest) + rest).rstrip(b"=")

    def decode(self, cursor: bytes) -> Position:
        """The position of a cursor made for the same thing; InvalidCursor for any other."""
        if cursor == FINISHED:
            return START
        try:
            raw = base64.b64decode(cursor + b"=" * (-len(cursor) % 4), b"-_", validate=True)
        except (BadBase64, ValueError):
            raise InvalidCursor from None
        if len(raw) < _HEADER_BYTES or raw[:_DIGEST_BYTES] != self._digest(raw[_DIGEST_BYTES:]):
            raise InvalidCursor
        mark, live = _NUMBERS.unpack_from(raw, _DIGEST_BYTES)
        bound = raw[_HEADER_BYTES:]
        if mark == 0:
            return Position(bound)
        if len(bound) < SUFFIX_BYTES + 2 or bound[-SUFFIX_BYTES - 2 : -SUFFIX_BYTES] != b"\0\0":
            raise InvalidCursor
        return Position(bound, mark - 1, live)


def _framed(part: bytes | int | None) -> bytes:
    """One part of the digest with its kind and length, so that no two lists of parts look alike."""
    if part is None:
        return b"n"
    if isinstance(part, int):
        return b"i%d;" % part
    return b"b%d:%b" % (len(part), part)
