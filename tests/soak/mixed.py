"""Every kind of load at once, in bouts, over several lives of the server.

After each bout all clients go, and it is looked whether the server is as it was before: the data is
what the writers were told, no connection, descriptor or thread is left, and memory has not grown. A
life ends with SIGTERM after a bout, or with kill -9 in the middle of one. The first life is the
longest: what leaks little shows there.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tests.harness import ServerProcess
from tests.soak.company import WATCHED, Bout, Tally, counted, everybody
from tests.soak.figures import MEGABYTE, Holdings, holdings
from tests.soak.link import Ended, Link
from tests.soak.witness import Witness
from tests.wire import MEMORY_LIMIT

WRITERS = 6
BOUT_SECONDS = 10.0
REPORT_SECONDS = 5.0
QUIET_SECONDS = 20.0
"""How long after the clients have gone the server may take to let go of what was theirs."""
FIRST_LIFE_SHARE = 0.4
MOST_BOUTS = 3
"""In each of the later lives."""
WARM_BOUTS = 2
"""Memory is compared with what it was after as many: caches and buffers are full then."""
MOST_GROWTH_BYTES = 16 * MEGABYTE
EXECUTOR_THREADS = min(32, (os.cpu_count() or 1) + 4)
"""Python's threads for what would hold the loop up; they come when needed and stay."""
FOUL = re.compile(r"Traceback|internal error|never retrieved|was destroyed but")


class Unsound(AssertionError):
    """The server has kept something, or said something in its log, that it should not have."""


class MixedLoad:
    """One data directory under load."""

    def __init__(self, directory: Path, seed: int, tell: Callable[[str], None]) -> None:
        self._random = random.Random(seed)
        self._tell = tell
        self._server = ServerProcess(
            directory, rocksdb_write_buffer_size="1mb", rocksdb_block_cache_size="8mb"
        )
        # Short pipelines: a writer has to end within moments.
        self._witness = Witness(seed, WRITERS, longest_pipeline=40)
        self._tally = Tally()
        self._done: Counter[str] = Counter()
        self._ends: Counter[str] = Counter()
        self._most_growth = 0
        self._peak = 0
        self._longest_ping = 0.0

    def run(self, seconds: float) -> None:
        """Lost, Wrong, Unsound or RuntimeError with what is wrong; the directory stays then."""
        deadline = time.monotonic() + seconds
        bouts = max(WARM_BOUTS + 1, round(seconds * FIRST_LIFE_SHARE / BOUT_SECONDS))
        try:
            self._live(bouts, killed=False)
            killed = True
            while time.monotonic() < deadline:
                self._live(self._random.randrange(1, MOST_BOUTS + 1), killed=killed)
                killed = not killed
            self._server.start()
            asyncio.run(self._begin())
            self._end()
        finally:
            self._server.close()
        self._summarise()

    def _summarise(self) -> None:
        witness, done = self._witness, sorted(self._done.items())
        self._tell(f"{witness.life} lives: {dict(self._ends)}")
        self._tell(
            f"{witness.progress.answered} calls of writers answered as they must be, none lost; "
            f"{witness.progress.pages} pages as they must be; of {witness.unanswered} unanswered "
            f"calls {witness.survived} happened, none in part"
        )
        self._tell("the others: " + ", ".join(f"{count} {what}" for what, count in done))
        self._tell(
            f"memory: peak {self._peak // MEGABYTE} MB, growth {self._most_growth // MEGABYTE} MB "
            f"at most; the longest PING took {self._longest_ping * 1000:.0f} ms"
        )
        errors = Counter(re.findall(r" ERROR (\w+ \w+)", self._server.log))
        self._tell(f"errors in the log, by their first words: {dict(errors)}")
        self._tell("sound: no data, memory, descriptors or threads lost")

    # A life

    def _live(self, bouts: int, *, killed: bool) -> None:
        self._server.start()
        asyncio.run(self._lead_life(bouts, killed=killed))
        if killed:
            self._ends["kill -9"] += 1
        else:
            self._end()

    def _end(self) -> None:
        code = self._server.stop()
        if code != 0 or not self._server.log.rstrip().endswith("the store is closed, bye"):
            raise Unsound(f"SIGTERM: exit code {code}, the log ends:\n{self._server.log[-3000:]}")
        self._check_log()
        code, printed = self._server.check()
        if code != 0:
            raise Unsound(f"--check: exit code {code}\n{printed[-3000:]}")
        self._ends["SIGTERM"] += 1

    async def _lead_life(self, bouts: int, *, killed: bool) -> None:
        await self._begin()
        at_rest = holdings(self._server)
        warm: Holdings | None = None
        for number in range(1, bouts + 1):
            await self._bout(f"life {self._witness.life}, bout {number}/{bouts}")
            quiet = await self._become_quiet(at_rest)
            self._tell(f"life {self._witness.life}, quiet after bout {number}: {quiet}")
            if number == WARM_BOUTS:
                warm = quiet
            elif warm is not None:
                self._check_memory(warm, quiet)
        if killed:
            await self._bout(f"life {self._witness.life}, to be killed", killed=True)

    async def _begin(self) -> None:
        await self._witness.begin(self._server.port)
        async with await Link.open(self._server.port) as link:
            total = await counted(link)
        tally = self._tally
        if not tally.counted <= total <= tally.counted + tally.unanswered:
            raise Unsound(f"counted to {total}, answered {tally}")
        self._tally = Tally(counted=total)

    # A bout

    async def _bout(self, name: str, *, killed: bool = False) -> None:
        bout = Bout(self._server.port, self._random, self._tally)
        writers = self._witness.writers
        for writer in writers:
            writer.ended = False
        clients = [
            *(asyncio.ensure_future(writer.run(bout.port, walks=True)) for writer in writers),
            *(asyncio.ensure_future(_until_gone(client, bout)) for client in everybody(bout)),
        ]
        length = self._random.uniform(0.2, 1) * BOUT_SECONDS if killed else BOUT_SECONDS
        try:
            await self._wait(name, clients, length)
            if killed:
                bout.killed = True
                self._server.kill()
                self._check_log()
        finally:
            bout.end()
            for writer in writers:
                writer.ended = not killed
        await asyncio.gather(*clients)
        self._done.update(bout.done)
        self._longest_ping = max(self._longest_ping, bout.longest_ping_seconds)

    async def _wait(
        self, name: str, clients: Sequence[asyncio.Future[None]], seconds: float
    ) -> None:
        """Let them all run for so long, telling how they do. What one raises comes out of here."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            before, begun = self._witness.progress.answered, time.monotonic()
            done, _ = await asyncio.wait(
                clients, timeout=min(left, REPORT_SECONDS), return_when=asyncio.FIRST_EXCEPTION
            )
            for client in done:
                client.result()
            now = holdings(self._server)
            self._peak = max(self._peak, now.peak_bytes)
            if self._peak > MEMORY_LIMIT:
                raise Unsound(f"more than {MEMORY_LIMIT // MEGABYTE} MB under load: {now}")
            rate = (self._witness.progress.answered - before) / (time.monotonic() - begun)
            self._tell(f"{name}: {rate:.0f} calls/s of writers, {now}")

    # Looking at it

    async def _become_quiet(self, at_rest: Holdings) -> Holdings:
        """All clients have gone: check the data, and wait until nothing of theirs is left."""
        async with await Link.open(self._server.port) as link:
            await self._wait_until_alone(link)
            await self._witness.compare(link)
            await self._check_counters(link)
        deadline = time.monotonic() + QUIET_SECONDS
        while problems := kept(at_rest, now := holdings(self._server)):
            if time.monotonic() > deadline:
                raise Unsound(f"left after the clients have gone: {problems}; {now}")
            await asyncio.sleep(0.05)
        async with await Link.open(self._server.port) as link:
            await link.call("MEMORY", "PURGE")
        self._check_log()
        return holdings(self._server)

    async def _wait_until_alone(self, link: Link) -> None:
        deadline = time.monotonic() + QUIET_SECONDS
        while (found := await client_figures(link)) != {
            "connected_clients": 1,
            "blocked_clients": 0,
            "pubsub_channels": 0,
            "pubsub_patterns": 0,
            "pubsubshard_channels": 0,
        }:
            if time.monotonic() > deadline:
                listed = await link.call("CLIENT", "LIST")
                raise Unsound(f"after all clients have gone: {found}\n{listed.decode()}")

    async def _check_counters(self, link: Link) -> None:
        total = await counted(link)
        if total != self._tally.counted:
            raise Unsound(f"{WATCHED!r}: counted to {total}, answered {self._tally}")

    def _check_memory(self, warm: Holdings, quiet: Holdings) -> None:
        growth = quiet.resident_bytes - warm.resident_bytes
        self._most_growth = max(self._most_growth, growth)
        if growth > MOST_GROWTH_BYTES:
            raise Unsound(f"memory has grown by {growth // MEGABYTE} MB: {warm}; now {quiet}")

    def _check_log(self) -> None:
        found = FOUL.search(self._server.log)
        if found:
            log = self._server.log[found.start() :]
            raise Unsound(f"the log says {found[0]!r}:\n{log[:4000]}")


async def _until_gone(client: Awaitable[None], bout: Bout) -> None:
    """A server that is gone ends a client of a bout that is over or was to be killed."""
    try:
        await client
    except Ended:
        if not bout.over and not bout.killed:
            raise


async def client_figures(link: Link) -> dict[str, int]:
    text = (await link.call("INFO", "clients", "stats")).decode()
    names = (
        "connected_clients",
        "blocked_clients",
        "pubsub_channels",
        "pubsub_patterns",
        "pubsubshard_channels",
    )
    found = dict(re.findall(r"^(\w+):(\d+)\r$", text, flags=re.MULTILINE))
    return {name: int(found[name]) for name in names}


def kept(at_rest: Holdings, now: Holdings) -> list[str]:
    """What the server holds beyond what it held before anybody came."""
    problems = [
        f"{count} descriptors of kind {kind!r}, {at_rest.descriptors.get(kind, 0)} at rest"
        for kind, count in now.descriptors.items()
        if count > at_rest.descriptors.get(kind, 0)
    ]
    if now.deleted_files:
        problems.append(f"still open: {', '.join(now.deleted_files)}")
    if now.threads > at_rest.threads + EXECUTOR_THREADS:
        problems.append(f"{now.threads} threads, {at_rest.threads} at rest")
    return problems
