"""Reading page by page, and holding every page to the limits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.against_model.ingredients import Plan
from tests.against_model.steered import Limits, Word
from tests.model import Answer, Refused

FURTHEST_PAGE = 1_000

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
