"""Cells that are written, and which of them a read shows."""

from __future__ import annotations

import pytest

from storage.errors import ColumnNameTooLong, RowKeyTooLong
from storage.model import (
    DatasetSettings,
    NameRange,
    NewCell,
    Page,
    PageRequest,
    Selection,
    TimeRange,
)
from tests.storage.engine.store import DEFAULTS, NOW, TOO_LONG, UNLIMITED, Store, some_columns


def test_any_bytes_are_names_and_values(store: Store) -> None:
    names = [
        b"",
        b"\x00",
        b"\x00\x00",
        b"\x00\x01",
        b"\r\n",
        b"a",
        b"a\x00",
        b"a\x00b",
        b"\xff\xff",
    ]
    store.put(*[(row, 1, column, row + column) for row in names for column in names])
    for row in names:
        assert store.read(row=row) == [(column, [(1, row + column)]) for column in names]


def test_the_bytes_of_a_row_do_not_wander_into_its_column(store: Store) -> None:
    store.put((b"a\x00b", 1, b"c", b"one"))
    store.put((b"a", 1, b"b\x00c", b"two"))
    assert store.read(row=b"a\x00b") == [(b"c", [(1, b"one")])]
    assert store.read(row=b"a") == [(b"b\x00c", [(1, b"two")])]


def test_an_older_cell_goes_below_the_newer_ones(store: Store) -> None:
    store.write(5)
    store.write(0, 2**63 - 1)
    assert store.shown() == [2**63 - 1, 5, 0]


def test_the_same_timestamp_replaces_the_cell(store: Store) -> None:
    store.put((b"r", 1, b"c", b"old"))
    store.put((b"r", 1, b"c", b"new"))
    assert store.read() == [(b"c", [(1, b"new")])]


def test_stamped_cells_of_a_millisecond_stay_apart_above_the_given_one(store: Store) -> None:
    store.put((b"r", None, b"c", b"1"), (b"r", None, b"c", b"2"))
    store.put((b"r", NOW, b"c", b"given"), (b"r", None, b"c", b"3"))
    assert store.read() == [(b"c", [(NOW, b"3"), (NOW, b"2"), (NOW, b"1"), (NOW, b"given")])]


def test_after_65535_stamps_of_a_millisecond_comes_the_next(store: Store) -> None:
    store.write(*[None] * 65_536)
    assert store.shown() == [NOW + 1] + [NOW] * 65_535
    assert store.engine.now() == NOW + 1


def test_a_missing_row_is_an_empty_page(store: Store) -> None:
    store.create()
    assert store.page() == Page(b"0", [])


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), {b"a": [3], b"ab": [3], b"b": [3]}),
        (Selection(versions=2), {b"a": [3, 2], b"ab": [3, 2], b"b": [3, 2]}),
        (Selection(columns=(b"a", b"x")), {b"a": [3]}),
        (Selection(columns=(b"a", b"b"), versions=None), {b"a": [3, 2, 1], b"b": [3, 2, 1]}),
        (Selection(names=NameRange(prefix=b"a")), {b"a": [3], b"ab": [3]}),
        (Selection(names=NameRange(start=b"ab")), {b"ab": [3], b"b": [3]}),
        (Selection(names=NameRange(stop=b"ab")), {b"a": [3]}),
        (Selection(names=NameRange(b"a", b"aa", b"b")), {b"ab": [3]}),
        (Selection(names=NameRange(start=b"b", stop=b"a")), {}),
        (Selection((b"a",), versions=None, times=TimeRange(2, 3)), {b"a": [3, 2]}),
        (Selection((b"a",), versions=1, times=TimeRange(0, 2)), {b"a": [2]}),
        (Selection((b"a",), versions=None, times=TimeRange(4, 9)), {}),
        (Selection((b"a",), versions=None, times=TimeRange(3, 2)), {}),
    ],
)
def test_a_selection_picks_columns_and_cells(
    selection: Selection, expected: dict[bytes, list[int]], store: Store
) -> None:
    some_columns(store)
    found = {name: [at for at, _ in cells] for name, cells in store.read(selection)}
    assert found == expected


def test_without_values_a_page_holds_timestamps(store: Store) -> None:
    some_columns(store)
    request = PageRequest(UNLIMITED, values=False)
    page = store.run(store.engine.read_row(b"d", b"r", Selection(versions=2), request))
    assert page.columns == [(name, [3, 2]) for name in (b"a", b"ab", b"b")]


def test_only_the_newest_max_versions_are_visible(store: Store) -> None:
    store.create(max_versions=2)
    store.write(1, 2, 3)
    assert store.shown() == [3, 2]
    assert store.read(Selection(versions=None, times=TimeRange(0, 1))) == []
    assert store.read(Selection(versions=None, times=TimeRange(0, 2))) == [(b"c", [(2, b"v")])]


def test_a_cell_lives_through_the_millisecond_of_its_expiry(store: Store) -> None:
    store.write(1, expires_at=NOW + 10)
    store.now += 10
    assert store.shown() == [1]
    store.now += 1
    assert store.shown() == []


def test_when_a_cell_expires_the_older_one_shows_again(store: Store) -> None:
    store.create(max_versions=1)
    store.write(1)
    store.write(2, expires_at=NOW)
    assert store.shown() == [2]
    store.now += 1
    assert store.shown() == [1]


def test_the_ttl_of_the_dataset_counts_from_the_timestamp(store: Store) -> None:
    store.create(ttl_seconds=1)
    store.write(NOW - 1_000, NOW - 1_001, NOW + 5)
    store.write(NOW, expires_at=NOW + 3)
    assert store.shown() == [NOW + 5, NOW, NOW - 1_000]
    store.now += 4
    assert store.shown() == [NOW + 5]
    store.now = NOW + 1_006
    assert store.shown() == []


def test_a_write_that_has_expired_replaces_and_is_never_seen(store: Store) -> None:
    store.write(1, 2)
    store.write(2, expires_at=NOW - 1)
    assert store.shown() == [1]


def test_rows_of_one_call_are_all_written(store: Store) -> None:
    store.put((b"r1", 1, b"c", b"1"), (b"r2", 2, b"d", b"2"))
    assert store.read(row=b"r1") == [(b"c", [(1, b"1")])]
    assert store.read(row=b"r2") == [(b"d", [(2, b"2")])]


BAD_CELLS = [(TOO_LONG, 1, b"c", b"v"), (b"r", 1, TOO_LONG, b"v")]


@pytest.mark.parametrize("bad", BAD_CELLS, ids=["row", "column"])
def test_a_call_with_a_long_name_writes_nothing_and_creates_nothing(
    bad: NewCell, store: Store
) -> None:
    good: NewCell = (b"r", 1, b"c", b"v")
    row, _, column, _ = bad
    for call in (
        store.engine.put(b"d", [good, bad], None, DEFAULTS),
        store.engine.put(b"d", [good, bad], NOW, DatasetSettings(1)),
        store.engine.increment(b"d", row, column, 1, DEFAULTS),
        store.engine.compare_and_put(b"d", bad, None, None, DEFAULTS),
    ):
        with pytest.raises((RowKeyTooLong, ColumnNameTooLong)):
            store.run(call)
    assert store.engine.dataset_names() == []
    assert store.engine._group.operations == []


@pytest.mark.parametrize("expires_at", [None, NOW + 9])
@pytest.mark.parametrize("bad", BAD_CELLS, ids=["row", "column"])
def test_a_call_with_a_long_name_leaves_a_dataset_as_it_was(
    bad: NewCell, expires_at: int | None, store: Store
) -> None:
    store.create(max_versions=1)
    store.write(2, 1)
    with pytest.raises((RowKeyTooLong, ColumnNameTooLong)):
        store.put((b"r", 2, b"c", b"new"), bad, expires_at=expires_at)
    assert store.read() == [(b"c", [(2, b"v")])]
    assert store.stored_timestamps() == [2, 1]


def test_reads_and_deletes_refuse_a_long_name(store: Store) -> None:
    store.write(1)
    with pytest.raises(RowKeyTooLong):
        store.read(row=TOO_LONG)
    with pytest.raises(RowKeyTooLong):
        store.delete(b"r", TOO_LONG)
    with pytest.raises(ColumnNameTooLong):
        store.read(Selection(columns=(TOO_LONG,)))
    with pytest.raises(ColumnNameTooLong):
        store.delete(columns=(b"c", TOO_LONG))
    assert store.shown() == [1]
