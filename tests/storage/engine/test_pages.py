"""Pages of a row: where they end, what their cursors lead to, and what they cost."""

from __future__ import annotations

import pytest

from storage.errors import InvalidCursor
from storage.model import ALL_NAMES, EVERYTHING, Page, PageLimits, PageRequest, Selection
from tests.storage.engine.store import NOW, UNLIMITED, Store, counting, joined, plain, some_columns


def test_a_page_ends_at_each_of_its_limits(store: Store) -> None:
    some_columns(store)
    cut_after = {
        PageLimits(columns=2): [3, 3],
        PageLimits(cells=4): [3, 1],
        PageLimits(bytes=1): [1],
        PageLimits(scan=5): [3, 2],
    }
    for limits, expected in cut_after.items():
        page = store.page(limits=limits)
        assert [len(cells) for _, cells in page.columns] == expected
        assert page.cursor != b"0"
        assert joined(store.pages(limits=limits)) == store.read()


def test_named_columns_all_fit_on_a_page_unless_it_says_otherwise(store: Store) -> None:
    some_columns(store)
    named = Selection(columns=(b"a", b"ab", b"b"))
    page = store.page(named, limits=PageLimits(columns=1))
    assert [name for name, _ in page.columns] == [b"a", b"ab", b"b"]
    assert [name for name, _ in store.page(named, columns=2).columns] == [b"a", b"ab"]


def test_the_last_page_says_that_nothing_is_left(store: Store) -> None:
    some_columns(store)
    assert store.page(columns=3).cursor == b"0"
    assert store.page(limits=PageLimits(cells=9)).cursor == b"0"


def test_the_first_cell_is_given_whatever_its_size(store: Store) -> None:
    store.put((b"r", 1, b"c", b"x" * 1_000))
    assert store.page(limits=PageLimits(bytes=1)).columns == [(b"c", [(1, b"x" * 1_000)])]


def test_count_and_values_may_change_from_page_to_page(store: Store) -> None:
    some_columns(store)
    first = store.page(Selection(), columns=1)
    request = PageRequest(UNLIMITED, columns=2, rows=7, cursor=first.cursor, values=False)
    second = store.run(store.engine.read_row(b"d", b"r", Selection(), request))
    assert second == Page(b"0", [(b"ab", [3]), (b"b", [3])])


def test_a_cursor_is_of_one_dataset_row_selection_and_call(store: Store) -> None:
    some_columns(store)
    store.create(name=b"e")
    cursor = store.page(Selection(), columns=1).cursor
    request = PageRequest(UNLIMITED, cursor=cursor)
    for call in (
        store.engine.read_row(b"e", b"r", Selection(), request),
        store.engine.read_row(b"d", b"s", Selection(), request),
        store.engine.read_row(b"d", b"r", Selection(versions=2), request),
        store.engine.read_columns(b"d", b"r", ALL_NAMES, request),
        store.engine.scan(b"d", ALL_NAMES, Selection(), request),
    ):
        with pytest.raises(InvalidCursor):
            store.run(call)


def test_a_column_is_cut_no_more_often_than_versions_allow(store: Store) -> None:
    store.write(5, 4, 3, 2, 1)
    pages = store.pages(Selection(versions=3), limits=PageLimits(cells=2))
    assert [page.columns for page in pages] == [
        [(b"c", [(5, b"v"), (4, b"v")])],
        [(b"c", [(3, b"v")])],
    ]


def next_page(store: Store, before: Page, selection: Selection = EVERYTHING) -> list[int]:
    page = store.page(selection, cursor=before.cursor)
    return [timestamp for _, cells in plain(page.columns) for timestamp, _ in cells]


@pytest.mark.parametrize(
    ("newer", "left"), [([], [4, 3]), ([6], [4]), ([6, 7], []), ([6, 7, 8], [])]
)
def test_writes_between_pages_push_cells_out_of_max_versions(
    newer: list[int], left: list[int], store: Store
) -> None:
    store.create(max_versions=3)
    store.write(5, 4, 3, 2)
    first = store.page(limits=PageLimits(cells=1))
    assert first.columns == [(b"c", [(5, b"v")])]
    store.write(*newer)
    assert next_page(store, first) == left


def test_expiry_between_pages_lets_older_cells_in_under_max_versions(store: Store) -> None:
    store.create(max_versions=2)
    store.write(4, expires_at=NOW)
    store.write(3, 2, 1)
    first = store.page(limits=PageLimits(cells=1))
    assert next_page(store, first) == [3]
    store.now += 1
    assert next_page(store, first) == [3, 2]


def test_a_cursor_survives_the_delete_of_what_it_points_at(store: Store) -> None:
    store.write(5, 4, 3)
    first = store.page(limits=PageLimits(cells=1))
    store.delete_at(4)
    assert next_page(store, first) == [3]
    store.delete()
    assert next_page(store, first) == []


@pytest.mark.parametrize("limits", [PageLimits(columns=1), PageLimits(cells=1), PageLimits(scan=1)])
def test_a_column_that_has_given_nothing_is_read_from_its_newest_cell(
    limits: PageLimits, store: Store
) -> None:
    store.put((b"r", 1, b"a", b"a"), (b"r", 1, b"b", b"old"))
    first = store.page(Selection(), limits=limits)
    assert first.columns == [(b"a", [(1, b"a")])]
    store.put((b"r", 2, b"b", b"new"))
    second = store.page(Selection(), cursor=first.cursor)
    assert second == Page(b"0", [(b"b", [(2, b"new")])])


@pytest.mark.parametrize(("max_versions", "most"), [(0, 110), (5, 215)])
def test_no_page_examines_many_more_cells_than_it_may(
    max_versions: int, most: int, store: Store
) -> None:
    """Under MAXVERSIONS a page in the middle of a column counts again, within the same limit."""
    store.create(max_versions)
    store.write(*range(1, 1_000), expires_at=NOW)
    store.write(0)
    store.now += 1
    counter = counting(store)
    pages = []
    for page in store.pages(limits=PageLimits(scan=100)):
        assert counter.keys_read <= most
        counter.keys_read = 0
        pages.append(page)
    assert len(pages) >= 10
    assert pages[-1].columns == [(b"c", [(0, b"v")])]


@pytest.mark.parametrize("limits", [PageLimits(scan=43), PageLimits(scan=50, cells=1)])
@pytest.mark.parametrize("max_versions", [1, 2, 3])
def test_below_many_expired_cells_pages_hold_what_the_whole_does(
    max_versions: int, limits: PageLimits, store: Store
) -> None:
    """More of them than a page may examine: it takes the word of the page before."""
    store.create(max_versions)
    store.write(*range(10, 310), expires_at=NOW - 1)
    store.write(4, 3, 2, 1)
    assert joined(store.pages(limits=limits)) == store.read()
    assert store.shown() == [4, 3, 2][:max_versions]


def test_skipping_a_long_column_takes_one_seek(store: Store) -> None:
    store.write(*range(1_000))
    store.put((b"r", 1, b"d", b"v"))
    counter = counting(store)
    assert store.read(Selection()) == [(b"c", [(999, b"v")]), (b"d", [(1, b"v")])]
    assert counter.keys_read <= 15


def test_a_late_page_costs_what_the_first_does(store: Store) -> None:
    store.put(*[(b"r", 1, b"%04d" % number, b"v") for number in range(1_000)])
    counter = counting(store)
    costs = []
    for _ in store.pages(columns=10):
        costs.append(counter.keys_read)
        counter.keys_read = 0
    assert len(costs) == 100
    assert max(costs) - min(costs) <= 1
