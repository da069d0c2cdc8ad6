"""Cursors: what a client makes up is refused, or begins a page somewhere in what it named anyway.

A cursor's digest is no secret, so an attacker can put any position into one. Such a page gives
nothing that is not in the row or the range of rows, has not been selected, or has expired; and
whoever follows its cursors comes to an end. A cursor of the server's gives the rest and no more.

An input is

    kind(1) selection(9) limits(3) pages(1) forging(1) number(8) number(8) bytes
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from storage.cursors import FINISHED, Binding, Position
from storage.embedded.engine import EmbeddedEngine
from storage.embedded.pages import row_binding
from storage.errors import InvalidCursor
from storage.memory.database import MemoryDatabase
from storage.model import (
    ALL_NAMES,
    ALL_TIME,
    ColumnCells,
    DatasetSettings,
    NameRange,
    NewCell,
    PageLimits,
    PageRequest,
    Selection,
    TimeRange,
)
from tests.fuzz.choices import Choices
from tests.fuzz.target import Target

FAR_FUTURE_MS = 2**62
DATASETS = (b"all", b"two")
"""Of any number of versions, and of two."""
STORED_ROWS = (b"", b"a", b"a\x00", b"a\x00\x01", b"b", b"\xff\xff")
ROW_KEYS = (*STORED_ROWS, b"missing")
COLUMN_NAMES = (b"", b"c", b"c\x00", b"c\x00\x01x", b"d", b"\xff")
VERSIONS = 7
MOST_PAGES = 2000

Seen = set[tuple[bytes, bytes, int, bytes]]
"""Cells: row, column, timestamp, value."""


def cells_of(row: bytes, *, expired: bool) -> list[NewCell]:
    """What is in a row: of each column's cells every third one has expired."""
    return [
        (row, 10 * version + 1, column, b"%d" % version)
        for column in COLUMN_NAMES
        for version in range(VERSIONS)
        if (version % 3 == 1) == expired
    ]


@cache
def filled() -> EmbeddedEngine:
    """Nobody changes it."""

    async def fill() -> EmbeddedEngine:
        engine = EmbeddedEngine(MemoryDatabase())
        for dataset, most in zip(DATASETS, (0, 2), strict=True):
            settings = DatasetSettings(max_versions=most)
            await engine.create_dataset(dataset, settings)
            for row in STORED_ROWS:
                await engine.put(dataset, cells_of(row, expired=False), FAR_FUTURE_MS, settings)
                await engine.put(dataset, cells_of(row, expired=True), 1, settings)
        assert engine.commit() is None
        return engine

    return asyncio.run(fill())


def ended(call: Coroutine[Any, Any, Any]) -> Any:
    """What a call returns that does not wait."""
    try:
        call.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits, with nothing to wait for")


@dataclass(frozen=True)
class Question:
    """One of the calls that page."""

    kind: str
    dataset: bytes
    row: bytes
    names: NameRange
    """Of the rows of a scan; of the columns otherwise."""
    selection: Selection
    limits: PageLimits

    def binding(self) -> Binding:
        if self.kind == "scan":
            return Binding(b"scan", (self.dataset,), self.selection, self.names)
        if self.kind == "columns":
            chosen = Selection(names=self.names)
            return Binding(b"columns", (self.dataset, self.row), chosen)
        return row_binding(self.dataset, self.row, self.selection)

    def page(self, cursor: bytes) -> tuple[bytes, Seen]:
        """The next cursor and the cells of a page; of columns alone, their names."""
        engine, request = filled(), PageRequest(self.limits, 2, 2, cursor)
        if self.kind == "scan":
            page = ended(engine.scan(self.dataset, self.names, self.selection, request))
            cells = {cell for row, columns, _ in page.rows for cell in _flat(row, columns)}
            for row, _, goes_on in page.rows:
                if goes_on != FINISHED:
                    cells |= replace(self, kind="row", row=row).follow(goes_on)
            return page.cursor, cells
        if self.kind == "columns":
            following, names = ended(
                engine.read_columns(self.dataset, self.row, self.names, request)
            )
            return following, {(self.row, name, 0, b"") for name in names}
        page = ended(engine.read_row(self.dataset, self.row, self.selection, request))
        return page.cursor, set(_flat(self.row, page.columns))

    def follow(self, cursor: bytes) -> Seen:
        """All pages from a cursor on."""
        seen: Seen = set()
        for _ in range(MOST_PAGES):
            cursor, cells = self.page(cursor)
            seen |= cells
            if cursor == FINISHED:
                return seen
        raise AssertionError("the pages have no end")

    def answer(self, *, all_unexpired: bool = False) -> Seen:
        """What the pages together give; or, of the selection, all that has not expired: no page
        may go beyond that, whatever its cursor."""
        rows = [self.row] if self.kind != "scan" else _within(ROW_KEYS, self.names)
        names, times = self.selection.names, self.selection.times
        columns = self.selection.columns or _within(COLUMN_NAMES, names)
        most_versions = self.selection.versions
        if self.kind == "columns":
            columns, times, most_versions = _within(COLUMN_NAMES, self.names), ALL_TIME, 1
        visible = VERSIONS if all_unexpired or self.dataset == b"all" else 2
        versions = VERSIONS if all_unexpired or most_versions is None else most_versions
        found: Seen = set()
        for row in rows:
            for column in columns if row in STORED_ROWS else ():
                newest_first = [
                    (row, column, timestamp or 0, value)
                    for _, timestamp, name, value in reversed(cells_of(row, expired=False))
                    if name == column
                ]
                seen = [
                    cell
                    for cell in newest_first[:visible]
                    if times.oldest <= cell[2] <= times.newest
                ]
                found |= set(seen[:versions])
        if self.kind == "columns":
            return {(row, column, 0, b"") for row, column, _, _ in found}
        return found


def _flat(row: bytes, columns: list[ColumnCells]) -> list[tuple[bytes, bytes, int, bytes]]:
    return [(row, column, *cell) for column, cells in columns for cell in cells]  # type: ignore[misc]


def _within(keys: tuple[bytes, ...], names: NameRange) -> list[bytes]:
    return [
        key
        for key in keys
        if (names.prefix is None or key.startswith(names.prefix))
        and (names.start is None or key >= names.start)
        and (names.stop is None or key < names.stop)
    ]


def question_of(choices: Choices) -> Question:
    kind = choices.pick(("row", "scan", "columns"))
    dataset, row = choices.pick(DATASETS), choices.pick(ROW_KEYS)
    pool = ROW_KEYS if kind == "scan" else COLUMN_NAMES
    ends = [None, *pool]
    names = NameRange(choices.pick(ends), choices.pick(ends), choices.pick(ends))
    chosen = choices.number()
    columns = tuple(sorted(name for place, name in enumerate(COLUMN_NAMES) if chosen >> place & 1))
    versions = choices.pick((1, 2, 5, None))
    times = choices.pick((ALL_TIME, TimeRange(11, 41), TimeRange(0, 0), TimeRange(50, 2)))
    of_columns = names if kind == "row" and not columns else ALL_NAMES
    return Question(
        kind,
        dataset,
        row,
        names,
        Selection(columns or None, of_columns, versions, times),
        PageLimits(
            cells=1 + choices.number() % 9,
            bytes=1 + 20 * choices.number(),
            scan=1 + choices.number() % 40,
        ),
    )


def run(data: bytes) -> None:
    choices = Choices(data)
    question = question_of(choices)
    pages, forging = choices.number() % 8, choices.pick(("position", "bytes", "change"))
    assert question.follow(FINISHED) == question.answer()
    real = FINISHED
    for _ in range(pages):
        real, _ = question.page(real)
        if real == FINISHED:
            break
    if forging == "position":
        # What is no number of cells cannot be in a cursor either.
        returned, live = choices.number(8), choices.number(8)
        position = Position(choices.rest(), None if returned == 0 else returned - 1, live)
        forged = question.binding().encode(position)
    elif forging == "bytes":
        forged = choices.rest()
    else:
        place, change = choices.number(), choices.short()
        place %= len(real) + 1
        forged = real[:place] + change + real[place + len(change) :]
    try:
        found = question.follow(forged)
    except InvalidCursor:
        assert forged not in (FINISHED, real)
        return
    assert found <= question.answer(all_unexpired=True)


TARGET = Target(run, tokens=(b"\x00\x00", b"\x00\x01", b"\xff", b"0", b"="), max_bytes=300)
