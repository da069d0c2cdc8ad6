"""Many cells at once are what they are one by one: keys, values, batches of an export."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.embedded.engine import EmbeddedEngine
from storage.encoding import (
    TOP_SEQUENCE,
    cell_key,
    cell_keys,
    split_key,
    split_names,
    split_value,
    stamp_of,
    stamps_of,
    stored_values,
    value_header,
)
from storage.errors import ColumnNameTooLong, CorruptData, RowKeyTooLong
from storage.model import (
    ALL_NAMES,
    MAX_NAME_BYTES,
    MAX_TIMESTAMP,
    DatasetSettings,
    Selection,
)
from storage.opening import open_engine
from storage.transfer import cells as cells_module
from storage.transfer.cells import cell_batches

NAMES = st.one_of(
    st.lists(st.sampled_from(b"\x00\x01\x02a\xff"), max_size=5).map(bytes), st.binary(max_size=9)
)
PLAIN_NAMES = st.binary(max_size=5).map(lambda name: name.replace(b"\x00", b"0"))
TIMES = st.sampled_from([0, 1, MAX_TIMESTAMP]) | st.integers(0, MAX_TIMESTAMP)
SEQUENCES = st.sampled_from([0, 1, TOP_SEQUENCE]) | st.integers(0, TOP_SEQUENCE)
CELLS = st.lists(st.tuples(NAMES, NAMES, TIMES, SEQUENCES), max_size=6) | st.lists(
    st.tuples(PLAIN_NAMES, PLAIN_NAMES, TIMES, SEQUENCES), max_size=6
)


@settings(deadline=None)
@given(CELLS)
def test_keys_of_many_are_those_of_each(cells: list[tuple[bytes, bytes, int, int]]) -> None:
    parts = [list(part) for part in zip(*cells, strict=True)] or [[], [], [], []]
    keys = cell_keys(parts[0], parts[1], parts[2], parts[3])
    assert keys == [cell_key(*cell) for cell in cells]
    assert list(zip(*split_names(keys), strict=True)) == [cell[:2] for cell in cells]
    assert list(zip(*stamps_of(keys), strict=True)) == [stamp_of(key) for key in keys]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=30) | st.builds(cell_key, NAMES, NAMES, TIMES, SEQUENCES)))
def test_what_is_no_key_is_no_key_among_many(keys: list[bytes]) -> None:
    try:
        expected = [split_key(key)[:2] for key in keys]
    except CorruptData:
        # An impossible timestamp is told by stamps_of(), all else by split_names().
        with pytest.raises(CorruptData):
            split_names(keys)
            stamps_of(keys)
    else:
        assert list(zip(*split_names(keys), strict=True)) == expected


def test_names_have_the_same_limit() -> None:
    long = b"n" * (MAX_NAME_BYTES + 1)
    with pytest.raises(RowKeyTooLong):
        cell_keys([b"r", long], [b"c", b"c"], [1, 1], [0, 0])
    with pytest.raises(ColumnNameTooLong):
        cell_keys([b"r", b"r"], [b"c", long], [1, 1], [0, 0])


@given(st.lists(st.tuples(st.none() | TIMES, st.binary(max_size=9)), max_size=6))
def test_values_of_many_are_those_of_each(pairs: list[tuple[int | None, bytes]]) -> None:
    stored = stored_values([payload for _, payload in pairs], [expiry for expiry, _ in pairs])
    assert stored == [value_header(expiry) + payload for expiry, payload in pairs]
    assert [split_value(one) for one in stored] == pairs


# Batches


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    opened = open_engine(tmp_path_factory.mktemp("engine") / "data")
    cells = [
        (b"r%d" % row, time, b"c%d" % column, b"v" * time)
        for row, column, time in itertools.product(range(3), range(2), range(1, 4))
    ]
    asyncio.run(opened.put(b"d", cells, None, DatasetSettings()))
    assert opened.commit() is None
    yield opened
    asyncio.run(opened.close())


def lengths(engine: EmbeddedEngine, batch_cells: int) -> list[int]:
    dataset = engine.open_dataset(b"d")
    assert dataset is not None
    every = Selection(versions=None)
    rules = dataset.rules(engine.now())
    batches = list(cell_batches(dataset, rules, ALL_NAMES, every, batch_cells=batch_cells))
    cells = [
        (row, column, time, value)
        for batch in batches
        for row, column, time, _, value, _ in batch.cells()
    ]
    assert cells == [
        (b"r%d" % row, b"c%d" % column, time, b"v" * time)
        for row, column, time in itertools.product(range(3), range(2), (3, 2, 1))
    ]
    return list(map(len, batches))


def test_a_batch_ends_where_it_is_full(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lengths(engine, 18) == [18]
    assert lengths(engine, 4) == [4, 4, 4, 4, 2]  # in the midst of a column, too
    monkeypatch.setattr(cells_module, "BATCH_BYTES", cells_module.CELL_BYTES + 1)
    monkeypatch.setattr(cells_module, "CELL_BYTES", cells_module.CELL_BYTES // 2)
    assert lengths(engine, 18) == [2] * 9


def test_an_export_without_a_cell_has_no_batch(tmp_path: Path) -> None:
    empty = open_engine(tmp_path / "data")
    asyncio.run(empty.create_dataset(b"d", DatasetSettings()))
    dataset = empty.open_dataset(b"d")
    assert dataset is not None
    rules = dataset.rules(empty.now())
    assert list(cell_batches(dataset, rules, ALL_NAMES, Selection())) == []
    asyncio.run(empty.close())
