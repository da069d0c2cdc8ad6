"""The options that say which cells: COLUMNS, PREFIX, FROM, TO, VERSIONS, RANGE, TIMESTAMPS, and the
options of a page: COUNT, LIMIT, CURSOR, NOVALUES.

Each reading or deleting command names the options it takes; they may stand in any order. Turns
words into the store's Selection, PageRequest and Deletion; looks at no data.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count

from commands.arguments import Arguments, Option, take_options, time_range, timestamp
from commands.errors import SyntaxProblem
from storage.cursors import FINISHED
from storage.model import (
    ALL_TIME,
    Deletion,
    NameRange,
    PageLimits,
    PageRequest,
    Query,
    Selection,
    TimeRange,
)

NAMES = (b"PREFIX", b"FROM", b"TO")


@dataclass(slots=True)
class Options:
    """What was given, word by word; the properties below put it together."""

    columns: list[bytes] | None = None
    prefix: bytes | None = None
    start: bytes | None = None
    stop: bytes | None = None
    versions: int | None = 1
    times: TimeRange | None = None
    timestamps: list[int] | None = None
    count: int | None = None
    limit: int | None = None
    cursor: bytes = b"0"
    values: bool = True
    rows: list[bytes] = field(default_factory=list)

    def read(self, arguments: Arguments, *allowed: bytes) -> set[bytes]:
        """Take all options up to the end; those given. SyntaxProblem for any other word."""
        readers: dict[bytes, Option] = {
            b"COLUMNS": self._columns,
            b"PREFIX": self._prefix,
            b"FROM": self._start,
            b"TO": self._stop,
            b"VERSIONS": self._versions,
            b"RANGE": self._range,
            b"TIMESTAMPS": self._timestamps,
            b"COUNT": self._count,
            b"LIMIT": self._limit,
            b"CURSOR": self._cursor,
            b"NOVALUES": self._novalues,
        }
        return take_options(arguments, {name: readers[name] for name in allowed})

    def _columns(self, arguments: Arguments) -> None:
        self.columns = arguments.take_counted()

    def _prefix(self, arguments: Arguments) -> None:
        self.prefix = arguments.take()

    def _start(self, arguments: Arguments) -> None:
        self.start = arguments.take()

    def _stop(self, arguments: Arguments) -> None:
        self.stop = arguments.take()

    def _versions(self, arguments: Arguments) -> None:
        word = arguments.take()
        if word.upper() == b"ALL":
            self.versions = None
        else:
            self.versions = Arguments([word], 0).take_integer(1)

    def _range(self, arguments: Arguments) -> None:
        self.times = time_range(arguments)

    def _timestamps(self, arguments: Arguments) -> None:
        self.timestamps = [timestamp(word) for word in arguments.take_counted()]

    def _count(self, arguments: Arguments) -> None:
        self.count = arguments.take_integer(1)

    def _limit(self, arguments: Arguments) -> None:
        self.limit = arguments.take_integer(1)

    def _cursor(self, arguments: Arguments) -> None:
        self.cursor = arguments.take()

    def _novalues(self, _arguments: Arguments) -> None:
        self.values = False

    @property
    def names(self) -> NameRange:
        return NameRange(self.prefix, self.start, self.stop)

    @property
    def sorted_columns(self) -> tuple[bytes, ...] | None:
        return None if self.columns is None else tuple(sorted(set(self.columns)))

    def selection(self, names: NameRange | None = None) -> Selection:
        """The cells of a row; in a scan `names` select rows, so that a row's are all."""
        times = ALL_TIME if self.times is None else self.times
        return Selection(self.sorted_columns, names or NameRange(), self.versions, times)

    def request(self, limits: PageLimits) -> PageRequest:
        return PageRequest(limits, self.count, self.limit, self.cursor, self.values)


ROW_OPTIONS = (b"COLUMNS", *NAMES, b"VERSIONS", b"RANGE", b"COUNT", b"NOVALUES")
SCAN_OPTIONS = (*ROW_OPTIONS, b"LIMIT", b"CURSOR")


def row_options(arguments: Arguments, *more: bytes) -> Options:
    """WCGET's and WCMGET's: columns by name or by range, not both."""
    options = Options()
    seen = options.read(arguments, *ROW_OPTIONS, *more)
    if b"COLUMNS" in seen and not seen.isdisjoint(NAMES):
        raise SyntaxProblem
    return options


_KNOWN_QUERIES: dict[tuple[bytes, ...], Query] = {}
"""What the options of WCGET were read as before, by their words: callers repeat themselves."""
_query_numbers = count(1)
_MOST_KNOWN_QUERIES = 512
_MOST_QUERY_WORDS = 64
_MOST_QUERY_BYTES = 1024


def row_query(words: list[bytes], limits: PageLimits) -> Query:
    """What WCGET's options ask for; they begin at the fourth word."""
    tail = tuple(words[3:])
    known = _KNOWN_QUERIES.get(tail)
    if known is not None and known.request.limits is limits:
        return known
    options = row_options(Arguments(words, 3), b"CURSOR")
    selection = options.selection(options.names)
    request = replace(options.request(limits), packed=True)
    # A cursor is used once, and a long list of columns would be kept for little.
    if options.cursor != FINISHED or len(tail) > _MOST_QUERY_WORDS:
        return Query(selection, request)
    if sum(map(len, tail)) > _MOST_QUERY_BYTES:
        return Query(selection, request)
    if len(_KNOWN_QUERIES) >= _MOST_KNOWN_QUERIES:
        _KNOWN_QUERIES.clear()
    query = _KNOWN_QUERIES[tail] = Query(selection, request, next(_query_numbers))
    return query


def scan_options(arguments: Arguments) -> Options:
    """WCSCAN's: PREFIX, FROM and TO select rows there."""
    options = Options()
    options.read(arguments, *SCAN_OPTIONS)
    return options


def column_options(arguments: Arguments) -> Options:
    """WCCOLS's."""
    options = Options()
    options.read(arguments, *NAMES, b"COUNT", b"CURSOR")
    return options


def deletion(arguments: Arguments) -> Deletion:
    """WCDEL's and WCMDEL's: by range of time or by timestamps, not both."""
    options = Options()
    seen = options.read(arguments, b"COLUMNS", b"RANGE", b"TIMESTAMPS")
    if {b"RANGE", b"TIMESTAMPS"} <= seen:
        raise SyntaxProblem
    return Deletion(options.sorted_columns, options.times, options.timestamps)
