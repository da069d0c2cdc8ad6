"""What RocksDB is told of settings, what it does with them, and that no store depends on them."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storage.directory import STORE_FOLDER
from storage.embedded.engine import EmbeddedEngine
from storage.model import ALL_NAMES, EVERYTHING, DatasetSettings, PageLimits, PageRequest
from storage.opening import open_engine
from storage.rocks import options
from storage.rocks.options import MEGABYTE, RocksSettings
from tests.harness import until

DEFAULTS = DatasetSettings()
UNLIMITED = PageRequest(PageLimits(columns=10**9, rows=10**9, cells=10**9, bytes=10**12))
EXTREMES = [
    RocksSettings(
        block_cache_bytes=MEGABYTE,
        block_bytes=1024,
        compression="none",
        bottommost_compression="none",
        write_buffer_bytes=MEGABYTE // 16,
        write_buffers=2,
        all_write_buffers_bytes=MEGABYTE,
        log_bytes=MEGABYTE,
        level0_files_to_compact=1,
        level_base_bytes=MEGABYTE,
        file_bytes=MEGABYTE // 16,
        background_jobs=1,
        open_files=20,
    ),
    RocksSettings(
        block_bytes=MEGABYTE,
        compression="zstd",
        bottommost_compression="zstd",
        write_buffers=100,
        level0_files_to_compact=1_000,
        level0_files_to_slow_down=1_000,
        level0_files_to_stop=1_000,
    ),
]
"""Settings that are as different as they can be: many small files of every kind, and few large."""


@contextmanager
def opened(directory: Path, settings: RocksSettings) -> Iterator[EmbeddedEngine]:
    engine = open_engine(directory, settings)
    try:
        yield engine
    finally:
        asyncio.run(engine.close())


def put(engine: EmbeddedEngine, *rows: bytes) -> None:
    cells = [(row, 1, b"c", random.Random(row).randbytes(100)) for row in rows]
    asyncio.run(engine.put(b"d", cells, None, DEFAULTS))
    asyncio.run(engine.settle())


def rows_of(engine: EmbeddedEngine) -> dict[bytes, list[Any]]:
    page = asyncio.run(engine.scan(b"d", ALL_NAMES, EVERYTHING, UNLIMITED))
    return {row: columns for row, columns, _ in page.rows}


def expected(*rows: bytes) -> dict[bytes, list[Any]]:
    return {row: [(b"c", [(1, random.Random(row).randbytes(100))])] for row in rows}


def numbered(start: int, count: int) -> list[bytes]:
    return [b"%06d" % number for number in range(start, start + count)]


def written_options(directory: Path) -> str:
    """What RocksDB says it runs with: it writes all of its options to a file."""
    newest = max((directory / STORE_FOLDER).glob("OPTIONS-*"), key=lambda path: path.name)
    return newest.read_text()


# What RocksDB is told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"block_bytes": 12345}, "block_size=12345"),
        ({"compression": "none"}, "compression=kNoCompression"),
        ({"compression": "zstd"}, "compression=kZSTD"),
        ({"bottommost_compression": "lz4"}, "bottommost_compression=kLZ4Compression"),
        ({"bottommost_compression": "zstd"}, "bottommost_compression=kZSTD"),
        ({"write_buffer_bytes": 12345678}, "write_buffer_size=12345678"),
        ({"write_buffers": 7}, "max_write_buffer_number=7"),
        ({"all_write_buffers_bytes": 12345678}, "db_write_buffer_size=12345678"),
        ({"log_bytes": 12345678}, "max_total_wal_size=12345678"),
        ({"level0_files_to_compact": 7}, "level0_file_num_compaction_trigger=7"),
        ({"level0_files_to_slow_down": 23}, "level0_slowdown_writes_trigger=23"),
        ({"level0_files_to_stop": 77}, "level0_stop_writes_trigger=77"),
        ({"level_base_bytes": 12345678}, "max_bytes_for_level_base=12345678"),
        ({"file_bytes": 12345678}, "target_file_size_base=12345678"),
        ({"background_jobs": 7}, "max_background_jobs=7"),
        ({"open_files": 123}, "max_open_files=123"),
    ],
)
def test_rocksdb_is_told_of_a_setting(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    with opened(tmp_path, replace(RocksSettings(), **change)) as engine:
        put(engine, b"r")
        found = re.findall(rf"^  {told.partition('=')[0]}=.*$", written_options(tmp_path), re.M)
    assert found
    assert set(found) == {f"  {told}"}, "of the database, or of each family"


def test_a_limit_of_the_rate_is_set_only_where_one_is_wanted(tmp_path: Path) -> None:
    for name, settings in (("free", RocksSettings()), ("slow", RocksSettings(**SLOW))):
        with opened(tmp_path / name, settings) as engine:
            put(engine, b"r")
            assert rows_of(engine) == expected(b"r")
    told = {name: log_of(tmp_path / name) for name in ("free", "slow")}
    assert "Options.rate_limiter: (nil)" in told["free"]
    assert "Options.rate_limiter: 0x" in told["slow"]


def log_of(directory: Path) -> str:
    return re.sub(" +", " ", (directory / STORE_FOLDER / "LOG").read_text())


SLOW: dict[str, Any] = {"rate_bytes_per_second": 100 * MEGABYTE}


@pytest.mark.parametrize(("processors", "jobs"), [(1, 2), (2, 2), (7, 7), (64, 8)])
def test_there_are_about_as_many_jobs_as_processors(
    processors: int, jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "processors", lambda: processors)
    with opened(tmp_path, RocksSettings()):
        assert f"  max_background_jobs={jobs}\n" in written_options(tmp_path)


def test_no_prefix_extractor_and_no_recycled_logs(tmp_path: Path) -> None:
    """The first reads wrongly here; the second makes a log cut short look like a damaged one."""
    with opened(tmp_path, RocksSettings()):
        written = written_options(tmp_path)
    assert "  prefix_extractor=nullptr\n" in written
    assert "  recycle_log_file_num=0\n" in written


# What does not depend on it


@pytest.mark.parametrize("settings", EXTREMES)
def test_a_store_is_opened_after_a_change_of_settings_and_back(
    settings: RocksSettings, tmp_path: Path
) -> None:
    rows: list[bytes] = []
    for number, each in enumerate([RocksSettings(), settings, RocksSettings()]):
        added = numbered(number * 2_000, 2_000)
        with opened(tmp_path, each) as engine:
            assert not rows or rows_of(engine) == expected(*rows)
            for start in range(0, len(added), 100):
                put(engine, *added[start : start + 100])
            rows += added
            assert rows_of(engine) == expected(*rows)
            if number % 2:
                engine.open_dataset(b"d").family.compact()  # type: ignore[union-attr]
                assert rows_of(engine) == expected(*rows)


@pytest.mark.parametrize("settings", EXTREMES)
def test_what_a_crash_leaves_is_read_under_other_settings(
    settings: RocksSettings, tmp_path: Path
) -> None:
    for name, before, after in (
        ("one", RocksSettings(), settings),
        ("other", settings, RocksSettings()),
    ):
        with opened(tmp_path / name, before) as engine:
            put(engine, *numbered(0, 1_000))
            shutil.copytree(tmp_path / name, tmp_path / f"{name}-crashed")
        with opened(tmp_path / f"{name}-crashed", after) as engine:
            assert rows_of(engine) == expected(*numbered(0, 1_000))


# What it is for


def fill(engine: EmbeddedEngine, dataset: bytes, total_bytes: int) -> None:
    value = random.Random(1).randbytes(1_000)
    for number in range(total_bytes // 100_000):
        cells = [(b"%06d" % (number * 100 + row), 1, b"c", value) for row in range(100)]
        asyncio.run(engine.put(dataset, cells, None, DEFAULTS))
        asyncio.run(engine.settle())


def test_datasets_share_the_memory_for_writes(tmp_path: Path) -> None:
    settings = RocksSettings(all_write_buffers_bytes=4 * MEGABYTE)
    with opened(tmp_path, settings) as engine:
        for number in range(20):
            fill(engine, b"%d" % number, MEGABYTE)
        until(lambda: engine.figures()["memtable_bytes"] < 5 * MEGABYTE)


def test_datasets_share_the_log(tmp_path: Path) -> None:
    """One that is hardly written to does not keep the log of all others."""
    store = tmp_path / STORE_FOLDER
    with opened(tmp_path, RocksSettings(log_bytes=2 * MEGABYTE)) as engine:
        fill(engine, b"idle", 100_000)
        (first,) = store.glob("*.log")
        for number in range(6):
            fill(engine, b"%d" % (number % 3), MEGABYTE)
        until(lambda: not first.exists())


def test_all_buffers_of_a_dataset_may_become_files_at_once() -> None:
    """After a crash each that the log holds becomes one: so many must not hold writes back."""
    settings = RocksSettings()
    assert settings.write_buffers < settings.level0_files_to_slow_down


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells how much was read")
def test_an_index_larger_than_the_cache_is_not_read_for_every_read(tmp_path: Path) -> None:
    settings = RocksSettings(block_cache_bytes=MEGABYTE, block_bytes=1024)
    rows = [b"r" * 1_000 + number for number in numbered(0, 3_000)]
    assert sum(len(row) for row in rows) > settings.block_cache_bytes
    with opened(tmp_path, settings) as engine:
        put(engine, *rows)
        engine.open_dataset(b"d").family.compact()  # type: ignore[union-attr]
        read_rows(engine, rows[1_500:1_501])
        assert bytes_read(lambda: read_rows(engine, rows[1_500:1_501] * 20)) < 10_000


def read_rows(engine: EmbeddedEngine, rows: list[bytes]) -> None:
    for row in rows:
        page = asyncio.run(engine.read_row(b"d", row, EVERYTHING, UNLIMITED))
        assert len(page.columns) == 1


def bytes_read(action: Callable[[], object]) -> int:
    """How much this process has read from files meanwhile."""

    def read() -> int:
        found = re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())
        assert found is not None
        return int(found[1])

    before = read()
    action()
    return read() - before
