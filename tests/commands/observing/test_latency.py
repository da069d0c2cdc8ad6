"""The latency monitor: which spikes are remembered, and for how long."""

from __future__ import annotations

import math

from commands.observing.latency import HISTORY_SECONDS, LatencyMonitor


def test_without_a_threshold_nothing_is_remembered() -> None:
    monitor = LatencyMonitor()
    monitor.add("command", 10_000, 1)
    assert (monitor.events, monitor.limit_seconds) == ({}, math.inf)


def test_spikes_from_the_threshold_on_are_remembered() -> None:
    monitor = LatencyMonitor(100)
    for moment, milliseconds in enumerate([99, 100, 101]):
        monitor.add("command", milliseconds, moment)
    assert list(monitor.events["command"].samples) == [(1, 100), (2, 101)]
    assert monitor.limit_seconds == 0.1


def test_the_threshold_is_felt_at_once() -> None:
    monitor = LatencyMonitor(100)
    monitor.threshold_ms = 5
    monitor.add("command", 5, 1)
    monitor.threshold_ms = 0
    monitor.add("command", 500, 2)
    assert list(monitor.events["command"].samples) == [(1, 5)]
    assert monitor.limit_seconds == math.inf


def test_of_one_second_the_worst_spike_is_kept() -> None:
    monitor = LatencyMonitor(1)
    for moment, milliseconds in [(1, 5), (1, 9), (1, 7), (2, 6)]:
        monitor.add("command", milliseconds, moment)
    assert list(monitor.events["command"].samples) == [(1, 9), (2, 6)]


def test_the_history_is_bounded_and_the_worst_of_all_is_not_forgotten() -> None:
    monitor = LatencyMonitor(1)
    monitor.add("fsync", 999, 0)
    for moment in range(1, HISTORY_SECONDS + 1):
        monitor.add("fsync", 2, moment)
    event = monitor.events["fsync"]
    assert (len(event.samples), event.samples[0]) == (HISTORY_SECONDS, (1, 2))
    assert event.worst_ms == 999


def test_events_are_forgotten_by_name_or_all() -> None:
    monitor = LatencyMonitor(1)
    for name in ("command", "commit", "fsync"):
        monitor.add(name, 5, 1)
    assert monitor.reset(["commit", "commit", "nothing"]) == 1
    assert list(monitor.events) == ["command", "fsync"]
    assert monitor.reset() == 2
    assert monitor.reset() == 0
