"""Glob patterns: Redis's answer on small inputs, and never a long time on large ones.

An input is

    length(1) pattern text
"""

from __future__ import annotations

import re
import time

from commands.patterns import Pattern, matches
from tests.commands.test_patterns import redis_matches
from tests.fuzz.choices import Choices
from tests.fuzz.target import Target

MOST_COMPARED_BYTES = 40
MOST_COMPARED_STARS = 4
"""The time of Redis's own algorithm is a power of the text's length."""
LARGE_BYTES = 100_000
MOST_SECONDS = 2.0
_STARS = re.compile(rb"\*+")


def run(data: bytes) -> None:
    choices = Choices(data)
    pattern, text = choices.short(), choices.rest()
    fits = Pattern(pattern).fits(text)
    assert matches(pattern, text) == fits
    is_short = len(pattern) + len(text) <= MOST_COMPARED_BYTES
    if is_short and len(_STARS.findall(pattern)) <= MOST_COMPARED_STARS:
        assert fits == redis_matches(pattern, text)
    started = time.process_time()
    large = text[:64] * (LARGE_BYTES // max(1, len(text[:64])))
    matches(pattern * 20, large)
    matches(pattern, large)
    assert time.process_time() - started < MOST_SECONDS
    escaped = b"".join(b"\\" + bytes([byte]) for byte in text)
    assert matches(escaped, text)
    assert matches(b"*" + escaped + b"*", b"a" + text + b"b")


TARGET = Target(
    run,
    tokens=(b"*", b"?", b"[a-c]", b"[^", b"]", b"\\", b"-", b"[]", b"[^]", b"**"),
    max_bytes=400,
)
