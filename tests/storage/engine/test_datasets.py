"""Datasets: created, altered, dropped, told of; and what there is not is refused."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from storage.errors import DatasetExists, InvalidDatasetName, NoSuchDataset
from storage.model import ALL_NAMES, EVERYTHING, DatasetSettings, Deletion, PageRequest
from tests.storage.engine.store import DEFAULTS, NOW, UNLIMITED, Store, plain


def test_datasets_are_created_listed_and_dropped(store: Store) -> None:
    for name in (b"b", b"a:1", b"B"):
        store.create(name=name)
    assert store.engine.dataset_names() == [b"B", b"a:1", b"b"]
    store.run(store.engine.drop_dataset(b"a:1"))
    assert store.engine.dataset_names() == [b"B", b"b"]


def test_a_dataset_that_exists_is_not_created_again(store: Store) -> None:
    store.create(max_versions=3)
    with pytest.raises(DatasetExists):
        store.create(max_versions=5)
    store.run(store.engine.create_dataset(b"d", DatasetSettings(5), if_not_exists=True))
    assert store.run(store.engine.dataset_info(b"d")).settings == DatasetSettings(3)


def test_a_dropped_dataset_takes_its_cells_along(store: Store) -> None:
    store.write(1)
    store.run(store.engine.drop_dataset(b"d"))
    store.create()
    assert store.read() == []
    assert store.stored() == []


def test_a_drop_takes_writes_along_that_were_on_their_way(store: Store) -> None:
    store.create()
    store.engine.commit()
    store.write(1)
    store.run(store.engine.drop_dataset(b"d"))
    store.write(2)
    assert store.shown() == [2]


def test_an_unknown_dataset_may_be_dropped_if_it_exists(store: Store) -> None:
    store.run(store.engine.drop_dataset(b"d", if_exists=True))
    with pytest.raises(NoSuchDataset):
        store.run(store.engine.drop_dataset(b"d"))


def test_datasets_do_not_see_each_other(store: Store) -> None:
    store.put((b"r", 1, b"c", b"1"), name=b"a")
    store.put((b"r", 1, b"c", b"2"), name=b"b")
    assert plain(store.page(name=b"a").columns) == [(b"c", [(1, b"1")])]
    assert plain(store.page(name=b"b").columns) == [(b"c", [(1, b"2")])]


def test_altered_settings_count_from_the_next_read_on(store: Store) -> None:
    store.create()
    store.write(NOW, NOW - 1_000, NOW - 2_000)
    store.run(store.engine.alter_dataset(b"d", max_versions=2))
    assert store.shown() == [NOW, NOW - 1_000]
    store.run(store.engine.alter_dataset(b"d", ttl_seconds=1))
    assert store.run(store.engine.dataset_info(b"d")).settings == DatasetSettings(2, 1)
    store.now += 1
    assert store.shown() == [NOW]


def test_info_tells_when_a_dataset_was_created_and_compacted(store: Store) -> None:
    store.create(max_versions=1)
    store.write(3, 2, 1)
    store.engine.commit()
    assert store.run(store.engine.dataset_info(b"d")).estimated_cells == 3
    store.now += 5
    store.compact()
    info = store.run(store.engine.dataset_info(b"d"))
    assert (info.name, info.created_ms) == (b"d", NOW)
    assert (info.last_compaction_ms, info.last_compaction_removed_cells) == (NOW + 5, 2)


def calls_of(store: Store, name: bytes) -> list[Coroutine[Any, Any, object]]:
    """Every call that names a dataset and does not create it."""
    engine, request, cell = store.engine, PageRequest(UNLIMITED), (b"r", 1, b"c", b"v")
    return [
        engine.alter_dataset(name, max_versions=1),
        engine.drop_dataset(name),
        engine.dataset_info(name),
        engine.compact_dataset(name),
        engine.put(name, [cell], None, None),
        engine.put(name, [cell], NOW, None),
        engine.increment(name, b"r", b"c", 1, None),
        engine.compare_and_put(name, cell, None, None, None),
        engine.delete(name, [b"r"], Deletion()),
        engine.read_row(name, b"r", EVERYTHING, request),
        engine.read_rows(name, [b"r"], EVERYTHING, request),
        engine.read_columns(name, b"r", ALL_NAMES, request),
        engine.scan(name, ALL_NAMES, EVERYTHING, request),
        engine.count_rows(name, [b"r"]),
    ]


def test_every_call_refuses_an_unknown_dataset(store: Store) -> None:
    for call in calls_of(store, b"nobody"):
        with pytest.raises(NoSuchDataset):
            store.run(call)
    assert store.engine.dataset_names() == []


def test_every_call_refuses_a_bad_name(store: Store) -> None:
    engine, cell = store.engine, (b"r", 1, b"c", b"v")
    creating = [
        engine.create_dataset(b"a/b", DEFAULTS),
        engine.put(b"a/b", [cell], None, DEFAULTS),
        engine.increment(b"a/b", b"r", b"c", 1, DEFAULTS),
        engine.compare_and_put(b"a/b", cell, None, None, DEFAULTS),
    ]
    for call in [*calls_of(store, b"a/b"), *creating]:
        with pytest.raises(InvalidDatasetName):
            store.run(call)
    assert store.engine.dataset_names() == []


def test_a_write_creates_a_dataset_with_the_settings_it_brings(store: Store) -> None:
    brought = DatasetSettings(2, 60)
    store.run(store.engine.put(b"d", [(b"r", 1, b"c", b"v")], None, brought))
    assert store.run(store.engine.dataset_info(b"d")).settings == brought
