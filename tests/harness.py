"""A Colonnade server in a process of its own, for tests that speak to it through a socket.

Knows how to start one on loopback, wait until it answers, stop it, kill it and start it again on
the same data. Knows nothing of pytest: conftest.py wraps it in fixtures.

Also the one place where tests poll: `until` and `eventually` wait for what comes in its own time.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import redis

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT_SECONDS = 30.0
PATIENCE_SECONDS = 60.0
"""How long a test waits for what has to come. Only a failure takes as long."""
_PAUSE_SECONDS = 0.001
_QUICK_LOOKS = 100


def came(holds: Callable[[], bool], patience_seconds: float = PATIENCE_SECONDS) -> bool:
    """Whether it comes to be so in this time. Returns as soon as it is."""
    deadline = time.monotonic() + patience_seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_SECONDS)  # leaves the processor to what is waited for
    return True


def until(holds: Callable[[], bool], patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Return as soon as it is so. AssertionError if that does not come."""
    assert came(holds, patience_seconds), "what was waited for did not come"


async def eventually(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    """The same while the loop goes on. TimeoutError if it does not come.

    Looks at every turn at first, because most of what is waited for happens in this very loop.
    """
    async with asyncio.timeout(PATIENCE_SECONDS):
        for look in itertools.count():
            found = holds()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(0 if look < _QUICK_LOOKS else _PAUSE_SECONDS)


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether anybody takes connections on this port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS).close()
    except OSError:
        return False
    return True


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
        if not came(self._answers, START_TIMEOUT_SECONDS):
            raise RuntimeError(f"the server did not answer:\n{self.log}")
        return self

    def _answers(self) -> bool:
        """RuntimeError if it never will, because it has exited."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"the server exited with {self.process.returncode}:\n{self.log}")
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
        return self.wait()

    def wait(self) -> int:
        """Its exit code once it is gone, for whatever reason."""
        assert self.process is not None
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


MakeServer = Callable[..., ServerProcess]
"""The fixture make_server: starts a server with these directives."""
