"""Parquet files, written and read by pyarrow: the layout of an export, and anybody's columns.

    row, column, value       binary
    timestamp, expires       timestamp[ms, UTC]; expires is null for a cell without one of its own
    sequence                 uint16: tells apart cells that the server stamped in one millisecond

Timestamps are up to 2^63-1 ms, which is what timestamp[ms] holds. Who counts in finer units (DuckDB
in microseconds) cannot take those beyond its own end. Knows nothing of datasets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from storage.errors import CannotTransfer
from storage.transfer.cells import CellBatch, WideBatch

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
    return pa.table(
        [
            pa.array(batch.rows, pa.binary()),
            pa.array(batch.columns, pa.binary()),
            pa.array(batch.timestamps, _MOMENT),
            pa.array(batch.values, pa.binary()),
            pa.array(batch.expiries, _MOMENT),
            pa.array(batch.sequences, pa.uint16()),
        ],
        schema=CELLS,
    )


def wide_table(batch: WideBatch, schema: Any) -> Any:
    keys, columns = batch
    arrays = [pa.array(keys, pa.binary()), *(pa.array(column, pa.binary()) for column in columns)]
    return pa.table(arrays, schema=schema)


def writer(file: Any, schema: Any) -> Any:
    """A pyarrow writer whose every write_table() should be one row group."""
    order = _ORDER if schema is CELLS else [pq.SortingColumn(0)]
    return pq.ParquetWriter(file, schema, compression="zstd", sorting_columns=order)


# Reading


def describe(path: str) -> tuple[list[str], list[int]]:
    """The names of a file's fields, and how many rows each of its groups has."""
    try:
        with pq.ParquetFile(path) as file:
            groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
            return file.schema_arrow.names, groups
    except (OSError, pa.ArrowException) as error:
        raise CannotTransfer(f"{path}: {error}") from error


def columns_of(
    path: str, groups: Sequence[int], fields: Sequence[str], moments: frozenset[str]
) -> Iterator[list[list[Any]]]:
    """Batches of rows of these groups: for each of the fields its values.

    Moments become integers of milliseconds where they are times; all else bytes, or None.
    """
    with pq.ParquetFile(path) as file:
        batches = file.iter_batches(65_536, row_groups=list(groups), columns=list(fields))
        for batch in batches:
            yield [
                _moments(batch.column(name)) if name in moments else _payloads(batch.column(name))
                for name in fields
            ]


def _moments(array: Any) -> list[Any]:
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        array = array.cast(pa.timestamp("ms", tz=zone), safe=False).cast(pa.int64())
    values: list[Any] = array.to_pylist()
    return values


def _payloads(array: Any) -> list[Any]:
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if pa.types.is_nested(kind):
        return list(array.to_pylist())
    if not pa.types.is_binary(kind):
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            array = array.cast(pa.string())
        array = array.cast(pa.large_binary())
    values: list[Any] = array.to_pylist()
    return values
