"""The guard drops a family only while RocksDB writes no files for it (traps 23 and 24).

What RocksDB writes for a family that is dropped meanwhile it keeps open, and that takes room on the
disk for as long as the server runs. The disk of these tests is slow, so that the midst of a
compaction lasts.
"""

from __future__ import annotations

import random
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.embedded.ordered import Kind
from storage.errors import StoreStalled
from storage.rocks import database as guard
from storage.rocks.database import RocksDatabase
from storage.rocks.families import RocksFamily
from storage.rocks.options import RocksSettings
from tests.harness import until
from tests.storage.open_files import deleted_files

FILES_TO_COMPACT = 4
SLOW = RocksSettings(
    block_cache_bytes=1 << 20,
    level0_files_to_compact=FILES_TO_COMPACT,
    rate_bytes_per_second=400_000,
)
NAME = "d:x"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[RocksDatabase]:
    opened = RocksDatabase(tmp_path / "db", SLOW)
    yield opened
    opened.close()


def fill(database: RocksDatabase, family: RocksFamily) -> None:
    """Some cells, in memory."""
    puts = [(Kind.PUT, family, random.randbytes(8), random.randbytes(200)) for _ in range(100)]
    database.write(puts, durable=False)


def with_files(database: RocksDatabase, files: int) -> RocksFamily:
    family = database.create_family(NAME)
    assert isinstance(family, RocksFamily)
    for _ in range(files):
        fill(database, family)
        family.flush()
    return family


def gone(database: RocksDatabase, family: RocksFamily) -> bool:
    """Whether it could be dropped."""
    try:
        database.drop_family(family)
    except StoreStalled:
        return False
    return True


def checkpoint(database: RocksDatabase, folder: Path) -> None:
    """RocksDB looks for files that nobody needs at the end of one."""
    database.checkpoint(folder)
    shutil.rmtree(folder)


def test_a_family_at_rest_is_dropped_at_once(database: RocksDatabase) -> None:
    family = with_files(database, 2)
    fill(database, family)
    assert gone(database, family)
    assert database.families() == {}


def test_a_drop_writes_nothing_of_what_it_drops(database: RocksDatabase) -> None:
    family = database.create_family(NAME)
    assert isinstance(family, RocksFamily)
    fill(database, family)
    witness = database._rdict.get_column_family(NAME)  # for it, it lives on
    assert gone(database, family)
    assert witness.property_int_value("rocksdb.num-files-at-level0") == 0
    assert witness.property_int_value("rocksdb.num-running-flushes") == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_family_is_dropped_after_its_compaction(database: RocksDatabase, tmp_path: Path) -> None:
    family = with_files(database, FILES_TO_COMPACT)
    assert not gone(database, family)
    assert database.families() == {NAME: family}
    until(lambda: family.property("rocksdb.num-running-compactions") == 1)
    until(lambda: family.property("rocksdb.compaction-pending") == 0)
    assert not gone(database, family)
    checkpoint(database, tmp_path / "meanwhile")
    until(lambda: gone(database, family))
    checkpoint(database, tmp_path / "after")
    until(lambda: deleted_files(tmp_path) == [])


def test_a_family_is_dropped_after_its_flush(database: RocksDatabase) -> None:
    family = with_files(database, 0)
    fill(database, family)
    flushing = threading.Thread(target=family.flush)
    flushing.start()
    until(lambda: family.property("rocksdb.num-running-flushes") == 1)
    assert not gone(database, family)
    flushing.join()
    until(lambda: gone(database, family))


def test_a_family_is_dropped_after_a_flush_that_has_yet_to_begin(
    database: RocksDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = with_files(database, 0)
    attempts = []
    monkeypatch.setattr(RocksFamily, "flush", lambda _: attempts.append(gone(database, family)))
    monkeypatch.setattr(database, "_families", {NAME: family})
    database.flush()
    assert attempts == [False]
    assert gone(database, family)


def test_a_family_is_dropped_after_a_compaction_that_was_asked_for(
    database: RocksDatabase,
) -> None:
    family = with_files(database, 1)
    with database.borrowed(family):  # between two steps of it there is nothing else to see
        assert not gone(database, family)
    assert gone(database, family)


def test_work_on_another_family_keeps_none(database: RocksDatabase) -> None:
    family = with_files(database, 1)
    other = database.create_family("d:y")
    assert isinstance(other, RocksFamily)
    for _ in range(FILES_TO_COMPACT):
        fill(database, other)
        other.flush()
    assert other.is_worked_on()
    assert gone(database, family)


def test_a_drop_is_not_put_off_for_ever(
    database: RocksDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = with_files(database, FILES_TO_COMPACT)
    monkeypatch.setattr(time, "monotonic", lambda: 1_000.0)
    assert not gone(database, family)
    monkeypatch.setattr(guard, "ASKED_AGAIN_SECONDS", 1_000.0)
    monkeypatch.setattr(time, "monotonic", lambda: 1_000.0 + guard.PUT_OFF_SECONDS)
    assert family.is_worked_on()
    assert gone(database, family)


def test_who_asks_again_much_later_is_put_off_anew(
    database: RocksDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile somebody used the family after all."""
    family = with_files(database, FILES_TO_COMPACT)
    assert not gone(database, family)
    later = time.monotonic() + guard.PUT_OFF_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert family.is_worked_on()
    assert not gone(database, family)
