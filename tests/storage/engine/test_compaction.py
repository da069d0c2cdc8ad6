"""What compaction removes, what it leaves, and what happens to it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from storage.encoding import split_key
from storage.maintenance import collector
from storage.model import Deletion
from tests.storage.engine.store import NOW, Store, collected, raw_cells


def test_compaction_removes_what_nobody_can_see(store: Store) -> None:
    store.create(max_versions=2)
    store.write(9, expires_at=NOW - 1)
    store.write(5, 4, 3, 2)
    store.compact()
    assert store.stored_timestamps() == [5, 4]


def test_compaction_leaves_what_may_show_again(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, expires_at=NOW)
    store.write(4, 3)
    store.compact()
    assert store.stored_timestamps() == [5, 4]
    store.now += 1
    assert store.shown() == [4]


def test_compaction_takes_long_runs_of_dead_cells(store: Store) -> None:
    store.create(max_versions=3)
    store.write(*range(2_000))
    store.put((b"r", 1, b"b", b"v"), (b"r", 1, b"d", b"v"))
    store.compact()
    assert store.stored_timestamps() == [1, 1_999, 1_998, 1_997, 1]
    info = store.run(store.engine.dataset_info(b"d"))
    assert info.last_compaction_removed_cells == 1_997


def test_a_change_of_settings_ends_a_compaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "SLICE_CELLS", 2)
    store.create(max_versions=1)
    store.write(*range(100))

    async def alter_meanwhile() -> None:
        await store.engine.compact_dataset(b"d")
        await asyncio.sleep(0)
        await store.engine.alter_dataset(b"d", max_versions=2)
        await collected(store.engine)

    store.run(alter_meanwhile())
    assert len(store.stored_timestamps()) > 90
    assert store.run(store.engine.dataset_info(b"d")).last_compaction_ms == 0


def test_a_dataset_may_be_dropped_while_it_is_compacted(store: Store) -> None:
    store.create(max_versions=1)
    store.write(*range(100))

    async def drop_meanwhile(turns: int) -> None:
        await store.engine.compact_dataset(b"d")
        for _ in range(turns):
            await asyncio.sleep(0)
        await store.engine.drop_dataset(b"d")
        await collected(store.engine)

    for turns in range(6):
        store.run(drop_meanwhile(turns))
        assert store.engine.dataset_names() == []
        store.write(1)
        assert store.shown() == [1]


def compact_while(
    store: Store, monkeypatch: pytest.MonkeyPatch, turns: int, *calls: Coroutine[Any, Any, object]
) -> None:
    """The calls come after some turns of the loop, in each of which one cell is looked at."""
    monkeypatch.setattr(collector, "SLICE_CELLS", 1)

    async def both() -> None:
        await store.engine.compact_dataset(b"d")
        for _ in range(turns):
            await asyncio.sleep(0)
        for call in calls:
            await call
        await collected(store.engine)

    store.run(both())


@pytest.mark.parametrize("turns", range(7))
def test_a_compaction_forgets_cells_that_are_deleted_meanwhile(
    turns: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(max_versions=2)
    store.write(9, 8, 7)
    compact_while(
        store,
        monkeypatch,
        turns,
        store.engine.delete(b"d", [b"r"], Deletion(timestamps=[9])),
        store.engine.put(b"d", [(b"r", 5, b"c", b"v"), (b"r", 4, b"c", b"v")], None, None),
    )
    assert store.shown() == [8, 5]


@pytest.mark.parametrize("turns", range(7))
def test_a_compaction_leaves_no_dead_cell_because_of_a_delete_elsewhere(
    turns: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(max_versions=1)
    store.write(5, 4, 3, 2, 1)
    store.put((b"s", 1, b"c", b"v"))
    compact_while(store, monkeypatch, turns, store.engine.delete(b"d", [b"s"], Deletion()))
    assert store.stored_timestamps() == [5]


@pytest.mark.parametrize("turns", range(7))
def test_a_compaction_heeds_an_earlier_expiry_that_came_meanwhile(
    turns: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(max_versions=2)
    store.write(9, 8)
    compact_while(
        store,
        monkeypatch,
        turns,
        store.engine.put(b"d", [(b"r", 9, b"c", b"v")], NOW, None),
        store.engine.put(b"d", [(b"r", 5, b"c", b"v"), (b"r", 4, b"c", b"v")], None, None),
    )
    assert store.shown() == [9, 8]
    store.now += 1
    assert store.shown() == [8, 5]


# Expired cells that a read meets


@pytest.mark.parametrize(("expired", "left"), [(101, [500]), (100, [500, *range(100, 0, -1)])])
def test_a_read_that_steps_over_many_expired_cells_has_the_row_collected(
    store: Store, expired: int, left: list[int]
) -> None:
    store.create()
    store.write(*range(1, expired + 1), expires_at=NOW + 5)
    store.write(500)
    store.put((b"other", 1, b"c", b"v"), expires_at=NOW + 5)
    store.now += 6
    assert store.shown() == [500]
    store.run(collected(store.engine))
    stored = [split_key(key) for key, _ in raw_cells(store.engine, b"d")]
    assert [timestamp for row, _, timestamp, _ in stored if row == b"r"] == left
    assert [timestamp for row, _, timestamp, _ in stored if row == b"other"] == [1]
    assert store.shown() == [500]


def test_rows_that_reads_met_are_collected_though_many_wait(store: Store) -> None:
    store.create()
    rows = [b"row%d" % number for number in range(5)]
    for row in rows:
        cells = [(row, timestamp, b"c", b"v") for timestamp in range(150)]
        store.put(*cells, expires_at=NOW + 5)
    store.now += 6
    for row in rows:
        assert store.read(row=row) == []
    store.run(collected(store.engine))
    assert raw_cells(store.engine, b"d") == []
