"""The wide-column commands, one by one, through redis-py in RESP2 and RESP3.

What an answer is in general is the model's to check (against_model/); here stand the exact shapes,
error texts and corners that the contract names.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
import redis

from tests.harness import MakeServer, ServerProcess, until

HOUR_MS = 3_600_000


def ask(client: redis.Redis, *words: Any) -> Any:
    return client.execute_command(*words)


def refusal(client: redis.Redis, *words: Any) -> str:
    """The error line of a refused command, code included."""
    sent = client.connection_pool.get_connection()
    try:
        sent.send_command(*words)
        with pytest.raises(redis.ResponseError) as caught:
            sent.read_response()
    finally:
        client.connection_pool.release(sent)
    return str(caught.value)


def cells(client: redis.Redis, dataset: str, row: bytes | str, *options: Any) -> Any:
    """All visible cells of a row, as {column: [(timestamp, value), ...]}."""
    cursor, columns = ask(client, "WCGET", dataset, row, "VERSIONS", "ALL", *options)
    assert cursor == b"0"
    return {name: [tuple(cell) for cell in versions] for name, versions in columns}


# Writing


def test_put_counts_cells_duplicates_too(client: redis.Redis, dataset: str) -> None:
    assert ask(client, "WCPUT", dataset, "r", 5, "c", "a", 5, "c", "b", 6, "d", "x") == 3
    assert cells(client, dataset, "r") == {b"c": [(5, b"b")], b"d": [(6, b"x")]}


def test_two_stamps_in_a_millisecond_keep_both_cells(client: redis.Redis, dataset: str) -> None:
    words = [word for number in range(50) for word in ("*", "c", b"%d" % number)]
    assert ask(client, "WCPUT", dataset, "r", *words) == 50
    found = cells(client, dataset, "r")[b"c"]
    assert [value for _, value in found] == [b"%d" % number for number in reversed(range(50))]
    assert found == sorted(found, key=lambda cell: -cell[0])


def test_stamped_cells_are_newer_than_a_given_one_of_their_millisecond(
    client: redis.Redis, dataset: str
) -> None:
    ask(client, "WCPUT", dataset, "r", "*", "c", "stamped")
    ((moment, _),) = cells(client, dataset, "r")[b"c"]
    ask(client, "WCPUT", dataset, "r", moment, "c", "given")
    assert cells(client, dataset, "r")[b"c"] == [(moment, b"stamped"), (moment, b"given")]


def test_older_timestamp_goes_below(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r", 9, "c", "new")
    ask(client, "WCPUT", dataset, "r", 3, "c", "old")
    assert cells(client, dataset, "r")[b"c"] == [(9, b"new"), (3, b"old")]


def test_stamp_is_now(client: redis.Redis, dataset: str) -> None:
    before = time.time_ns() // 1_000_000
    ask(client, "WCPUT", dataset, "r", "*", "c", "v")
    after = time.time_ns() // 1_000_000
    ((moment, _),) = cells(client, dataset, "r")[b"c"]
    # A server that was stopped hard may be up to five seconds ahead.
    assert before <= moment <= after + 5_000


@pytest.mark.parametrize(
    ("expiry", "visible"),
    [
        (("EX", 100), True),
        (("px", 100_000), True),
        (("EXAT", 1), False),
        (("PXAT", 1), False),
        (("PXAT", 2**63 - 1), True),
    ],
)
def test_expiry_in_every_form(
    client: redis.Redis, dataset: str, expiry: tuple[str, int], visible: bool
) -> None:
    assert ask(client, "WCPUT", dataset, "r", *expiry, 5, "c", "v", 6, "c", "w") == 2
    assert bool(cells(client, dataset, "r")) is visible


def test_expired_cell_replaces_the_one_it_overwrites(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r", 5, "c", "v", 4, "c", "older")
    assert ask(client, "WCPUT", dataset, "r", "PXAT", 1, 5, "c", "gone") == 1
    assert cells(client, dataset, "r") == {b"c": [(4, b"older")]}


def test_mput_reads_an_expiry_only_where_the_count_says_so(
    client: redis.Redis, dataset: str
) -> None:
    assert ask(client, "WCMPUT", dataset, "EX", 7, "c", "v", "r2", 7, "c", "w") == 2
    assert ask(client, "WCMPUT", dataset, "EX", 100, "EX", 8, "c", "x") == 1
    assert cells(client, dataset, "EX") == {b"c": [(8, b"x"), (7, b"v")]}


BAD_PUTS = [
    (("r",), "wrong number of arguments for 'wcput' command"),
    (("r", "*", "c"), "wrong number of arguments for 'wcput' command"),
    (("r", 1, "c", "v", 2), "wrong number of arguments for 'wcput' command"),
    (("r", "EX", 1), "wrong number of arguments for 'wcput' command"),
    (("r", "NX", 1, 1, "c", "v"), "wrong number of arguments for 'wcput' command"),
    (("r", "EX", "x", 1, "c", "v"), "value is not an integer or out of range"),
    (("r", "EX", 0, 1, "c", "v"), "invalid expire time in 'wcput' command"),
    (("r", "PX", -5, 1, "c", "v"), "invalid expire time in 'wcput' command"),
    (("r", "EX", 2**63 - 1, 1, "c", "v"), "invalid expire time in 'wcput' command"),
    (("r", "EXAT", 2**62, 1, "c", "v"), "invalid expire time in 'wcput' command"),
    (("r", "PX", 2**63 - 1, 1, "c", "v"), "invalid expire time in 'wcput' command"),
    (("r", -1, "c", "v"), "invalid timestamp"),
    (("r", 2**63, "c", "v"), "invalid timestamp"),
    (("r", "1.5", "c", "v"), "invalid timestamp"),
    (("r", "01", "c", "v"), "invalid timestamp"),
    (("r", 1, "c", "v", "x", "c", "v"), "invalid timestamp"),
    ((b"r" * 65_536, 1, "c", "v"), "row key is longer than 65535 bytes"),
    (("r", 1, "c", "v", 1, b"c" * 65_536, "v"), "column name is longer than 65535 bytes"),
]


@pytest.mark.parametrize(("words", "text"), BAD_PUTS)
def test_refused_put_writes_nothing(
    client: redis.Redis, dataset: str, words: tuple[Any, ...], text: str
) -> None:
    assert refusal(client, "WCPUT", dataset, *words) == text
    assert dataset.encode() not in ask(client, "WCDATASET", "LIST")
    ask(client, "WCDATASET", "CREATE", dataset)
    assert refusal(client, "WCPUT", dataset, *words) == text
    assert ask(client, "WCSCAN", dataset) == [b"0", []]


@pytest.mark.parametrize(
    "words", [("r", 1, "c"), ("r", 1, "c", "v", "r2"), ("NX", 1, "r", 1, "c", "v"), ()]
)
def test_mput_arity(client: redis.Redis, dataset: str, words: tuple[Any, ...]) -> None:
    text = "wrong number of arguments for 'wcmput' command"
    assert refusal(client, "WCMPUT", dataset, *words) == text


def test_longest_names_are_taken(client: redis.Redis, dataset: str) -> None:
    row, column = b"\0" * 65_535, b"\xff" * 65_535
    ask(client, "WCPUT", dataset, row, 1, column, "v", 1, b"", b"")
    assert cells(client, dataset, row) == {b"": [(1, b"")], column: [(1, b"v")]}


def test_awkward_names_stay_apart(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, b"a\0b", 1, b"c", b"1")
    ask(client, "WCPUT", dataset, b"a", 1, b"b\0c", b"2")
    ask(client, "WCPUT", dataset, b"", 1, b"\r\n", b"\0")
    assert cells(client, dataset, b"a\0b") == {b"c": [(1, b"1")]}
    assert cells(client, dataset, b"a") == {b"b\0c": [(1, b"2")]}
    assert cells(client, dataset, b"") == {b"\r\n": [(1, b"\0")]}


# Reading


def test_get_shapes(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r", 1, "b", "x", 2, "b", "y", 1, "a", "")
    assert ask(client, "WCGET", dataset, "r") == [
        b"0",
        [[b"a", [[1, b""]]], [b"b", [[2, b"y"]]]],
    ]
    assert ask(client, "WCGET", dataset, "r", "NOVALUES", "VERSIONS", "all") == [
        b"0",
        [[b"a", [1]], [b"b", [2, 1]]],
    ]
    assert ask(client, "WCGET", dataset, "none") == [b"0", []]


def test_columns_come_once_in_byte_order(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r", 1, "a", "1", 1, "b", "2", 1, "c", "3")
    _, columns = ask(client, "WCGET", dataset, "r", "COLUMNS", 4, "c", "a", "x", "c")
    assert [name for name, _ in columns] == [b"a", b"c"]


def test_prefix_from_and_to_combine(client: redis.Redis, dataset: str) -> None:
    for column in ("a", "b1", "b2", "b3", "c"):
        ask(client, "WCPUT", dataset, "r", 1, column, "v")
    options = ("PREFIX", "b", "FROM", "b2", "TO", "b3")
    assert list(cells(client, dataset, "r", *options)) == [b"b2"]


def test_range_picks_among_the_visible(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCDATASET", "CREATE", dataset, "MAXVERSIONS", 3)
    for moment in range(1, 6):
        ask(client, "WCPUT", dataset, "r", moment, "c", b"%d" % moment)
    assert cells(client, dataset, "r", "RANGE", 1, 4) == {b"c": [(4, b"4"), (3, b"3")]}
    assert cells(client, dataset, "r", "RANGE", "-", 2) == {}
    assert cells(client, dataset, "r", "RANGE", 4, 3) == {}
    assert ask(client, "WCGET", dataset, "r", "VERSIONS", 1, "RANGE", "-", 4)[1] == [
        [b"c", [[4, b"4"]]]
    ]


BAD_GETS = [
    (("COUNT",), "syntax error"),
    (("COUNT", 0), "value is not an integer or out of range"),
    (("COUNT", "x"), "value is not an integer or out of range"),
    (("COUNT", 1, "COUNT", 2), "syntax error"),
    (("VERSIONS", 0), "value is not an integer or out of range"),
    (("VERSIONS", -1), "value is not an integer or out of range"),
    (("COLUMNS", 0), "value is not an integer or out of range"),
    (("COLUMNS", 3, "a", "b"), "syntax error"),
    (("COLUMNS", 1, "a", "PREFIX", "b"), "syntax error"),
    (("FROM", "b", "COLUMNS", 1, "a"), "syntax error"),
    (("RANGE", 1), "syntax error"),
    (("RANGE", 1, "*"), "invalid timestamp"),
    (("RANGE", "x", 1), "invalid timestamp"),
    (("CURSOR", "nonsense"), "invalid cursor"),
    (("CURSOR", ""), "invalid cursor"),
    (("LIMIT", 1), "syntax error"),
    (("TIMESTAMPS", 1, 1), "syntax error"),
    (("BOGUS",), "syntax error"),
]


@pytest.mark.parametrize(("options", "text"), BAD_GETS)
def test_refused_get(
    client: redis.Redis, dataset: str, options: tuple[Any, ...], text: str
) -> None:
    ask(client, "WCPUT", dataset, "r", 1, "a", "v")
    assert refusal(client, "WCGET", dataset, "r", *options) == text
    assert client.ping()


def test_cursor_belongs_to_its_call(client: redis.Redis, dataset: str) -> None:
    for row in ("r", "q"):
        ask(client, "WCPUT", dataset, row, 1, "a", "v", 1, "b", "v", 1, "c", "v")
    cursor, _ = ask(client, "WCGET", dataset, "r", "COUNT", 1)
    assert cursor != b"0"
    goes_on = ask(client, "WCGET", dataset, "r", "NOVALUES", "COUNT", 5, "CURSOR", cursor)
    assert goes_on == [b"0", [[b"b", [1]], [b"c", [1]]]]
    for words in [
        ("WCGET", dataset, "q", "CURSOR", cursor),
        ("WCGET", dataset, "r", "VERSIONS", 2, "CURSOR", cursor),
        ("WCGET", dataset, "r", "PREFIX", "", "CURSOR", cursor),
        ("WCCOLS", dataset, "r", "CURSOR", cursor),
        ("WCSCAN", dataset, "CURSOR", cursor),
        ("WCGET", dataset, "r", "CURSOR", cursor[:-2]),
    ]:
        assert refusal(client, *words) == "invalid cursor"


def test_column_not_begun_is_read_from_its_newest_cell(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r", 1, "a", "v", 1, "b", "old")
    cursor, _ = ask(client, "WCGET", dataset, "r", "COUNT", 1)
    ask(client, "WCPUT", dataset, "r", 2, "b", "new")
    assert ask(client, "WCGET", dataset, "r", "COUNT", 1, "CURSOR", cursor) == [
        b"0",
        [[b"b", [[2, b"new"]]]],
    ]


def test_mget_answers_each_row_in_order(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r", 1, "a", "v", 1, "b", "w")
    pages = ask(client, "WCMGET", dataset, "ROWS", 3, "none", "r", "r", "COUNT", 1)
    assert pages[0] == [b"0", []]
    assert pages[1] == pages[2]
    cursor, columns = pages[1]
    assert columns == [[b"a", [[1, b"v"]]]]
    assert ask(client, "WCGET", dataset, "r", "CURSOR", cursor) == [b"0", [[b"b", [[1, b"w"]]]]]


def test_mget_rows_without_room_are_gone_on_with(make_server: MakeServer, dataset: str) -> None:
    client = make_server(wc_page_cells=2).client()
    ask(client, "WCMPUT", dataset, "r", 1, "a", "v", "r", 1, "b", "v")
    first, missing = ask(client, "WCMGET", dataset, "ROWS", 2, "r", "none")
    assert first[0] == b"0"
    assert missing[0] != b"0" and missing[1] == []
    assert ask(client, "WCGET", dataset, "none", "CURSOR", missing[0]) == [b"0", []]
    client.close()


def test_scan_shapes(client: redis.Redis, dataset: str) -> None:
    for row in ("r1", "r2", "s1"):
        ask(client, "WCPUT", dataset, row, 1, "a", "v", 1, "b", "w")
    cursor, rows = ask(client, "WCSCAN", dataset, "LIMIT", 1, "COUNT", 1, "PREFIX", "r")
    assert cursor != b"0"
    ((row, columns, within),) = rows
    assert (row, columns) == (b"r1", [[b"a", [[1, b"v"]]]])
    assert ask(client, "WCGET", dataset, "r1", "CURSOR", within) == [b"0", [[b"b", [[1, b"w"]]]]]
    options = ("LIMIT", 5, "PREFIX", "r", "NOVALUES", "CURSOR", cursor)
    assert ask(client, "WCSCAN", dataset, *options) == [
        b"0",
        [[b"r2", [[b"a", [1]], [b"b", [1]]], b"0"]],
    ]


def test_scan_gives_only_rows_with_a_selected_cell(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r1", 1, "a", "v")
    ask(client, "WCPUT", dataset, "r2", 1, "b", "v")
    assert ask(client, "WCSCAN", dataset, "COLUMNS", 1, "b") == [
        b"0",
        [[b"r2", [[b"b", [[1, b"v"]]]], b"0"]],
    ]
    assert ask(client, "WCSCAN", dataset, "FROM", "r2", "TO", "r2") == [b"0", []]


def test_cols_and_exists(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r", 1, "a", "v", 1, "b", "v")
    ask(client, "WCPUT", dataset, "gone", "PXAT", 1, 1, "a", "v")
    assert ask(client, "WCCOLS", dataset, "r") == [b"0", [b"a", b"b"]]
    cursor, names = ask(client, "WCCOLS", dataset, "r", "COUNT", 1)
    assert names == [b"a"]
    assert ask(client, "WCCOLS", dataset, "r", "CURSOR", cursor) == [b"0", [b"b"]]
    assert ask(client, "WCEXISTS", dataset, "r", "gone", "none", "r") == 2


# Deleting


def test_delete_counts_rows_or_columns(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r", 1, "a", "v", 1, "b", "v")
    assert ask(client, "WCDEL", dataset, "r", "COLUMNS", 3, "a", "a", "none") == 1
    assert ask(client, "WCDEL", dataset, "r") == 1
    assert ask(client, "WCDEL", dataset, "r") == 0


def test_deleted_cells_can_be_written_again_at_an_older_time(
    client: redis.Redis, dataset: str
) -> None:
    ask(client, "WCPUT", dataset, "r", 9, "a", "v")
    ask(client, "WCDEL", dataset, "r")
    ask(client, "WCPUT", dataset, "r", 3, "a", "w")
    assert cells(client, dataset, "r") == {b"a": [(3, b"w")]}


@pytest.mark.parametrize("width", [5, 500])
def test_delete_by_time_small_and_large(client: redis.Redis, dataset: str, width: int) -> None:
    words = [word for moment in range(1, width + 1) for word in (moment, "c", b"%d" % moment)]
    ask(client, "WCPUT", dataset, "r", *words)
    assert ask(client, "WCDEL", dataset, "r", "RANGE", 2, width - 1) == 1
    assert [moment for moment, _ in cells(client, dataset, "r")[b"c"]] == [width, 1]
    assert ask(client, "WCDEL", dataset, "r", "TIMESTAMPS", 3, width, 777_777, width) == 1
    assert [moment for moment, _ in cells(client, dataset, "r")[b"c"]] == [1]
    assert ask(client, "WCDEL", dataset, "r", "COLUMNS", 1, "c", "RANGE", "+", "-") == 0


def test_delete_does_not_bring_back_what_was_hidden(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCDATASET", "CREATE", dataset, "MAXVERSIONS", 2)
    ask(client, "WCPUT", dataset, "r", 1, "c", "1", 2, "c", "2", 3, "c", "3", 4, "c", "4")
    assert ask(client, "WCDEL", dataset, "r", "TIMESTAMPS", 1, 4) == 1
    assert cells(client, dataset, "r") == {b"c": [(3, b"3")]}
    ask(client, "WCDATASET", "ALTER", dataset, "MAXVERSIONS", 0)
    assert cells(client, dataset, "r") == {b"c": [(3, b"3")]}


def test_rewriting_with_an_earlier_expiry_does_not_bring_back_what_was_hidden(
    client: redis.Redis, dataset: str
) -> None:
    ask(client, "WCDATASET", "CREATE", dataset, "MAXVERSIONS", 1)
    ask(client, "WCPUT", dataset, "r", 1, "c", "hidden", 2, "c", "shown")
    ask(client, "WCPUT", dataset, "r", "PXAT", 1, 2, "c", "gone")
    assert cells(client, dataset, "r") == {}


def test_mdel_sums(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCMPUT", dataset, "r1", 1, "a", "v", "r2", 1, "a", "v", "r2", 1, "b", "v")
    assert (
        ask(client, "WCMDEL", dataset, "ROWS", 3, "r2", "none", "r2", "COLUMNS", 2, "a", "b") == 2
    )
    assert ask(client, "WCMDEL", dataset, "ROWS", 2, "r1", "r1") == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("RANGE", 1, 2, "TIMESTAMPS", 1, 1), "syntax error"),
        (("TIMESTAMPS", 1, "*"), "invalid timestamp"),
        (("TIMESTAMPS", 0), "value is not an integer or out of range"),
        (("COLUMNS", 1), "syntax error"),
        (("PREFIX", "a"), "syntax error"),
    ],
)
def test_refused_delete_deletes_nothing(
    client: redis.Redis, dataset: str, options: tuple[Any, ...], text: str
) -> None:
    ask(client, "WCPUT", dataset, "r", 1, "a", "v")
    assert refusal(client, "WCDEL", dataset, "r", *options) == text
    assert refusal(client, "WCMDEL", dataset, "ROWS", 1, "r", *options) == text
    assert cells(client, dataset, "r") == {b"a": [(1, b"v")]}


# More on a row


def test_incrby(client: redis.Redis, dataset: str) -> None:
    assert ask(client, "WCINCRBY", dataset, "r", "n", 5) == 5
    assert ask(client, "WCINCRBY", dataset, "r", "n", -7) == -2
    assert [value for _, value in cells(client, dataset, "r")[b"n"]] == [b"-2", b"5"]


def test_incrby_keeps_the_expiry(client: redis.Redis, dataset: str) -> None:
    far = time.time_ns() // 1_000_000 + HOUR_MS
    ask(client, "WCDATASET", "CREATE", dataset, "MAXVERSIONS", 1)
    ask(client, "WCPUT", dataset, "r", "PXAT", far, "*", "n", "5")
    ask(client, "WCINCRBY", dataset, "r", "n", 1)
    # Rewriting the new cell without an expiry is no earlier one: nothing hidden may go then.
    ask(client, "WCDATASET", "ALTER", dataset, "TTL", 7200)
    assert cells(client, dataset, "r")[b"n"][0][1] == b"6"


@pytest.mark.parametrize(
    ("value", "amount", "text"),
    [
        ("x", 1, "value is not an integer or out of range"),
        ("", 1, "value is not an integer or out of range"),
        (2**63, 1, "value is not an integer or out of range"),
        (2**63 - 1, 1, "increment or decrement would overflow"),
        (-(2**63), -1, "increment or decrement would overflow"),
        (1, "1.5", "value is not an integer or out of range"),
        (1, 2**63, "value is not an integer or out of range"),
    ],
)
def test_refused_incrby(
    client: redis.Redis, dataset: str, value: Any, amount: Any, text: str
) -> None:
    ask(client, "WCPUT", dataset, "r", 1, "n", value)
    assert refusal(client, "WCINCRBY", dataset, "r", "n", amount) == text
    assert cells(client, dataset, "r") == {b"n": [(1, str(value).encode())]}


def test_incrby_of_a_future_cell(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r", 2**62, "n", 1)
    assert refusal(client, "WCINCRBY", dataset, "r", "n", 1) == "newest cell is in the future"


def test_cas(client: redis.Redis, dataset: str) -> None:
    assert ask(client, "WCCAS", dataset, "r", "c", "IFEQ", "x", 5, "a") == 0
    assert dataset.encode() not in ask(client, "WCDATASET", "LIST")
    assert ask(client, "WCCAS", dataset, "r", "c", "IFABSENT", 5, "a") == 1
    assert ask(client, "WCCAS", dataset, "r", "c", "IFABSENT", 6, "b") == 0
    assert ask(client, "WCCAS", dataset, "r", "c", "IFEQ", "x", 6, "b") == 0
    assert ask(client, "WCCAS", dataset, "r", "c", "ifeq", "a", "EX", 100, 6, "b") == 1
    assert ask(client, "WCCAS", dataset, "r", "c", "IFEQ", "b", "*", "") == 1
    assert ask(client, "WCCAS", dataset, "r", "c", "IFEQ", "", "*", "again") == 1
    assert [value for _, value in cells(client, dataset, "r")[b"c"]] == [b"again", b"", b"b", b"a"]


@pytest.mark.parametrize("words", [(5, "b"), (4, "b"), ("PXAT", 1, 9, "b")])
def test_cas_must_write_the_newest_cell(
    client: redis.Redis, dataset: str, words: tuple[Any, ...]
) -> None:
    ask(client, "WCPUT", dataset, "r", 5, "c", "a")
    text = "timestamp is not newer than the newest cell"
    assert refusal(client, "WCCAS", dataset, "r", "c", "IFEQ", "a", *words) == text
    assert cells(client, dataset, "r") == {b"c": [(5, b"a")]}


@pytest.mark.parametrize(
    "words",
    [
        ("IFEQ", "a", 5),
        ("IFMORE", "a", 5, "b"),
        ("IFABSENT", 5, "b", "c"),
        ("IFABSENT", "XX", 1, 5, "b"),
        ("IFABSENT", 5, "b", "EX", 1),
    ],
)
def test_cas_syntax(client: redis.Redis, dataset: str, words: tuple[Any, ...]) -> None:
    assert refusal(client, "WCCAS", dataset, "r", "c", *words) in (
        "syntax error",
        "wrong number of arguments for 'wccas' command",
        "invalid timestamp",
    )
    assert dataset.encode() not in ask(client, "WCDATASET", "LIST")


# Datasets


def test_dataset_life(client: redis.Redis, dataset: str) -> None:
    assert ask(client, "WCDATASET", "CREATE", dataset, "TTL", 60, "MAXVERSIONS", 3) == b"OK"
    assert dataset.encode() in ask(client, "WCDATASET", "LIST", f"*{dataset[4:]}")
    assert refusal(client, "WCDATASET", "CREATE", dataset).startswith("DATASETEXISTS ")
    words = ("WCDATASET", "CREATE", dataset, "IFNOTEXISTS", "TTL", 5)
    assert ask(client, *words) == b"OK"
    assert info(client, dataset)[b"ttl"] == 60
    assert ask(client, "WCDATASET", "ALTER", dataset, "TTL", 0) == b"OK"
    found = info(client, dataset)
    assert (found[b"name"], found[b"maxversions"], found[b"ttl"]) == (dataset.encode(), 3, 0)
    assert ask(client, "WCDATASET", "DROP", dataset) == b"OK"
    text = f"NODATASET no such dataset '{dataset}'"
    assert refusal(client, "WCDATASET", "DROP", dataset) == text
    assert ask(client, "WCDATASET", "DROP", dataset, "IFEXISTS") == b"OK"


def info(client: redis.Redis, dataset: str) -> dict[bytes, Any]:
    answer = ask(client, "WCDATASET", "INFO", dataset)
    if isinstance(answer, dict):
        return answer
    return dict(zip(answer[::2], answer[1::2], strict=True))


def test_dataset_info_is_a_map_in_resp3(server: ServerProcess, dataset: str) -> None:
    keys = [
        "name",
        "maxversions",
        "ttl",
        "created-ms",
        "estimated-cells",
        "disk-bytes",
        "memtable-bytes",
        "last-compaction-ms",
        "last-compaction-removed-cells",
        "compaction",
    ]
    with server.client(protocol=3) as client:
        ask(client, "WCPUT", dataset, "r", 1, "c", "v")
        answer = ask(client, "WCDATASET", "INFO", dataset)
    assert isinstance(answer, dict)
    assert list(answer) == [key.encode() for key in keys]
    assert answer[b"estimated-cells"] == 1


def test_dropped_dataset_comes_back_empty(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCPUT", dataset, "r", 1, "c", "v")
    ask(client, "WCDATASET", "DROP", dataset)
    ask(client, "WCPUT", dataset, "r2", 1, "c", "v")
    assert ask(client, "WCEXISTS", dataset, "r", "r2") == 1


def test_compaction_removes_and_changes_nothing(client: redis.Redis, dataset: str) -> None:
    ask(client, "WCDATASET", "CREATE", dataset, "MAXVERSIONS", 2)
    for moment in range(10):
        ask(client, "WCPUT", dataset, "r", moment, "c", "v")
    ask(client, "WCPUT", dataset, "gone", "PXAT", 1, 1, "c", "v")
    before = ask(client, "WCSCAN", dataset, "VERSIONS", "ALL")
    assert ask(client, "WCDATASET", "COMPACT", dataset) == b"OK"

    def is_over() -> bool:
        assert ask(client, "WCSCAN", dataset, "VERSIONS", "ALL") == before
        return bool(info(client, dataset)[b"last-compaction-ms"])

    until(is_over)
    assert info(client, dataset)[b"last-compaction-removed-cells"] == 9
    assert ask(client, "WCSCAN", dataset, "VERSIONS", "ALL") == before


EVERY_CALL = [
    ("WCGET", "{}", "r"),
    ("WCMGET", "{}", "ROWS", 1, "r"),
    ("WCSCAN", "{}"),
    ("WCCOLS", "{}", "r"),
    ("WCEXISTS", "{}", "r"),
    ("WCDEL", "{}", "r"),
    ("WCMDEL", "{}", "ROWS", 1, "r"),
    ("WCDATASET", "INFO", "{}"),
    ("WCDATASET", "ALTER", "{}", "TTL", 1),
    ("WCDATASET", "COMPACT", "{}"),
    ("WCDATASET", "DROP", "{}"),
    ("WCPUT", "{}", "r", 1, "c", "v"),
    ("WCMPUT", "{}", "r", 1, "c", "v"),
    ("WCINCRBY", "{}", "r", "c", 1),
    ("WCCAS", "{}", "r", "c", "IFABSENT", 1, "v"),
]
WRITES = {"WCPUT", "WCMPUT", "WCINCRBY", "WCCAS"}


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 129, "a/b", "a\0"])
@pytest.mark.parametrize("words", EVERY_CALL)
def test_invalid_dataset_name(client: redis.Redis, words: tuple[Any, ...], name: str) -> None:
    call = [name if word == "{}" else word for word in words]
    assert refusal(client, *call) == "invalid dataset name"


@pytest.mark.parametrize("words", [call for call in EVERY_CALL if call[0] not in WRITES])
def test_unknown_dataset(client: redis.Redis, words: tuple[Any, ...]) -> None:
    call = ["nowhere" if word == "{}" else word for word in words]
    assert refusal(client, *call) == "NODATASET no such dataset 'nowhere'"


def test_without_auto_create_writes_are_refused(make_server: MakeServer) -> None:
    client = make_server(wc_auto_create="no").client()
    for words in EVERY_CALL:
        call = ["nowhere" if word == "{}" else word for word in words]
        assert refusal(client, *call) == "NODATASET no such dataset 'nowhere'"
    assert ask(client, "WCDATASET", "LIST") == []
    client.close()


@pytest.mark.parametrize(
    "words",
    [
        ["WCPUT", "d", "row", 5, "column", 1],
        ["WCMPUT", "d", "row", 5, "column", 1],
        ["WCINCRBY", "d", "row", "column", 1],
        ["WCCAS", "d", "row", "column", "IFABSENT", 5, 1],
    ],
    ids=lambda words: words[0],
)
def test_without_auto_create_only_create_creates(make_server: MakeServer, words: list[Any]) -> None:
    with make_server(wc_auto_create="no").client() as client:
        with pytest.raises(redis.ResponseError, match=r"^NODATASET no such dataset 'd'$"):
            ask(client, *words)
        assert ask(client, "WCDATASET", "LIST") == []
        assert ask(client, "WCDATASET", "CREATE", "d") == b"OK"
        assert ask(client, *words) == 1


def test_created_with_the_configured_defaults(make_server: MakeServer) -> None:
    client = make_server(wc_default_maxversions=2, wc_default_ttl=99).client()
    ask(client, "WCPUT", "made", "r", "*", "c", "v")
    ask(client, "WCDATASET", "CREATE", "named", "TTL", 5)
    assert (info(client, "made")[b"maxversions"], info(client, "made")[b"ttl"]) == (2, 99)
    assert (info(client, "named")[b"maxversions"], info(client, "named")[b"ttl"]) == (2, 5)
    client.close()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("CREATE", "x", "MAXVERSIONS", 100_001), "value is not an integer or out of range"),
        (("CREATE", "x", "MAXVERSIONS", -1), "value is not an integer or out of range"),
        (("CREATE", "x", "TTL", 2**63 // 1000 + 1), "value is not an integer or out of range"),
        (("CREATE", "x", "TTL"), "syntax error"),
        (("CREATE", "x", "TTL", 1, "TTL", 1), "syntax error"),
        (("ALTER", "x"), "syntax error"),
        (("ALTER", "x", "IFNOTEXISTS"), "syntax error"),
        (("DROP", "x", "NOW"), "syntax error"),
        (("LIST", "a", "b"), "syntax error"),
        (("CREATE",), "wrong number of arguments for 'wcdataset|create' command"),
        (("INFO", "x", "y"), "wrong number of arguments for 'wcdataset|info' command"),
        (("FOO",), "unknown subcommand 'FOO'. Try WCDATASET HELP."),
        ((), "wrong number of arguments for 'wcdataset' command"),
    ],
)
def test_refused_dataset_calls(client: redis.Redis, words: tuple[Any, ...], text: str) -> None:
    assert refusal(client, "WCDATASET", *words) == text
    assert b"x" not in ask(client, "WCDATASET", "LIST")


# Wide rows


def test_million_columns_never_make_a_large_reply(make_server: MakeServer) -> None:
    server = make_server(wc_page_bytes="64kb")
    client = server.client()
    pipeline = client.pipeline(transaction=False)
    for start in range(0, 1_000_000, 2_000):
        words = [
            word
            for number in range(start, start + 2_000)
            for word in (1, b"column:%07d" % number, b"v")
        ]
        pipeline.execute_command("WCPUT", "wide", "r", *words)
        if start % 100_000 == 0:
            pipeline.execute()
    pipeline.execute()
    reply = raw_reply_bytes(server, b"WCGET wide r COUNT 1000000 VERSIONS ALL\r\n")
    assert 16 * 1024 < reply <= 64 * 1024
    cursor, columns = ask(client, "WCGET", "wide", "r", "COUNT", 3, "FROM", "column:0999997")
    assert (cursor, len(columns)) == (b"0", 3)
    assert ask(client, "WCDEL", "wide", "r") == 1
    assert ask(client, "WCEXISTS", "wide", "r") == 0
    client.close()


def raw_reply_bytes(server: ServerProcess, line: bytes) -> int:
    """The size of one command's whole reply on the wire."""
    with server.raw() as connection:
        connection.sendall(line + b"ECHO end-of-reply\r\n")
        received = b""
        while not received.endswith(b"$12\r\nend-of-reply\r\n"):
            received += connection.recv(1 << 20)
    return len(received) - len(b"$12\r\nend-of-reply\r\n")
