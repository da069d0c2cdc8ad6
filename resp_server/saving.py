"""SAVE, BGSAVE and scheduled backups: the log brought to the disk, and a backup made.

A backup begins with a checkpoint, which the loop makes in milliseconds; a process of its own reads
it and copies what is new (storage.backup.worker). One at a time. What a server that was killed has
left is removed by the next one's start.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import shutil
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from commands.errors import SaveInProgress
from resp_server.scheduling import Schedule
from resp_server.settings import Settings
from resp_server.syncing import Syncing
from resp_server.version import VERSION
from storage.backup.failures import BackupFailure
from storage.backup.places import DRAFT
from storage.backup.repository import now_ms
from storage.backup.worker import Job
from storage.children import environment, program
from storage.errors import StoreFailure

log = logging.getLogger(__name__)

BACKUPS_FOLDER = "backups"


class Saved(Protocol):
    """What is needed of an engine."""

    def commit(self) -> StoreFailure | None: ...

    async def make_checkpoint(self, directory: Path) -> float: ...


@dataclass(slots=True)
class LastBackup:
    """How the last backup went. Times are Unix seconds."""

    name: str = ""
    """Of the last that was made."""
    to: str = ""
    time: int = 0
    bytes: int = 0
    sent_bytes: int = 0
    files: int = 0
    sent_files: int = 0
    kept: int = 0
    """How many backups were there when it was made, itself among them."""
    seconds: float = -1
    """How long the last one took, made or not."""
    checkpoint_seconds: float = 0
    """How long the loop stood still for it."""
    error: str = ""
    """Why the last one was not made; empty if it was."""


class Saving:
    """One server's."""

    def __init__(
        self,
        settings: Settings,
        engine: Saved,
        loop: asyncio.AbstractEventLoop,
        syncing: Syncing,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._loop = loop
        self._syncing = syncing
        self._numbers = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self._started = 0.0
        self._in_background = False
        self._ending = False
        self.save_failed = False
        """Whether the last save in the background failed."""
        self.saves = 0
        """How many ended well."""
        self.background_seconds = -1
        """How long the last save in the background took."""
        self.backup = LastBackup()
        self.backups_made = self.backups_failed = 0
        self.progress = (0, 0)
        """Of the backup that is being made: bytes done, and of how many, in the present step."""
        self._last_save = int(time.time())
        self.schedule = Schedule(lambda: settings.backup_cron, self._save_as_scheduled)

    # What it is doing

    @property
    def in_progress(self) -> bool:
        """Whether something is being saved."""
        return self._task is not None

    @property
    def in_background(self) -> bool:
        return self.in_progress and self._in_background

    @property
    def current_seconds(self) -> int:
        """How long the save in the background goes on already; -1: there is none."""
        return int(self._loop.time() - self._started) if self.in_background else -1

    def last_save(self) -> int:
        """When SAVE or BGSAVE last ended well, or the server began: Unix seconds."""
        return self._last_save

    # Doing it

    async def sync(self) -> None:
        """Commit and sync. On a thread, so that others are served meanwhile. StoreFailure."""
        failure = self._engine.commit() or await self._syncing.start()
        if failure is not None:
            raise failure

    async def save(self) -> None:
        """Sync, and make a local backup. StoreFailure if it fails, SaveInProgress if one is."""
        task = self._start(self._local_url(), self._settings.backup_keep, in_background=False)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._ending:
                raise BackupFailure("the server is about to end") from None
            raise

    def save_in_background(self) -> None:
        """The same without waiting for it."""
        self._start(self._local_url(), self._settings.backup_keep, in_background=True)

    async def _save_as_scheduled(self) -> None:
        while self._task is not None:
            await asyncio.wait([self._task])
        settings = self._settings
        if settings.backup_url:
            task = self._start(settings.backup_url, settings.backup_url_keep, in_background=True)
        else:
            task = self._start(self._local_url(), settings.backup_keep, in_background=True)
        await asyncio.wait([task])

    def _local_url(self) -> str:
        """Where local backups go; empty: none are made."""
        if self._settings.wc_engine == "rocksdb" and self._settings.backup_keep:
            return str(self._folder())
        return ""

    def _folder(self) -> Path:
        return Path(self._settings.dir).absolute() / BACKUPS_FOLDER

    def _start(self, url: str, keep: int, *, in_background: bool) -> asyncio.Task[None]:
        if self._task is not None or self._ending:
            raise SaveInProgress
        self._started = self._loop.time()
        self._in_background = in_background
        task = self._task = self._loop.create_task(self._save(url, keep))
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if self._in_background:
            self.save_failed = task.cancelled() or error is not None
            self.background_seconds = int(self._loop.time() - self._started)
        if error is not None:
            log.error("saving failed: %s", error, exc_info=_unexpected(error))
        elif not task.cancelled():
            self.saves += 1
            self._last_save = int(time.time())
        self._task = None

    async def _save(self, url: str, keep: int) -> None:
        await self.sync()
        if not url or self._settings.wc_engine != "rocksdb":
            return
        try:
            await self._back_up(url, keep)
        except BaseException as error:
            self.backups_failed += 1
            self.backup.error = " ".join(str(error).split()) or "interrupted"
            raise
        finally:
            self.backup.seconds = self._loop.time() - self._started
            self.progress = (0, 0)

    async def _back_up(self, url: str, keep: int) -> None:
        draft = self._folder() / f"{DRAFT}{os.getpid()}-{next(self._numbers)}"
        try:
            self.backup.checkpoint_seconds = await self._engine.make_checkpoint(draft)
            await self._copy(draft, url, keep)
        finally:
            await asyncio.to_thread(shutil.rmtree, draft, ignore_errors=True)

    async def _copy(self, draft: Path, url: str, keep: int) -> None:
        source = f"{socket.gethostname()}:{Path(self._settings.dir).absolute()}"
        sharing = url == str(self._folder())
        job = Job(str(draft), url, sharing, keep, VERSION, source, now_ms())
        outcome = await self._run_worker(job)
        if "name" not in outcome:
            raise BackupFailure(outcome.get("error", "the process that makes it has ended"))
        self.backups_made += 1
        last = self.backup
        last.name, last.to, last.time = outcome["name"], outcome["to"], int(time.time())
        last.bytes, last.sent_bytes = outcome["bytes"], outcome["sent_bytes"]
        last.files, last.sent_files = outcome["files"], outcome["sent_files"]
        last.kept = outcome["kept"]
        last.error = outcome.get("error", "")
        log.info(
            "backup %s to %s: %d bytes, %d of them new", last.name, last.to, last.bytes,
            last.sent_bytes,
        )  # fmt: skip

    async def _run_worker(self, job: Job) -> dict[str, Any]:
        """The last things that it told, in one."""
        pipe = asyncio.subprocess.PIPE
        worker = await asyncio.create_subprocess_exec(
            *program("storage.backup.worker"), env=environment(), stdin=pipe, stdout=pipe
        )
        try:
            assert worker.stdin is not None and worker.stdout is not None
            worker.stdin.write(job.line())
            outcome: dict[str, Any] = {}
            async for line in worker.stdout:
                told = json.loads(line)
                if "action" in told:
                    self.progress = (told["done"], told["total"])
                else:
                    outcome |= told
            await worker.wait()
            return outcome
        finally:
            if worker.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    worker.kill()
                await worker.wait()

    # Beginning and ending

    def clean(self) -> None:
        """Remove checkpoints that a server which was killed has left."""
        for draft in self._folder().glob(f"{DRAFT}*"):
            shutil.rmtree(draft, ignore_errors=True)

    async def stop(self) -> None:
        """Give up what is being made, and take on no more."""
        self._ending = True
        task = self._task
        if task is not None:
            log.info("giving up the backup that is being made")
            task.cancel()
            await asyncio.wait([task])


def _unexpected(error: BaseException) -> BaseException | None:
    """What the log shows with its traceback."""
    return None if isinstance(error, StoreFailure) else error
