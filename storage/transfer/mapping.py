"""Which field of a record is what of a cell, and how the values of records become cells.

Records come in two shapes. Long: a record is one cell, whose column's name and value are fields.
Wide: every field that is nothing else is a column, and a record is as many cells as it has values.

Records come by the thousand, side by side: the values of a field are looked at together, and what
is as it should be is not touched. Knows nothing of files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from storage.encoding import TOP_SEQUENCE
from storage.errors import CannotTransfer
from storage.model import MAX_NAME_BYTES, MAX_TIMESTAMP
from storage.transfer.batches import CellBatch
from storage.transfer.moments import milliseconds

PARTS = ("row", "column", "timestamp", "value", "expires", "sequence")
MOMENTS = ("timestamp", "expires", "sequence")
_NOTHING = (None, "", b"")
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

ImportedCell = tuple[bytes, bytes, int, int, bytes, int | None]
"""(row, column, timestamp, sequence, value, expires), times in Unix milliseconds."""

Values = Sequence[Any]
"""Those of one field, in many records."""


class BadRecord(Exception):
    """A record that is no cell, or one of many that is none; the text says why."""


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


def cells_of_records(
    layout: Layout, columns: Sequence[Values], defaults: Defaults
) -> list[CellBatch]:
    """The cells of records, one or many. BadRecord if one of them is none; which one, is not told.

    `columns` are in the order of layout.fields. Of wide records, those of a column come together.
    """
    parts = dict(zip((part for part, _ in layout.parts), columns, strict=False))
    rows = _names(parts["row"], "row")
    times = _timestamps(parts.get("timestamp"), len(rows), defaults)
    expiries = _optional(parts.get("expires"), len(rows), "expires")
    sequences = _sequences(parts.get("sequence"), times, defaults)
    if not layout.columns:
        names, values = _names(parts["column"], "column"), _payloads(parts["value"], "value")
        return [CellBatch(rows, names, times, values, expiries, sequences)]
    nothing = _NOTHING if defaults.empty_is_nothing else (None,)
    found = []
    for field, column in zip(layout.columns, columns[len(parts) :], strict=True):
        there = [value not in nothing for value in column]
        values = _payloads(list(compress(column, there)), field)
        found.append(
            CellBatch(
                list(compress(rows, there)),
                list(_names([field], "column")) * len(values),
                list(compress(times, there)),
                values,
                list(compress(expiries, there)),
                list(compress(sequences, there)),
            )
        )
    return found


def _names(values: Values, part: str) -> Sequence[bytes]:
    names = _payloads(values, part)
    if max(map(len, names), default=0) > MAX_NAME_BYTES:
        raise BadRecord(f"the {part} is longer than {MAX_NAME_BYTES} bytes")
    return names


def _payloads(values: Values, part: str) -> Sequence[bytes]:
    """What is text in its own bytes; what is not, as JSON writes it."""
    kinds = set(map(type, values))
    if kinds <= {bytes}:
        return values
    if type(None) in kinds:
        raise BadRecord(f"there is no {part}")
    texts = values if kinds == {str} else list(map(_text, values))
    try:
        return [text.encode() for text in texts]
    except UnicodeEncodeError:  # a byte that is no UTF-8, or worse
        try:
            return [text.encode("utf-8", "surrogateescape") for text in texts]
        except UnicodeEncodeError:
            raise BadRecord(f"{part}: half a character, for which there are no bytes") from None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    try:
        return _JSON.encode(value)
    except TypeError:
        return str(value)


def _timestamps(values: Values | None, count: int, defaults: Defaults) -> Sequence[int]:
    return [defaults.timestamp] * count if values is None else _moments(values, "timestamp")


def _optional(values: Values | None, count: int, part: str) -> Sequence[int | None]:
    """Moments, and None where there is none."""
    if values is None:
        return [None] * count
    there = [value not in _NOTHING for value in values]
    moments = iter(_moments(list(compress(values, there)), part))
    return [next(moments) if one else None for one in there]


def _sequences(values: Values | None, times: Sequence[int], defaults: Defaults) -> Sequence[int]:
    numbers = [number or 0 for number in _optional(values, len(times), "sequence")]
    if max(numbers, default=0) > TOP_SEQUENCE:
        raise BadRecord(f"sequence: {max(numbers)} is beyond {TOP_SEQUENCE}")
    if max(compress(times, numbers), default=-1) >= defaults.clock:
        raise BadRecord("it was stamped by a server whose clock is ahead of this one's")
    return numbers


def _moments(values: Values, part: str) -> Sequence[int]:
    numbers = values
    try:
        if set(map(type, values)) == {str} and "".join(values).isascii():
            numbers = list(map(int, values)) if all(map(str.isdigit, values)) else values
        if _are_moments(numbers):
            return numbers
        if any(value in _NOTHING for value in values):
            raise BadRecord(f"there is no {part}")
        return list(map(milliseconds, values))
    except ValueError as error:
        raise BadRecord(f"{part}: {error}") from None


def _are_moments(values: Values) -> bool:
    return not values or (
        set(map(type, values)) == {int} and min(values) >= 0 and max(values) <= MAX_TIMESTAMP
    )
