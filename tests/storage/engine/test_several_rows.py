"""Several rows in one call, and scans."""

from __future__ import annotations

from storage.model import ALL_NAMES, EVERYTHING, NameRange, Page, PageLimits, PageRequest, Selection
from tests.storage.engine.store import NOW, UNLIMITED, Store, counting, plain, some_columns


def test_rows_are_read_in_the_order_asked_repeats_included(store: Store) -> None:
    store.put((b"a", 1, b"c", b"1"), (b"b", 1, b"c", b"2"))
    request = PageRequest(UNLIMITED)
    pages = store.run(store.engine.read_rows(b"d", [b"b", b"x", b"a", b"b"], EVERYTHING, request))
    values = [[value for _, cells in plain(page.columns) for _, value in cells] for page in pages]
    assert values == [[b"2"], [], [b"1"], [b"2"]]
    assert {page.cursor for page in pages} == {b"0"}


def test_a_row_that_the_reply_does_not_reach_has_a_cursor(store: Store) -> None:
    store.put((b"a", 1, b"c", b"1"), (b"b", 1, b"c", b"2"))
    request = PageRequest(PageLimits(cells=1))
    pages = store.run(store.engine.read_rows(b"d", [b"a", b"b", b"x"], EVERYTHING, request))
    assert pages[0] == Page(b"0", [(b"c", [(1, b"1")])])
    assert [page.columns for page in pages[1:]] == [[], []]
    assert b"0" not in [page.cursor for page in pages[1:]]
    assert store.page(row=b"b", cursor=pages[1].cursor) == Page(b"0", [(b"c", [(1, b"2")])])
    assert store.page(row=b"x", cursor=pages[2].cursor) == Page(b"0", [])


def test_a_row_that_is_not_there_costs_the_reply_something(store: Store) -> None:
    store.create()
    request = PageRequest(PageLimits(scan=2))
    pages = store.run(store.engine.read_rows(b"d", [b"x"] * 4, EVERYTHING, request))
    assert [page.cursor == b"0" for page in pages] == [True, True, False, False]


def test_columns_are_listed_in_pages(store: Store) -> None:
    some_columns(store)
    store.put((b"r", 1, b"gone", b"v"), expires_at=NOW - 1)
    request = PageRequest(UNLIMITED, columns=2)
    cursor, names = store.run(store.engine.read_columns(b"d", b"r", ALL_NAMES, request))
    assert names == [b"a", b"ab"]
    request = PageRequest(UNLIMITED, cursor=cursor)
    last = store.run(store.engine.read_columns(b"d", b"r", ALL_NAMES, request))
    assert last == (b"0", [b"b"])


def test_rows_with_a_visible_cell_are_counted(store: Store) -> None:
    store.put((b"a", 1, b"c", b"v"), (b"b", 1, b"c", b""))
    store.put((b"gone", 1, b"c", b"v"), expires_at=NOW - 1)
    rows = [b"a", b"b", b"gone", b"missing", b"a"]
    assert store.run(store.engine.count_rows(b"d", rows)) == 3


def test_a_scan_gives_rows_in_order_within_its_bounds(store: Store) -> None:
    store.put(*[(row, 1, b"c", b"v") for row in (b"b", b"a", b"\xff", b"", b"ab")])
    store.put((b"gone", 1, b"c", b"v"), expires_at=NOW - 1)

    def rows(names: NameRange) -> list[bytes]:
        page = store.scan(names)
        assert page.cursor == b"0"
        return [row for row, _, _ in page.rows]

    assert rows(ALL_NAMES) == [b"", b"a", b"ab", b"b", b"\xff"]
    assert rows(NameRange(prefix=b"a")) == [b"a", b"ab"]
    assert rows(NameRange(start=b"ab", stop=b"\xff")) == [b"ab", b"b"]
    assert rows(NameRange(start=b"b", stop=b"b")) == []


def test_a_scan_has_a_cursor_for_rows_and_one_inside_each(store: Store) -> None:
    for row in (b"1", b"2", b"3"):
        store.put(*[(row, 1, column, b"v") for column in (b"a", b"b", b"c")])
    limits = PageLimits(columns=2)
    page = store.scan(limits=limits, limit=2)
    assert [(row, [name for name, _ in columns]) for row, columns, _ in page.rows] == [
        (b"1", [b"a", b"b"]),
        (b"2", [b"a", b"b"]),
    ]
    for row, _, cursor in page.rows:
        assert store.page(row=row, cursor=cursor) == Page(b"0", [(b"c", [(1, b"v")])])
    last = store.scan(limits=limits, limit=2, cursor=page.cursor)
    assert (last.cursor, [row for row, _, _ in last.rows]) == (b"0", [b"3"])


def test_a_scan_passes_few_rows_without_the_wanted_column_at_a_time(store: Store) -> None:
    store.put(*[(b"%03d" % number, 1, b"c", b"v") for number in range(200)])
    store.put((b"200", 1, b"wanted", b"v"))
    counter = counting(store)
    found, limits = [], PageLimits(scan=20)
    for page in store.scan_pages(ALL_NAMES, Selection((b"wanted",)), limits):
        assert counter.keys_read <= 50
        counter.keys_read = 0
        found += [row for row, _, _ in page.rows]
    assert found == [b"200"]


def test_a_row_not_begun_is_scanned_with_what_was_written_to_it_meanwhile(store: Store) -> None:
    store.put((b"1", 1, b"c", b"v"), (b"2", 1, b"c", b"v"))
    page = store.scan(limits=PageLimits(scan=1))
    store.put((b"2", 2, b"a", b"new"))
    rest = store.scan(cursor=page.cursor)
    assert rest.rows == [(b"2", [(b"a", [(2, b"new")]), (b"c", [(1, b"v")])], b"0")]
