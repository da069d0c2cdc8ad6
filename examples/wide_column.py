"""Colonnade's wide-column commands as typed methods, for redis-py. One file, to copy and change.

>>> import redis
>>> client = redis.Redis()
>>> wide = WideColumn(client)
>>> wide.put("events", "user:42", {"name": "Ada", "city": "Oslo"}, timestamp_ms=1)
2
>>> wide.put("events", "user:42", {"city": "Bergen"}, timestamp_ms=2)
1
>>> wide.get("events", "user:42")
{b'city': b'Bergen', b'name': b'Ada'}
>>> wide.get_cells("events", "user:42", columns=["city"], versions="all")
{b'city': [Cell(timestamp_ms=2, value=b'Bergen'), Cell(timestamp_ms=1, value=b'Oslo')]}
>>> for page in wide.pages("events", "user:42", count=1):
...     print(page.columns)
{b'city': [Cell(timestamp_ms=2, value=b'Bergen')]}
{b'name': [Cell(timestamp_ms=1, value=b'Ada')]}
>>> wide.compare_and_put("events", "user:42", "city", "Tromsø", expected="Bergen")
True
>>> wide.increment("events", "user:42", "visits")
1
>>> [row.key for row in wide.scan("events", prefix="user:")]
[b'user:42']
>>> wide.delete("events", "user:42")
1

Names and values may be given as bytes or as text, which is sent in UTF-8; values may be numbers,
too, which are sent in decimal. What comes back is bytes, in a client with decode_responses as well.
Timestamps are Unix milliseconds. Errors are redis-py's: a refused call raises ResponseError.

`AsyncWideColumn` has the same methods for redis.asyncio, and `QueuedWideColumn` those that are one
call each for pipelines and transactions of both:

>>> with client.pipeline(transaction=True) as pipeline:
...     queued = QueuedWideColumn(pipeline)
...     queued.put("events", "user:7", {"name": "Grace"}, timestamp_ms=1)
...     queued.page("events", "user:7")
...     pipeline.execute()
[1, Page(columns={b'name': [Cell(timestamp_ms=1, value=b'Grace')]}, cursor=None)]

Knows nothing of connections: it asks a client to execute commands, and shapes the replies.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypedDict, TypeVar, Unpack

T = TypeVar("T")
# To a type checker, a dict of str keys is no Mapping[str | bytes, ...]: hence variables.
RowName = TypeVar("RowName", str, bytes)
ColumnName = TypeVar("ColumnName", str, bytes)

Name = str | bytes
Names = Sequence[str] | Sequence[bytes]
Value = str | bytes | int | float
Version = tuple[int, Value]
"""A timestamp in milliseconds and a value. A Cell that was read is one, too."""
Written = Value | Version | Sequence[Version]
"""What a column is given: a value, a value with its own timestamp, or a list of such."""
Word = str | bytes | int | float


class Cell(NamedTuple):
    """One version of a column."""

    timestamp_ms: int
    value: bytes


Columns = dict[bytes, list[Cell]]
"""Columns in byte order, each with its cells, newest first."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a row. `cursor` leads to the next part; it is None at the end.

    A column that did not fit is in the next page again, with its remaining cells.
    """

    columns: Columns
    cursor: bytes | None


@dataclass(frozen=True, slots=True)
class Row:
    """A row as scan() gives it: all of its cells that were asked for."""

    key: bytes
    columns: Columns


# What may be asked for. All of these are keyword arguments, and may be left out.


class Times(TypedDict, total=False):
    """Cells with timestamps from `start_ms` to `end_ms`, both included."""

    start_ms: int
    end_ms: int


class Newest(Times, total=False):
    """Columns by name, by the bytes they begin with, or from `start` on and before `stop`."""

    columns: Names
    prefix: Name
    start: Name
    stop: Name


class Versions(Newest, total=False):
    """The newest so many cells of each column; 1 when not given."""

    versions: int | Literal["all"]


class Scanned(Times, total=False):
    """Rows by the bytes they begin with, or from `start` on and before `stop`; of each, these
    columns and the newest so many cells of each, 1 when not given."""

    prefix: Name
    start: Name
    stop: Name
    columns: Names
    versions: int | Literal["all"]


class Expiry(TypedDict, total=False):
    """When the cells written go: so long after the call, or at a moment. Give one of them."""

    expire_after_ms: int
    expire_at_ms: int


# Requests: the words of a call, and what its reply becomes.


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """One call. `shape` takes the reply as redis-py gives it, the same in RESP2 and RESP3."""

    words: list[Word]
    shape: Callable[[Any], T]


Flow = Generator[Request[Any], Any, T]
"""Several calls, one after the other: yields requests, is sent their shaped replies."""

_OPTIONS: Mapping[str, Callable[[Any], list[Word]]] = {
    "columns": lambda names: ["COLUMNS", *_counted(names)],
    "prefix": lambda prefix: ["PREFIX", prefix],
    "start": lambda name: ["FROM", name],
    "stop": lambda name: ["TO", name],
    "versions": lambda number: ["VERSIONS", "ALL" if number == "all" else number],
    "count": lambda number: ["COUNT", number],
    "cursor": lambda cursor: ["CURSOR", cursor],
    "expire_after_ms": lambda milliseconds: ["PX", milliseconds],
    "expire_at_ms": lambda moment: ["PXAT", moment],
    "timestamps_ms": lambda moments: ["TIMESTAMPS", *_counted(moments)],
}


def _option_words(options: Mapping[str, Any]) -> list[Word]:
    """Options by their names here as the server's words. None means that one was not given."""
    given = {name: value for name, value in options.items() if value is not None}
    start, end = given.pop("start_ms", None), given.pop("end_ms", None)
    words: list[Word] = []
    for name, value in given.items():
        if name not in _OPTIONS:
            raise TypeError(f"{name!r} is not an option")
        words += _OPTIONS[name](value)
    if start is not None or end is not None:
        words += ["RANGE", "-" if start is None else start, "+" if end is None else end]
    return words


def _counted(words: Sequence[Word]) -> list[Word]:
    """A list as the server takes it: its length first."""
    if isinstance(words, str | bytes):
        raise TypeError(f"a list of names is wanted, not {words!r}")
    return [len(words), *words]


def _cell_words(
    cells: Mapping[ColumnName, Written], timestamp_ms: int | None
) -> Iterator[tuple[Word, Name, Value]]:
    """Timestamp, column and value of each cell."""
    stamp: Word = "*" if timestamp_ms is None else timestamp_ms
    for column, written in cells.items():
        for moment, value in _versions(written, stamp):
            yield moment, column, value


def _versions(written: Written, stamp: Word) -> Sequence[tuple[Word, Value]]:
    """What a column is given, each value with its timestamp."""
    if isinstance(written, str | bytes | int | float):
        return [(stamp, written)]
    if isinstance(written, tuple):
        moment, value = written
        return [(moment, value)]
    return written


def _put(
    dataset: Name,
    row: Name,
    cells: Mapping[ColumnName, Written],
    timestamp_ms: int | None,
    expiry: Mapping[str, Any],
) -> Request[int]:
    words: list[Word] = ["WCPUT", dataset, row, *_option_words(expiry)]
    for cell in _cell_words(cells, timestamp_ms):
        words += cell
    return Request(words, int)


def _put_many(
    dataset: Name,
    rows: Mapping[RowName, Mapping[ColumnName, Written]],
    timestamp_ms: int | None,
    expiry: Mapping[str, Any],
) -> Request[int]:
    words: list[Word] = ["WCMPUT", dataset, *_option_words(expiry)]
    for row, cells in rows.items():
        for moment, column, value in _cell_words(cells, timestamp_ms):
            words += [row, moment, column, value]
    return Request(words, int)


def _page(dataset: Name, row: Name, options: Mapping[str, Any]) -> Request[Page]:
    return Request(["WCGET", dataset, row, *_option_words(options)], _as_page)


def _timestamps(dataset: Name, row: Name, options: Mapping[str, Any]) -> Request[Page]:
    return Request(["WCGET", dataset, row, "NOVALUES", *_option_words(options)], _as_page)


def _page_of_each(dataset: Name, rows: Names, options: Mapping[str, Any]) -> Request[list[Page]]:
    words: list[Word] = ["WCMGET", dataset, "ROWS", *_counted(rows), *_option_words(options)]
    return Request(words, lambda reply: [_as_page(page) for page in reply])


def _column_names(
    dataset: Name, row: Name, options: Mapping[str, Any]
) -> Request[tuple[bytes | None, list[bytes]]]:
    words: list[Word] = ["WCCOLS", dataset, row, *_option_words(options)]
    return Request(words, lambda reply: (_as_cursor(reply[0]), list(reply[1])))


def _rows(dataset: Name, options: Mapping[str, Any], limit: int | None) -> Request[Any]:
    """A cursor, and for each row its key, its columns and a cursor of its own: as they came."""
    words: list[Word] = ["WCSCAN", dataset, *_option_words(options)]
    return Request(words + ([] if limit is None else ["LIMIT", limit]), lambda reply: reply)


def _exists(dataset: Name, rows: Sequence[Name]) -> Request[int]:
    return Request(["WCEXISTS", dataset, *rows], int)


def _delete(dataset: Name, row: Name, options: Mapping[str, Any]) -> Request[int]:
    return Request(["WCDEL", dataset, row, *_option_words(options)], int)


def _delete_many(dataset: Name, rows: Names, options: Mapping[str, Any]) -> Request[int]:
    return Request(["WCMDEL", dataset, "ROWS", *_counted(rows), *_option_words(options)], int)


def _increment(dataset: Name, row: Name, column: Name, by: int) -> Request[int]:
    return Request(["WCINCRBY", dataset, row, column, by], int)


def _compare_and_put(
    where: tuple[Name, Name, Name],
    value: Value,
    expected: Value | None,
    timestamp_ms: int | None,
    expiry: Mapping[str, Any],
) -> Request[bool]:
    condition: list[Word] = ["IFABSENT"] if expected is None else ["IFEQ", expected]
    stamp: Word = "*" if timestamp_ms is None else timestamp_ms
    return Request(["WCCAS", *where, *condition, *_option_words(expiry), stamp, value], bool)


def _create_dataset(
    name: Name, max_versions: int | None, ttl_seconds: int | None, if_not_exists: bool
) -> Request[None]:
    words = ["WCDATASET", "CREATE", name, *_dataset_words(max_versions, ttl_seconds)]
    return Request(words + (["IFNOTEXISTS"] if if_not_exists else []), _as_nothing)


def _alter_dataset(name: Name, max_versions: int | None, ttl_seconds: int | None) -> Request[None]:
    words = ["WCDATASET", "ALTER", name, *_dataset_words(max_versions, ttl_seconds)]
    return Request(words, _as_nothing)


def _dataset_words(max_versions: int | None, ttl_seconds: int | None) -> list[Word]:
    words: list[Word] = []
    if max_versions is not None:
        words += ["MAXVERSIONS", max_versions]
    if ttl_seconds is not None:
        words += ["TTL", ttl_seconds]
    return words


def _drop_dataset(name: Name, if_exists: bool) -> Request[None]:
    return Request(["WCDATASET", "DROP", name, *(["IFEXISTS"] if if_exists else [])], _as_nothing)


def _list_datasets(pattern: Name) -> Request[list[str]]:
    return Request(
        ["WCDATASET", "LIST", pattern], lambda reply: [name.decode("ascii") for name in reply]
    )


# Shapes


def _as_nothing(_: Any) -> None:
    return None


def _as_cursor(cursor: bytes) -> bytes | None:
    return None if cursor == b"0" else cursor


def _as_page(reply: Any) -> Page:
    cursor, columns = reply
    return Page(_as_columns(columns), _as_cursor(cursor))


def _as_columns(columns: Any) -> Columns:
    return {
        # Without values, a cell is its timestamp alone.
        name: [Cell(each, b"") if isinstance(each, int) else Cell(*each) for each in cells]
        for name, cells in columns
    }


def _newest(columns: Columns) -> dict[bytes, bytes]:
    return {name: cells[0].value for name, cells in columns.items()}


# Flows


def _whole_row(
    ask: Callable[[Name, Name, Mapping[str, Any]], Request[Page]],
    dataset: Name,
    row: Name,
    options: Mapping[str, Any],
    read: Page | None = None,
) -> Flow[Columns]:
    """A row, page by page to its end; `read` is its first page, if that is there already."""
    page: Page = read or (yield ask(dataset, row, options))
    columns = dict(page.columns)
    while page.cursor is not None:
        page = yield ask(dataset, row, {**options, "cursor": page.cursor})
        for name, cells in page.columns.items():
            columns.setdefault(name, []).extend(cells)
    return columns


def _whole_rows(
    dataset: Name, rows: Names, options: Mapping[str, Any]
) -> Flow[dict[bytes, Columns]]:
    pages: list[Page] = yield _page_of_each(dataset, rows, options)
    found: dict[bytes, Columns] = {}
    names: Sequence[Name] = rows
    for row, page in zip(names, pages, strict=True):
        columns = yield from _whole_row(_page, dataset, row, options, page)
        if columns:
            found[row.encode() if isinstance(row, str) else row] = columns
    return found


def _scanned_rows(
    dataset: Name, options: Mapping[str, Any], limit: int | None
) -> Flow[tuple[list[Row], bytes | None]]:
    """Some rows, each to its end, and the cursor to the next ones."""
    cursor, found = yield _rows(dataset, options, limit)
    # The row's own pages know nothing of the rows' names.
    inside = ("columns", "versions", "start_ms", "end_ms")
    within = {name: options[name] for name in inside if name in options}
    rows: list[Row] = []
    for key, columns, own_cursor in found:
        page = Page(_as_columns(columns), _as_cursor(own_cursor))
        rows.append(Row(key, (yield from _whole_row(_page, dataset, key, within, page))))
    return rows, _as_cursor(cursor)


# The classes


class Client(Protocol):
    """What is needed of a client: redis.Redis, or redis.asyncio.Redis, whose reply is awaited."""

    def execute_command(self, *words: Any, **options: Any) -> Any: ...


class Pipeline(Client, Protocol):
    """What is needed of a pipeline besides."""

    def set_response_callback(self, command: str, callback: Callable[..., Any]) -> None: ...

    def get_encoder(self) -> Any: ...


class WideColumn:
    """The wide-column commands for a redis.Redis, each as a method.

    Iterators ask for the next page when they come to it; what is written meanwhile may or may not
    be seen. Inside a transaction that watches, give it the pipeline, which then asks at once.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def _send(self, request: Request[T]) -> T:
        return request.shape(self._client.execute_command(*request.words, NEVER_DECODE=True))

    def _run(self, flow: Flow[T]) -> T:
        try:
            request = next(flow)
            while True:
                request = flow.send(self._send(request))
        except StopIteration as end:
            result: T = end.value
            return result

    # Datasets

    def create_dataset(
        self,
        name: Name,
        *,
        max_versions: int | None = None,
        ttl_seconds: int | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """Create a dataset; settings not given are the server's. 0 means: all, and never."""
        self._send(_create_dataset(name, max_versions, ttl_seconds, if_not_exists))

    def alter_dataset(
        self, name: Name, *, max_versions: int | None = None, ttl_seconds: int | None = None
    ) -> None:
        """Change those settings that are given."""
        self._send(_alter_dataset(name, max_versions, ttl_seconds))

    def drop_dataset(self, name: Name, *, if_exists: bool = False) -> None:
        """Drop a dataset with all its data."""
        self._send(_drop_dataset(name, if_exists))

    def list_datasets(self, pattern: Name = "*") -> list[str]:
        """The names that fit a glob pattern, sorted."""
        return self._send(_list_datasets(pattern))

    # Writing

    def put(
        self,
        dataset: Name,
        row: Name,
        cells: Mapping[ColumnName, Written],
        *,
        timestamp_ms: int | None = None,
        **expiry: Unpack[Expiry],
    ) -> int:
        """Write cells into a row, all or none; return how many were given.

        `cells` maps columns to a value, to a (timestamp, value), or to a list of such. Values
        without a timestamp of their own get `timestamp_ms`; None is the server's clock.
        """
        return self._send(_put(dataset, row, cells, timestamp_ms, expiry))

    def put_many(
        self,
        dataset: Name,
        rows: Mapping[RowName, Mapping[ColumnName, Written]],
        *,
        timestamp_ms: int | None = None,
        **expiry: Unpack[Expiry],
    ) -> int:
        """Write cells into several rows, all or none: row -> cells, as in put()."""
        return self._send(_put_many(dataset, rows, timestamp_ms, expiry))

    def increment(self, dataset: Name, row: Name, column: Name, by: int = 1) -> int:
        """Add to the newest integer of a column, 0 if there is none; return the new one.

        As delivered, redis-py repeats a call whose connection broke; this one may then count twice.
        """
        return self._send(_increment(dataset, row, column, by))

    def compare_and_put(
        self,
        dataset: Name,
        row: Name,
        column: Name,
        value: Value,
        *,
        expected: Value | None,
        timestamp_ms: int | None = None,
        **expiry: Unpack[Expiry],
    ) -> bool:
        """Write a cell if the column's newest value is as expected; None: if there is none.

        Returns whether it was written.
        """
        where = (dataset, row, column)
        return self._send(_compare_and_put(where, value, expected, timestamp_ms, expiry))

    # Reading

    def get(self, dataset: Name, row: Name, **options: Unpack[Newest]) -> dict[bytes, bytes]:
        """The newest value of each column of a row, which is read to its end."""
        return _newest(self._run(_whole_row(_page, dataset, row, options)))

    def get_cells(self, dataset: Name, row: Name, **options: Unpack[Versions]) -> Columns:
        """The newest cells of each column of a row, which is read to its end."""
        return self._run(_whole_row(_page, dataset, row, options))

    def get_timestamps(
        self, dataset: Name, row: Name, **options: Unpack[Versions]
    ) -> dict[bytes, list[int]]:
        """As get_cells, without the values, which are not sent."""
        columns = self._run(_whole_row(_timestamps, dataset, row, options))
        return {name: [cell.timestamp_ms for cell in cells] for name, cells in columns.items()}

    def get_many(
        self, dataset: Name, rows: Names, **options: Unpack[Newest]
    ) -> dict[bytes, dict[bytes, bytes]]:
        """The newest value of each column of several rows; rows without any are left out."""
        found = self._run(_whole_rows(dataset, rows, options))
        return {row: _newest(columns) for row, columns in found.items()}

    def get_many_cells(
        self, dataset: Name, rows: Names, **options: Unpack[Versions]
    ) -> dict[bytes, Columns]:
        """The newest cells of each column of several rows; rows without any are left out."""
        return self._run(_whole_rows(dataset, rows, options))

    def page(
        self,
        dataset: Name,
        row: Name,
        *,
        count: int | None = None,
        cursor: bytes | None = None,
        **options: Unpack[Versions],
    ) -> Page:
        """One part of a row, at most `count` columns. A cursor belongs to the same options."""
        return self._send(_page(dataset, row, {**options, "count": count, "cursor": cursor}))

    def pages(
        self, dataset: Name, row: Name, *, count: int | None = None, **options: Unpack[Versions]
    ) -> Iterator[Page]:
        """A row part by part. A page may be empty and not the last."""
        page = self.page(dataset, row, count=count, **options)
        yield page
        while page.cursor is not None:
            page = self.page(dataset, row, count=count, cursor=page.cursor, **options)
            yield page

    def column_names(
        self,
        dataset: Name,
        row: Name,
        *,
        prefix: Name | None = None,
        start: Name | None = None,
        stop: Name | None = None,
    ) -> Iterator[bytes]:
        """The names of a row's columns, in byte order."""
        options: dict[str, Any] = {"prefix": prefix, "start": start, "stop": stop}
        more = True
        while more:
            cursor, names = self._send(_column_names(dataset, row, options))
            yield from names
            options["cursor"], more = cursor, cursor is not None

    def scan(
        self, dataset: Name, *, limit: int | None = None, **options: Unpack[Scanned]
    ) -> Iterator[Row]:
        """Rows in byte order, those that have a cell of what is asked for.

        They are fetched at most `limit` at a time, each to its end.
        """
        given: dict[str, Any] = {**options}
        more = True
        while more:
            rows, cursor = self._run(_scanned_rows(dataset, given, limit))
            yield from rows
            given["cursor"], more = cursor, cursor is not None

    def exists(self, dataset: Name, *rows: Name) -> int:
        """How many of these rows have a cell."""
        return self._send(_exists(dataset, rows))

    # Deleting

    def delete(
        self,
        dataset: Name,
        row: Name,
        *,
        columns: Names | None = None,
        timestamps_ms: Sequence[int] | None = None,
        **times: Unpack[Times],
    ) -> int:
        """Delete a row, some of its columns, or their cells of these times or timestamps.

        Returns how many of the columns named had a cell there; without names, whether the row did.
        """
        options = {**times, "columns": columns, "timestamps_ms": timestamps_ms}
        return self._send(_delete(dataset, row, options))

    def delete_many(
        self,
        dataset: Name,
        rows: Names,
        *,
        columns: Names | None = None,
        timestamps_ms: Sequence[int] | None = None,
        **times: Unpack[Times],
    ) -> int:
        """Delete from several rows, all or none; return the sum of what delete() would."""
        options = {**times, "columns": columns, "timestamps_ms": timestamps_ms}
        return self._send(_delete_many(dataset, rows, options))


class AsyncWideColumn:
    """The wide-column commands for a redis.asyncio.Redis. The methods are those of WideColumn."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def _send(self, request: Request[T]) -> T:
        reply = await self._client.execute_command(*request.words, NEVER_DECODE=True)
        return request.shape(reply)

    async def _run(self, flow: Flow[T]) -> T:
        try:
            request = next(flow)
            while True:
                request = flow.send(await self._send(request))
        except StopIteration as end:
            result: T = end.value
            return result

    # Datasets

    async def create_dataset(
        self,
        name: Name,
        *,
        max_versions: int | None = None,
        ttl_seconds: int | None = None,
        if_not_exists: bool = False,
    ) -> None:
        await self._send(_create_dataset(name, max_versions, ttl_seconds, if_not_exists))

    async def alter_dataset(
        self, name: Name, *, max_versions: int | None = None, ttl_seconds: int | None = None
    ) -> None:
        await self._send(_alter_dataset(name, max_versions, ttl_seconds))

    async def drop_dataset(self, name: Name, *, if_exists: bool = False) -> None:
        await self._send(_drop_dataset(name, if_exists))

    async def list_datasets(self, pattern: Name = "*") -> list[str]:
        return await self._send(_list_datasets(pattern))

    # Writing

    async def put(
        self,
        dataset: Name,
        row: Name,
        cells: Mapping[ColumnName, Written],
        *,
        timestamp_ms: int | None = None,
        **expiry: Unpack[Expiry],
    ) -> int:
        return await self._send(_put(dataset, row, cells, timestamp_ms, expiry))

    async def put_many(
        self,
        dataset: Name,
        rows: Mapping[RowName, Mapping[ColumnName, Written]],
        *,
        timestamp_ms: int | None = None,
        **expiry: Unpack[Expiry],
    ) -> int:
        return await self._send(_put_many(dataset, rows, timestamp_ms, expiry))

    async def increment(self, dataset: Name, row: Name, column: Name, by: int = 1) -> int:
        return await self._send(_increment(dataset, row, column, by))

    async def compare_and_put(
        self,
        dataset: Name,
        row: Name,
        column: Name,
        value: Value,
        *,
        expected: Value | None,
        timestamp_ms: int | None = None,
        **expiry: Unpack[Expiry],
    ) -> bool:
        where = (dataset, row, column)
        return await self._send(_compare_and_put(where, value, expected, timestamp_ms, expiry))

    # Reading

    async def get(self, dataset: Name, row: Name, **options: Unpack[Newest]) -> dict[bytes, bytes]:
        return _newest(await self._run(_whole_row(_page, dataset, row, options)))

    async def get_cells(self, dataset: Name, row: Name, **options: Unpack[Versions]) -> Columns:
        return await self._run(_whole_row(_page, dataset, row, options))

    async def get_timestamps(
        self, dataset: Name, row: Name, **options: Unpack[Versions]
    ) -> dict[bytes, list[int]]:
        columns = await self._run(_whole_row(_timestamps, dataset, row, options))
        return {name: [cell.timestamp_ms for cell in cells] for name, cells in columns.items()}

    async def get_many(
        self, dataset: Name, rows: Names, **options: Unpack[Newest]
    ) -> dict[bytes, dict[bytes, bytes]]:
        found = await self._run(_whole_rows(dataset, rows, options))
        return {row: _newest(columns) for row, columns in found.items()}

    async def get_many_cells(
        self, dataset: Name, rows: Names, **options: Unpack[Versions]
    ) -> dict[bytes, Columns]:
        return await self._run(_whole_rows(dataset, rows, options))

    async def page(
        self,
        dataset: Name,
        row: Name,
        *,
        count: int | None = None,
        cursor: bytes | None = None,
        **options: Unpack[Versions],
    ) -> Page:
        given = {**options, "count": count, "cursor": cursor}
        return await self._send(_page(dataset, row, given))

    async def pages(
        self, dataset: Name, row: Name, *, count: int | None = None, **options: Unpack[Versions]
    ) -> AsyncIterator[Page]:
        page = await self.page(dataset, row, count=count, **options)
        yield page
        while page.cursor is not None:
            page = await self.page(dataset, row, count=count, cursor=page.cursor, **options)
            yield page

    async def column_names(
        self,
        dataset: Name,
        row: Name,
        *,
        prefix: Name | None = None,
        start: Name | None = None,
        stop: Name | None = None,
    ) -> AsyncIterator[bytes]:
        options: dict[str, Any] = {"prefix": prefix, "start": start, "stop": stop}
        more = True
        while more:
            cursor, names = await self._send(_column_names(dataset, row, options))
            for name in names:
                yield name
            options["cursor"], more = cursor, cursor is not None

    async def scan(
        self, dataset: Name, *, limit: int | None = None, **options: Unpack[Scanned]
    ) -> AsyncIterator[Row]:
        given: dict[str, Any] = {**options}
        more = True
        while more:
            rows, cursor = await self._run(_scanned_rows(dataset, given, limit))
            for row in rows:
                yield row
            given["cursor"], more = cursor, cursor is not None

    async def exists(self, dataset: Name, *rows: Name) -> int:
        return await self._send(_exists(dataset, rows))

    # Deleting

    async def delete(
        self,
        dataset: Name,
        row: Name,
        *,
        columns: Names | None = None,
        timestamps_ms: Sequence[int] | None = None,
        **times: Unpack[Times],
    ) -> int:
        options = {**times, "columns": columns, "timestamps_ms": timestamps_ms}
        return await self._send(_delete(dataset, row, options))

    async def delete_many(
        self,
        dataset: Name,
        rows: Names,
        *,
        columns: Names | None = None,
        timestamps_ms: Sequence[int] | None = None,
        **times: Unpack[Times],
    ) -> int:
        options = {**times, "columns": columns, "timestamps_ms": timestamps_ms}
        return await self._send(_delete_many(dataset, rows, options))


class QueuedWideColumn:
    """The wide-column commands that are one call each, for a pipeline of redis or redis.asyncio.

    The methods are those of WideColumn and return nothing: execute() of the pipeline gives what
    they would have returned, among the replies of whatever else was queued.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        """ValueError for a pipeline that makes text of replies: a transaction cannot help it."""
        if pipeline.get_encoder().decode_responses:
            raise ValueError("a pipeline of a client without decode_responses is wanted")
        self._pipeline = pipeline

    def _queue(self, request: Request[Any]) -> None:
        # redis-py keeps these for the client. Calls made without a shape are not touched.
        self._pipeline.set_response_callback(str(request.words[0]), _shaped)
        self._pipeline.execute_command(*request.words, shape=request.shape)

    def put(
        self,
        dataset: Name,
        row: Name,
        cells: Mapping[ColumnName, Written],
        *,
        timestamp_ms: int | None = None,
        **expiry: Unpack[Expiry],
    ) -> None:
        self._queue(_put(dataset, row, cells, timestamp_ms, expiry))

    def put_many(
        self,
        dataset: Name,
        rows: Mapping[RowName, Mapping[ColumnName, Written]],
        *,
        timestamp_ms: int | None = None,
        **expiry: Unpack[Expiry],
    ) -> None:
        self._queue(_put_many(dataset, rows, timestamp_ms, expiry))

    def increment(self, dataset: Name, row: Name, column: Name, by: int = 1) -> None:
        self._queue(_increment(dataset, row, column, by))

    def compare_and_put(
        self,
        dataset: Name,
        row: Name,
        column: Name,
        value: Value,
        *,
        expected: Value | None,
        timestamp_ms: int | None = None,
        **expiry: Unpack[Expiry],
    ) -> None:
        where = (dataset, row, column)
        self._queue(_compare_and_put(where, value, expected, timestamp_ms, expiry))

    def page(
        self,
        dataset: Name,
        row: Name,
        *,
        count: int | None = None,
        cursor: bytes | None = None,
        **options: Unpack[Versions],
    ) -> None:
        """One page: whether there are more is known only when the pipeline was executed."""
        self._queue(_page(dataset, row, {**options, "count": count, "cursor": cursor}))

    def page_of_each(
        self, dataset: Name, rows: Names, *, count: int | None = None, **options: Unpack[Versions]
    ) -> None:
        """A list of pages, one for each row in the order given."""
        self._queue(_page_of_each(dataset, rows, {**options, "count": count}))

    def exists(self, dataset: Name, *rows: Name) -> None:
        self._queue(_exists(dataset, rows))

    def delete(
        self,
        dataset: Name,
        row: Name,
        *,
        columns: Names | None = None,
        timestamps_ms: Sequence[int] | None = None,
        **times: Unpack[Times],
    ) -> None:
        options = {**times, "columns": columns, "timestamps_ms": timestamps_ms}
        self._queue(_delete(dataset, row, options))

    def delete_many(
        self,
        dataset: Name,
        rows: Names,
        *,
        columns: Names | None = None,
        timestamps_ms: Sequence[int] | None = None,
        **times: Unpack[Times],
    ) -> None:
        options = {**times, "columns": columns, "timestamps_ms": timestamps_ms}
        self._queue(_delete_many(dataset, rows, options))


def _shaped(reply: Any, shape: Callable[[Any], Any] | None = None, **_: Any) -> Any:
    """What redis-py calls with a reply and the options of its call."""
    return reply if shape is None else shape(reply)
