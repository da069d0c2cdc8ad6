"""What WCGET's options are read as, and which of that is remembered."""

from __future__ import annotations

import pytest

from commands import selection
from commands.errors import SyntaxProblem
from commands.selection import row_query
from storage.model import PageLimits

LIMITS = PageLimits()


def words(*options: bytes) -> list[bytes]:
    return [b"WCGET", b"d", b"r", *options]


def test_the_same_words_are_the_same_query() -> None:
    first = row_query(words(b"VERSIONS", b"3"), LIMITS)
    assert first.number > 0
    assert row_query(words(b"VERSIONS", b"3"), LIMITS) is first
    other = row_query(words(b"VERSIONS", b"4"), LIMITS)
    assert other.number not in (0, first.number)
    assert (first.selection.versions, other.selection.versions) == (3, 4)


def test_other_limits_are_another_query() -> None:
    first = row_query(words(), LIMITS)
    other = row_query(words(), PageLimits(columns=7))
    assert other.number != first.number
    assert other.request.limits.columns == 7


@pytest.mark.parametrize(
    "options",
    [
        (b"COUNT", b"2", b"CURSOR", b"AAAA"),
        (b"COLUMNS", b"100000", *[b""] * 100_000),
        (b"PREFIX", b"x" * 2_000),
    ],
    ids=["cursor", "many", "long"],
)
def test_what_is_large_or_used_once_is_not_remembered(options: tuple[bytes, ...]) -> None:
    known = len(selection._KNOWN_QUERIES)
    assert row_query(words(*options), LIMITS).number == 0
    assert len(selection._KNOWN_QUERIES) == known


def test_few_are_remembered() -> None:
    for number in range(1, 2_000):
        row_query(words(b"VERSIONS", b"%d" % number), LIMITS)
    assert len(selection._KNOWN_QUERIES) <= 512


def test_a_mistake_is_one_every_time() -> None:
    for _ in range(2):
        with pytest.raises(SyntaxProblem):
            row_query(words(b"VERSION", b"3"), LIMITS)
