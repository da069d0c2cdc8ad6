"""How the program begins: whom it refuses, what it leaves on the machine, and the check of a store.

`test_lifecycle.py` has the configuration and the ports; here is the data directory and the files.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tests.harness import MakeServer, ServerProcess, free_port, until
from tests.server.test_lifecycle import contents, run_server

STRACE = shutil.which("strace")


def write_some(server: ServerProcess) -> None:
    with server.client() as client:
        for number in range(100):
            client.execute_command("WCPUT", "d", f"r{number}", 1, "c", "v" * 100)


# Who holds the directory


def test_a_second_server_says_who_holds_the_directory(make_server: MakeServer) -> None:
    server = make_server()
    before = contents(server.directory)
    second = run_server("--port", free_port(), "--dir", server.directory)
    assert second.returncode == 1
    assert second.stderr == (
        f"colonnade-server cannot start: {server.directory} is in use by another running server,"
        f" process {server.pid}\n"
    )
    assert contents(server.directory) == before


def test_after_kill_9_nobody_holds_the_directory(make_server: MakeServer) -> None:
    server = make_server()
    write_some(server)
    server.kill()
    assert (server.directory / "HOLDER").read_text() == f"{server.pid}\n"
    with server.start().client() as client:
        assert client.execute_command("WCPUT", "d", "r", 1, "c", "v") == 1


def test_a_link_out_of_the_directory_is_one_clear_line(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "store").symlink_to(tmp_path)
    ended = run_server("--port", free_port(), "--dir", directory)
    assert ended.returncode == 1
    assert f"{directory / 'store'} is a symbolic link that leads out of" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


# What it leaves on the machine


@pytest.fixture
def permissive() -> object:
    """Servers that are started now begin with a umask that withholds nothing."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_whatever_the_umask_files_are_the_owners_alone(tmp_path: Path, permissive: object) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    files = {"logfile": outside / "log", "pidfile": outside / "pid"}
    server = ServerProcess(tmp_path / "new" / "data", **files)  # type: ignore[arg-type]
    server.log_path = tmp_path / "output"
    server.start()
    try:
        write_some(server)
        until(files["pidfile"].exists)
        found = [*outside.iterdir(), *(tmp_path / "new").rglob("*"), tmp_path / "new"]
        modes = {str(path): stat.S_IMODE(path.stat().st_mode) for path in found}
        wanted = {str(path): 0o700 if path.is_dir() else 0o600 for path in found}
        assert len(found) > 10
        assert modes == wanted
    finally:
        server.close()


WRITING = re.compile(
    r'\b(?:(?:openat|open)\((?:AT_FDCWD, )?"(?P<opened>[^"]+)", \S*(?:O_WRONLY|O_RDWR|O_CREAT)'
    r"|(?:mkdir|rename|unlink|link|symlink|creat|truncate|chmod)\w*"
    r'\((?:AT_FDCWD, )?"(?P<named>[^"]+)")'
)
"""A line of strace that tells of a change to a file, and the file it is (the first, of two)."""
THREAD_NAME = re.compile(r"/proc/self/task/\d+/comm")


@pytest.mark.skipif(STRACE is None, reason="strace shows every file that is written")
def test_nothing_outside_of_the_directory_is_written_but_the_log_and_the_pid_file(
    tmp_path: Path,
) -> None:
    calls = tmp_path / "calls"
    files = {"logfile": tmp_path / "log", "pidfile": tmp_path / "pid"}
    traced = "open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,link,linkat"
    server = ServerProcess(
        tmp_path / "data",
        command=[
            *(
                str(STRACE),
                "-D",
                "-f",
                "-qq",
                "-s",
                "999",
                "-o",
                str(calls),
                "-e",
                f"trace={traced}",
            ),
            *(sys.executable, "-B", "-m", "resp_server"),
        ],
        **files,
    )
    server.log_path = tmp_path / "output"
    try:
        server.start()
        write_some(server)
        with server.client() as client:
            client.execute_command("WCDATASET", "COMPACT", "d")
        until(files["pidfile"].exists)
        assert server.stop() == 0
    finally:
        server.close()
    text = calls.read_text(errors="replace")
    written = {found["opened"] or found["named"] for found in WRITING.finditer(text)}
    written = {path for path in written if not THREAD_NAME.fullmatch(path)}
    allowed = {str(path) for path in files.values()} | {"/dev/null", "/dev/tty"}
    inside = {path for path in written if path.startswith(f"{tmp_path}/data")}
    assert len(inside) > 8
    assert set(map(str, files.values())) <= written
    assert written - inside <= allowed


# The check


@pytest.fixture
def stopped(make_server: MakeServer) -> ServerProcess:
    server = make_server()
    write_some(server)
    assert server.stop() == 0
    return server


def test_a_whole_store_passes_the_check(stopped: ServerProcess) -> None:
    before = contents(stopped.directory)
    ended = run_server("--check", stopped.directory)
    assert ended.stderr == ""
    assert ended.returncode == 0
    assert ended.stdout == "dataset d: 100 cells, 11890 bytes\n1 datasets, 0 problems\n"
    assert contents(stopped.directory) == before


def test_a_damaged_store_fails_the_check_and_the_server_tells_of_it(
    stopped: ServerProcess,
) -> None:
    with stopped.start().client() as client:
        client.execute_command("WCPUT", "other", "r", 1, "c", "kept")
    stopped.stop()  # what the log held is in files since that start
    stopped.start().stop()
    file = max((stopped.directory / "store").glob("*.sst"), key=lambda path: path.stat().st_size)
    file.unlink()
    ended = run_server("--check", stopped.directory)
    assert ended.returncode == 3
    [line] = [line for line in ended.stdout.splitlines() if line.startswith("DAMAGE: ")]
    assert line.startswith("DAMAGE: dataset d: ")
    assert file.name in line
    with stopped.start().client() as client:
        assert f"damage in the store: {file.name} is damaged" in stopped.log
        with pytest.raises(Exception, match=rf"^IOERR .*{file.name}"):
            client.execute_command("WCGET", "d", "r1")
        _, columns = client.execute_command("WCGET", "other", "r")
        assert columns[0][1][0][1] == b"kept"
        assert client.execute_command("WCPUT", "other", "r", 2, "c", "w") == 1


def test_a_store_in_use_is_not_checked(make_server: MakeServer) -> None:
    server = make_server()
    ended = run_server("--check", server.directory)
    assert ended.returncode == 1
    assert ended.stderr == (
        f"colonnade-server cannot check: {server.directory} is in use by another running server,"
        f" process {server.pid}\n"
    )


def test_what_cannot_be_checked(tmp_path: Path) -> None:
    ended = run_server("--check", tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"colonnade-server cannot check: there is no store in {tmp_path}\n"
    assert run_server("--check").returncode == 2
    assert run_server("--check", tmp_path, tmp_path).returncode == 2


def test_help_tells_the_exit_codes() -> None:
    told = run_server("--help").stdout
    assert "--check /path/to/dir" in told
    assert re.findall(r"^ {7}(\d)  ", told, re.M) == ["0", "1", "2", "3"]
