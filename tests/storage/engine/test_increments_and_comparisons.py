"""Increments, and cells put if the newest one is as expected."""

from __future__ import annotations

import pytest

from storage.errors import IncrementOverflow, NewestCellInFuture, NotAnInteger, TimestampNotNewer
from storage.model import Selection
from tests.storage.engine.store import NOW, Store


def test_an_absent_column_counts_as_0(store: Store) -> None:
    assert store.increment(5) == 5
    assert store.increment(-7) == -2
    assert store.read() == [(b"c", [(NOW, b"-2"), (NOW, b"5")])]


def test_an_increment_keeps_the_expiry_of_the_cell_before(store: Store) -> None:
    store.put((b"r", 1, b"c", b"41"), expires_at=NOW + 5)
    assert store.increment(1) == 42
    store.now += 6
    assert store.shown() == []
    assert store.increment(1) == 1


@pytest.mark.parametrize("value", [b"", b"x", b"1.0", b"+1", b"01", b" 1", b"-0", b"9" * 19])
def test_what_is_no_integer_is_not_incremented(value: bytes, store: Store) -> None:
    store.put((b"r", 1, b"c", value))
    with pytest.raises(NotAnInteger):
        store.increment(1)
    assert store.read() == [(b"c", [(1, value)])]


@pytest.mark.parametrize(("value", "amount"), [(2**63 - 1, 1), (-(2**63), -1)])
def test_an_increment_does_not_overflow(value: int, amount: int, store: Store) -> None:
    store.put((b"r", 1, b"c", b"%d" % value))
    with pytest.raises(IncrementOverflow):
        store.increment(amount)
    assert store.shown() == [1]
    assert store.increment(-amount) == value - amount


def test_a_cell_in_the_future_is_not_incremented(store: Store) -> None:
    store.put((b"r", NOW + 1, b"c", b"1"))
    with pytest.raises(NewestCellInFuture):
        store.increment(1)
    assert store.shown() == [NOW + 1]
    store.now += 1
    assert store.increment(1) == 2
    assert store.shown() == [NOW + 1, NOW + 1]


def test_a_cell_is_put_if_the_newest_value_is_as_expected(store: Store) -> None:
    store.put((b"r", 1, b"c", b"old"), (b"r", 0, b"c", b"older"))
    assert not store.compare_and_put(b"older", 2)
    assert not store.compare_and_put(None, 2)
    assert store.shown() == [1, 0]
    assert store.compare_and_put(b"old", 2)
    assert store.read(Selection()) == [(b"c", [(2, b"new")])]


def test_an_absent_column_is_told_from_an_empty_value(store: Store) -> None:
    assert not store.compare_and_put(b"")
    assert store.engine.dataset_names() == []
    assert store.compare_and_put(None, 1)
    store.put((b"r", 2, b"c", b""))
    assert not store.compare_and_put(None, 3)
    assert store.compare_and_put(b"", 3)


def test_a_compared_cell_has_to_be_the_newest(store: Store) -> None:
    store.put((b"r", NOW, b"c", b"old"))
    for timestamp in (NOW - 1, NOW):
        with pytest.raises(TimestampNotNewer):
            store.compare_and_put(b"old", timestamp)
    assert store.shown() == [NOW]
    assert store.compare_and_put(b"old", None)
    assert store.shown() == [NOW, NOW]


def test_a_compared_cell_may_not_have_expired(store: Store) -> None:
    store.create(ttl_seconds=1)
    for timestamp, expires_at in [(NOW, NOW - 1), (NOW - 1_001, None)]:
        with pytest.raises(TimestampNotNewer):
            store.compare_and_put(None, timestamp, expires_at)
    assert store.shown() == []
    assert store.compare_and_put(None, NOW - 1_000, NOW)


def test_a_clock_behind_a_future_cell_does_not_put(store: Store) -> None:
    store.put((b"r", NOW + 1, b"c", b"old"))
    with pytest.raises(TimestampNotNewer):
        store.compare_and_put(b"old", None)
    assert store.shown() == [NOW + 1]
