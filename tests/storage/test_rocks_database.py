"""The engine over RocksDB when things go wrong: failed and stalled writes, damage, crashes.

The failures are real where one can have them at will (a limit on the size of files, a stopped
level, damaged bytes, a copy of the files of a running engine); elsewhere the store is made to
raise what RocksDB raises. After each of them the engine has to be of use again.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import resource
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rocksdict import Rdict

from storage.catalog import entry_key, family_name
from storage.directory import STORE_FOLDER, prepare
from storage.embedded import datasets
from storage.embedded.engine import EmbeddedEngine
from storage.embedded.ordered import Kind
from storage.encoding import stamp_of
from storage.errors import CannotOpen, CorruptData, NoSuchDataset, StoreFailure, StoreStalled
from storage.model import (
    ALL_NAMES,
    EVERYTHING,
    DatasetSettings,
    Deletion,
    PageLimits,
    PageRequest,
)
from storage.opening import open_engine
from storage.rocks import database as guard
from storage.rocks.database import RocksDatabase
from storage.rocks.families import RocksFamily
from storage.rocks.options import RocksSettings
from storage.transfer.copying import copy_cells
from tests.harness import until
from tests.storage.open_files import deleted_files

DEFAULTS = DatasetSettings()
SMALL = RocksSettings(block_cache_bytes=1 << 20, write_buffer_bytes=1 << 16)
UNLIMITED = PageRequest(PageLimits(columns=10**9, rows=10**9, cells=10**9, bytes=10**12))
ROW = b"r"


class Reopened:
    """Engines over one directory, one after the other; the last one is closed in the end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.engine = open_engine(directory, SMALL)

    def again(self) -> EmbeddedEngine:
        asyncio.run(self.engine.close())
        self.engine = open_engine(self.directory, SMALL)
        return self.engine


@pytest.fixture
def reopened(tmp_path: Path) -> Iterator[Reopened]:
    engines = Reopened(tmp_path / "data")
    yield engines
    asyncio.run(engines.engine.close())


@pytest.fixture
def engine(reopened: Reopened) -> EmbeddedEngine:
    """An engine whose dataset `d` holds the cell 1, in the log."""
    put(reopened.engine, 1)
    assert reopened.engine.commit() is None
    return reopened.engine


def put(
    engine: EmbeddedEngine, *timestamps: int | None, row: bytes = ROW, dataset: bytes = b"d"
) -> None:
    cells = [(row, timestamp, b"c", b"v") for timestamp in timestamps]
    asyncio.run(engine.put(dataset, cells, None, DEFAULTS))


def shown(engine: EmbeddedEngine, row: bytes = ROW, dataset: bytes = b"d") -> list[int]:
    page = asyncio.run(engine.read_row(dataset, row, EVERYTHING, UNLIMITED))
    assert page.cursor == b"0"
    timestamps = []
    for _, cells in page.columns:
        for cell in cells:
            assert isinstance(cell, tuple)
            timestamps.append(cell[0])
    return timestamps


def database_of(engine: EmbeddedEngine) -> RocksDatabase:
    assert isinstance(engine._store, RocksDatabase)
    return engine._store


def outcomes(engine: EmbeddedEngine) -> list[StoreFailure | None]:
    """What on_settled is told from now on."""
    told: list[StoreFailure | None] = []
    engine.on_settled = told.append
    return told


def refuse_writes(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, *errors: Exception
) -> list[Sequence[Any]]:
    """The next writes raise these; what is written after them is recorded."""
    store, waiting, written = database_of(engine), list(errors), list[Sequence[Any]]()
    write = store.write

    def refusing(operations: Sequence[Any], *, durable: bool) -> None:
        if waiting:
            raise waiting.pop(0)
        write(operations, durable=durable)
        written.append(list(operations))

    monkeypatch.setattr(store, "write", refusing)
    return written


@contextlib.contextmanager
def file_size_limit(most_bytes: int) -> Iterator[None]:
    """For this process. Python ignores the signal, so that a write beyond only fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# Opening and closing


def test_cells_settings_and_names_survive_a_restart(reopened: Reopened) -> None:
    kept = {b"a:b": DatasetSettings(2, 0), b"a-b": DatasetSettings(0, 60), b":": DEFAULTS}
    for name, settings in kept.items():
        asyncio.run(reopened.engine.create_dataset(name, settings))
        put(reopened.engine, 2**63 - 1, row=b"\x00" + name, dataset=name)
    again = reopened.again()
    assert again.dataset_names() == sorted(kept)
    for name, settings in kept.items():
        assert asyncio.run(again.dataset_info(name)).settings == settings
        assert shown(again, b"\x00" + name, name) == [2**63 - 1]


def test_a_colon_in_a_name_is_percent_encoded_on_disk(engine: EmbeddedEngine) -> None:
    put(engine, 1, dataset=b"app:events")
    assert set(database_of(engine).families()) == {"d:d", "d:app%3Aevents"}


def test_a_directory_serves_one_engine_at_a_time(engine: EmbeddedEngine, tmp_path: Path) -> None:
    with pytest.raises(CannotOpen, match="in use by another running server"):
        open_engine(tmp_path / "data", SMALL)
    put(engine, 2)
    assert shown(engine) == [2, 1]


@pytest.mark.parametrize("held", ["a walk", "a traceback", "a damaged catalog"])
def test_closing_frees_the_directory_whatever_somebody_holds(
    held: str, engine: EmbeddedEngine, tmp_path: Path
) -> None:
    database = database_of(engine)
    holding: list[object] = []
    walk = database.default_family().scan(None).walk(b"")
    next(walk)
    if held == "a walk":
        holding.append(walk)
    elif held == "a traceback":
        holding.append(raised_over(walk))
    else:
        database.write([(Kind.PUT, database.default_family(), entry_key(b"d"), b"{")], durable=True)
    del walk
    asyncio.run(engine.close())
    if held == "a damaged catalog":
        with pytest.raises(CannotOpen, match="'d' is damaged") as refusal:
            open_engine(tmp_path / "data", SMALL)
        holding.append(refusal)
    again = RocksDatabase(prepare(tmp_path / "data"), SMALL)
    assert again.default_family().get(entry_key(b"d")) is not None
    again.close()
    assert len(holding) == 1


def raised_over(walk: Iterator[tuple[bytes, bytes]]) -> Exception:
    """An error whose traceback holds the walk, half run."""
    try:
        for key, _ in walk:
            raise ValueError(key)
    except ValueError as error:
        return error
    pytest.fail("nothing to walk over")


def test_a_closed_store_refuses_and_stays_closed(engine: EmbeddedEngine, tmp_path: Path) -> None:
    database = database_of(engine)
    dataset = engine.open_dataset(b"d")
    assert dataset is not None
    asyncio.run(engine.close())
    put(engine, 2)
    assert isinstance(engine.commit(), StoreFailure)
    uses: list[Callable[[], object]] = [
        database.reopen,
        database.sync,
        engine.sync,
        lambda: database.create_family("d:new"),
        lambda: dataset.family.get(b""),
        lambda: dataset.family.scan(None),
        dataset.family.statistics,
        dataset.family.compact,
        lambda: shown(engine),
    ]
    for use in uses:
        with pytest.raises(StoreFailure):
            use()
    other = open_engine(tmp_path / "data", SMALL)
    assert shown(other) == [1]
    asyncio.run(other.close())


def test_a_family_without_an_entry_is_dropped_at_the_next_start(tmp_path: Path) -> None:
    database = RocksDatabase(prepare(tmp_path), SMALL)
    orphan = database.create_family(family_name(b"d"))
    database.write([(Kind.PUT, orphan, b"left", b"over")], durable=True)
    database.close()
    engine = open_engine(tmp_path, SMALL)
    assert database_of(engine).families() == {}
    assert engine.dataset_names() == []
    put(engine, 1)
    assert shown(engine) == [1]
    asyncio.run(engine.close())


def test_an_entry_without_a_family_is_refused(tmp_path: Path) -> None:
    database = RocksDatabase(prepare(tmp_path), SMALL)
    engine = EmbeddedEngine(database)
    put(engine, 1)
    engine.commit()
    database.drop_family(database.families()["d:d"])
    asyncio.run(engine.close())
    with pytest.raises(CannotOpen, match="dataset 'd' has lost its data files"):
        open_engine(tmp_path, SMALL)


def test_a_scan_keeps_the_moment_and_the_bound_it_was_made_with(engine: EmbeddedEngine) -> None:
    database = database_of(engine)
    family = database.create_family("d:x")
    database.write([(Kind.PUT, family, b"%04d" % n, b"") for n in range(2_000)], durable=False)
    scan = family.scan(b"".join([b"1", b"000"]))
    database.write([(Kind.DELETE_RANGE, family, b"0", b"2")], durable=False)
    gc.collect()
    assert [key for key, _ in scan.walk(b"0010")] == [b"%04d" % n for n in range(10, 1_000)]
    assert list(family.scan(None).walk(b"")) == []


def test_a_family_that_was_dropped_takes_no_other_of_its_name_along(
    engine: EmbeddedEngine,
) -> None:
    database = database_of(engine)
    dropped = database.create_family("d:x")
    database.drop_family(dropped)
    again = database.create_family("d:x")
    with pytest.raises(StoreFailure):
        database.drop_family(dropped)
    database.write([(Kind.PUT, again, b"k", b"v")], durable=False)
    assert again.get(b"k") == b"v"


def test_a_range_that_ends_before_it_begins_deletes_nothing(engine: EmbeddedEngine) -> None:
    database = database_of(engine)
    family = database.families()["d:d"]
    database.write([(Kind.DELETE_RANGE, family, b"z", b"a")], durable=False)
    put(engine, 2)
    assert shown(engine) == [2, 1]


def test_compaction_gives_the_disk_back(engine: EmbeddedEngine) -> None:
    noise = random.Random(1)
    cells = [(b"%d" % n, 1, b"c", noise.randbytes(500)) for n in range(1_000)]
    asyncio.run(engine.put(b"d", cells, None, DEFAULTS))
    asyncio.run(compact(engine))
    before = asyncio.run(engine.dataset_info(b"d")).disk_bytes
    assert before > 500_000
    asyncio.run(engine.delete(b"d", [row for row, _, _, _ in cells], Deletion()))
    asyncio.run(compact(engine))
    after = asyncio.run(engine.dataset_info(b"d"))
    assert after.disk_bytes < before / 100
    assert after.estimated_cells == 1
    assert shown(engine) == [1]


async def compact(engine: EmbeddedEngine) -> None:
    await engine.compact_dataset(b"d")
    assert engine._collector._task is not None
    await engine._collector._task


# Failed writes


def test_a_failed_group_is_told_and_dropped(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = outcomes(engine)
    refuse_writes(engine, monkeypatch, StoreFailure("IO error"))
    put(engine, 2)
    failure = engine.commit()
    assert isinstance(failure, StoreFailure)
    assert told == [failure]
    assert shown(engine) == [1]
    put(engine, 3)
    assert engine.commit() is None
    assert told == [failure, None]
    assert shown(engine) == [3, 1]


def test_a_dataset_created_in_a_failed_group_is_gone(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_writes(engine, monkeypatch, StoreFailure("IO error"))
    put(engine, 1, dataset=b"new")
    assert engine.commit() is not None
    assert engine.dataset_names() == [b"d"]
    assert set(database_of(engine).families()) == {"d:d"}
    with pytest.raises(NoSuchDataset):
        shown(engine, dataset=b"new")
    put(engine, 2, dataset=b"new")
    assert shown(engine, dataset=b"new") == [2]


def test_settings_altered_in_a_failed_group_are_as_before(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_writes(engine, monkeypatch, StoreFailure("IO error"))
    asyncio.run(engine.alter_dataset(b"d", max_versions=7))
    assert engine.commit() is not None
    assert asyncio.run(engine.dataset_info(b"d")).settings == DEFAULTS


@pytest.mark.parametrize(
    "call",
    [
        lambda engine: shown(engine),
        lambda engine: asyncio.run(engine.settle()),
        lambda engine: asyncio.run(engine.drop_dataset(b"d")),
        lambda engine: asyncio.run(engine.scan(b"d", ALL_NAMES, EVERYTHING, UNLIMITED)),
    ],
)
def test_a_call_that_has_to_commit_first_raises_the_failure(
    call: Callable[[EmbeddedEngine], object],
    engine: EmbeddedEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = outcomes(engine)
    refuse_writes(engine, monkeypatch, StoreFailure("IO error"))
    put(engine, 2)
    with pytest.raises(StoreFailure, match="IO error"):
        call(engine)
    assert len(told) == 1
    assert shown(engine) == [1]


def test_a_drop_that_fails_leaves_the_dataset(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_writes(engine, monkeypatch, StoreFailure("IO error"))
    with pytest.raises(StoreFailure, match="IO error"):
        asyncio.run(engine.drop_dataset(b"d"))
    assert shown(engine) == [1]


def test_what_the_disk_refuses_is_dropped_and_the_rest_stays(engine: EmbeddedEngine) -> None:
    """The log cannot grow: RocksDB itself fails, and would refuse all writes until reopened."""
    told, noise = outcomes(engine), random.Random(1)
    family = database_of(engine).families()["d:d"]
    with file_size_limit(30_000):
        for number in range(10):
            cell = (b"big", number, b"c", noise.randbytes(5_000))
            asyncio.run(engine.put(b"d", [cell], None, None))
            if engine.commit() is not None:
                break
    kept = [moment for moment, outcome in enumerate(told) if outcome is None]
    assert 0 < len(kept) < 10
    assert isinstance(told[-1], StoreFailure)
    assert "File too large" in str(told[-1])
    assert shown(engine, b"big") == kept[::-1]
    assert database_of(engine).families()["d:d"] is family
    put(engine, 2)
    assert engine.commit() is None
    assert shown(engine) == [2, 1]


def test_a_drop_that_the_disk_refuses_leaves_a_store_that_writes(
    engine: EmbeddedEngine, reopened: Reopened
) -> None:
    logs = (reopened.directory / STORE_FOLDER).glob("*.log")
    full = max(log.stat().st_size for log in logs)
    with file_size_limit(full), pytest.raises(StoreFailure, match="File too large"):
        asyncio.run(engine.drop_dataset(b"d"))
    assert shown(engine) == [1]
    put(engine, 2)
    assert engine.commit() is None


def test_a_full_disk_refuses_writes_and_answers_reads(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "SPACE_CHECK_SECONDS", 0)
    with monkeypatch.context() as full:
        full.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=1, f_frsize=4096))
        put(engine, 2)
        failure = engine.commit()
        assert failure is not None
        assert "no space left" in str(failure)
        with pytest.raises(StoreFailure, match="no space left"):
            put(engine, 1, dataset=b"new")
        assert shown(engine) == [1]
    put(engine, 3)
    assert shown(engine) == [3, 1]
    assert engine.dataset_names() == [b"d"]


def test_where_only_reading_is_possible_it_reads_and_tries_again(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = database_of(engine)
    opened, refusals = database._open, [Exception("IO error: No space left on device")]

    def refusing(access: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return opened(access)

    monkeypatch.setattr(database, "_open", refusing)
    database.reopen()
    assert shown(engine) == [1]
    assert not database._writable
    put(engine, 2)
    assert engine.commit() is None
    assert shown(engine) == [2, 1]


def test_a_store_that_cannot_be_opened_at_all_fails_until_it_can(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(_access: Any) -> Any:
        raise Exception("IO error: Input/output error")

    refuse_writes(engine, monkeypatch, StoreFailure("IO error"))
    with monkeypatch.context() as broken:
        broken.setattr(database_of(engine), "_open", refusing)
        put(engine, 2)
        assert engine.commit() is not None
        with pytest.raises(StoreFailure):
            shown(engine)
        put(engine, 3)
        assert engine.commit() is not None
    put(engine, 4)
    assert engine.commit() is None
    assert shown(engine) == [4, 1]


class HalfCreating:
    """A database that creates a family and says that it did not, as on a full disk."""

    def __init__(self, rdict: Any) -> None:
        self._rdict = rdict

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rdict, name)

    def create_column_family(self, *arguments: Any) -> None:
        self._rdict.create_column_family(*arguments).close()
        raise Exception("IO error: No space left on device")


def test_a_creation_that_half_failed_can_be_tried_again(engine: EmbeddedEngine) -> None:
    database = database_of(engine)
    put(engine, 2)
    database._rdict = HalfCreating(database._rdict)  # type: ignore[assignment]
    with pytest.raises(StoreFailure, match="No space left"):
        put(engine, 1, dataset=b"new")
    assert engine.dataset_names() == [b"d"]
    put(engine, 3, dataset=b"new")
    assert shown(engine, dataset=b"new") == [3]
    assert shown(engine) == [2, 1]


# Stalls


@pytest.mark.parametrize("times", [1, 5])
def test_settle_waits_for_a_stall_to_end_and_writes_once(
    times: int, engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = outcomes(engine)
    written = refuse_writes(engine, monkeypatch, *[StoreStalled("Write stall")] * times)
    put(engine, 2, 3)
    assert shown(engine) == [3, 2, 1]
    assert told == [None]
    assert [len(operations) for operations in written] == [2]


def test_a_commit_during_a_stall_keeps_the_group(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = outcomes(engine)
    refuse_writes(engine, monkeypatch, StoreStalled("Write stall"))
    put(engine, 2)
    with pytest.raises(StoreStalled):
        engine.commit()
    assert told == []
    put(engine, 3)
    assert engine.commit() is None
    assert told == [None]
    assert shown(engine) == [3, 2, 1]


def test_an_increment_during_a_stall_counts_once(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(engine.increment(b"d", ROW, b"n", 1, None))
    refuse_writes(engine, monkeypatch, *[StoreStalled("Write stall")] * 3)
    assert asyncio.run(engine.increment(b"d", ROW, b"n", 1, None)) == 2
    assert asyncio.run(engine.increment(b"d", ROW, b"n", 1, None)) == 3


def test_a_stall_of_rocksdb_applies_nothing_until_it_ends(engine: EmbeddedEngine) -> None:
    rdict = database_of(engine)._rdict
    for _ in range(2):
        rdict[b"filler"] = b""
        rdict.flush()
    rdict.set_options(
        {"level0_file_num_compaction_trigger": "1000", "level0_stop_writes_trigger": "2"}
    )
    put(engine, 2)
    with pytest.raises(StoreStalled):
        engine.commit()
    assert len(list(database_of(engine).families()["d:d"].scan(None).walk(b""))) == 1
    rdict.set_options({"level0_stop_writes_trigger": "1000"})
    assert engine.commit() is None
    assert shown(engine) == [2, 1]


def test_a_failure_during_a_stall_is_raised_to_all_who_wait(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    stall = [StoreStalled("Write stall")] * 3
    refuse_writes(engine, monkeypatch, *stall, StoreFailure("IO error"))
    put(engine, 2)

    async def two_readers() -> Iterable[object]:
        reads = [engine.read_row(b"d", ROW, EVERYTHING, UNLIMITED) for _ in range(2)]
        return await asyncio.gather(*reads, return_exceptions=True)

    results = list(asyncio.run(two_readers()))
    assert [type(result) for result in results] == [StoreFailure, StoreFailure]
    assert shown(engine) == [1]


def test_a_put_with_an_expiry_waits_for_a_stall_while_max_versions_is_lifted(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(engine.alter_dataset(b"d", max_versions=1))
    put(engine, 2)
    refuse_writes(engine, monkeypatch, StoreStalled("Write stall"))

    async def alter_meanwhile() -> None:
        cell = (ROW, 1, b"c", b"v")
        waits = asyncio.create_task(engine.put(b"d", [cell], 2**62, None))
        await asyncio.sleep(0)
        await engine.alter_dataset(b"d", max_versions=0)
        await waits

    asyncio.run(alter_meanwhile())
    assert shown(engine) == [2, 1]


@pytest.mark.parametrize("waits", ["before", "after"])
def test_a_name_written_to_while_it_is_dropped_during_a_stall_keeps_its_new_cells(
    waits: str, reopened: Reopened, engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    if waits == "before":
        put(engine, 2)
    refuse_writes(engine, monkeypatch, *[StoreStalled("Write stall")] * 2)

    async def drop_and_put() -> None:
        drop = asyncio.create_task(engine.drop_dataset(b"d"))
        await asyncio.sleep(0)
        await engine.put(b"d", [(ROW, 7, b"c", b"v")], None, DEFAULTS)
        await drop
        await engine.put(b"d", [(ROW, 8, b"c", b"v")], None, DEFAULTS)

    asyncio.run(drop_and_put())
    monkeypatch.undo()
    assert shown(engine) == [8, 7]
    assert shown(reopened.again()) == [8, 7]


# Crashes


def crash(engine: EmbeddedEngine, directory: Path, copy: Path) -> EmbeddedEngine:
    """An engine over the files as they are at this moment, not closed by anybody."""
    assert database_of(engine)._path == directory / STORE_FOLDER
    shutil.copytree(directory, copy)
    return open_engine(copy, SMALL)


def test_stamps_do_not_go_back_after_a_crash(reopened: Reopened, tmp_path: Path) -> None:
    engine, wall = reopened.engine, 1_700_000_000_000
    engine._clock._wall_ns = lambda: wall * 1_000_000
    last = b""
    for number in range(4):
        wall += 2_000
        put(engine, None)
        assert engine.commit() is None
        last = engine._clock.stamp()
        survivor = crash(engine, reopened.directory, tmp_path / f"copy{number}")
        survivor._clock._wall_ns = lambda: 0
        assert stamp_of(survivor._clock.stamp()) > stamp_of(last)
        assert survivor.now() <= wall + 10_000
        asyncio.run(survivor.close())


def test_after_a_clean_stop_the_clock_goes_on_where_it_stood(reopened: Reopened) -> None:
    engine = reopened.engine
    engine._clock._wall_ns = lambda: 1_700_000_000_000_000_000
    put(engine, None)
    last = stamp_of(engine._clock.stamp())
    again = reopened.again()
    assert again._clock.last_ms == 1_700_000_000_000
    again._clock._wall_ns = lambda: 0
    assert stamp_of(again._clock.stamp()) > last


def test_a_reading_of_the_clock_holds_after_a_crash_too(
    engine: EmbeddedEngine, reopened: Reopened, tmp_path: Path
) -> None:
    """Expiry was decided by it; every turn of the server's loop ends with a commit."""
    seen = engine.now() + 60_000
    engine._clock._wall_ns = lambda: seen * 1_000_000
    assert engine.now() == seen
    engine.commit()
    survivor = crash(engine, reopened.directory, tmp_path / "copy")
    survivor._clock._wall_ns = lambda: 0
    assert survivor.now() >= seen
    asyncio.run(survivor.close())


def test_a_crash_leaves_all_of_a_group_or_nothing(
    engine: EmbeddedEngine, reopened: Reopened, tmp_path: Path
) -> None:
    put(engine, 2, 3)
    put(engine, 4, dataset=b"new")
    before = crash(engine, reopened.directory, tmp_path / "before")
    engine.commit()
    after = crash(engine, reopened.directory, tmp_path / "after")
    assert (before.dataset_names(), shown(before)) == ([b"d"], [1])
    assert (after.dataset_names(), shown(after)) == ([b"d", b"new"], [3, 2, 1])
    assert shown(after, dataset=b"new") == [4]
    for survivor in (before, after):
        asyncio.run(survivor.close())


def test_a_drop_is_on_the_disk_before_the_family_goes(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a family is on the disk at once: a power cut must not leave its entry behind."""
    database, story = database_of(engine), list[str]()
    write, drop_family = database.write, database.drop_family

    def recorded_write(operations: Sequence[Any], *, durable: bool) -> None:
        write(operations, durable=durable)
        story.extend(
            f"{'durable' if durable else 'quick'} {kind.name}"
            for kind, family, key, _ in operations
            if key == entry_key(b"d")
        )

    def recorded_drop(family: Any) -> None:
        story.append("drop")
        drop_family(family)

    monkeypatch.setattr(database, "write", recorded_write)
    monkeypatch.setattr(database, "drop_family", recorded_drop)
    asyncio.run(engine.drop_dataset(b"d"))
    assert story == ["durable DELETE", "drop"]


# Damage

ROWS = 1_500
PLACES = 12


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed directory with 1,500 rows in one file; damage it only in a copy."""
    directory = tmp_path_factory.mktemp("healthy") / "data"
    engine = open_engine(directory, SMALL)
    noise = random.Random(1)
    cells = [(b"%04d" % number, 1, b"c", noise.randbytes(200)) for number in range(ROWS)]
    asyncio.run(engine.put(b"d", cells, None, DEFAULTS))
    asyncio.run(compact(engine))
    asyncio.run(engine.close())
    return directory


def damaged(healthy: Path, directory: Path, place: int) -> Path:
    """A copy of it with 8 bytes of its biggest file turned over."""
    shutil.copytree(healthy, directory)
    file = max(directory.glob("store/*.sst"), key=lambda path: path.stat().st_size)
    assert file.stat().st_size > ROWS * 200
    content = bytearray(file.read_bytes())
    offset = len(content) * place // PLACES
    for index in range(offset, offset + 8):
        content[index] ^= 0xFF
    file.write_bytes(content)
    return directory


@pytest.mark.parametrize("place", range(PLACES))
def test_damage_is_an_error_and_never_a_shorter_answer(
    place: int, healthy: Path, tmp_path: Path
) -> None:
    engine = open_engine(damaged(healthy, tmp_path / "data", place), SMALL)
    noise, failed = random.Random(1), 0
    for number in range(ROWS):
        expected = [(b"c", [(1, noise.randbytes(200))])]
        try:
            page = asyncio.run(engine.read_row(b"d", b"%04d" % number, EVERYTHING, UNLIMITED))
        except CorruptData:
            failed += 1
        else:
            assert page.columns == expected
    assert 0 < failed < ROWS / 10
    for call in (
        engine.scan(b"d", ALL_NAMES, EVERYTHING, UNLIMITED),
        engine.count_rows(b"d", [b"%04d" % number for number in range(ROWS)]),
        engine.delete(b"d", [b"%04d" % number for number in range(ROWS)], Deletion()),
    ):
        with pytest.raises(CorruptData):
            asyncio.run(call)
    put(engine, 1)
    assert shown(engine) == [1]
    asyncio.run(engine.close())


def test_an_error_that_somebody_keeps_does_not_keep_the_directory(
    healthy: Path, tmp_path: Path
) -> None:
    directory = damaged(healthy, tmp_path / "data", 6)
    engine = open_engine(directory, SMALL)
    with pytest.raises(CorruptData) as kept:
        asyncio.run(engine.scan(b"d", ALL_NAMES, EVERYTHING, UNLIMITED))
    asyncio.run(engine.close())
    again = open_engine(directory, SMALL)
    assert shown(again, b"0000") == [1]
    asyncio.run(again.close())
    assert "checksum" in str(kept.value)


def test_a_compaction_that_meets_damage_fails_and_writing_goes_on(
    healthy: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """RocksDB says that all went well, and from then on refuses every write until reopened."""
    engine = open_engine(damaged(healthy, tmp_path / "data", 6), SMALL)
    before = asyncio.run(engine.dataset_info(b"d"))
    asyncio.run(compact(engine))
    assert "compaction of d failed" in caplog.text
    assert asyncio.run(engine.dataset_info(b"d")) == before
    with pytest.raises(StoreFailure):
        database_of(engine).families()["d:d"].compact()
    put(engine, 1)
    first = engine.commit()
    assert first is None or isinstance(first, CorruptData)
    put(engine, 2)
    assert engine.commit() is None
    assert 2 in shown(engine)
    assert shown(engine, b"0000") == [1]
    asyncio.run(engine.close())


# Families that are dropped while files are written


def files_are_written(monkeypatch: pytest.MonkeyPatch, *, written: bool = True) -> None:
    monkeypatch.setattr(RocksFamily, "is_worked_on", lambda family: written)


def families_on_disk(database: RocksDatabase) -> list[str]:
    return [name for name in Rdict.list_cf(str(database._path), database._options()) if ":" in name]


def test_a_dataset_whose_store_works_on_files_gives_its_room_back_later(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = database_of(engine)
    files_are_written(monkeypatch)
    asyncio.run(engine.drop_dataset(b"d"))
    engine.tidy()
    assert families_on_disk(database) == ["d:d"]
    put(engine, 7)  # a dataset of the same name does not wait for that
    assert shown(engine) == [7]
    engine.tidy()
    assert shown(engine) == [7]
    asyncio.run(engine.drop_dataset(b"d"))
    files_are_written(monkeypatch, written=False)
    engine.tidy()
    assert families_on_disk(database) == []


def test_a_family_whose_end_was_put_off_ends_with_the_next_start(
    reopened: Reopened, engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_are_written(monkeypatch)
    asyncio.run(engine.drop_dataset(b"d"))
    files_are_written(monkeypatch, written=False)
    again = reopened.again()
    assert again.dataset_names() == []
    assert families_on_disk(database_of(again)) == []


def test_a_failure_meanwhile_ends_it_too(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_are_written(monkeypatch)
    asyncio.run(engine.drop_dataset(b"d"))
    files_are_written(monkeypatch, written=False)
    engine.fail(StoreFailure("something else"))
    assert families_on_disk(database_of(engine)) == []
    put(engine, 8)
    assert shown(engine) == [8]


def test_a_family_does_not_wait_for_its_end_for_ever(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_are_written(monkeypatch)
    monkeypatch.setattr(guard, "PUT_OFF_SECONDS", -1.0)
    asyncio.run(engine.drop_dataset(b"d"))
    engine.tidy()
    assert families_on_disk(database_of(engine)) == []


def test_many_datasets_end_one_after_the_other(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of one takes milliseconds, in which nobody is served."""
    for number in range(5):
        put(engine, 1, dataset=b"d%d" % number)
    asyncio.run(engine.settle())
    monkeypatch.setattr(datasets, "END_SECONDS", 0.0)
    asyncio.run(engine.drop_all())
    left = [families_on_disk(database_of(engine))]
    while left[-1]:
        engine.tidy()
        left.append(families_on_disk(database_of(engine)))
    assert [len(names) for names in left] == [5, 4, 3, 2, 1, 0]


def test_one_that_has_to_wait_does_not_keep_the_others(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(engine, 1, dataset=b"e")
    asyncio.run(engine.settle())
    monkeypatch.setattr(RocksFamily, "is_worked_on", lambda family: family.name == "d:d")
    monkeypatch.setattr(datasets, "END_SECONDS", 0.0)
    asyncio.run(engine.drop_all())
    assert families_on_disk(database_of(engine)) == ["d:d", "d:e"]
    engine.tidy()
    assert families_on_disk(database_of(engine)) == ["d:d"]


def test_a_name_whose_family_has_yet_to_end_begins_empty(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_are_written(monkeypatch)
    assert engine._datasets.emptying(b"d") == []  # a living one is nobody's to empty
    asyncio.run(engine.drop_dataset(b"d"))
    while emptying := engine._datasets.emptying(b"d"):
        engine.append(emptying)
        asyncio.run(engine.settle())
    family = database_of(engine).families()["d:d"]
    assert list(family.scan(None).walk(b"")) == []
    put(engine, 7)
    assert engine._group.operations
    assert shown(engine) == [7]


def test_dropping_in_the_midst_of_compactions_leaves_no_open_files(engine: EmbeddedEngine) -> None:
    """With a checkpoint beside it, RocksDB kept deleted files open, dozens of them."""
    database = database_of(engine)
    for number in range(12):
        name = b"x%d" % (number % 2)
        for _ in range(3):
            put(engine, *(random.randrange(10**6) for _ in range(2_000)), dataset=name)
            asyncio.run(engine.settle())
            database.flush()
        dataset = engine.open_dataset(name)
        assert dataset is not None
        compaction = threading.Thread(target=dataset.family.compact)
        compaction.start()
        asyncio.run(engine.drop_dataset(name))
        copy = database._path.parent / f"copy{number}"
        database.checkpoint(copy)
        shutil.rmtree(copy)
        compaction.join()
        engine.tidy()

    def all_ended() -> bool:
        engine.tidy()
        return families_on_disk(database) == ["d:d"]

    until(all_ended)
    until(lambda: deleted_files(database._path) == [])


def test_a_restored_dataset_keeps_its_cells_though_its_family_had_yet_to_end(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(engine, *range(2, 100))
    put(engine, *range(10), dataset=b"source")
    asyncio.run(engine.settle())
    found, folder = engine.open_dataset(b"source"), engine.folder_for_import()
    assert found is not None
    copy_cells(found, folder, 0, lambda _done, _total: None)
    files_are_written(monkeypatch)
    asyncio.run(engine.drop_dataset(b"d"))
    asyncio.run(engine.ingest_new(b"d", folder.name.encode(), found.settings))
    assert shown(engine) == list(reversed(range(10)))
