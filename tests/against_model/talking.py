"""Talking to a server and its model: what the strategies stand for, words sent, replies compared.

Knows nothing of what is said: conversation.py does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import redis
from hypothesis import currently_in_test_context, note
from hypothesis.stateful import RuleBasedStateMachine

from tests.against_model.ingredients import Expiry, Interval, Moment, Plan, Wanted
from tests.against_model.paging import Pager
from tests.against_model.steered import SteeredServer, Word, execute
from tests.model import LAST_MOMENT, Model, Refused, Selection, Span


def tell(line: str) -> None:
    """Keep the line for the report of a failing example."""
    if currently_in_test_context():
        note(line)


class Talk(RuleBasedStateMachine):
    """One dataset, talked to in RESP2 and RESP3 by turns, and its model."""

    rows: list[bytes]
    columns: list[bytes]
    moments: list[Moment]
    expiries: list[Expiry]

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
