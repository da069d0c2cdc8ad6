"""Files in units: every record is read once, wherever its unit begins, and told by its line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.errors import CannotTransfer
from storage.transfer import parquet, sources
from storage.transfer.mapping import Defaults, Mapping
from storage.transfer.sources import Unit, cells_of, shares_of, units_of

DEFAULTS = Defaults(timestamp=77, clock=2**62)
TEXTS = st.text(st.sampled_from('ab",\n\r\x00é '), max_size=5)
FIELDS = ("row", "column", "timestamp", "value")
RECORDS = st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 99), TEXTS), max_size=12)
quiet = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(
    units: list[Unit],
) -> tuple[list[tuple[bytes, bytes, int, bytes]], list[tuple[int, str]]]:
    """The cells of these units, and their complaints."""
    complaints: list[tuple[int, str]] = []

    def complain(line: int, reason: str) -> None:
        complaints.append((line, reason))

    cells = [cell for unit in units for cell in cells_of(unit, DEFAULTS, complain)]
    return [(row, column, time, value) for row, column, time, _, value, _ in cells], complaints


def units(path: Path) -> list[Unit]:
    return units_of(str(path), None, Mapping())


Record = tuple[str, str, int, str]


def expected(records: list[Record]) -> list[tuple[bytes, bytes, int, bytes]]:
    return [
        (row.encode(), column.encode(), at, value.encode()) for row, column, at, value in records
    ]


@quiet
@given(records=RECORDS, unit_bytes=st.integers(1, 40), ending=st.sampled_from(["\n", "\r\n"]))
def test_csv_is_read_whole_however_it_is_divided(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    records: list[Record],
    unit_bytes: int,
    ending: str,
) -> None:
    monkeypatch.setattr(sources, "UNIT_BYTES", unit_bytes)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=ending, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(FIELDS)
    writer.writerows(records)
    path = tmp_path / "records.csv"
    path.write_bytes(text.getvalue().encode())
    assert read(units(path)) == (expected(records), [])


@quiet
@given(records=RECORDS, unit_bytes=st.integers(1, 40), gaps=st.sampled_from(["", "\r", "\n \n"]))
def test_ndjson_is_read_whole_however_it_is_divided(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    records: list[Record],
    unit_bytes: int,
    gaps: str,
) -> None:
    monkeypatch.setattr(sources, "UNIT_BYTES", unit_bytes)
    lines = [json.dumps(dict(zip(FIELDS, record, strict=True))) for record in records]
    path = tmp_path / "records.ndjson"
    path.write_text((gaps + "\n").join(lines))
    assert read(units(path)) == (expected(records), [])


@quiet
@given(
    count=st.integers(0, 40), group=st.integers(1, 40), unit_rows=st.integers(1, 40),
    batch=st.integers(1, 40), share=st.integers(1, 40),
)  # fmt: skip
def test_parquet_is_read_whole_however_it_is_divided(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    group: int,
    unit_rows: int,
    batch: int,
    share: int,
) -> None:
    monkeypatch.setattr(sources, "UNIT_ROWS", unit_rows)
    monkeypatch.setattr(parquet, "BATCH_ROWS", batch)
    records = [(f"r{number}", "c", number, "v") for number in range(count)]
    columns = [[record[place] for record in records] for place in range(4)]
    path = tmp_path / "records.parquet"
    pq.write_table(
        pa.table(dict(zip(FIELDS, map(pa.array, columns), strict=True))), path, row_group_size=group
    )
    found = units(path)
    assert read(found) == (expected(records), [])
    shares = shares_of(found, share)
    assert read([unit for part in shares for unit in part]) == (expected(records), [])
    assert all(len(part) == 1 for part in shares)  # neighbours are read as one


# What is wrong


BAD_CSV = """row,column,timestamp,value
a,c,1,v
"b
b",c,x,v
a,c,2

a,c,3,"v
v"
a,c,,v
a,c,4,v
"""


@pytest.mark.parametrize("unit_bytes", [1, 20, 1000])
def test_bad_lines_of_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit_bytes: int) -> None:
    monkeypatch.setattr(sources, "UNIT_BYTES", unit_bytes)
    path = tmp_path / "records.csv"
    path.write_text(BAD_CSV)
    cells, complaints = read(units(path))
    assert [(time, value) for _, _, time, value in cells] == [(1, b"v"), (3, b"v\nv"), (4, b"v")]
    assert complaints == [
        (3, "timestamp: 'x' is neither milliseconds nor a time like 2026-01-31T12:00:00"),
        (5, "3 fields instead of 4"),
        (9, "there is no timestamp"),
    ]


BAD_NDJSON = rb"""{"row":"a","column":"c","timestamp":1,"value":"v"}
{"row":"a","column":"c","timestamp":1,"value":
[1]

{"row":"a","column":"c","value":"v"}
{"row":"a","timestamp":2,"column":"c","value":1} {}
{"column":"c","value":"v"}
{"row":"a","column":"c","timestamp":3,"value":"\ud800"}
{"row":"a","column":"c","timestamp":4,"value":null}
{"row":"a","column":"c","timestamp":5,"value":""}
"""


def test_bad_lines_of_ndjson(tmp_path: Path) -> None:
    path = tmp_path / "records.ndjson"
    path.write_bytes(BAD_NDJSON)
    cells, complaints = read(units(path))
    assert [cell[2] for cell in cells] == [1, 77, 5]
    assert [line for line, _ in complaints] == [2, 3, 6, 7, 8, 9]
    reasons = [reason for _, reason in complaints]
    assert reasons[0].startswith("not JSON: ")
    assert reasons[1] == "not a JSON object"
    assert reasons[2].startswith("not JSON: Extra data")
    assert reasons[3].startswith("no field is the row")
    assert reasons[4].startswith("value: half a character")
    assert reasons[5] == "there is no value"


def test_lines_that_are_json_only_together_are_none(tmp_path: Path) -> None:
    lines = ['{"row":"a","column":"c","value":[{}', "{}]}", '{"row":"d"},{"row":"e"}']
    assert len(json.loads(f"[{','.join(lines)}]")) == len(lines)
    path = tmp_path / "records.ndjson"
    path.write_text("\n".join(lines))
    cells, complaints = read(units(path))
    assert cells == []
    assert [line for line, _ in complaints] == [1, 2, 3]


def test_bad_rows_of_parquet_are_told_by_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "UNIT_ROWS", 7)
    values = [None if number in (3, 8, 9, 19) else b"v" for number in range(1, 21)]
    columns: list[Any] = [["r"] * 20, ["c"] * 20, list(range(1, 21)), values]
    path = tmp_path / "records.parquet"
    pq.write_table(pa.table(dict(zip(FIELDS, columns, strict=True))), path, row_group_size=4)
    cells, complaints = read(units(path))
    assert [cell[2] for cell in cells] == [n for n in range(1, 21) if n not in (3, 8, 9, 19)]
    assert complaints == [(row, "there is no value") for row in (3, 8, 9, 19)]


@pytest.mark.parametrize(
    ("kind", "values", "read_as"),
    [
        (pa.binary(), [b"\xff"], b"\xff"),
        (pa.large_binary(), [b"\xff"], b"\xff"),
        (pa.binary(1), [b"\xff"], b"\xff"),
        (pa.string(), ["é"], "é".encode()),
        (pa.large_string(), ["é"], "é".encode()),
        (pa.dictionary(pa.int32(), pa.string()), ["é"], "é".encode()),
        (pa.int16(), [-7], b"-7"),
        (pa.float64(), [1.5], b"1.5"),
        (pa.bool_(), [True], b"true"),
        (pa.list_(pa.int8()), [[1, 2]], b"[1,2]"),
        (pa.timestamp("ms", "UTC"), [5], b"1970-01-01 00:00:00.005Z"),
    ],
)
def test_values_of_any_type(tmp_path: Path, kind: Any, values: list[Any], read_as: bytes) -> None:
    path = tmp_path / "records.parquet"
    columns = [["r"], ["c"], [1], pa.array(values, kind)]
    pq.write_table(pa.table(dict(zip(FIELDS, columns, strict=True))), path)
    assert read(units(path)) == ([(b"r", b"c", 1, read_as)], [])


@pytest.mark.parametrize(
    ("kind", "number", "milliseconds"),
    [
        (pa.timestamp("us"), 5_999, 5),
        (pa.timestamp("ns", "Europe/Berlin"), 7_000_000, 7),
        (pa.timestamp("s"), 2, 2000),
        (pa.date32(), 1, 86_400_000),
        (pa.string(), "1970-01-01T00:00:01", 1000),
        (pa.uint32(), 9, 9),
    ],
)
def test_moments_of_any_type(tmp_path: Path, kind: Any, number: Any, milliseconds: int) -> None:
    path = tmp_path / "records.parquet"
    columns = [["r"], ["c"], pa.array([number], kind), ["v"]]
    pq.write_table(pa.table(dict(zip(FIELDS, columns, strict=True))), path)
    assert read(units(path)) == ([(b"r", b"c", milliseconds, b"v")], [])


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    columns = [[f"r{n}" for n in range(999)], ["c"] * 999, list(range(999)), ["v"] * 999]
    pq.write_table(pa.table(dict(zip(FIELDS, columns, strict=True))), path, compression="zstd")
    data = bytearray(path.read_bytes())
    data[4:400] = bytes(396)
    path.write_bytes(data)
    with pytest.raises(CannotTransfer, match=r"records\.parquet: "):
        read(units(path))


def test_a_stray_quote_does_not_hide_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "UNIT_BYTES", 100)
    lines = [
        f"r{number},c,{number},{'5 inch' if number else '5' + chr(34)}" for number in range(99)
    ]
    path = tmp_path / "records.csv"
    path.write_text("\n".join([",".join(FIELDS), *lines]))
    cells, complaints = read(units(path))
    assert (len(cells), complaints) == (99, [])
    assert cells[0][3] == b'5"'


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CannotTransfer, match="No such file"):
        units(tmp_path / "none.csv")
    with pytest.raises(CannotTransfer, match="say with --format"):
        units(tmp_path / "none.txt")
    path = tmp_path / "none.parquet"
    path.write_bytes(b"text")
    with pytest.raises(CannotTransfer, match=r"none\.parquet: "):
        units(path)
    twice = tmp_path / "twice.csv"
    twice.write_text("row,a,a\n")
    with pytest.raises(CannotTransfer, match="two fields have one name"):
        units(twice)


# Shares


def test_shares_are_of_about_equal_size() -> None:
    found = [Unit(f"{number}.csv", "csv", None, Mapping(), records=10) for number in range(10)]
    shares = shares_of(found, 25)
    assert [unit for share in shares for unit in share] == found
    assert [len(share) for share in shares] == [2, 3, 2, 3]
    assert shares_of(found, 1000) == [found]
    assert shares_of([], 25) == []
