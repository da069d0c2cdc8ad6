"""Rounds of kill -9: writers write, the server dies at a random moment, and is asked what it holds.

A round begins with the server's start, compares all that it holds with what the writers were told
before its last end, and writes until the next one. The moments are chosen so that the server dies
in all that it does: in pipelines, while it saves, compacts, creates and drops, while it ends and
while it starts.
"""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.harness import ROOT, ServerProcess
from tests.soak.fate import Lost
from tests.soak.link import Link
from tests.soak.maker import SHARED
from tests.soak.witness import Witness
from tests.wire import Word, encode

MODES = ("always", "everysec", "no")
WRITERS = 5
LONGEST_SECONDS = 1.0
WITHIN_SECONDS = 0.03
"""The server dies at a random moment of as long after something has begun."""
SAVE: list[tuple[Word, ...]] = [("SAVE",)]
BACKGROUND_SAVE: list[tuple[Word, ...]] = [("BGSAVE",)]
COMPACT: list[tuple[Word, ...]] = [("WCDATASET", "COMPACT", name) for name in SHARED]
DROP_AND_CREATE: list[tuple[Word, ...]] = [
    ("WCDATASET", "DROP", "beside", "IFEXISTS"),
    ("WCPUT", "beside", "r", "*", "c", "v"),
    ("WCDATASET", "CREATE", "beside", "IFNOTEXISTS"),
] * 5
BESIDE = {
    "while it saved": SAVE,
    "while it saved in the background": BACKGROUND_SAVE,
    "while it compacted": COMPACT,
    "while it dropped and created": DROP_AND_CREATE,
}
"""What another client sends; the server dies in the middle of it."""
IN_PIPELINES, AT_A_TIME, ENDING = "after some answers", "at some time", "while it ended"
MOMENTS = [IN_PIPELINES, IN_PIPELINES, AT_A_TIME, *BESIDE, ENDING]
STARTING_SHARE = 0.2
"""In how many rounds the next start is killed too."""


class CrashTest:
    """One data directory and those who wrote into it."""

    def __init__(self, directory: Path, mode: str, seed: int, *, most_calls: int = 4_000) -> None:
        """`mode` is that of appendfsync; `most_calls` how many are answered in a round at most."""
        self._random = random.Random(seed)
        # Small buffers, so that files are written and compacted during a short test.
        self._server = ServerProcess(directory, appendfsync=mode, rocksdb_write_buffer_size="1mb")
        self._most_calls = most_calls
        self.witness = Witness(seed, WRITERS)
        self.moments: Counter[str] = Counter()

    @property
    def answered(self) -> int:
        return self.witness.progress.answered

    def run(self, rounds: int, tell: Callable[[str], None] = lambda _line: None) -> None:
        """Lost, Wrong or RuntimeError with what is wrong; the directory stays as it is then."""
        try:
            for number in range(1, rounds + 1):
                started, before = time.monotonic(), self.answered
                moment = asyncio.run(self._round())
                self.moments[moment] += 1
                calls, seconds = self.answered - before, time.monotonic() - started
                tell(f"round {number}: {calls} calls answered, killed {moment}, {seconds:.1f} s")
            self._server.start()
            asyncio.run(self._begin())
            if self._server.stop() != 0:
                raise Lost(f"the last end was not clean:\n{self._server.log[-3000:]}")
            code, printed = self._server.check()
            if code != 0:
                raise Lost(f"--check: exit code {code}\n{printed[-3000:]}")
        finally:
            self._server.close()

    async def _round(self) -> str:
        """From one start of the server to its death; what it died in."""
        self._server.start()
        await self._begin()
        writing = [
            asyncio.create_task(writer.run(self._server.port)) for writer in self.witness.writers
        ]
        moment = self._random.choice(MOMENTS)
        try:
            await self._await(moment, writing)
        finally:
            self._server.kill()
        await asyncio.gather(*writing)
        if self._random.random() < STARTING_SHARE:
            await self._kill_at_start()
            moment += " and while it started"
        return moment

    async def _begin(self) -> None:
        await self.witness.begin(self._server.port)
        if "Traceback" in self._server.log:
            raise Lost(f"a traceback in the log:\n{self._server.log[-5000:]}")

    # Before an end

    async def _await(self, moment: str, writing: list[asyncio.Task[None]]) -> None:
        """Return when it is time to kill the server. What a writer raises comes out of here."""
        if moment == AT_A_TIME:
            await self._pass(self._random.uniform(0, LONGEST_SECONDS), writing)
            return
        most = self._most_calls if moment == IN_PIPELINES else self._most_calls // 4
        answers = self.answered + self._random.randrange(1, most)
        await self._await_answers(answers, kill=moment == IN_PIPELINES, writing=writing)
        if moment in BESIDE:
            beside = await Link.open(self._server.port)
            beside.send(b"".join(encode(*words) for words in BESIDE[moment]))
            await self._pass(self._random.uniform(0, WITHIN_SECONDS), writing)
            beside.abort()
        elif moment == ENDING:
            assert self._server.process is not None
            self._server.process.send_signal(signal.SIGTERM)
            await self._pass(self._random.uniform(0, WITHIN_SECONDS), writing)

    async def _await_answers(
        self, answers: int, *, kill: bool, writing: list[asyncio.Task[None]]
    ) -> None:
        """Return when so many calls have been answered; `kill` the server in that very moment."""
        process, reached = self._server.process, asyncio.Event()
        assert process is not None

        def then() -> None:
            # Not a moment later: an answer that came too early would be made true meanwhile.
            if kill:
                process.kill()
            reached.set()

        self.witness.progress.call_at(answers, then)
        await self._pass(None, [asyncio.create_task(reached.wait()), *writing])

    async def _pass(self, seconds: float | None, tasks: Sequence[asyncio.Task[Any]]) -> None:
        """Let the writers write for so long, or until the first of these tasks has ended."""
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def _kill_at_start(self) -> None:
        """Start the server and kill it while it opens its store, which begins with a new LOG."""
        log = self._server.directory / "store" / "LOG"
        before = number_of(log)
        with self._server.log_path.open("ab") as output:
            process = subprocess.Popen(
                [*self._server.command, *self._server.arguments()],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            while process.poll() is None and number_of(log) in (None, before):
                await asyncio.sleep(0)
            await asyncio.sleep(self._random.uniform(0, WITHIN_SECONDS))
        finally:
            process.kill()
            process.wait()


def number_of(file: Path) -> int | None:
    """The file's number in its file system; None without a file."""
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None
