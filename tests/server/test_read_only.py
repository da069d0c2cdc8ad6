"""--read-only: a backup, or the directory of a stopped server, is shown and nothing is changed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

import commands.families  # noqa: F401 - fills the command table
from commands.command import Command
from commands.table import TABLE
from storage.backup.places import DRAFT, LocalPlace
from storage.backup.repository import MANIFESTS, OBJECTS, Repository
from tests.compare.servers import RedisProcess, redis_is_installed
from tests.compare.wire import Wire
from tests.harness import PATIENCE_SECONDS, ROOT, MakeServer, ServerProcess

PROGRAM = [sys.executable, "-m", "resp_server"]
REFUSAL = "You can't write against a read only replica."


@dataclass(frozen=True, slots=True)
class Source:
    """The directory of a server that was stopped, and the names of the two backups in it."""

    directory: Path
    first: str
    second: str

    @property
    def backups(self) -> Path:
        return self.directory / "backups"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    server = ServerProcess(tmp_path_factory.mktemp("source") / "data")
    server.start()
    try:
        with server.client() as client:
            client.execute_command("WCDATASET", "CREATE", "d", "MAXVERSIONS", 2)
            client.execute_command("WCPUT", "d", "r", 1, "c", "one", 2, "c", "two")
            client.execute_command("SAVE")
            client.execute_command("WCPUT", "d", "r", 3, "c", "three", 1, "e", "x")
            client.execute_command("WCPUT", "d", "gone", "PXAT", 1, 1, "c", "x")
            client.execute_command("SAVE")
            client.execute_command("WCPUT", "d", "r", 4, "c", "four")
        assert server.stop() == 0
    finally:
        server.close()
    backups = server.directory / "backups"
    first, second = Repository(LocalPlace(backups)).names()
    yield Source(server.directory, first, second)


Read = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    """Starts readers of a path or URL; their temporary files are beside their directory."""
    started: list[ServerProcess] = []

    def start(url: object, *options: str, **directives: object) -> ServerProcess:
        here = tmp_path_factory.mktemp("reader")
        (here / "tmp").mkdir()
        command = ["env", f"TMPDIR={here / 'tmp'}", *PROGRAM, "--read-only", str(url), *options]
        reader = ServerProcess(here / "data", command=command, **directives)
        started.append(reader)
        return reader.start()

    yield start
    for reader in started:
        reader.close()


@pytest.fixture(scope="module")
def reader(source: Source, read: Read) -> ServerProcess:
    """Of the newest backup."""
    return read(source.backups)


def refused(*words: object) -> subprocess.CompletedProcess[str]:
    """What the program says of a command line with which it does not begin."""
    ran = subprocess.run(
        [*PROGRAM, *map(str, words), "--port", "0"], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode in (1, 2)
    assert "Traceback" not in ran.stderr
    return ran


def column(server: ServerProcess) -> list[list[Any]]:
    with server.client() as client:
        found = client.execute_command("WCGET", "d", "r", "COLUMNS", 1, "c", "VERSIONS", "ALL")
    cells: list[list[Any]] = found[1][0][1]
    return cells


def temporary(server: ServerProcess) -> list[Path]:
    return list((server.directory.parent / "tmp").iterdir())


def tree(directory: Path) -> dict[Path, tuple[int, int, int, int]]:
    """All that a write, a rename or a removal would change."""
    paths = [directory, *directory.rglob("*")]
    looks = {path: path.stat() for path in paths}
    return {
        path: (look.st_ino, look.st_mode, look.st_size, look.st_mtime_ns)
        for path, look in looks.items()
    }


# What is shown


def test_reads_are_answered(reader: ServerProcess, protocol: int) -> None:
    with reader.client(protocol=protocol) as client:
        call = client.execute_command
        assert call("WCDATASET", "LIST") == [b"d"]
        assert call("WCGET", "d", "r")[1] == [[b"c", [[3, b"three"]]], [b"e", [[1, b"x"]]]]
        assert call("WCEXISTS", "d", "r", "gone", "other") == 1
        assert [row for row, *_ in call("WCSCAN", "d")[1]] == [b"r"]
        assert call("WAITAOF", 1, 0, 0) == [1, 0]
        assert call("PUBLISH", "channel", "message") == 0
        with client.pipeline() as pipeline:
            pipeline.watch("d")
            pipeline.multi()
            pipeline.execute_command("WCCOLS", "d", "r")
            assert pipeline.execute() == [[b"0", [b"c", b"e"]]]


def test_a_compaction_is_explained(reader: ServerProcess) -> None:
    with reader.client() as client:
        found = client.execute_command("WCDATASET", "EXPLAIN", "d")
        assert (found[b"cells"], found[b"expired-cells"], found[b"surplus-cells"]) == (5, 1, 1)
        told = client.execute_command("WCDATASET", "INFO", "d")
        assert (told[b"maxversions"], told[b"compaction"]) == (2, b"idle")


def test_info_tells(reader: ServerProcess, source: Source, server: ServerProcess) -> None:
    with reader.client() as client:
        told = client.info("persistence")
        assert told["wc_read_only"] == 1
        assert told["wc_looks_into"] == f"backup {source.second} of {source.backups}"
        assert told["aof_last_write_status"] == "ok"
        assert client.info("replication")["role"] == "master"
    with server.client() as client:
        told = client.info("persistence")
        assert told["wc_read_only"] == 0
        assert "wc_looks_into" not in told


def test_another_backup_is_shown_by_its_name(source: Source, read: Read) -> None:
    older = read(f"file://{source.backups}", "--backup", source.first)
    assert column(older) == [[2, b"two"], [1, b"one"]]


# What is refused


def all_commands() -> Iterator[Command]:
    for command in TABLE.all().values():
        yield from [command, *command.subcommands.values()]


def test_whatever_writes_is_refused(reader: ServerProcess) -> None:
    writing = [command for command in all_commands() if not command.only_reads]
    assert {each.name for each in writing} >= {
        "wcput", "wcmput", "wcdel", "wcincrby", "wccas", "wcdataset|create", "wcdataset|alter",
        "wcdataset|drop", "wcdataset|compact", "wcadmin|stage", "wcadmin|ingest", "wcadmin|create",
        "flushall", "flushdb", "save", "bgsave", "bgrewriteaof",
    }  # fmt: skip
    before = column(reader)
    with reader.client() as client:
        for command in writing:
            words = command.name.split("|")
            words += ["1"] * (command.least_words - len(words))
            with pytest.raises(redis.ReadOnlyError) as refusal:
                client.execute_command(*words)
            assert str(refusal.value) == REFUSAL, words
        assert client.info("persistence")["wc_backup_in_progress"] == 0
    assert column(reader) == before


CONVERSATION = (
    "FLUSHALL",
    "FLUSHALL SYNC ASYNC",
    "MULTI", "FLUSHALL", "PING", "EXEC", "EXEC",
    "MULTI", "PING", "FLUSHALL", "DISCARD",
    "MULTI", "PING", "EXEC",
    "MULTI", "SAVE", "EXEC",
    "ACL SETUSER nobody on nopass +ping", "AUTH nobody x", "FLUSHALL", "AUTH default x",
    "SUBSCRIBE channel", "FLUSHALL", "DBSIZE", "RESET",
    "FLUSHALL", "HELLO 3", "FLUSHALL", "DBSIZE",
    "ACL DELUSER nobody",
    "INFO errorstats",
)  # fmt: skip
"""The same with a replica of Redis. What HELLO says of itself is not compared."""


def test_it_is_refused_as_by_a_replica_of_redis(source: Source, read: Read, tmp_path: Path) -> None:
    if not redis_is_installed():
        pytest.skip("redis-server is not installed: nothing to compare with")
    replica = RedisProcess(tmp_path / "replica", {"replicaof": "127.0.0.1 1"})
    said: list[list[str]] = []
    try:
        for port in (replica.start().port, read(source.backups).port):
            with Wire(port, PATIENCE_SECONDS) as wire:
                pairs = [(line, wire.call(*line.split())) for line in CONVERSATION]
                said.append([f"{line} -> {reply}" for line, reply in pairs if line != "HELLO 3"])
    finally:
        replica.close()
    assert said[1] == said[0]
    assert f"FLUSHALL -> -READONLY {REFUSAL}" in said[0]


def test_nothing_is_done_by_the_clock(source: Source, read: Read) -> None:
    reader = read(source.backups, "--backup-cron", "* * * * *")
    with reader.client() as client:
        assert client.info("persistence")["wc_backup_next_time"] == 0
        assert client.config_set("backup-cron", "*/2 * * * *")
        assert client.info("persistence")["wc_backup_next_time"] == 0


# A data directory


def test_a_directory_is_read_and_stays_as_it_was(source: Source, read: Read) -> None:
    before = tree(source.directory)
    reader = read(source.directory)
    assert column(reader) == [[4, b"four"], [3, b"three"]]
    with reader.client() as client, pytest.raises(redis.ReadOnlyError):
        client.execute_command("WCPUT", "d", "r", 9, "c", "v")
    with reader.client() as client:
        assert client.info("persistence")["wc_looks_into"] == str(source.directory)
    assert reader.stop() == 0
    assert tree(source.directory) == before
    assert temporary(reader) == []
    assert not reader.directory.exists()


def test_a_directory_that_was_not_closed_is_read_up_to_its_last_write(
    make_server: MakeServer, read: Read
) -> None:
    killed = make_server()
    with killed.client() as client:
        client.execute_command("WCPUT", "d", "r", 1, "c", "v")
    killed.kill()
    before = tree(killed.directory)
    reader = read(killed.directory)
    assert column(reader) == [[1, b"v"]]
    reader.stop()
    assert tree(killed.directory) == before


def test_a_directory_is_a_server_s_or_its_readers(make_server: MakeServer, read: Read) -> None:
    running = make_server()
    with running.client() as client:
        client.execute_command("WCPUT", "d", "r", 1, "c", "v")
    ran = refused("--read-only", running.directory)
    assert ran.returncode == 1
    assert ran.stderr == (
        f"colonnade-server cannot start: {running.directory} is in use by another running server,"
        f" process {running.pid}\n"
    )
    running.stop()
    one, other = read(running.directory), read(running.directory)
    assert column(one) == column(other) == [[1, b"v"]]
    assert (
        "in use by another process: a check, or a server"
        in refused("--dir", running.directory).stderr
    )
    one.stop(), other.stop()
    running.start()


# A backup


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_backup_in_the_end(
    source: Source, read: Read, number: signal.Signals
) -> None:
    before = tree(source.backups)
    reader = read(source.backups)
    assert len(temporary(reader)) > 0
    assert reader.stop(number) == 0
    assert temporary(reader) == []
    assert tree(source.backups) == before


def test_the_directory_that_the_configuration_names_is_left_alone(
    source: Source, read: Read
) -> None:
    draft = source.backups / f"{DRAFT}of-a-running-server"
    draft.mkdir()
    read(source.backups, dir=source.directory).stop()
    draft.rmdir()


def test_a_backup_that_is_pruned_meanwhile_goes_on_being_shown(
    source: Source, read: Read, tmp_path: Path
) -> None:
    shutil.copytree(source.backups, tmp_path / "backups")
    reader = read(tmp_path / "backups")
    shutil.rmtree(tmp_path / "backups")
    assert column(reader) == [[3, b"three"], [2, b"two"]]


def test_an_interruption_while_it_is_fetched_leaves_nothing(source: Source, tmp_path: Path) -> None:
    shutil.copytree(source.backups, tmp_path / "backups")
    manifest = Repository(LocalPlace(tmp_path / "backups")).newest()
    endless = tmp_path / "backups" / OBJECTS / manifest.files[0].sha256
    endless.unlink()
    os.mkfifo(endless)
    (tmp_path / "tmp").mkdir()
    fetching = subprocess.Popen(
        [*PROGRAM, "--read-only", tmp_path / "backups", "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stderr=subprocess.PIPE,
        text=True,
    )
    with endless.open("wb"):  # it has begun to read
        fetching.terminate()
        _, told = fetching.communicate(timeout=PATIENCE_SECONDS)
    assert (fetching.returncode, told) == (1, "colonnade-server: interrupted before it began\n")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_damaged_backup_is_not_shown(source: Source, tmp_path: Path) -> None:
    shutil.copytree(source.backups, tmp_path / "backups")
    repository = Repository(LocalPlace(tmp_path / "backups"))
    table = next(file for file in repository.newest().files if file.path.endswith(".sst"))
    data = bytearray(repository.place.read(f"{OBJECTS}/{table.sha256}"))
    data[len(data) // 2] ^= 1
    repository.place.write(f"{OBJECTS}/{table.sha256}", bytes(data))
    assert (
        f"{table.path} (object {table.sha256}) is not what was written"
        in refused("--read-only", tmp_path / "backups").stderr
    )
    (tmp_path / "backups" / MANIFESTS / f"{repository.names()[-1]}.json").write_text("{}")
    assert "its manifest is damaged" in refused("--read-only", tmp_path / "backups").stderr


# The command line


def test_wrong_words_are_told(source: Source, tmp_path: Path) -> None:
    began: list[tuple[subprocess.Popen[str], int, str]] = []
    for words, code, text in (
        ([], 2, "--read-only says what to read"),
        ([source.backups, "--backup"], 2, "--backup says what to read"),
        ([source.backups, "--wc-engine", "memory"], 2, "take 'wc-engine memory' away"),
        ([source.backups, "--backup", "yesterday"], 1, f"no backup yesterday in {source.backups}"),
        ([source.directory, "--backup", source.first], 1, "is a data directory, and not a place"),
        ([tmp_path], 1, f"there is neither a backup nor a store in {tmp_path}"),
        (["nothing://anywhere"], 1, "Protocol not known: nothing"),
    ):
        line = ["--read-only", *words] if words else ["--port", "0", "--read-only"]
        command = [*PROGRAM, *map(str, line)]
        began.append(
            (subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True), code, text)
        )
    for process, code, text in began:
        _, told = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, text in told) == (code, True), told
