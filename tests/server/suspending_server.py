"""The server with commands that wait, for test_handover.py: with the embedded engine none does.

TESTWAIT ms value       waits, then answers the value; tells the log when it ends, however
TESTHOLD value          waits until another connection sends TESTRELEASE, then answers the value
TESTRELEASE             lets all that hold go on; answers how many
TESTWAITING             how many wait, in all of these
TESTFAIL ms             waits, then raises what nobody expects
TESTREFUSE ms           waits, then raises an error of the commands
TESTPUT ms dataset row column value    waits, then writes a cell: a write that waited
TESTTIMEOUT ms          asyncio.timeout around a longer wait, after a trip through the loop
"""

from __future__ import annotations

import asyncio
import logging
import sys

import resp_server.server
from commands.context import Context
from commands.errors import SyntaxProblem
from commands.replies import Reply
from commands.table import command
from resp_server.__main__ import main

PATIENCE_SECONDS = 1.0
"""How long the server waits for a command at its end, here."""

log = logging.getLogger(__name__)
_held: list[asyncio.Future[None]] = []
_paused: set[object] = set()


async def _pause(context: Context, word: bytes) -> None:
    token = object()
    _paused.add(token)
    context.client.blocked = True
    try:
        await asyncio.sleep(int(word) / 1000)
    finally:
        context.client.blocked = False
        _paused.remove(token)


@command(
    "TESTWAIT",
    arity=3,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="ms value",
)
async def testwait(context: Context, words: list[bytes]) -> Reply:
    """Waits and answers the value."""
    ending = "was cancelled"
    try:
        await _pause(context, words[1])
        ending = "ended"
    finally:
        log.info("TESTWAIT %s %s", words[2].decode(), ending)
    return words[2]


@command(
    "TESTHOLD",
    arity=2,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="value",
)
async def testhold(context: Context, words: list[bytes]) -> Reply:
    """Waits for TESTRELEASE and answers the value."""
    held = asyncio.get_running_loop().create_future()
    _held.append(held)
    context.client.blocked = True
    try:
        await held
    finally:
        context.client.blocked = False
        _held.remove(held)
    return words[1]


@command(
    "TESTRELEASE",
    arity=1,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(N)",
)
async def testrelease(_context: Context, _words: list[bytes]) -> Reply:
    """Lets those who hold go on."""
    waiting = [held for held in _held if not held.done()]
    for held in waiting:
        held.set_result(None)
    return len(waiting)


@command(
    "TESTWAITING", arity=1, flags="readonly", group="generic", since="0.0.0", complexity="O(1)"
)
async def testwaiting(_context: Context, _words: list[bytes]) -> Reply:
    """Counts those who wait."""
    return len(_held) + len(_paused)


@command(
    "TESTFAIL",
    arity=2,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="ms",
)
async def testfail(context: Context, words: list[bytes]) -> Reply:
    """Waits and breaks."""
    await _pause(context, words[1])
    raise RuntimeError("TESTFAIL broke, as it was asked to")


@command(
    "TESTREFUSE",
    arity=2,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="ms",
)
async def testrefuse(context: Context, words: list[bytes]) -> Reply:
    """Waits and refuses."""
    await _pause(context, words[1])
    raise SyntaxProblem


@command(
    "TESTPUT",
    arity=6,
    flags="write",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="ms dataset row column value",
)
async def testput(context: Context, words: list[bytes]) -> Reply:
    """Waits and writes."""
    _, pause, dataset, row, column, value = words
    await _pause(context, pause)
    cells = [(row, None, column, value)]
    await context.store.put(dataset, cells, None, context.settings.create_with)
    return 1


@command(
    "TESTTIMEOUT",
    arity=2,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="ms",
)
async def testtimeout(_context: Context, words: list[bytes]) -> Reply:
    """Waits no longer than it may."""
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(int(words[1]) / 1000):
            await asyncio.sleep(3600)
    except TimeoutError:
        return b"timed out"
    return b"slept for an hour"


if __name__ == "__main__":
    resp_server.server.STOP_PATIENCE_SECONDS = PATIENCE_SECONDS
    sys.exit(main())
