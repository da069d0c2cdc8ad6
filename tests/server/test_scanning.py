"""The compiled scanners of chunks against the patterns in Python."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resp_server.careful import CarefulParser
from resp_server.scanning import find_suspicious_in_python, holds_huge_collection_in_python

scanning: Any = pytest.importorskip(
    "resp_server._scanning", reason="no compiler was there at install"
)

PIECES = st.sampled_from(
    [b"*", b"$", b"%", b"~", b">", b"|", b"_", b"-", b"(", b"\r", b"\n", b"\r\n", b"1", b"12",
     b"123456", b"1234567", b"a", b"PING", b"*1\r\n$4\r\nPING\r\n", b"\r\n|", b"\n_", b"\xff"]
)  # fmt: skip
CHUNKS = st.lists(PIECES, max_size=12).map(b"".join)


@settings(max_examples=1_000)
@given(CHUNKS, st.integers(0, 3))
@example(b"*1234567", 0)
@example(b"x*123456\r\n", 0)
@example(b"$12\r\n", 0)
@example(b"*1\r\nx", 0)
def test_both_find_the_same_place(chunk: bytes, start: int) -> None:
    assert scanning.find_suspicious(chunk, start) == find_suspicious_in_python(chunk, start)


@settings(max_examples=1_000)
@given(CHUNKS)
def test_both_see_huge_collections(chunk: bytes) -> None:
    assert scanning.holds_huge_collection(chunk) == holds_huge_collection_in_python(chunk)


WORDS = st.lists(st.binary(max_size=12), min_size=1, max_size=5)


def packed(words: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


@given(st.lists(WORDS, max_size=6), st.integers(0, 400), st.integers(1, 6))
def test_what_is_whole_is_taken_up_to_where_the_chunk_is_cut(
    commands: list[list[bytes]], cut: int, most: int
) -> None:
    chunk = b"".join(map(packed, commands))[:cut]
    ends = [len(b"".join(map(packed, commands[:count]))) for count in range(len(commands) + 1)]
    whole = min(sum(end <= cut for end in ends) - 1, most)
    assert scanning.take_whole(chunk, most, 512) == (commands[:whole], ends[whole])


@settings(max_examples=1_000)
@given(CHUNKS)
def test_what_is_taken_is_what_the_careful_parser_reads(chunk: bytes) -> None:
    taken, used = scanning.take_whole(chunk, 100, 512)
    careful = CarefulParser(512)
    careful.feed(chunk[:used])
    assert taken == [careful.next() for _ in taken]
    assert careful.next() is None
    assert careful.is_between_commands


@pytest.mark.parametrize(
    "odd",
    [
        b"*0\r\n", b"*-1\r\n", b"*01\r\n$4\r\nPING\r\n", b"*1\r\n$04\r\nPING\r\n", b"PING\r\n",
        b"*1\r\n$-1\r\n", b"*1\r\n$4\r\nPING\n\n", b"*1\n$4\r\nPING\r\n", b"*1\r\n+PING\r\n",
        b"*1\r\n$513\r\n" + b"x" * 513 + b"\r\n", b"*1000000\r\n", b"*+1\r\n$4\r\nPING\r\n",
    ],
)  # fmt: skip
def test_what_is_odd_is_left_to_others(odd: bytes) -> None:
    before = packed([b"ECHO", b"1"])
    assert scanning.take_whole(before + odd, 10, 512) == ([[b"ECHO", b"1"]], len(before))
