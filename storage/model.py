"""The words of the data model: what callers hand to an engine and get back.

Knows nothing of keys, bytes on disk or commands. Cells and columns are plain tuples, because pages
hold thousands of them; everything that exists once a call is a frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

MAX_TIMESTAMP = 2**63 - 1
MAX_NAME_BYTES = 65_535
"""The longest row key and the longest column name."""
MAX_VERSIONS_LIMIT = 100_000
MAX_TTL_SECONDS = MAX_TIMESTAMP // 1000

NewCell = tuple[bytes, int | None, bytes, bytes]
"""A cell to write: (row, timestamp in ms or None for the engine's clock, column, value)."""

Cells = list[tuple[int, bytes]] | list[int]
"""The cells of one column, newest first: (timestamp in ms, value), or timestamps alone."""

ColumnCells = tuple[bytes, Cells]
"""A column's name and its cells."""


@dataclass(frozen=True, slots=True)
class DatasetSettings:
    """`max_versions` 0 keeps all; `ttl_seconds` 0 never expires."""

    max_versions: int = 0
    ttl_seconds: int = 0

    def altered(self, max_versions: int | None, ttl_seconds: int | None) -> DatasetSettings:
        """With these instead, where they are not None."""
        return DatasetSettings(
            self.max_versions if max_versions is None else max_versions,
            self.ttl_seconds if ttl_seconds is None else ttl_seconds,
        )


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A dataset's settings and what it holds; `estimated_cells` is RocksDB's estimate."""

    name: bytes
    settings: DatasetSettings
    created_ms: int
    estimated_cells: int
    disk_bytes: int
    memtable_bytes: int
    last_compaction_ms: int
    last_compaction_removed_cells: int
    compaction: str = "idle"
    """What is being done, for people to read."""


@dataclass(frozen=True, slots=True)
class NameRange:
    """Names in byte order: those with `prefix`, from `start` on, before `stop`."""

    prefix: bytes | None = None
    start: bytes | None = None
    stop: bytes | None = None


ALL_NAMES = NameRange()


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Inclusive milliseconds. Oldest after newest selects nothing."""

    oldest: int = 0
    newest: int = MAX_TIMESTAMP


ALL_TIME = TimeRange()


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cells of a row: of `columns` (or of those in `names`) the newest `versions` in `times`.

    `columns` is sorted and without repeats, or None; `versions` None means all.
    """

    columns: tuple[bytes, ...] | None = None
    names: NameRange = ALL_NAMES
    versions: int | None = 1
    times: TimeRange = ALL_TIME


EVERYTHING = Selection(versions=None)


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Where a page ends: `cells`, `bytes` and `scan` (cells examined) bound one whole reply.

    `columns` and `rows` are what a page holds when the caller names no number.
    """

    columns: int = 100
    rows: int = 10
    cells: int = 10_000
    bytes: int = 8 * 1024 * 1024
    scan: int = 50_000


@dataclass(frozen=True, slots=True)
class PageRequest:
    """How much of a selection a call wants, and from where.

    `columns` and `rows` None mean the default of `limits`; `cursor` is one that an earlier page
    gave, or b"0".
    """

    limits: PageLimits
    columns: int | None = None
    rows: int | None = None
    cursor: bytes = b"0"
    values: bool = True
    packed: bool = False
    """Whether the columns of a row may be given Packed."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a call wants of a row. Answers may be remembered by `number`, which no other query has;
    0 for one that is not expected again."""

    selection: Selection
    request: PageRequest
    number: int = 0


class Packed:
    """So many columns in one piece; see storage/packed.py."""

    __slots__ = ("count", "data")

    def __init__(self, count: int, data: bytes) -> None:
        self.count = count
        self.data = data


@dataclass(slots=True)  # frozen it would cost a read four times as much
class Page:
    """A part of one row; `cursor` is b"0" when nothing is left.

    It stays as it is while the dataset has the same `version`, and until `first_expiry` has passed:
    the ms at which the first of its cells expires.
    """

    cursor: bytes
    columns: list[ColumnCells]
    version: int = field(default=0, compare=False)
    first_expiry: int = field(default=0, compare=False)
    packed: Packed | None = None
    """The columns, where that was asked for and could be done; `columns` is empty then."""


@dataclass(frozen=True, slots=True)
class RowsPage:
    """A part of a dataset: (row, its columns, the cursor to go on inside the row)."""

    cursor: bytes
    rows: list[tuple[bytes, list[ColumnCells], bytes]]


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a delete takes out of a row: whole columns, or their cells in `times` or `timestamps`.

    `columns` None means every column. At most one of `times` and `timestamps` is given.
    """

    columns: tuple[bytes, ...] | None = None
    times: TimeRange | None = None
    timestamps: Sequence[int] | None = None
