"""What follows from figures of memory, also from odd ones."""

from __future__ import annotations

from dataclasses import replace

from commands.observing.memory import MemoryFigures

FIGURES = MemoryFigures(
    used=1000,
    resident=1500,
    peak=2000,
    startup=400,
    system=0,
    clients=10,
    memtables=200,
    cache=100,
    files=5000,
)


def test_what_is_not_of_datasets_is_overhead() -> None:
    assert (FIGURES.datasets, FIGURES.overhead) == (300, 700)


def test_shares_and_ratios() -> None:
    assert FIGURES.datasets_percent == 50.0
    assert FIGURES.peak_percent == 50.0
    assert FIGURES.resident_ratio == 1.5


def test_datasets_have_no_more_than_there_is() -> None:
    odd = replace(FIGURES, memtables=5000)
    assert (odd.datasets, odd.overhead, odd.datasets_percent) == (1000, 0, 100.0)


def test_nothing_is_divided_by_nothing() -> None:
    odd = replace(FIGURES, used=0, peak=0, startup=0)
    assert (odd.datasets_percent, odd.peak_percent, odd.resident_ratio) == (0.0, 0.0, 1500.0)
