"""Transactions: together or not at all, and within them every call as if it were the only one.

Random stories are told to two engines: one within transactions during which its store takes no
write, one that commits after every call. No reply may differ, and nothing that is stored in the
end. Crashes are copies of the files at every moment of a commit, and processes that are killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.catalog import entry_key
from storage.clock import HybridClock
from storage.embedded import datasets, group
from storage.embedded.engine import EmbeddedEngine
from storage.errors import (
    ColumnNameTooLong,
    DatasetExists,
    NoSuchDataset,
    StorageError,
    StoreFailure,
    StoreStalled,
)
from storage.maintenance import collector
from storage.model import (
    ALL_NAMES,
    EVERYTHING,
    DatasetSettings,
    Deletion,
    NameRange,
    PageLimits,
    PageRequest,
    Selection,
    TimeRange,
)
from storage.opening import open_engine, open_memory_engine
from storage.rocks.options import RocksSettings

T = TypeVar("T")

NOW = 1_700_000_000_000
DEFAULTS = DatasetSettings()
SMALL = RocksSettings(block_cache_bytes=1 << 20, write_buffer_bytes=1 << 16)
LIMITS = PageLimits(columns=10**6, rows=10**6, cells=10**6, bytes=10**9, scan=10**6)
ALL = PageRequest(LIMITS)
ROOT = Path(__file__).resolve().parents[2]


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """The result of a call that must not wait."""
    try:
        call.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    call.close()
    pytest.fail("the call waits")


@contextlib.contextmanager
def transaction(engine: EmbeddedEngine) -> Iterator[None]:
    """One whose beginning and end do not wait either; while it is open nothing is written."""
    write = engine._store.write
    opened = engine.transaction()
    at_once(opened.__aenter__())
    setattr(engine._store, "write", refused)  # noqa: B010 - mypy refuses an assignment
    try:
        yield
    finally:
        setattr(engine._store, "write", write)  # noqa: B010
        at_once(opened.__aexit__(None, None, None))


def refused(_operations: object, *, durable: bool) -> None:
    pytest.fail("a write within a transaction")


@pytest.fixture
def rocks(tmp_path: Path) -> Iterator[EmbeddedEngine]:
    engine = open_engine(tmp_path / "data", SMALL)
    yield engine
    asyncio.run(engine.close())


@pytest.fixture(params=["rocks", "memory"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedEngine]:
    """An engine whose datasets `d` and `e` each hold the cell 1, in the log."""
    opened = (
        open_engine(tmp_path / "data", SMALL) if request.param == "rocks" else open_memory_engine()
    )
    put(opened, 1)
    put(opened, 1, dataset=b"e")
    assert opened.commit() is None
    yield opened
    asyncio.run(opened.close())


def put(engine: EmbeddedEngine, *timestamps: int, row: bytes = b"r", dataset: bytes = b"d") -> None:
    cells = [(row, timestamp, b"c", b"%d" % timestamp) for timestamp in timestamps]
    at_once(engine.put(dataset, cells, None, DEFAULTS))


def shown(engine: EmbeddedEngine, row: bytes = b"r", dataset: bytes = b"d") -> list[int]:
    page = at_once(engine.read_row(dataset, row, EVERYTHING, ALL))
    assert page.cursor == b"0"
    return [cell[0] for _, cells in page.columns for cell in cells if isinstance(cell, tuple)]


def create(engine: EmbeddedEngine, name: bytes, settings: DatasetSettings = DEFAULTS) -> None:
    at_once(engine.create_dataset(name, settings))


def drop(engine: EmbeddedEngine, name: bytes) -> None:
    at_once(engine.drop_dataset(name))


def families(engine: EmbeddedEngine) -> set[str]:
    return set(engine._store.families())


def end_families(engine: EmbeddedEngine) -> None:
    """All those of dropped datasets: the engine ends a few at a time."""
    while engine._datasets.parting:
        engine.tidy()


def outcomes(engine: EmbeddedEngine) -> list[StoreFailure | None]:
    """What on_settled is told from now on."""
    told: list[StoreFailure | None] = []
    engine.on_settled = told.append
    return told


# Within a transaction


def test_a_transaction_reads_what_it_wrote_and_commits_when_the_tick_does(
    engine: EmbeddedEngine,
) -> None:
    told = outcomes(engine)
    with transaction(engine):
        put(engine, 2)
        assert shown(engine) == [2, 1]
        assert at_once(engine.delete(b"d", [b"r"], Deletion(timestamps=[1]))) == [1]
        assert shown(engine) == [2]
        assert at_once(engine.increment(b"d", b"r", b"n", 5, None)) == 5
        assert at_once(engine.increment(b"d", b"r", b"n", 5, None)) == 10
    assert told == []
    assert engine.commit() is None
    assert told == [None]
    assert 2 in shown(engine)


READS: dict[str, Callable[[EmbeddedEngine], Coroutine[Any, Any, object]]] = {
    "read_row": lambda engine: engine.read_row(b"d", b"s", EVERYTHING, ALL),
    "read_rows": lambda engine: engine.read_rows(b"d", [b"r", b"s"], EVERYTHING, ALL),
    "read_columns": lambda engine: engine.read_columns(b"d", b"s", ALL_NAMES, ALL),
    "scan": lambda engine: engine.scan(b"d", ALL_NAMES, EVERYTHING, ALL),
    "count_rows": lambda engine: engine.count_rows(b"d", [b"s"]),
    "increment": lambda engine: engine.increment(b"d", b"s", b"c", 1, None),
    "compare_and_put": lambda engine: engine.compare_and_put(
        b"d", (b"s", None, b"c", b""), b"4", None, None
    ),
    "delete": lambda engine: engine.delete(b"d", [b"s"], Deletion()),
    "delete columns": lambda engine: engine.delete(b"d", [b"s"], Deletion((b"c",))),
    "delete times": lambda engine: engine.delete(b"d", [b"s"], Deletion(times=TimeRange(0, 5))),
    "delete timestamps": lambda engine: engine.delete(b"d", [b"s"], Deletion(timestamps=[4])),
    "put": lambda engine: engine.put(b"d", [(b"s", 4, b"c", b"")], NOW, None),
}


@pytest.mark.parametrize("call", READS)
def test_every_call_sees_the_group_as_if_it_were_in_the_log(
    call: str, engine: EmbeddedEngine
) -> None:
    """What it answers and what it writes is the same in a transaction, as in the log before."""
    seen: list[object] = []
    for within in (False, True):
        drop(engine, b"d")
        create(engine, b"d", DatasetSettings(2))
        assert engine.commit() is None
        with transaction(engine) if within else contextlib.nullcontext():
            put(engine, 4, 3, 2, row=b"s")
            if not within:
                assert engine.commit() is None
            seen.append(at_once(READS[call](engine)))
        assert engine.commit() is None
        family = engine._store.families()["d:d"]
        seen.append([(key[:-10], value) for key, value in family.scan(None).walk(b"")])
    assert seen[:2] == seen[2:]


def test_writes_that_others_left_in_the_group_are_seen(engine: EmbeddedEngine) -> None:
    put(engine, 2)
    with transaction(engine):
        assert shown(engine) == [2, 1]
    with transaction(engine):
        put(engine, 3)
        assert shown(engine) == [3, 2, 1]


def test_after_a_transaction_reads_commit_again(engine: EmbeddedEngine) -> None:
    told = outcomes(engine)
    with transaction(engine):
        put(engine, 2)
    assert shown(engine) == [2, 1]
    assert told == [None]


def test_a_large_transaction_is_not_split(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert group.MAX_OPERATIONS < 30_000
    told = outcomes(engine)
    with transaction(engine):
        for start in range(0, 30_000, 10_000):
            put(engine, *range(start + 2, start + 10_002))
        assert len(shown(engine)) == 30_001
    assert engine.commit() is None
    assert told == [None]
    assert len(shown(engine)) == 30_001


def test_a_call_that_fails_undoes_nothing_but_itself(engine: EmbeddedEngine) -> None:
    too_long = (b"r", 4, b"x" * 65_536, b"")
    with transaction(engine):
        put(engine, 2)
        with pytest.raises(ColumnNameTooLong):
            at_once(engine.put(b"d", [(b"r", 3, b"c", b""), too_long], None, DEFAULTS))
        with pytest.raises(ColumnNameTooLong):
            at_once(engine.put(b"new", [(b"r", 3, b"c", b""), too_long], None, DEFAULTS))
        with pytest.raises(DatasetExists):
            create(engine, b"e")
        put(engine, 5)
        assert shown(engine) == [5, 2, 1]
    assert engine.commit() is None
    assert shown(engine) == [5, 2, 1]
    assert engine.dataset_names() == [b"d", b"e"]


def test_what_was_written_before_the_body_failed_stays(engine: EmbeddedEngine) -> None:
    async def fails() -> None:
        async with engine.transaction():
            put(engine, 2)
            raise ValueError

    with pytest.raises(ValueError):
        at_once(fails())
    assert engine.commit() is None
    assert shown(engine) == [2, 1]


def test_while_one_is_open_nobody_commits(engine: EmbeddedEngine) -> None:
    """Not even if its body waits, which it should not: others then wait, too."""
    told = outcomes(engine)

    async def transacts() -> None:
        async with engine.transaction():
            put(engine, 2)
            other = asyncio.create_task(engine.settle())
            await asyncio.sleep(0)
            with pytest.raises(StoreStalled):
                engine.commit()
            put(engine, 3)
            assert told == []
        await other

    asyncio.run(transacts())
    assert told == [None]
    assert shown(engine) == [3, 2, 1]


def test_a_compaction_asked_for_in_a_transaction_comes_after_it(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "SLICE_CELLS", 1)

    async def transacts() -> None:
        with transaction(engine):
            at_once(engine.alter_dataset(b"d", max_versions=1))
            put(engine, 2)
            at_once(engine.compact_dataset(b"d"))
        task = engine._collector._task
        assert task is not None
        await task

    asyncio.run(transacts())
    info = at_once(engine.dataset_info(b"d"))
    assert info.last_compaction_removed_cells == 1
    assert shown(engine) == [2]


# Dropping


def test_dropped_created_and_written_to_in_one_transaction(engine: EmbeddedEngine) -> None:
    family = engine._store.families()["d:d"]
    with transaction(engine):
        put(engine, 2)
        drop(engine, b"d")
        assert engine.dataset_names() == [b"e"]
        with pytest.raises(NoSuchDataset):
            shown(engine)
        create(engine, b"d", DatasetSettings(7))
        assert shown(engine) == []
        assert at_once(engine.scan(b"d", ALL_NAMES, EVERYTHING, ALL)).rows == []
        assert at_once(engine.count_rows(b"d", [b"r"])) == 0
        assert at_once(engine.delete(b"d", [b"r"], Deletion())) == [0]
        put(engine, 3)
        assert shown(engine) == [3]
    assert engine.commit() is None
    assert shown(engine) == [3]
    assert at_once(engine.dataset_info(b"d")).settings == DatasetSettings(7)
    assert engine._store.families()["d:d"] is family
    assert [value for _, value in family.scan(None).walk(b"")] == [b"\x003"]


@pytest.mark.parametrize("rows", [1, 100])
def test_dropped_and_created_over_and_over(rows: int, engine: EmbeddedEngine) -> None:
    for number in range(rows):
        put(engine, 1, row=b"%d" % number)
    assert engine.commit() is None
    with transaction(engine):
        for _ in range(3):
            drop(engine, b"d")
            put(engine, 2, row=b"0")
            assert at_once(engine.count_rows(b"d", [b"0", b"1", b"r"])) == 1
        drop(engine, b"d")
    assert families(engine) == {"d:d", "d:e"}
    assert engine.commit() is None
    assert families(engine) == {"d:e"}
    put(engine, 5)
    assert shown(engine) == [5]


def test_a_dataset_that_lived_only_in_a_transaction_leaves_nothing(engine: EmbeddedEngine) -> None:
    with transaction(engine):
        put(engine, 1, dataset=b"new")
        drop(engine, b"new")
    assert engine.commit() is None
    assert families(engine) == {"d:d", "d:e"}
    assert engine.dataset_names() == [b"d", b"e"]


def test_a_name_dropped_in_a_transaction_is_created_by_somebody_before_the_commit(
    engine: EmbeddedEngine,
) -> None:
    with transaction(engine):
        drop(engine, b"d")
    put(engine, 3, row=b"s")
    assert shown(engine) == []
    assert shown(engine, b"s") == [3]
    assert families(engine) == {"d:d", "d:e"}


@pytest.mark.parametrize("row", [b"", b"\xff" * 65_535, b"\x00" * 65_535])
def test_no_row_is_beyond_the_end_of_a_dropped_dataset(row: bytes, engine: EmbeddedEngine) -> None:
    put(engine, *range(100), row=row)
    with transaction(engine):
        drop(engine, b"d")
        create(engine, b"d")
        assert shown(engine, row) == []
    assert engine.commit() is None
    assert shown(engine, row) == []


@pytest.mark.parametrize("within", [False, True])
def test_all_datasets_are_dropped_at_one_stroke(within: bool, engine: EmbeddedEngine) -> None:
    told = outcomes(engine)
    put(engine, 2, dataset=b"new")
    with transaction(engine) if within else contextlib.nullcontext():
        at_once(engine.drop_all())
        assert engine.dataset_names() == []
    assert told == ([] if within else [None])
    assert engine.commit() is None
    assert told == [None]
    end_families(engine)
    assert families(engine) == set()
    at_once(engine.drop_all())
    put(engine, 3)
    assert shown(engine) == [3]


def test_a_delete_counts_for_each_row(engine: EmbeddedEngine) -> None:
    at_once(engine.put(b"d", [(b"s", 1, b"a", b""), (b"s", 1, b"b", b"")], None, None))
    rows = [b"r", b"nobody", b"s", b"r", b"s"]
    columns = Deletion(columns=(b"a", b"b"))
    assert at_once(engine.delete(b"d", rows, columns)) == [0, 0, 2, 0, 0]
    assert at_once(engine.delete(b"d", rows, Deletion())) == [1, 0, 0, 0, 0]
    assert at_once(engine.delete(b"d", [], Deletion())) == []


# Versions

CELL = (b"r", 5, b"c", b"v")
CHANGES: dict[str, Callable[[EmbeddedEngine], Coroutine[Any, Any, object]]] = {
    "put": lambda engine: engine.put(b"d", [CELL], None, None),
    "increment": lambda engine: engine.increment(b"d", b"r", b"c", 1, None),
    "compare_and_put": lambda engine: engine.compare_and_put(b"d", CELL, b"1", None, None),
    "delete": lambda engine: engine.delete(b"d", [b"r"], Deletion()),
    "alter": lambda engine: engine.alter_dataset(b"d", max_versions=3),
    "drop": lambda engine: engine.drop_dataset(b"d"),
    "drop_all": lambda engine: engine.drop_all(),
}
NO_CHANGES: dict[str, Callable[[EmbeddedEngine], Coroutine[Any, Any, object]]] = {
    "put elsewhere": lambda engine: engine.put(b"e", [CELL], None, None),
    "put too long": lambda engine: engine.put(b"d", [CELL, (b"", 1, bytes(70_000), b"")], 1, None),
    "compare_and_put": lambda engine: engine.compare_and_put(b"d", CELL, b"other", None, None),
    "delete": lambda engine: engine.delete(b"d", [b"nobody"], Deletion()),
    "create": lambda engine: engine.create_dataset(b"d", DEFAULTS, if_not_exists=True),
    "drop elsewhere": lambda engine: engine.drop_dataset(b"e"),
    "read": lambda engine: engine.read_row(b"d", b"r", EVERYTHING, ALL),
    "scan": lambda engine: engine.scan(b"d", ALL_NAMES, EVERYTHING, ALL),
}


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("call", CHANGES)
def test_what_changes_a_dataset_changes_its_version(
    call: str, within: bool, engine: EmbeddedEngine
) -> None:
    before = {name: engine.version(name) for name in (b"d", b"e")}
    with transaction(engine) if within else contextlib.nullcontext():
        at_once(CHANGES[call](engine))
        after = engine.version(b"d")
        assert after != before[b"d"]
        assert (engine.version(b"e") == before[b"e"]) == (call != "drop_all")
    assert engine.commit() is None
    assert engine.version(b"d") == after


@pytest.mark.parametrize("call", NO_CHANGES)
def test_what_changes_nothing_leaves_the_version(call: str, engine: EmbeddedEngine) -> None:
    before = engine.version(b"d")
    with contextlib.suppress(StorageError):
        at_once(NO_CHANGES[call](engine))
    assert engine.version(b"d") == before != 0


def test_expiry_and_compaction_leave_the_version(engine: EmbeddedEngine) -> None:
    at_once(engine.put(b"d", [(b"r", 2, b"c", b"")], 1, None))
    before = engine.version(b"d")
    assert shown(engine) == [1]

    async def compact() -> None:
        await engine.compact_dataset(b"d")
        assert engine._collector._task is not None
        await engine._collector._task

    asyncio.run(compact())
    assert at_once(engine.dataset_info(b"d")).last_compaction_removed_cells == 1
    assert engine.version(b"d") == before


def test_a_version_never_comes_again(engine: EmbeddedEngine) -> None:
    seen = [engine.version(b"d")]
    for _ in range(3):
        drop(engine, b"d")
        seen.append(engine.version(b"d"))
        assert engine.version(b"unknown") == engine.version(b"no name!") == 0
        for _ in range(3):
            put(engine, 1)
            seen.append(engine.version(b"d"))
    assert len(set(seen)) == len(seen)


def test_of_many_drops_each_is_a_change(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than are remembered one by one."""
    monkeypatch.setattr(datasets, "MOST_LAST_DROPS", 3)
    names = [b"n%d" % number for number in range(5)]
    before = {name: engine.version(name) for name in names}
    for name in names * 3:
        at_once(engine.create_dataset(name, DEFAULTS))
        drop(engine, name)
        assert engine.version(name) != before[name]
        before[name] = engine.version(name)


# Failures


class Failing:
    """A database whose calls of one name fail: the first ones, each with an error of its own."""

    def __init__(
        self,
        engine: EmbeddedEngine,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        *errors: Exception,
    ) -> None:
        self._call = getattr(engine._store, name)
        self._errors = list(errors)
        self.done: list[Any] = []
        monkeypatch.setattr(engine._store, name, self)

    def __call__(self, given: Any, **options: Any) -> Any:
        if self._errors:
            raise self._errors.pop(0)
        self.done.append(given)
        return self._call(given, **options)


@pytest.fixture
def prepared(rocks: EmbeddedEngine) -> EmbeddedEngine:
    """Over RocksDB, with datasets `d`, `e` and `f` that hold the cell 1 each, in the log."""
    for name in (b"d", b"e", b"f"):
        put(rocks, 1, dataset=name)
    assert rocks.commit() is None
    return rocks


def change_everything(engine: EmbeddedEngine) -> None:
    """A transaction: write, alter, drop, drop and create, create."""
    with transaction(engine):
        put(engine, 2)
        at_once(engine.alter_dataset(b"d", max_versions=9))
        drop(engine, b"e")
        drop(engine, b"f")
        put(engine, 2, dataset=b"f")
        put(engine, 2, dataset=b"new")


NOT_CHANGED = {b"d": [1], b"e": [1], b"f": [1]}
CHANGED = {b"d": [2, 1], b"f": [2], b"new": [2]}


def contents(engine: EmbeddedEngine) -> dict[bytes, list[int]]:
    assert families(engine) == {"d:" + name.decode() for name in engine.dataset_names()}
    return {name: shown(engine, dataset=name) for name in engine.dataset_names()}


def test_a_commit_that_fails_leaves_what_was_before_the_transaction(
    prepared: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, names = outcomes(prepared), [b"d", b"e", b"f", b"new"]
    versions = [{prepared.version(name) for name in names}]
    Failing(prepared, monkeypatch, "write", StoreFailure("IO error"))
    change_everything(prepared)
    versions.append({prepared.version(name) for name in names})
    failure = prepared.commit()
    assert isinstance(failure, StoreFailure)
    assert told == [failure]
    assert contents(prepared) == NOT_CHANGED
    assert at_once(prepared.dataset_info(b"d")).settings == DEFAULTS
    versions.append({prepared.version(name) for name in names})
    for one, other in pairwise(versions):
        assert {version for version in one & other if version > 0} == set()
    put(prepared, 1)
    assert prepared.commit() is None
    assert contents(prepared) == NOT_CHANGED
    change_everything(prepared)
    assert prepared.commit() is None
    assert contents(prepared) == CHANGED


def test_a_commit_that_is_stalled_keeps_the_transaction(
    prepared: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = outcomes(prepared)
    write = Failing(prepared, monkeypatch, "write", *[StoreStalled("Write stall")] * 2)
    ended = Failing(prepared, monkeypatch, "drop_family")
    change_everything(prepared)
    for _ in range(2):
        with pytest.raises(StoreStalled):
            prepared.commit()
        with transaction(prepared):
            assert shown(prepared) == [2, 1]
    assert ended.done == told == []
    assert prepared.commit() is None
    assert told == [None]
    assert len(write.done) == 1
    assert [family.name for family in ended.done] == ["d:e"]
    assert contents(prepared) == CHANGED


def test_a_dataset_that_cannot_be_created_leaves_the_rest_of_its_transaction(
    prepared: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Failing(prepared, monkeypatch, "create_family", StoreFailure("IO error"))
    with transaction(prepared):
        put(prepared, 2)
        drop(prepared, b"e")
        with pytest.raises(StoreFailure):
            put(prepared, 1, dataset=b"new")
        put(prepared, 3)
        assert shown(prepared) == [3, 2, 1]
    assert prepared.commit() is None
    assert contents(prepared) == {b"d": [3, 2, 1], b"f": [1]}


def test_a_family_that_cannot_be_ended_is_nobodys(
    prepared: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = outcomes(prepared)
    ended = Failing(prepared, monkeypatch, "drop_family", StoreFailure("IO error"))
    change_everything(prepared)
    assert prepared.commit() is None
    assert told == [None]
    assert [family.name for family in ended.done] == ["d:e"]
    assert contents(prepared) == CHANGED
    put(prepared, 7, dataset=b"e")
    assert shown(prepared, dataset=b"e") == [7]


def test_a_drop_is_on_the_disk_before_the_family_goes(
    prepared: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = list[str]()
    write, drop_family = prepared._store.write, prepared._store.drop_family

    def recorded_write(operations: Sequence[Any], *, durable: bool) -> None:
        write(operations, durable=durable)
        story.extend(
            f"{'durable' if durable else 'quick'} {kind.name}"
            for kind, _, key, _ in operations
            if key == entry_key(b"e")
        )

    def recorded_drop(family: Any) -> None:
        story.append(f"drop {family.name}")
        drop_family(family)

    monkeypatch.setattr(prepared._store, "write", recorded_write)
    monkeypatch.setattr(prepared._store, "drop_family", recorded_drop)
    change_everything(prepared)
    assert prepared.commit() is None
    assert story == ["durable DELETE", "drop d:e"]


def test_while_the_store_cannot_be_opened_nothing_is_taken_for_granted(
    prepared: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed transaction created and dropped datasets: no write may be accepted upon that."""

    def broken(_access: Any) -> Any:
        raise Exception("IO error: Input/output error")

    change_everything(prepared)
    Failing(prepared, monkeypatch, "write", StoreFailure("IO error"))
    versions = [prepared.version(b"d")]
    with monkeypatch.context() as breaking:
        breaking.setattr(prepared._store, "_open", broken)
        assert prepared.commit() is not None
        versions.append(prepared.version(b"d"))
        with pytest.raises(StoreFailure):
            put(prepared, 3, dataset=b"e")
    for _ in range(4):  # an attempt may open the store again, behind the engine's back
        with pytest.raises(StoreFailure):
            put(prepared, 3, dataset=b"e")
    put(prepared, 3, dataset=b"new")
    assert isinstance(prepared.commit(), StoreFailure)
    versions.append(prepared.version(b"d"))
    assert contents(prepared) == NOT_CHANGED
    assert len(set(versions)) == 3
    change_everything(prepared)
    assert prepared.commit() is None
    assert contents(prepared) == CHANGED


# Crashes


class Copier:
    """Copies the files of an engine before and after everything that changes them."""

    def __init__(
        self, engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, directory: Path, to: Path
    ) -> None:
        self._directory = directory
        self._to = to
        self.copies: list[Path] = []
        for name in ("create_family", "write", "drop_family"):
            monkeypatch.setattr(engine._store, name, self._around(getattr(engine._store, name)))

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def copied(*given: Any, **options: Any) -> Any:
            self._copy()
            result = call(*given, **options)
            self._copy()
            return result

        return copied

    def _copy(self) -> None:
        copy = self._to / str(len(self.copies))
        shutil.copytree(self._directory, copy)
        self.copies.append(copy)


def test_a_crash_at_any_moment_leaves_all_of_a_transaction_or_nothing(
    prepared: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copier = Copier(prepared, monkeypatch, tmp_path / "data", tmp_path)
    change_everything(prepared)
    assert prepared.commit() is None
    monkeypatch.undo()
    found = []
    for copy in copier.copies:
        survivor = open_engine(copy, SMALL)
        found.append(contents(survivor))
        asyncio.run(survivor.close())
    before_the_write = 3  # around the creation of a family, and just before
    assert found == [NOT_CHANGED] * before_the_write + [CHANGED] * 3


TRANSACTING = """
import asyncio, sys
from pathlib import Path
from storage.model import DatasetSettings, Deletion
from storage.opening import open_engine

def say(what):
    print(what, flush=True)

def telling(call, name):
    def told(*given, **options):
        say(f"{name} begins")
        result = call(*given, **options)
        say(f"{name} ends")
        return result
    return told

async def main():
    engine, keep = open_engine(Path(sys.argv[1])), DatasetSettings()
    for name in ("create_family", "write", "drop_family"):
        setattr(engine._store, name, telling(getattr(engine._store, name), name))
    while True:
        async with engine.transaction():
            number = await engine.increment(b"counter", b"r", b"c", 1, keep)
            cell = (b"r", number, b"c", b"%d" % number)
            await engine.delete(b"emptied", [b"r"], Deletion()) if number > 1 else None
            await engine.put(b"emptied", [cell], None, keep)
            await engine.drop_dataset(b"renewed", if_exists=True)
            say("renewing")
            await engine.put(b"renewed", [cell], None, keep)
            if number % 2:
                await engine.put(b"odd", [cell], None, keep)
            elif number % 5:
                await engine.drop_dataset(b"odd")
            else:
                await engine.drop_all()
                await engine.increment(b"counter", b"r", b"c", number, keep)
                await engine.put(b"emptied", [cell], None, keep)
                await engine.put(b"renewed", [cell], None, keep)
        assert engine.commit() is None
        say(number)

asyncio.run(main())
"""


@pytest.mark.parametrize("seed", range(5))
def test_a_process_that_is_killed_leaves_whole_transactions(seed: int, tmp_path: Path) -> None:
    """Killed at a random event, twice in the same directory."""
    chance = random.Random(seed)
    for _ in range(2):
        last = killed_after(chance.randrange(1, 150), tmp_path / "data")
        survivor = open_engine(tmp_path / "data", SMALL)
        found = contents(survivor)
        number = at_once(survivor.increment(b"counter", b"r", b"c", 0, DEFAULTS))
        names = [b"counter", b"emptied", b"renewed"] if number else []
        assert sorted({*found} - {b"odd"} - {b"counter"}) == names[1:]
        assert all(found[name] == [number] for name in names[1:])
        assert found.get(b"odd") == ([number] if number % 2 else None)
        assert number >= last
        asyncio.run(survivor.close())


def killed_after(events: int, directory: Path) -> int:
    """Let a process transact, kill it after so many events, return its last number before."""
    last = 0
    command = [sys.executable, "-c", TRANSACTING, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        for _ in range(events):
            line = process.stdout.readline().strip()
            assert line, "the process ended by itself"
            last = int(line) if line.isdigit() else last
        process.send_signal(signal.SIGKILL)
        for line in process.stdout:
            last = int(line) if line.strip().isdigit() else last
    assert process.returncode == -signal.SIGKILL
    return last


# Stories

DATASETS = st.sampled_from([b"d", b"d", b"e"])
ROWS = st.sampled_from([b"r", b"r", b"s", b"\x00"])
COLUMNS = st.sampled_from([b"a", b"a", b"b"])
MOMENTS = st.sampled_from([NOW - 2, NOW - 1, NOW, NOW + 1])
VALUES = st.sampled_from([b"1", b"1", b"2", b"", b"x"])
CELLS = st.tuples(ROWS, st.none() | MOMENTS, COLUMNS, VALUES)
LIFETIMES = st.sampled_from([None, None, None, 0, 1, 3])
SETTINGS = st.builds(DatasetSettings, st.sampled_from([0, 1, 2]), st.sampled_from([0, 0, 1]))
NAMED = st.none() | st.sets(COLUMNS, min_size=1).map(lambda names: tuple(sorted(names)))
DELETIONS = st.one_of(
    st.builds(Deletion, columns=NAMED),
    st.builds(Deletion, columns=NAMED, times=st.builds(TimeRange, MOMENTS, MOMENTS)),
    st.builds(Deletion, columns=NAMED, timestamps=st.lists(MOMENTS, min_size=1, max_size=2)),
)
SELECTIONS = st.builds(
    Selection, columns=NAMED, versions=st.sampled_from([None, 1, 2]), times=st.just(TimeRange())
)
REQUESTS = st.sampled_from(
    [ALL, PageRequest(LIMITS, columns=1, rows=1), PageRequest(PageLimits(cells=2)), ALL]
)
RANGES = st.sampled_from([ALL_NAMES, NameRange(start=b"s"), NameRange(stop=b"s")])
MANY = st.lists(ROWS, min_size=1, max_size=3)
CALLS = st.one_of(
    st.tuples(st.just("put"), DATASETS, st.lists(CELLS, min_size=1, max_size=3), LIFETIMES),
    st.tuples(st.just("put"), DATASETS, st.lists(CELLS, min_size=1, max_size=3), st.none()),
    st.tuples(st.just("fill"), DATASETS, ROWS),
    st.tuples(st.just("increment"), DATASETS, ROWS, COLUMNS),
    st.tuples(st.just("compare_and_put"), DATASETS, CELLS, st.none() | VALUES, LIFETIMES),
    st.tuples(st.just("delete"), DATASETS, MANY, DELETIONS),
    st.tuples(st.just("delete"), DATASETS, MANY, DELETIONS),
    st.tuples(st.just("delete"), DATASETS, MANY, st.just(Deletion())),
    st.tuples(st.just("read_row"), DATASETS, ROWS, SELECTIONS, REQUESTS),
    st.tuples(st.just("read_rows"), DATASETS, MANY, SELECTIONS, REQUESTS),
    st.tuples(st.just("read_columns"), DATASETS, ROWS, RANGES, REQUESTS),
    st.tuples(st.just("scan"), DATASETS, RANGES, SELECTIONS, REQUESTS),
    st.tuples(st.just("count_rows"), DATASETS, MANY),
    st.tuples(st.just("create"), DATASETS, SETTINGS),
    st.tuples(st.just("alter"), DATASETS, st.sampled_from([0, 1, 2])),
    st.tuples(st.just("drop"), DATASETS),
    st.tuples(st.sampled_from(["drop_all", "wait"])),
)
CHAPTERS = st.tuples(st.sampled_from(["alone", "together"]), st.lists(CALLS, max_size=12))
Call = tuple[Any, ...]


def called(engine: EmbeddedEngine, call: Call, now: int) -> Coroutine[Any, Any, object]:
    match call:
        case ("put", name, cells, lifetime):
            expires_at = None if lifetime is None else now + lifetime
            return engine.put(name, cells, expires_at, DEFAULTS)
        case ("fill", name, row):  # more than are deleted one by one
            return engine.put(name, [(row, at, b"a", b"1") for at in range(50)], None, DEFAULTS)
        case ("increment", name, row, column):
            return engine.increment(name, row, column, 1, DEFAULTS)
        case ("compare_and_put", name, cell, expected, lifetime):
            expires_at = None if lifetime is None else now + lifetime
            return engine.compare_and_put(name, cell, expected, expires_at, DEFAULTS)
        case ("create", name, kept):
            return engine.create_dataset(name, kept)
        case ("alter", name, max_versions):
            return engine.alter_dataset(name, max_versions=max_versions)
        case ("drop", name):
            return engine.drop_dataset(name)
    method = getattr(engine, call[0])
    result: Coroutine[Any, Any, object] = method(*call[1:])
    return result


def answer(engine: EmbeddedEngine, call: Call, now: int) -> object:
    try:
        return at_once(called(engine, call, now))
    except StorageError as error:
        return str(error)


def everything(engine: EmbeddedEngine) -> object:
    names = engine.dataset_names()
    info = [at_once(engine.dataset_info(name)) for name in names]
    pages = [at_once(engine.scan(name, ALL_NAMES, EVERYTHING, ALL)) for name in names]
    return [(each.name, each.settings, each.created_ms) for each in info], pages


def stored(engine: EmbeddedEngine) -> object:
    """Every byte of every family, with the group in the log."""
    assert engine.commit() is None
    end_families(engine)
    kept = {
        name: list(each.scan(None).walk(b"")) for name, each in engine._store.families().items()
    }
    kept["default"] = list(engine._catalog.scan(None).walk(b"dataset:"))
    return kept


class Pair:
    """Two engines on one clock, which stands still until the story moves it."""

    def __init__(self, *engines: EmbeddedEngine) -> None:
        self.together, self.one_by_one = engines
        self.now = NOW

    def begin(self, kept: DatasetSettings) -> None:
        """With one dataset, and no other."""
        self.now = NOW
        for engine in (self.together, self.one_by_one):
            engine._clock = HybridClock(wall_ns=lambda: self.now * 1_000_000)
            at_once(engine.drop_all())
            create(engine, b"d", kept)
            assert engine.commit() is None

    def tell(self, calls: list[Call]) -> None:
        for call in calls:
            if call[0] == "wait":
                self.now += 1
                continue
            versions = self.together.version(b"d"), self.one_by_one.version(b"d")
            replies = [
                answer(engine, call, self.now) for engine in (self.together, self.one_by_one)
            ]
            assert self.one_by_one.commit() is None
            assert replies[0] == replies[1]
            assert (self.together.version(b"d") == versions[0]) == (
                self.one_by_one.version(b"d") == versions[1]
            )


@pytest.fixture(params=["rocks", "memory"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    if request.param == "rocks":
        engines = [open_engine(tmp_path / name, SMALL) for name in ("together", "one")]
    else:
        engines = [open_memory_engine(), open_memory_engine()]
    yield Pair(*engines)
    for engine in engines:
        asyncio.run(engine.close())


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(SETTINGS, st.lists(CHAPTERS, min_size=1, max_size=4))
def test_a_transaction_answers_and_leaves_what_its_calls_one_by_one_do(
    pair: Pair, kept: DatasetSettings, chapters: list[tuple[str, list[Call]]]
) -> None:
    pair.begin(kept)
    for kind, calls in chapters:
        with transaction(pair.together) if kind == "together" else contextlib.nullcontext():
            pair.tell(calls)
            if kind == "together":
                assert everything(pair.together) == everything(pair.one_by_one)
    assert stored(pair.together) == stored(pair.one_by_one)
    assert everything(pair.together) == everything(pair.one_by_one)
