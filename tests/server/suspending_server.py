"""The server with commands that wait, for test_handover.py: with the embedded engine none does.

Where a command takes `turns`, it waits so often for something that comes with the loop's next turn,
or, for 0, for nothing in particular. `held`: until it is released, by TESTRELEASE on another
connection, or by SIGUSR1 for when no connection is read any more.

TESTWAIT turns value    waits, then answers the value; tells the log when it ends, however
TESTRELEASE             lets all that are held go on; answers how many
TESTWAITING             how many wait, in all of these
TESTFAIL turns          waits, then raises what nobody expects
TESTREFUSE turns        waits, then raises an error of the commands
TESTPUT turns dataset row column value    waits, then writes a cell: a write that waited
TESTTIMEOUT ms          asyncio.timeout around an endless wait, after a trip through the loop
"""

from __future__ import annotations

import asyncio
import logging
import signal
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
_held: set[asyncio.Event] = set()
_waiting = 0


async def _pause(context: Context, turns: bytes) -> None:
    global _waiting
    _waiting += 1
    context.client.blocked = True
    try:
        if turns == b"held":
            await _hold()
        elif turns == b"0":
            await asyncio.sleep(0)
        else:
            for _ in range(int(turns)):
                await _turn()
    finally:
        context.client.blocked = False
        _waiting -= 1


async def _turn() -> None:
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()


async def _hold() -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _release)
    released = asyncio.Event()
    _held.add(released)
    try:
        await released.wait()
    finally:
        _held.discard(released)


def _release() -> int:
    """How many were held."""
    held = list(_held)
    for released in held:
        released.set()
    _held.clear()
    return len(held)


@command(
    "TESTWAIT",
    arity=3,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="turns value",
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
    "TESTRELEASE",
    arity=1,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(N)",
)
async def testrelease(_context: Context, _words: list[bytes]) -> Reply:
    """Lets those who are held go on."""
    return _release()


@command(
    "TESTWAITING", arity=1, flags="readonly", group="generic", since="0.0.0", complexity="O(1)"
)
async def testwaiting(_context: Context, _words: list[bytes]) -> Reply:
    """Counts those who wait."""
    return _waiting


@command(
    "TESTFAIL",
    arity=2,
    flags="readonly",
    group="generic",
    since="0.0.0",
    complexity="O(1)",
    syntax="turns",
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
    syntax="turns",
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
    syntax="turns dataset row column value",
)
async def testput(context: Context, words: list[bytes]) -> Reply:
    """Waits and writes."""
    _, turns, dataset, row, column, value = words
    await _pause(context, turns)
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
            await asyncio.Event().wait()
    except TimeoutError:
        return b"timed out"
    return b"came to an end of what has none"


if __name__ == "__main__":
    resp_server.server.STOP_PATIENCE_SECONDS = PATIENCE_SECONDS
    sys.exit(main())
