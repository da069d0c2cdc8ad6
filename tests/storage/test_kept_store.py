"""Stores that earlier releases have written are opened, hold what they held, and take writes.

kept/ has one of each release, with what is in it. They are never written anew.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from resp_server.version import VERSION
from tests.harness import ServerProcess, until
from tests.storage.kept.contents import (
    CONTENTS,
    KEPT,
    STORE,
    Contents,
    information_of,
    read,
    rows_of,
)
from tests.wire import Wire

MOST_BYTES = 100_000
RELEASES = sorted(path.parent.name for path in KEPT.glob(f"*/{STORE}"))


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> Path:
    return KEPT / str(request.param)


@pytest.fixture
def contents(release: Path) -> Contents:
    return read(release / CONTENTS)


@pytest.fixture
def kept(release: Path, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server on a copy of the store."""
    with tarfile.open(release / STORE) as archive:
        archive.extractall(tmp_path / "data", filter="data")
    running = ServerProcess(tmp_path / "data")
    yield running.start()
    running.close()


def check_all(server: ServerProcess, contents: Contents, count: int = 1_000) -> None:
    with Wire(server) as wire:
        assert wire.call("WCDATASET", "LIST") == sorted(contents.rows)
        for name, rows in contents.rows.items():
            assert rows_of(wire.call, name, count) == rows, name
            assert information_of(wire.call, name) == contents.information[name]


def test_this_release_has_one() -> None:
    assert VERSION in RELEASES


def test_it_is_small_and_holds_much(release: Path, contents: Contents) -> None:
    assert (release / STORE).stat().st_size < MOST_BYTES
    assert len(contents.rows) >= 8
    names = {row for rows in contents.rows.values() for row, _ in rows}
    assert bytes(range(256)) in names
    assert b"" in names


def test_it_holds_what_it_held(kept: ServerProcess, contents: Contents) -> None:
    check_all(kept, contents)
    check_all(kept, contents, count=7)
    kept.restart()
    check_all(kept, contents)
    kept.kill()
    check_all(kept.start(), contents)
    assert "Traceback" not in kept.log


def test_reads_that_it_had_begun_go_on(kept: ServerProcess, contents: Contents) -> None:
    with Wire(kept) as wire:
        for page in contents.pages:
            reply = wire.call(*page.words, "CURSOR", page.cursor)
            assert reply == [b"0", page.rest], page.words


def test_compaction_changes_no_answer(kept: ServerProcess, contents: Contents) -> None:
    with Wire(kept) as wire:

        def is_compacted(name: bytes) -> bool:
            before = contents.information[name][b"last-compaction-ms"]
            return bool(information_of(wire.call, name)[b"last-compaction-ms"] > before)

        assert wire.call("BGREWRITEAOF")
        for name, rows in contents.rows.items():
            until(lambda name=name: is_compacted(name))  # type: ignore[misc]
            assert rows_of(wire.call, name) == rows, name


def test_it_takes_writes(kept: ServerProcess, contents: Contents) -> None:
    with Wire(kept) as wire:
        for name, rows in contents.rows.items():
            assert wire.call("WCPUT", name, b"new\0", "*", b"c", b"v") == 1
            _, [[_, [[stamp, value]]]] = wire.call("WCGET", name, b"new\0")
            assert value == b"v"
            assert stamp > contents.last_stamp
            assert wire.call("WCINCRBY", name, b"new\0", b"n", 5) == 5
            for row, _ in rows[:2]:
                assert wire.call("WCDEL", name, row) == 1
            left = dict(rows[2:])
            found = dict(rows_of(wire.call, name))
            assert set(found) == {*left, b"new\0"}
            assert {row: found[row] for row in left} == left
        assert wire.call("WCDATASET", "CREATE", "dropped") == b"OK"
        assert wire.call("WCSCAN", "dropped") == [b"0", []], "what was dropped stays away"
        written = {name: rows_of(wire.call, name) for name in contents.rows}
    kept.kill()
    kept.start()
    with Wire(kept) as wire:
        assert {name: rows_of(wire.call, name) for name in contents.rows} == written
