"""The server with commands that are broken, for test_exceptions.py: what no command should do.

TESTBREAK word         raises what nobody expects, at once
TESTBREAKLATER word    raises it after a trip through the loop
TESTMISPUT word        a write that has written a cell, and raises then
TESTUNSPEAKABLE        answers with what has no form in the protocol
TESTTASKS              answers how many tasks there are
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from commands.context import Context
from commands.replies import Reply
from commands.table import command
from resp_server.__main__ import main


@command(
    "TESTBREAK",
    arity=2,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="word",
)
async def testbreak(_context: Context, words: list[bytes]) -> Reply:
    """Breaks at once."""
    raise RuntimeError(f"TESTBREAK {words[1].decode()}")


@command(
    "TESTBREAKLATER",
    arity=2,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="word",
)
async def testbreaklater(_context: Context, words: list[bytes]) -> Reply:
    """Breaks as a task."""
    await asyncio.sleep(0)
    raise RuntimeError(f"TESTBREAKLATER {words[1].decode()}")


@command(
    "TESTMISPUT",
    arity=2,
    flags="write",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="word",
)
async def testmisput(context: Context, words: list[bytes]) -> Reply:
    """Writes and breaks."""
    cells = [(b"r", 1, words[1], b"v")]
    await context.store.put(b"misput", cells, None, context.settings.create_with)
    raise KeyError(words[1])


@command(
    "TESTUNSPEAKABLE", arity=1, flags="readonly", group="generic", since="0.0.0", complexity="O(1)"
)
async def testunspeakable(_context: Context, _words: list[bytes]) -> Any:
    """Answers what cannot be said."""
    return object()


@command("TESTTASKS", arity=1, flags="readonly", group="generic", since="0.0.0", complexity="O(1)")
async def testtasks(_context: Context, _words: list[bytes]) -> Reply:
    """Counts the tasks."""
    return len(asyncio.all_tasks())


if __name__ == "__main__":
    sys.exit(main())
