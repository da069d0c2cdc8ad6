"""The group of writes that wait for one commit, and who sees them before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage.errors import StoreFailure
from tests.storage.engine.store import Store


def test_a_read_of_a_touched_row_sees_the_write_before_the_commit(store: Store) -> None:
    store.create()
    store.engine.commit()
    settled: list[StoreFailure | None] = []
    store.engine.on_settled = settled.append
    store.write(1)
    assert store.read(row=b"other") == []
    assert settled == []
    assert store.shown() == [1]
    assert settled == [None]
    dataset = store.engine.open_dataset(b"d")
    assert dataset is not None
    assert dataset.waiting_rows == set()


@pytest.mark.parametrize(
    "reads",
    [
        lambda store: store.scan().rows,
        lambda store: store.run(store.engine.count_rows(b"d", [b"r"])),
        lambda store: store.delete(),
        lambda store: store.delete_at(1),
        lambda store: not store.compare_and_put(None),
        lambda store: store.page().columns,
    ],
)
def test_every_call_sees_what_waits_in_the_group(
    reads: Callable[[Store], object], store: Store
) -> None:
    store.create()
    store.engine.commit()
    store.write(1)
    assert reads(store)


def test_a_put_after_a_delete_in_one_group_stays(store: Store) -> None:
    store.write(1)
    store.engine.commit()
    store.delete()
    store.write(1)
    store.engine.commit()
    assert store.shown() == [1]


def test_a_commit_without_writes_settles_nothing(store: Store) -> None:
    store.write(1)
    settled: list[StoreFailure | None] = []
    store.engine.on_settled = settled.append
    assert store.engine.commit() is None
    assert settled == [None]
    assert store.engine.commit() is None
    assert settled == [None]
