"""kill -9 at random moments: what was answered is there, whole, and nothing is there in part.

The short form of `make crash`; tests/soak says what writers do and when the server dies. And that
the one who looks for losses sees them.
"""

from __future__ import annotations

import copy
import random
from pathlib import Path

import pytest

from tests.soak.calls import STAMPED, Create, Dataset, Increment, Put, Store, Unit
from tests.soak.crash import MODES, CrashTest
from tests.soak.fate import Lost, Stamps, as_expected, fate

ROUNDS = 2
MOST_CALLS = 1_200


@pytest.mark.parametrize("mode", MODES)
def test_killed_at_random_moments_it_keeps_what_it_answered(tmp_path: Path, mode: str) -> None:
    seed = random.randrange(10**6)
    print(f"the same calls again: python -m tests.soak crash --mode {mode} --seed {seed}")
    test = CrashTest(tmp_path / "data", mode, seed, most_calls=MOST_CALLS)
    test.run(ROUNDS)
    assert test.moments.total() == ROUNDS


# Whoever looks for losses sees them

ACKNOWLEDGED: Store = {
    b"d": Dataset(0, {b"r": {b"c": [(STAMPED, b"2"), (7, b"1")], b"e": [(7, b"")]}}),
    b"f": Dataset(3, {}),
}
UNANSWERED = [
    Unit((Put(b"d", ((b"s", 1, b"c", b"one"), (b"s", 1, b"e", b"two"))),)),
    Unit((Increment(b"d", b"r", b"c", 5), Put(b"f", ((b"s", 1, b"c", b"v"),))), True),
    Unit((Create(b"g", 1),)),
]


def after(count: int) -> Store:
    """What the server holds if so many of the unanswered calls have happened."""
    store = copy.deepcopy(ACKNOWLEDGED)
    for unit in UNANSWERED[:count]:
        unit.apply(store)
    return store


@pytest.mark.parametrize("count", range(len(UNANSWERED) + 1))
def test_any_number_of_the_unanswered_may_have_happened(count: int) -> None:
    store = copy.deepcopy(ACKNOWLEDGED)
    assert fate(store, UNANSWERED, after(count)) == count
    assert store == after(count)


def lost(found: Store) -> bool:
    try:
        fate(copy.deepcopy(ACKNOWLEDGED), UNANSWERED, found)
    except Lost:
        return True
    return False


def test_what_was_acknowledged_must_be_there() -> None:
    found = after(0)
    assert not lost(found)
    del found[b"d"].rows[b"r"][b"e"]
    assert lost(found)
    found = after(0)
    found[b"d"].rows[b"r"][b"c"].pop()
    assert lost(found)
    found = after(0)
    del found[b"f"]
    assert lost(found)


def test_no_call_may_be_there_in_part() -> None:
    found = after(1)
    del found[b"d"].rows[b"s"][b"e"]
    assert lost(found)
    found = after(2)
    del found[b"f"].rows[b"s"]
    assert lost(found), "half a transaction"
    found = after(3)
    found[b"g"].max_versions = 0
    assert lost(found)


def test_no_call_may_be_there_without_those_before_it() -> None:
    found = after(0)
    UNANSWERED[1].apply(found)
    assert lost(found)


def rows_of(
    time: int, value: bytes
) -> dict[bytes, dict[bytes, dict[bytes, list[tuple[int, bytes]]]]]:
    return {b"d": {b"r": {b"c": [(time, value), (5, b"given")]}}}


def test_the_clock_may_not_go_back() -> None:
    now = 1_700_000_000_000
    stamps = Stamps()
    stamps.begin(now, {})
    stamps.begin(now + 10, rows_of(now + 5, b"life 0, "))
    stamps.begin(now + 20, rows_of(now + 15, b"life 1, "))
    with pytest.raises(Lost, match="written in life 1 at"):
        stamps.begin(now + 30, rows_of(now + 9, b"life 1, "))
    with pytest.raises(Lost, match="is later than a new one"):
        stamps.begin(now + 30, rows_of(now + 31, b"life 2, "))
    with pytest.raises(Lost, match="out of order"):
        stamps.begin(now + 30, {b"d": {b"r": {b"c": [(1, b""), (2, b"")]}}})


def test_timestamps_of_the_server_are_not_compared_by_value() -> None:
    rows = rows_of(1_700_000_000_000, b"v")[b"d"]
    assert as_expected(rows) == {b"r": {b"c": [(STAMPED, b"v"), (5, b"given")]}}
