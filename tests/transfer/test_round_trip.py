"""What is exported and imported again is equal to what was there, whatever it was."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.embedded.engine import EmbeddedEngine
from storage.model import DatasetSettings, NewCell
from storage.opening import open_engine
from storage.transfer.bulk import convert_all
from storage.transfer.cells import cell_batches
from storage.transfer.destinations import LocalDestination
from storage.transfer.exporting import ExportRequest, export
from storage.transfer.mapping import Defaults, Mapping
from storage.transfer.sources import units_of

LATER = 2**63 - 1
NAMES = st.binary(max_size=3) | st.sampled_from([b"", b"\x00", b"\x00\x01", b"r\r\n", b"\xff"])
TIMES = st.integers(0, 20) | st.sampled_from([1_700_000_000_000, LATER])
CALLS = st.lists(
    st.tuples(
        st.lists(
            st.tuples(NAMES, st.none() | TIMES, NAMES, st.binary(max_size=9)),
            min_size=1,
            max_size=6,
        ),
        st.none() | st.sampled_from([1, 4_000_000_000_000, LATER]),
    ),
    max_size=8,
)
SETTINGS = st.builds(DatasetSettings, st.integers(0, 3), st.sampled_from([0, 10**9]))
_numbers = itertools.count()


def at_once(call: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(call)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    opened = open_engine(tmp_path_factory.mktemp("engine") / "data")
    yield opened
    at_once(opened.close())


def shown(engine: EmbeddedEngine, name: bytes, now: int) -> list[Any]:
    """Everything visible of a dataset at a moment, sequences and expiries included."""
    dataset = engine.open_dataset(name)
    assert dataset is not None
    rules = dataset.rules(now)
    request = ExportRequest(name)
    selection = request.rows, request_selection(request)
    cells = [
        list(zip(b.rows, b.columns, b.timestamps, b.sequences, b.values, b.expiries, strict=True))
        for b in cell_batches(dataset, rules, *selection, batch_cells=3)
    ]
    return [cell for batch in cells for cell in batch]


def request_selection(request: ExportRequest) -> Any:
    from storage.model import Selection

    return Selection(versions=request.versions, times=request.times)


def imported(engine: EmbeddedEngine, files: list[Path], name: bytes, setting: Any) -> None:
    folder = engine.folder_for_import()
    units = [unit for file in files for unit in units_of(str(file), None, Mapping())]
    converted = convert_all(
        units, Defaults(0, LATER), folder, stop=True, progress=lambda _done, _total: None
    )
    assert converted.bad == 0
    folder_name = folder.name.encode()
    at_once(engine.ingest(name, folder_name, setting, expiring=converted.expiring))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(calls=CALLS, setting=SETTINGS, rows_per_file=st.integers(1, 9))
def test_export_and_import_make_an_equal_dataset(
    engine: EmbeddedEngine,
    tmp_path: Path,
    calls: list[tuple[list[NewCell], int | None]],
    setting: DatasetSettings,
    rows_per_file: int,
) -> None:
    number = next(_numbers)
    source, copy = b"source%d" % number, b"copy%d" % number
    at_once(engine.create_dataset(source, setting))
    for cells, expires_at in calls:
        at_once(engine.put(source, cells, expires_at, None))
    assert engine.commit() is None
    before = shown(engine, source, engine.now())
    place = LocalDestination(tmp_path / str(number))
    request = ExportRequest(source, rows_per_file=rows_per_file)
    done = export(engine, request, place, lambda _done, _total: None)
    assert done.rows == len(before)
    files = [tmp_path / str(number) / name for name in done.files]
    # The first again at the end: what is given twice is there once.
    imported(engine, [*files, files[0]], copy, setting)
    now = engine.now()
    assert shown(engine, copy, now) == shown(engine, source, now)
    at_once(engine.drop_dataset(source))
    at_once(engine.drop_dataset(copy))


def test_the_last_of_overlapping_files_counts(engine: EmbeddedEngine, tmp_path: Path) -> None:
    files = []
    for number in range(12):  # more than are taken over without being merged
        files.append(tmp_path / f"{number}.csv")
        files[-1].write_text(
            f"row,column,timestamp,value\na,c,1,{number}\nm{number},c,1,x\nz,c,1,{number}\n"
        )
    imported(engine, files, b"overlapping", DatasetSettings())
    cells = shown(engine, b"overlapping", engine.now())
    assert [(cell[0], cell[4]) for cell in (cells[0], cells[-1])] == [(b"a", b"11"), (b"z", b"11")]
    assert len(cells) == 14


def test_an_interrupted_export_leaves_nothing(engine: EmbeddedEngine, tmp_path: Path) -> None:
    cells = [(b"r", number, b"c", b"v") for number in range(10)]
    at_once(engine.put(b"interrupted", cells, None, DatasetSettings()))
    assert engine.commit() is None

    def interrupt(_done: int, _total: int) -> None:
        assert list(tmp_path.iterdir())
        raise KeyboardInterrupt

    request = ExportRequest(b"interrupted", rows_per_file=3)
    with pytest.raises(KeyboardInterrupt):
        export(engine, request, LocalDestination(tmp_path), interrupt)
    assert list(tmp_path.iterdir()) == []
