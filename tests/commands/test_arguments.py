"""Reading arguments: numbers are strict, options come once, and each error is the one users read.

None of this looks at a store.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.arguments import (
    Arguments,
    Option,
    expiry,
    integer,
    take_options,
    time_range,
    timestamp,
    timestamp_or_clock,
)
from commands.errors import (
    CommandError,
    InvalidExpireTime,
    InvalidTimestamp,
    NotAnInteger,
    SyntaxProblem,
)
from storage.model import MAX_TIMESTAMP, TimeRange

NOW = 1_700_000_000_000
NO_NUMBERS = [
    b"",
    b"+1",
    b"01",
    b" 1",
    b"1 ",
    b"1\n",
    b"1_0",
    b"-0",
    b"--1",
    b"1.0",
    b"1e3",
    b"0x1",
    b"one",
    b"\xd9\xa1",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"9" * 10_000,
]


def words(*given_words: bytes) -> Arguments:
    return Arguments([b"COMMAND", *given_words], 1)


def test_words_are_taken_one_after_another() -> None:
    arguments = words(b"a", b"", b"b")
    assert arguments.left == 3
    assert [arguments.take() for _ in range(3)] == [b"a", b"", b"b"]
    assert arguments.left == 0
    with pytest.raises(SyntaxProblem):
        arguments.take()


def test_keywords_are_read_in_any_case() -> None:
    assert words(b"count").take_keyword() == words(b"COUNT").take_keyword() == b"COUNT"


def test_the_end_is_expected() -> None:
    words().expect_end()
    with pytest.raises(SyntaxProblem):
        words(b"more").expect_end()


def test_counted_words_are_as_many_as_they_say() -> None:
    arguments = words(b"2", b"a", b"b", b"c")
    assert arguments.take_counted() == [b"a", b"b"]
    assert (arguments.left, arguments.take()) == (1, b"c")


@pytest.mark.parametrize("given_words", [[b"3", b"a", b"b"], [b"9223372036854775807", b"a"], []])
def test_fewer_words_than_counted_are_a_syntax_error(given_words: list[bytes]) -> None:
    with pytest.raises(SyntaxProblem):
        words(*given_words).take_counted()


@pytest.mark.parametrize("count", [b"0", b"-1", *NO_NUMBERS])
def test_a_count_is_at_least_1(count: bytes) -> None:
    with pytest.raises(NotAnInteger):
        words(count, b"a").take_counted()


@pytest.mark.parametrize("word", NO_NUMBERS)
def test_what_is_no_number_is_refused(word: bytes) -> None:
    with pytest.raises(NotAnInteger):
        integer(word, -(2**63))
    with pytest.raises(NotAnInteger):
        words(word).take_integer(-(2**63))
    with pytest.raises(InvalidTimestamp):
        timestamp(word)
    with pytest.raises(NotAnInteger):
        expiry(b"EX", word, NOW, "wcput")


@settings(deadline=None)
@given(st.integers(-(2**65), 2**65), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63))
def test_a_number_is_taken_within_its_bounds(value: int, least: int, most: int) -> None:
    word, fits = b"%d" % value, least <= value <= min(most, 2**63 - 1)
    if fits:
        assert integer(word, least, most) == value
    else:
        with pytest.raises(NotAnInteger):
            integer(word, least, most)


@pytest.mark.parametrize("word", [b"-1", b"*", b"-", b"+"])
def test_a_timestamp_is_milliseconds_from_0_on(word: bytes) -> None:
    assert timestamp(b"0") == 0
    assert timestamp(b"9223372036854775807") == MAX_TIMESTAMP
    with pytest.raises(InvalidTimestamp):
        timestamp(word)


def test_a_star_is_the_clock() -> None:
    assert timestamp_or_clock(b"*") is None
    assert timestamp_or_clock(b"0") == 0
    with pytest.raises(InvalidTimestamp):
        timestamp_or_clock(b"**")


def test_a_range_of_time_has_named_ends() -> None:
    assert time_range(words(b"-", b"+")) == TimeRange(0, MAX_TIMESTAMP)
    assert time_range(words(b"5", b"7")) == TimeRange(5, 7)
    assert time_range(words(b"+", b"-")) == TimeRange(MAX_TIMESTAMP, 0)


@pytest.mark.parametrize("bound", [b"*", b"-1", b"(5", b""])
def test_another_end_of_a_range_is_an_invalid_timestamp(bound: bytes) -> None:
    for given_words in ([bound, b"+"], [b"-", bound]):
        with pytest.raises(InvalidTimestamp):
            time_range(words(*given_words))
    with pytest.raises(SyntaxProblem):
        time_range(words(b"-"))


@pytest.mark.parametrize(
    ("keyword", "word", "moment"),
    [
        (b"EX", b"1", NOW + 1_000),
        (b"PX", b"1", NOW + 1),
        (b"EXAT", b"1", 1_000),
        (b"PXAT", b"1", 1),
        (b"PXAT", b"9223372036854775807", MAX_TIMESTAMP),
        (b"PX", b"%d" % (MAX_TIMESTAMP - NOW), MAX_TIMESTAMP),
        (b"EXAT", b"%d" % (MAX_TIMESTAMP // 1_000), MAX_TIMESTAMP // 1_000 * 1_000),
    ],
)
def test_an_expiry_is_a_moment(keyword: bytes, word: bytes, moment: int) -> None:
    assert expiry(keyword, word, NOW, "wcput") == moment


@pytest.mark.parametrize(
    ("keyword", "word"),
    [
        (b"EX", b"0"),
        (b"PX", b"-1"),
        (b"EXAT", b"0"),
        (b"PXAT", b"-9223372036854775808"),
        (b"PX", b"%d" % (MAX_TIMESTAMP - NOW + 1)),
        (b"EX", b"9223372036854775807"),
        (b"EXAT", b"%d" % (MAX_TIMESTAMP // 1_000 + 1)),
    ],
)
def test_an_expiry_that_is_not_positive_or_overflows_names_the_command(
    keyword: bytes, word: bytes
) -> None:
    with pytest.raises(InvalidExpireTime, match=r"^invalid expire time in 'wcmput' command$"):
        expiry(keyword, word, NOW, "wcmput")


def read_options(*given_words: bytes) -> tuple[set[bytes], dict[str, object]]:
    """COUNT n, COLUMNS n ..., and the flag NOVALUES."""
    found: dict[str, object] = {}

    def count(arguments: Arguments) -> None:
        found["count"] = arguments.take_integer(1)

    def columns(arguments: Arguments) -> None:
        found["columns"] = arguments.take_counted()

    def values(_arguments: Arguments) -> None:
        found["values"] = False

    options: dict[bytes, Option] = {b"COUNT": count, b"COLUMNS": columns, b"NOVALUES": values}
    return take_options(words(*given_words), options), found


def test_options_come_in_any_order_and_case() -> None:
    everything = {"count": 5, "columns": [b"COUNT", b"b"], "values": False}
    seen, found = read_options(b"novalues", b"COLUMNS", b"2", b"COUNT", b"b", b"Count", b"5")
    assert (seen, found) == ({b"NOVALUES", b"COLUMNS", b"COUNT"}, everything)
    seen, found = read_options(b"COUNT", b"5", b"NOVALUES", b"columns", b"2", b"COUNT", b"b")
    assert found == everything
    assert read_options() == (set(), {})


@pytest.mark.parametrize(
    "given_words",
    [
        [b"NOVALUES", b"NOVALUES"],
        [b"COUNT", b"1", b"count", b"1"],
        [b"LIMIT", b"1"],
        [b""],
        [b"COUNT"],
        [b"COLUMNS", b"3", b"a", b"b"],
        [b"COUNT", b"1", b"2"],
    ],
)
def test_an_option_twice_unknown_or_cut_short_is_a_syntax_error(given_words: list[bytes]) -> None:
    with pytest.raises(SyntaxProblem):
        read_options(*given_words)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (SyntaxProblem(), "ERR syntax error"),
        (NotAnInteger(), "ERR value is not an integer or out of range"),
        (InvalidTimestamp(), "ERR invalid timestamp"),
        (InvalidExpireTime("wcput"), "ERR invalid expire time in 'wcput' command"),
    ],
)
def test_errors_read_as_documented(error: CommandError, line: str) -> None:
    assert f"{error.code} {error}" == line
