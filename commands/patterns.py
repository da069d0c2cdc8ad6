"""Glob patterns as Redis has them: `*`, `?`, `[abc]`, `[^a-c]`, and a backslash before any byte.

A pattern is cut at its stars into segments, each of which fits texts of one length only. So the
first place where a segment fits is as good as any later one, and nothing is ever tried twice. A
segment of plain bytes is searched by bytes.find, in linear time; another one by re, in its length
times the text's at worst. A pattern that would take too long fits nothing: see MOST_STEPS.
"""

from __future__ import annotations

import re
from functools import lru_cache

MOST_STEPS = 50_000_000
"""The length of a segment with `?` or a class, times the text's: about a fifth of a second."""
_LONGEST_REMEMBERED_BYTES = 256
_LONGEST_COMPILED = 4096
_STAR = None
Token = frozenset[int] | None
_ANY = frozenset(range(256))
_SINGLE = [frozenset((byte,)) for byte in range(256)]


def matches(pattern: bytes, text: bytes) -> bool:
    """Whether the whole text fits the pattern."""
    if len(pattern) > _LONGEST_REMEMBERED_BYTES:
        return Pattern(pattern).fits(text)
    return _remembered(pattern).fits(text)


class _Plain:
    """A segment of bytes that stand for themselves."""

    def __init__(self, members: list[frozenset[int]]) -> None:
        self._bytes = bytes(byte for each in members for byte in each)
        self.length = len(self._bytes)

    def fits_at(self, text: bytes, place: int) -> bool:
        return text.startswith(self._bytes, place)

    def find(self, text: bytes, start: int, end: int) -> int:
        """The first place, or -1."""
        return text.find(self._bytes, start, end)


class _Varied:
    """A segment of which a byte may be one of several."""

    def __init__(self, members: list[frozenset[int]]) -> None:
        self.length = len(members)
        self._expression: re.Pattern[bytes] | None = None
        if self.length <= _LONGEST_COMPILED:
            self._expression = re.compile(b"".join(map(_class, members)), re.DOTALL)

    def fits_at(self, text: bytes, place: int) -> bool:
        return self._expression is not None and self._expression.match(text, place) is not None

    def find(self, text: bytes, start: int, end: int) -> int:
        """The first place, or -1."""
        if self._expression is None or (end - start) * self.length > MOST_STEPS:
            return -1
        found = self._expression.search(text, start, end)
        return -1 if found is None else found.start()


class Pattern:
    """A pattern made ready for many texts."""

    def __init__(self, pattern: bytes) -> None:
        segments: list[list[frozenset[int]]] = [[]]
        for token in _tokens(pattern):
            if token is _STAR:
                segments.append([])
            else:
                segments[-1].append(token)
        self._has_star = len(segments) > 1
        self._first = _segment(segments[0])
        self._last = _segment(segments[-1])
        self._middle = [_segment(each) for each in segments[1:-1] if each]

    def fits(self, text: bytes) -> bool:
        first, last, end = self._first, self._last, len(text)
        if not self._has_star:
            return end == first.length and first.fits_at(text, 0)
        place, end = first.length, end - last.length
        if place > end or not (first.fits_at(text, 0) and last.fits_at(text, end)):
            return False
        for segment in self._middle:
            place = segment.find(text, place, end)
            if place < 0:
                return False
            place += segment.length
        return True


_remembered = lru_cache(maxsize=1024)(Pattern)


def _segment(members: list[frozenset[int]]) -> _Plain | _Varied:
    return _Plain(members) if all(len(each) == 1 for each in members) else _Varied(members)


def _class(members: frozenset[int]) -> bytes:
    if len(members) == len(_ANY):
        return b"."
    # An empty class fits nothing; re has none, but a negation of all.
    return (
        b"[%b]" % b"".join(b"\\x%02x" % each for each in members) if members else b"[^\\x00-\\xff]"
    )


def _tokens(pattern: bytes) -> list[Token]:
    tokens: list[Token] = []
    index = 0
    while index < len(pattern):
        byte = pattern[index : index + 1]
        index += 1
        if byte == b"*":
            tokens.append(_STAR)
        elif byte == b"?":
            tokens.append(_ANY)
        elif byte == b"[":
            members, index = _members(pattern, index)
            tokens.append(members)
        else:
            if byte == b"\\" and index < len(pattern):
                byte = pattern[index : index + 1]
                index += 1
            tokens.append(_SINGLE[byte[0]])
    return tokens


def _members(pattern: bytes, index: int) -> tuple[frozenset[int], int]:
    """The bytes of a class whose "[" stands before `index`, and where the pattern goes on."""
    negated = pattern[index : index + 1] == b"^"
    index += negated
    members: set[int] = set()
    while index < len(pattern) and pattern[index] != ord("]"):
        if pattern[index] == ord("\\") and index + 1 < len(pattern):
            index += 1
            members.add(pattern[index])
        elif pattern[index + 1 : index + 2] == b"-" and index + 2 < len(pattern):
            low, high = sorted((pattern[index], pattern[index + 2]))
            members.update(range(low, high + 1))
            index += 2
        else:
            members.add(pattern[index])
        index += 1
    found = frozenset(members)
    return (_ANY - found if negated else found), index + 1
