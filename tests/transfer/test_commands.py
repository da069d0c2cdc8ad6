"""colonnade export and import against a running server, and what the server does for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow.parquet as pq
import pytest
import redis

from tests.harness import ServerProcess
from tests.transfer.conftest import Colonnade

Make = Callable[..., ServerProcess]


def contents(client: redis.Redis, dataset: str) -> Any:
    return client.execute_command("WCSCAN", dataset, "LIMIT", 100, "VERSIONS", "ALL")


@pytest.fixture(scope="module")
def filled(server: ServerProcess) -> str:
    with server.client() as client:
        for call in (
            ["WCDATASET", "CREATE", "transfer:source", "MAXVERSIONS", 2],
            ["WCPUT", "transfer:source", "user:1", 1, "a", "old", 2, "a", "2", 3, "a", "3"],
            ["WCPUT", "transfer:source", "user:1", "PXAT", 4_000_000_000_000, 5, "b", "until"],
            ["WCPUT", "transfer:source", "user:2", 2**63 - 1, "a", "\x00\r\n", 7, "b", ""],
            ["WCPUT", "transfer:source", "user:2", "PXAT", 1, 9, "gone", "x"],
            ["WCPUT", "transfer:source", "usher", "*", "c", "one", "*", "c", "two"],
        ):
            client.execute_command(*call)
    return "transfer:source"


@pytest.mark.parametrize("via", ["auto", "tables"])
def test_round_trip_through_a_server(
    server: ServerProcess, filled: str, tmp_path: Path, colonnade: Colonnade, via: str
) -> None:
    at = ("--server", f"127.0.0.1:{server.port}")
    done = colonnade("export", filled, tmp_path, *at)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["transfer%3Asource-00000.parquet"]
    assert list((server.directory / "checkpoints").iterdir()) == []
    done = colonnade("import", f"copy:{via}", *tmp_path.iterdir(), *at, "--via", via)
    assert (done.returncode, done.stderr) == (0, "")
    with server.client() as client:
        assert contents(client, f"copy:{via}") == contents(client, filled)
    assert list((server.directory / "checkpoints").iterdir()) == []


def test_commands_keep_the_newest_of_one_millisecond(
    server: ServerProcess, filled: str, tmp_path: Path, colonnade: Colonnade
) -> None:
    at = ("--server", f"127.0.0.1:{server.port}")
    colonnade("export", filled, tmp_path, *at, "--where-row-prefix", "ush")
    with server.client() as client:
        for _ in range(2):  # what was taken in is replaced, not doubled
            done = colonnade("import", "copy:sent", *tmp_path.iterdir(), *at, "--via", "commands")
            assert done.returncode == 0
            cells = contents(client, "copy:sent")[1][0][1][0][1]
            assert cells[0] == contents(client, filled)[1][2][1][0][1][0]


def test_what_an_export_leaves_out(
    server: ServerProcess, filled: str, tmp_path: Path, colonnade: Colonnade
) -> None:
    at = ("--server", f"127.0.0.1:{server.port}")

    def exported(name: str, *options: object) -> list[tuple[Any, ...]]:
        assert colonnade("export", filled, tmp_path / name, *at, *options).returncode == 0
        table = pq.read_table(tmp_path / name)
        return [tuple(row.values()) for row in table.drop_columns("timestamp").to_pylist()]

    ranged = exported("range", "--range", "2", "1970-01-01T00:00:00.006", "--versions", "1")
    assert [row[:3] for row in ranged] == [
        (b"user:1", b"a", b"3"),
        (b"user:1", b"b", b"until"),
    ]
    two = exported("prefix", "--where-row-prefix", "user:2", "--rows-per-file", "1")
    assert [row[:3] for row in two] == [(b"user:2", b"a", b"\x00\r\n"), (b"user:2", b"b", b"")]
    assert len(list((tmp_path / "prefix").iterdir())) == 2
    done = colonnade("export", filled, tmp_path / "wide", *at, "--wide", "b,a")
    assert done.returncode == 0
    assert pq.read_table(tmp_path / "wide").to_pylist() == [
        {"row": b"user:1", "b": b"until", "a": b"3"},
        {"row": b"user:2", "b": b"", "a": b"\x00\r\n"},
    ]


def test_duckdb_pandas_and_pyarrow_read_it(
    server: ServerProcess, filled: str, tmp_path: Path, colonnade: Colonnade
) -> None:
    at = ("--server", f"127.0.0.1:{server.port}")
    colonnade("export", filled, tmp_path, *at, "--where-row-prefix", "user:1")
    (file,) = tmp_path.iterdir()
    expected = [("user:1", "a", 3, "3"), ("user:1", "a", 2, "2"), ("user:1", "b", 5, "until")]
    query = 'SELECT row::BLOB::VARCHAR, "column"::VARCHAR, epoch_ms(timestamp), value::VARCHAR'
    with duckdb.connect() as database:
        assert database.execute(f"{query} FROM '{file}'").fetchall() == expected
    frame = pandas.read_parquet(file)
    assert list(frame["value"]) == [b"3", b"2", b"until"]
    assert str(frame["timestamp"].dtype) == "datetime64[ms, UTC]"
    assert frame["expires"].isna().tolist() == [True, True, False]
    table = pq.read_table(file)
    assert table.schema.field("timestamp").type == table.schema.field("expires").type
    assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_stopped_directory_is_exported_and_left_as_it_was(
    make_server: Make, tmp_path: Path, colonnade: Colonnade
) -> None:
    server = make_server()
    with server.client() as client:
        client.execute_command("WCPUT", "d", "r", 1, "c", "v")
        refused = colonnade("export", "d", tmp_path / "out", "--dir", server.directory)
        assert refused.returncode == 1
        assert "in use by another running server" in refused.stderr
    server.stop()
    before = sorted((path, path.stat().st_mtime_ns) for path in server.directory.rglob("*"))
    assert colonnade("export", "d", tmp_path / "out", "--dir", server.directory).returncode == 0
    after = sorted((path, path.stat().st_mtime_ns) for path in server.directory.rglob("*"))
    assert after == before
    again = colonnade("export", "d", tmp_path / "out", "--dir", server.directory)
    assert (again.returncode, "is there already" in again.stderr) == (1, True)
    unknown = colonnade("export", "other", tmp_path / "out", "--dir", server.directory)
    assert (unknown.returncode, "no such dataset 'other'" in unknown.stderr) == (1, True)


CSV = 'user,at,action,pin\nu1,2026-01-01T00:00:00,repin,p1\n"u,2",7,"mul\nti",\n'
BAD_CSV = "u3,x,a,b\nu4,9,a\nu5,9,ok,\n"


@pytest.mark.parametrize("via", ["commands", "tables"])
def test_wide_csv(
    server: ServerProcess, tmp_path: Path, colonnade: Colonnade, via: str, dataset: str
) -> None:
    at = ("--server", f"127.0.0.1:{server.port}", "--via", via, "--map", "row=user,timestamp=at")
    file = tmp_path / "events.csv"
    file.write_text(CSV + BAD_CSV)
    with server.client() as client:
        done = colonnade("import", dataset, file, *at)
        assert done.returncode == 1
        assert f"{file}:5: timestamp: 'x' is neither milliseconds" in done.stderr
        assert "nothing was imported" in done.stderr
        assert dataset.encode() not in client.execute_command("WCDATASET", "LIST")
        done = colonnade("import", dataset, file, *at, "--on-error", "skip")
        assert done.returncode == 0
        assert "4 cells in" in done.stdout
        assert "2 bad records left out" in done.stdout
        assert f"{file}:6: 3 fields instead of 4" in done.stderr
        _, rows = client.execute_command("WCSCAN", dataset)
    assert [(row, columns) for row, columns, _ in rows] == [
        (b"u,2", [[b"action", [[7, b"mul\nti"]]]]),
        (b"u1", [[b"action", [[1767225600000, b"repin"]]], [b"pin", [[1767225600000, b"p1"]]]]),
        (b"u5", [[b"action", [[9, b"ok"]]]]),
    ]
    assert list((server.directory / "checkpoints").iterdir()) == []


@pytest.mark.parametrize("via", ["commands", "tables"])
def test_long_ndjson(
    server: ServerProcess, tmp_path: Path, colonnade: Colonnade, via: str, dataset: str
) -> None:
    records = [
        {"k": "r", "c": "n", "t": 5, "v": 7},
        {"k": "r", "c": "o", "t": 6, "v": {"a": [1, None]}, "until": 4_000_000_000_000},
        {"k": "r", "c": "n", "t": 5, "v": "later"},
    ]
    file = tmp_path / "events.ndjson"
    file.write_text("\n\n".join(json.dumps(record) for record in records))
    mapping = "row=k,column=c,timestamp=t,value=v"
    at = ("--server", f"127.0.0.1:{server.port}", "--via", via)
    done = colonnade("import", dataset, file, *at, "--map", mapping)
    assert (done.returncode, done.stderr) == (0, "")
    with server.client() as client:
        _, columns = client.execute_command("WCGET", dataset, "r")
    assert columns == [[b"n", [[5, b"later"]]], [b"o", [[6, b'{"a":[1,null]}']]]]


def test_expiring_cells_go_by_commands_where_they_could_uncover_others(
    server: ServerProcess, tmp_path: Path, colonnade: Colonnade, dataset: str
) -> None:
    file = tmp_path / "events.csv"
    file.write_text("row,column,timestamp,value,expires\nr,c,5,new,4000000000000\n")
    at = ("--server", f"127.0.0.1:{server.port}")
    with server.client() as client:
        client.execute_command("WCDATASET", "CREATE", dataset, "MAXVERSIONS", 1)
        client.execute_command("WCPUT", dataset, "r", 4, "c", "hidden", 5, "c", "old")
        done = colonnade("import", dataset, file, *at, "--via", "tables")
        assert (done.returncode, "takes no expiring ones" in done.stderr) == (1, True)
        assert client.execute_command("WCGET", dataset, "r")[1] == [[b"c", [[5, b"old"]]]]
        assert colonnade("import", dataset, file, *at).returncode == 0
        assert client.execute_command("WCGET", dataset, "r")[1] == [[b"c", [[5, b"new"]]]]
        client.execute_command("WCDEL", dataset, "r", "TIMESTAMPS", 1, 5)
        assert client.execute_command("WCGET", dataset, "r")[1] == []


# The server's part


def test_ingest_is_seen_by_watch_and_survives_a_kill(
    make_server: Make, tmp_path: Path, colonnade: Colonnade
) -> None:
    server = make_server()
    file = tmp_path / "events.csv"
    file.write_text("row,column,timestamp,value\nr,c,1,imported\n")
    with server.client() as client:
        client.execute_command("WCPUT", "d", "r", 1, "c", "before")
        with client.pipeline() as pipeline:
            pipeline.watch("d")
            at = ("--server", f"127.0.0.1:{server.port}", "--via", "tables")
            assert colonnade("import", "d", file, *at).returncode == 0
            assert colonnade("import", "new", file, *at).returncode == 0
            pipeline.multi()
            pipeline.execute_command("WCPUT", "d", "r", 2, "c", "unaware")
            with pytest.raises(redis.WatchError):
                pipeline.execute()
    server.kill()
    server.start()
    with server.client() as client:
        for dataset in ("d", "new"):
            found = client.execute_command("WCGET", dataset, "r", "VERSIONS", "ALL")[1]
            assert found == [[b"c", [[1, b"imported"]]]]


def test_folders_are_the_server_s_own(make_server: Make) -> None:
    server = make_server()
    (server.directory / "mine").mkdir()
    with server.client() as client:
        client.execute_command("WCPUT", "d", "r", 1, "c", "v")
        for name in (b"../mine", b"mine", b"", b"export-0123456789abcdef", b"import-x"):
            for call in ([b"RELEASE", name], [b"INGEST", b"d", name]):
                with pytest.raises(redis.ResponseError, match="no such folder"):
                    client.execute_command("WCADMIN", *call)
        with pytest.raises(redis.ResponseError, match="not allowed inside a transaction"):
            client.execute_command("MULTI") and client.execute_command("WCADMIN", "STAGE")
    with server.client() as client:
        left = Path(client.execute_command("WCADMIN", "CHECKPOINT").decode())
        assert left.parent == server.directory / "checkpoints"
        assert client.execute_command("ACL", "DRYRUN", "default", "WCADMIN", "STAGE") == b"OK"
        client.execute_command(
            "ACL", "SETUSER", "u", "on", "nopass", "~*", "+@widecolumn", "+@all", "-@dangerous"
        )
        with pytest.raises(redis.ResponseError, match="no permissions"):
            client.execute_command("AUTH", "u", "x") and client.execute_command("WCADMIN", "STAGE")
    server.kill()
    server.start()
    assert not left.exists()


def test_without_a_disk_there_are_no_folders(
    make_server: Make, tmp_path: Path, colonnade: Colonnade
) -> None:
    server = make_server(wc_engine="memory")
    at = ("--server", f"127.0.0.1:{server.port}")
    done = colonnade("export", "d", tmp_path, *at)
    assert (done.returncode, "data in memory has no files" in done.stderr) == (1, True)
    file = tmp_path / "events.csv"
    file.write_text("row,column,timestamp,value,sequence\nr,c,1,v,0\n")
    assert colonnade("import", "d", file, *at).returncode == 0
    with server.client() as client:
        assert client.execute_command("WCGET", "d", "r")[1] == [[b"c", [[1, b"v"]]]]
