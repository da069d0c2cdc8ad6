"""Counts and times of commands: none is lost between being noted and being sorted in."""

from __future__ import annotations

import pytest

from commands.observing.calls import WAITING_CALLS, CallStatistics


@pytest.mark.parametrize("count", [1, WAITING_CALLS - 1, WAITING_CALLS, 3 * WAITING_CALLS + 7])
def test_every_call_is_counted_and_timed(count: int) -> None:
    statistics = CallStatistics()
    for _ in range(count):
        statistics.record("get", 0.25)
    calls = statistics.of("get")
    assert calls.count == count
    assert calls.seconds == 0.25 * count
    assert calls.histogram.total == count
    assert calls.count == count


def test_no_more_than_some_durations_wait() -> None:
    statistics = CallStatistics()
    for _ in range(10 * WAITING_CALLS):
        statistics.record("get", 0.25)
    assert len(statistics.of("get").waiting) < WAITING_CALLS


def test_commands_are_told_apart_and_come_in_the_order_they_were_first_met() -> None:
    statistics = CallStatistics()
    statistics.of("set").rejected += 1
    statistics.record("get", 1.0)
    statistics.record("set", 2.0)
    assert {name: calls.seconds for name, calls in statistics.by_command.items()} == {
        "set": 2.0,
        "get": 1.0,
    }
    assert statistics.of("set").rejected == 1


def test_without_tracking_calls_are_counted_and_their_durations_forgotten() -> None:
    statistics = CallStatistics()
    statistics.record("get", 1.0)
    statistics.tracking = False
    statistics.record("get", 1.0)
    statistics.record("set", 1.0)
    statistics.tracking = True
    statistics.record("set", 1.0)
    assert (statistics.of("get").count, statistics.of("get").histogram.total) == (2, 1)
    assert (statistics.of("set").count, statistics.of("set").histogram.total) == (2, 1)


def test_a_container_stands_for_its_subcommands() -> None:
    statistics = CallStatistics()
    for name in ("config", "config|get", "config|set", "configure", "get"):
        statistics.of(name)
    assert list(statistics.named("CONFIG")) == ["config", "config|get", "config|set"]
    assert list(statistics.named("config|Set")) == ["config|set"]
    assert statistics.named("nothing") == {}


def test_a_reset_forgets_calls_and_errors() -> None:
    statistics = CallStatistics()
    statistics.record("get", 1.0)
    statistics.errors["ERR"] += 1
    statistics.reset()
    assert (statistics.by_command, statistics.errors) == ({}, {})
    statistics.record("get", 1.0)
    assert statistics.of("get").count == 1
