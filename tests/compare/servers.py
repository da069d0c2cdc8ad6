"""The servers that are compared: a redis-server of our own beside Colonnade, both on loopback.

`Side` is one of them with a connection that brings it back to how it was at its start, between two
conversations. Knows nothing of what is said in between.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

from tests.compare.wire import END, Reply, Wire
from tests.harness import ServerProcess, came, free_port

PATIENCE_SECONDS = 10.0
START_SECONDS = 30.0
PASSWORD = b"secret"
"""The one password that conversations leave the default user with."""


def redis_is_installed() -> bool:
    """Whether there is a redis-server of the version whose replies are Colonnade's model."""
    if shutil.which("redis-server") is None:
        return False
    told = subprocess.run(["redis-server", "--version"], capture_output=True, check=True)
    return b" v=7.0." in told.stdout


class RedisProcess:
    """A redis-server that keeps nothing; `file` is its configuration file, if it has one."""

    def __init__(
        self, directory: Path, directives: dict[str, str], file: Path | None = None
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._words = [str(file)] if file else []
        self._words += ["--port", str(self.port), "--dir", str(directory), "--save", ""]
        for name, value in directives.items():
            self._words += [f"--{name}", *value.split(" ")]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> RedisProcess:
        self.process = subprocess.Popen(
            ["redis-server", *self._words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        if not came(self._answers, START_SECONDS):
            raise self._failure()
        return self

    def _failure(self) -> RuntimeError:
        return RuntimeError(f"redis-server does not run: {self._words}")

    def _answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise self._failure()
        try:
            with Wire(self.port, PATIENCE_SECONDS) as probe:
                return probe.call("PING") != END
        except OSError:
            return False

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            self.process.wait(timeout=60)


class Side:
    """A running server, and the way back to its first state.

    `complaints` are the errors it answered on that way: there should be none.
    """

    def __init__(self, process: RedisProcess | ServerProcess) -> None:
        self.process = process
        self.port = process.port
        self.is_colonnade = isinstance(process, ServerProcess)
        self.complaints: set[str] = set()
        self._wire = self._connect()
        self._directives = self._configuration()

    def _connect(self) -> Wire:
        wire = Wire(self.port, PATIENCE_SECONDS)
        if wire.call("PING").kind == "error":
            wire.call("AUTH", "default", PASSWORD)
        return wire

    def _connect_again(self) -> None:
        """A conversation may well kill every connection, or end the server."""
        self._wire.close()
        try:
            self._wire = self._connect()
        except ConnectionRefusedError:
            assert self.process.process is not None
            self.process.process.wait(timeout=START_SECONDS)
            self.process.start()
            self._wire = self._connect()

    def call(self, *words: bytes | str) -> Reply:
        reply = self._wire.call(*words)
        if reply == END:
            self._connect_again()
            reply = self._wire.call(*words)
        if reply.kind in ("error", "silence"):
            shown = b" ".join(_bytes(word) for word in words).decode("latin-1")
            self.complaints.add(f"{shown}: {reply}")
        return reply

    def _configuration(self) -> dict[bytes, bytes]:
        return {name.text: value.text for name, value in self.call("CONFIG", "GET", "*").pairs}

    def restore(self) -> None:
        """As it was at the start: nobody else connected, no data, users, statistics, settings."""
        self.call("ACL", "SETUSER", "default", "reset", "on", "nopass", "~*", "&*", "+@all")
        self.call("CLIENT", "UNPAUSE")
        self._wait_for_solitude()
        for user in self.call("ACL", "USERS").elements:
            if user.text != b"default":
                self.call("ACL", "DELUSER", user.text)
        now = self._configuration()
        for name, value in self._directives.items():
            if now.get(name) != value:
                self.call("CONFIG", "SET", name, value)
        for line in ("FLUSHALL", "CONFIG RESETSTAT", "SLOWLOG RESET", "LATENCY RESET"):
            self.call(*line.split())
        self.call("ACL", "LOG", "RESET")

    def _wait_for_solitude(self) -> None:
        def is_alone() -> bool:
            return self.call("CLIENT", "LIST").text.count(b"\n") <= 1

        if not came(is_alone, PATIENCE_SECONDS):
            self.complaints.add("connections that were closed are still listed")

    def close(self) -> None:
        self._wire.close()
        self.process.close()


def _bytes(word: bytes | str) -> bytes:
    return word if isinstance(word, bytes) else word.encode()
