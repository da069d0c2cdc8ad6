"""Backups: whole or not there, sent only as far as they are new, and restored byte for byte.

Each test runs on a local directory, on one that shares files with the store, and on an S3 server.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storage.backup.failures import BackupFailure, DamagedBackup, NoSuchBackup
from storage.backup.manifest import Manifest, StoredFile, decode, encode, is_name, new_name
from storage.backup.places import LocalPlace, Place, place_at
from storage.backup.repository import MANIFESTS, OBJECTS, Repository
from storage.backup.restoring import MARK, laid_out, restore, verify
from storage.embedded.engine import EmbeddedEngine
from storage.errors import CannotOpen
from storage.opening import open_engine
from tests.harness import free_port, listens, until
from tests.storage.backing import add, fill, is_whole, objects, put, state, state_of, store

KINDS = ["local", "sharing", "s3"]


@pytest.fixture(scope="session")
def s3() -> Iterator[None]:
    """An S3 server on loopback, which the environment leads to.

    A process of its own: the end of each store goes through all objects of this one.
    """
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: listens(port))
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield
    import fsspec
    from fsspec.asyn import sync
    from s3fs import S3FileSystem

    for files in list(S3FileSystem._cache.values()):
        if files._s3 is not None:
            sync(files.loop, files._s3.close)
    fsspec.filesystem("s3").clear_instance_cache()
    server.kill()
    server.wait()


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param != "s3":
        return LocalPlace(tmp_path / "backups", sharing=request.param == "sharing")
    request.getfixturevalue("s3")
    import s3fs

    bucket = f"bucket-{os.urandom(6).hex()}"
    s3fs.S3FileSystem().mkdir(bucket)
    return place_at(f"s3://{bucket}/stores/one")


@pytest.fixture
def repository(place: Place) -> Repository:
    return Repository(place)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EmbeddedEngine]:
    with store(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def back_up(
    repository: Repository, engine: EmbeddedEngine, tmp_path: Path
) -> Callable[..., Manifest]:
    def back_up(**options: Any) -> Manifest:
        return add(repository, engine, tmp_path / "checkpoint", **options).manifest

    return back_up


def object_of(manifest: Manifest, ending: str) -> StoredFile:
    return next(file for file in manifest.files if file.path.endswith(ending))


def change(repository: Repository, file: StoredFile, data: bytes) -> None:
    """Put something else in the place of an object, without touching what shares it."""
    repository.place.remove(OBJECTS, [file.sha256])
    repository.place.write(f"{OBJECTS}/{file.sha256}", data)


# The way there and back


def test_what_is_restored_is_what_was_there(
    repository: Repository,
    engine: EmbeddedEngine,
    back_up: Callable[..., Manifest],
    tmp_path: Path,
) -> None:
    fill(engine, 100)
    put(engine, b"expires", b"late", expires_at=2**60)
    then = state(engine)
    first = back_up()
    fill(engine, 100)
    later = state(engine)
    second = back_up()
    assert repository.names() == [first.name, second.name]
    assert restore(repository, first.name, tmp_path / "first") == first
    assert restore(repository, None, tmp_path / "second") == second
    assert state_of(tmp_path / "first") == then
    assert state_of(tmp_path / "second") == later != then
    for name in (first.name, second.name):
        verdict = verify(repository, name)
        assert verdict.problems == []
        assert verdict.findings is not None
        assert [found.name for found in verdict.findings.datasets] == ["d"]
    with store(tmp_path / "second") as copy:
        put(copy, b"new", b"in the copy")
        assert b"new" not in state(engine)


def test_what_is_there_is_not_sent_again(
    repository: Repository, engine: EmbeddedEngine, tmp_path: Path
) -> None:
    fill(engine, 300)
    first = add(repository, engine, tmp_path / "checkpoint")
    assert first.sent_bytes >= 300 * 200
    again = add(repository, engine, tmp_path / "checkpoint")
    assert again.sent_bytes < 60_000
    fill(engine, 10, start=1000)
    third = add(repository, engine, tmp_path / "checkpoint")
    assert 2_000 < third.sent_bytes < 60_000
    table = object_of(first.manifest, ".sst")
    assert table in again.manifest.files and table in third.manifest.files


def test_another_store_with_the_same_file_numbers_mixes_nothing_up(
    repository: Repository, tmp_path: Path
) -> None:
    states = []
    for number in range(2):
        with store(tmp_path / f"data{number}") as engine:
            fill(engine, 50)
            add(repository, engine, tmp_path / "checkpoint")
            states.append(state(engine))
    for name, expected in zip(repository.names(), states, strict=True):
        restore(repository, name, tmp_path / name)
        assert state_of(tmp_path / name) == expected


def test_a_backup_is_copied_on(
    repository: Repository, engine: EmbeddedEngine, tmp_path: Path
) -> None:
    local = LocalPlace(tmp_path / "local", sharing=True)
    fill(engine, 50)
    name = add(Repository(local), engine, tmp_path / "checkpoint").manifest.name
    made = repository.copy(None, local)
    assert made.manifest.name == name and made.sent_bytes == made.manifest.total_bytes
    assert repository.copy(name, local).sent_bytes == 0
    restore(repository, name, tmp_path / "restored")
    assert state_of(tmp_path / "restored") == state(engine)


def test_a_damaged_backup_is_not_copied_on(
    repository: Repository, engine: EmbeddedEngine, tmp_path: Path
) -> None:
    local = LocalPlace(tmp_path / "local")
    fill(engine, 50)
    table = object_of(add(Repository(local), engine, tmp_path / "cp").manifest, ".sst")
    change(Repository(local), table, b"x" * table.bytes)
    with pytest.raises(DamagedBackup, match="is not what was written"):
        repository.copy(None, local)
    assert repository.names() == []


def test_what_is_laid_out_is_there_for_as_long_as_it_is_looked_at(
    place: Place, engine: EmbeddedEngine, tmp_path: Path
) -> None:
    repository = Repository(place)
    fill(engine, 50)
    manifest = add(repository, engine, tmp_path / "checkpoint").manifest
    then = state(engine)
    fill(engine, 50)
    add(repository, engine, tmp_path / "checkpoint")
    table = object_of(manifest, ".sst")
    told: list[tuple[str, int, int]] = []

    def tell(*words: Any) -> None:
        told.append(words)

    (tmp_path / "within").mkdir()
    laid = laid_out(repository, manifest.name, tell, within=tmp_path / "within")
    with laid as (found, directory):
        assert found == manifest
        assert told[-1] == ("fetching", manifest.total_bytes, manifest.total_bytes)
        assert state_of(directory) == then
        held = place.local_file(f"{OBJECTS}/{table.sha256}")
        assert held is None or held.samefile(directory / table.path)
    assert list((tmp_path / "within").iterdir()) == []
    assert verify(repository, manifest.name).problems == []
    change(repository, table, b"")
    with pytest.raises(DamagedBackup, match=table.path):
        laid_out(repository, manifest.name, within=tmp_path / "within").__enter__()
    assert list((tmp_path / "within").iterdir()) == []


# Damage


def test_a_changed_byte_is_found_and_mended_by_a_full_backup(
    repository: Repository,
    engine: EmbeddedEngine,
    back_up: Callable[..., Manifest],
    tmp_path: Path,
) -> None:
    fill(engine, 50)
    manifest = back_up()
    table = object_of(manifest, ".sst")
    data = bytearray(repository.place.read(f"{OBJECTS}/{table.sha256}"))
    data[len(data) // 2] ^= 1
    change(repository, table, bytes(data))
    assert [table.path in problem for problem in verify(repository, None).problems] == [True]
    with pytest.raises(DamagedBackup, match=table.path):
        restore(repository, None, tmp_path / "restored")
    with pytest.raises(CannotOpen, match="no FORMAT"):
        open_engine(tmp_path / "restored")
    back_up(full=True)
    assert verify(repository, manifest.name).problems == []
    restore(repository, manifest.name, tmp_path / "restored")  # over what was left
    assert state_of(tmp_path / "restored") == state(engine)


def test_missing_and_short_objects_are_named(
    repository: Repository,
    engine: EmbeddedEngine,
    back_up: Callable[..., Manifest],
    tmp_path: Path,
) -> None:
    fill(engine, 50)
    manifest = back_up()
    assert is_whole(repository, manifest.name)
    table, current = object_of(manifest, ".sst"), object_of(manifest, "CURRENT")
    repository.place.remove(OBJECTS, [table.sha256])
    change(repository, current, b"x")
    assert not is_whole(repository, manifest.name)
    problems = verify(repository, None).problems
    assert len(problems) == 2
    assert any(f"{table.path} " in line and "missing" in line for line in problems)
    assert any(f"{current.path} " in line and "1 bytes instead of" in line for line in problems)
    with pytest.raises(BackupFailure):
        restore(repository, None, tmp_path / "restored")
    back_up()  # what is missing, or has another size, is sent again
    assert verify(repository, manifest.name).problems == []


def test_a_damaged_manifest_is_no_backup_and_stops_a_prune(
    repository: Repository, engine: EmbeddedEngine, back_up: Callable[..., Manifest]
) -> None:
    fill(engine, 10)
    first, second = back_up(), back_up()
    name = f"{MANIFESTS}/{second.name}.json"
    whole = repository.place.read(name)
    kept = objects(repository)
    for data in (whole[: len(whole) // 2], whole.replace(b'"bytes": ', b'"bytes": 1', 1), b"{}"):
        repository.place.write(name, data)
        with pytest.raises(DamagedBackup):
            repository.newest()
        with pytest.raises(DamagedBackup):
            repository.prune(1)
        assert objects(repository) == kept
    assert first.name not in repository.names()


def test_no_backup_is_said(repository: Repository, tmp_path: Path) -> None:
    assert repository.names() == []
    with pytest.raises(NoSuchBackup):
        restore(repository, None, tmp_path / "restored")
    with pytest.raises(NoSuchBackup):
        verify(repository, "../../etc/passwd")
    assert not (tmp_path / "restored").exists()


# Interruptions


class Interrupted(BaseException):
    """As a signal, or the end of the process."""


class Breaking:
    """A place that ends the world at one of its changes; before it is made, or after."""

    def __init__(self, place: Place, changes: int, *, after: bool) -> None:
        self._place = place
        self._left = changes
        self._after = after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._place, name)
        return self._counted(found) if name in ("put", "write", "remove") else found

    def _counted(self, change: Callable[..., None]) -> Callable[..., None]:
        def counted(*words: Any) -> None:
            self._left -= 1
            if self._left < 0 and not self._after:
                raise Interrupted
            change(*words)
            if self._left < 0:
                raise Interrupted

        return counted


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupted_backup_is_none_and_the_next_goes_on(
    place: Place, engine: EmbeddedEngine, tmp_path: Path, after: bool
) -> None:
    fill(engine, 50)
    repository = Repository(place)
    for changes in range(100):
        try:
            add(Repository(Breaking(place, changes, after=after)), engine, tmp_path / "cp")
        except Interrupted:
            for name in repository.names():  # only if it was the very last change
                assert after and is_whole(repository, name)
            if repository.names():
                break
            assert len(objects(repository)) >= changes
        else:
            break
    assert changes >= 2  # each went further than the one before it
    assert add(repository, engine, tmp_path / "cp").sent_bytes < 60_000
    restore(repository, None, tmp_path / "restored")
    assert state_of(tmp_path / "restored") == state(engine)


def test_a_prune_keeps_what_is_needed_wherever_it_is_interrupted(
    place: Place, engine: EmbeddedEngine, tmp_path: Path
) -> None:
    repository = Repository(place)
    for number in range(4):
        fill(engine, 30, start=30 * number)
        add(repository, engine, tmp_path / "cp")
    names = repository.names()
    for changes in range(2):
        for after in (False, True):
            with contextlib.suppress(Interrupted):
                Repository(Breaking(place, changes, after=after)).prune(2)
            assert all(is_whole(repository, name) for name in repository.names())
    repository.prune(2)
    assert repository.names() == names[2:]
    needed = {each for name in names[2:] for each in repository.manifest(name).hashes}
    assert objects(repository) == needed
    assert repository.prune(2) == []


def test_a_prune_spares_the_backup_that_was_just_made(
    repository: Repository, engine: EmbeddedEngine, back_up: Callable[..., Manifest]
) -> None:
    fill(engine, 5)
    oldest, _, newest = back_up(), back_up(), back_up()
    repository.prune(1, spared=oldest.name)
    assert repository.names() == [oldest.name, newest.name]


@pytest.mark.parametrize("files", range(8))
def test_an_interrupted_restore_leaves_nothing_that_opens(
    engine: EmbeddedEngine, tmp_path: Path, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(LocalPlace(tmp_path / "backups"))
    fill(engine, 20)
    manifest = add(repository, engine, tmp_path / "cp").manifest
    fetch, fetched = repository.fetch, 0

    def broken(*words: Any) -> None:
        nonlocal fetched
        if fetched == files:
            raise Interrupted
        fetched += 1
        fetch(*words)

    monkeypatch.setattr(repository, "fetch", broken)
    if files < len(manifest.files):
        with pytest.raises(Interrupted):
            restore(repository, None, tmp_path / "new")
        with pytest.raises(CannotOpen):
            open_engine(tmp_path / "new")
        assert not (tmp_path / "new" / "FORMAT").exists()
    monkeypatch.setattr(repository, "fetch", fetch)
    restore(repository, None, tmp_path / "new")
    assert state_of(tmp_path / "new") == state(engine)
    assert not (tmp_path / "new" / MARK).exists()


def test_a_restore_of_another_backup_does_not_go_on_there(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    repository = Repository(LocalPlace(tmp_path / "backups"))
    fill(engine, 5)
    first = add(repository, engine, tmp_path / "cp").manifest
    second = add(repository, engine, tmp_path / "cp").manifest
    table = object_of(second, ".sst")
    data = repository.place.read(f"{OBJECTS}/{table.sha256}")
    change(repository, table, b"")
    with pytest.raises(DamagedBackup):
        restore(repository, first.name, tmp_path / "new")
    change(repository, table, data)
    with pytest.raises(BackupFailure, match=first.name):
        restore(repository, second.name, tmp_path / "new")
    restore(repository, first.name, tmp_path / "new")


@pytest.mark.parametrize("there", ["a file", "store/CURRENT", "FORMAT"])
def test_a_directory_that_holds_anything_is_left_alone(
    engine: EmbeddedEngine, tmp_path: Path, there: str
) -> None:
    repository = Repository(LocalPlace(tmp_path / "backups"))
    fill(engine, 5)
    add(repository, engine, tmp_path / "cp")
    mine = tmp_path / "mine" / there
    mine.parent.mkdir(parents=True)
    mine.write_text("1")
    with pytest.raises(BackupFailure, match="not empty"):
        restore(repository, None, tmp_path / "mine")
    assert mine.read_text() == "1"
    assert [path for path in (tmp_path / "mine").rglob("*") if path.is_file()] == [mine]


def test_a_backup_of_a_newer_format_is_not_restored(
    repository: Repository, engine: EmbeddedEngine, back_up: Callable[..., Manifest], tmp_path: Path
) -> None:
    fill(engine, 5)
    newer = replace(back_up(), format=99)
    repository.place.write(f"{MANIFESTS}/{newer.name}.json", encode(newer))
    with pytest.raises(BackupFailure, match="format 99"):
        restore(repository, None, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert "format 99" in verify(repository, None).problems[0]


# Local places


def test_a_sharing_place_takes_no_room_twice(engine: EmbeddedEngine, tmp_path: Path) -> None:
    repository = Repository(LocalPlace(tmp_path / "backups", sharing=True))
    fill(engine, 50)
    table = object_of(add(repository, engine, tmp_path / "cp").manifest, ".sst")
    kept = repository.place.local_file(f"{OBJECTS}/{table.sha256}")
    assert kept is not None
    assert kept.samefile(tmp_path / "data" / table.path)
    add(repository, engine, tmp_path / "cp", full=True)
    assert list((tmp_path / "backups").rglob(".draft-*")) == []
    copies = Repository(LocalPlace(tmp_path / "copies"))
    add(copies, engine, tmp_path / "cp")
    kept = copies.place.local_file(f"{OBJECTS}/{table.sha256}")
    assert kept is not None and not kept.samefile(tmp_path / "data" / table.path)


def test_one_process_at_a_time_writes_to_a_local_place(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    place = LocalPlace(tmp_path / "backups")
    fill(engine, 5)
    with place.alone(), pytest.raises(BackupFailure, match="another process"):
        add(Repository(place), engine, tmp_path / "cp")
    add(Repository(place), engine, tmp_path / "cp")


def test_a_place_that_cannot_be_written_is_told(engine: EmbeddedEngine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BackupFailure, match="File exists"):
        add(Repository(LocalPlace(tmp_path / "file")), engine, tmp_path / "cp")


def test_urls_lead_to_places(tmp_path: Path) -> None:
    assert place_at(str(tmp_path)).shown == str(tmp_path)
    assert place_at(f"file://{tmp_path}/a%20b").shown == f"{tmp_path}/a b"
    memory = place_at("memory://backups/one")
    memory.write("folder/file", b"x")
    assert memory.sizes("folder") == {"file": 1}
    memory.remove("folder", ["file"])
    assert memory.sizes("folder") == {}
    with pytest.raises(BackupFailure, match="Protocol not known"):
        place_at("nothing://anywhere")


def test_passwords_in_urls_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_at("memory://user:secret@host/folder?key=secret")
    assert place.shown == "memory://host/folder"


# Manifests

MANIFEST = Manifest(
    name="20240131T235959.123Z-1a2b3c",
    created_ms=1706745599123,
    colonnade="0.1.0",
    format=1,
    source="host:/data",
    files=(
        StoredFile("FORMAT", 2, "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865"),
    ),
)


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert decode(MANIFEST.name, encode(MANIFEST)) == MANIFEST
    assert json.loads(encode(MANIFEST))["manifest"] == 1


def test_names_are_in_order_of_time() -> None:
    names = [new_name(1706745599123 + step) for step in (0, 1, 877, 10_000)]
    assert names == sorted(names)
    assert all(map(is_name, names))
    assert names[0].startswith("20240131T235959.123Z-")


@pytest.mark.parametrize(
    "file",
    [
        StoredFile("../FORMAT", 2, "0" * 64),
        StoredFile("store/../../x", 2, "0" * 64),
        StoredFile("/etc/passwd", 2, "0" * 64),
        StoredFile("store/a", 2, "../x"),
        StoredFile("store/a", -1, "0" * 64),
    ],
)
def test_a_manifest_that_leads_out_of_its_directory_is_refused(file: StoredFile) -> None:
    evil = replace(MANIFEST, files=(file,))
    with pytest.raises(DamagedBackup):
        decode(evil.name, encode(evil))


def test_a_manifest_under_another_name_is_refused() -> None:
    with pytest.raises(DamagedBackup):
        decode("20240131T235959.123Z-1a2b3d", encode(MANIFEST))


def test_what_the_store_loses_stays_in_a_place_that_shares(tmp_path: Path) -> None:
    repository = Repository(LocalPlace(tmp_path / "backups", sharing=True))
    with store(tmp_path / "data") as engine:
        fill(engine, 50)
        add(repository, engine, tmp_path / "cp")
        before = state(engine)
    shutil.rmtree(tmp_path / "data")
    restore(repository, None, tmp_path / "restored")
    assert state_of(tmp_path / "restored") == before
