"""SAVE, BGSAVE, scheduled backups: what they leave behind, what INFO tells, what others notice."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from resp_server.saving import Saving
from resp_server.scheduling import Schedule, next_moment
from resp_server.settings import Settings
from resp_server.syncing import Syncing
from storage.backup.places import DRAFT, LocalPlace
from storage.backup.repository import OBJECTS, Repository
from storage.backup.restoring import restore, verify
from storage.model import DatasetSettings
from storage.opening import open_engine
from tests.harness import PATIENCE_SECONDS, MakeServer, ServerProcess, eventually, until


def repository(server: ServerProcess) -> Repository:
    return Repository(LocalPlace(server.directory / "backups"))


def persistence(client: redis.Redis) -> dict[str, Any]:
    fields: dict[str, Any] = client.info("persistence")
    return fields


def saved(client: redis.Redis) -> dict[str, Any]:
    """BGSAVE, and what INFO says when it has ended."""
    assert client.execute_command("BGSAVE") == b"Background saving started"
    until(lambda: not persistence(client)["rdb_bgsave_in_progress"])
    return persistence(client)


def put(client: redis.Redis, cells: int, row: str = "r") -> None:
    pipeline = client.pipeline(transaction=False)
    for number in range(cells):
        pipeline.execute_command("WCPUT", "d", row, number + 1, f"c{number:06}", f"v{number}")
    pipeline.execute()


def columns(server: ServerProcess, row: str = "r") -> list[bytes]:
    """Which columns of a row a server on this directory shows."""
    with server.client() as client:
        words: tuple[Any, ...] = ("WCCOLS", "d", row, "COUNT", 10_000)
        cursor, found = client.execute_command(*words)
        while cursor != b"0":
            cursor, names = client.execute_command(*words, "CURSOR", cursor)
            found += names
        return list(found)


@pytest.fixture
def restored(tmp_path: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Servers on restored backups."""
    started: list[ServerProcess] = []

    def start(source: Repository, name: str | None = None) -> ServerProcess:
        directory = tmp_path / f"restored{len(started)}"
        restore(source, name, directory)
        started.append(ServerProcess(directory))
        return started[-1].start()

    yield start
    for server in started:
        server.close()


def test_save_makes_a_backup_that_holds_all_that_was_written(
    make_server: MakeServer, restored: Callable[..., ServerProcess]
) -> None:
    server = make_server()
    with server.client() as client:
        put(client, 100)
        assert client.execute_command("SAVE") is True
        fields = persistence(client)
        put(client, 1, row="later")
    (name,) = repository(server).names()
    assert fields["wc_backup_last_name"] == name
    assert fields["wc_backup_last_to"] == str(server.directory / "backups")
    assert fields["wc_backup_last_status"] == "ok"
    assert fields["wc_backups_made"] == fields["rdb_saves"] == 1
    assert fields["wc_backup_last_bytes"] == repository(server).newest().total_bytes
    assert fields["wc_backup_last_checkpoint_usec"] > 0
    assert drafts(server) == []
    copy = restored(repository(server))
    assert len(columns(copy)) == 100
    with copy.client() as client:
        assert client.execute_command("WCGET", "d", "later")[1] == []


def test_bgsave_tells_how_it_went(make_server: MakeServer) -> None:
    server = make_server(backup_keep=2)
    with server.client() as client:
        before = persistence(client)
        assert before["rdb_last_bgsave_time_sec"] == before["rdb_current_bgsave_time_sec"] == -1
        put(client, 10)
        first = saved(client)
        assert first["rdb_last_bgsave_status"] == "ok"
        assert first["rdb_last_bgsave_time_sec"] >= 0
        assert first["wc_backup_last_sent_bytes"] == first["wc_backup_last_bytes"]
        assert saved(client)["wc_backup_last_sent_bytes"] < first["wc_backup_last_bytes"]
        last = saved(client)
        assert client.lastsave().timestamp() >= last["wc_backup_last_time"] - 1
    assert len(repository(server).names()) == 2
    assert repository(server).names()[-1] == last["wc_backup_last_name"]


def test_one_at_a_time(make_server: MakeServer) -> None:
    server = make_server()
    with server.client() as client, server.client() as other:
        for call in ("BGSAVE", "BGSAVE SCHEDULE", "SAVE"):
            pipeline = client.pipeline(transaction=False)
            pipeline.execute_command("BGSAVE")
            pipeline.execute_command(*call.split())
            started, refused = pipeline.execute(raise_on_error=False)
            assert started == b"Background saving started"
            assert str(refused) == "Background save already in progress"
            assert other.ping()
            until(lambda: not persistence(other)["rdb_bgsave_in_progress"])
        assert persistence(client)["wc_backups_made"] == 3


@pytest.mark.parametrize("directives", [{"backup_keep": 0}, {"wc_engine": "memory"}])
def test_without_backups_it_only_sees_to_the_log(
    make_server: MakeServer, directives: dict[str, object]
) -> None:
    server = make_server(**directives)
    with server.client() as client:
        put(client, 10)
        assert client.execute_command("SAVE") is True
        assert saved(client)["rdb_last_bgsave_status"] == "ok"
        assert client.info("rocksdb")["unsynced"] == 0
    assert repository(server).names() == []


def test_a_failure_is_told_and_the_next_one_succeeds(make_server: MakeServer) -> None:
    server = make_server()
    obstacle = server.directory / "backups"
    obstacle.write_text("in the way")
    with server.client() as client:
        put(client, 10)
        failed = saved(client)
        assert failed["rdb_last_bgsave_status"] == failed["wc_backup_last_status"] == "err"
        assert failed["wc_backup_last_error"]
        assert failed["wc_backups_failed"] == 1
        with pytest.raises(redis.ResponseError, match=r"^IOERR "):
            client.execute_command("SAVE")
        obstacle.unlink()
        whole = saved(client)
        assert whole["rdb_last_bgsave_status"] == whole["wc_backup_last_status"] == "ok"
        assert whole["wc_backup_last_error"] == ""
    assert "saving failed: " in server.log


def test_writes_go_on_and_the_backup_is_of_one_moment(
    make_server: MakeServer, restored: Callable[..., ServerProcess]
) -> None:
    """One client writes 0, 1, 2, ...: a backup holds all up to some number and none above it."""
    server = make_server(rocksdb_write_buffer_size="1mb", backup_keep=3)
    stop = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        with server.client() as writer:
            for number in itertools.count():
                if stop.is_set():
                    return
                value = os.urandom(500)
                writer.execute_command("WCPUT", "d", "r", 1, f"c{number:06}", value)
                written = number + 1

    thread = threading.Thread(target=write)
    thread.start()
    bounds = {}
    try:
        with server.client() as client:
            for goal in (100, 300, 500):
                until(lambda goal=goal: written >= goal)  # type: ignore[misc]
                before = written
                name = saved(client)["wc_backup_last_name"]
                bounds[name] = (before, written + 1)
    finally:
        stop.set()
        thread.join()
    assert list(bounds) == repository(server).names()
    for name, (least, most) in bounds.items():
        found = columns(restored(repository(server), name))
        assert found == [b"c%06d" % number for number in range(len(found))]
        assert least <= len(found) <= most


def test_a_transaction_is_in_it_whole(
    make_server: MakeServer, restored: Callable[..., ServerProcess]
) -> None:
    server = make_server()
    with server.client() as client:
        pipeline = client.pipeline(transaction=True)
        pipeline.execute_command("WCPUT", "d", "r", 1, "c0", "v")
        pipeline.execute_command("BGSAVE")
        pipeline.execute_command("WCPUT", "d", "r", 1, "c1", "v")
        assert pipeline.execute()[1] == b"Background saving started"
        until(lambda: persistence(client)["wc_backups_made"] == 1)
    assert columns(restored(repository(server))) == [b"c0", b"c1"]


def children(server: ServerProcess) -> list[int]:
    path = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    return [int(number) for number in path.read_text().split()]


def drafts(server: ServerProcess) -> list[Path]:
    """Checkpoints that backups are being made of."""
    return list((server.directory / "backups").glob(f"{DRAFT}*"))


def how_far(server: ServerProcess) -> int:
    """The second backup: 1 with its process, 2 with an object of its own, 3 when it is made."""
    found = repository(server)
    names = found.names()
    if len(names) > 1:
        return 3
    if len(found.place.sizes(OBJECTS)) > len(found.manifest(names[0]).hashes):
        return 2
    return 1 if children(server) else 0


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("stage", range(4))
def test_kill_9_leaves_no_backup_that_looks_whole(make_server: MakeServer, stage: int) -> None:
    """The moment of the kill is what varies: at once, or when the backup has come so far."""
    server = make_server()
    with server.client() as client:
        put(client, 2000)
        saved(client)
        put(client, 2000, row="s")
        client.execute_command("BGSAVE")
        until(lambda: how_far(server) >= stage)
        running = children(server)
        server.kill()
    for number in running:  # it ends by itself: nobody reads what it tells
        until(lambda number=number: not Path(f"/proc/{number}/exe").exists())  # type: ignore[misc]
    for name in repository(server).names():
        assert verify(repository(server), name).problems == []
    server.start()
    assert drafts(server) == []
    with server.client() as client:
        assert saved(client)["rdb_last_bgsave_status"] == "ok"
    assert verify(repository(server), None).problems == []


def test_the_end_of_the_server_gives_a_backup_up(make_server: MakeServer) -> None:
    server = make_server()
    with server.client() as client:
        put(client, 2000)
        client.execute_command("BGSAVE")
        assert server.stop(signal.SIGTERM) == 0
    assert drafts(server) == []
    assert "Traceback" not in server.log
    names = repository(server).names()
    assert names == [] or verify(repository(server), names[0]).problems == []


def test_a_save_that_waits_is_answered_when_the_server_ends(make_server: MakeServer) -> None:
    server = make_server()
    with server.client() as client, server.client() as other:
        put(client, 2000)
        answers: list[object] = []

        def save() -> None:
            try:
                answers.append(client.execute_command("SAVE"))
            except redis.RedisError as error:
                answers.append(str(error))

        thread = threading.Thread(target=save)
        thread.start()
        until(lambda: bool(persistence(other)["wc_backup_in_progress"] or answers))
        server.stop()
        thread.join()
    assert answers in ([True], ["IOERR the server is about to end"])


# By the clock


def test_the_next_moment_follows_the_directive(make_server: MakeServer) -> None:
    server = make_server()
    with server.client() as client:
        client.config_set("backup-cron", "0 3 * * *")
        until(lambda: persistence(client)["wc_backup_next_time"] != 0)
        expected = next_moment("0 3 * * *", datetime.now()).timestamp()
        assert persistence(client)["wc_backup_next_time"] == int(expected)
        client.config_set("backup-cron", "30 4 * * sun")
        expected = next_moment("30 4 * * sun", datetime.now()).timestamp()
        until(lambda: persistence(client)["wc_backup_next_time"] == int(expected))
        client.config_set("backup-cron", "")
        until(lambda: persistence(client)["wc_backup_next_time"] == 0)
        for wrong in ("x", "* * * *", "0 0 3 * * *", "61 * * * *", "0 0 31 2 *"):
            with pytest.raises(redis.ResponseError, match="five fields of cron"):
                client.config_set("backup-cron", wrong)
        with pytest.raises(redis.ResponseError, match="immutable"):
            client.config_set("backup-url", "/tmp")


class Moments:
    """datetime.now(), as told."""

    def __init__(self, *moments: datetime) -> None:
        self._moments = list(moments)

    def now(self) -> datetime:
        return self._moments.pop(0) if len(self._moments) > 1 else self._moments[0]


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_scheduled_backup_goes_to_the_url_or_else_to_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """The clock of a server process is not ours to move, so the parts run here."""
    place = tmp_path / ("elsewhere" if elsewhere else "data/backups")
    settings = Settings(
        dir=str(tmp_path / "data"),
        backup_cron="0 3 * * *",
        backup_url=f"file://{place}" if elsewhere else "",
        backup_url_keep=2,
        backup_keep=2,
    )
    monkeypatch.setattr("resp_server.scheduling.datetime", Nights())

    async def run() -> Saving:
        loop = asyncio.get_running_loop()
        engine = open_engine(tmp_path / "data")
        try:
            await engine.put(b"d", [(b"r", 1, b"c", b"v")], None, DatasetSettings())
            syncing = Syncing(settings, engine, loop, lambda _seconds: None)
            saving = Saving(settings, engine, loop, syncing)
            task = asyncio.create_task(saving.schedule.run())
            await eventually(lambda: saving.backups_made >= 3 or saving.backups_failed > 0)
            assert not saving.backups_failed, saving.backup.error
            task.cancel()
            await saving.stop()
            return saving
        finally:
            await engine.close()

    saving = asyncio.run(run())
    assert saving.backup.to == str(place)
    made = Repository(LocalPlace(place))
    assert len(made.names()) == 2
    assert verify(made, saving.backup.name).problems == []


class Nights:
    """datetime.now(), a day later each time it is asked."""

    def __init__(self) -> None:
        self._hours = itertools.count(0, 24)

    def now(self) -> datetime:
        return datetime(2024, 1, 1) + timedelta(hours=next(self._hours))


def test_a_schedule_calls_at_its_moments_and_survives_failures(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    late = datetime(2024, 1, 31, 3, 0, 1)
    clock = Moments(datetime(2024, 1, 31, 2, 59), late, late, datetime(2024, 2, 1, 3, 0))
    monkeypatch.setattr("resp_server.scheduling.datetime", clock)
    calls = []

    async def run() -> None:
        done = asyncio.Event()

        async def action() -> None:
            calls.append(1)
            if len(calls) == 2:
                done.set()
            raise RuntimeError("no")

        task = asyncio.create_task(Schedule(lambda: "0 3 * * *", action).run())
        await asyncio.wait_for(done.wait(), PATIENCE_SECONDS)
        task.cancel()

    asyncio.run(run())
    assert len(calls) == 2
    assert "what was scheduled failed" in caplog.text
