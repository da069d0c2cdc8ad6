"""What an engine remembers of rows, and when it must not. Against stale replies as clients see
them: tests/against_model/test_row_cache.py."""

from __future__ import annotations

import pytest

from storage.errors import StoreFailure
from storage.model import Page, PageLimits, PageRequest, Query, Selection
from tests.storage.engine.store import Store

QUERY = Query(Selection(), PageRequest(PageLimits()), number=1)


def read(store: Store) -> Page:
    return store.run(store.engine.read_row(b"d", b"r", QUERY.selection, QUERY.request))


@pytest.fixture
def remembering(store: Store) -> Store:
    """A store with a row."""
    store.engine.rows.limit_bytes = 100_000
    store.create()
    store.write(1)
    return store


def remembered(store: Store) -> bytes | None:
    return store.engine.remembered(b"d", b"r", QUERY)


def test_an_answer_is_given_again_until_the_row_changes(remembering: Store) -> None:
    engine = remembering.engine
    engine.remember(b"d", b"r", QUERY, read(remembering), b"the answer")
    assert remembered(remembering) == b"the answer"
    remembering.write(2)
    assert remembered(remembering) is None


def test_what_was_read_before_a_write_is_not_kept_after_it(remembering: Store) -> None:
    page = read(remembering)
    remembering.write(2)
    remembering.engine.commit()
    remembering.engine.remember(b"d", b"r", QUERY, page, b"old")
    assert remembered(remembering) is None


def test_what_a_transaction_sees_is_not_kept(remembering: Store) -> None:
    async def inside() -> None:
        async with remembering.engine.transaction():
            await remembering.engine.put(b"d", [(b"r", 2, b"c", b"2")], None, None)
            page = await remembering.engine.read_row(b"d", b"r", QUERY.selection, QUERY.request)
            remembering.engine.remember(b"d", b"r", QUERY, page, b"not written yet")

    remembering.run(inside())
    assert remembered(remembering) is None


def test_a_failure_forgets_everything(remembering: Store) -> None:
    remembering.engine.remember(b"d", b"r", QUERY, read(remembering), b"the answer")
    remembering.engine.fail(StoreFailure("the disk is gone"))
    assert remembered(remembering) is None
    assert (len(remembering.engine.rows), remembering.engine.rows.bytes) == (0, 0)


def test_of_one_row_a_few_answers_are_kept(remembering: Store) -> None:
    page = read(remembering)
    queries = [Query(QUERY.selection, QUERY.request, number) for number in range(1, 30)]
    for query in queries:
        remembering.engine.remember(b"d", b"r", query, page, b"%d" % query.number)
    known = [remembering.engine.remembered(b"d", b"r", query) for query in queries]
    assert known[-1] == b"29"
    assert 0 < len(known) - known.count(None) <= 8
    assert remembering.engine.rows.bytes < 8 * 1_000
    remembering.write(2)
    assert remembering.engine.rows.bytes == 0
