"""What the examples are made of, and how many there are.

Strategies say places, not names: which row, column, timestamp or expiry of those that an example
has. There are few, so that they collide.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.against_model.steered import HOUR_MS, Word
from tests.model import LAST_MOMENT, Settings, Span

EXAMPLES = int(os.environ.get("COLONNADE_EXAMPLES", "60"))
STATEFUL = settings(
    max_examples=EXAMPLES,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

NAMES = st.sampled_from(
    [b"", b"\0", b"\0\0", b"\0\1", b"\xff", b"\r\n", b"a", b"ab", b"a\0b", b"0", b"*", b"EX"]
) | st.binary(max_size=5)
VALUES = st.sampled_from(
    [b"", b"0", b"1", b"-7", b"9223372036854775807", b"a", b"\0\r\n", b"v" * 150, b"w" * 500]
) | st.binary(max_size=5)
# Which row, column, timestamp or expiry of those an example is made of: few, so that they collide.
PLACES = st.integers(0, 4)
PERHAPS = st.none() | PLACES


@dataclass(frozen=True, slots=True)
class Moment:
    """A timestamp: so many milliseconds after 0, the start of the example, or now."""

    after: str
    milliseconds: int


MOMENTS = st.sampled_from(
    [Moment("start", at) for at in (0, 1, 2, -1, -2, 600_000, HOUR_MS, -600_000, -2 * HOUR_MS)]
    + [Moment("start", at - HOUR_MS) for at in (-1, 0, 1)]
    + [Moment("zero", at) for at in (0, 1, LAST_MOMENT)]
    + [Moment("now", 0)]
)


@dataclass(frozen=True, slots=True)
class Expiry:
    option: str
    at: Moment


EXPIRIES = st.sampled_from(
    [Expiry("EX", Moment("zero", seconds)) for seconds in (1, 600, 7200)]
    + [Expiry("PX", Moment("zero", milliseconds)) for milliseconds in (1, 600_000)]
    + [Expiry("EXAT", Moment("start", at)) for at in (-1_500, 500, 600_500)]
    + [Expiry("PXAT", Moment("start", at)) for at in (-1, 0, 1, 600_000, 2 * HOUR_MS)]
    + [Expiry("PXAT", Moment("zero", at)) for at in (1, LAST_MOMENT)]
)
SETTINGS = st.builds(
    Settings,
    st.sampled_from([0, 1, 1, 2, 3]),
    st.sampled_from([0, 0, 1, 600, 3600, 7200, LAST_MOMENT // 1000]),
)
Entry = tuple[int, int | None, int, bytes]
ENTRIES = st.lists(st.tuples(PLACES, PERHAPS, PLACES, VALUES), min_size=1, max_size=6)


@dataclass(frozen=True, slots=True)
class Interval:
    """RANGE; None is the end of time on that side."""

    start: int | None
    end: int | None


INTERVALS = st.builds(Interval, PERHAPS, PERHAPS)
SPANS = st.builds(
    Span,
    prefix=st.just(b"") | NAMES,
    start=st.just(b"") | NAMES,
    stop=st.none() | NAMES,
)
COLUMN_LISTS = st.lists(PLACES, min_size=1, max_size=4)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a read. `versions` 0 leaves the option out, None is ALL."""

    columns: list[int] | None
    span: Span
    versions: int | None
    interval: Interval | None


def wanted(columns: st.SearchStrategy[list[int]]) -> st.SearchStrategy[Wanted]:
    versions = st.sampled_from([0, 1, 2, 3, 100, None, None])
    intervals = st.none() | INTERVALS
    return st.builds(Wanted, columns, st.just(Span()), versions, intervals) | st.builds(
        Wanted, st.none(), st.just(Span()) | SPANS, versions, intervals
    )


WANTED = wanted(COLUMN_LISTS)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a read is paged: what each page in turn asks for, and the order of its options."""

    counts: list[int | None]
    limits: list[int | None]
    novalues: list[bool]
    order: list[int]

    def page(self, number: int) -> tuple[int | None, int | None, bool]:
        counts, limits, novalues = self.counts, self.limits, self.novalues
        return (
            counts[number % len(counts)],
            limits[number % len(limits)],
            novalues[number % len(novalues)],
        )

    def arranged(self, options: list[list[Word]]) -> list[Word]:
        turn = [*self.order, *range(len(self.order), len(options))]
        return [word for _, words in sorted(zip(turn, options, strict=False)) for word in words]


SIZES = st.lists(st.sampled_from([None, 1, 2, 4]), min_size=1, max_size=3)
PLANS = st.builds(
    Plan,
    SIZES,
    SIZES,
    st.lists(st.booleans(), min_size=1, max_size=3),
    st.permutations(range(8)),
)
