"""Which field of a record is what of a cell, and how a record's values become a cell's bytes.

Records come in two shapes. Long: a record is one cell, whose column's name and value are fields.
Wide: every field that is nothing else is a column, and a record is as many cells as it has values.
Knows nothing of files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from storage.encoding import TOP_SEQUENCE
from storage.errors import CannotTransfer
from storage.model import MAX_NAME_BYTES, MAX_TIMESTAMP
from storage.transfer.moments import milliseconds

PARTS = ("row", "column", "timestamp", "value", "expires", "sequence")
MOMENTS = ("timestamp", "expires", "sequence")
_NOTHING = (None, "", b"")

ImportedCell = tuple[bytes, bytes, int, int, bytes, int | None]
"""(row, column, timestamp, sequence, value, expires), times in Unix milliseconds."""


class BadRecord(Exception):
    """A record that is no cell; the text says why."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """The fields that were named; of the others, those that are named like their part count."""

    fields: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, words: Sequence[str]) -> Mapping:
        """From `part=field` words, each of them several with commas between."""
        pairs: dict[str, str] = {}
        for pair in [pair for word in words for pair in word.split(",")]:
            part, equals, field = pair.partition("=")
            if not equals or not field or part not in PARTS:
                raise CannotTransfer(f"{pair}: not one of {', '.join(PARTS)}, = and a field")
            if part in pairs:
                raise CannotTransfer(f"{part} is mapped twice")
            pairs[part] = field
        if ("column" in pairs) != ("value" in pairs):
            raise CannotTransfer("column and value are mapped both, or neither")
        return cls(tuple(pairs.items()))

    def layout(self, names: Sequence[str]) -> Layout:
        """For records with these fields; CannotTransfer where one is missing."""
        mapped = dict(self.fields)
        for part, field in mapped.items():
            if field not in names:
                raise CannotTransfer(
                    f"there is no field {field!r} for {part}; there are {', '.join(names)}"
                )
        free = [name for name in names if name not in mapped.values()]
        taken = mapped | {part: part for part in PARTS if part in free and part not in mapped}
        if "row" not in taken:
            raise CannotTransfer(f"no field is the row: use --map row=FIELD; {', '.join(names)}")
        if "column" not in mapped and not ("column" in taken and "value" in taken):
            taken.pop("column", None)
            taken.pop("value", None)
        used = tuple(taken.values())
        others = () if "column" in taken else tuple(name for name in names if name not in used)
        if "column" not in taken and not others:
            raise CannotTransfer("no field is left to be a column")
        return Layout(tuple(taken.items()), others)

    @property
    def wide(self) -> bool:
        """Whether a record without a `column` of its own is meant."""
        return "column" not in dict(self.fields)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of a cell are: part -> field, and the fields that are columns if wide."""

    parts: tuple[tuple[str, str], ...]
    columns: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(field for _, field in self.parts) + self.columns

    @property
    def moments(self) -> frozenset[str]:
        return frozenset(field for part, field in self.parts if part in MOMENTS)


@dataclass(frozen=True, slots=True)
class Defaults:
    """`timestamp` is that of cells without one; `clock` the server's: stamps of other servers that
    are not before it could meet one of its own. `empty_is_nothing`: as in CSV, where an empty field
    of a wide record is no value."""

    timestamp: int
    clock: int
    empty_is_nothing: bool = False


Convert = Callable[[Sequence[Any]], Sequence[ImportedCell]]
"""The cells of one record, from its values in the order of Layout.fields. BadRecord."""


def converter(layout: Layout, defaults: Defaults) -> Convert:
    """What makes cells of the records of a layout."""
    return _of_cell(layout, defaults) if not layout.columns else _of_wide(layout, defaults)


def flawless(
    layout: Layout, columns: Sequence[Sequence[Any]], defaults: Defaults
) -> Iterable[ImportedCell] | None:
    """The cells of many records at once, if a glance at whole columns of them shows no flaw.

    `columns` are in the order of layout.fields. None sends them to the converter, one by one.
    """
    found = dict(zip((part for part, _ in layout.parts), columns, strict=False))
    if layout.columns or not columns[0]:
        return None
    names, times = (found["row"], found["column"]), found.get("timestamp", (defaults.timestamp,))
    sequences, expiries = found.get("sequence", (0,)), found.get("expires", (None,))
    if any(set(map(type, texts)) != {bytes} for texts in (*names, found["value"])):
        return None
    if max(max(map(len, name)) for name in names) > MAX_NAME_BYTES:
        return None
    if not _are_moments(times, MAX_TIMESTAMP) or not _are_moments(sequences, TOP_SEQUENCE):
        return None
    if any(sequences) and max(times) >= defaults.clock:
        return None
    if not _are_moments([one for one in expiries if one is not None], MAX_TIMESTAMP):
        return None
    return zip(
        *names,
        times if "timestamp" in found else repeat(defaults.timestamp),
        sequences if "sequence" in found else repeat(0),
        found["value"],
        expiries if "expires" in found else repeat(None),
        strict=False,  # what repeats has no end
    )


def _are_moments(numbers: Sequence[Any], most: int) -> bool:
    return not numbers or (
        set(map(type, numbers)) == {int} and min(numbers) >= 0 and max(numbers) <= most
    )


def _of_cell(layout: Layout, defaults: Defaults) -> Convert:
    places = {part: place for place, (part, _) in enumerate(layout.parts)}
    row_at, column_at, value_at = places["row"], places["column"], places["value"]
    moments = _moments_of(places, defaults)

    def convert(values: Sequence[Any]) -> Sequence[ImportedCell]:
        # Millions of records come by here: what is as it should be is not looked at twice.
        row, column, value = values[row_at], values[column_at], values[value_at]
        if type(row) is not bytes or len(row) > MAX_NAME_BYTES:
            row = _name(row, "row")
        if type(column) is not bytes or len(column) > MAX_NAME_BYTES:
            column = _name(column, "column")
        if type(value) is not bytes:
            if value is None:
                raise BadRecord("there is no value")
            value = _bytes(value)
        timestamp, expires, sequence = moments(values)
        return ((row, column, timestamp, sequence, value, expires),)

    return convert


def _of_wide(layout: Layout, defaults: Defaults) -> Convert:
    places = {part: place for place, (part, _) in enumerate(layout.parts)}
    moments, row_at, first_column = _moments_of(places, defaults), places["row"], len(places)
    names = [_name(name, "column") for name in layout.columns]
    nothing = (None, "", b"") if defaults.empty_is_nothing else (None,)

    def convert(values: Sequence[Any]) -> Sequence[ImportedCell]:
        row = _name(values[row_at], "row")
        timestamp, expires, sequence = moments(values)
        return [
            (row, name, timestamp, sequence, _bytes(value), expires)
            for name, value in zip(names, values[first_column:], strict=True)
            if value not in nothing
        ]

    return convert


def _moments_of(
    places: dict[str, int], defaults: Defaults
) -> Callable[[Sequence[Any]], tuple[int, int | None, int]]:
    """What finds the timestamp, the expiry and the sequence of a record."""
    time_at, expires_at, sequence_at = (places.get(part) for part in MOMENTS)

    def moments(values: Sequence[Any]) -> tuple[int, int | None, int]:
        timestamp = defaults.timestamp
        if time_at is not None:
            timestamp = values[time_at]
            if type(timestamp) is not int or not 0 <= timestamp <= MAX_TIMESTAMP:
                timestamp = _moment(timestamp, "timestamp")
        expires, sequence = None, 0
        if expires_at is not None and values[expires_at] not in _NOTHING:
            expires = _moment(values[expires_at], "expires")
        if sequence_at is not None and values[sequence_at] not in _NOTHING:
            sequence = _sequence(values[sequence_at], timestamp, defaults.clock)
        return timestamp, expires, sequence

    return moments


def _name(value: Any, part: str) -> bytes:
    if value is None:
        raise BadRecord(f"there is no {part}")
    name = _bytes(value)
    if len(name) > MAX_NAME_BYTES:
        raise BadRecord(f"the {part} is longer than {MAX_NAME_BYTES} bytes")
    return name


def _moment(value: Any, part: str) -> int:
    if value in _NOTHING:
        raise BadRecord(f"there is no {part}")
    try:
        return milliseconds(value)
    except ValueError as error:
        raise BadRecord(f"{part}: {error}") from None


def _sequence(value: Any, timestamp: int, clock: int) -> int:
    number = _moment(value, "sequence")
    if number > TOP_SEQUENCE:
        raise BadRecord(f"sequence: {number} is beyond {TOP_SEQUENCE}")
    if number and timestamp >= clock:
        raise BadRecord("it was stamped by a server whose clock is ahead of this one's")
    return number


def _bytes(value: Any) -> bytes:
    """What is text in its own bytes; what is not, as JSON writes it."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except TypeError:
        text = str(value)
    return text.encode("utf-8", "surrogateescape")
