"""redis-cli at a terminal: syntax hints while one types, and help, both made from COMMAND DOCS."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time

import pytest

import commands.families  # noqa: F401 - fills the table
from commands.table import TABLE
from tests.harness import ServerProcess

pytestmark = pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is missing")

PATIENCE_SECONDS = 20.0
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def read_until(terminal: int, wanted: str) -> str:
    """What the terminal shows, once it holds the text."""
    shown = ""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while wanted not in shown:
        assert time.monotonic() < deadline, f"{wanted!r} did not come: {shown[-2000:]!r}"
        if select.select([terminal], [], [], 1.0)[0]:
            shown += _CONTROL.sub("", os.read(terminal, 65536).decode(errors="replace"))
    return shown


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("WCGET ", "dataset row [COLUMNS n column [column ...]] [PREFIX prefix]"),
        (
            "wcput events user:1 ",
            "[EX seconds|PX ms|EXAT unix-s|PXAT unix-ms] timestamp column value",
        ),
        ("WCDATASET CREATE ", "name [MAXVERSIONS n] [TTL seconds] [IFNOTEXISTS]"),
    ],
)
def test_hints_while_typing(server: ServerProcess, typed: str, hint: str) -> None:
    terminal, inside = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
    try:
        program = subprocess.Popen(
            ["redis-cli", "-p", str(server.port)],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "250"},
        )
        try:
            read_until(terminal, f"127.0.0.1:{server.port}> ")
            os.write(terminal, typed.encode())
            read_until(terminal, hint[:30])
        finally:
            program.kill()
            program.wait(timeout=PATIENCE_SECONDS)
    finally:
        os.close(terminal)
        os.close(inside)


@pytest.mark.parametrize("name", ["WCGET", "WCDEL", "WCCAS", "HELLO"])
def test_help_shows_syntax_and_summary(server: ServerProcess, name: str) -> None:
    ran = subprocess.run(
        ["redis-cli", "-p", str(server.port)],
        input=f"help {name}\n",
        capture_output=True,
        text=True,
        check=True,
    )
    shown = _CONTROL.sub("", ran.stdout)
    entry = TABLE.all()[name.lower()]
    assert entry.summary in shown
    # redis-cli leaves out the spaces and brackets around a choice.
    plain = entry.full_syntax.replace(" | ", "|").replace("(", "").replace(")", "")
    assert plain in shown
