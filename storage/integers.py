"""Signed 64-bit integers written as Redis writes them: no sign but "-", no zeros in front.

Stored counters and command arguments follow the same grammar. Imports nothing of the project.
"""

from __future__ import annotations

MAX_INTEGER = 2**63 - 1
MIN_INTEGER = -(2**63)
_MAX_DIGITS = 19


def parse_integer(text: bytes) -> int | None:
    """The integer, or None when the text is not one or does not fit 64 bits."""
    digits = text[1:] if text[:1] == b"-" else text
    if not digits.isdigit() or len(digits) > _MAX_DIGITS:
        return None
    if digits[0] == 48 and text != b"0":
        return None
    value = int(text)
    return value if MIN_INTEGER <= value <= MAX_INTEGER else None
