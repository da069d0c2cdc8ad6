"""The process that makes a backup of a checkpoint beside a server: -m storage.backup.worker.

Its standard input is one line, a Job as JSON, and stays open as long as its parent lives: when it
ends, so does this process, at once. Its standard output is a line of JSON for each of
  {"action": text, "done": bytes, "total": bytes}     how far it is
  {"name", "to", "bytes", "sent_bytes", "files", "sent_files", "kept"}
                                                      the end: the backup is made
  {"error": text}                                     the end, or why older ones were not removed
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storage.backup.failures import BackupFailure
from storage.backup.places import LocalPlace, place_at
from storage.backup.repository import Origin, Repository

PROGRESS_SECONDS = 0.5
NICENESS = 5
"""Those who serve clients go first."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done."""

    checkpoint: str
    url: str
    sharing: bool
    """Whether the place is a folder of the data directory, which may share files with it."""
    keep: int
    """How many backups are left there in the end; 0: all."""
    colonnade: str
    source: str
    created_ms: int

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


def main() -> int:
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        return 1  # the server ended before it could say what to do
    job = Job(**json.loads(line))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(NICENESS)
    try:
        _run(job)
    except (BackupFailure, OSError) as error:
        _tell({"error": str(error)})
        return 1
    return 0


def _run(job: Job) -> None:
    place = LocalPlace(Path(job.url), sharing=True) if job.sharing else place_at(job.url)
    repository = Repository(place)
    origin = Origin(job.colonnade, job.source, job.created_ms)
    made = repository.add(Path(job.checkpoint), origin, progress=_told_seldom())
    if job.keep:
        try:
            repository.prune(job.keep, spared=made.manifest.name)
        except BackupFailure as error:  # the new one is there and whole
            _tell({"error": f"older backups cannot be removed: {error}"})
    _tell(
        {
            "name": made.manifest.name,
            "to": repository.place.shown,
            "bytes": made.manifest.total_bytes,
            "sent_bytes": made.sent_bytes,
            "sent_files": made.sent_files,
            "files": len(made.manifest.files),
            "kept": len(repository.names()),
        }
    )


def _told_seldom() -> Any:
    last = 0.0

    def tell(action: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_SECONDS:
            last = now
            _tell({"action": action, "done": done, "total": total})

    return tell


def _tell(fields: dict[str, Any]) -> None:
    try:
        print(json.dumps(fields), flush=True)
    except BrokenPipeError:
        os._exit(1)  # the server has ended: nobody listens, and what is flushed at exit fails again


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
