"""The pidfile, and what systemd is told: by a socket of the test's own in its place."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from resp_server.supervision import announced

READY = b"READY=1\nSTATUS=Ready to accept connections"


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(10)
        yield listening


def environment(manager: socket.socket) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.getsockname()}


@pytest.mark.parametrize("supervised", ["systemd", "auto"])
def test_systemd_is_told_the_beginning_and_the_end(manager: socket.socket, supervised: str) -> None:
    with announced("", supervised, environment(manager)):
        assert manager.recv(100) == READY
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(100)
    assert manager.recv(100) == b"STOPPING=1"


def test_an_abstract_socket(tmp_path: Path) -> None:
    name = f"colonnade-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}")
        with announced("", "auto", {"NOTIFY_SOCKET": f"@{name}"}):
            assert manager.recv(100) == READY


def test_nobody_is_told_unless_asked_for(manager: socket.socket) -> None:
    manager.setblocking(False)
    with announced("", "no", environment(manager)), pytest.raises(BlockingIOError):
        manager.recv(100)


def test_what_fails_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with announced("", "auto", {}):
        assert not caplog.text
    with announced("", "systemd", {}):
        assert "no NOTIFY_SOCKET" in caplog.text
    with announced("", "auto", {"NOTIFY_SOCKET": str(tmp_path / "gone")}):
        assert "systemd could not be told READY=1: No such file or directory" in caplog.text
    with announced(str(tmp_path / "no/pid"), "no"):
        assert "cannot write the pidfile" in caplog.text


def test_the_pidfile_is_there_while_the_server_is(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    file.write_text("an old one\n")
    with announced(str(file), "no"):
        assert file.read_text() == f"{os.getpid()}\n"
    assert not file.exists()
