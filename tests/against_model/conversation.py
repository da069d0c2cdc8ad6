"""A whole example: its beginning and end, and all reads, each compared with the model's answer."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.against_model.changing import Changing
from tests.against_model.ingredients import (
    ENTRIES,
    EXPIRIES,
    INTERVALS,
    MOMENTS,
    NAMES,
    PLACES,
    PLANS,
    SETTINGS,
    SPANS,
    WANTED,
    Entry,
    Expiry,
    Interval,
    Moment,
    Plan,
    Wanted,
)
from tests.against_model.paging import Cells, assert_same, column_names, plain, same_cells
from tests.against_model.refusals import refusals
from tests.against_model.steered import Word
from tests.model import Refused, Selection, Settings, Span


class Conversation(Changing):
    """Everything that can be said, and what it has to answer."""

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
