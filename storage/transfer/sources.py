"""Files to import, in units that can be read apart: Parquet, CSV and NDJSON.

A unit gives its cells in batches, and tells of every record that is none, with its line; of
Parquet, with its row, counted from 1. Knows nothing of where the cells go.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from storage.errors import CannotTransfer
from storage.transfer.batches import CellBatch
from storage.transfer.mapping import (
    BadRecord,
    Defaults,
    ImportedCell,
    Layout,
    Mapping,
    Values,
    cells_of_records,
)

FORMATS = {".parquet": "parquet", ".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson"}
UNIT_BYTES = 1024 * 1024
UNIT_ROWS = 65_536
MOST_UNDIVIDED_BYTES = 64 * UNIT_BYTES
"""A stray quote may seem to open a field without an end: here a unit ends all the same."""

Complaint = Callable[[int, str], None]
"""Told the line, or row, and what is wrong with it. It may raise to end it all."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a file: bytes [start, end) of text, rows [start, end) of Parquet."""

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
    """Where it begins."""
    records: int = 0
    """How many there are, about: of text the lines."""

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

    names, rows = describe(path)
    unit = Unit(path, "parquet", _layout(path, mapping, names), mapping)
    for start in range(0, rows, UNIT_ROWS):
        end = min(rows, start + UNIT_ROWS)
        yield replace(unit, start=start, end=end, line=start + 1, records=end - start)


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
                lines = data.count(b"\n", 0, cut)
                yield replace(unit, start=start, end=start + cut, line=line, records=max(1, lines))
                start, line, data = start + cut, line + lines, data[cut:]
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
    end = data.rfind(b"\n") + 1
    if not quotes or len(data) > MOST_UNDIVIDED_BYTES:
        return end
    between = data.count(b'"', 0, end) % 2
    while between:
        quote = data.rfind(b'"', 0, end)
        end = data.rfind(b"\n", 0, quote) + 1
        between = (data.count(b'"', end, quote) + between + 1) % 2
    return end


def shares_of(units: Sequence[Unit], records: int) -> list[list[Unit]]:
    """The units in their order, parted into shares of about equal size, of at most so many records.

    Neighbours in a Parquet file become one: what it holds is read from the start of a row group on.
    """
    total = sum(unit.records for unit in units)
    shares: list[list[Unit]] = [[] for _ in range(-(-total // records))]
    done = 0
    for unit in units:
        share = shares[(2 * done + unit.records) * len(shares) // (2 * total)]
        done += unit.records
        last = share[-1] if share else None
        if last and unit.kind == "parquet" and (last.path, last.end) == (unit.path, unit.start):
            share[-1] = replace(last, end=unit.end, records=last.records + unit.records)
        else:
            share.append(unit)
    return [share for share in shares if share]


# Reading


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one layout: the line of each, and the values of each field."""

    layout: Layout
    lines: Sequence[int]
    columns: Sequence[Values]
    """In the order of layout.fields."""

    def halves(self) -> Iterator[Records]:
        middle = len(self.lines) // 2
        for half in (slice(middle), slice(middle, None)):
            yield Records(self.layout, self.lines[half], [column[half] for column in self.columns])


Flaws = list[tuple[int, str]]
"""A line, and what is wrong with it."""
Stretch = tuple[list[Records], Flaws]
"""A part of a unit, and what of it are no records."""


def batches_of(unit: Unit, defaults: Defaults, complain: Complaint) -> Iterator[CellBatch]:
    """The cells of a unit; those of one row and column are in the order of its file."""
    defaults = replace(defaults, empty_is_nothing=unit.kind == "csv")
    for stretch, flaws in _stretches(unit):
        batches = [batch for records in stretch for batch in _batches(records, defaults, flaws)]
        for line, reason in sorted(flaws):
            complain(line, reason)
        yield from batches


def cells_of(unit: Unit, defaults: Defaults, complain: Complaint) -> Iterator[ImportedCell]:
    """The same, cell by cell."""
    for batch in batches_of(unit, defaults, complain):
        yield from batch.cells()


def _batches(records: Records, defaults: Defaults, flaws: Flaws) -> list[CellBatch]:
    """Who is no cell among them is found by halves."""
    try:
        return cells_of_records(records.layout, records.columns, defaults)
    except BadRecord as problem:
        if len(records.lines) > 1:
            return [batch for half in records.halves() for batch in _batches(half, defaults, flaws)]
        flaws.append((records.lines[0], str(problem)))
        return []


def _stretches(unit: Unit) -> Iterator[Stretch]:
    if unit.kind == "parquet":
        yield from _parquet_stretches(unit)
        return
    with Path(unit.path).open("rb") as file:
        file.seek(unit.start)
        text = file.read(unit.end - unit.start).decode("utf-8", "surrogateescape")
    yield _csv_stretch(unit, text) if unit.kind == "csv" else _ndjson_stretch(unit, text)


def _parquet_stretches(unit: Unit) -> Iterator[Stretch]:
    from storage.transfer.parquet import columns_of

    layout, first = unit.layout, unit.line
    assert layout is not None
    for columns in columns_of(unit.path, unit.start, unit.end, layout.fields, layout.moments):
        lines = range(first, first + len(columns[0]))
        yield [Records(layout, lines, columns)], []
        first = lines.stop


def _csv_stretch(unit: Unit, text: str) -> Stretch:
    assert unit.layout is not None
    csv.field_size_limit(sys.maxsize)
    lines, records, flaws = _csv_records(unit, text)
    if not records:
        return [], flaws
    columns = list(zip(*records, strict=True))
    places = [unit.names.index(name) for name in unit.layout.fields]
    return [Records(unit.layout, lines, [columns[place] for place in places])], flaws


def _csv_records(unit: Unit, text: str) -> tuple[Sequence[int], list[list[str]], Flaws]:
    """Line by line only if something is not as it mostly is."""
    reader, width = csv.reader(io.StringIO(text, newline="")), len(unit.names)
    with contextlib.suppress(csv.Error):
        records = list(reader)
        if set(map(len, records)) <= {width} and reader.line_num == len(records):
            return range(unit.line, unit.line + len(records)), records, []
    reader = csv.reader(io.StringIO(text, newline=""))
    lines, records, flaws, line = list[int](), list[list[str]](), Flaws(), unit.line
    while True:
        try:
            fields = next(reader, None)
            if fields is None:
                return lines, records, flaws
            if len(fields) == width:
                lines.append(line)
                records.append(fields)
            elif fields:
                flaws.append((line, f"{len(fields)} fields instead of {width}"))
        except csv.Error as problem:
            flaws.append((line, str(problem)))
        line = unit.line + reader.line_num


def _ndjson_stretch(unit: Unit, text: str) -> Stretch:
    """Neighbours with the same fields are records of one layout."""
    lines, records, flaws = _ndjson_records(unit, text)
    stretch, first = list[Records](), 0
    for names, same in itertools.groupby(records, tuple):
        part = slice(first, first + len(list(same)))
        first = part.stop
        try:
            layout = unit.mapping.layout(names)
        except CannotTransfer as problem:
            flaws += [(line, str(problem)) for line in lines[part]]
            continue
        columns = [[record[field] for record in records[part]] for field in layout.fields]
        stretch.append(Records(layout, lines[part], columns))
    return stretch, flaws


def _ndjson_records(unit: Unit, text: str) -> tuple[Sequence[int], list[dict[str, Any]], Flaws]:
    """Line by line only if something is not as it mostly is."""
    texts = text.removesuffix("\n").split("\n")
    found = _decoded_at_once(texts)
    if set(map(type, found)) == {dict}:
        return range(unit.line, unit.line + len(found)), found, []
    lines, records, flaws = list[int](), list[dict[str, Any]](), Flaws()
    for line, one in enumerate(texts, unit.line):
        if one.strip(" \t\r"):
            try:
                records.append(_decoded(one))
                lines.append(line)
            except BadRecord as problem:
                flaws.append((line, str(problem)))
    return lines, records, flaws


def _decoded_at_once(texts: Sequence[str]) -> list[Any]:
    """The value of each; none at all if one of them is not one value.

    As one list it takes two thirds of the time. Between them stands a number that nobody can know:
    where it is not found again, a text ended in the midst of a value.
    """
    mark = secrets.randbits(64)
    try:
        values = json.loads(f"[{f',{mark},'.join(texts)}]")
    except (ValueError, RecursionError):
        return []
    count = len(texts)
    known = len(values) == 2 * count - 1 and values[1::2].count(mark) == count - 1
    return values[::2] if known else []


def _decoded(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise BadRecord("not a JSON object")
    return record
