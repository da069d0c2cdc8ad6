"""Cells into tables: sorted, merged where many overlap, the last of a key kept."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from storage.embedded.engine import EmbeddedEngine
from storage.encoding import cell_key
from storage.errors import CannotTransfer
from storage.model import ALL_NAMES, DatasetSettings, Selection
from storage.opening import open_engine
from storage.transfer import bulk
from storage.transfer.bulk import Converted, convert, convert_all
from storage.transfer.cells import cell_batches
from storage.transfer.mapping import Defaults, Mapping
from storage.transfer.sources import units_of

DEFAULTS = Defaults(timestamp=77, clock=2**62)
NAMES = itertools.count()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    opened = open_engine(tmp_path_factory.mktemp("engine") / "data")
    yield opened
    asyncio.run(opened.close())


def ingested(engine: EmbeddedEngine, folder: Path) -> dict[bytes, bytes]:
    """What a dataset shows that took these tables over: its rows, and the value of each."""
    name = b"d%d" % next(NAMES)
    asyncio.run(engine.ingest(name, folder.name.encode(), DatasetSettings(), expiring=False))
    dataset = engine.open_dataset(name)
    assert dataset is not None
    rules = dataset.rules(engine.now())
    batches = cell_batches(dataset, rules, ALL_NAMES, Selection(versions=None))
    return {row: value for batch in batches for row, _, _, _, value, _ in batch.cells()}


def csv_of(path: Path, rows: dict[str, str]) -> Path:
    lines = [f"{row},c,1,{value}" for row, value in rows.items()]
    path.write_text("\n".join(["row,column,timestamp,value", *lines]))
    return path


def converted(file: Path, folder: Path, number: int) -> Converted:
    units = units_of(str(file), None, Mapping())
    result = convert(units, DEFAULTS, folder, number, stop=True)
    assert result.bad == 0
    return result


def test_runs_are_sorted_and_the_last_of_a_key_stays(
    engine: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = csv_of(tmp_path / "f.csv", {"b": "1", "a": "2", "c": "3"})
    file.write_text(file.read_text() + "\na,c,1,last")
    folder = engine.folder_for_import()
    result = converted(file, folder, 0)
    assert (result.cells, len(result.tables)) == (4, 1)
    keys = [cell_key(row, b"c", 1, 0) for row in (b"a", b"b", b"c")]
    assert result.tables[0].keys[0] == keys[0]
    assert result.tables[0].keys[-1] == keys[-1]
    assert ingested(engine, folder) == {b"a": b"last", b"b": b"1", b"c": b"3"}
    monkeypatch.setattr(bulk, "RUN_CELLS", 1)
    monkeypatch.setattr("storage.transfer.sources.UNIT_BYTES", 1)
    folder = engine.folder_for_import()
    assert len(converted(file, folder, 0).tables) == 4
    assert ingested(engine, folder) == {b"a": b"last", b"b": b"1", b"c": b"3"}


@pytest.mark.parametrize("ranges", [1, 2, 5])
def test_merged_tables_hold_the_same_without_overlap(
    engine: EmbeddedEngine, tmp_path: Path, ranges: int
) -> None:
    folder, tables, expected = engine.folder_for_import(), [], dict[bytes, bytes]()
    for number in range(12):
        rows = {f"r{row:03}": f"{number}.{row}" for row in range(number, 100, 1 + number % 3)}
        tables += converted(csv_of(tmp_path / "f.csv", rows), folder, number).tables
        expected |= {row.encode(): value.encode() for row, value in rows.items()}
    assert bulk.overlap(tables)
    with ThreadPoolExecutor() as pool:
        bulk.merge(pool, tables, folder, ranges)
    left = sorted(path.name for path in folder.glob("*.sst"))
    assert left == [f"merged-{number}-000000.sst" for number in range(ranges)]
    assert ingested(engine, folder) == expected


def test_tables_that_follow_each_other_do_not_overlap(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    folder, tables = engine.folder_for_import(), []
    for number, rows in enumerate([{"e": "1", "f": "1"}, {"a": "1"}, {"b": "1", "d": "1"}]):
        tables += converted(csv_of(tmp_path / "f.csv", rows), folder, number).tables
    assert not bulk.overlap(tables)
    tables += converted(csv_of(tmp_path / "f.csv", {"c": "1"}), folder, 9).tables
    assert bulk.overlap(tables)


def test_many_records_are_divided_among_processes(engine: EmbeddedEngine, tmp_path: Path) -> None:
    rows = {f"r{number * 7919 % 30_011}": str(number) for number in range(30_000)}
    file, folder, told = csv_of(tmp_path / "f.csv", rows), engine.folder_for_import(), list[int]()
    units = [unit for _ in range(9) for unit in units_of(str(file), None, Mapping())]
    result = convert_all(
        units, DEFAULTS, folder, stop=True, progress=lambda done, _total: told.append(done)
    )
    assert result.cells == 9 * 30_000
    assert told == sorted(told)
    assert told[-1] == result.records == sum(unit.records for unit in units)
    found = ingested(engine, folder)
    assert found == {row.encode(): value.encode() for row, value in rows.items()}


class _Ended(ThreadPoolExecutor):
    """A pool whose processes were killed."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    def submit(self, *_: object, **__: object) -> Any:
        raise BrokenProcessPool


def test_a_process_that_was_killed_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "ProcessPoolExecutor", _Ended)
    monkeypatch.setattr(bulk, "FEW_RECORDS", 0)
    units = units_of(str(csv_of(tmp_path / "f.csv", {"a": "1"})), None, Mapping())
    with pytest.raises(CannotTransfer, match="not enough memory"):
        convert_all(units, DEFAULTS, tmp_path, stop=True, progress=lambda _done, _total: None)
