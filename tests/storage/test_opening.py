"""Opening a store that is damaged: what can be served is served, and what is damaged is named.

The damage is real: bytes of closed stores, or of copies of a running one's files, are changed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage.directory import FORMAT_FILE, HOLDER_FILE, STORE_FOLDER
from storage.embedded.engine import EmbeddedEngine
from storage.errors import CannotOpen, CorruptData, StoreFailure
from storage.model import ALL_NAMES, EVERYTHING, DatasetSettings, PageLimits, PageRequest
from storage.opening import open_engine
from storage.rocks.database import RocksDatabase
from storage.rocks.options import RocksSettings

SMALL = RocksSettings(block_cache_bytes=1 << 20, write_buffer_bytes=1 << 16)
UNLIMITED = PageRequest(PageLimits(columns=10**9, rows=10**9, cells=10**9, bytes=10**12))
ROWS = 1_000
NOBODY = 65_534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes on another user's identity")


def put(engine: EmbeddedEngine, dataset: bytes, *rows: bytes) -> None:
    noise = random.Random(1)
    cells = [(row, 1, b"c", noise.randbytes(100)) for row in rows]
    asyncio.run(engine.put(dataset, cells, None, DatasetSettings()))


def written(engine: EmbeddedEngine, dataset: bytes, row: bytes) -> bool:
    """Put a cell, commit it and read it again."""
    put(engine, dataset, row)
    assert engine.commit() is None
    page = asyncio.run(engine.read_row(dataset, row, EVERYTHING, UNLIMITED))
    return len(page.columns) == 1


def rows(engine: EmbeddedEngine, dataset: bytes) -> list[bytes]:
    page = asyncio.run(engine.scan(dataset, ALL_NAMES, EVERYTHING, UNLIMITED))
    return [row for row, *_ in page.rows]


def database_of(engine: EmbeddedEngine) -> RocksDatabase:
    assert isinstance(engine._store, RocksDatabase)
    return engine._store


def numbered(count: int) -> list[bytes]:
    return [b"%04d" % number for number in range(count)]


def table_files(directory: Path) -> list[Path]:
    return sorted((directory / STORE_FOLDER).glob("*.sst"), key=lambda path: path.stat().st_size)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed directory: the biggest file holds dataset `d`; `other` has files too."""
    directory = tmp_path_factory.mktemp("healthy") / "data"
    engine = open_engine(directory, SMALL)
    put(engine, b"d", *numbered(ROWS))
    put(engine, b"other", b"kept")
    assert engine.commit() is None
    for family in database_of(engine).families().values():
        family.compact()
    asyncio.run(engine.close())
    return directory


def overwrite(offset: int) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        content = bytearray(file.read_bytes())
        for index in range(offset, offset + 40):
            content[index] ^= 0xFF
        file.write_bytes(content)

    return change


def cut_short(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1_000)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "footer": overwrite(-50),
    "index": overwrite(-700),
    "missing": Path.unlink,
    "cut short": cut_short,
}


@contextmanager
def opened(directory: Path) -> Iterator[EmbeddedEngine]:
    engine = open_engine(directory, SMALL)
    try:
        yield engine
    finally:
        asyncio.run(engine.close())


# Damaged files


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_store_with_a_damaged_file_serves_all_that_is_not_in_it(
    kind: str, healthy: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "data"
    shutil.copytree(healthy, directory)
    file = table_files(directory)[-1]
    DAMAGES[kind](file)
    for number in range(2):  # and after a restart too
        caplog.clear()
        with opened(directory) as engine:
            [problem] = database_of(engine).problems
            assert problem.startswith(f"{file.name} is damaged: ")
            assert str(tmp_path) not in problem
            assert f"damage in the store: {problem}" in caplog.text
            assert database_of(engine).degraded
            for read in (
                engine.scan(b"d", ALL_NAMES, EVERYTHING, UNLIMITED),
                engine.read_row(b"d", b"0500", EVERYTHING, UNLIMITED),
            ):
                with pytest.raises(StoreFailure, match=file.name) as refusal:
                    asyncio.run(read)
                assert refusal.value.code == "IOERR"
                assert str(tmp_path) not in str(refusal.value)
            assert b"kept" in rows(engine, b"other")
            assert written(engine, b"other", b"new%d" % number)
            assert written(engine, b"third", b"new")
            put(engine, b"d", b"taken all the same")
            assert engine.commit() is None
            assert database_of(engine).problems == [problem]


def test_a_whole_store_has_no_problems(healthy: Path, tmp_path: Path) -> None:
    shutil.copytree(healthy, tmp_path / "data")
    with opened(tmp_path / "data") as engine:
        assert database_of(engine).problems == []
        assert not database_of(engine).degraded
        assert rows(engine, b"d") == numbered(ROWS)


def test_a_flipped_byte_is_told_by_the_read_that_meets_it(healthy: Path, tmp_path: Path) -> None:
    directory = tmp_path / "data"
    shutil.copytree(healthy, directory)
    file = table_files(directory)[-1]
    overwrite(file.stat().st_size // 2)(file)
    with opened(directory) as engine:
        with pytest.raises(CorruptData, match=f"checksum.* in {file.name} ") as refusal:
            rows(engine, b"d")
        assert refusal.value.code == "IOERR"
        assert rows(engine, b"other") == [b"kept"]


def test_writes_go_on_when_compactions_keep_meeting_damage(healthy: Path, tmp_path: Path) -> None:
    """The first one stops all writes; once the store was opened again, none does any more."""
    directory = tmp_path / "data"
    shutil.copytree(healthy, directory)
    file = table_files(directory)[-1]
    overwrite(file.stat().st_size // 2)(file)
    with opened(directory) as engine:
        database = database_of(engine)
        with pytest.raises(StoreFailure):
            database.families()["d:d"].compact()
        put(engine, b"other", b"lost")
        failure = engine.commit()
        assert failure is not None
        assert file.name in str(failure)
        assert file.name in database.problems[0]
        for number in range(3):
            with pytest.raises(StoreFailure):
                database.families()["d:d"].compact()
            assert written(engine, b"other", b"after%d" % number)
        assert rows(engine, b"other") == [b"after0", b"after1", b"after2", b"kept"]
        assert len(database.problems) == 1


def test_a_dataset_that_cannot_be_compacted_stalls_nobody(healthy: Path, tmp_path: Path) -> None:
    directory = tmp_path / "data"
    shutil.copytree(healthy, directory)
    table_files(directory)[-1].unlink()
    with opened(directory) as engine:
        database = database_of(engine)
        for number in range(45):  # RocksDB stops writing at 36 files in the first level
            put(engine, b"d", b"%d" % number)
            assert engine.commit() is None
            database._rdict.get_column_family("d:d").flush()
        assert written(engine, b"other", b"new")


def test_a_damaged_catalog_is_refused_by_its_file(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with opened(directory) as engine:
        put(engine, b"d", b"r")
        assert engine.commit() is None
        database_of(engine).default_family().compact()
        database_of(engine)._rdict.flush()
    for file in table_files(directory):
        file.unlink()
    with pytest.raises(CannotOpen, match=r"cannot open the store in .*\d+\.sst") as refusal:
        open_engine(directory, SMALL)
    assert "\n" not in str(refusal.value)


# The log


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """The files of a server that was killed: nothing of them but the log holds the rows."""
    with opened(tmp_path / "data") as engine:
        for row in numbered(200):
            put(engine, b"d", row)
            assert engine.commit() is None
        shutil.copytree(tmp_path / "data", tmp_path / "crashed")
    return tmp_path / "crashed"


def log_file(directory: Path) -> Path:
    return max(directory.glob("store/*.log"), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize("cut_bytes", [1, 7, 60, 130])
def test_a_torn_end_of_the_log_costs_what_was_torn(
    cut_bytes: int, crashed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = log_file(crashed)
    os.truncate(file, file.stat().st_size - cut_bytes)
    caplog.set_level(logging.INFO)
    with opened(crashed) as engine:
        found = rows(engine, b"d")
        assert found == numbered(200)[: len(found)]
        assert 198 <= len(found) <= 199
        assert database_of(engine).problems == []
        assert written(engine, b"d", b"new")
    with opened(crashed) as engine:
        assert rows(engine, b"d") == [*found, b"new"]


@pytest.mark.parametrize("garbage", [bytes(5_000), b"\xff" * 90_000, random.Random(2).randbytes(9)])
def test_garbage_after_the_log_costs_nothing(garbage: bytes, crashed: Path) -> None:
    with log_file(crashed).open("ab") as file:
        file.write(garbage)
    with opened(crashed) as engine:
        assert rows(engine, b"d") == numbered(200)
        assert written(engine, b"d", b"new")
    with opened(crashed) as engine:
        assert rows(engine, b"d") == [*numbered(200), b"new"]


def test_damage_inside_the_log_is_told(crashed: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = log_file(crashed)
    overwrite(file.read_bytes().index(b"0120") + 30)(file)  # in the value of this row
    with opened(crashed) as engine:
        found = rows(engine, b"d")
        assert found == numbered(120)
        [problem] = database_of(engine).problems
        assert problem.startswith(f"{file.name} is damaged: ")
        assert problem in caplog.text
        assert not database_of(engine).degraded


# Who holds it


def test_who_holds_a_directory_is_told_by_number(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with opened(directory):
        file = directory / HOLDER_FILE
        assert file.read_text() == f"{os.getpid()}\n"
        assert file.stat().st_mode & 0o777 == 0o600
        with pytest.raises(CannotOpen, match=f"another running server, process {os.getpid()}$"):
            open_engine(directory, SMALL)
    assert file.read_text() == ""
    with opened(directory):
        pass


def test_a_refused_store_is_not_held(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    current = tmp_path / STORE_FOLDER / "CURRENT"
    good = current.read_bytes()
    current.write_bytes(b"MANIFEST-999999\n")
    for _ in range(2):
        with pytest.raises(CannotOpen, match="cannot open the store"):
            open_engine(tmp_path, SMALL)
    current.write_bytes(good)
    with opened(tmp_path):
        pass


def test_what_a_killed_server_left_in_the_holder_file_means_nothing(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    (tmp_path / HOLDER_FILE).write_text("1\n")
    with opened(tmp_path):
        pass


# Directories that are refused


@contextmanager
def another_user() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@needs_root
def test_a_directory_of_another_user_is_refused_untouched(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    os.chown(tmp_path, NOBODY, NOBODY)
    before = {path: path.stat() for path in tmp_path.rglob("*")}
    with pytest.raises(CannotOpen, match=r"belongs to user \w+, and this process runs as user \w+"):
        open_engine(tmp_path, SMALL)
    assert {path: path.stat() for path in tmp_path.rglob("*")} == before


@needs_root
@pytest.mark.parametrize("new", [True, False])
def test_a_directory_that_cannot_be_written_is_refused(new: bool) -> None:
    directory = Path(tempfile.mkdtemp())  # that user cannot reach tmp_path
    try:
        if not new:
            (directory / FORMAT_FILE).write_text("1\n")
        os.chown(directory, NOBODY, NOBODY)
        directory.chmod(0o500)
        with another_user(), pytest.raises(CannotOpen, match=f"{directory}: Permission denied"):
            open_engine(directory, SMALL)
    finally:
        shutil.rmtree(directory)


@pytest.mark.parametrize("name", [FORMAT_FILE, HOLDER_FILE, "FORMAT.draft", "store", "store/LOG"])
def test_a_link_that_leads_out_is_refused_and_not_followed(name: str, tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with opened(directory):
        pass
    outside = tmp_path / "outside"
    if (directory / name).exists():
        (directory / name).rename(outside)
    (directory / name).symlink_to(outside)
    existed = outside.exists()
    with pytest.raises(CannotOpen, match=f"{directory / name} is a symbolic link that leads out"):
        open_engine(directory, SMALL)
    assert outside.exists() == existed


def test_a_directory_may_be_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "data").symlink_to("real")
    with opened(tmp_path / "data") as engine:
        assert written(engine, b"d", b"r")
    with opened(tmp_path / "real") as engine:
        assert rows(engine, b"d") == [b"r"]
