"""Random rows and limits: pages add up to the whole, and forged cursors do no harm."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from storage.cursors import Binding, Position
from storage.errors import InvalidCursor
from storage.model import (
    ALL_NAMES,
    EVERYTHING,
    DatasetSettings,
    NameRange,
    Page,
    PageLimits,
    Selection,
    TimeRange,
)
from tests.storage.engine.store import NOW, Columns, Store, joined, plain, some_columns
from tests.storage.engine.stories import (
    CONTENT,
    LIMITS,
    RANGES,
    ROWS,
    SELECTIONS,
    SETTINGS,
    Content,
    expected_row,
    filled,
    random_stories,
    wanted,
)


@random_stories(200)
@given(
    st.binary(max_size=30),
    st.one_of(st.none(), st.integers(0, 5)),
    st.sampled_from([EVERYTHING, Selection(), Selection((b"a", b"b"), times=TimeRange(2, 2))]),
)
def test_a_forged_cursor_begins_elsewhere_or_is_invalid(
    store: Store, bound: bytes, returned: int | None, selection: Selection
) -> None:
    """The digest is no secret: whoever works it out may begin where he likes."""
    store.run(store.engine.create_dataset(b"d", DatasetSettings(2), if_not_exists=True))
    some_columns(store)
    position = Position(bound.replace(b"0", b"\x00"), returned)
    cursor = Binding(b"row", (b"d", b"r"), selection).encode(position)
    with contextlib.suppress(InvalidCursor):
        found = {name for page in store.pages(selection, cursor=cursor) for name, _ in page.columns}
        assert found <= {b"a", b"ab", b"b"}
    cursor = Binding(b"scan", (b"d",), selection, ALL_NAMES).encode(position)
    with contextlib.suppress(InvalidCursor):
        assert {row for row, _, _ in store.scan(ALL_NAMES, selection, cursor=cursor).rows} <= {b"r"}


@random_stories(100)
@given(SETTINGS, CONTENT, ROWS, SELECTIONS, LIMITS)
def test_the_pages_of_a_row_add_up_to_the_whole(
    store: Store,
    kept: DatasetSettings,
    content: Content,
    row: bytes,
    selection: Selection,
    limits: PageLimits,
) -> None:
    filled(store, kept, content)
    whole = expected_row(content, row, selection, kept, NOW)
    assert store.read(selection, row) == whole
    pages = list(store.pages(selection, row, limits, columns=limits.columns))
    assert joined(pages) == whole
    for page in pages:
        sizes = [len(value) for _, cells in plain(page.columns) for _, value in cells]
        assert len(page.columns) <= limits.columns
        assert len(sizes) <= min(limits.cells, limits.scan)
        assert sum(sizes) <= limits.bytes or len(sizes) == 1


@random_stories(100)
@given(SETTINGS, CONTENT, RANGES, SELECTIONS, LIMITS)
def test_the_pages_of_a_scan_add_up_to_the_whole(
    store: Store,
    kept: DatasetSettings,
    content: Content,
    names: NameRange,
    selection: Selection,
    limits: PageLimits,
) -> None:
    filled(store, kept, content)
    whole = [
        (row, columns)
        for row in sorted({row for row, _, _ in content})
        if wanted(row, names) and (columns := expected_row(content, row, selection, kept, NOW))
    ]
    assert [(row, plain(columns)) for row, columns, _ in store.scan(names, selection).rows] == whole
    found: list[tuple[bytes, Columns]] = []
    for page in store.scan_pages(names, selection, limits):
        assert len(page.rows) <= limits.rows
        for row, begun, cursor in page.rows:
            rest = store.pages(selection, row, cursor=cursor) if cursor != b"0" else ()
            found.append((row, joined([Page(cursor, begun), *rest])))
    assert found == whole
