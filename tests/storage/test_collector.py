"""The collector and its survey: what is told is dead, and removing it changes no answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.embedded import engine as embedded
from storage.embedded.engine import EmbeddedEngine
from storage.embedded.ordered import Kind
from storage.encoding import (
    PLAIN,
    cell_suffix,
    column_prefix,
    row_prefix,
    value_header,
)
from storage.errors import StoreFailure
from storage.maintenance import collector, survey
from storage.maintenance.survey import Span, Survey, Totals
from storage.maintenance.surveyor import surveyed
from storage.memory.database import MemoryFamily
from storage.model import EVERYTHING, DatasetSettings, Deletion, PageLimits, PageRequest
from storage.opening import open_engine

NOW = 1_000_000
ALL = PageRequest(PageLimits(10**6, 10**6, 10**6, 10**9, 10**6))


def key_of(row: bytes, column: bytes, timestamp: int) -> bytes:
    return column_prefix(row_prefix(row), column) + cell_suffix(timestamp, 0)


# The survey. The second opinion: the rule of docs/disk-format.md, word by word.

CELLS = st.dictionaries(
    st.tuples(st.sampled_from([b"r", b"s"]), st.sampled_from([b"a", b"b"]), st.integers(0, 12)),
    st.one_of(st.none(), st.integers(NOW - 3, NOW + 3)),
    max_size=30,
)


def dead_by_the_rule(
    cells: dict[tuple[bytes, bytes, int], int | None], max_versions: int
) -> tuple[set[bytes], set[bytes]]:
    """Keys of cells that expired, and of those that are surplus."""
    never = 2**70
    expired, surplus = set(), set()
    for (row, column, timestamp), expires in cells.items():
        ends = never if expires is None else expires
        above = [
            never if other is None else other
            for (other_row, other_column, other_timestamp), other in cells.items()
            if (other_row, other_column) == (row, column) and other_timestamp > timestamp
        ]
        lasting = [other for other in above if other >= NOW and other >= ends]
        if ends < NOW:
            expired.add(key_of(row, column, timestamp))
        elif max_versions and len(lasting) >= max_versions:
            surplus.add(key_of(row, column, timestamp))
    return expired, surplus


@given(CELLS, st.integers(0, 3), st.integers(0, 3))
def test_a_survey_tells_all_that_is_dead(
    cells: dict[tuple[bytes, bytes, int], int | None], max_versions: int, live_between: int
) -> None:
    family = MemoryFamily("d")
    for (row, column, timestamp), expires in cells.items():
        family.apply(
            Kind.PUT,
            key_of(row, column, timestamp),
            (PLAIN if expires is None else value_header(expires)) + b"v",
        )
    spans: list[Span] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(survey, "MOST_LIVE_BETWEEN", live_between)
        totals = Survey(DatasetSettings(max_versions, 0), NOW, spans.append).walk(family)
    expired, surplus = dead_by_the_rule(cells, max_versions)
    assert totals.cells == len(cells)
    assert (totals.expired_cells, totals.surplus_cells) == (len(expired), len(surplus))
    told = {key for key in family.keys if any(s <= key <= (e or b"") for s, e in spans)}
    assert expired | surplus <= told
    assert [span.last for span in spans] == sorted(span.last or b"" for span in spans)


# In another process


def at_once(call: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(call)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedEngine]:
    """One that takes no dataset for small."""
    monkeypatch.setattr(collector, "SMALL_DATASET_CELLS", -1)
    opened = open_engine(tmp_path / "data")
    yield opened
    at_once(opened.close())


async def compact(engine: EmbeddedEngine, name: bytes = b"d") -> None:
    await engine.compact_dataset(name)
    task = engine._collector._task
    assert task is not None
    await task


async def shown(engine: EmbeddedEngine) -> Any:
    rows = await engine.read_rows(b"d", [b"r0", b"r1", b"r2"], EVERYTHING, ALL)
    return [page.columns for page in rows]


async def fill(engine: EmbeddedEngine, chance: random.Random, count: int) -> None:
    now = engine.now()
    for _ in range(count):
        row, column = b"r%d" % chance.randrange(3), b"c%d" % chance.randrange(3)
        expires = chance.choice([None, None, now - 1, now + 10**9, now + 2 * 10**9])
        cell = (row, chance.randrange(1, 400), column, b"v%d" % chance.randrange(9))
        await engine.put(b"d", [cell], expires, DatasetSettings(3, 0))
        if chance.random() < 0.05:
            await engine.delete(b"d", [row], Deletion((column,), None, (chance.randrange(400),)))
    await engine.settle()


@pytest.mark.parametrize("seed", range(3))
def test_answers_stay_and_the_dead_go(engine: EmbeddedEngine, tmp_path: Path, seed: int) -> None:
    async def scenario() -> None:
        await fill(engine, random.Random(seed), 600)
        before = await shown(engine)
        expected = await engine.explain_compaction(b"d")
        dead = expected.expired_cells + expected.surplus_cells
        assert dead > 0
        await compact(engine)
        assert await shown(engine) == before
        left = await engine.explain_compaction(b"d")
        assert (left.cells, left.expired_cells, left.surplus_cells) == (expected.cells - dead, 0, 0)
        info = await engine.dataset_info(b"d")
        assert (info.last_compaction_removed_cells, info.compaction) == (dead, "idle")
        assert list((tmp_path / "data" / "checkpoints").iterdir()) == []

    at_once(scenario())


def test_what_is_written_after_the_survey_is_looked_at_again(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The survey is old news: cells it found dead were written anew since."""
    settings = DatasetSettings(1, 0)

    async def scenario() -> None:
        for timestamp in range(1, 50):
            await engine.put(b"d", [(b"r0", timestamp, b"c", b"old")], None, settings)
        began = engine.survey_elsewhere

        def meddled(name: bytes, settings: DatasetSettings) -> Any:
            async def findings() -> Any:
                found = began(name, settings)
                assert found is not None
                all_of_them = [finding async for finding in found]
                everything = Deletion((b"c",), None, None)
                await engine.delete(b"d", [b"r0"], everything)
                await engine.put(b"d", [(b"r0", 7, b"c", b"new")], None, settings)
                for finding in all_of_them:
                    yield finding

            return findings()

        monkeypatch.setattr(engine, "survey_elsewhere", meddled)
        await compact(engine)
        page = await engine.read_row(b"d", b"r0", EVERYTHING, ALL)
        assert page.columns == [(b"c", [(7, b"new")])]

    at_once(scenario())


def test_explain_of_other_settings_removes_nothing(engine: EmbeddedEngine) -> None:
    async def scenario() -> None:
        for timestamp in range(1, 11):
            cell = (b"r", timestamp, b"c", b"v" * timestamp)
            await engine.put(b"d", [cell], None, DatasetSettings())
        assert (await engine.explain_compaction(b"d")).surplus_cells == 0
        found = await engine.explain_compaction(b"d", max_versions=4)
        keys = sum(len(key_of(b"r", b"c", t)) + 1 + t for t in range(1, 7))
        assert (found.cells, found.surplus_cells, found.surplus_bytes) == (10, 6, keys)
        assert (await engine.explain_compaction(b"d", ttl_seconds=1)).expired_cells == 10
        assert (await engine.explain_compaction(b"d")).cells == 10

    at_once(scenario())


def test_stopping_in_the_midst_leaves_nothing_behind(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "data")

    async def scenario() -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(collector, "SMALL_DATASET_CELLS", -1)
            for timestamp in range(1, 50):
                cell = (b"r", timestamp, b"c", b"v")
                await engine.put(b"d", [cell], None, DatasetSettings(1, 0))
            await engine.compact_dataset(b"d")
            while not list((tmp_path / "data").glob("checkpoints/*")):
                await asyncio.sleep(0)
            await engine.close()
        assert list((tmp_path / "data" / "checkpoints").iterdir()) == []

    at_once(scenario())


def test_a_survey_that_fails_says_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        findings = surveyed(tmp_path / "nowhere", b"d", DatasetSettings(), NOW)
        with pytest.raises(StoreFailure, match=r"the survey failed: .*nowhere"):
            async for finding in findings:
                assert not isinstance(finding, Totals)

    at_once(scenario())


def test_what_a_crash_left_is_removed_at_the_start(tmp_path: Path) -> None:
    left = tmp_path / "data" / "checkpoints" / "survey-1" / "store"
    left.mkdir(parents=True)
    engine = open_engine(tmp_path / "data")
    assert not left.exists()
    at_once(engine.close())


# Files worn by deletions


def test_files_of_many_deletions_are_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "WORN_DELETIONS", 100)
    engine = open_engine(tmp_path / "data")

    async def scenario() -> None:
        settings = DatasetSettings()
        for name in (b"worn", b"fresh"):
            cells = [(b"r%d" % number, 1, b"c", b"v" * 100) for number in range(400)]
            await engine.put(name, cells, None, settings)
        await compact(engine, b"worn")  # also brings it from memory into files
        await compact(engine, b"fresh")
        rows = [b"r%d" % number for number in range(300)]
        await engine.delete(b"worn", rows, Deletion(None, None, None))
        await engine.settle()
        engine.sync()
        assert await engine.compact_worn() == [], "what is in memory is in no file yet"
        engine._store.reopen()
        assert await engine.compact_worn() == [b"worn"]
        task = engine._collector._task
        assert task is not None
        await task
        dataset = engine.open_dataset(b"worn")
        assert dataset is not None
        assert dataset.family.wear() == (100, 0)

    at_once(scenario())
    at_once(engine.close())
