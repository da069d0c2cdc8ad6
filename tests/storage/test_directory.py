"""The data directory: FORMAT is read before RocksDB is let near; what is refused stays as it was.

`contents` is the proof of the latter: every path below the directory with its bytes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.directory import FORMAT_FILE, STORE_FOLDER, prepare
from storage.encoding import FORMAT_VERSION
from storage.errors import CannotOpen
from storage.opening import open_engine


def contents(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
    }


def with_format(directory: Path, text: bytes) -> Path:
    (directory / STORE_FOLDER).mkdir()
    (directory / STORE_FOLDER / "CURRENT").write_bytes(b"MANIFEST-000005\n")
    (directory / FORMAT_FILE).write_bytes(text)
    return directory


def test_a_new_directory_gets_its_format_and_nothing_else(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "data"
    assert prepare(directory) == directory / STORE_FOLDER
    assert contents(directory) == {FORMAT_FILE: b"1\n"}
    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_directory_of_this_format_is_left_as_it_is(tmp_path: Path) -> None:
    with_format(tmp_path, b"1\n")
    before = contents(tmp_path)
    assert prepare(tmp_path) == tmp_path / STORE_FOLDER
    assert contents(tmp_path) == before


def test_the_draft_of_a_start_that_died_is_written_over(tmp_path: Path) -> None:
    (tmp_path / f"{FORMAT_FILE}.draft").write_bytes(b"")
    prepare(tmp_path)
    assert contents(tmp_path) == {FORMAT_FILE: b"1\n"}


@pytest.mark.parametrize("newer", [b"2\n", b"2", b"10\n", b"999999999999\n"])
def test_a_newer_format_is_refused_untouched(newer: bytes, tmp_path: Path) -> None:
    with_format(tmp_path, newer)
    before = contents(tmp_path)
    with pytest.raises(CannotOpen) as refusal:
        open_engine(tmp_path)
    assert contents(tmp_path) == before
    assert f"has format {newer.decode().strip()}," in str(refusal.value)
    assert f"reads format {FORMAT_VERSION}:" in str(refusal.value)


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"one\n", b"-1\n", b"1.0\n", b"1\n2\n", b"\xb2", b"\xff", b"9" * 5_000]
)
def test_what_is_no_number_is_refused_untouched(text: bytes, tmp_path: Path) -> None:
    with_format(tmp_path, text)
    before = contents(tmp_path)
    with pytest.raises(CannotOpen, match=FORMAT_FILE):
        open_engine(tmp_path)
    assert contents(tmp_path) == before


def test_a_store_without_a_format_is_refused_untouched(tmp_path: Path) -> None:
    (with_format(tmp_path, b"1\n") / FORMAT_FILE).unlink()
    before = contents(tmp_path)
    with pytest.raises(CannotOpen, match="no FORMAT file"):
        open_engine(tmp_path)
    assert contents(tmp_path) == before


def test_a_format_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / FORMAT_FILE).mkdir()
    with pytest.raises(CannotOpen, match="Is a directory"):
        prepare(tmp_path)


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"mine")
    with pytest.raises(CannotOpen, match="data"):
        prepare(tmp_path / "data")
    with pytest.raises(CannotOpen, match="data"):
        prepare(tmp_path / "data" / "below")
    assert contents(tmp_path) == {"data": b"mine"}
