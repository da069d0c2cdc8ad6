"""The clients beside the writers: those who listen, meddle, dawdle, come and go, and misbehave.

Each is a coroutine that goes on until `Bout.over`, or until the server is gone. What it may rely on
it checks; the others are there to be in the way. At the end of a bout none of their connections is
left.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import hiredis

from tests.soak.link import Ended, Link, Wrong
from tests.soak.maker import EVERYTHING, SHARED
from tests.wire import Word, encode

WATCHED = b"watched"
"""The dataset in which several count by WATCH and EXEC."""
LAST_MESSAGE = b"last"
FILLING = b"." * 200
BUSY_SAVING = "ERR Background save already in progress"
SETTINGS: dict[str, list[Word]] = {
    "appendfsync": ["always", "everysec", "no"],
    "wc-page-columns": [3, 100],
    "wc-page-rows": [2, 10],
    "wc-page-cells": [7, 10_000],
    "wc-page-bytes": [2_000, "8mb"],
    "wc-page-scan": [50, 50_000],
    "slowlog-log-slower-than": [-1, 0, 10_000],
    "slowlog-max-len": [0, 128],
    "latency-monitor-threshold": [0, 1],
    "latency-tracking": ["yes", "no"],
    "notify-keyspace-events": ["", "KEA"],
    "timeout": [0, 100],
    "maxclients": [1_000, 10_000],
    "loglevel": ["notice", "warning"],
}
QUESTIONS: list[tuple[Word, ...]] = [
    ("INFO", "everything"),
    ("SLOWLOG", "GET", 100),
    ("LATENCY", "LATEST"),
    ("LATENCY", "HISTOGRAM"),
    ("CLIENT", "LIST"),
    ("COMMAND", "DOCS"),
    ("COMMAND",),
    ("MEMORY", "STATS"),
    ("CONFIG", "GET", "*"),
    ("ACL", "LOG"),
    ("WCDATASET", "LIST"),
    ("WCDATASET", "INFO", EVERYTHING),
]
WORKS: list[tuple[Word, ...]] = [
    *[("WCDATASET", "COMPACT", name) for name in SHARED],
    ("BGREWRITEAOF",),
    ("BGSAVE",),
    ("SAVE",),
]
GARBAGE = [
    b"*1000000000\r\n",
    b"*2\r\n$4\r\nECHO\r\n$-5\r\n",
    b"*1\r\n$99999999999\r\n",
    b"\0\1\2\3\r\n\xff\xfe\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"'unbalanced\r\n",
    b"*3\r\n$5\r\nWCGET\r\n$1\r\nd\r\n",
    b"\r\n" * 5_000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
]


@dataclass(slots=True)
class Tally:
    """What the counters have counted, for the next reader of the sum."""

    counted: int = 0
    unanswered: int = 0


@dataclass(slots=True)
class Bout:
    """What the clients of one stretch of load share."""

    port: int
    random: random.Random
    tally: Tally
    done: Counter[str] = field(default_factory=Counter)
    over: bool = False
    killed: bool = False
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    longest_ping_seconds: float = 0.0

    def end(self) -> None:
        self.over = True
        self.ending.set()

    @contextlib.asynccontextmanager
    async def link(self) -> AsyncIterator[Link]:
        async with await Link.open(self.port) as link:
            yield link


# Those who listen


async def publish(bout: Bout) -> None:
    """Numbers its messages, so that who misses one knows."""
    number = 0
    async with bout.link() as link:
        while not bout.over:
            message = b"%d %s" % (number, FILLING)
            link.send(encode("PUBLISH", "news", message) + encode("SPUBLISH", "news", message))
            await link.replies(2)
            number += 1
            bout.done["messages"] += 2
        await link.call("PUBLISH", "news", LAST_MESSAGE)
        await link.call("SPUBLISH", "news", LAST_MESSAGE)


async def listen(bout: Bout, words: tuple[Word, ...]) -> None:
    """Hears every message in order; comes back for the next bout."""
    async with bout.link() as link:
        await link.call(*words)
        expected: int | None = None
        while (message := (await link.reply())[-1]) != LAST_MESSAGE:
            number = int(message.split()[0])
            if expected is not None and number != expected:
                raise Wrong(f"{words!r} heard message {number} and not {expected}")
            expected = number + 1
            bout.done["heard"] += 1


async def monitor(bout: Bout) -> None:
    """Reads what it is shown until the bout is over."""
    async with bout.link() as link:
        assert await link.call("MONITOR") == b"OK"
        ending = asyncio.create_task(bout.ending.wait())
        ending.add_done_callback(lambda _: link.abort())
        with contextlib.suppress(Ended):
            while True:
                await link.reply()
                bout.done["shown"] += 1


# Those who dawdle


async def never_read(bout: Bout, data: bytes) -> None:
    """Asks for much and takes nothing of it."""
    async with bout.link() as link:
        link.stop_reading()
        link.send(data)
        await bout.ending.wait()
        link.abort()


async def one_byte_at_a_time(bout: Bout) -> None:
    """A packet for each byte: the server is seen to have read one before the next comes."""
    async with bout.link() as slow, bout.link() as other:
        number = 0
        while not bout.over:
            word = b"%d" % number
            for byte in encode("ECHO", word):
                slow.send(bytes([byte]))
                await other.call("PING")
            if await slow.reply() != word:
                raise Wrong("a command in single bytes was misunderstood")
            number += 1
            bout.done["slow commands"] += 1


async def ping(bout: Bout) -> None:
    """How long others wait."""
    loop = asyncio.get_running_loop()
    async with bout.link() as link:
        while not bout.over:
            begun = loop.time()
            assert await link.call("PING") == b"PONG"
            bout.longest_ping_seconds = max(bout.longest_ping_seconds, loop.time() - begun)
            bout.done["pings"] += 1


# Those who meddle


async def configure(bout: Bout) -> None:
    async with bout.link() as link:
        while not bout.over:
            name = bout.random.choice(list(SETTINGS))
            value = bout.random.choice(SETTINGS[name])
            await link.must("CONFIG", "SET", name, value)
            await link.must("CONFIG", "GET", name)
            bout.done["settings"] += 1
        # What follows is measured as it was before; the log tells of the server's end.
        await link.must("CONFIG", "SET", "slowlog-max-len", 0, "loglevel", "notice")


async def ask(bout: Bout) -> None:
    async with bout.link() as link:
        while not bout.over:
            await link.must(*bout.random.choice(QUESTIONS))
            bout.done["questions"] += 1


async def work(bout: Bout) -> None:
    async with bout.link() as link:
        while not bout.over:
            words = bout.random.choice(WORKS)
            reply = await link.call(*words)
            if isinstance(reply, hiredis.ReplyError) and str(reply) != BUSY_SAVING:
                raise Wrong(f"{words!r} got {reply}")
            bout.done["works"] += 1


async def create_and_drop(bout: Bout) -> None:
    """Datasets that live for a moment."""
    async with bout.link() as link:
        number = 0
        while not bout.over:
            name = b"moment%d" % (number % 7)
            await link.must("WCDATASET", "CREATE", name, "MAXVERSIONS", 2, "IFNOTEXISTS")
            await link.must("WCMPUT", name, "r", 1, "c", "v", "s", 2, "c", FILLING)
            if await link.must("WCEXISTS", name, "r", "s") != 2:
                raise Wrong(f"{name!r} does not hold what was put into it")
            await link.must("WCDATASET", "DROP", name)
            number += 1
            bout.done["datasets"] += 1


async def count(bout: Bout) -> None:
    """Adds one by WATCH and EXEC: what somebody else changed meanwhile is not overwritten."""
    async with bout.link() as link:
        while not bout.over:
            await link.must("WATCH", WATCHED)
            before = await counted(link)
            await link.must("MULTI")
            await link.must("WCPUT", WATCHED, "r", "*", "c", before + 1)
            bout.tally.unanswered += 1
            result = await link.must("EXEC")
            bout.tally.unanswered -= 1
            bout.tally.counted += result is not None
            bout.done["counted" if result is not None else "outrun"] += 1
            if bout.random.random() < 0.02:
                await link.must("WCDEL", WATCHED, "r", "COLUMNS", 1, "other")


async def counted(link: Link) -> int:
    reply = await link.call("WCGET", WATCHED, "r", "COLUMNS", 1, "c")
    if isinstance(reply, hiredis.ReplyError) or not reply[1]:
        return 0
    return int(reply[1][0][1][0][1])


# Those who come and go


async def churn(bout: Bout) -> None:
    """Connections that end in every way."""
    ends: list[Callable[[Link], Awaitable[Any]]] = [
        lambda link: link.call("QUIT"),
        lambda link: _leave(link, encode("PING") * 50),
        lambda link: _leave(link, encode("WCSCAN", EVERYTHING, "VERSIONS", "ALL") * 5),
        lambda link: _leave(link, b"*3\r\n$5\r\nWCGET\r\n$10\r\nevery"),
        lambda link: _leave(link, encode("SUBSCRIBE", "news", "other") + encode("PSUBSCRIBE", "*")),
        lambda link: _leave(link, encode("MULTI") + encode("PING") * 20),
        lambda link: _leave(link, encode("WATCH", EVERYTHING, "nothing")),
        lambda link: _leave(link, encode("SAVE") + encode("PING")),
    ]
    while not bout.over:
        async with bout.link() as link:
            await link.must("HELLO", bout.random.choice([2, 3]))
            await link.must("CLIENT", "SETNAME", "passing")
            await bout.random.choice(ends)(link)
            if bout.random.random() < 0.5:
                link.abort()
        bout.done["connections"] += 1


async def _leave(link: Link, data: bytes) -> None:
    """Send this and be gone before the answer."""
    link.send(data)


async def misbehave(bout: Bout) -> None:
    """What no client should send. Another connection finds the server well each time."""
    while not bout.over:
        async with bout.link() as link, bout.link() as other:
            link.send(bout.random.choice(GARBAGE))
            link.send(encode("NOSUCHCOMMAND") + encode("WCGET") + encode("WCPUT", "d", "r", "x"))
            assert await other.call("PING") == b"PONG"
            link.abort()
        bout.done["misdeeds"] += 1


def everybody(bout: Bout) -> list[Awaitable[None]]:
    """All of them, for one bout. Listeners come first: they hear everything."""
    return [
        listen(bout, ("SUBSCRIBE", "news")),
        listen(bout, ("PSUBSCRIBE", "n*s")),
        listen(bout, ("SSUBSCRIBE", "news")),
        monitor(bout),
        never_read(bout, encode("MONITOR")),
        never_read(bout, encode("SUBSCRIBE", "news")),
        never_read(bout, encode("WCSCAN", EVERYTHING, "VERSIONS", "ALL", "LIMIT", 1000) * 2_000),
        never_read(bout, encode("COMMAND", "DOCS") * 100),
        one_byte_at_a_time(bout),
        ping(bout),
        configure(bout),
        ask(bout),
        work(bout),
        create_and_drop(bout),
        *(count(bout) for _ in range(3)),
        *(churn(bout) for _ in range(2)),
        misbehave(bout),
        publish(bout),
    ]
