"""A second opinion: what the wide-column commands answer, written from their contract alone.

Datasets are dictionaries of rows, rows dictionaries of columns, a column a list of cells, newest
first. Nothing is fast and nothing is paged: a read answers everything it selects. Time is an
argument, `now`, in milliseconds, so that a test decides what has expired. A cell that no longer
shows is kept until a command says otherwise; the model never compacts.

Knows nothing of sockets, of encodings or of the server. A refusal is `Refused`, with the text of
the error reply. Where the contract leaves an outcome open, the model says so: `Unsettled` for a
write that can be read in two ways, several acceptable replies from `compare_and_set`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

LAST_MOMENT = 2**63 - 1
FOREVER = 2**80
LARGEST_INTEGER = 2**63 - 1
SMALLEST_INTEGER = -(2**63)


class Refused(Exception):
    """The command answers an error and changes nothing: one of these, where several are true."""

    def __init__(self, *texts: str) -> None:
        super().__init__(*texts)
        self.texts = texts


class Unsettled(Exception):
    """The contract can be read in two ways that leave different cells behind."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One version. `sequence`: 0 for an explicit timestamp, else it counts the server's stamps."""

    timestamp: int
    sequence: int
    value: bytes
    expires_at: int | None = None

    @property
    def place(self) -> tuple[int, int]:
        return (self.timestamp, self.sequence)


Column = list[Cell]
Row = dict[bytes, Column]
Answer = list[tuple[bytes, Column]]


@dataclass(frozen=True, slots=True)
class Settings:
    max_versions: int = 0
    ttl_seconds: int = 0

    def deadline(self, cell: Cell) -> int:
        """The last millisecond at which the cell lives."""
        own = FOREVER if cell.expires_at is None else cell.expires_at
        shared = cell.timestamp + self.ttl_seconds * 1000 if self.ttl_seconds else FOREVER
        return min(own, shared)

    def shows_more_than(self, other: Settings) -> bool:
        def wider(mine: int, theirs: int) -> bool:
            return theirs != 0 and (mine == 0 or mine > theirs)

        return wider(self.max_versions, other.max_versions) or wider(
            self.ttl_seconds, other.ttl_seconds
        )


@dataclass(frozen=True, slots=True)
class Span:
    """Names by byte order: PREFIX, FROM (inclusive) and TO (exclusive), all of which must hold."""

    prefix: bytes = b""
    start: bytes = b""
    stop: bytes | None = None

    def __contains__(self, name: bytes) -> bool:
        before_stop = self.stop is None or name < self.stop
        return name.startswith(self.prefix) and self.start <= name and before_stop


@dataclass(frozen=True, slots=True)
class Selection:
    """What a read asks for. `columns` None is all that lie in `span`; `versions` None is ALL."""

    columns: frozenset[bytes] | None = None
    span: Span = Span()
    versions: int | None = 1
    first: int = 0
    last: int = LAST_MOMENT

    def names(self, column: bytes) -> bool:
        return column in self.span if self.columns is None else column in self.columns


@dataclass(frozen=True, slots=True)
class Doomed:
    """What a delete asks for. No `columns`: all of them. No `hits`: every cell."""

    columns: frozenset[bytes] | None = None
    hits: Callable[[int], bool] | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One cell of a write command; `timestamp` None is `*`."""

    row: bytes
    timestamp: int | None
    column: bytes
    value: bytes


@dataclass(slots=True)
class Dataset:
    settings: Settings
    rows: dict[bytes, Row] = field(default_factory=dict)
    clouded: set[tuple[bytes, bytes]] = field(default_factory=set)
    """Columns in which something was hidden once: wider settings may or may not bring it back."""


# One column. `now` decides what has expired; order is newest first throughout.


def alive(column: Column, settings: Settings, now: int) -> Column:
    return [cell for cell in column if now <= settings.deadline(cell)]


def visible(column: Column, settings: Settings, now: int) -> Column:
    living = alive(column, settings, now)
    return living[: settings.max_versions] if settings.max_versions else living


def may_show(cell: Cell, column: Column, settings: Settings, now: int) -> bool:
    """Whether the cell is visible or could become so by expiry alone."""
    if now > settings.deadline(cell):
        return False
    outliving = [
        newer
        for newer in alive(column, settings, now)
        if newer.place > cell.place and settings.deadline(newer) >= settings.deadline(cell)
    ]
    return settings.max_versions == 0 or len(outliving) < settings.max_versions


def without_hidden_below(touched: Cell, column: Column, settings: Settings, now: int) -> Column:
    shown = visible(column, settings, now)
    return [cell for cell in column if cell.place >= touched.place or cell in shown]


def with_cell(column: Column, new: Cell) -> Column:
    others = [cell for cell in column if cell.place != new.place]
    return sorted([*others, new], key=lambda cell: cell.place, reverse=True)


def without_cells(
    column: Column, hits: Callable[[int], bool], settings: Settings, now: int
) -> Column:
    """Delete by RANGE or TIMESTAMPS: the cells hit, and what hides below one that may show."""
    left = column
    for cell in column:
        if hits(cell.timestamp) and may_show(cell, column, settings, now):
            dropped = without_hidden_below(cell, column, settings, now)
            left = [kept for kept in left if kept in dropped]
    return [cell for cell in left if not hits(cell.timestamp)]


def shortens(old: Cell, new: Cell, column: Column, settings: Settings, now: int) -> list[bool]:
    """Whether `new` rewrites a cell that may show with an earlier expiry, by either reading.

    An expiry is a cell's own (EX, PX, EXAT, PXAT), or that and the dataset's TTL together.
    """
    if settings.max_versions == 0 or not may_show(old, column, settings, now):
        return [False, False]
    without_ttl = Settings()
    return [terms.deadline(new) < terms.deadline(old) for terms in (without_ttl, settings)]


def written_in_turn(
    column: Column, cells: Sequence[Cell], settings: Settings, now: int, reading: int
) -> Column:
    """The cells of one command, each written where the one before it left the column."""
    for new in cells:
        for old in [cell for cell in column if cell.place == new.place]:
            if shortens(old, new, column, settings, now)[reading]:
                column = without_hidden_below(old, column, settings, now)
        column = with_cell(column, new)
    return column


def written_at_once(
    column: Column, cells: Sequence[Cell], settings: Settings, now: int, reading: int
) -> Column:
    """The cells of one command, all judged by what the column was before it."""
    last_of_place = {cell.place: cell for cell in cells}
    left = column
    for old in column:
        new = last_of_place.get(old.place)
        if new is not None and shortens(old, new, column, settings, now)[reading]:
            dropped = without_hidden_below(old, column, settings, now)
            left = [kept for kept in left if kept in dropped]
    for new in cells:
        left = with_cell(left, new)
    return left


def written(column: Column, cells: Sequence[Cell], settings: Settings, now: int) -> Column:
    """The column after one command wrote these cells into it."""
    outcomes = [
        write(column, cells, settings, now, reading)
        for write in (written_in_turn, written_at_once)
        for reading in (0, 1)
    ]
    if any(outcome != outcomes[0] for outcome in outcomes):
        raise Unsettled("what a rewrite with an earlier expiry drops")
    return outcomes[0]


def parse_integer(value: bytes) -> int | None:
    """A signed 64-bit integer as Redis writes it: no plus, no spaces, no leading zeros."""
    try:
        number = int(value)
    except ValueError:
        return None
    in_range = SMALLEST_INTEGER <= number <= LARGEST_INTEGER
    return number if in_range and value == b"%d" % number else None


NOT_AN_INTEGER = "ERR value is not an integer or out of range"
NOT_NEWER = "ERR timestamp is not newer than the newest cell"


class Model:
    """All datasets of a server, and the commands of the family as methods.

    `auto_create` is the directive wc-auto-create; a dataset a write creates keeps everything.
    """

    def __init__(self, *, auto_create: bool = True) -> None:
        self.datasets: dict[str, Dataset] = {}
        self.auto_create = auto_create
        self._stamps = 0

    # Datasets

    def create(self, name: str, settings: Settings, *, if_not_exists: bool = False) -> None:
        if name in self.datasets and not if_not_exists:
            raise Refused("DATASETEXISTS")
        self.datasets.setdefault(name, Dataset(settings))

    def drop(self, name: str) -> None:
        del self.datasets[self._existing(name)]

    def alter(
        self, name: str, *, max_versions: int | None = None, ttl_seconds: int | None = None
    ) -> None:
        dataset = self.dataset(name)
        if max_versions is not None:
            dataset.settings = replace(dataset.settings, max_versions=max_versions)
        if ttl_seconds is not None:
            dataset.settings = replace(dataset.settings, ttl_seconds=ttl_seconds)

    def in_doubt(self, name: str, now: int) -> list[tuple[bytes, bytes]]:
        """Columns of which nobody can say what wider settings would show."""
        dataset = self.dataset(name)
        for row, column in self._all_columns(dataset):
            self._note_hidden(dataset, row, column, now)
        return sorted(dataset.clouded)

    def dataset(self, name: str) -> Dataset:
        return self.datasets[self._existing(name)]

    def _existing(self, name: str) -> str:
        if name not in self.datasets:
            raise Refused(f"NODATASET no such dataset '{name}'")
        return name

    def _for_writing(self, name: str) -> Dataset:
        if self.auto_create:
            self.datasets.setdefault(name, Dataset(Settings()))
        return self.dataset(name)

    # Writing

    def put(
        self, name: str, writes: Sequence[Write], now: int, expires_at: int | None = None
    ) -> int:
        """WCPUT and WCMPUT. Raises Unsettled, with nothing written, where two readings differ."""
        known = self.datasets.get(name, Dataset(Settings()))
        cells: dict[tuple[bytes, bytes], list[Cell]] = {}
        for write in writes:
            cells.setdefault((write.row, write.column), []).append(
                self._cell(write, now, expires_at)
            )
        outcomes = {
            (row, column): written(
                known.rows.get(row, {}).get(column, []), fresh, known.settings, now
            )
            for (row, column), fresh in cells.items()
        }
        dataset = self._for_writing(name)
        for (row, column), outcome in outcomes.items():
            self._note_hidden(dataset, row, column, now)
            dataset.rows.setdefault(row, {})[column] = outcome
        return len(writes)

    def _cell(self, write: Write, now: int, expires_at: int | None) -> Cell:
        if write.timestamp is not None:
            return Cell(write.timestamp, 0, write.value, expires_at)
        self._stamps += 1
        return Cell(now, self._stamps, write.value, expires_at)

    # Reading

    def get(self, name: str, row: bytes, selection: Selection, now: int) -> Answer:
        """WCGET without a limit: the columns in byte order, each with its cells, newest first."""
        dataset = self.dataset(name)
        answer: Answer = []
        for column in sorted(dataset.rows.get(row, {})):
            if not selection.names(column):
                continue
            picked = [
                cell
                for cell in self._visible(dataset, row, column, now)
                if selection.first <= cell.timestamp <= selection.last
            ]
            if picked:
                answer.append((column, picked[: selection.versions]))
        return answer

    def scan(
        self, name: str, rows: Span, selection: Selection, now: int
    ) -> list[tuple[bytes, Answer]]:
        """WCSCAN without a limit: the rows that have something to show, in byte order."""
        found = [
            (row, self.get(name, row, selection, now))
            for row in sorted(self.dataset(name).rows)
            if row in rows
        ]
        return [(row, answer) for row, answer in found if answer]

    def columns(self, name: str, row: bytes, span: Span, now: int) -> list[bytes]:
        return [column for column, _ in self.get(name, row, Selection(span=span), now)]

    def exists(self, name: str, rows: Iterable[bytes], now: int) -> int:
        return sum(1 for row in rows if self.get(name, row, Selection(), now))

    def newest(self, name: str, row: bytes, column: bytes, now: int) -> Cell | None:
        cells = self._visible(self.dataset(name), row, column, now)
        return cells[0] if cells else None

    # Deleting

    def delete(self, name: str, row: bytes, doomed: Doomed, now: int) -> int:
        """WCDEL: how many of the named columns had a visible cell there; 0 or 1 for the row."""
        dataset = self.dataset(name)
        names = doomed.columns if doomed.columns is not None else set(dataset.rows.get(row, {}))
        had = sum(self._delete_in(dataset, row, column, doomed, now) for column in names)
        if doomed.hits is None and doomed.columns is None:
            dataset.clouded -= {place for place in dataset.clouded if place[0] == row}
        return had if doomed.columns is not None else min(had, 1)

    def delete_rows(self, name: str, rows: Sequence[bytes], doomed: Doomed, now: int) -> int:
        self._existing(name)
        return sum(self.delete(name, row, doomed, now) for row in rows)

    def _delete_in(
        self, dataset: Dataset, row: bytes, column: bytes, doomed: Doomed, now: int
    ) -> int:
        before = dataset.rows.get(row, {}).get(column, [])
        shown = self._visible(dataset, row, column, now)
        if doomed.hits is None:
            dataset.clouded.discard((row, column))
            after: Column = []
            had = bool(shown)
        else:
            self._note_hidden(dataset, row, column, now)
            after = without_cells(before, doomed.hits, dataset.settings, now)
            had = any(doomed.hits(cell.timestamp) for cell in shown)
        if before:
            dataset.rows[row][column] = after
        return int(had)

    # More on a row

    def increment(self, name: str, row: bytes, column: bytes, by: int, now: int) -> int:
        newest = self.newest(name, row, column, now) if name in self.datasets else None
        number = 0 if newest is None else parse_integer(newest.value)
        problems = []
        if newest is not None and newest.timestamp > now:
            problems.append("ERR newest cell is in the future")
        if number is None:
            raise Refused(*problems, NOT_AN_INTEGER)
        if not SMALLEST_INTEGER <= number + by <= LARGEST_INTEGER:
            problems.append("ERR increment or decrement would overflow")
        if problems:
            raise Refused(*problems)
        kept = None if newest is None else newest.expires_at
        self.put(name, [Write(row, None, column, b"%d" % (number + by))], now, kept)
        return number + by

    def compare_and_set(
        self,
        name: str,
        expected: bytes | None,
        write: Write,
        now: int,
        expires_at: int | None = None,
    ) -> list[int | Refused]:
        """WCCAS, `expected` None for IFABSENT: the replies that keep the contract.

        When neither the comparison nor the timestamp holds, the contract does not say which of
        the two is looked at first; nor whether a dataset that is not there has to be.
        """
        known = name in self.datasets
        unknown = Refused(f"NODATASET no such dataset '{name}'")
        if not known and not self.auto_create:
            return [unknown]
        newest = self.newest(name, write.row, write.column, now) if known else None
        settings = self.datasets[name].settings if known else Settings()
        fit = self._newer_and_alive(newest, write, settings, now, expires_at)
        if expected == (None if newest is None else newest.value):
            if fit:
                self.put(name, [write], now, expires_at)
            return [1] if fit else [Refused(NOT_NEWER)]
        return [0, *([] if fit else [Refused(NOT_NEWER)]), *([] if known else [unknown])]

    def _newer_and_alive(
        self,
        newest: Cell | None,
        write: Write,
        settings: Settings,
        now: int,
        expires_at: int | None,
    ) -> bool:
        # A stamp of this very millisecond is newer than any cell of it; an explicit one is not.
        timestamp = now if write.timestamp is None else write.timestamp
        latest_before = now if write.timestamp is None else write.timestamp - 1
        if newest is not None and newest.timestamp > latest_before:
            return False
        return now <= settings.deadline(Cell(timestamp, 0, write.value, expires_at))

    # What several commands need

    def _visible(self, dataset: Dataset, row: bytes, column: bytes, now: int) -> Column:
        return visible(dataset.rows.get(row, {}).get(column, []), dataset.settings, now)

    def _note_hidden(self, dataset: Dataset, row: bytes, column: bytes, now: int) -> None:
        stored = dataset.rows.get(row, {}).get(column, [])
        if len(self._visible(dataset, row, column, now)) < len(stored):
            dataset.clouded.add((row, column))

    def _all_columns(self, dataset: Dataset) -> list[tuple[bytes, bytes]]:
        return [(row, column) for row, columns in dataset.rows.items() for column in columns]
