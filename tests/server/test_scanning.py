"""The compiled scanners of chunks against the patterns in Python."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

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
