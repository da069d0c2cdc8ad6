"""docs/disk-format.md is true: its examples are read from the page and checked in both directions.

A table is known by its heading row. Names and payloads are quoted as Python writes bytes, stored
bytes are in hexadecimal; an empty cell of a table is None, or no bytes.
"""

from __future__ import annotations

import ast
import asyncio
import re
from functools import cache
from pathlib import Path

import pytest

from storage.catalog import (
    CLOCK_KEY,
    Entry,
    decode_clock,
    decode_entry,
    encode_clock,
    encode_entry,
    entry_key,
    family_name,
    name_of_entry,
    name_of_family,
)
from storage.directory import FORMAT_FILE, HOLDER_FILE, STORE_FOLDER, prepare
from storage.encoding import (
    FORMAT_VERSION,
    cell_key,
    column_prefix,
    end_of,
    row_prefix,
    split_key,
    split_value,
    value_header,
)
from storage.errors import CorruptData
from storage.model import DatasetSettings
from storage.opening import SCRATCH_FOLDER, open_memory_engine

PAGE = Path(__file__).parents[2] / "docs" / "disk-format.md"


@cache
def lines() -> list[str]:
    return PAGE.read_text(encoding="utf-8").splitlines()


def table(*headings: str) -> list[list[str]]:
    """The rows of the one table with these headings, without quotation by backticks."""
    starts = [index for index, line in enumerate(lines()) if cells(line) == list(headings)]
    assert len(starts) == 1, f"{len(starts)} tables are headed {headings}"
    rows = []
    for line in lines()[starts[0] + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(cells(line))
    assert rows
    return rows


def cells(line: str) -> list[str]:
    if not line.startswith("|"):
        return []
    return [cell.strip().strip("`") for cell in line.strip("|").split("|")]


def block(kind: str) -> list[str]:
    """The lines of the one fenced block of this kind."""
    start = lines().index(f"```{kind}")
    return lines()[start + 1 : lines().index("```", start)]


def quoted(text: str) -> bytes:
    name = ast.literal_eval("b" + text)
    assert isinstance(name, bytes)
    return name


def number(text: str) -> int | None:
    return int(text) if text else None


@pytest.mark.parametrize(("version", "content"), table("FORMAT", "content"))
def test_the_format_file(version: str, content: str, tmp_path: Path) -> None:
    assert int(version) == FORMAT_VERSION
    store = prepare(tmp_path)
    assert (tmp_path / FORMAT_FILE).read_bytes() == bytes.fromhex(content)
    assert store == tmp_path / STORE_FOLDER
    described = [path for path, _ in table("path", "holds")]
    folders = [f"{name}/" for name in (STORE_FOLDER, "backups", SCRATCH_FOLDER)]
    assert described == [FORMAT_FILE, HOLDER_FILE, *folders]


@pytest.mark.parametrize(("dataset", "family"), table("dataset", "family"))
def test_names_of_families(dataset: str, family: str) -> None:
    assert family_name(quoted(dataset)) == family
    assert name_of_family(family) == quoted(dataset)


@pytest.mark.parametrize(("milliseconds", "value"), table("clock", "value"))
def test_the_clock(milliseconds: str, value: str) -> None:
    assert encode_clock(int(milliseconds)) == bytes.fromhex(value)
    assert decode_clock(bytes.fromhex(value)) == int(milliseconds)
    assert f"    {CLOCK_KEY.decode()}          -> milliseconds(8)" in lines()


@pytest.mark.parametrize(("dataset", "key"), table("dataset", "key"))
def test_keys_of_entries(dataset: str, key: str) -> None:
    assert entry_key(quoted(dataset)) == bytes.fromhex(key)
    assert name_of_entry(bytes.fromhex(key)) == quoted(dataset)


def test_an_entry() -> None:
    entry = Entry(DatasetSettings(1000, 86_400), 1_700_000_000_000, 1_700_086_400_000, 42)
    (stored,) = block("json")
    assert encode_entry(entry) == stored.encode()
    assert decode_entry(b"events", stored.encode()) == entry


@pytest.mark.parametrize(("member", "_meaning"), table("member", "meaning"))
def test_an_entry_without_one_of_its_members_is_damage(member: str, _meaning: str) -> None:
    (stored,) = block("json")
    without = re.sub(rf'"{member}": \d+(, )?', "", stored)
    assert without != stored
    with pytest.raises(CorruptData):
        decode_entry(b"events", without.replace(", }", "}").encode())


@pytest.mark.parametrize(
    ("row", "column", "timestamp", "sequence", "key"),
    table("row", "column", "timestamp", "sequence", "key"),
)
def test_keys(row: str, column: str, timestamp: str, sequence: str, key: str) -> None:
    cell = (quoted(row), quoted(column), int(timestamp), int(sequence))
    assert cell_key(*cell) == bytes.fromhex(key)
    assert split_key(bytes.fromhex(key)) == cell


@pytest.mark.parametrize(("row", "column", "first", "end"), table("row", "column", "first", "end"))
def test_where_a_row_or_a_column_begins_and_ends(
    row: str, column: str, first: str, end: str
) -> None:
    prefix = row_prefix(quoted(row))
    if column:
        prefix = column_prefix(prefix, quoted(column))
    assert prefix == bytes.fromhex(first)
    assert end_of(prefix) == bytes.fromhex(end)


@pytest.mark.parametrize(("key", "because"), table("key", "because"))
def test_what_is_no_key(key: str, because: str) -> None:
    with pytest.raises(CorruptData):
        split_key(bytes.fromhex(key))


@pytest.mark.parametrize(
    ("expires_at", "payload", "value"), table("expires-at", "payload", "value")
)
def test_values(expires_at: str, payload: str, value: str) -> None:
    expires, content = number(expires_at), quoted(payload)
    assert value_header(expires) + content == bytes.fromhex(value)
    assert split_value(bytes.fromhex(value)) == (expires, content)


@pytest.mark.parametrize(("value", "because"), table("value", "because"))
def test_what_is_no_value(value: str, because: str) -> None:
    with pytest.raises(CorruptData):
        split_value(bytes.fromhex(value))


def test_a_cell_from_command_to_disk() -> None:
    stored = {line.split()[0]: line[6:] for line in block("cell") if not line.startswith(" ")}
    engine = open_memory_engine()
    cell = (b"user:42", 1_700_000_000_000, b"repin", b"pin:17")
    asyncio.run(engine.put(b"app:events", [cell], None, DatasetSettings()))
    engine.commit()
    dataset = engine.open_dataset(b"app:events")
    assert dataset is not None
    assert dataset.family.name == "d:app%3Aevents"
    assert list(dataset.family.scan(None).walk(b"")) == [
        (bytes.fromhex(stored["key"]), bytes.fromhex(stored["value"]))
    ]
