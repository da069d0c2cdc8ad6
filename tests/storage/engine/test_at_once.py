"""What an engine does at once for calls that come in numbers, and what it leaves for one by one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from storage.errors import StoreStalled
from storage.memory.database import MemoryDatabase
from storage.model import (
    EVERYTHING,
    NameRange,
    NewCell,
    Page,
    PageLimits,
    PageRequest,
    Query,
    Selection,
)
from storage.opening import open_engine
from storage.packed import unpacked
from storage.rocks.database import RocksDatabase
from tests.storage.engine.store import SMALL, TOO_LONG, UNLIMITED, Store, plain

MUCH = 10**9


def query(
    selection: Selection = EVERYTHING, limits: PageLimits = UNLIMITED, *, packed: bool = True
) -> Query:
    return Query(selection, PageRequest(limits, packed=packed), number=1)


def first(
    store: Store, *rows: bytes, asked: Query | None = None, most_bytes: int = MUCH
) -> dict[bytes, Page]:
    return dict(store.engine.read_first(b"d", iter(rows), asked or query(), most_bytes))


def columns(page: Page) -> object:
    return plain(page.columns if page.packed is None else unpacked(page.packed))


def cell(row: bytes, timestamp: int = 1, column: bytes = b"c", value: bytes = b"v") -> NewCell:
    return (row, timestamp, column, value)


@pytest.fixture
def filled(store: Store) -> Store:
    """Three rows, in the log: a has one cell, b has three columns, c a column with three."""
    store.put(cell(b"a"))
    store.put(*[cell(b"b", 5, name) for name in (b"x", b"y\0", b"z")])
    store.put(*[cell(b"c", timestamp) for timestamp in (1, 2, 3)])
    assert store.engine.commit() is None
    return store


SELECTIONS = [
    EVERYTHING,
    Selection(versions=1),
    Selection((b"c", b"x"), versions=None),
    Selection(names=NameRange(prefix=b"y"), versions=2),
]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("limits", [UNLIMITED, PageLimits(columns=2, cells=2)])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_rows_read_at_once_are_as_those_read_one_by_one(
    filled: Store, selection: Selection, limits: PageLimits, packed: bool
) -> None:
    rows = [b"a", b"b", b"none", b"c", b"b"]
    pages = filled.engine.read_first(b"d", rows, query(selection, limits, packed=packed), MUCH)
    assert [row for row, _ in pages] == rows
    for row, page in pages:
        alone = filled.page(selection, row, limits)
        assert (page.cursor, columns(page)) == (alone.cursor, columns(alone))
        assert (page.version, page.first_expiry) == (alone.version, alone.first_expiry)


def test_it_ends_before_a_row_that_has_something_to_be_written(filled: Store) -> None:
    filled.put(cell(b"b", 9, b"new"))
    assert list(first(filled, b"a", b"b", b"c")) == [b"a"]
    filled.engine.commit()
    assert list(first(filled, b"a", b"b", b"c")) == [b"a", b"b", b"c"]


def test_what_is_committed_is_seen_although_others_have_read_before(filled: Store) -> None:
    assert columns(first(filled, b"a")[b"a"]) == [(b"c", [(1, b"v")])]
    filled.put(cell(b"a", 2))
    assert filled.read(row=b"a") == [(b"c", [(2, b"v"), (1, b"v")])]  # this commits
    assert columns(first(filled, b"a")[b"a"]) == [(b"c", [(2, b"v"), (1, b"v")])]


def test_it_ends_before_a_row_that_is_remembered(filled: Store) -> None:
    filled.engine.rows.limit_bytes = 100_000
    page = first(filled, b"b")[b"b"]
    filled.engine.remember(b"d", b"b", query(), page, b"the answer")
    assert list(first(filled, b"a", b"b", b"c")) == [b"a"]
    assert first(filled, b"b", b"c") == {}
    known = filled.engine.remembered_first(b"d", [b"b", b"b", b"c"], query(), MUCH)
    assert known == [b"the answer"] * 2


def test_it_ends_with_the_page_that_has_enough_bytes(filled: Store) -> None:
    assert list(first(filled, b"a", b"b", b"c", most_bytes=0)) == [b"a"]
    assert list(first(filled, b"none", b"a", b"b", most_bytes=0)) == [b"none", b"a"]


def test_it_ends_before_what_is_refused(filled: Store) -> None:
    assert list(first(filled, b"a", TOO_LONG, b"b")) == [b"a"]
    assert filled.engine.read_first(b"absent", [b"a"], query(), MUCH) == []


@pytest.mark.parametrize("remembers", [0, 100_000])
def test_a_row_that_is_refused_takes_nothing_from_those_before_it(
    filled: Store, remembers: int
) -> None:
    """Also while something waits to be written to another row."""
    filled.engine.rows.limit_bytes = remembers
    filled.put(cell(b"another"))
    assert list(first(filled, b"a", b"b", TOO_LONG, b"c")) == [b"a", b"b"]


def test_a_store_that_was_opened_again_meanwhile_is_read_one_by_one(tmp_path: Path) -> None:
    """It may do so by itself, and then ends all views."""
    with asyncio.Runner() as runner:
        store = Store(open_engine(tmp_path / "data", SMALL), runner)
        store.put(cell(b"a"))
        store.engine.commit()
        assert list(first(store, b"a")) == [b"a"]
        reopen(store)
        assert first(store, b"a") == {}
        assert store.read(row=b"a") == [(b"c", [(1, b"v")])]
        store.engine.commit()
        assert list(first(store, b"a")) == [b"a"]
        runner.run(store.engine.close())


def reopen(store: Store) -> None:
    assert isinstance(store.engine._store, RocksDatabase)
    store.engine._store.reopen()


def test_it_gives_up_where_much_was_deleted(filled: Store) -> None:
    rows = [b"a%03d" % number for number in range(300)]
    filled.put(*[cell(row) for row in rows])
    for row in rows:
        filled.delete(row)
    filled.engine.commit()
    found = first(filled, b"b", b"a")
    assert columns(found[b"b"]) == filled.read(row=b"b")
    if not isinstance(filled.engine._store, MemoryDatabase):
        assert b"a" not in found  # its end is behind all of these
    assert filled.read(row=b"a") == [(b"c", [(1, b"v")])]


def test_cells_are_put_at_once_where_nothing_speaks_against_it(filled: Store) -> None:
    engine = filled.engine
    assert engine.puts_at_once(b"d")
    assert engine.put_at_once(b"d", [cell(b"a", 7), cell(b"new", 8)])
    assert filled.read(row=b"a") == [(b"c", [(7, b"v"), (1, b"v")])]
    assert filled.read(row=b"new") == [(b"c", [(8, b"v")])]


def test_cells_that_would_be_refused_are_not_put_in_part(filled: Store) -> None:
    version = filled.engine.version(b"d")
    assert not filled.engine.put_at_once(b"d", [cell(b"a", 7), cell(TOO_LONG)])
    assert not filled.engine.put_at_once(b"d", [cell(b"a", 7), cell(b"a", column=TOO_LONG)])
    assert filled.engine.version(b"d") == version
    assert filled.read(row=b"a") == [(b"c", [(1, b"v")])]


def test_nothing_is_put_at_once_into_a_dataset_that_is_not_there(filled: Store) -> None:
    assert not filled.engine.puts_at_once(b"absent")
    assert not filled.engine.put_at_once(b"absent", [cell(b"a")])
    assert filled.engine.open_dataset(b"absent") is None


def test_nothing_is_put_at_once_while_the_store_is_stalled(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stalled(_operations: object, *, durable: bool) -> None:
        raise StoreStalled

    filled.put(cell(b"a", 2))
    with monkeypatch.context() as patch:
        patch.setattr(filled.engine._store, "write", stalled)
        with pytest.raises(StoreStalled):
            filled.engine.commit()
    assert not filled.engine.puts_at_once(b"d")
    assert not filled.engine.put_at_once(b"d", [cell(b"a", 3)])
    assert filled.engine.commit() is None
    assert filled.engine.put_at_once(b"d", [cell(b"a", 3)])
