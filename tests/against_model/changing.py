"""What the examples change: datasets, cells, the time, the process; the model is told each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.against_model.ingredients import (
    COLUMN_LISTS,
    ENTRIES,
    INTERVALS,
    PERHAPS,
    PLACES,
    SETTINGS,
    VALUES,
    Entry,
    Interval,
)
from tests.against_model.steered import HOUR_MS, Word, await_compaction
from tests.against_model.talking import Talk
from tests.model import LAST_MOMENT, Dataset, Doomed, Settings, Unsettled, Write


class Changing(Talk):
    """The rules that change something: the dataset, its cells, the time, the process."""

    restarts_left: int
    burials_left: int

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
