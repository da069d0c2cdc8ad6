"""colonnade restore --dataset: one dataset of a backup into a running server, whole or not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings

from storage.backup.places import LocalPlace
from storage.backup.repository import OBJECTS, Repository
from storage.clock import wall_clock_ms
from storage.embedded.engine import EmbeddedEngine
from storage.embedded.rules import expiry_of
from storage.errors import DatasetExists, StoreFailure
from storage.model import DatasetSettings, NewCell
from storage.opening import open_engine, reading
from storage.rocks.database import RocksDatabase
from storage.transfer.copying import copy_cells
from tests.harness import PATIENCE_SECONDS, ROOT, MakeServer, ServerProcess
from tests.transfer.conftest import Colonnade
from tests.transfer.test_round_trip import CALLS, SETTINGS

Cells = list[tuple[bytes, bytes]]
_NUMBERS = iter(range(10**9))


def raw(engine: EmbeddedEngine, name: bytes) -> Cells:
    """All that the store holds of a dataset, and no read may show."""
    dataset = engine.open_dataset(name)
    assert dataset is not None
    return list(dataset.family.scan(None).walk(b""))


def folders(server: ServerProcess) -> list[Path]:
    return list((server.directory / "checkpoints").iterdir())


@pytest.fixture(scope="module")
def saved(server: ServerProcess) -> Iterator[Path]:
    """Where the backups of the shared server are; the newest holds dataset `restoring:source`."""
    with server.client() as client:
        call = client.execute_command
        call("WCDATASET", "CREATE", "restoring:source", "MAXVERSIONS", 2, "TTL", 10**12)
        call("WCPUT", "restoring:source", "r", 1, "c", "hidden", 2, "c", "2", 3, "c", "3")
        call("WCPUT", "restoring:source", "r", "*", "c", "one", "*", "c", "two")
        call("WCPUT", "restoring:source", "\x00\r\n", "PXAT", 4 * 10**12, 2**63 - 1, "", "")
        call("WCPUT", "restoring:source", "gone", "PXAT", 1, 9, "c", "x")
        call("SAVE")
        yield server.directory / "backups"
        call("WCDATASET", "DROP", "restoring:source")


@pytest.fixture
def at(server: ServerProcess) -> tuple[str, str]:
    return "--server", f"127.0.0.1:{server.port}"


def test_a_dataset_comes_back_under_a_new_name(
    server: ServerProcess, saved: Path, at: tuple[str, str], colonnade: Colonnade, dataset: str
) -> None:
    name = Repository(LocalPlace(saved)).names()[-1]
    words = ("--dataset", "restoring:source", "--as", dataset, "--backup", name)
    done = colonnade("restore", saved, *words, *at)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"dataset {dataset}: 6 cells of backup {name}\n"
    with server.client() as client:
        call = client.execute_command

        def shown(name: str) -> Any:
            return call("WCSCAN", name, "VERSIONS", "ALL")

        assert shown(dataset) == shown("restoring:source")
        told = call("WCDATASET", "INFO", dataset)
        assert (told[b"maxversions"], told[b"ttl"]) == (2, 10**12)
        assert told[b"estimated-cells"] == 6
        assert told[b"disk-bytes"] > 0
        for each in (dataset, "restoring:source"):  # those beyond MAXVERSIONS came too
            call("WCDATASET", "ALTER", each, "MAXVERSIONS", 0)
        assert len(call("WCGET", dataset, "r", "VERSIONS", "ALL")[1][0][1]) == 5
        assert shown(dataset) == shown("restoring:source")
    assert folders(server) == []


def test_what_was_dropped_comes_back_and_survives_a_kill(
    make_server: MakeServer, colonnade: Colonnade
) -> None:
    server = make_server()
    with server.client() as client:
        client.execute_command("WCPUT", "d", "r", "*", "c", "v", "*", "c", "w")
        client.execute_command("SAVE")
        before = client.execute_command("WCGET", "d", "r", "VERSIONS", "ALL")
        client.execute_command("WCDATASET", "DROP", "d")
        words = ("--dataset", "d", "--server", f"127.0.0.1:{server.port}")
        done = colonnade("restore", server.directory / "backups", *words)
        assert done.stderr == ""
    server.kill()
    server.start()
    with server.client() as client:
        assert client.execute_command("WCGET", "d", "r", "VERSIONS", "ALL") == before
        client.execute_command("WCPUT", "d", "r", "*", "c", "x")
        assert client.execute_command("WCGET", "d", "r")[1][0][1][0][1] == b"x"


def test_nothing_is_written_over(
    server: ServerProcess, saved: Path, at: tuple[str, str], colonnade: Colonnade
) -> None:
    with server.client() as client:
        before = client.execute_command("WCSCAN", "restoring:source", "VERSIONS", "ALL")
        done = colonnade("restore", saved, "--dataset", "restoring:source", *at)
        assert done.returncode == 1
        assert done.stderr == "colonnade restore: dataset 'restoring:source' already exists\n"
        folder = Path(client.execute_command("WCADMIN", "STAGE").decode())
        with pytest.raises(redis.ResponseError, match="already exists"):  # made meanwhile
            client.execute_command("WCADMIN", "CREATE", "restoring:source", folder.name, 0, 0)
        client.execute_command("WCADMIN", "RELEASE", folder.name)
        assert client.execute_command("WCSCAN", "restoring:source", "VERSIONS", "ALL") == before


def test_what_cannot_be_done_leaves_nothing(
    server: ServerProcess,
    saved: Path,
    at: tuple[str, str],
    colonnade: Colonnade,
    dataset: str,
    tmp_path: Path,
) -> None:
    shutil.copytree(saved, tmp_path / "damaged")
    damaged = Repository(LocalPlace(tmp_path / "damaged"))
    table = max(damaged.newest().files, key=lambda file: file.path.endswith(".sst"))
    damaged.place.write(f"{OBJECTS}/{table.sha256}", b"")
    source = ("--dataset", "restoring:source", "--as")
    for words, text in (
        ([saved, "--dataset", "other", "--as", dataset], "no dataset other, but these: "),
        ([saved, *source, "a b"], "invalid dataset name"),
        ([saved, *source, dataset, "--backup", "x"], "there is no backup x in"),
        ([tmp_path / "damaged", *source, dataset], "is not what was written"),
    ):
        done = colonnade("restore", *words, *at)
        assert (done.returncode, text in done.stderr) == (1, True), done.stderr
        assert done.stderr.count("\n") == 1
    with server.client() as client:
        assert dataset.encode() not in client.execute_command("WCDATASET", "LIST")
        for numbers in (["x", 0], [0, -1], [100_001, 0]):
            folder = Path(client.execute_command("WCADMIN", "STAGE").decode())
            with pytest.raises(redis.ResponseError, match="not an integer"):
                client.execute_command("WCADMIN", "CREATE", dataset, folder.name, *numbers)
            client.execute_command("WCADMIN", "RELEASE", folder.name)
        assert dataset.encode() not in client.execute_command("WCDATASET", "LIST")
    assert folders(server) == []


def test_an_interruption_leaves_nothing(
    server: ServerProcess, saved: Path, at: tuple[str, str], dataset: str, tmp_path: Path
) -> None:
    shutil.copytree(saved, tmp_path / "backups")
    endless = tmp_path / "backups" / OBJECTS
    endless /= Repository(LocalPlace(tmp_path / "backups")).newest().files[0].sha256
    endless.unlink()
    os.mkfifo(endless)
    words = [tmp_path / "backups", "--dataset", "restoring:source", "--as", dataset, *at]
    restoring = subprocess.Popen(
        [sys.executable, "-m", "resp_server.cli", "restore", *map(str, words)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    with endless.open("wb"):  # it has begun to read
        assert len(folders(server)) == 1
        restoring.send_signal(signal.SIGTERM)
        _, told = restoring.communicate(timeout=PATIENCE_SECONDS)
    assert restoring.returncode == 130
    assert told == (
        "colonnade restore: interrupted, the dataset is there as a whole or not at all\n"
    )
    with server.client() as client:
        assert dataset.encode() not in client.execute_command("WCDATASET", "LIST")
    assert folders(server) == []


def test_wrong_words_are_told(saved: Path, at: tuple[str, str], colonnade: Colonnade) -> None:
    for words, text in (
        ([], "name one of them"),
        (["here", "--dataset", "d", *at], "name one of them"),
        (["--dataset", "d"], "name it with --server"),
        (["here", *at], "--as and --server are for one --dataset"),
    ):
        done = colonnade("restore", saved, *words)
        assert (done.returncode, text in done.stderr) == (2, True), done.stderr


class Elsewhere(socketserver.StreamRequestHandler):
    """Answers as a server whose folders are on another machine."""

    asked: list[bytes] = []  # noqa: RUF012 - of the one that a test starts

    def handle(self) -> None:
        answers = {b"LIST": b"*0\r\n", b"STAGE": b"+/nowhere/import-0\r\n", b"RELEASE": b"+OK\r\n"}
        for line in self.rfile:
            word = line.strip()
            if word in answers:
                self.asked.append(word)
                self.wfile.write(answers[word])


def test_it_is_run_beside_the_server(saved: Path, colonnade: Colonnade) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), Elsewhere) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        at = f"127.0.0.1:{elsewhere.server_address[1]}"
        done = colonnade("restore", saved, "--dataset", "restoring:source", "--server", at)
        elsewhere.shutdown()
    assert done.returncode == 1
    assert done.stderr == (
        "colonnade restore: /nowhere/import-0 cannot be written to from here: run this on the"
        " server's machine, as its user\n"
    )
    assert Elsewhere.asked == [b"LIST", b"STAGE", b"RELEASE"]


# The engine's part, and the copy


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    opened = open_engine(tmp_path_factory.mktemp("engine") / "data")
    yield opened
    asyncio.run(opened.close())


def restored(engine: EmbeddedEngine, source: bytes, name: bytes, now: int) -> int:
    found, folder = engine.open_dataset(source), engine.folder_for_import()
    assert found is not None
    cells = copy_cells(found, folder, now, lambda _done, _total: None)
    asyncio.run(engine.ingest_new(name, folder.name.encode(), found.settings))
    assert not folder.exists()
    return cells


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(calls=CALLS, setting=SETTINGS)
def test_every_cell_that_lives_is_there_byte_for_byte(
    engine: EmbeddedEngine,
    calls: list[tuple[list[NewCell], int | None]],
    setting: DatasetSettings,
) -> None:
    number = next(_NUMBERS)
    source, copy = b"source%d" % number, b"copy%d" % number
    asyncio.run(engine.create_dataset(source, setting))
    for cells, expires_at in calls:
        asyncio.run(engine.put(source, cells, expires_at, None))
    assert engine.commit() is None
    now = wall_clock_ms()
    living = [
        (key, value)
        for key, value in raw(engine, source)
        if expiry_of(key, value, setting.ttl_seconds * 1000) >= now
    ]
    assert restored(engine, source, copy, now) == len(living)
    assert raw(engine, copy) == living
    found = engine.open_dataset(copy)
    assert found is not None and found.settings == setting
    for name in (source, copy):
        asyncio.run(engine.drop_dataset(name))


def filled(engine: EmbeddedEngine, name: bytes) -> Cells:
    asyncio.run(engine.put(name, [(b"r", None, b"c", b"v")], None, DatasetSettings()))
    assert engine.commit() is None
    return raw(engine, name)


def test_tables_that_are_not_taken_over_leave_no_dataset(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = filled(engine, b"whole")
    real = RocksDatabase.ingest

    def fail(self: RocksDatabase, family: Any, tables: Any) -> None:
        real(self, family, tables)
        raise StoreFailure("as on a full disk")

    monkeypatch.setattr(RocksDatabase, "ingest", fail)
    with pytest.raises(StoreFailure, match="as on a full disk"):
        restored(engine, b"whole", b"failed", 0)
    assert engine.open_dataset(b"failed") is None
    monkeypatch.undo()
    assert engine.commit() is None
    restored(engine, b"whole", b"failed", 0)
    assert raw(engine, b"failed") == cells
    with pytest.raises(DatasetExists):
        restored(engine, b"whole", b"failed", 0)


def test_a_crash_before_the_end_leaves_no_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, crashed = tmp_path / "live", tmp_path / "crashed"
    with contextlib.closing(Engine(live)) as held:
        cells = filled(held.engine, b"whole")
        real = RocksDatabase.ingest

        def crash(self: RocksDatabase, family: Any, tables: Any) -> None:
            real(self, family, tables)
            shutil.copytree(live, crashed)

        monkeypatch.setattr(RocksDatabase, "ingest", crash)
        restored(held.engine, b"whole", b"half", 0)
    monkeypatch.undo()
    with contextlib.closing(Engine(crashed)) as held:
        assert held.engine.dataset_names() == [b"whole"]
        restored(held.engine, b"whole", b"half", 0)  # nothing of it is in the way
        assert raw(held.engine, b"half") == cells
    with reading(live) as engine:
        assert raw(engine, b"half") == cells


def test_a_name_that_was_just_dropped_is_free(engine: EmbeddedEngine) -> None:
    cells = filled(engine, b"whole")

    async def dropped_in_a_transaction() -> None:
        await engine.put(b"leaving", [(b"old", None, b"c", b"v")], None, DatasetSettings())
        async with engine.transaction():
            await engine.drop_dataset(b"leaving")

    asyncio.run(dropped_in_a_transaction())
    restored(engine, b"whole", b"leaving", 0)
    assert engine.commit() is None
    assert raw(engine, b"leaving") == cells


class Engine:
    """An engine with an end."""

    def __init__(self, directory: Path) -> None:
        self.engine = open_engine(directory)

    def close(self) -> None:
        asyncio.run(self.engine.close())
