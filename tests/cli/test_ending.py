"""How commands of the command line end: interrupted in their midst, or for want of a library."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resp_server import cli
from tests.harness import ROOT, ServerProcess

PATIENCE_SECONDS = 30.0
Command = subprocess.Popen[str]
Begin = Callable[..., Command]


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A port of 127.0.0.1 behind which nobody ever says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_SECONDS)
        yield listener


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begins `colonnade` with these words; no such process is left when the test ends."""
    begun: list[Command] = []

    def begin_one(*words: object) -> Command:
        process = subprocess.Popen(
            [sys.executable, "-m", "resp_server.cli", *map(str, words)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield begin_one
    for process in begun:
        process.kill()
        process.communicate()


def interrupted(process: Command) -> str:
    """What it says of its interruption, once it has ended as it should."""
    _, told = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    return told


@pytest.mark.parametrize(
    ("words", "number", "told"),
    [
        ("backup {place} --server {silent}", signal.SIGTERM, ", the next backup uses"),
        ("backups http://{silent}/", signal.SIGTERM, ""),
        ("verify http://{silent}/", signal.SIGINT, ""),
        ("restore http://{silent}/ {place}", signal.SIGTERM, ", nothing is there that"),
        ("prune http://{silent}/ --keep 1", signal.SIGINT, ""),
        ("export d {place} --server {silent}", signal.SIGINT, ", nothing is exported"),
        ("import d {file} --server {silent}", signal.SIGTERM, ", it can be run again"),
    ],
)
def test_an_interruption_is_one_line_and_an_exit_code(
    silent: socket.socket,
    begin: Begin,
    tmp_path: Path,
    words: str,
    number: signal.Signals,
    told: str,
) -> None:
    file = tmp_path / "events.csv"
    file.write_text("row,column,timestamp,value\nr,c,1,v\n")
    address = "{}:{}".format(*silent.getsockname())
    given = words.format(place=tmp_path / "place", silent=address, file=file).split()
    process = begin(*given)
    connection, _ = silent.accept()
    with connection:
        connection.settimeout(PATIENCE_SECONDS)
        assert connection.recv(1), "it waits for an answer from now on"
        process.send_signal(number)
        (line,) = interrupted(process).splitlines()
    assert line.startswith(f"colonnade {given[0]}: interrupted{told}")


@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]])
def test_an_export_that_is_interrupted_leaves_nothing_anywhere(
    server: ServerProcess,
    begin: Begin,
    tmp_path: Path,
    dataset: str,
    numbers: list[signal.Signals],
) -> None:
    """`timeout` sends SIGTERM twice: to its child, and to all processes of its group."""
    with server.client() as client:
        client.execute_command("WCPUT", dataset, "r", 1, "c", os.urandom(1_000_000))
    pipe = tmp_path / f".{dataset}-00000.parquet.partial"
    os.mkfifo(pipe)  # it holds 64 kB: there the export stands still
    process = begin("export", dataset, tmp_path, "--server", f"127.0.0.1:{server.port}")
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:  # noqa: PTH123 - a number
        assert select.select([reader], [], [], PATIENCE_SECONDS)[0], "it has begun to write"
        os.set_blocking(reader.fileno(), True)
        assert list((server.directory / "checkpoints").iterdir()) != []
        process.send_signal(numbers[0])
        reader.read()
    for again in numbers[1:]:
        process.send_signal(again)
    assert interrupted(process) == "colonnade export: interrupted, nothing is exported\n"
    assert list(tmp_path.iterdir()) == []
    assert list((server.directory / "checkpoints").iterdir()) == []


def test_a_missing_library_is_named_with_what_to_install(tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    file.touch()
    for words in (["export", "d", str(tmp_path)], ["import", "d", str(file)]):
        without = "import sys; sys.modules['pyarrow'] = None; from resp_server.cli import main; "
        ended = subprocess.run(
            [sys.executable, "-c", f"{without} sys.exit(main({words}))"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        needed = "pyarrow is missing: pip install 'colonnade[export]'"
        assert (ended.returncode, ended.stderr) == (1, f"colonnade {words[0]}: {needed}\n")


def test_the_extras_install_what_is_said_of_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for library, extra in cli._EXTRAS.items():
        installed = project["optional-dependencies"][extra]
        assert any(line.startswith(library) for line in installed)
