"""Replies that are given again are the replies that would be read anew.

WCMGET reads every time, so what it says of a row is what a WCGET of that row must say: after each
change, by whatever it came, and after each moment at which a cell may have expired. Every WCGET is
sent twice, so that the second is one that was kept, if any was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.against_model.steered import Limits, SteeredServer, Word, execute
from tests.harness import MakeServer

ROWS = ("r", "s")
QUESTIONS: tuple[tuple[Word, ...], ...] = (
    (),
    ("VERSIONS", "ALL"),
    ("COLUMNS", 1, "a", "VERSIONS", 2),
    ("RANGE", "-", "+", "NOVALUES"),
    ("COUNT", 1),
)
TIMES = st.one_of(st.just("*"), st.integers(1, 6))
MOMENTS = st.integers(1, 40)

Step = tuple[Word, ...]


def cells() -> st.SearchStrategy[Step]:
    return st.tuples(TIMES, st.sampled_from("ab"), st.sampled_from(["1", "22", ""]))


CHANGES: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda row, cell: ("WCPUT", "{}", row, *cell), st.sampled_from(ROWS), cells()),
    st.builds(
        lambda row, moment, cell: ("WCPUT", "{}", row, "PX", moment, *cell),
        st.sampled_from(ROWS),
        MOMENTS,
        cells(),
    ),
    st.builds(
        lambda one, other: ("WCMPUT", "{}", "r", *one, "s", *other), cells(), cells()
    ),
    st.builds(lambda row: ("WCDEL", "{}", row), st.sampled_from(ROWS)),
    st.builds(lambda row: ("WCDEL", "{}", row, "COLUMNS", 1, "a"), st.sampled_from(ROWS)),
    st.builds(lambda start: ("WCDEL", "{}", "r", "RANGE", start, "+"), st.integers(0, 6)),
    st.just(("WCMDEL", "{}", "ROWS", 2, "r", "s")),
    st.just(("WCINCRBY", "{}", "s", "n", 1)),
    st.builds(lambda most: ("WCDATASET", "ALTER", "{}", "MAXVERSIONS", most), st.integers(0, 2)),
    st.builds(lambda ttl: ("WCDATASET", "ALTER", "{}", "TTL", ttl), st.integers(0, 1)),
    st.just(("WCDATASET", "DROP", "{}")),
    st.just(("WCDATASET", "COMPACT", "{}")),
    st.builds(lambda moment: ("PASS", moment), MOMENTS),
)  # fmt: skip


@pytest.fixture(scope="module", params=[None, 5_000], ids=["large", "tiny"])
def remembering(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SteeredServer]:
    limits = Limits(columns=5, row_cache_bytes=request.param)
    server = SteeredServer(tmp_path_factory.mktemp("remembering"), limits)
    yield server
    server.process.close()


def compare(client: Any, dataset: str) -> None:
    for row in ROWS:
        for question in QUESTIONS:
            read = execute(client, "WCMGET", dataset, "ROWS", 1, row, *question)[0]
            for _ in range(2):
                assert execute(client, "WCGET", dataset, row, *question) == read


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CHANGES, st.booleans()), max_size=15))
def test_no_reply_is_stale(remembering: SteeredServer, steps: list[tuple[Step, bool]]) -> None:
    client = remembering.running().client(protocol=2)
    clock, dataset = remembering.clock, next(remembering.names)
    clock.start_of_example()
    with client:
        execute(client, "WCPUT", dataset, "r", "*", "a", "1")
        for words, in_transaction in steps:
            if words[0] == "PASS":
                clock.now += int(words[1])
            else:
                if in_transaction:
                    execute(client, "MULTI")
                execute(client, *(dataset if word == "{}" else word for word in words))
                if in_transaction:
                    # Inside, it shows what may never be committed: nothing to be kept.
                    execute(client, "WCGET", dataset, "r")
                    execute(client, "WCPUT", dataset, "r", 3, "a", "later")
                    execute(client, "EXEC")
                elif words[:2] == ("WCDATASET", "DROP"):
                    execute(client, "WCPUT", dataset, "s", "*", "a", "1")
            compare(client, dataset)
        execute(client, "WCDATASET", "DROP", dataset)
        if steps:
            assert client.info("stats")["wc_row_cache_hits"] > 0


def test_what_is_kept_has_its_bound(make_server: MakeServer) -> None:
    server = make_server(wc_row_cache_bytes="100kb")
    with server.client(protocol=3) as client:
        for row in range(300):
            execute(client, "WCPUT", "d", row, "*", "c", "v" * 500)
            execute(client, "WCGET", "d", row)
            assert client.info("stats")["wc_row_cache_bytes"] <= 100 * 1024
        assert 20 < client.info("stats")["wc_row_cache_rows"] < 300
        client.config_set("wc-row-cache-bytes", 0)
        stats = client.info("stats")
        assert (stats["wc_row_cache_rows"], stats["wc_row_cache_bytes"]) == (0, 0)
        assert execute(client, "WCGET", "d", 299) == execute(client, "WCGET", "d", 299)
        assert client.info("stats")["wc_row_cache_rows"] == 0


def test_rows_in_use_stay(make_server: MakeServer) -> None:
    server = make_server(wc_row_cache_bytes="50kb")
    with server.client() as client:
        for row in range(200):
            execute(client, "WCPUT", "d", row, "*", "c", "v")
        for row in range(200):
            execute(client, "WCGET", "d", row)
            execute(client, "WCGET", "d", "0")
        client.config_resetstat()
        execute(client, "WCGET", "d", "0")
        assert client.info("stats")["wc_row_cache_hits"] == 1
        execute(client, "WCGET", "d", "1")
        assert client.info("stats")["wc_row_cache_misses"] == 1


def test_a_large_reply_and_one_with_a_cursor_are_not_kept(make_server: MakeServer) -> None:
    server = make_server(wc_row_cache_bytes="64kb")
    with server.client() as client:
        execute(client, "WCPUT", "d", "large", "*", "c", "v" * 10_000)
        execute(client, "WCPUT", "d", "wide", "*", "a", "1", "*", "b", "2")
        execute(client, "WCGET", "d", "large")
        assert client.info("stats")["wc_row_cache_rows"] == 0
        cursor = execute(client, "WCGET", "d", "wide", "COUNT", 1)[0]
        execute(client, "WCGET", "d", "wide", "COUNT", 1, "CURSOR", cursor)
        assert client.info("stats")["wc_row_cache_rows"] == 1
        assert client.info("stats")["wc_row_cache_misses"] == 2
