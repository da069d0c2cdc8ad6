"""No answer depends on compaction: two datasets are told the same, and one of them is compacted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.against_model.every_column import ENDS, LIVES, ROWS, cells_ending
from tests.against_model.ingredients import EXAMPLES, STATEFUL
from tests.against_model.steered import HOUR_MS, SteeredServer, Word, await_compaction, execute
from tests.model import Settings

Step = tuple[str, list[int], int | None]
SEVERAL_AGES = st.lists(st.integers(-1, 3), min_size=1, max_size=3, unique=True)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "delete", "wait"]), SEVERAL_AGES, st.sampled_from(ENDS)
    ),
    min_size=1,
    max_size=5,
)


class Twins:
    """Two datasets that are told the same; one of them is compacted after every word.

    No model is asked: this holds also where the contract can be read in two ways.
    """

    def __init__(self, server: SteeredServer, client: Any, chosen: Settings) -> None:
        self.clock, self.client = server.clock, client
        self.start = server.clock.start_of_example()
        self.names = [next(server.names), next(server.names)]
        words: list[Word] = ["MAXVERSIONS", chosen.max_versions, "TTL", chosen.ttl_seconds]
        self.both(lambda name: ["WCDATASET", "CREATE", name, *words])
        self.rows = [bytes([number]) for number in ROWS]
        for end in ENDS:
            self.write(cells_ending(end), end)

    def both(self, words: Callable[[str], list[Word]]) -> None:
        one, other = [execute(self.client, *words(name)) for name in self.names]
        assert one == other
        self.clock.now += 1
        execute(self.client, "WCDATASET", "COMPACT", self.names[1])
        await_compaction(self.client, self.names[1], self.clock.now)

    def write(self, cells: list[tuple[int, int]], end: int | None) -> None:
        words: list[Word] = []
        if end is not None:
            words = ["PXAT", self.start + LIVES[end].at.milliseconds]
        for row, age in cells:
            words += [self.rows[row], self.start - 1_000 * age, b"column", b"%d" % age]
        self.both(lambda name: ["WCMPUT", name, *words])

    def delete(self, ages: list[int]) -> None:
        hits = [self.start - 1_000 * age for age in ages]
        rows: list[Word] = ["ROWS", len(self.rows), *self.rows]
        self.both(lambda name: ["WCMDEL", name, *rows, "TIMESTAMPS", len(hits), *hits])

    def compare_to_the_end(self) -> None:
        for hours in (0, 0.2, 0.5, 2, 1):
            self.clock.now += int(hours * HOUR_MS)
            self.both(lambda name: ["WCSCAN", name, "VERSIONS", "ALL"])

    def drop(self) -> None:
        for name in self.names:
            execute(self.client, "WCDATASET", "DROP", name)


@settings(STATEFUL, max_examples=max(EXAMPLES // 2, 1))
@given(
    chosen=st.builds(Settings, st.sampled_from([0, 1, 2]), st.sampled_from([0, 3600])), steps=STEPS
)
def test_no_answer_depends_on_compaction(
    unhurried: SteeredServer, chosen: Settings, steps: list[Step]
) -> None:
    with unhurried.running().client(2) as client:
        twins = Twins(unhurried, client, chosen)
        for kind, ages, end in steps:
            if kind == "write":
                twins.write([(row, age) for row in ROWS for age in ages], end)
            elif kind == "delete":
                twins.delete(ages)
            else:
                twins.clock.now += 700_000
            twins.both(lambda name: ["WCSCAN", name, "VERSIONS", "ALL"])
        twins.compare_to_the_end()
        twins.drop()
