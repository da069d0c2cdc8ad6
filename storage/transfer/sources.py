"""Files to import, in units that can be read apart: Parquet, CSV and NDJSON.

A unit gives its cells in order, and tells of every record that is none, with its line; of Parquet,
with its row, counted from 1. Knows nothing of where the cells go.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from storage.errors import CannotTransfer
from storage.transfer.mapping import (
    BadRecord,
    Defaults,
    ImportedCell,
    Layout,
    Mapping,
    converter,
    flawless,
)

FORMATS = {".parquet": "parquet", ".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson"}
UNIT_BYTES = 16 * 1024 * 1024
UNIT_ROWS = 500_000
MOST_UNDIVIDED_BYTES = 16 * UNIT_BYTES
"""A stray quote may seem to open a field without an end: here a unit ends all the same."""
TEXT_RECORD_BYTES = 48
"""What a record of a text file takes, for estimates."""

Complaint = Callable[[int, str], None]
"""Told the line, or row, and what is wrong with it. It may raise to end it all."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a file. Of text: bytes [start, end), the first of which is in `line`."""

    path: str
    kind: str
    layout: Layout | None
    """None for NDJSON, whose records name their fields."""
    mapping: Mapping
    names: tuple[str, ...] = ()
    """The fields of a CSV file, in order."""
    start: int = 0
    end: int = 0
    line: int = 1
    groups: tuple[int, ...] = ()
    records: int = 0
    """How many there are; of text an estimate."""

    @property
    def has_sequences(self) -> bool:
        """Whether its cells may differ in their sequence alone, which commands cannot say."""
        return self.layout is not None and "sequence" in dict(self.layout.parts)


def units_of(path: str, kind: str | None, mapping: Mapping) -> list[Unit]:
    """CannotTransfer for a file that cannot be read or has not the fields it needs."""
    kind = kind or FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        raise CannotTransfer(f"{path}: say with --format what it is: parquet, csv or ndjson")
    try:
        if kind == "parquet":
            return list(_parquet_units(path, mapping))
        return list(_text_units(path, kind, mapping))
    except OSError as error:
        raise CannotTransfer(f"{path}: {error.strerror}") from error


def _layout(path: str, mapping: Mapping, names: list[str]) -> Layout:
    if len(set(names)) < len(names):
        raise CannotTransfer(f"{path}: two fields have one name; {', '.join(names)}")
    try:
        return mapping.layout(names)
    except CannotTransfer as error:
        raise CannotTransfer(f"{path}: {error}") from None


def _parquet_units(path: str, mapping: Mapping) -> Iterator[Unit]:
    from storage.transfer.parquet import describe

    names, groups = describe(path)
    unit = Unit(path, "parquet", _layout(path, mapping, names), mapping)
    first, rows, line = 0, 0, 1
    for number, count in enumerate(groups):
        rows += count
        if rows >= UNIT_ROWS or number == len(groups) - 1:
            yield replace(unit, groups=tuple(range(first, number + 1)), records=rows, line=line)
            first, line, rows = number + 1, line + rows, 0


def _text_units(path: str, kind: str, mapping: Mapping) -> Iterator[Unit]:
    with Path(path).open("rb") as file:
        unit, start, line = Unit(path, kind, None, mapping), 0, 1
        if kind == "csv":
            header, lines = _csv_header(file)
            names = tuple(header)
            unit = replace(unit, layout=_layout(path, mapping, header), names=names)
            start, line = file.tell(), 1 + lines
        data, quotes = b"", kind == "csv"
        while True:
            more = file.read(UNIT_BYTES)
            data += more
            cut = _end_of_records(data, quotes) if more else len(data)
            if cut:
                records = max(1, cut // TEXT_RECORD_BYTES)
                yield replace(unit, start=start, end=start + cut, line=line, records=records)
                start, line, data = start + cut, line + data.count(b"\n", 0, cut), data[cut:]
            if not more:
                return


def _csv_header(file: Any) -> tuple[list[str], int]:
    """The names of the fields, and how many lines they take; the file stands after them."""
    text = b""
    while line := file.readline():
        text += line
        if text.count(b'"') % 2 == 0:
            break
    decoded = text.decode("utf-8-sig", "surrogateescape")
    return next(csv.reader([decoded]), []), text.count(b"\n")


def _end_of_records(data: bytes, quotes: bool) -> int:
    """After the last line's end that is not between quotes; 0 if there is none."""
    cut = data.rfind(b"\n")
    if not quotes or len(data) > MOST_UNDIVIDED_BYTES:
        return cut + 1
    while cut >= 0 and data.count(b'"', 0, cut) % 2:
        cut = data.rfind(b"\n", 0, cut)
    return cut + 1


# Reading


def cells_of(unit: Unit, defaults: Defaults, complain: Complaint) -> Iterator[ImportedCell]:
    """The cells of a unit, in the order of its file."""
    if unit.kind == "parquet":
        return _parquet_cells(unit, defaults, complain)
    with Path(unit.path).open("rb") as file:
        file.seek(unit.start)
        data = file.read(unit.end - unit.start)
    if unit.kind == "csv":
        return _csv_cells(unit, data, replace(defaults, empty_is_nothing=True), complain)
    return _ndjson_cells(unit, data, defaults, complain)


def _parquet_cells(unit: Unit, defaults: Defaults, complain: Complaint) -> Iterator[ImportedCell]:
    from storage.transfer.parquet import columns_of

    assert unit.layout is not None
    convert, first = converter(unit.layout, defaults), unit.line
    for columns in columns_of(unit.path, unit.groups, unit.layout.fields, unit.layout.moments):
        cells = flawless(unit.layout, columns, defaults)
        if cells is not None:
            yield from cells
            first += len(columns[0])
            continue
        for line, values in enumerate(zip(*columns, strict=True), first):
            try:
                yield from convert(values)
            except BadRecord as problem:
                complain(line, str(problem))
        first += len(columns[0])


def _csv_cells(
    unit: Unit, data: bytes, defaults: Defaults, complain: Complaint
) -> Iterator[ImportedCell]:
    assert unit.layout is not None
    csv.field_size_limit(sys.maxsize)
    convert = converter(unit.layout, defaults)
    places = [unit.names.index(name) for name in unit.layout.fields]
    lines = csv.reader(io.StringIO(data.decode("utf-8", "surrogateescape"), newline=""))
    line = unit.line
    while True:
        try:
            fields = next(lines, None)
            if fields is None:
                return
            if fields:
                if len(fields) != len(unit.names):
                    raise BadRecord(f"{len(fields)} fields instead of {len(unit.names)}")
                yield from convert([fields[place] for place in places])
        except (BadRecord, csv.Error) as problem:
            complain(line, str(problem))
        line = unit.line + lines.line_num


def _ndjson_cells(
    unit: Unit, data: bytes, defaults: Defaults, complain: Complaint
) -> Iterator[ImportedCell]:
    layouts: dict[tuple[str, ...], Any] = {}
    for line, text in enumerate(data.split(b"\n"), unit.line):
        if not text.strip():
            continue
        try:
            record = _record(text)
            names = tuple(record)
            if names not in layouts:
                layout = unit.mapping.layout(names)
                layouts[names] = layout.fields, converter(layout, defaults)
            fields, convert = layouts[names]
            yield from convert([record[field] for field in fields])
        except (BadRecord, CannotTransfer) as problem:
            complain(line, str(problem))


def _record(text: bytes) -> dict[str, Any]:
    try:
        record = json.loads(text.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise BadRecord("not a JSON object")
    return record
