"""Durations in buckets: Redis's bounds, percentiles near the truth, nothing lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.observing.histogram import Histogram

durations = st.lists(st.floats(0, 100), min_size=1, max_size=200)


def histogram_of(*microseconds: float) -> Histogram:
    histogram = Histogram()
    histogram.add([duration / 1e6 for duration in microseconds])
    return histogram


def test_an_empty_one_says_nothing() -> None:
    histogram = Histogram()
    assert (histogram.total, histogram.percentile_us(50), histogram.cumulative()) == (0, 0.0, {})


@pytest.mark.parametrize(
    ("microseconds", "longest"),
    [(1, 1.003), (4, 4.015), (6, 6.015), (20, 20.095), (46, 46.079), (144, 144.383), (577, 577.535),
     (10_158, 10158.079)],
)  # fmt: skip
def test_a_percentile_is_the_longest_of_its_bucket_as_in_redis(
    microseconds: float, longest: float
) -> None:
    assert histogram_of(microseconds).percentile_us(50) == pytest.approx(longest, abs=0.005)


def test_percentiles_count_calls() -> None:
    histogram = histogram_of(*[1] * 98, 1000, 5000)
    assert histogram.percentile_us(98) == pytest.approx(1, rel=0.01)
    assert histogram.percentile_us(99) == pytest.approx(1000, rel=0.01)
    assert histogram.percentile_us(99.9) == pytest.approx(5000, rel=0.01)


def test_nothing_is_below_zero_percent_or_above_a_hundred() -> None:
    histogram = histogram_of(3, 5000)
    assert histogram.percentile_us(0) == pytest.approx(2.992, abs=0.001)
    assert histogram.percentile_us(100) == pytest.approx(5000, rel=0.01)


@pytest.mark.parametrize(
    ("microseconds", "bound"),
    [(0, 1), (0.4, 1), (1, 1), (1.5, 2), (2, 2), (3, 4), (5, 8), (10, 16), (20, 33), (43, 66),
     (97, 132), (144, 264), (409, 528), (577, 1056), (10_158, 16_908), (3e6, 4_328_521)],
)  # fmt: skip
def test_the_bounds_are_those_of_redis(microseconds: float, bound: int) -> None:
    assert histogram_of(microseconds).cumulative() == {bound: 1}


def test_bounds_without_more_calls_are_left_out() -> None:
    assert histogram_of(0.5, 0.6, 3, 3, 100).cumulative() == {1: 2, 4: 4, 132: 5}


@given(durations)
def test_the_last_bound_has_all_calls(seconds: list[float]) -> None:
    histogram = Histogram()
    histogram.add(seconds)
    counts = list(histogram.cumulative().values())
    assert counts == sorted(set(counts))
    assert counts[-1] == histogram.total == len(seconds)


@given(durations, st.integers(1, 100))
def test_a_percentile_is_right_to_a_hundredth(seconds: list[float], percent: int) -> None:
    histogram = Histogram()
    histogram.add(seconds)
    place = max(1, int(percent / 100 * len(seconds) + 0.5))
    true_us = sorted(seconds)[place - 1] * 1e6
    assert histogram.percentile_us(percent) == pytest.approx(true_us, rel=0.01, abs=0.001)


@given(durations, durations)
def test_adding_twice_is_adding_all(first: list[float], second: list[float]) -> None:
    twice, once = Histogram(), Histogram()
    twice.add(first)
    twice.add(second)
    once.add(first + second)
    assert twice.cumulative() == once.cumulative()
    assert twice.percentile_us(50) == once.percentile_us(50)
