"""No answer depends on compaction: of two datasets that are told the same, one is compacted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.clock import HybridClock
from storage.embedded.engine import EmbeddedEngine
from storage.encoding import split_key, split_value
from storage.errors import StorageError
from storage.maintenance import collector
from storage.model import (
    EVERYTHING,
    ColumnCells,
    DatasetSettings,
    Deletion,
    PageRequest,
    Selection,
    TimeRange,
)
from tests.storage.engine.store import NOW, UNLIMITED, Store, collected, compact, raw_cells
from tests.storage.engine.stories import SETTINGS, emptied, lives_until, random_stories


def kept_by_the_rule(engine: EmbeddedEngine, name: bytes, now: int) -> list[bytes]:
    """The keys that compaction has to leave, by the words of docs/disk-format.md."""
    dataset = engine.open_dataset(name)
    assert dataset is not None
    kept, columns = [], dict[bytes, list[int]]()
    for key, value in raw_cells(engine, name):
        expires_at, _ = split_value(value)
        until = lives_until(split_key(key)[2], expires_at, dataset.settings.ttl_seconds)
        above = columns.setdefault(key[:-10], [])
        if until >= now:
            outliving = [other for other in above if other >= until]
            if not 0 < dataset.settings.max_versions <= len(outliving):
                kept.append(key)
            above.append(until)
    return kept


Step = tuple[Any, ...]
SMALL_COLUMNS = st.sampled_from([b"a", b"a", b"a", b"b"])
MOMENTS = st.sampled_from([NOW - 1_000, NOW - 2, NOW - 1, NOW, NOW + 1])
LIFETIMES = st.sampled_from([None, None, 0, 1, 2, 8])
PUTS = st.tuples(
    st.just("put"),
    st.lists(st.tuples(st.one_of(st.none(), MOMENTS), SMALL_COLUMNS), min_size=1, max_size=3),
    LIFETIMES,
)
WHICH = st.one_of(st.none(), st.sets(SMALL_COLUMNS, min_size=1).map(tuple))
DELETES = st.one_of(
    st.tuples(st.just("delete"), WHICH, st.builds(TimeRange, MOMENTS, MOMENTS), st.none()),
    st.tuples(st.just("delete"), WHICH, st.none(), st.lists(MOMENTS, min_size=1, max_size=2)),
    st.tuples(st.just("delete"), WHICH, st.none(), st.none()),
)
WAITS = st.tuples(st.just("wait"), st.sampled_from([1, 2, 3, 997, 998, 999, 1_000]))
INCREMENTS = st.tuples(st.just("increment"), SMALL_COLUMNS)
CHANGES = st.one_of(PUTS, PUTS, DELETES, INCREMENTS)
STEPS = st.one_of(PUTS, CHANGES, WAITS, st.sampled_from([("narrow",), ("compact",)]))
BEGINNINGS = st.lists(PUTS, max_size=4)
READS = [
    EVERYTHING,
    Selection(),
    Selection(versions=None, times=TimeRange(NOW - 2, NOW + 1)),
    Selection(columns=(b"a",), versions=2, times=TimeRange(0, NOW)),
]


async def take(engine: EmbeddedEngine, name: bytes, step: Step, now: int) -> object:
    """Do one step of a story to a dataset; the reply that a client would get."""
    try:
        match step:
            case ("put", cells, lifetime):
                new = [(b"r", at, column, b"1") for at, column in cells]
                expires_at = None if lifetime is None else now + lifetime
                await engine.put(name, new, expires_at, None)
            case ("delete", columns, times, timestamps):
                return await engine.delete(name, [b"r"], Deletion(columns, times, timestamps))
            case ("increment", column):
                return await engine.increment(name, b"r", column, 1, None)
            case ("narrow",):  # wider settings may bring back what was hidden, or not
                old = (await engine.dataset_info(name)).settings.max_versions
                await engine.alter_dataset(name, max_versions=max(1, old - 1) if old else 3)
    except StorageError as error:
        return str(error)
    return None


async def answers(engine: EmbeddedEngine, name: bytes) -> list[list[ColumnCells]]:
    request = PageRequest(UNLIMITED)
    return [(await engine.read_row(name, b"r", read, request)).columns for read in READS]


async def happens_to_both(store: Store, step: Step) -> None:
    """One of the two datasets is compacted; no reply tells which."""
    if step[0] == "wait":
        store.now += step[1]
    replies = [await take(store.engine, name, step, store.now) for name in (b"plain", b"compacted")]
    assert replies[0] == replies[1]
    await nobody_sees_a_difference(store)


async def nobody_sees_a_difference(store: Store) -> None:
    assert await answers(store.engine, b"compacted") == await answers(store.engine, b"plain")


async def nor_at_any_later_time(store: Store) -> None:
    """Compact for good, see that the dead are gone, and let everything expire step by step."""
    await compact(store.engine, b"compacted")
    await store.engine.settle()
    assert [key[:-2] for key, _ in raw_cells(store.engine, b"compacted")] == [
        key[:-2] for key in kept_by_the_rule(store.engine, b"plain", store.now)
    ]
    for wait in [1] * 9 + [985] + [1] * 9 + [1_000]:
        store.now += wait
        await nobody_sees_a_difference(store)


def begin_again(store: Store, kept: DatasetSettings) -> None:
    store.run(collected(store.engine))
    store.now = NOW
    store.engine._clock = HybridClock(wall_ns=lambda: store.now * 1_000_000)
    for name in (b"plain", b"compacted"):
        emptied(store, name, kept)


@random_stories(150)
@given(SETTINGS, BEGINNINGS, st.lists(STEPS, max_size=15))
def test_no_answer_depends_on_whether_compaction_came_first(
    store: Store, kept: DatasetSettings, beginning: list[Step], story: list[Step]
) -> None:
    async def tell() -> None:
        for step in [*beginning, ("compact",), *story]:
            if step[0] == "compact":
                await compact(store.engine, b"compacted")
            await happens_to_both(store, step)
        await nor_at_any_later_time(store)

    begin_again(store, kept)
    store.run(tell())


@random_stories(150)
@given(SETTINGS, BEGINNINGS, st.lists(st.tuples(st.integers(0, 3), CHANGES), max_size=5))
@example(
    DatasetSettings(2),
    [("put", [(NOW, b"a"), (NOW - 1, b"a")], None)],
    [(1, ("put", [(NOW, b"a")], 0)), (0, ("put", [(NOW - 2, b"a")], None))],
)
def test_no_answer_depends_on_a_compaction_that_is_under_way(
    store: Store, kept: DatasetSettings, beginning: list[Step], story: list[tuple[int, Step]]
) -> None:
    """Before each change the compaction has a few turns, in each of which it looks at one cell."""

    async def tell() -> None:
        for step in beginning:
            await happens_to_both(store, step)
        await store.engine.compact_dataset(b"compacted")
        for turns, step in story:
            for _ in range(turns):
                await asyncio.sleep(0)
            await happens_to_both(store, step)
        await collected(store.engine)
        await nobody_sees_a_difference(store)
        await nor_at_any_later_time(store)

    begin_again(store, kept)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(collector, "SLICE_CELLS", 1)
        store.run(tell())
