"""Records become cells: which field is what, and what is wrong with those that are none."""

from __future__ import annotations

from typing import Any

import pytest

from storage.errors import CannotTransfer
from storage.model import MAX_NAME_BYTES
from storage.transfer.mapping import BadRecord, Defaults, Mapping, cells_of_records

DEFAULTS = Defaults(timestamp=77, clock=100)
LONG = "row=r,column=c,value=v,timestamp=t,expires=e,sequence=s"


def cells(mapping: str, record: dict[str, Any], defaults: Defaults = DEFAULTS) -> list[Any]:
    return many(mapping, [record], defaults)


def many(
    mapping: str, records: list[dict[str, Any]], defaults: Defaults = DEFAULTS
) -> list[tuple[bytes, bytes, int, int, bytes, int | None]]:
    layout = Mapping.parse([mapping] if mapping else []).layout(list(records[0]))
    columns = [[record[field] for record in records] for field in layout.fields]
    batches = cells_of_records(layout, columns, defaults)
    return [cell for batch in batches for cell in batch.cells()]


def long(**parts: Any) -> dict[str, Any]:
    return {"r": b"r", "c": b"c", "v": b"v", "t": 5, "e": None, "s": None} | parts


@pytest.mark.parametrize(
    ("parts", "cell"),
    [
        ({}, (b"r", b"c", 5, 0, b"v", None)),
        ({"r": "é", "c": "\udcff", "v": ""}, ("é".encode(), b"\xff", 5, 0, b"", None)),
        ({"v": 7}, (b"r", b"c", 5, 0, b"7", None)),
        ({"v": {"a": [1, None, "é"]}}, (b"r", b"c", 5, 0, '{"a":[1,null,"é"]}'.encode(), None)),
        ({"v": True}, (b"r", b"c", 5, 0, b"true", None)),
        ({"v": [b"x"]}, (b"r", b"c", 5, 0, b"[b'x']", None)),
        ({"t": "1970-01-01T00:00:01"}, (b"r", b"c", 1000, 0, b"v", None)),
        ({"t": "1970-01-01T01:00:01+01:00"}, (b"r", b"c", 1000, 0, b"v", None)),
        ({"t": b"12"}, (b"r", b"c", 12, 0, b"v", None)),
        ({"t": " 12 "}, (b"r", b"c", 12, 0, b"v", None)),
        ({"e": 9, "s": "3"}, (b"r", b"c", 5, 3, b"v", 9)),
        ({"e": "", "s": b""}, (b"r", b"c", 5, 0, b"v", None)),
        ({"t": 2**63 - 1, "e": 2**63 - 1}, (b"r", b"c", 2**63 - 1, 0, b"v", 2**63 - 1)),
    ],
)
def test_a_long_record(parts: dict[str, Any], cell: tuple[Any, ...]) -> None:
    assert cells(LONG, long(**parts)) == [cell]
    # Among others, whose values are of other kinds, it is the same.
    among = many(LONG, [long(), long(**parts), long(v="text", t="8", e=4, s=1)])
    assert among[1] == cell


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"r": None}, "there is no row"),
        ({"c": None}, "there is no column"),
        ({"v": None}, "there is no value"),
        ({"t": None}, "there is no timestamp"),
        ({"t": ""}, "there is no timestamp"),
        ({"t": "yesterday"}, "timestamp: 'yesterday' is neither milliseconds nor a time"),
        ({"t": -1}, "timestamp: -1 is not a moment"),
        ({"t": 2**63}, "timestamp: 9223372036854775808 is not a moment"),
        ({"t": str(2**63)}, "timestamp: 9223372036854775808 is not a moment"),
        ({"t": "٣"}, "timestamp: '٣' is neither"),
        ({"t": "9" * 5000}, "timestamp: "),
        ({"t": True}, "timestamp: True is not a moment"),
        ({"t": 1.5}, "timestamp: 1.5 is not a moment"),
        ({"e": "never"}, "expires: 'never' is neither"),
        ({"s": 65_536}, "sequence: 65536 is beyond 65535"),
        ({"s": 1, "t": 100}, "whose clock is ahead"),
        ({"r": b"r" * (MAX_NAME_BYTES + 1)}, "the row is longer than 65535 bytes"),
        ({"c": "c" * (MAX_NAME_BYTES + 1)}, "the column is longer than 65535 bytes"),
        ({"v": "\ud800"}, "value: half a character"),
    ],
)
def test_a_record_that_is_no_cell(parts: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadRecord, match=f"^(it was stamped by a server )?{reason}"):
        cells(LONG, long(**parts))
    with pytest.raises(BadRecord):
        many(LONG, [long(), long(**parts), long()])


def test_a_wide_record_is_a_cell_for_each_value() -> None:
    record = {"user": "u", "at": 3, "a": "", "b": None, "c": 0}
    mapping = "row=user,timestamp=at"
    assert cells(mapping, record) == [
        (b"u", b"a", 3, 0, b"", None),
        (b"u", b"c", 3, 0, b"0", None),
    ]
    csv = Defaults(timestamp=77, clock=100, empty_is_nothing=True)
    assert cells(mapping, record, csv) == [(b"u", b"c", 3, 0, b"0", None)]


def test_wide_records_keep_what_belongs_together() -> None:
    records: list[dict[str, Any]] = [
        {"row": "1", "expires": 5, "a": None, "b": "x"},
        {"row": "2", "expires": None, "a": "y", "b": None},
        {"row": "3", "expires": 7, "a": "z", "b": "z"},
    ]
    assert many("", records) == [
        (b"2", b"a", 77, 0, b"y", None),
        (b"3", b"a", 77, 0, b"z", 7),
        (b"1", b"b", 77, 0, b"x", 5),
        (b"3", b"b", 77, 0, b"z", 7),
    ]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["row"], "row: not one of"),
        (["who=r"], "who=r: not one of"),
        (["row=r", "row=s"], "row is mapped twice"),
        (["row=r,column=c"], "mapped both, or neither"),
    ],
)
def test_a_mapping_that_is_none(words: list[str], reason: str) -> None:
    with pytest.raises(CannotTransfer, match=reason):
        Mapping.parse(words)


@pytest.mark.parametrize(
    ("words", "names", "reason"),
    [
        (["row=r"], ["a", "b"], "there is no field 'r' for row; there are a, b"),
        ([], ["a", "b"], "no field is the row"),
        ([], ["row", "timestamp"], "no field is left to be a column"),
    ],
)
def test_a_mapping_that_does_not_fit(words: list[str], names: list[str], reason: str) -> None:
    with pytest.raises(CannotTransfer, match=reason):
        Mapping.parse(words).layout(names)
