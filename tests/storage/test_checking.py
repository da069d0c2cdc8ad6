"""The check of a whole store: what it finds, what it names, and that it changes nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.catalog import CLOCK_KEY, entry_key, family_name
from storage.directory import FORMAT_FILE, HOLDER_FILE, STORE_FOLDER, prepare
from storage.embedded.ordered import Family, Kind
from storage.encoding import cell_key
from storage.errors import CannotOpen, CorruptData
from storage.maintenance.checking import MOST_PROBLEMS, Findings, check_store
from storage.memory.database import MemoryDatabase, MemoryFamily, MemoryScan
from storage.opening import check_directory
from storage.rocks.database import RocksDatabase
from tests.storage.test_opening import (
    DAMAGES,
    ROWS,
    SMALL,
    database_of,
    log_file,
    numbered,
    opened,
    overwrite,
    put,
    table_files,
)

CELL = cell_key(b"r", b"c", 1, 0)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed directory: three datasets, the rows of `a` and `b` in two files each."""
    directory = tmp_path_factory.mktemp("healthy") / "data"
    with opened(directory) as engine:
        for batch in (numbered(ROWS), [b"9%b" % row for row in numbered(ROWS)]):
            for dataset in (b"a", b"b"):
                put(engine, dataset, *batch)
                assert engine.commit() is None
                database_of(engine)._rdict.get_column_family(f"d:{dataset.decode()}").flush()
        put(engine, b"empty:but-for-one", b"r")
    return directory


@pytest.fixture
def directory(healthy: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    shutil.copytree(healthy, tmp_path / "data")
    return tmp_path / "data"


def state(directory: Path) -> dict[str, tuple[object, ...]]:
    """All that a change of a directory would change, but the times of reading."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (directory, *directory.rglob("*")):
        stat = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        times = (stat.st_mtime_ns, stat.st_ctime_ns)
        found[str(path)] = (stat.st_mode, stat.st_ino, stat.st_nlink, *times, content)
    return found


def write(directory: Path, family: str, *pairs: tuple[bytes, bytes]) -> None:
    """Put what no release of the program writes."""
    database = RocksDatabase(prepare(directory), SMALL)
    known: dict[str, Family] = {**database.families(), "default": database.default_family()}
    database.write([(Kind.PUT, known[family], *pair) for pair in pairs], durable=True)
    database.close()


def test_a_whole_store_is_read_and_left_as_it_is(directory: Path, tmp_path: Path) -> None:
    before = state(tmp_path)
    progress: list[tuple[str, int]] = []
    findings = check_directory(directory, lambda *told: progress.append(told))
    assert state(tmp_path) == before
    assert (findings.problems, findings.notes, progress) == ([], [], [])
    assert [(found.name, found.cells) for found in findings.datasets] == [
        ("a", 2 * ROWS),
        ("b", 2 * ROWS),
        ("empty:but-for-one", 1),
    ]
    assert findings.datasets[0].bytes == ROWS * (4 + 5 + 2 * (2 + 3 + 10 + 1 + 100))


def test_what_a_killed_server_leaves_is_whole(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as engine:
        put(engine, b"d", *numbered(10))
        assert engine.commit() is None
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
    file = log_file(tmp_path / "killed")
    os.truncate(file, file.stat().st_size - 1)
    before = state(tmp_path / "killed")
    assert check_directory(tmp_path / "killed").problems == []
    assert state(tmp_path / "killed") == before


def test_damage_inside_the_log_is_found(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as engine:
        for row in numbered(20):
            put(engine, b"d", row)
            assert engine.commit() is None
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
    file = log_file(tmp_path / "killed")
    overwrite(file.read_bytes().index(b"0012") + 30)(file)  # in the value of this row
    [problem] = check_directory(tmp_path / "killed").problems
    assert problem.startswith(f"{file.name} is damaged: ")


def test_every_damaged_file_is_named_with_its_dataset(directory: Path) -> None:
    files = table_files(directory)[-4:]
    for file in files:
        overwrite(file.stat().st_size // 2)(file)
    before = state(directory)
    findings = check_directory(directory)
    assert state(directory) == before
    problems = "\n".join(findings.problems)
    for file in files:
        assert problems.count(file.name) == 1
    assert [problem[:10] for problem in findings.problems] == ["dataset a:"] * 2 + [
        "dataset b:"
    ] * 2
    assert [found.problems for found in findings.datasets] == [2, 2, 0]
    assert str(directory) not in problems


@pytest.mark.parametrize("kind", ["footer", "missing", "cut short"])
def test_files_that_cannot_be_opened_are_named(kind: str, directory: Path) -> None:
    files = table_files(directory)[-4:]
    for file in files:
        DAMAGES[kind](file)
    before = state(directory)
    findings = check_directory(directory)
    assert state(directory) == before
    named = {problem[:10] for problem in findings.problems}
    assert {"dataset a:", "dataset b:"} <= named
    assert "dataset empty" not in named
    if kind != "footer":
        problems = "\n".join(findings.problems)
        assert all(file.name in problems for file in files)


def test_reading_goes_on_after_a_damaged_file(directory: Path) -> None:
    first = min(table_files(directory)[-4:], key=lambda path: path.name)
    overwrite(first.stat().st_size // 2)(first)
    findings = check_directory(directory)
    assert len(findings.problems) == 1
    assert ROWS < findings.datasets[0].cells < 2 * ROWS
    assert findings.datasets[1].cells == 2 * ROWS


@pytest.mark.parametrize(
    ("family", "key", "value", "told"),
    [
        ("d:a", b"abc", b"\x00", "dataset a: a key without a row: 616263"),
        ("d:a", CELL[:-1], b"\x00", "dataset a: a key of no known form: "),
        ("d:a", CELL, b"\x02v", "dataset a: a value with unknown flags: 0276"),
        ("d:a", CELL, b"", "dataset a: a value with unknown flags: "),
        ("default", CLOCK_KEY, b"\x00", "the catalog: the stored clock is damaged"),
        ("default", entry_key(b"a"), b"{}", "the catalog: the catalog entry of 'a' is damaged"),
        ("default", entry_key(b"a b"), b"{}", "the catalog: an entry of no valid name: b'a b'"),
    ],
)
def test_what_cannot_be_decoded_is_told(
    family: str, key: bytes, value: bytes, told: str, directory: Path
) -> None:
    write(directory, family, (key, value))
    findings = check_directory(directory)
    [problem] = findings.problems
    assert problem.startswith(told)
    assert len(findings.datasets) == 3


def test_an_entry_without_a_family_is_damage(directory: Path) -> None:
    database = RocksDatabase(prepare(directory), SMALL)
    database.drop_family(database.families()[family_name(b"a")])
    database.close()
    findings = check_directory(directory)
    assert findings.problems == ["dataset a: its data files are lost"]
    assert [found.name for found in findings.datasets] == ["b", "empty:but-for-one"]


def test_a_family_without_an_entry_is_noted(directory: Path) -> None:
    database = RocksDatabase(prepare(directory), SMALL)
    database.create_family("d:unfinished")
    database.close()
    findings = check_directory(directory)
    assert findings.problems == []
    assert findings.notes == ["family d:unfinished belongs to no dataset: the next start drops it"]


def test_a_list_of_files_that_cannot_be_read_cannot_be_checked(directory: Path) -> None:
    for file in (directory / STORE_FOLDER).glob("MANIFEST-*"):
        overwrite(10)(file)
    with pytest.raises(CannotOpen, match="cannot open the store"):
        check_directory(directory)


# Stores that misbehave in ways RocksDB cannot be brought to


class Faulty(MemoryDatabase):
    """A store in memory whose dataset `d` is read in a way of the test's own."""

    problems: list[str] = []  # noqa: RUF012 - as the protocol has it

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        super().__init__()
        self.default_family().apply(  # type: ignore[attr-defined]
            Kind.PUT,
            entry_key(b"d"),
            b'{"maxversions": 0, "ttl": 0, "created-ms": 0, "last-compaction-ms": 0,'
            b' "last-compaction-removed-cells": 0}',
        )
        self._families["d:d"] = FaultyFamily(pairs)

    def boundaries(self) -> list[bytes]:
        return [b"a", b"m"]

    def file_problems(self) -> list[str]:
        return ["000001.sst has 1 bytes instead of 2"] if self.problems else []


class FaultyFamily(MemoryFamily):
    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        super().__init__("d:d")
        self.pairs = pairs

    def scan(self, end: bytes | None) -> MemoryScan:
        return FaultyScan(self, end)


class FaultyScan(MemoryScan):
    def walk(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        assert isinstance(self._family, FaultyFamily)
        for key, value in self._family.pairs:
            if key >= start:
                if value == b"damaged":
                    raise CorruptData("checksum")
                yield key, value


def checked(*pairs: tuple[bytes, bytes]) -> Findings:
    return check_store(Faulty(list(pairs)), lambda name, cells: None)


def test_keys_out_of_order_are_told() -> None:
    first, second = cell_key(b"r", b"c", 2, 0), cell_key(b"r", b"c", 1, 0)
    assert first < second
    assert checked((first, b"\x00"), (second, b"\x00")).problems == []
    for pairs in ([second, first], [first, first]):
        [problem] = checked(*((key, b"\x00") for key in pairs)).problems
        assert problem == f"dataset d: a key out of order: {first.hex()}"


def test_after_damage_the_next_boundary_is_tried() -> None:
    cells = [cell_key(row, b"c", 1, 0) for row in (b"b", b"c", b"n")]
    findings = checked((cells[0], b"\x00"), (cells[1], b"damaged"), (cells[2], b"\x00"))
    assert findings.problems == ["dataset d: checksum"]
    assert findings.datasets[0].cells == 2


def test_a_wholly_wrong_dataset_is_told_in_short() -> None:
    findings = checked(*((b"%04d" % number, b"\x00") for number in range(500)))
    assert len(findings.problems) == MOST_PROBLEMS + 1
    assert findings.problems[-1] == "dataset d: and 400 more problems"
    assert findings.datasets[0].problems == 500


# What is not checked


def test_a_store_in_use_is_not_checked(directory: Path) -> None:
    with opened(directory), pytest.raises(CannotOpen, match=f"server, process {os.getpid()}$"):
        check_directory(directory)


def test_no_server_begins_while_a_store_is_checked(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def try_to_open(_self: object) -> list[bytes]:
        with pytest.raises(CannotOpen) as refusal, opened(directory):
            pass
        refused.append(str(refusal.value))
        return []

    monkeypatch.setattr(RocksDatabase, "boundaries", try_to_open)
    assert check_directory(directory).problems == []
    assert [text.partition(":")[0] for text in refused] == [
        f"{directory} is in use by another process"
    ]


def test_two_checks_may_run_at_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check_too(_self: object) -> list[bytes]:
        monkeypatch.undo()
        assert check_directory(directory).problems == []
        return []

    monkeypatch.setattr(RocksDatabase, "boundaries", check_too)
    assert check_directory(directory).problems == []


def test_a_store_that_was_copied_without_its_holder_is_checked(directory: Path) -> None:
    (directory / HOLDER_FILE).unlink()
    assert check_directory(directory).problems == []


@pytest.mark.parametrize("kind", ["newer", "no format", "no store", "nothing", "no directory"])
def test_what_is_no_store_of_this_format_is_refused_untouched(kind: str, directory: Path) -> None:
    if kind == "newer":
        (directory / FORMAT_FILE).write_text("2\n")
    elif kind == "no format":
        (directory / FORMAT_FILE).unlink()
    elif kind == "no store":
        shutil.rmtree(directory / STORE_FOLDER)
    else:
        shutil.rmtree(directory)
        if kind == "nothing":
            directory.mkdir()
    before = state(directory.parent)
    with pytest.raises(CannotOpen, match=str(directory)):
        check_directory(directory)
    assert state(directory.parent) == before


def test_the_files_made_for_a_check_are_gone_after_it(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    seen: list[int] = []

    def look(_self: object) -> list[bytes]:
        seen.append(len(list(place.iterdir())))
        raise ValueError("a defect")

    monkeypatch.setattr(RocksDatabase, "boundaries", look)
    with pytest.raises(ValueError, match="a defect"):
        check_directory(directory)
    assert seen == [1]
    assert list(place.iterdir()) == []
