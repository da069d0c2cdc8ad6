"""What calls that stand one after another ask for together; and both twins say the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import pipelined

compiled: Any = pytest.importorskip(
    "commands._pipelined", reason="no compiler was there at install"
)
single_cells = pytest.mark.parametrize(
    "single_cells", [compiled.single_cells, pipelined.single_cells_in_python]
)
rows_asked_alike = pytest.mark.parametrize(
    "rows_asked_alike", [compiled.rows_asked_alike, pipelined.rows_asked_alike_in_python]
)

Call = list[bytes]
TIMESTAMPS = st.sampled_from(
    [
        b"*", b"0", b"1", b"9223372036854775807", b"9223372036854775808", b"-1", b"01", b"",
        b"**", b"EX",
    ]
)  # fmt: skip
NAMES = st.sampled_from([b"WCPUT", b"WCPUT", b"WCPUT", b"wcput", b"WCGET", b""])
DATASETS = st.sampled_from([b"d", b"d", b"d", b"e", b"", b"d\0"])
WORDS = st.binary(max_size=3)
PUTS: st.SearchStrategy[Call] = st.builds(
    lambda *words: list(words), NAMES, DATASETS, WORDS, TIMESTAMPS, WORDS, WORDS
)
OPTIONS = st.sampled_from([[], [], [b"VERSIONS", b"ALL"], [b"COUNT", b"1"], [b"COUNT", b"2"]])
GETS: st.SearchStrategy[Call] = st.builds(
    lambda name, dataset, row, options: [name, dataset, row, *options],
    NAMES, DATASETS, WORDS, OPTIONS,
)  # fmt: skip
OTHERS = st.lists(st.sampled_from([b"WCPUT", b"d", b"1", b"*"]), min_size=1, max_size=8)
MOST = st.one_of(st.integers(0, 4), st.just(64))


def calls(kind: st.SearchStrategy[Call]) -> st.SearchStrategy[tuple[list[Call], int]]:
    """Calls, more often than not of this kind, and a place among them."""
    some = st.lists(st.one_of(kind, kind, kind, OTHERS), min_size=1, max_size=12)
    return some.flatmap(lambda found: st.tuples(st.just(found), st.integers(0, len(found) - 1)))


@given(calls(PUTS), MOST)
def test_both_find_the_same_cells(given_calls: tuple[list[Call], int], most: int) -> None:
    found = compiled.single_cells(*given_calls, most)
    assert found == pipelined.single_cells_in_python(*given_calls, most)


@given(calls(GETS), MOST)
def test_both_find_the_same_rows(given_calls: tuple[list[Call], int], most: int) -> None:
    found = list(compiled.rows_asked_alike(*given_calls, most))
    assert found == list(pipelined.rows_asked_alike_in_python(*given_calls, most))


def put(row: bytes, timestamp: bytes = b"1") -> Call:
    return [b"WCPUT", b"d", row, timestamp, b"c", b"v"]


def cell(row: bytes, timestamp: int | None = 1) -> tuple[bytes, int | None, bytes, bytes]:
    return (row, timestamp, b"c", b"v")


@single_cells
def test_cells_are_found_from_a_place_on_up_to_the_most(single_cells: Any) -> None:
    several = [put(b"%d" % number) for number in range(6)]
    assert single_cells(several, 0, 64) == [(b"d", [cell(b"%d" % number) for number in range(6)])]
    assert single_cells(several, 2, 3) == [(b"d", [cell(b"2"), cell(b"3"), cell(b"4")])]
    assert single_cells(several, 5, 3) == [(b"d", [cell(b"5")])]


@single_cells
def test_cells_are_parted_where_the_dataset_changes(single_cells: Any) -> None:
    other = [b"WCPUT", b"e", *put(b"b")[2:]]
    found = single_cells([put(b"a"), other, other, put(b"c"), put(b"d")], 0, 64)
    assert found == [
        (b"d", [cell(b"a")]),
        (b"e", [cell(b"b"), cell(b"b")]),
        (b"d", [cell(b"c"), cell(b"d")]),
    ]


@single_cells
def test_a_star_leaves_the_timestamp_to_the_clock(single_cells: Any) -> None:
    found = single_cells([put(b"a", b"*"), put(b"b", b"7")], 0, 64)
    assert found == [(b"d", [cell(b"a", None), cell(b"b", 7)])]


@single_cells
@pytest.mark.parametrize(
    "other",
    [
        [b"wcput", b"d", b"r", b"1", b"c", b"v"],
        [b"WCGET", b"d", b"r", b"1", b"c", b"v"],
        [b"WCPUT", b"d", b"r", b"1", b"c"],
        [b"WCPUT", b"d", b"r", b"1", b"c", b"v", b"2", b"c", b"v"],
        [b"WCPUT", b"d", b"r", b"EX", b"1", b"*", b"c", b"v"],
        [b"WCPUT", b"d", b"r", b"EX", b"c", b"v"],
        [b"WCPUT", b"d", b"r", b"-1", b"c", b"v"],
        [b"PING"],
    ],
)
def test_what_is_no_such_call_ends_the_cells(single_cells: Any, other: Call) -> None:
    found = single_cells([put(b"a"), put(b"b"), other, put(b"c")], 0, 64)
    assert found == [(b"d", [cell(b"a"), cell(b"b")])]


@single_cells
@pytest.mark.parametrize("first", [[b"WCPUT"], [b"WCPUT", b"d"], put(b"r", b"none")])
def test_where_the_first_is_none_nothing_is_found(single_cells: Any, first: Call) -> None:
    assert single_cells([first, put(b"a")], 0, 64) == []


@rows_asked_alike
def test_rows_are_found_while_all_else_is_the_same(rows_asked_alike: Any) -> None:
    asked = [[b"WCGET", b"d", b"%d" % number, b"COUNT", b"1"] for number in range(6)]
    assert list(rows_asked_alike(asked, 1, 3)) == [b"1", b"2", b"3"]
    assert list(rows_asked_alike(asked, 4, 64)) == [b"4", b"5"]


@rows_asked_alike
@pytest.mark.parametrize(
    "other",
    [
        [b"wcget", b"d", b"r", b"COUNT", b"1"],
        [b"WCGET", b"e", b"r", b"COUNT", b"1"],
        [b"WCGET", b"d", b"r", b"COUNT", b"2"],
        [b"WCGET", b"d", b"r", b"count", b"1"],
        [b"WCGET", b"d", b"r", b"COUNT"],
        [b"WCGET", b"d", b"r", b"COUNT", b"1", b"NOVALUES"],
        [b"WCGET", b"d", b"r"],
        [b"WCGET", b"d"],
        [b"PING"],
    ],
)
def test_another_question_ends_the_rows(rows_asked_alike: Any, other: Call) -> None:
    asked = [b"WCGET", b"d", b"r", b"COUNT", b"1"]
    assert list(rows_asked_alike([asked, asked, other, asked], 0, 64)) == [b"r", b"r"]


@rows_asked_alike
def test_a_call_without_a_row_asks_for_none(rows_asked_alike: Any) -> None:
    for asked in ([b"WCGET"], [b"WCGET", b"d"]):
        assert list(rows_asked_alike([asked, asked], 0, 64)) == []


@pytest.mark.parametrize("place", [0, 1, 3])
def test_what_is_no_word_is_refused_and_not_read(place: int) -> None:
    words: list[Any] = [*put(b"a")]
    words[place] = 7
    with pytest.raises(TypeError):
        compiled.single_cells([put(b"a"), words], 0, 64)
    with pytest.raises(TypeError):
        list(compiled.rows_asked_alike([put(b"a"), words], 0, 64))
