"""examples/wide_column.py, the typed helper for redis-py: RESP2 and RESP3, blocking and asyncio."""

from __future__ import annotations

import asyncio
import doctest
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.asyncio

from examples import wide_column
from examples.wide_column import (
    AsyncWideColumn,
    Cell,
    Page,
    QueuedWideColumn,
    Row,
    WideColumn,
    Written,
)
from tests.harness import MakeServer, ServerProcess

EVERY_BYTE = bytes(range(256))
FAR_FUTURE_MS = 4_000_000_000_000


@pytest.fixture
def wide(client: redis.Redis) -> WideColumn:
    return WideColumn(client)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server whose pages end after three cells."""
    directory = tmp_path_factory.mktemp("narrow") / "data"
    running = ServerProcess(directory, wc_page_cells=3)
    running.start()
    yield running
    running.close()


def test_session_of_the_docstring_answers_as_printed(
    make_server: MakeServer,
) -> None:
    server = make_server()
    text = wide_column.__doc__
    assert text is not None
    here = text.replace("redis.Redis()", f"redis.Redis(port={server.port})")
    assert here != text
    session = doctest.DocTestParser().get_doctest(
        here, dict(vars(wide_column)), "the docstring", None, 0
    )
    assert len(session.examples) > 10
    printed: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(
        session, out=printed.append, clear_globs=False
    )
    session.globs["client"].close()
    assert outcome.failed == 0, "".join(printed)


# Writing and reading


def test_put_and_get(wide: WideColumn, dataset: str) -> None:
    assert wide.put(dataset, "r", {"b": "2", "a": "1"}) == 2
    assert wide.get(dataset, "r") == {b"a": b"1", b"b": b"2"}
    assert wide.get(dataset, "another") == {}


def test_names_and_values_are_any_bytes(wide: WideColumn, dataset: str) -> None:
    assert wide.put(dataset.encode(), EVERY_BYTE, {EVERY_BYTE: EVERY_BYTE, b"\r\n": b""}) == 2
    assert wide.get(dataset, EVERY_BYTE) == {EVERY_BYTE: EVERY_BYTE, b"\r\n": b""}


def test_text_is_utf8_and_numbers_are_decimal(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "é", {"ø": "å", "integer": -7, "float": 0.5})
    assert wide.get(dataset, "é".encode()) == {
        "ø".encode(): "å".encode(),
        b"integer": b"-7",
        b"float": b"0.5",
    }


def test_put_takes_a_timestamp_for_all_or_for_each(wide: WideColumn, dataset: str) -> None:
    cells: dict[str, Written] = {"one": "x", "own": (5, "y"), "many": [(7, "new"), (6, "old")]}
    assert wide.put(dataset, "r", cells, timestamp_ms=9) == 4
    assert wide.get_cells(dataset, "r", versions="all") == {
        b"one": [Cell(9, b"x")],
        b"own": [Cell(5, b"y")],
        b"many": [Cell(7, b"new"), Cell(6, b"old")],
    }


def test_what_was_read_can_be_put(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"a": [(1, "x"), (2, "y")], "b": (3, "z")})
    read = wide.get_cells(dataset, "r", versions="all")
    wide.put(dataset, "copy", read)
    assert wide.get_cells(dataset, "copy", versions="all") == read


def test_without_a_timestamp_the_server_stamps(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"a": "first"})
    wide.put(dataset, "r", {"a": "second"})
    cells = wide.get_cells(dataset, "r", versions="all")[b"a"]
    assert [cell.value for cell in cells] == [b"second", b"first"]
    assert cells[0].timestamp_ms > 1_600_000_000_000


def test_expiry(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"gone": "x"}, expire_at_ms=1)
    wide.put(dataset, "r", {"later": "x"}, expire_at_ms=FAR_FUTURE_MS)
    wide.put(dataset, "r", {"after": "x"}, expire_after_ms=1_000_000)
    wide.put_many(dataset, {"r": {"gone too": "x"}, "s": {"gone": "x"}}, expire_at_ms=1)
    assert list(wide.get(dataset, "r")) == [b"after", b"later"]
    assert wide.get(dataset, "s") == {}


def test_put_many(wide: WideColumn, dataset: str) -> None:
    rows: dict[str, dict[str, Written]] = {"r": {"a": "1", "b": "2"}, "EX": {"a": (5, "3")}}
    assert wide.put_many(dataset, rows, timestamp_ms=4) == 3
    assert wide.get_many_cells(dataset, ["r", "EX"]) == {
        b"r": {b"a": [Cell(4, b"1")], b"b": [Cell(4, b"2")]},
        b"EX": {b"a": [Cell(5, b"3")]},
    }


def test_columns_are_selected(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"a1": 1, "a2": 2, "b1": 3, "b2": 4})
    assert list(wide.get(dataset, "r", columns=["b1", "a2", "c"])) == [b"a2", b"b1"]
    assert list(wide.get(dataset, "r", prefix="a")) == [b"a1", b"a2"]
    assert list(wide.get(dataset, "r", start="a2", stop="b2")) == [b"a2", b"b1"]


def test_versions_are_selected(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"a": [(number, number) for number in range(1, 6)]})

    def timestamps(**options: Any) -> list[int]:
        return [cell.timestamp_ms for cell in wide.get_cells(dataset, "r", **options)[b"a"]]

    assert timestamps() == [5]
    assert timestamps(versions=2) == [5, 4]
    assert timestamps(versions="all", start_ms=2, end_ms=4) == [4, 3, 2]
    assert timestamps(versions="all", start_ms=4) == [5, 4]
    assert timestamps(versions="all", end_ms=2) == [2, 1]
    assert wide.get(dataset, "r", end_ms=3) == {b"a": b"3"}


def test_timestamps_without_values(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"a": [(1, "x"), (2, "y")], "b": (3, "z")})
    assert wide.get_timestamps(dataset, "r", versions="all") == {b"a": [2, 1], b"b": [3]}


def test_get_many_leaves_out_rows_without_cells(wide: WideColumn, dataset: str) -> None:
    wide.put_many(dataset, {"r": {"a": "1"}, "s": {"b": "2"}})
    assert wide.get_many(dataset, ["s", "none", "r"]) == {b"s": {b"b": b"2"}, b"r": {b"a": b"1"}}
    assert wide.get_many(dataset, ["s", "r"], columns=["a"]) == {b"r": {b"a": b"1"}}


def test_exists(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"a": "1"})
    assert wide.exists(dataset, "r", "none", "r") == 2


# Pages


def test_pages(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {f"c{number}": number for number in range(5)})
    pages = list(wide.pages(dataset, "r", count=2))
    assert [list(page.columns) for page in pages] == [[b"c0", b"c1"], [b"c2", b"c3"], [b"c4"]]
    assert [page.cursor is None for page in pages] == [False, False, True]


def test_page_goes_on_with_its_cursor(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"a1": 1, "a2": 2, "b": 3})
    first = wide.page(dataset, "r", prefix="a", count=1)
    assert first.cursor is not None
    second = wide.page(dataset, "r", prefix="a", count=1, cursor=first.cursor)
    assert (list(first.columns), list(second.columns)) == ([b"a1"], [b"a2"])
    assert wide.page(dataset, "none") == Page({}, None)


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def in_pages(request: pytest.FixtureRequest, narrow: ServerProcess, dataset: str) -> Any:
    """A helper on the server of small pages, and what is stored there in a dataset."""
    stored = {
        f"row{row}".encode(): {
            f"column{column}".encode(): [Cell(stamp, b"%d" % stamp) for stamp in (4, 3, 2, 1)]
            for column in range(3)
        }
        for row in range(3)
    }
    dataset = f"{dataset}-{request.param}"
    with narrow.client(protocol=request.param) as client:
        helper = WideColumn(client)
        helper.put_many(dataset, stored)
        yield helper, dataset, stored


def test_page_may_end_inside_a_column(in_pages: Any) -> None:
    wide, dataset, stored = in_pages
    pages = list(wide.pages(dataset, "row1", versions="all"))
    cells = [(name, cell) for page in pages for name in page.columns for cell in page.columns[name]]
    assert len(pages) == 4  # of three cells each
    assert cells == [(name, cell) for name, cells in stored[b"row1"].items() for cell in cells]


def test_rows_are_read_to_their_end(in_pages: Any) -> None:
    wide, dataset, stored = in_pages
    assert wide.get_cells(dataset, "row0", versions="all") == stored[b"row0"]
    assert wide.get(dataset, "row0") == dict.fromkeys(stored[b"row0"], b"4")
    timestamps = {name: [4, 3, 2, 1] for name in stored[b"row0"]}
    assert wide.get_timestamps(dataset, "row0", versions="all") == timestamps
    assert wide.get_many_cells(dataset, list(stored), versions="all") == stored
    assert wide.get_many(dataset, list(stored)) == {
        row: dict.fromkeys(columns, b"4") for row, columns in stored.items()
    }


def test_scan_reads_rows_to_their_end(in_pages: Any) -> None:
    wide, dataset, stored = in_pages
    every = [Row(key, columns) for key, columns in stored.items()]
    assert list(wide.scan(dataset, versions="all")) == every
    assert list(wide.scan(dataset, versions="all", limit=1)) == every
    inside = list(wide.scan(dataset, versions=3, start_ms=1, end_ms=2, columns=["column1"]))
    assert inside == [Row(key, {b"column1": [Cell(2, b"2"), Cell(1, b"1")]}) for key in stored]


def test_column_names_come_to_an_end(in_pages: Any) -> None:
    wide, dataset, _ = in_pages
    names = [f"c{number:03}" for number in range(20)]
    wide.put(dataset, "wide", dict.fromkeys(names, "x"))
    assert list(wide.column_names(dataset, "wide")) == [name.encode() for name in names]
    assert list(wide.column_names(dataset, "wide", prefix="c00", start="c003", stop="c005")) == [
        b"c003",
        b"c004",
    ]


def test_scan_selects_rows(wide: WideColumn, dataset: str) -> None:
    wide.put_many(dataset, {f"r{number}": {"a": number} for number in range(5)})
    wide.put(dataset, "other", {"b": 1})

    def keys(**options: Any) -> list[bytes]:
        return [row.key for row in wide.scan(dataset, **options)]

    assert keys() == [b"other", b"r0", b"r1", b"r2", b"r3", b"r4"]
    assert keys(prefix="r", limit=2) == [b"r0", b"r1", b"r2", b"r3", b"r4"]
    assert keys(start="r1", stop="r3") == [b"r1", b"r2"]
    assert keys(columns=["b"]) == [b"other"]


# Changing and deleting


def test_increment(wide: WideColumn, dataset: str) -> None:
    assert wide.increment(dataset, "r", "n") == 1
    assert wide.increment(dataset, "r", "n", by=-11) == -10
    assert wide.get(dataset, "r") == {b"n": b"-10"}


def test_compare_and_put(wide: WideColumn, dataset: str) -> None:
    assert wide.compare_and_put(dataset, "r", "a", "1", expected=None) is True
    assert wide.compare_and_put(dataset, "r", "a", "2", expected=None) is False
    assert wide.compare_and_put(dataset, "r", "a", "2", expected="0") is False
    # 0 and "" are values that may be expected.
    assert wide.compare_and_put(dataset, "r", "a", 0, expected=1) is True
    assert wide.compare_and_put(dataset, "r", "a", "", expected=0) is True
    assert wide.compare_and_put(dataset, "r", "a", "3", expected="") is True
    later = {"expected": "3", "timestamp_ms": FAR_FUTURE_MS, "expire_at_ms": FAR_FUTURE_MS}
    assert wide.compare_and_put(dataset, "r", "a", "4", **later) is True  # type: ignore[arg-type]
    assert wide.get_cells(dataset, "r") == {b"a": [Cell(FAR_FUTURE_MS, b"4")]}


def test_delete(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"a": [(number, number) for number in range(1, 6)]})
    wide.put(dataset, "r", {"b": "x", "c": "x"}, timestamp_ms=1)
    assert wide.delete(dataset, "r", columns=["b", "none"]) == 1
    assert wide.delete(dataset, "r", columns=["a"], timestamps_ms=[5, 2]) == 1
    assert wide.delete(dataset, "r", start_ms=3, end_ms=3) == 1
    assert wide.get_timestamps(dataset, "r", versions="all") == {b"a": [4, 1], b"c": [1]}
    assert wide.delete(dataset, "r") == 1
    assert wide.delete(dataset, "r") == 0


def test_delete_many(wide: WideColumn, dataset: str) -> None:
    wide.put_many(dataset, {row: {"a": (1, "x"), "b": (2, "y")} for row in "rst"})
    assert wide.delete_many(dataset, ["r", "s"], columns=["a"]) == 2
    assert wide.delete_many(dataset, ["s", "t"], start_ms=2) == 2
    assert wide.delete_many(dataset, ["r", "none"]) == 1
    assert wide.get_many(dataset, ["r", "s", "t"]) == {b"t": {b"a": b"x"}}


def test_datasets(wide: WideColumn, dataset: str) -> None:
    wide.create_dataset(dataset, max_versions=1, ttl_seconds=0)
    wide.create_dataset(dataset, if_not_exists=True)
    wide.put(dataset, "r", {"a": [(1, "old"), (2, "new")]})
    assert wide.get_timestamps(dataset, "r", versions="all") == {b"a": [2]}
    wide.alter_dataset(dataset, ttl_seconds=1)
    assert wide.get(dataset, "r") == {}
    assert wide.list_datasets(dataset) == [dataset]
    assert dataset in wide.list_datasets()
    wide.drop_dataset(dataset)
    wide.drop_dataset(dataset, if_exists=True)
    assert wide.list_datasets(dataset) == []
    with pytest.raises(redis.ResponseError, match="NODATASET"):
        wide.get(dataset, "r")


# Mistakes


def test_empty_list_of_columns_deletes_nothing(wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"a": "1"})
    with pytest.raises(redis.ResponseError):
        wide.delete(dataset, "r", columns=[])
    assert wide.get(dataset, "r") == {b"a": b"1"}


def test_name_is_no_list_of_names(wide: WideColumn, dataset: str) -> None:
    with pytest.raises(TypeError, match="a list of names"):
        wide.get(dataset, "r", columns="abc")
    with pytest.raises(TypeError, match="a list of names"):
        wide.delete_many(dataset, b"abc")  # type: ignore[arg-type]


def test_misspelt_option_is_refused(wide: WideColumn, dataset: str) -> None:
    with pytest.raises(TypeError, match="'colums' is not an option"):
        wide.get(dataset, "r", colums=["a"])  # type: ignore[call-arg]


def test_bytes_come_back_where_the_client_decodes(server: ServerProcess, dataset: str) -> None:
    with server.client(decode_responses=True) as client:
        wide = WideColumn(client)
        wide.put(dataset, EVERY_BYTE, {EVERY_BYTE: EVERY_BYTE})
        assert wide.get(dataset, EVERY_BYTE) == {EVERY_BYTE: EVERY_BYTE}
        assert wide.list_datasets(dataset) == [dataset]
        with client.pipeline() as pipeline, pytest.raises(ValueError, match="decode_responses"):
            QueuedWideColumn(pipeline)


# Pipelines and transactions

QUEUED_RESULTS = [
    2,
    1,
    Page({b"a": [Cell(1, b"1")], b"b": [Cell(1, b"2")]}, None),
    [Page({b"c": [Cell(1, b"3")]}, None), Page({}, None)],
    3,
    True,
    b"echoed",
    2,
    1,
    1,
]


def queue_everything(queued: QueuedWideColumn, pipeline: Any, dataset: str) -> None:
    queued.put(dataset, "r", {"a": 1, "b": 2}, timestamp_ms=1)
    queued.put_many(dataset, {"s": {"c": 3}}, timestamp_ms=1)
    queued.page(dataset, "r")
    queued.page_of_each(dataset, ["s", "none"])
    queued.increment(dataset, "r", "a", by=2)
    queued.compare_and_put(dataset, "r", "n", "x", expected=None)
    pipeline.echo("echoed")
    queued.exists(dataset, "r", "s")
    queued.delete(dataset, "r", columns=["a"])
    queued.delete_many(dataset, ["s"])


@pytest.mark.parametrize("transaction", [False, True])
def test_queued(client: redis.Redis, dataset: str, transaction: bool) -> None:
    with client.pipeline(transaction=transaction) as pipeline:
        queue_everything(QueuedWideColumn(pipeline), pipeline, dataset)
        assert pipeline.execute() == QUEUED_RESULTS
    # The client itself still gives what the server sent.
    assert client.execute_command("WCGET", dataset, "s") == [b"0", []]


def test_queued_error_is_among_the_results(client: redis.Redis, dataset: str) -> None:
    with client.pipeline(transaction=False) as pipeline:
        queued = QueuedWideColumn(pipeline)
        queued.page("no-such-dataset", "r")
        queued.put(dataset, "r", {"a": "1"})
        refused, written = pipeline.execute(raise_on_error=False)
    assert isinstance(refused, redis.ResponseError)
    assert written == 1


def test_transaction_that_watches(client: redis.Redis, wide: WideColumn, dataset: str) -> None:
    wide.put(dataset, "r", {"a": "1"})
    with client.pipeline() as pipeline:
        pipeline.watch(dataset)
        at_once = WideColumn(pipeline)
        read = at_once.get(dataset, "r")
        pipeline.multi()
        QueuedWideColumn(pipeline).put(dataset, "r", {"b": int(read[b"a"]) + 1})
        assert pipeline.execute() == [1]
        pipeline.watch(dataset)
        wide.put(dataset, "r", {"a": "other"})
        pipeline.multi()
        QueuedWideColumn(pipeline).put(dataset, "r", {"b": "lost"})
        with pytest.raises(redis.WatchError):
            pipeline.execute()
    assert wide.get(dataset, "r") == {b"a": b"other", b"b": b"2"}


# asyncio


def public_methods(kind: type) -> dict[str, Callable[..., Any]]:
    functions = inspect.getmembers(kind, inspect.isfunction)
    return {name: function for name, function in functions if not name.startswith("_")}


def test_all_classes_take_the_same() -> None:
    blocking = public_methods(WideColumn)
    assert public_methods(AsyncWideColumn).keys() == blocking.keys()
    for kind in (AsyncWideColumn, QueuedWideColumn):
        for name, method in public_methods(kind).items():
            if name in blocking:
                wanted = inspect.signature(blocking[name]).parameters
                assert inspect.signature(method).parameters == wanted, name


@pytest.mark.parametrize("protocol", [2, 3])
def test_asyncio(server: ServerProcess, dataset: str, protocol: int) -> None:
    async def use(client: redis.asyncio.Redis) -> None:
        wide = AsyncWideColumn(client)
        await wide.create_dataset(dataset, max_versions=0)
        await wide.alter_dataset(dataset, max_versions=10)
        assert await wide.list_datasets(dataset) == [dataset]

        assert await wide.put(dataset, "r", {"a": [(1, "x"), (2, "y")], "b": (3, "z")}) == 3
        assert await wide.put_many(dataset, {"s": {"a": "1"}, "t": {"a": "1"}}, timestamp_ms=1) == 2
        assert await wide.get(dataset, "r") == {b"a": b"y", b"b": b"z"}
        cells = {b"a": [Cell(2, b"y"), Cell(1, b"x")], b"b": [Cell(3, b"z")]}
        assert await wide.get_cells(dataset, "r", versions="all") == cells
        assert await wide.get_timestamps(dataset, "r") == {b"a": [2], b"b": [3]}
        assert await wide.get_many(dataset, ["s", "none"]) == {b"s": {b"a": b"1"}}
        assert await wide.get_many_cells(dataset, ["s"]) == {b"s": {b"a": [Cell(1, b"1")]}}
        assert list((await wide.page(dataset, "r", count=1)).columns) == [b"a"]
        pages = [list(page.columns) async for page in wide.pages(dataset, "r", count=1)]
        assert pages == [[b"a"], [b"b"]]
        assert [name async for name in wide.column_names(dataset, "r")] == [b"a", b"b"]
        assert [row.key async for row in wide.scan(dataset, limit=1)] == [b"r", b"s", b"t"]
        assert await wide.exists(dataset, "r", "none") == 1

        assert await wide.increment(dataset, "s", "a") == 2
        assert await wide.compare_and_put(dataset, "s", "a", "3", expected=2)
        assert await wide.delete(dataset, "r", columns=["a"], timestamps_ms=[2]) == 1
        assert await wide.get_cells(dataset, "r", columns=["a"]) == {b"a": [Cell(1, b"x")]}
        assert await wide.delete_many(dataset, ["s", "t"]) == 2
        await wide.drop_dataset(dataset)
        assert await wide.list_datasets(dataset) == []

    async def run() -> None:
        async with redis.asyncio.Redis(port=server.port, protocol=protocol) as client:
            await use(client)

    asyncio.run(run())


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("transaction", [False, True])
def test_asyncio_queued(
    server: ServerProcess, dataset: str, protocol: int, transaction: bool
) -> None:
    async def run() -> list[Any]:
        async with (
            redis.asyncio.Redis(port=server.port, protocol=protocol) as client,
            client.pipeline(transaction=transaction) as pipeline,
        ):
            queue_everything(QueuedWideColumn(pipeline), pipeline, dataset)
            results: list[Any] = await pipeline.execute()
            return results

    assert asyncio.run(run()) == QUEUED_RESULTS
