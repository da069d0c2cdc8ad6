"""Glob patterns: the same answers as Redis's, in a time that no pattern can make long.

`redis_matches` is the second opinion: Redis's own recursive algorithm, in Python.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commands.patterns import matches


def redis_matches(pattern: bytes, text: bytes) -> bool:
    """stringmatchlen() of Redis's util.c, for bytes."""
    while pattern and text:
        first = pattern[:1]
        if first == b"*":
            pattern = pattern.lstrip(b"*")
            return not pattern or any(
                redis_matches(pattern, text[start:]) for start in range(len(text))
            )
        if first == b"[":
            pattern, fits = after_class(pattern[1:], text[0])
            if not fits:
                return False
        elif first == b"?":
            pattern = pattern[1:]
        else:
            if first == b"\\" and len(pattern) >= 2:
                pattern = pattern[1:]
            if pattern[0] != text[0]:
                return False
            pattern = pattern[1:]
        text = text[1:]
    return not pattern.strip(b"*") and not text


def after_class(pattern: bytes, byte: int) -> tuple[bytes, bool]:
    """What follows a class whose "[" is taken off, and whether the byte is in it."""
    negated = pattern.startswith(b"^")
    pattern = pattern[1:] if negated else pattern
    found = False
    while pattern:
        if pattern[:1] == b"\\" and len(pattern) >= 2:
            found |= pattern[1] == byte
            pattern = pattern[2:]
        elif pattern[:1] == b"]":
            pattern = pattern[1:]
            break
        elif len(pattern) >= 3 and pattern[1:2] == b"-":
            low, high = sorted((pattern[0], pattern[2]))
            found |= low <= byte <= high
            pattern = pattern[3:]
        else:
            found |= pattern[0] == byte
            pattern = pattern[1:]
    return pattern, found != negated


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        (b"", [b""], [b"a"]),
        (b"a", [b"a"], [b"", b"b", b"A", b"aa"]),
        (b"*", [b"", b"a", b"\x00\xff\n"], []),
        (b"**", [b"", b"a"], []),
        (b"a*c", [b"ac", b"abc", b"acc"], [b"a", b"ab", b"acb"]),
        (b"*:*", [b":", b"a:b", b"a:b:c"], [b"", b"ab"]),
        (b"?", [b"a", b"\n", b"\xff"], [b"", b"ab"]),
        (b"h?llo", [b"hello", b"h*llo"], [b"hllo", b"heello"]),
        (b"h[ae]llo", [b"hello", b"hallo"], [b"hillo", b"hllo"]),
        (b"h[^e]llo", [b"hallo", b"h^llo"], [b"hello", b"hllo"]),
        (b"[a-c]", [b"a", b"b", b"c"], [b"d", b"-", b""]),
        (b"[c-a]", [b"a", b"b", b"c"], [b"d"]),
        (b"[a-]", [b"a", b"]", b"_"], [b"b", b"-"]),
        (b"[-a]", [b"-", b"a"], [b"b"]),
        (b"[^a-c]", [b"d", b"-"], [b"a", b"b", b"c", b""]),
        (b"[]", [], [b"", b"]", b"[]"]),
        (b"[^]", [b"a", b"]"], [b""]),
        (b"[ab", [b"a", b"b"], [b"[", b"[ab"]),
        (b"[", [], [b"[", b""]),
        (b"[\\]]", [b"]"], [b"\\"]),
        (b"[\\a-c]", [b"a", b"-", b"c"], [b"b", b"\\"]),
        (b"\\*", [b"*"], [b"a", b"\\*"]),
        (b"\\?\\[\\\\", [b"?[\\"], [b"a[\\"]),
        (b"a\\", [b"a\\"], [b"a"]),
        (b"\xe9*", [b"\xe9t\xe9"], [b"ete"]),
    ],
)
def test_patterns_that_can_be_read_off(
    pattern: bytes, fitting: list[bytes], others: list[bytes]
) -> None:
    assert [text for text in fitting if not matches(pattern, text)] == []
    assert [text for text in others if matches(pattern, text)] == []


PATTERNS = st.lists(st.sampled_from(b"abc*?[]^-\\"), max_size=12).map(bytes)
TEXTS = st.lists(st.sampled_from(b"abc]^-\\["), max_size=8).map(bytes)


@settings(deadline=None, max_examples=500)
@given(PATTERNS, TEXTS)
@example(b"*a*b", b"ab\x00ab")
@example(b"[", b"[")
def test_redis_gives_the_same_answer(pattern: bytes, text: bytes) -> None:
    assert matches(pattern, text) == redis_matches(pattern, text)


@settings(deadline=None)
@given(TEXTS, st.binary(max_size=8))
def test_an_escaped_text_fits_itself_alone(text: bytes, other: bytes) -> None:
    escaped = b"".join(b"\\" + bytes([byte]) for byte in text)
    assert matches(escaped, text)
    assert matches(escaped, other) == (other == text)


@pytest.mark.parametrize(
    "pattern",
    [
        b"pub*x",
        b"*" + b"a" * 5000 + b"b*",
        b"*a" * 5000 + b"b*",
        b"*?" * 5000 + b"b*",
        b"*" + b"?" * 4000 + b"b*",
        b"*" + b"[a-z]" * 4000 + b"\\b*",
        b"*" + b"?" * 100_000 + b"b*",
    ],
    ids=["end", "run", "stars", "any", "run of any", "classes", "too long"],
)
def test_no_pattern_takes_long(pattern: bytes) -> None:
    """Stepping back at each star, or trying each place in turn, would take hours."""
    started = time.process_time()
    assert not matches(pattern, b"pub" + b"a" * 20_000_000)
    assert time.process_time() - started < 5


def test_a_pattern_that_would_take_too_long_fits_nothing() -> None:
    pattern = b"*" + b"?" * 1000 + b"b*"
    assert matches(pattern, b"a" * 10_000 + b"b")
    assert not matches(pattern, b"a" * 100_000 + b"b")
    assert matches(b"*b*", b"a" * 100_000 + b"b")
