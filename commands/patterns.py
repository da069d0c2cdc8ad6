"""Glob patterns as Redis has them: `*`, `?`, `[abc]`, `[^a-c]`, and a backslash before any byte.

Matching goes back to the last star only, so that no pattern, however hostile, takes longer than
its length times the text's.
"""

from __future__ import annotations

_STAR = None
Token = frozenset[int] | None
_ANY = frozenset(range(256))


def matches(pattern: bytes, text: bytes) -> bool:
    """Whether the whole text fits the pattern."""
    tokens = _tokens(pattern)
    position = place = 0
    star, star_position = -1, 0
    while position < len(text):
        token = tokens[place] if place < len(tokens) else frozenset[int]()
        if token is _STAR:
            star, star_position = place, position
            place += 1
        elif text[position] in token:
            position += 1
            place += 1
        elif star >= 0:
            star_position += 1
            position, place = star_position, star + 1
        else:
            return False
    return all(token is _STAR for token in tokens[place:])


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
            tokens.append(frozenset(byte))
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
