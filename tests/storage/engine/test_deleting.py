"""Deletes, and rewrites that shorten a life: under MAXVERSIONS they bring nothing hidden back."""

from __future__ import annotations

import pytest

from storage.embedded.ordered import Kind
from storage.model import TimeRange
from tests.storage.engine.store import NOW, Store, some_columns


def test_a_row_is_deleted_and_can_be_written_again(store: Store) -> None:
    some_columns(store)
    store.put((b"other", 1, b"c", b"v"))
    assert store.delete() == 1
    assert store.read() == []
    assert store.delete() == 0
    store.write(1)
    assert store.shown() == [1]
    assert store.read(row=b"other") == [(b"c", [(1, b"v")])]


def test_named_columns_are_deleted_and_counted(store: Store) -> None:
    some_columns(store)
    store.put((b"r", 1, b"gone", b"v"), expires_at=NOW - 1)
    assert store.delete(columns=(b"a", b"a", b"b", b"gone", b"x")) == 2
    assert [name for name, _ in store.read()] == [b"ab"]


def test_a_delete_in_several_rows_counts_each_once(store: Store) -> None:
    for row in (b"1", b"2", b"3"):
        store.put((row, 1, b"c", b"v"))
    assert store.delete(b"1", b"3", b"1", b"x") == 2
    assert [row for row, _, _ in store.scan().rows] == [b"2"]


def test_cells_are_deleted_by_range(store: Store) -> None:
    store.write(5, 4, 3, 2, 1)
    assert store.delete(times=TimeRange(2, 4)) == 1
    assert store.shown() == [5, 1]
    assert store.delete(times=TimeRange(2, 4)) == 0
    assert store.delete(times=TimeRange(5, 1)) == 0
    assert store.shown() == [5, 1]


def test_cells_are_deleted_by_timestamps(store: Store) -> None:
    some_columns(store)
    assert store.delete(columns=(b"a", b"b", b"x"), timestamps=[3, 1, 3, 7]) == 2
    assert store.read() == [
        (b"a", [(2, b"2")]),
        (b"ab", [(3, b"3"), (2, b"2"), (1, b"1")]),
        (b"b", [(2, b"2")]),
    ]


def test_a_timestamp_means_every_cell_of_its_millisecond(store: Store) -> None:
    store.write(None, None, NOW, NOW + 1, NOW - 1)
    assert store.delete_at(NOW) == 1
    assert store.shown() == [NOW + 1, NOW - 1]


@pytest.mark.parametrize("cells", [10, 100])
def test_few_cells_and_many_are_deleted_alike(cells: int, store: Store) -> None:
    store.put(*[(b"q", 1, b"c", b"v"), (b"r\x00", 1, b"c", b"v")])
    store.write(*range(cells))
    assert store.delete(times=TimeRange(1, cells - 2)) == 1
    assert store.stored_timestamps() == [1, cells - 1, 0, 1]
    assert store.delete() == 1
    assert [row for row, _, _ in store.scan().rows] == [b"q", b"r\x00"]


def test_a_delete_by_time_brings_no_hidden_cell_back(store: Store) -> None:
    store.create(max_versions=2)
    store.write(5, 4, 3, 2)
    assert store.delete_at(5) == 1
    assert store.shown() == [4]
    assert store.stored_timestamps() == [4]


def test_a_delete_of_a_cell_that_could_show_drops_what_hides_below(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, expires_at=NOW)
    store.write(4, 3)
    assert store.delete_at(4) == 0
    store.now += 1
    assert store.shown() == []


def four_hidden_by_one(store: Store) -> None:
    """Under MAXVERSIONS 1: 2 shows after 5 has expired, and 1 at last; 4 and 3 never do."""
    store.create(max_versions=1)
    for timestamp, lifetime in [(5, 9), (4, 5), (3, 8), (2, 20), (1, 99)]:
        store.write(timestamp, expires_at=NOW + lifetime)
    assert store.shown() == [5]


@pytest.mark.parametrize(
    ("deleted", "later", "at_last"), [(4, [2], [1]), (3, [2], [1]), (2, [], []), (1, [2], [])]
)
def test_a_delete_of_a_hidden_cell_drops_what_is_below_if_it_could_show(
    deleted: int, later: list[int], at_last: list[int], store: Store
) -> None:
    four_hidden_by_one(store)
    assert store.delete_at(deleted) == 0
    store.now = NOW + 10
    assert store.shown() == later
    store.now = NOW + 21
    assert store.shown() == at_last


@pytest.mark.parametrize(("cells", "kind"), [(10, Kind.DELETE), (100, Kind.DELETE_RANGE)])
def test_a_long_row_is_deleted_at_one_stroke(cells: int, kind: Kind, store: Store) -> None:
    store.write(*range(cells))
    store.engine.commit()
    store.delete()
    kinds = [operation[0] for operation in store.engine._group.operations]
    assert set(kinds) == {kind}
    assert len(kinds) <= 10


def test_without_max_versions_a_delete_by_time_takes_only_what_it_names(store: Store) -> None:
    store.write(5, 4, 3)
    assert store.delete_at(4) == 1
    assert store.shown() == [5, 3]


def test_an_earlier_expiry_brings_no_hidden_cell_back(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, 4)
    store.write(5, expires_at=NOW)
    assert store.shown() == [5]
    store.now += 1
    assert store.shown() == []


def test_a_later_expiry_leaves_what_could_show_below(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, expires_at=NOW)
    store.write(4)
    store.write(5, expires_at=NOW + 3)
    store.now += 4
    assert store.shown() == [4]


def test_the_same_expiry_again_drops_nothing(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, expires_at=NOW)
    store.write(4)
    store.write(5, expires_at=NOW)
    store.now += 1
    assert store.shown() == [4]


def test_an_earlier_expiry_of_what_could_not_show_drops_nothing(store: Store) -> None:
    store.create(max_versions=1)
    store.write(5, expires_at=NOW + 9)
    store.write(4, expires_at=NOW + 5)
    store.write(3, expires_at=NOW + 20)
    store.write(4, expires_at=NOW + 2)
    store.now += 10
    assert store.shown() == [3]


def test_a_new_cell_with_an_expiry_drops_nothing(store: Store) -> None:
    store.create(max_versions=1)
    store.write(4)
    store.write(5, expires_at=NOW)
    store.now += 1
    assert store.shown() == [4]
