"""Integers as Redis writes them: each has one spelling, and no other text is one.

Stored counters and arguments of commands are both read by this grammar.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.integers import MAX_INTEGER, MIN_INTEGER, parse_integer

ONE_SPELLING = re.compile(rb"0|-?[1-9][0-9]*")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"0", 0),
        (b"7", 7),
        (b"-7", -7),
        (b"10", 10),
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
    ],
)
def test_an_integer(text: bytes, value: int) -> None:
    assert parse_integer(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"-",
        b"+",
        b"+1",
        b"-0",
        b"00",
        b"01",
        b"-01",
        b"--1",
        b" 1",
        b"1 ",
        b"1\n",
        b"1_0",
        b"1.0",
        b"1e3",
        b"0x1",
        b"1\x00",
        b"\x00",
        "\u0661".encode(),
        "\u00b2".encode("latin-1"),
        b"9223372036854775808",
        b"-9223372036854775809",
        b"18446744073709551616",
        b"9" * 5_000,
        b"-" + b"9" * 5_000,
        b"0" * 5_000,
    ],
)
def test_not_an_integer(text: bytes) -> None:
    assert parse_integer(text) is None


@settings(deadline=None)
@given(st.integers(MIN_INTEGER, MAX_INTEGER))
def test_every_integer_is_read_as_it_is_written(value: int) -> None:
    assert parse_integer(b"%d" % value) == value


@settings(deadline=None)
@given(st.one_of(st.integers(MAX_INTEGER + 1), st.integers(max_value=MIN_INTEGER - 1)))
def test_what_does_not_fit_64_bits_is_none(value: int) -> None:
    assert parse_integer(b"%d" % value) is None


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=22), st.text("0123456789+- _", max_size=21).map(str.encode)))
def test_text_is_an_integer_exactly_if_it_is_the_spelling_of_one(text: bytes) -> None:
    value = parse_integer(text)
    spelled = ONE_SPELLING.fullmatch(text) is not None
    assert (value is not None) == (spelled and MIN_INTEGER <= int(text) <= MAX_INTEGER)
    assert value is None or b"%d" % value == text
