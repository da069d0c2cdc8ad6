"""Parquet files, written and read by pyarrow: the layout of an export, and anybody's columns.

    row, column, value       binary
    timestamp, expires       timestamp[ms, UTC]; expires is null for a cell without one of its own
    sequence                 uint16: tells apart cells that the server stamped in one millisecond

Timestamps are up to 2^63-1 ms, which is what timestamp[ms] holds. Who counts in finer units (DuckDB
in microseconds) cannot take those beyond its own end. Knows nothing of datasets.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.errors import CannotTransfer
from storage.transfer.batches import CellBatch, WideBatch

BATCH_ROWS = 16_384
BATCH_BYTES = 64 * 1024 * 1024
"""What is read at a time, at most; row groups may be larger."""
_MOMENT = pa.timestamp("ms", tz="UTC")
CELLS = pa.schema(
    [
        pa.field("row", pa.binary(), nullable=False),
        pa.field("column", pa.binary(), nullable=False),
        pa.field("timestamp", _MOMENT, nullable=False),
        pa.field("value", pa.binary(), nullable=False),
        pa.field("expires", _MOMENT),
        pa.field("sequence", pa.uint16(), nullable=False),
    ]
)
_ORDER = [
    pq.SortingColumn(0),
    pq.SortingColumn(1),
    pq.SortingColumn(2, descending=True),
    pq.SortingColumn(5, descending=True),
]


def wide_schema(columns: Sequence[bytes]) -> Any:
    """CannotTransfer for a name that is no text: Parquet has no others."""
    try:
        names = [column.decode() for column in columns]
    except UnicodeDecodeError as error:
        raise CannotTransfer(f"the column {error.object!r} has no name in Parquet") from error
    if len({"row", *names}) <= len(names):
        raise CannotTransfer("the columns of a wide export must differ, and none can be 'row'")
    fields = [pa.field(name, pa.binary()) for name in names]
    return pa.schema([pa.field("row", pa.binary(), nullable=False), *fields])


def cells_table(batch: CellBatch) -> Any:
    arrays = [
        _binary(batch.rows),
        _binary(batch.columns),
        _numbers("q", _MOMENT, batch.timestamps),
        _binary(batch.values),
        _moments_or_nulls(batch.expiries),
        _numbers("H", pa.uint16(), batch.sequences),
    ]
    return pa.Table.from_arrays(arrays, schema=CELLS)


def wide_table(batch: WideBatch, schema: Any) -> Any:
    keys, columns = batch
    return pa.Table.from_arrays([_binary(keys), *map(_binary_or_nulls, columns)], schema=schema)


# pyarrow.array() and scalar() would do, but they import pandas first, where that is installed, and
# that takes longer than a small export.


def _binary(values: Sequence[bytes]) -> Any:
    ends = array("i", itertools.accumulate(map(len, values), initial=0))
    return _array(pa.binary(), len(values), ends, b"".join(values))


def _numbers(code: str, kind: Any, values: Sequence[int]) -> Any:
    """An array of `kind`, which stores its numbers as array.array(code) does."""
    return _array(kind, len(values), array(code, values))


def _binary_or_nulls(values: Sequence[bytes | None]) -> Any:
    return _with_nulls(_binary([value or b"" for value in values]), values)


def _moments_or_nulls(values: Sequence[int | None]) -> Any:
    if values.count(None) == len(values):
        return pa.nulls(len(values), _MOMENT)
    return _with_nulls(_numbers("q", _MOMENT, [value or 0 for value in values]), values)


def _with_nulls(filled: Any, values: Sequence[Any]) -> Any:
    """The array with a null where a value is None."""
    there = _numbers("B", pa.uint8(), [value is not None for value in values])
    return pc.if_else(there.cast(pa.bool_()), filled, pa.nulls(len(values), filled.type))


def _array(kind: Any, length: int, *buffers: Any) -> Any:
    return pa.Array.from_buffers(kind, length, [None, *map(pa.py_buffer, buffers)])


def writer(file: Any, schema: Any) -> Any:
    """A pyarrow writer whose every write_table() should be one row group."""
    order = _ORDER if schema is CELLS else [pq.SortingColumn(0)]
    return pq.ParquetWriter(file, schema, compression="zstd", sorting_columns=order)


# Reading


def describe(path: str) -> tuple[list[str], int]:
    """The names of a file's fields, and how many rows it has."""
    try:
        with pq.ParquetFile(path) as file:
            return file.schema_arrow.names, file.metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        raise CannotTransfer(f"{path}: {error}") from error


def columns_of(
    path: str, start: int, end: int, fields: Sequence[str], moments: frozenset[str]
) -> Iterator[list[list[Any]]]:
    """Rows [start, end), a batch at a time: for each of the fields its values.

    Moments become integers of milliseconds where they are times; all else bytes, or None.
    CannotTransfer where the file is damaged.
    """
    try:
        with pq.ParquetFile(path) as file:
            for batch in _batches(file, start, end, fields):
                columns = [(name in moments, batch.column(name)) for name in fields]
                yield [_moments(one) if timed else _payloads(one) for timed, one in columns]
    except (OSError, pa.ArrowException) as error:
        raise CannotTransfer(f"{path}: {error}") from error


def _batches(file: Any, start: int, end: int, fields: Sequence[str]) -> Iterator[Any]:
    """The row groups that hold these rows are read, and what lies around the rows is left out."""
    groups, widest, first, skip = list[int](), 1, 0, 0
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        if first < end and start < first + group.num_rows:
            skip = skip if groups else start - first
            groups.append(number)
            widest = max(widest, group.total_byte_size // group.num_rows)
        first += group.num_rows
    rows = min(BATCH_ROWS, max(1, BATCH_BYTES // widest))
    left = end - start
    for batch in file.iter_batches(rows, row_groups=groups, columns=list(fields)):
        part = batch.slice(skip, left)
        skip, left = max(0, skip - len(batch)), left - len(part)
        if len(part):
            yield part


def _moments(array: Any) -> list[Any]:
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        array = array.cast(pa.timestamp("ms", tz=zone), safe=False).cast(pa.int64())
    values: list[Any] = array.to_pylist()
    return values


def _payloads(array: Any) -> list[Any]:
    """Texts and what has no better form as bytes; what is nested as it is."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if not _is_any_of(kind, "nested", "binary", "large_binary", "fixed_size_binary", "binary_view"):
        if not _is_any_of(kind, "string", "large_string", "string_view"):
            array = array.cast(pa.string())
        array = array.cast(pa.large_binary())
    values: list[Any] = array.to_pylist()
    return values


def _is_any_of(kind: Any, *names: str) -> bool:
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)
