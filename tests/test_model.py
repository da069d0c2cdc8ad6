"""The server against the model: random conversations, every reply compared.

A server with tiny page limits runs on a clock the test holds: its `time.time` reads eight bytes of
a file, so a millisecond lasts until the test moves it on, and what expires when is exact. Two
servers take turns: one whose pages also end after a few cells examined or a few hundred bytes, one
whose pages end only at columns, rows and cells, where a page must be full and a cursor mean more.

Each example has a dataset of its own and a handful of rows and columns, so that things collide.
COLONNADE_EXAMPLES sets how many examples each server gets.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import re
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, currently_in_test_context, given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.harness import ServerProcess
from tests.model import (
    LAST_MOMENT,
    Answer,
    Cell,
    Dataset,
    Doomed,
    Model,
    Refused,
    Selection,
    Settings,
    Span,
    Unsettled,
    Write,
    written,
)

EXAMPLES = int(os.environ.get("COLONNADE_EXAMPLES", "60"))
HOUR_MS = 3_600_000
FURTHEST_PAGE = 1_000

Word = bytes | str | int

# The clock

STEERED = """
import mmap, runpy, struct, sys, time
with open(sys.argv.pop(1), "r+b") as held:
    clock = mmap.mmap(held.fileno(), 8)
# Half a millisecond more, so that no rounding of a float finds the millisecond before.
time.time_ns = lambda: struct.unpack("<q", clock[:8])[0] * 1_000_000 + 500_000
time.time = lambda: time.time_ns() / 1e9
runpy.run_module("resp_server", run_name="__main__", alter_sys=True)
"""


class Clock:
    """What time it is for a server, in milliseconds; it moves when it is set."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(8))
        with path.open("r+b") as held:
            self._wall = mmap.mmap(held.fileno(), 8)
        self.now = time.time_ns() // 1_000_000

    @property
    def now(self) -> int:
        return self._now

    @now.setter
    def now(self, now: int) -> None:
        self._now = now
        self._wall[:8] = struct.pack("<q", now)

    def turn_back(self, milliseconds: int) -> None:
        """The wall clock goes back. Where it stamped `now`, the server's must stay there."""
        self._wall[:8] = struct.pack("<q", self._now - milliseconds)

    def start_of_example(self) -> int:
        """Well past all that was written, and the same distance from a full second every time."""
        self.now = (self.now // HOUR_MS + 30) * HOUR_MS + 500
        return self.now


@dataclass(frozen=True, slots=True)
class Limits:
    """Where pages end. Without `scan` and `bytes` they end only where a client can count."""

    columns: int = 3
    rows: int = 2
    cells: int = 5
    bytes: int | None = None
    scan: int | None = None

    @property
    def countable(self) -> bool:
        return self.bytes is None and self.scan is None

    def directives(self) -> dict[str, int]:
        given = {name: getattr(self, name) for name in self.__slots__}
        return {f"wc_page_{name}": limit for name, limit in given.items() if limit is not None}


class SteeredServer:
    """A server, its clock and its limits, shared by the examples of a module."""

    def __init__(self, directory: Path, limits: Limits) -> None:
        self.limits = limits
        self.clock = Clock(directory / "clock")
        self.process = ServerProcess(
            directory / "data",
            command=(sys.executable, "-c", STEERED, str(directory / "clock")),
            **limits.directives(),
        )
        self.names = (f"model{number}" for number in itertools.count())

    def running(self) -> ServerProcess:
        process = self.process.process
        if process is None or process.poll() is not None:
            self.process.start()
        return self.process


@pytest.fixture(
    scope="module",
    params=[Limits(bytes=400, scan=7), Limits()],
    ids=["cut-anywhere", "cut-where-counted"],
)
def steered(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SteeredServer]:
    server = SteeredServer(tmp_path_factory.mktemp("steered"), request.param)
    yield server
    server.process.close()


@pytest.fixture(scope="module")
def unhurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SteeredServer]:
    """One whose pages hold whatever a test reads."""
    limits = Limits(columns=1_000, rows=1_000, cells=10_000)
    server = SteeredServer(tmp_path_factory.mktemp("unhurried"), limits)
    yield server
    server.process.close()


def execute(client: Any, *words: Word) -> Any:
    """Any command: redis-py types neither it nor its reply."""
    return client.execute_command(*words)


def await_compaction(client: Any, dataset: str, since: int) -> dict[bytes, Any]:
    """What WCDATASET INFO says once the last compaction is as late as `since`; RESP2 only."""
    patience = time.monotonic() + 30
    while time.monotonic() < patience:
        reply = execute(client, "WCDATASET", "INFO", dataset)
        information = dict(zip(reply[::2], reply[1::2], strict=True))
        if information[b"last-compaction-ms"] >= since:
            return information
    raise AssertionError("the compaction does not end")


def tell(line: str) -> None:
    """Keep the line for the report of a failing example."""
    if currently_in_test_context():
        note(line)


# What the examples are made of

NAMES = st.sampled_from(
    [b"", b"\0", b"\0\0", b"\0\1", b"\xff", b"\r\n", b"a", b"ab", b"a\0b", b"0", b"*", b"EX"]
) | st.binary(max_size=5)
VALUES = st.sampled_from(
    [b"", b"0", b"1", b"-7", b"9223372036854775807", b"a", b"\0\r\n", b"v" * 150, b"w" * 500]
) | st.binary(max_size=5)
# Which row, column, timestamp or expiry of those an example is made of: few, so that they collide.
PLACES = st.integers(0, 4)
PERHAPS = st.none() | PLACES


@dataclass(frozen=True, slots=True)
class Moment:
    """A timestamp: so many milliseconds after 0, the start of the example, or now."""

    after: str
    milliseconds: int


MOMENTS = st.sampled_from(
    [Moment("start", at) for at in (0, 1, 2, -1, -2, 600_000, HOUR_MS, -600_000, -2 * HOUR_MS)]
    + [Moment("start", at - HOUR_MS) for at in (-1, 0, 1)]
    + [Moment("zero", at) for at in (0, 1, LAST_MOMENT)]
    + [Moment("now", 0)]
)


@dataclass(frozen=True, slots=True)
class Expiry:
    option: str
    at: Moment


EXPIRIES = st.sampled_from(
    [Expiry("EX", Moment("zero", seconds)) for seconds in (1, 600, 7200)]
    + [Expiry("PX", Moment("zero", milliseconds)) for milliseconds in (1, 600_000)]
    + [Expiry("EXAT", Moment("start", at)) for at in (-1_500, 500, 600_500)]
    + [Expiry("PXAT", Moment("start", at)) for at in (-1, 0, 1, 600_000, 2 * HOUR_MS)]
    + [Expiry("PXAT", Moment("zero", at)) for at in (1, LAST_MOMENT)]
)
SETTINGS = st.builds(
    Settings,
    st.sampled_from([0, 1, 1, 2, 3]),
    st.sampled_from([0, 0, 1, 600, 3600, 7200, LAST_MOMENT // 1000]),
)
Entry = tuple[int, int | None, int, bytes]
ENTRIES = st.lists(st.tuples(PLACES, PERHAPS, PLACES, VALUES), min_size=1, max_size=6)


@dataclass(frozen=True, slots=True)
class Interval:
    """RANGE; None is the end of time on that side."""

    start: int | None
    end: int | None


INTERVALS = st.builds(Interval, PERHAPS, PERHAPS)
SPANS = st.builds(
    Span,
    prefix=st.just(b"") | NAMES,
    start=st.just(b"") | NAMES,
    stop=st.none() | NAMES,
)
COLUMN_LISTS = st.lists(PLACES, min_size=1, max_size=4)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a read. `versions` 0 leaves the option out, None is ALL."""

    columns: list[int] | None
    span: Span
    versions: int | None
    interval: Interval | None


def wanted(columns: st.SearchStrategy[list[int]]) -> st.SearchStrategy[Wanted]:
    versions = st.sampled_from([0, 1, 2, 3, 100, None, None])
    intervals = st.none() | INTERVALS
    return st.builds(Wanted, columns, st.just(Span()), versions, intervals) | st.builds(
        Wanted, st.none(), st.just(Span()) | SPANS, versions, intervals
    )


WANTED = wanted(COLUMN_LISTS)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a read is paged: what each page in turn asks for, and the order of its options."""

    counts: list[int | None]
    limits: list[int | None]
    novalues: list[bool]
    order: list[int]

    def page(self, number: int) -> tuple[int | None, int | None, bool]:
        counts, limits, novalues = self.counts, self.limits, self.novalues
        return (
            counts[number % len(counts)],
            limits[number % len(limits)],
            novalues[number % len(novalues)],
        )

    def arranged(self, options: list[list[Word]]) -> list[Word]:
        turn = [*self.order, *range(len(self.order), len(options))]
        return [word for _, words in sorted(zip(turn, options, strict=False)) for word in words]


SIZES = st.lists(st.sampled_from([None, 1, 2, 4]), min_size=1, max_size=3)
PLANS = st.builds(
    Plan,
    SIZES,
    SIZES,
    st.lists(st.booleans(), min_size=1, max_size=3),
    st.permutations(range(8)),
)


# Reading page by page

Send = Callable[..., Any]
Cells = list[tuple[int, bytes | None]]
Found = list[tuple[bytes, Cells]]


def cells_of(pages: Sequence[Any], novalues: bool) -> Cells:
    if novalues:
        return [(timestamp, None) for timestamp in pages]
    return [(timestamp, value) for timestamp, value in pages]


def append_columns(found: Found, page: Found) -> None:
    """A column that a page cut comes again first on the next one."""
    if found and page and found[-1][0] == page[0][0]:
        found[-1][1].extend(page[0][1])
        page = page[1:]
    found.extend(page)


def same_cells(found: Cells, expected: Cells) -> bool:
    """Whether they agree; a value that was not asked for agrees with any."""
    return len(found) == len(expected) and all(
        one[0] == other[0] and (one[1] is None or one[1] == other[1])
        for one, other in zip(found, expected, strict=True)
    )


def plain(answer: Answer) -> Found:
    return [(column, [(cell.timestamp, cell.value) for cell in cells]) for column, cells in answer]


def assert_same(found: Found, answer: Answer) -> None:
    expected = plain(answer)
    assert [column for column, _ in found] == [column for column, _ in expected]
    for (column, cells), (_, wanted_cells) in zip(found, expected, strict=True):
        assert same_cells(cells, wanted_cells), f"column {column!r}: {cells} != {wanted_cells}"


def ascending(names: Sequence[bytes]) -> bool:
    return all(one < other for one, other in itertools.pairwise(names))


def turned_round(option: list[Word]) -> list[Word]:
    """The same set of COLUMNS in another order, one of them twice; other options as they are."""
    if option[0] != "columns":
        return option
    names = [*option[:1:-1], option[2]]
    return ["COLUMNS", len(names), *names]


class Pager:
    """One read, from its first page to the cursor 0, holding every page to the limits.

    `interrupt` runs once, after the first page. What is promised of a next page (that there is
    something on it) is then not asked for.
    """

    def __init__(
        self,
        send: Send,
        limits: Limits,
        dataset: str,
        options: list[list[Word]],
        plan: Plan,
        columns_named: int | None = None,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        self.send, self.limits, self.dataset = send, limits, dataset
        self.options, self.plan, self.columns_named = options, plan, columns_named
        self.interrupt = interrupt
        self.strict = limits.countable and interrupt is None
        self.pages = 0

    def columns(self, row: bytes) -> Found:
        return self._rest_of_row(row, "0", promised=False)

    def rows(self, rows: Sequence[bytes]) -> list[Found]:
        """WCMGET, each row continued with WCGET."""
        count, _, novalues = self._next_plan()
        paging = self._paging(count=count, novalues=novalues)
        head: list[Word] = ["WCMGET", self.dataset, "ROWS", len(rows), *rows]
        reply = self._ask(head, [*self.options, *paging])
        assert len(reply) == len(rows)
        pages = [self._page(one, count, novalues) for one in reply]
        total = sum(len(cells) for _, page in pages for _, cells in page)
        self._check_whole_reply([page for _, page in pages])
        answers: list[Found] = []
        for row, (cursor, page) in zip(rows, pages, strict=True):
            full = len(page) == self._columns_a_page(count) or total == self.limits.cells
            assert cursor == b"0" or full or not self.strict, "a page ended early"
            answers.append(self._continued(row, page, cursor))
        return answers

    def scan(self, span_options: list[list[Word]]) -> list[tuple[bytes, Found]]:
        """WCSCAN, each row continued with WCGET by its own cursor."""
        found: list[tuple[bytes, Found]] = []
        cursor = b"0"
        while True:
            before = cursor
            cursor, rows = self._scan_page(before, span_options)
            assert cursor in (b"0", *([] if cursor == before else [cursor])), "no way forward"
            assert rows or before == b"0" or not self.strict, "a cursor with nothing behind it"
            found += rows
            self._interrupt_once()
            if cursor == b"0":
                assert ascending([row for row, _ in found])
                return found

    def _scan_page(
        self, cursor: bytes, span_options: list[list[Word]]
    ) -> tuple[bytes, list[tuple[bytes, Found]]]:
        count, limit, novalues = self._next_plan()
        paging = self._paging(count=count, limit=limit, cursor=cursor, novalues=novalues)
        reply = self._ask(["WCSCAN", self.dataset], [*span_options, *self.options, *paging])
        next_cursor, rows = reply
        assert re.fullmatch(rb"[A-Za-z0-9_.~-]+", next_cursor)
        pages = [(row, *self._page([at, page], count, novalues)) for row, page, at in rows]
        self._check_whole_reply([page for _, _, page in pages])
        total = sum(len(cells) for _, _, page in pages for _, cells in page)
        most = limit or self.limits.rows
        assert len(pages) <= most
        if self.strict and next_cursor != b"0":
            assert len(pages) == most or total == self.limits.cells, "a page ended early"
        answers = []
        for row, row_cursor, page in pages:
            assert page, "a row in a scan without a column"
            full = len(page) == self._columns_a_page(count) or total == self.limits.cells
            assert row_cursor == b"0" or full or not self.strict, "a row ended early"
            answers.append((row, self._continued(row, page, row_cursor)))
        return next_cursor, answers

    def _continued(self, row: bytes, page: Found, cursor: bytes) -> Found:
        found = list(page)
        if cursor != b"0":
            append_columns(found, self._rest_of_row(row, cursor.decode(), promised=bool(page)))
        return found

    def _rest_of_row(self, row: bytes, cursor: str, promised: bool) -> Found:
        found: Found = []
        at = cursor.encode()
        while True:
            count, _, novalues = self._next_plan()
            paging = self._paging(count=count, cursor=at, novalues=novalues)
            reply = self._ask(["WCGET", self.dataset, row], [*self.options, *paging])
            before, (at, page) = at, self._page(reply, count, novalues)
            self._check_whole_reply([page])
            self._check_forward(page, before, at, count, promised)
            append_columns(found, page)
            self._interrupt_once()
            if at == b"0":
                assert ascending([column for column, _ in found])
                return found
            promised = True

    def _check_forward(
        self, page: Found, before: bytes, after: bytes, count: int | None, promised: bool
    ) -> None:
        assert after == b"0" or after != before, "no way forward"
        if self.strict:
            assert page or not promised, "a cursor with nothing behind it"
            total = sum(len(cells) for _, cells in page)
            full = len(page) == self._columns_a_page(count) or total == self.limits.cells
            assert after == b"0" or full, "a page ended early"

    def _ask(self, head: list[Word], options: list[list[Word]]) -> Any:
        self.pages += 1
        assert self.pages < FURTHEST_PAGE, "a read without an end"
        if self.pages % 2 == 0:
            options = [turned_round(option) for option in options]
        reply = self.send(*head, *self.plan.arranged(options))
        assert not isinstance(reply, Refused), reply
        return reply

    def _next_plan(self) -> tuple[int | None, int | None, bool]:
        return self.plan.page(self.pages)

    def _columns_a_page(self, count: int | None) -> int:
        return count or self.columns_named or self.limits.columns

    def _paging(
        self,
        *,
        count: int | None = None,
        limit: int | None = None,
        cursor: bytes | None = None,
        novalues: bool = False,
    ) -> list[list[Word]]:
        options: list[list[Word]] = [["NOVALUES"]] if novalues else []
        options += [["COUNT", count]] if count else []
        options += [["limit", limit]] if limit else []
        return options + ([["CURSOR", cursor]] if cursor is not None else [])

    def _page(self, reply: Any, count: int | None, novalues: bool) -> tuple[bytes, Found]:
        cursor, columns = reply
        assert re.fullmatch(rb"[A-Za-z0-9_.~-]+", cursor)
        page = [(column, cells_of(cells, novalues)) for column, cells in columns]
        assert all(cells for _, cells in page), "a column without a cell"
        assert ascending([column for column, _ in page])
        assert len(page) <= self._columns_a_page(count)
        return cursor, page

    def _check_whole_reply(self, pages: Sequence[Found]) -> None:
        values = [value or b"" for page in pages for _, cells in page for _, value in cells]
        assert len(values) <= self.limits.cells
        all_but_the_last = sum(len(value) for value in values[:-1])
        assert self.limits.bytes is None or all_but_the_last < self.limits.bytes

    def _interrupt_once(self) -> None:
        interrupt, self.interrupt = self.interrupt, None
        if interrupt is not None:
            interrupt()


def column_names(send: Send, dataset: str, row: bytes, span: list[list[Word]], plan: Plan) -> Any:
    """WCCOLS, from its first page to the cursor 0."""
    found: list[bytes] = []
    cursor = b"0"
    for number in range(FURTHEST_PAGE):
        count = plan.page(number)[0]
        options: list[list[Word]] = [*span, ["CURSOR", cursor]]
        options += [["COUNT", count]] if count else []
        cursor, names = send("WCCOLS", dataset, row, *plan.arranged(options))
        assert count is None or len(names) <= count
        found += names
        if cursor == b"0":
            break
    assert ascending(found)
    return found


# The conversation


class Conversation(RuleBasedStateMachine):
    """One dataset, talked to in RESP2 and RESP3 by turns, and its model."""

    def __init__(self, server: SteeredServer) -> None:
        super().__init__()
        self.server = server
        self.process = server.running()
        self.dataset = next(server.names)
        self.model = Model()
        self.start = server.clock.start_of_example()
        self.clients = self._connect()
        self.turn = 0

    def _connect(self) -> list[redis.Redis]:
        return [self.process.client(protocol) for protocol in (2, 3)]

    @initialize(
        rows=st.lists(NAMES, min_size=1, max_size=4, unique=True),
        columns=st.lists(NAMES, min_size=1, max_size=5, unique=True),
        moments=st.lists(MOMENTS, min_size=2, max_size=5, unique=True),
        expiries=st.lists(EXPIRIES, min_size=1, max_size=3, unique=True),
        chosen=SETTINGS,
        entries=ENTRIES,
        patience=st.integers(0, 11),
    )
    def begin(
        self,
        rows: list[bytes],
        columns: list[bytes],
        moments: list[Moment],
        expiries: list[Expiry],
        chosen: Settings,
        entries: list[Entry],
        patience: int,
    ) -> None:
        self.rows, self.columns = rows, columns
        self.moments, self.expiries = moments, expiries
        # A start takes as long as a hundred commands: few examples may stop the server.
        self.restarts_left = 1 if patience >= 9 else 0
        self.burials_left = 1
        self.create(chosen, if_not_exists=False)
        self.put_rows(entries, None)

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None and self.dataset in self.model.datasets:
                self._check_to_the_end()
                self.drop(if_exists=False)
        finally:
            for client in self.clients:
                client.close()

    def _check_to_the_end(self) -> None:
        """Everything there is, now and after each of the next expiries: what hid may show."""
        self._check_everything()
        for at in self._next_deadlines()[:5]:
            self.server.clock.now = at + 1
            self._check_everything()

    def _check_everything(self) -> None:
        order = Plan([None], [None], [False], list(range(8)))
        self.scan(Span(), Wanted(None, Span(), None, None), order)

    def _next_deadlines(self) -> list[int]:
        """When cells of the dataset die, as far as the clock can be moved."""
        dataset = self.model.datasets.get(self.dataset, Dataset(Settings()))
        deadlines = {
            dataset.settings.deadline(cell)
            for columns in dataset.rows.values()
            for column in columns.values()
            for cell in column
        }
        return sorted(at for at in deadlines if self.now <= at < self.start + 20 * HOUR_MS)

    # Talking

    @property
    def now(self) -> int:
        return self.server.clock.now

    def send(self, *words: Word) -> Any:
        self.turn += 1
        client = self.clients[self.turn % 2]
        tell(" ".join(map(repr, words)))
        try:
            reply = execute(client, *words)
        except redis.ResponseError as error:
            code = "ERR " if error.status_code == "ERR" else ""
            reply = Refused(code + str(error))
        tell(f"    -> {reply!r}")
        return reply

    def agree(self, expected: Callable[[], object], *words: Word) -> None:
        """The reply is what the model answers, be it a refusal."""
        try:
            self._assert_reply([expected()], self.send(*words))
        except Refused as refused:
            self._assert_reply([refused], self.send(*words))

    def _assert_reply(self, acceptable: Sequence[object], reply: object) -> None:
        assert any(
            reply.texts[0].startswith(one.texts)
            if isinstance(one, Refused) and isinstance(reply, Refused)
            else type(reply) is type(one) and reply == one
            for one in acceptable
        ), f"{reply!r} is none of {acceptable!r}"

    # What the strategies stand for

    def row(self, place: int) -> bytes:
        return self.rows[place % len(self.rows)]

    def column(self, place: int) -> bytes:
        return self.columns[place % len(self.columns)]

    def time(self, place: int) -> int:
        return self.at(self.moments[place % len(self.moments)])

    def at(self, moment: Moment) -> int:
        origin = {"zero": 0, "start": self.start, "now": self.now}[moment.after]
        return origin + moment.milliseconds

    def stamp(self, place: int | None) -> Word:
        return "*" if place is None else self.time(place)

    def expiry(self, place: int | None) -> tuple[list[Word], int | None]:
        """The option as words, and the moment it means."""
        if place is None:
            return [], None
        expiry = self.expiries[place % len(self.expiries)]
        at = self.at(expiry.at)
        number = at // 1000 if expiry.option == "EXAT" else at
        milliseconds = number * 1000 if expiry.option in ("EX", "EXAT") else number
        counted_from = self.now if expiry.option in ("EX", "PX") else 0
        return [expiry.option, number], counted_from + milliseconds

    def interval(self, interval: Interval) -> tuple[int, int, list[Word]]:
        first = 0 if interval.start is None else self.time(interval.start)
        last = LAST_MOMENT if interval.end is None else self.time(interval.end)
        words: list[Word] = ["-" if interval.start is None else first]
        words.append("+" if interval.end is None else last)
        return first, last, ["RANGE", *words]

    def span_options(self, span: Span) -> list[list[Word]]:
        options: list[list[Word]] = [["PREFIX", span.prefix]] if span.prefix else []
        options += [["FROM", span.start]] if span.start else []
        return options + ([["TO", span.stop]] if span.stop is not None else [])

    def selection(self, wish: Wanted) -> tuple[list[list[Word]], Selection]:
        options = self.span_options(wish.span)
        columns = None
        if wish.columns is not None:
            names = [self.column(place) for place in wish.columns]
            options.append(["columns", len(names), *names])
            columns = frozenset(names)
        if wish.versions != 0:
            options.append(["VERSIONS", "ALL" if wish.versions is None else wish.versions])
        first, last = 0, LAST_MOMENT
        if wish.interval is not None:
            first, last, words = self.interval(wish.interval)
            options.append(words)
        versions = 1 if wish.versions == 0 else wish.versions
        return options, Selection(columns, wish.span, versions, first, last)

    def pager(
        self, wish: Wanted, plan: Plan, interrupt: Callable[[], None] | None = None
    ) -> tuple[Pager, Selection]:
        options, selection = self.selection(wish)
        named = None if selection.columns is None else len(selection.columns)
        pager = Pager(self.send, self.server.limits, self.dataset, options, plan, named, interrupt)
        return pager, selection

    # Datasets

    @rule(chosen=SETTINGS, if_not_exists=st.booleans())
    def create(self, chosen: Settings, if_not_exists: bool) -> None:
        def expected() -> bytes:
            self.model.create(self.dataset, chosen, if_not_exists=if_not_exists)
            return b"OK"

        words: list[Word] = ["MAXVERSIONS", chosen.max_versions] if chosen.max_versions else []
        words += ["TTL", chosen.ttl_seconds] if chosen.ttl_seconds else []
        words += ["IFNOTEXISTS"] if if_not_exists else []
        self.agree(expected, "WCDATASET", "CREATE", self.dataset, *words)

    @rule(if_exists=st.booleans())
    def drop(self, if_exists: bool) -> None:
        def expected() -> bytes:
            if self.dataset in self.model.datasets or not if_exists:
                self.model.drop(self.dataset)
            return b"OK"

        words: list[Word] = ["IFEXISTS"] if if_exists else []
        self.agree(expected, "WCDATASET", "DROP", self.dataset, *words)
        self.agree(list, "WCDATASET", "LIST", self.dataset)

    @rule(
        max_versions=st.none() | st.sampled_from([0, 1, 2, 3]),
        ttl_seconds=st.none() | st.sampled_from([0, 1, 600, 3600, 7200]),
    )
    def alter(self, max_versions: int | None, ttl_seconds: int | None) -> None:
        if max_versions is None and ttl_seconds is None:
            return
        self._forget_what_wider_settings_could_show(max_versions, ttl_seconds)

        def expected() -> bytes:
            self.model.alter(self.dataset, max_versions=max_versions, ttl_seconds=ttl_seconds)
            return b"OK"

        words: list[Word] = [] if max_versions is None else ["MAXVERSIONS", max_versions]
        words += [] if ttl_seconds is None else ["TTL", ttl_seconds]
        self.agree(expected, "WCDATASET", "ALTER", self.dataset, *words)

    def _forget_what_wider_settings_could_show(
        self, max_versions: int | None, ttl_seconds: int | None
    ) -> None:
        """Delete the columns whose hidden cells wider settings may or may not bring back."""
        dataset = self.model.datasets.get(self.dataset)
        if dataset is None:
            return
        now = dataset.settings
        then = Settings(
            now.max_versions if max_versions is None else max_versions,
            now.ttl_seconds if ttl_seconds is None else ttl_seconds,
        )
        if then.shows_more_than(now):
            for row, column in self.model.in_doubt(self.dataset, self.now):
                self._delete(row, Doomed(frozenset([column])), ["COLUMNS", 1, column])

    @rule(awaited=st.booleans())
    def compact(self, awaited: bool) -> None:
        def expected() -> bytes:
            self.model.dataset(self.dataset)
            return b"OK"

        self.server.clock.now += 1
        self.agree(expected, "WCDATASET", "COMPACT", self.dataset)
        if awaited and self.dataset in self.model.datasets:
            information = await_compaction(self.clients[0], self.dataset, self.now)
            chosen = self.model.dataset(self.dataset).settings
            assert information[b"maxversions"] == chosen.max_versions
            assert information[b"ttl"] == chosen.ttl_seconds

    # Time and restarts

    @rule(milliseconds=st.sampled_from([1, 999, 1_000, 1_001, 600_000, 600_001, HOUR_MS]))
    def wait(self, milliseconds: int) -> None:
        self.server.clock.now += milliseconds

    @rule()
    def turn_back(self) -> None:
        self._learn_the_clock(ahead_ms=0)
        self.server.clock.turn_back(2 * HOUR_MS)

    @rule(beyond=st.sampled_from([0, 1]))
    def wait_for_an_expiry(self, beyond: int) -> None:
        """Move to the last millisecond of the cell that dies next, or just past it."""
        soon = [at + beyond for at in self._next_deadlines()]
        if soon:
            self.server.clock.now = soon[0]

    @precondition(lambda self: self.restarts_left)
    @rule(crash=st.booleans())
    def restart(self, crash: bool) -> None:
        self.restarts_left -= 1
        for client in self.clients:
            client.close()
        if crash:
            self.process.kill()
        else:
            assert self.process.stop() == 0, self.process.log
        self.process.start()
        self.clients = self._connect()
        self._learn_the_clock(ahead_ms=60_000 if crash else 1)

    def _learn_the_clock(self, ahead_ms: int) -> None:
        """Ask for a stamp, and move the wall there: after a crash stamps go on ahead of it."""
        self.send("WCPUT", "probe", b"row", "*", b"column", b"")
        _, [[_, [[stamp, _]]]] = self.send("WCGET", "probe", b"row")
        assert self.now <= stamp <= self.now + ahead_ms
        self.server.clock.now = stamp

    # Writing

    @rule(row=PLACES, entries=ENTRIES, expiry=PERHAPS)
    def put(self, row: int, entries: list[Entry], expiry: int | None) -> None:
        self._put("WCPUT", [(row, *entry[1:]) for entry in entries], expiry)

    @rule(entries=ENTRIES, expiry=PERHAPS)
    def put_rows(self, entries: list[Entry], expiry: int | None) -> None:
        self._put("WCMPUT", entries, expiry)

    @rule(row=PLACES, column=PLACES, expiry=PERHAPS)
    def pile(self, row: int, column: int, expiry: int | None) -> None:
        """A version of one column at every timestamp of the example."""
        places = range(len(self.moments))
        self._put("WCPUT", [(row, place, column, b"%d" % place) for place in places], expiry)

    @precondition(lambda self: self.burials_left)
    @rule(row=PLACES, column=PLACES)
    def bury(self, row: int, column: int) -> None:
        """Over a hundred cells that are dead when they are written: a read has to step over."""
        self.burials_left -= 1
        at = self.row(row), self.column(column)
        dead = [Write(at[0], self.start - 3 - age, at[1], b"dead") for age in range(120)]
        self._send_put("WCPUT", dead, ["PXAT", self.start - 1], self.start - 1)

    def _put(self, command: str, entries: Sequence[Entry], expiry: int | None) -> None:
        words, expires_at = self.expiry(expiry)
        writes = [
            Write(self.row(row), None if at is None else self.time(at), self.column(column), value)
            for row, at, column, value in entries
        ]
        self._send_put(command, writes, words, expires_at)

    def _send_put(
        self, command: str, writes: Sequence[Write], expiry: list[Word], expires_at: int | None
    ) -> None:
        words: list[Word] = [] if command == "WCMPUT" else [writes[0].row]
        words += expiry
        for write in writes:
            words += [write.row] if command == "WCMPUT" else []
            words += ["*" if write.timestamp is None else write.timestamp]
            words += [write.column, write.value]
        try:
            count = self.model.put(self.dataset, writes, self.now, expires_at)
        except Unsettled:
            return
        self.agree(lambda: count, command, self.dataset, *words)

    @rule(
        row=PLACES,
        column=PLACES,
        by=st.sampled_from([0, 1, -1, 5, LAST_MOMENT, -LAST_MOMENT - 1]),
    )
    def increment(self, row: int, column: int, by: int) -> None:
        place = self.row(row), self.column(column)
        self.agree(
            lambda: self.model.increment(self.dataset, *place, by, self.now),
            *("WCINCRBY", self.dataset, *place, by),
        )

    @rule(
        row=PLACES,
        column=PLACES,
        guess=st.sampled_from(["right", "absent"]) | VALUES,
        at=PERHAPS,
        expiry=PERHAPS,
        value=VALUES,
    )
    def compare_and_set(
        self,
        row: int,
        column: int,
        guess: str | bytes,
        at: int | None,
        expiry: int | None,
        value: bytes,
    ) -> None:
        timestamp = None if at is None else self.time(at)
        write = Write(self.row(row), timestamp, self.column(column), value)
        expected = self._expected(guess, write)
        words, expires_at = self.expiry(expiry)
        condition: list[Word] = ["IFABSENT"] if expected is None else ["IFEQ", expected]
        acceptable = self.model.compare_and_set(self.dataset, expected, write, self.now, expires_at)
        place = write.row, write.column
        tail: list[Word] = [*condition, *words, self.stamp(at), value]
        self._assert_reply(acceptable, self.send("WCCAS", self.dataset, *place, *tail))

    def _expected(self, guess: str | bytes, write: Write) -> bytes | None:
        """What WCCAS compares with: `right` is what is there."""
        if isinstance(guess, bytes):
            return guess
        if guess == "absent" or self.dataset not in self.model.datasets:
            return None
        newest = self.model.newest(self.dataset, write.row, write.column, self.now)
        return None if newest is None else newest.value

    # Deleting

    @rule(
        rows=st.lists(PLACES, min_size=1, max_size=3),
        columns=st.none() | COLUMN_LISTS,
        hits=st.none() | INTERVALS | st.lists(PLACES, min_size=1, max_size=3),
        order=st.booleans(),
    )
    def delete(
        self,
        rows: list[int],
        columns: list[int] | None,
        hits: Interval | list[int] | None,
        order: bool,
    ) -> None:
        names = None if columns is None else [self.column(place) for place in columns]
        options: list[list[Word]] = [] if names is None else [["COLUMNS", len(names), *names]]
        hit, words = self._hits(hits)
        options += [words] if words else []
        flat = [word for option in (options if order else options[::-1]) for word in option]
        doomed = Doomed(None if names is None else frozenset(names), hit)
        if len(rows) == 1:
            self._delete(self.row(rows[0]), doomed, flat)
        else:
            self._delete_rows([self.row(place) for place in rows], doomed, flat)

    def _hits(
        self, hits: Interval | list[int] | None
    ) -> tuple[Callable[[int], bool] | None, list[Word]]:
        if hits is None:
            return None, []
        if isinstance(hits, Interval):
            first, last, words = self.interval(hits)
            return (lambda timestamp: first <= timestamp <= last), words
        timestamps = [self.time(place) for place in hits]
        return timestamps.__contains__, ["TIMESTAMPS", len(timestamps), *timestamps]

    def _delete(self, row: bytes, doomed: Doomed, words: list[Word]) -> None:
        self.agree(
            lambda: self.model.delete(self.dataset, row, doomed, self.now),
            *("WCDEL", self.dataset, row, *words),
        )

    def _delete_rows(self, rows: list[bytes], doomed: Doomed, words: list[Word]) -> None:
        self.agree(
            lambda: self.model.delete_rows(self.dataset, rows, doomed, self.now),
            *("WCMDEL", self.dataset, "ROWS", len(rows), *rows, *words),
        )

    # Reading

    @rule(row=PLACES, wish=WANTED, plan=PLANS)
    def get(self, row: int, wish: Wanted, plan: Plan) -> None:
        pager, selection = self.pager(wish, plan)
        if self._is_there("WCGET", self.dataset, self.row(row)):
            answer = self.model.get(self.dataset, self.row(row), selection, self.now)
            assert_same(pager.columns(self.row(row)), answer)

    @rule(rows=st.lists(PLACES, min_size=1, max_size=4), wish=WANTED, plan=PLANS)
    def get_rows(self, rows: list[int], wish: Wanted, plan: Plan) -> None:
        pager, selection = self.pager(wish, plan)
        keys = [self.row(place) for place in rows]
        if self._is_there("WCMGET", self.dataset, "ROWS", 1, b""):
            for key, found in zip(keys, pager.rows(keys), strict=True):
                assert_same(found, self.model.get(self.dataset, key, selection, self.now))

    @rule(rows=SPANS, wish=WANTED, plan=PLANS)
    def scan(self, rows: Span, wish: Wanted, plan: Plan) -> None:
        wish = Wanted(wish.columns, Span(), wish.versions, wish.interval)
        pager, selection = self.pager(wish, plan)
        if self._is_there("WCSCAN", self.dataset):
            found = pager.scan(self.span_options(rows))
            answer = self.model.scan(self.dataset, rows, selection, self.now)
            assert [row for row, _ in found] == [row for row, _ in answer]
            for (_, columns), (_, expected) in zip(found, answer, strict=True):
                assert_same(columns, expected)

    @rule(row=PLACES, span=SPANS, plan=PLANS)
    def names(self, row: int, span: Span, plan: Plan) -> None:
        if self._is_there("WCCOLS", self.dataset, self.row(row)):
            options = self.span_options(span)
            found = column_names(self.send, self.dataset, self.row(row), options, plan)
            assert found == self.model.columns(self.dataset, self.row(row), span, self.now)

    @rule(rows=st.lists(PLACES, min_size=1, max_size=4))
    def exists(self, rows: list[int]) -> None:
        keys = [self.row(place) for place in rows]
        words: list[Word] = ["WCEXISTS", self.dataset, *keys]
        self.agree(lambda: self.model.exists(self.dataset, keys, self.now), *words)

    def _is_there(self, *words: Word) -> bool:
        """Whether there is a dataset to read; if not, the command must say so."""
        if self.dataset not in self.model.datasets:
            self.agree(lambda: self.model.dataset(self.dataset), *words)
        return self.dataset in self.model.datasets

    # Something happens between two pages

    INTERRUPTIONS = st.sampled_from(["put", "delete", "wait", "compact", "narrow", "restart"])

    @rule(
        row=PLACES,
        wish=WANTED,
        plan=PLANS,
        what=INTERRUPTIONS,
        entries=ENTRIES,
        hits=st.none() | INTERVALS,
    )
    def get_interrupted(
        self,
        row: int,
        wish: Wanted,
        plan: Plan,
        what: str,
        entries: list[Entry],
        hits: Interval | None,
    ) -> None:
        """Columns that nothing happened to are as if nothing had happened."""
        if self.dataset not in self.model.datasets:
            return
        key = self.row(row)
        pager, selection = self.pager(
            wish, plan, lambda: self._interrupt(what, entries, hits, plan.novalues[0])
        )
        before = self._columns_of(key, selection)
        found = dict(pager.columns(key))
        after = self._columns_of(key, selection)
        for column in {*before, *after, *found}:
            if before.get(column) == after.get(column):
                expected = before.get(column, ((), []))[1]
                assert same_cells(found.get(column, []), expected), column

    @rule(
        span=SPANS,
        wish=WANTED,
        plan=PLANS,
        what=INTERRUPTIONS,
        entries=ENTRIES,
        hits=st.none() | INTERVALS,
    )
    def scan_interrupted(
        self,
        span: Span,
        wish: Wanted,
        plan: Plan,
        what: str,
        entries: list[Entry],
        hits: Interval | None,
    ) -> None:
        """Rows that nothing happened to are as if nothing had happened."""
        if self.dataset not in self.model.datasets:
            return
        wish = Wanted(wish.columns, Span(), wish.versions, wish.interval)
        pager, selection = self.pager(
            wish, plan, lambda: self._interrupt(what, entries, hits, plan.novalues[0])
        )
        before = {row: self._columns_of(row, selection) for row in self.rows if row in span}
        found = dict(pager.scan(self.span_options(span)))
        after = {row: self._columns_of(row, selection) for row in self.rows if row in span}
        assert not found.keys() - after.keys()
        for row, columns in before.items():
            if columns == after[row]:
                cells = [(column, shown) for column, (_, shown) in columns.items() if shown]
                assert [column for column, _ in found.get(row, [])] == [one for one, _ in cells]
                for (_, seen), (_, expected) in zip(found.get(row, []), cells, strict=True):
                    assert same_cells(seen, expected), row

    def _columns_of(
        self, row: bytes, selection: Selection
    ) -> dict[bytes, tuple[tuple[Any, ...], Cells]]:
        """Of each column, all that is stored and what this read should show of it."""
        stored = self.model.dataset(self.dataset).rows.get(row, {})
        shown = dict(plain(self.model.get(self.dataset, row, selection, self.now)))
        return {
            column: (tuple(cells), shown.get(column, []))
            for column, cells in sorted(stored.items())
            if cells
        }

    def _interrupt(
        self,
        what: str,
        entries: list[Entry],
        hits: Interval | None,
        crash: bool,
    ) -> None:
        if what == "put":
            self.put_rows(entries, None)
        elif what == "delete":
            rows, columns = [entry[0] for entry in entries], [entry[2] for entry in entries]
            self.delete(rows[:1], columns, hits, True)
        elif what == "wait":
            self.wait(1_000)
        elif what == "compact":
            self.compact(awaited=True)
        elif what == "narrow":
            self.alter(1, None)
        elif self.restarts_left:
            self.restart(crash)

    # Refusals

    @rule(row=PLACES, column=PLACES, number=st.integers(0, 10_000), known=st.booleans())
    def refused(self, row: int, column: int, number: int, known: bool) -> None:
        """A wrong argument is answered with an error; that nothing changed, the reads will tell."""
        dataset = self.dataset if known else "never"
        wrong = refusals(dataset, self.row(row), self.column(column))
        text, words = wrong[number % len(wrong)]
        reply = self.send(*words)
        if known and self.dataset in self.model.datasets:
            self._assert_reply([Refused(text)], reply)
        else:
            self._assert_reply([Refused(text, "NODATASET")], reply)
        self.agree(list, "WCDATASET", "LIST", "never")

    @rule(row=PLACES, other=PLACES, wish=WANTED, number=st.integers(0, 20))
    def wrong_cursor(self, row: int, other: int, wish: Wanted, number: int) -> None:
        if self.dataset not in self.model.datasets:
            return
        options, _ = self.selection(wish)
        words = [word for option in options for word in option]
        key = self.row(row)
        cursor, _ = self.send("WCGET", self.dataset, key, "COUNT", 1, *words)
        if cursor != b"0":
            reads = self._other_reads(key, self.row(other), words, wish)
            reply = self.send(*reads[number % len(reads)], "CURSOR", cursor)
            self._assert_reply([Refused("ERR invalid cursor")], reply)

    @rule(
        row=PLACES,
        giver=st.sampled_from(["WCGET", "WCCOLS", "WCSCAN"]),
        taker=st.sampled_from(["WCGET", "WCCOLS", "WCSCAN"]),
    )
    def borrowed_cursor(self, row: int, giver: str, taker: str) -> None:
        """Each of the three has cursors of its own."""
        if self.dataset not in self.model.datasets or giver == taker:
            return
        key: list[Word] = [self.row(row)]
        page: list[Word] = ["LIMIT" if giver == "WCSCAN" else "COUNT", 1]
        cursor = self.send(giver, self.dataset, *([] if giver == "WCSCAN" else key), *page)[0]
        if cursor != b"0":
            words = [taker, self.dataset, *([] if taker == "WCSCAN" else key), "CURSOR", cursor]
            self._assert_reply([Refused("ERR invalid cursor")], self.send(*words))

    def _other_reads(
        self, row: bytes, other: bytes, words: list[Word], wish: Wanted
    ) -> list[list[Word]]:
        """Reads that a cursor of WCGET with `words` does not belong to."""
        others: list[list[Word]] = [["WCCOLS", self.dataset, row], ["WCSCAN", self.dataset]]
        if other != row:
            others.append(["WCGET", self.dataset, other, *words])
        if wish.interval is None:
            others.append(["WCGET", self.dataset, row, *words, "RANGE", 1, "+"])
        if wish.versions == 0:
            others.append(["WCGET", self.dataset, row, *words, "VERSIONS", 77])
        if wish.columns is None and not wish.span.prefix:
            others.append(["WCGET", self.dataset, row, *words, "PREFIX", b"another"])
        return others


SYNTAX = "ERR syntax error"
INTEGER = "ERR value is not an integer or out of range"
TIMESTAMP = "ERR invalid timestamp"
CURSOR = "ERR invalid cursor"
LONG = b"n" * 65_536


def refusals(dataset: str, row: bytes, column: bytes) -> list[tuple[str, list[Word]]]:
    """Commands with one thing wrong, each with the error it must answer."""
    return [
        *wrong_writes(dataset, row, column),
        *wrong_reads(dataset, row, column),
        *wrong_deletes(dataset, row, column),
        *wrong_others(dataset, row, column),
    ]


def wrong_writes(dataset: str, row: bytes, column: bytes) -> list[tuple[str, list[Word]]]:
    put: list[Word] = ["WCPUT", dataset, row]
    many: list[Word] = ["WCMPUT", dataset]
    cell: list[Word] = [5, column, b"refused"]
    arity = "ERR wrong number of arguments for '{}' command".format
    expire = "ERR invalid expire time in '{}' command".format
    wrong: list[tuple[str, list[Word]]] = [
        (arity("wcput"), put),
        (arity("wcput"), [*put, 5, column]),
        (arity("wcput"), [*put, *cell, 5]),
        (arity("wcput"), [*put, *cell, 5, column]),
        (arity("wcmput"), [*many, row, 5, column]),
        (arity("wcmput"), [*many, row, *cell, row]),
        (TIMESTAMP, [*put, *cell, 5, column, b"", "5.0", column, b""]),
        (TIMESTAMP, [*many, row, *cell, row, "x", column, b""]),
        ("ERR row key is longer than 65535 bytes", ["WCPUT", dataset, LONG, *cell]),
        ("ERR row key is longer than 65535 bytes", [*many, row, *cell, LONG, *cell]),
        ("ERR column name is longer than 65535 bytes", [*put, *cell, 5, LONG, b""]),
    ]
    for bad in (-1, LAST_MOMENT + 1, "", "-", "+", " 5", "**"):
        wrong += [(TIMESTAMP, [*put, *cell, bad, column, b""])]
    for bad in (0, -1, LAST_MOMENT):
        wrong += [(expire("wcput"), [*put, "EX", bad, *cell])]
        wrong += [(expire("wcmput"), [*many, "EXAT", bad, row, *cell])]
    for option in ("EX", "PX", "EXAT", "PXAT"):
        wrong += [(INTEGER, [*put, option, "soon", *cell])]
        wrong += [(INTEGER, [*many, option, LAST_MOMENT + 1, row, *cell])]
    wrong += [(expire("wcput"), [*put, "PX", LAST_MOMENT, *cell])]
    wrong += [(expire("wcput"), [*put, "PXAT", 0, *cell])]
    return wrong


def wrong_reads(dataset: str, row: bytes, column: bytes) -> list[tuple[str, list[Word]]]:
    get: list[Word] = ["WCGET", dataset, row]
    scan: list[Word] = ["WCSCAN", dataset]
    wrong: list[tuple[str, list[Word]]] = [
        (SYNTAX, [*get, "COLUMNS", 2, column]),
        (SYNTAX, [*get, "COLUMNS", 1, column, "PREFIX", column]),
        (SYNTAX, [*get, "FROM", column, "COLUMNS", 1, column]),
        (SYNTAX, [*get, "VERSIONS", 1, "VERSIONS", "ALL"]),
        (SYNTAX, [*get, "NOVALUES", "NOVALUES"]),
        (SYNTAX, [*get, "COUNT"]),
        (SYNTAX, [*get, "LIMIT", 1]),
        (SYNTAX, [*get, "EVERYTHING"]),
        (SYNTAX, [*get, "RANGE", 1]),
        (TIMESTAMP, [*get, "RANGE", "*", "+"]),
        (TIMESTAMP, [*get, "RANGE", 0, -1]),
        (CURSOR, [*get, "CURSOR", "nonsense"]),
        (CURSOR, [*get, "CURSOR", b""]),
        (CURSOR, [*get, "CURSOR", b"\xff\0"]),
        (CURSOR, [*scan, "CURSOR", "nonsense"]),
        (INTEGER, [*scan, "LIMIT", 0]),
        (SYNTAX, [*scan, "LIMIT", 1, "LIMIT", 1]),
        (SYNTAX, [*scan, "ROWS", 1, row]),
        (INTEGER, ["WCMGET", dataset, "ROWS", 0, row]),
        (SYNTAX, ["WCMGET", dataset, "ROWS", 2, row]),
        (SYNTAX, ["WCMGET", dataset, "ROWS", 1, row, "CURSOR", 0]),
        (SYNTAX, ["WCCOLS", dataset, row, "NOVALUES"]),
        (SYNTAX, ["WCCOLS", dataset, row, "COLUMNS", 1, column]),
        (INTEGER, ["WCCOLS", dataset, row, "COUNT", 0]),
        (CURSOR, ["WCCOLS", dataset, row, "CURSOR", "nonsense"]),
    ]
    for option in ("VERSIONS", "COUNT", "COLUMNS"):
        wrong += [(INTEGER, [*get, option, bad, column]) for bad in (0, -1, "many")]
    return wrong


def wrong_deletes(dataset: str, row: bytes, column: bytes) -> list[tuple[str, list[Word]]]:
    delete: list[Word] = ["WCDEL", dataset, row]
    return [
        (SYNTAX, [*delete, "RANGE", "-", "+", "TIMESTAMPS", 1, 5]),
        (SYNTAX, [*delete, "RANGE", "-", "+", "RANGE", "-", "+"]),
        (SYNTAX, [*delete, "PREFIX", column]),
        (SYNTAX, [*delete, "TIMESTAMPS", 2, 5]),
        (SYNTAX, [*delete, "COLUMNS", 3, column, column]),
        (INTEGER, [*delete, "TIMESTAMPS", 0]),
        (TIMESTAMP, [*delete, "TIMESTAMPS", 2, 5, "*"]),
        (TIMESTAMP, [*delete, "RANGE", "-", "later"]),
        (SYNTAX, ["WCMDEL", dataset, "ROWS", 2, row]),
        (SYNTAX, ["WCMDEL", dataset, "ROWS", 1, row, "EVERYTHING"]),
        (TIMESTAMP, ["WCMDEL", dataset, "ROWS", 1, row, "TIMESTAMPS", 1, "+"]),
    ]


def wrong_others(dataset: str, row: bytes, column: bytes) -> list[tuple[str, list[Word]]]:
    cas: list[Word] = ["WCCAS", dataset, row, column]
    alter: list[Word] = ["WCDATASET", "ALTER", dataset]
    name = "ERR invalid dataset name"
    return [
        (SYNTAX, [*cas, "IFMAYBE", 5, b""]),
        (TIMESTAMP, [*cas, "IFABSENT", "never", b""]),
        (INTEGER, [*cas, "IFABSENT", "EX", "soon", 5, b""]),
        ("ERR invalid expire time in 'wccas' command", [*cas, "IFABSENT", "EX", 0, 5, b""]),
        (INTEGER, ["WCINCRBY", dataset, row, column, "1.5"]),
        (INTEGER, ["WCINCRBY", dataset, row, column, LAST_MOMENT + 1]),
        ("ERR wrong number of arguments for 'wcincrby' command", ["WCINCRBY", dataset, row]),
        ("ERR wrong number of arguments for 'wcexists' command", ["WCEXISTS", dataset]),
        (SYNTAX, alter),
        (SYNTAX, [*alter, "TTL", 5, "TTL", 5]),
        ("ERR ", [*alter, "MAXVERSIONS", 100_001]),
        ("ERR ", [*alter, "MAXVERSIONS", -1]),
        ("ERR ", [*alter, "TTL", LAST_MOMENT // 1000 + 1]),
        (name, ["WCGET", "no name", row]),
        (name, ["WCPUT", b"", row, 5, column, b""]),
        (name, ["WCSCAN", "n" * 129]),
    ]


STATEFUL = settings(
    max_examples=EXAMPLES,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_conversations(steered: SteeredServer) -> None:
    steered.running()
    conversation: Any = lambda: Conversation(steered)  # noqa: E731 (typed narrower than it is)
    run_state_machine_as_test(conversation, settings=STATEFUL)


# Every column of four cells that live ten minutes, two hours, for ever or no more, side by side.

AGES = range(4)
SECONDS = [Moment("start", -1_000 * age) for age in AGES]
LIVES = [
    Expiry("PXAT", Moment("start", 600_000)),
    Expiry("PXAT", Moment("start", 2 * HOUR_MS)),
    Expiry("PXAT", Moment("start", -1)),
]
ENDS: list[int | None] = [None, 0, 1, 2]
COLUMNS = list(itertools.product(ENDS, repeat=len(AGES)))
ROWS = range(len(COLUMNS))

Act = Callable[["EveryColumn"], None]


def cells_ending(end: int | None) -> list[tuple[int, int]]:
    """Row and age of all the cells that live so long."""
    return [(row, age) for row in ROWS for age in AGES if COLUMNS[row][age] == end]


class EveryColumn:
    """A dataset with a row for every such column, all treated alike."""

    def __init__(self, server: SteeredServer, chosen: Settings) -> None:
        self.talk = talk = Conversation(server)
        talk.rows = [bytes([number]) for number in ROWS]
        talk.columns, talk.moments, talk.expiries = [b"column"], SECONDS, LIVES
        self.chosen = chosen

    def fill(self) -> None:
        self.talk.create(self.chosen, if_not_exists=False)
        for end in ENDS:
            self.write(cells_ending(end), end)

    def write(self, cells: list[tuple[int, int]], end: int | None) -> None:
        words, expires_at = self.talk.expiry(end)
        writes = [
            Write(self.talk.row(row), self.talk.time(age), b"column", b"%d" % age)
            for row, age in cells
        ]
        if writes:
            self.talk._send_put("WCMPUT", writes, words, expires_at)

    def rewrite(self, age: int, end: int | None) -> None:
        self.write([(row, age) for row in ROWS if self.is_settled(row, age, end)], end)

    def is_settled(self, row: int, age: int, end: int | None) -> bool:
        """Whether the contract says what this rewrite leaves behind."""
        talk = self.talk
        dataset = talk.model.dataset(talk.dataset)
        cell = Cell(talk.time(age), 0, b"", talk.expiry(end)[1])
        column = dataset.rows[talk.row(row)][b"column"]
        with contextlib.suppress(Unsettled):
            return bool(written(column, [cell], dataset.settings, talk.now))
        return False

    def count(self) -> None:
        for row in ROWS:
            self.talk.increment(row, 0, 1)

    def delete(self, hits: Interval | list[int]) -> None:
        self.talk.delete(list(ROWS), None, hits, True)


def deleting(*ages: int) -> Act:
    return lambda every: every.delete(list(ages))


def deleting_between(first: int, last: int) -> Act:
    return lambda every: every.delete(Interval(last, first))


def rewriting(age: int, end: int | None) -> Act:
    return lambda every: every.rewrite(age, end)


DELETES = {
    f"delete {ages}": deleting(*ages)
    for size in (1, 2)
    for ages in itertools.combinations(AGES, size)
}
REWRITES = {f"rewrite {age} to end {end}": rewriting(age, end) for age in AGES for end in ENDS}
ACTS: dict[str, Act] = {
    **DELETES,
    **REWRITES,
    "delete between": deleting_between(1, 2),
    "compact": lambda every: every.talk.compact(awaited=True),
    "wait": lambda every: every.talk.wait_for_an_expiry(beyond=1),
    "count": EveryColumn.count,
    "one version": lambda every: every.talk.alter(1, None),
    "half an hour": lambda every: every.talk.alter(None, 1800),
}


def perform(server: SteeredServer, chosen: Settings, acts: Sequence[str]) -> None:
    every = EveryColumn(server, chosen)
    try:
        every.fill()
        for act in acts:
            ACTS[act](every)
    finally:
        every.talk.teardown()


@pytest.mark.parametrize("max_versions", [1, 2])
@pytest.mark.parametrize("act", [*DELETES, *REWRITES])
def test_every_column_after_one_change(
    unhurried: SteeredServer, max_versions: int, act: str
) -> None:
    perform(unhurried, Settings(max_versions), [act])
    perform(unhurried, Settings(max_versions), ["compact", act, "compact"])


@settings(STATEFUL)
@given(
    chosen=st.builds(Settings, st.sampled_from([0, 1, 2, 3]), st.sampled_from([0, 3600])),
    acts=st.lists(st.sampled_from(sorted(ACTS)), min_size=2, max_size=5),
)
def test_every_column_after_several_changes(
    unhurried: SteeredServer, chosen: Settings, acts: list[str]
) -> None:
    perform(unhurried, chosen, acts)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize(
    ("narrow", "wide"),
    [(Settings(1), (0, None)), (Settings(2), (3, None)), (Settings(0, 600), (None, 0))],
)
def test_wider_settings_show_what_was_visible_and_nothing_unwritten(
    unhurried: SteeredServer,
    narrow: Settings,
    wide: tuple[int | None, int | None],
    compacted: bool,
) -> None:
    every = EveryColumn(unhurried, narrow)
    talk = every.talk
    try:
        every.fill()
        if compacted:
            talk.compact(awaited=True)
        before = timestamps_of(talk)
        option, number = [("MAXVERSIONS", wide[0]), ("TTL", wide[1])][wide[0] is None]
        talk.send("WCDATASET", "ALTER", talk.dataset, option, number or 0)
        after = timestamps_of(talk)
        # What was lost between two cells moves up older ones: any that lives may show.
        talk.model.alter(talk.dataset, max_versions=0, ttl_seconds=wide[1])
        most = timestamps_of_model(talk)
    finally:
        talk.model.datasets.clear()
        talk.teardown()
    for row in talk.rows:
        assert before.get(row, set()) <= after.get(row, set()) <= most.get(row, set())


def timestamps_of(talk: Conversation) -> dict[bytes, set[int]]:
    _, rows = talk.send("WCSCAN", talk.dataset, "VERSIONS", "ALL", "NOVALUES")
    return {row: set(timestamps) for row, [[_, timestamps]], _ in rows}


def timestamps_of_model(talk: Conversation) -> dict[bytes, set[int]]:
    rows = talk.model.scan(talk.dataset, Span(), Selection(versions=None), talk.now)
    return {row: {cell.timestamp for cell in cells} for row, [(_, cells)] in rows}


Step = tuple[str, list[int], int | None]
SEVERAL_AGES = st.lists(st.integers(-1, 3), min_size=1, max_size=3, unique=True)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "delete", "wait"]), SEVERAL_AGES, st.sampled_from(ENDS)
    ),
    min_size=1,
    max_size=5,
)


class Twins:
    """Two datasets that are told the same; one of them is compacted after every word.

    No model is asked: this holds also where the contract can be read in two ways.
    """

    def __init__(self, server: SteeredServer, client: Any, chosen: Settings) -> None:
        self.clock, self.client = server.clock, client
        self.start = server.clock.start_of_example()
        self.names = [next(server.names), next(server.names)]
        words: list[Word] = ["MAXVERSIONS", chosen.max_versions, "TTL", chosen.ttl_seconds]
        self.both(lambda name: ["WCDATASET", "CREATE", name, *words])
        self.rows = [bytes([number]) for number in ROWS]
        for end in ENDS:
            self.write(cells_ending(end), end)

    def both(self, words: Callable[[str], list[Word]]) -> None:
        one, other = [execute(self.client, *words(name)) for name in self.names]
        assert one == other
        self.clock.now += 1
        execute(self.client, "WCDATASET", "COMPACT", self.names[1])
        await_compaction(self.client, self.names[1], self.clock.now)

    def write(self, cells: list[tuple[int, int]], end: int | None) -> None:
        words: list[Word] = []
        if end is not None:
            words = ["PXAT", self.start + LIVES[end].at.milliseconds]
        for row, age in cells:
            words += [self.rows[row], self.start - 1_000 * age, b"column", b"%d" % age]
        self.both(lambda name: ["WCMPUT", name, *words])

    def delete(self, ages: list[int]) -> None:
        hits = [self.start - 1_000 * age for age in ages]
        rows: list[Word] = ["ROWS", len(self.rows), *self.rows]
        self.both(lambda name: ["WCMDEL", name, *rows, "TIMESTAMPS", len(hits), *hits])

    def compare_to_the_end(self) -> None:
        for hours in (0, 0.2, 0.5, 2, 1):
            self.clock.now += int(hours * HOUR_MS)
            self.both(lambda name: ["WCSCAN", name, "VERSIONS", "ALL"])

    def drop(self) -> None:
        for name in self.names:
            execute(self.client, "WCDATASET", "DROP", name)


@settings(STATEFUL, max_examples=max(EXAMPLES // 2, 1))
@given(
    chosen=st.builds(Settings, st.sampled_from([0, 1, 2]), st.sampled_from([0, 3600])), steps=STEPS
)
def test_no_answer_depends_on_compaction(
    unhurried: SteeredServer, chosen: Settings, steps: list[Step]
) -> None:
    with unhurried.running().client(2) as client:
        twins = Twins(unhurried, client, chosen)
        for kind, ages, end in steps:
            if kind == "write":
                twins.write([(row, age) for row in ROWS for age in ages], end)
            elif kind == "delete":
                twins.delete(ages)
            else:
                twins.clock.now += 700_000
            twins.both(lambda name: ["WCSCAN", name, "VERSIONS", "ALL"])
        twins.compare_to_the_end()
        twins.drop()


def test_more_stamps_than_a_millisecond_has_numbers_for(unhurried: SteeredServer) -> None:
    """The clock stands still, and still every `*` is a cell of its own, newer than the last."""
    total, a_call = 70_000, 10_000
    name, now = next(unhurried.names), unhurried.clock.start_of_example()
    with unhurried.running().client() as client:
        for first in range(0, total, a_call):
            words = [word for n in range(first, first + a_call) for word in ("*", "c", n)]
            assert execute(client, "WCPUT", name, "row", *words) == a_call
        found: list[Any] = []
        cursor = b"0"
        while cursor != b"0" or not found:
            page = execute(client, "WCGET", name, "row", "VERSIONS", "ALL", "CURSOR", cursor)
            cursor, [[_, cells]] = page
            found += cells
    assert [int(value) for _, value in found] == list(reversed(range(total)))
    assert {timestamp for timestamp, _ in found} == {now, now + 1}


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
def test_without_auto_create_only_create_creates(
    make_server: Callable[..., ServerProcess], words: list[Word]
) -> None:
    with make_server(wc_auto_create="no").client() as client:
        with pytest.raises(redis.ResponseError, match=r"^NODATASET no such dataset 'd'$"):
            execute(client, *words)
        assert execute(client, "WCDATASET", "LIST") == []
        assert execute(client, "WCDATASET", "CREATE", "d") == b"OK"
        assert execute(client, *words) == 1


@settings(max_examples=20, deadline=None)
@given(values=st.lists(st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=4))
def test_stamps_follow_the_wall_clock(server: ServerProcess, values: list[list[bytes]]) -> None:
    """`*` with default limits and a clock that runs: never back, later cells newer."""
    row = os.urandom(8)
    with server.client() as client:
        for command in values:
            words = [word for value in command for word in (b"*", b"c", value)]
            assert execute(client, "WCPUT", "stamps", row, *words) == len(command)
        reply = execute(client, "WCGET", "stamps", row, "VERSIONS", "ALL")
    cursor, [[column, cells]] = reply
    stamps = [timestamp for timestamp, _ in cells]
    assert (cursor, column) == (b"0", b"c")
    assert [value for _, value in cells] == [v for command in values for v in command][::-1]
    assert stamps == sorted(stamps, reverse=True)
    assert abs(stamps[0] - time.time() * 1000) < 60_000
