"""A Colonnade server in a process of its own, for tests that speak to it through a socket.

Knows how to start one on loopback, wait until it answers, stop it, kill it and start it again on
the same data. Knows nothing of pytest: conftest.py wraps it in fixtures.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import redis

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT_SECONDS = 30.0


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class ServerProcess:
    """One server: its data directory, its port and the process, if it runs.

    `directives` are configuration directives with `_` for `-`: `wc_page_cells=7`. `command` is the
    program, for tests that start a variation of it.
    """

    def __init__(
        self,
        directory: Path,
        *,
        command: Sequence[str] = (sys.executable, "-m", "resp_server"),
        **directives: object,
    ) -> None:
        self.directory = directory
        self.port = free_port()
        self.command = list(command)
        self.directives = directives
        self.process: subprocess.Popen[bytes] | None = None
        self.log_path = directory.with_name(directory.name + ".log")

    def arguments(self) -> list[str]:
        given = {"port": self.port, "dir": self.directory, **self.directives}
        words: list[str] = []
        for name, value in given.items():
            words += [f"--{name.replace('_', '-')}", *str(value).split(" ")]
        return words

    def start(self) -> ServerProcess:
        """Start the process and return when it answers PING (or an error: it is up)."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, *self.arguments()],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not self._answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"the server exited with {self.process.returncode}:\n{self.log}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server did not answer:\n{self.log}")
        return self

    def _answers(self) -> bool:
        try:
            with self.raw(timeout=START_TIMEOUT_SECONDS) as probe:
                probe.sendall(b"PING\r\n")
                return bool(probe.recv(1))
        except OSError:
            return False

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop; return its exit code once it is gone."""
        assert self.process is not None
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        return self.process.wait(timeout=60)

    def kill(self) -> None:
        """End it as a power cut would: SIGKILL."""
        self.stop(signal.SIGKILL)

    def check(self) -> tuple[int, str]:
        """The exit code of --check over its data, and what it printed. It must have ended."""
        checked = subprocess.run(
            [*self.command, "--check", str(self.directory)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        return checked.returncode, checked.stdout + checked.stderr

    def restart(self) -> ServerProcess:
        self.stop()
        return self.start()

    def raw(self, timeout: float = 20.0) -> socket.socket:
        """A connected TCP socket, for bytes that no client library would send."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def client(self, protocol: int = 3, **options: Any) -> redis.Redis:
        """A stock redis-py client that returns bytes."""
        return redis.Redis(
            host="127.0.0.1", port=self.port, protocol=protocol, socket_timeout=60, **options
        )

    def close(self) -> None:
        """Leave no process behind, whatever the test did."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            self.process.wait(timeout=60)
