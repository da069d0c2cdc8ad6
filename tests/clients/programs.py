"""Clients in other languages: programs that speak to a server and say how it went.

A program finds in its environment
    PORT            an open server of 127.0.0.1, in clear text
    TLS_PORT        the same one over TLS, whose authority is in the file CA_FILE
    GUARDED_PORT    a server that wants PASSWORD
    DATASET         what its datasets and channels begin with
and prints a line for each scenario: `ok NAME` or `failed NAME: why`. The line `restart` asks for a
restart of the open server; the program goes on when it is given a line on its standard input.

npm, go and Maven fetch the libraries, in the versions that package-lock.json, go.sum and pom.xml
name, into a directory that is kept until one of the sources changes. Knows nothing of pytest.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
INSTALLED = HERE / ".installed"
INSTALL_TIMEOUT_SECONDS = 300.0
RUN_TIMEOUT_SECONDS = 90.0

SCENARIOS = (
    "default",
    "password",
    "tls",
    "binary-resp2",
    "binary-resp3",
    "pipeline-resp2",
    "pipeline-resp3",
    "transaction-resp2",
    "transaction-resp3",
    "subscribe-resp2",
    "subscribe-resp3",
    "reconnect",
)


class MissingToolchain(Exception):
    """A program this needs is not on the PATH."""


class NotInstalled(Exception):
    """The toolchain is there and could not fetch or build what it was asked for."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """How the programs of one directory are made ready.

    `steps` are commands, run in the directory of the sources or in a copy of it.
    """

    name: str
    programs: tuple[str, ...]
    steps: Callable[[Path], Sequence[Sequence[str]]]
    copied: bool = False

    @property
    def source(self) -> Path:
        return HERE / self.name

    @property
    def directory(self) -> Path:
        return INSTALLED / self.name

    def install(self) -> None:
        """Make the programs ready, unless they are. MissingToolchain, NotInstalled."""
        for program in self.programs:
            if shutil.which(program) is None:
                raise MissingToolchain(f"{program} is not on the PATH")
        stamp = self.directory / "stamp"
        digest = self.digest()
        if stamp.exists() and stamp.read_text() == digest:
            return
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        if self.copied:
            shutil.copytree(self.source, self.directory, dirs_exist_ok=True)
        for step in self.steps(self.directory):
            self.run(step)
        stamp.write_text(digest)

    def digest(self) -> str:
        """Changes with any source, and with any list of versions."""
        every = hashlib.sha256()
        for path in sorted(filter(Path.is_file, self.source.iterdir())):
            every.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
        return every.hexdigest()

    def run(self, step: Sequence[str]) -> None:
        try:
            done = subprocess.run(
                step,
                cwd=self.directory if self.copied else self.source,
                # A Go that is too old shall say so, and not fetch another one.
                env={**os.environ, "GOTOOLCHAIN": "local"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=INSTALL_TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise NotInstalled(f"{step[0]} took too long") from error
        if done.returncode != 0:
            raise NotInstalled(f"{step[0]} failed with {done.returncode}: {done.stdout[-1000:]}")


def node_steps(_: Path) -> Sequence[Sequence[str]]:
    return [("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")]


def go_steps(directory: Path) -> Sequence[Sequence[str]]:
    return [("go", "build", "-o", str(directory / "go-redis"), ".")]


def java_steps(directory: Path) -> Sequence[Sequence[str]]:
    libraries = directory / "libraries"
    sources = sorted(path.name for path in (HERE / "java").glob("*.java"))
    fetch = ("mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libraries}")
    compiled = ("javac", "-cp", f"{libraries}/*", "-d", str(directory / "classes"), *sources)
    return [fetch, compiled]


NODE = Toolchain("node", ("node", "npm"), node_steps, copied=True)
GO = Toolchain("go", ("go",), go_steps)
JAVA = Toolchain("java", ("java", "javac", "mvn"), java_steps)


@dataclass(frozen=True, slots=True)
class Program:
    """A client library's program, and the command that runs it in the toolchain's directory."""

    toolchain: Toolchain
    command: tuple[str, ...]


def java_program(name: str) -> Program:
    return Program(JAVA, ("java", "-cp", f"libraries/*{os.pathsep}classes", name))


PROGRAMS: Mapping[str, Program] = {
    "ioredis": Program(NODE, ("node", "ioredis.mjs")),
    "node-redis": Program(NODE, ("node", "node_redis.mjs")),
    "go-redis": Program(GO, ("./go-redis",)),
    "jedis": java_program("JedisProgram"),
    "lettuce": java_program("LettuceProgram"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program printed: a message for each scenario it came to, None where it was ok."""

    messages: Mapping[str, str | None]
    errors: str

    def problem(self, scenario: str) -> str | None:
        """None where the scenario was ok."""
        if scenario not in self.messages:
            return f"the program did not come to an end of it; it said: {self.errors}"
        return self.messages[scenario]


def run_program(
    program: Program, environment: Mapping[str, str], restart_server: Callable[[], object]
) -> Outcome:
    """Run an installed program to its end, or for RUN_TIMEOUT_SECONDS."""
    messages: dict[str, str | None] = {}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            program.command,
            cwd=program.toolchain.directory,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
        ) as process,
    ):
        patience = threading.Timer(RUN_TIMEOUT_SECONDS, process.kill)
        patience.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            for line in process.stdout:
                if line == "restart\n":
                    restart_server()
                    with contextlib.suppress(BrokenPipeError):
                        process.stdin.write("restarted\n")
                        process.stdin.flush()
                else:
                    note(line.rstrip("\n"), messages)
        finally:
            patience.cancel()
            process.kill()
        errors.seek(0)
        return Outcome(messages, errors.read()[-2000:])


def note(line: str, messages: dict[str, str | None]) -> None:
    """Lines that are not of a scenario are a library's chatter."""
    word, _, rest = line.partition(" ")
    if word == "ok":
        messages[rest] = None
    elif word == "failed":
        scenario, _, why = rest.partition(": ")
        messages[scenario] = why
