"""The hybrid clock: it never goes back, whatever the wall clock does, and no two stamps are alike.

The wall is a number that each test turns by hand.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from storage.clock import RESERVE_MS, HybridClock
from storage.encoding import TOP_SEQUENCE, stamp_of

START_MS = 1_700_000_000_000


class Wall:
    """A wall clock in nanoseconds, turned by hand in milliseconds."""

    def __init__(self, ms: int = START_MS) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms * 1_000_000 + 999_999


def stamp(clock: HybridClock) -> tuple[int, int]:
    return stamp_of(clock.stamp())


def test_it_follows_the_wall() -> None:
    wall = Wall()
    clock = HybridClock(wall_ns=wall)
    assert clock.now() == START_MS
    wall.ms += 7
    assert clock.now() == START_MS + 7


def test_it_stands_while_the_wall_goes_back() -> None:
    wall = Wall()
    clock = HybridClock(wall_ns=wall)
    assert stamp(clock) == (START_MS, 1)
    wall.ms -= 60_000
    assert clock.now() == START_MS
    assert stamp(clock) == (START_MS, 2)


def test_stamps_of_a_millisecond_are_counted_from_1() -> None:
    wall = Wall()
    clock = HybridClock(wall_ns=wall)
    assert [stamp(clock) for _ in range(3)] == [(START_MS, 1), (START_MS, 2), (START_MS, 3)]
    wall.ms += 1
    assert stamp(clock) == (START_MS + 1, 1)


def test_a_reading_uses_up_no_stamp() -> None:
    clock = HybridClock(wall_ns=Wall())
    assert clock.now() == START_MS
    assert stamp(clock) == (START_MS, 1)
    assert clock.now() == START_MS
    assert stamp(clock) == (START_MS, 2)


def test_after_65535_stamps_comes_the_next_millisecond() -> None:
    clock = HybridClock(wall_ns=Wall())
    stamps = [clock.stamp() for _ in range(TOP_SEQUENCE + 1)]
    assert stamp_of(stamps[-2]) == (START_MS, TOP_SEQUENCE)
    assert stamp_of(stamps[-1]) == (START_MS + 1, 1)
    assert clock.now() == START_MS + 1
    assert len(set(stamps)) == TOP_SEQUENCE + 1


def test_it_begins_after_the_stored_moment() -> None:
    clock = HybridClock(START_MS + 5, Wall())
    assert clock.now() == START_MS + 5
    assert stamp(clock) == (START_MS + 6, 1)


def test_a_stored_moment_in_the_past_is_of_no_account() -> None:
    clock = HybridClock(START_MS - 5, Wall())
    assert stamp(clock) == (START_MS, 1)


def test_it_wants_a_reservation_once_it_reaches_the_reserved_moment() -> None:
    wall = Wall()
    clock = HybridClock(START_MS + 2, wall)
    clock.now()
    assert clock.needs_reservation
    clock.reserved_ms = clock.next_reservation()
    assert clock.reserved_ms == START_MS + 2 + RESERVE_MS
    assert not clock.needs_reservation
    wall.ms = clock.reserved_ms - 1
    clock.now()
    assert not clock.needs_reservation
    wall.ms += 1
    clock.now()
    assert clock.needs_reservation


@settings(deadline=None)
@given(
    st.integers(0, 50),
    st.lists(st.one_of(st.integers(-30, 30), st.sampled_from(["now", "stamp"])), max_size=30),
)
def test_nothing_it_says_is_earlier_than_what_it_said(
    stored_ms: int, story: list[int | str]
) -> None:
    wall = Wall(25)
    clock = HybridClock(stored_ms, wall)
    last_reading, last_stamp = stored_ms, (stored_ms, TOP_SEQUENCE)
    for event in story:
        if isinstance(event, int):
            wall.ms = max(0, wall.ms + event)
        elif event == "now":
            assert clock.now() >= max(last_reading, last_stamp[0])
            last_reading = clock.now()
        else:
            found = stamp(clock)
            assert found > last_stamp
            assert found[0] >= last_reading
            assert 1 <= found[1] <= TOP_SEQUENCE
            last_stamp = found
