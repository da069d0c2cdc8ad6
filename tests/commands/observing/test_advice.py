"""What the doctors say: each finding where it belongs, and nothing where nothing is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commands.observing.advice import (
    BARS,
    MEGABYTE,
    allocation_report,
    graph,
    latency_report,
    memory_report,
)
from commands.observing.latency import Event, LatencyMonitor
from commands.observing.memory import MemoryFigures


def monitor_of(name: str, *spikes: tuple[int, int]) -> LatencyMonitor:
    """A monitor that saw (Unix seconds, milliseconds)."""
    monitor = LatencyMonitor(10)
    for moment, milliseconds in spikes:
        monitor.add(name, milliseconds, moment)
    return monitor


def report(monitor: LatencyMonitor, slow_log_limit_us: int = 10_000) -> str:
    return latency_report(
        monitor.events, threshold_ms=monitor.threshold_ms, slow_log_limit_us=slow_log_limit_us
    )


def test_a_monitor_that_is_off_is_told_how_to_switch_on() -> None:
    assert "CONFIG SET latency-monitor-threshold" in report(LatencyMonitor())


def test_no_event_needs_no_advice() -> None:
    assert "10 ms" in report(LatencyMonitor(10))
    assert "What may help" not in report(LatencyMonitor(10))


def test_an_event_is_summed_up() -> None:
    told = report(monitor_of("command", (100, 30), (110, 10), (120, 50)))
    assert "command: 3 seconds with a spike, one every 10 s; 30 ms on average" in told
    assert "give or take 13 ms; the worst ever took 50 ms" in told


@pytest.mark.parametrize(
    ("event", "hint"),
    [("command", "SLOWLOG GET"), ("fast-command", "swaps"), ("commit", "appendfsync"),
     ("fsync", "disk"), ("something", "LATENCY HISTORY")],
)  # fmt: skip
def test_advice_fits_the_event(event: str, hint: str) -> None:
    assert hint in report(monitor_of(event, (100, 30))).partition("What may help")[2]


@pytest.mark.parametrize(("limit_us", "asked"), [(10_000, False), (10_001, True), (-1, True)])
def test_a_slow_log_that_misses_spikes_is_found(limit_us: int, asked: bool) -> None:
    told = report(monitor_of("command", (100, 30)), limit_us)
    assert ("CONFIG SET slowlog-log-slower-than 10000" in told) == asked


def test_one_second_is_not_two() -> None:
    told = report(monitor_of("command", (100, 30)))
    assert "command: 1 second with a spike; 30 ms on average" in told


def test_advice_is_given_once() -> None:
    monitor = monitor_of("commit", (100, 30))
    monitor.add("fsync", 40, 100)
    assert report(monitor).count("The disk is slow") == 1


def test_a_graph_has_a_bar_for_each_second() -> None:
    event = Event()
    for moment, milliseconds in [(0, 1), (939, 10), (999, 20)]:
        event.add(milliseconds, moment)
    headline, *bars = graph("command", event, 1000).splitlines()
    assert headline == "command: 3 seconds with a spike, the worst 20 ms, the worst ever 20 ms"
    assert [bar.split("|")[0].strip() for bar in bars] == ["-16 min", "-1 min", "-1 s"]
    assert [bar.count("#") for bar in bars] == [BARS // 20, BARS // 2, BARS]
    assert [bar.rsplit(" ", 1)[1] for bar in bars] == ["1", "10", "20"]


def test_a_graph_shows_the_newest() -> None:
    event = Event()
    for moment in range(3 * BARS):
        event.add(5, moment)
    assert len(graph("command", event, 3 * BARS).splitlines()) == 1 + BARS


SOUND = MemoryFigures(
    used=200 * MEGABYTE,
    resident=210 * MEGABYTE,
    peak=220 * MEGABYTE,
    startup=50 * MEGABYTE,
    system=4096 * MEGABYTE,
    clients=MEGABYTE,
    memtables=40 * MEGABYTE,
    cache=60 * MEGABYTE,
    files=900 * MEGABYTE,
)


def test_sound_figures_need_no_advice() -> None:
    assert memory_report(SOUND, 100) == "Nothing is odd about the use of memory.\n"


def test_where_there_is_no_data_there_is_nothing_to_say() -> None:
    empty = replace(SOUND, memtables=1, cache=0, files=0, peak=2000 * MEGABYTE)
    assert "nothing to say" in memory_report(empty, 1)


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"peak": 400 * MEGABYTE}, "Peak: 400.0 MB"),
        ({"resident": 400 * MEGABYTE}, "Resident: the process has 400.0 MB"),
        ({"clients": 100 * MEGABYTE}, "Clients: 100.0 MB wait for 100 clients"),
        ({"system": 256 * MEGABYTE}, "Machine:"),
    ],
)
def test_each_oddity_is_found_alone(changes: dict[str, int], finding: str) -> None:
    told = memory_report(replace(SOUND, **changes), 100)
    assert told.startswith(f"- {finding}")
    assert told.count("\n") == 1


def test_an_unknown_machine_is_not_too_small() -> None:
    assert "Machine" not in memory_report(replace(SOUND, system=0), 100)


def test_the_figures_are_told_one_a_line() -> None:
    lines = allocation_report(SOUND).splitlines()
    assert len(lines) == 7
    assert lines[0].split() == ["used", "by", "the", "process", str(200 * MEGABYTE)]
