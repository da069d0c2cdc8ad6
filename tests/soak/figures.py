"""What a server process holds of its machine, as /proc tells it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.harness import ServerProcess
from tests.wire import resident_bytes

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Holdings:
    """Of one moment."""

    resident_bytes: int
    peak_bytes: int
    threads: int
    descriptors: dict[str, int]
    """By kind: sockets, pipes, files outside of the store. Those of the store come and go."""
    deleted_files: list[str]
    """Files of the store that are open and have no name any more."""

    def __str__(self) -> str:
        count = sum(self.descriptors.values())
        return (
            f"{self.resident_bytes // MEGABYTE} MB (peak {self.peak_bytes // MEGABYTE}), "
            f"{count} descriptors, {self.threads} threads"
        )


def holdings(server: ServerProcess) -> Holdings:
    process = Path(f"/proc/{server.pid}")
    targets = [target_of(link) for link in (process / "fd").iterdir()]
    inside = [target for target in targets if target.startswith(str(server.directory))]
    outside = [target for target in targets if target not in inside]
    return Holdings(
        resident_bytes(server, "VmRSS"),
        resident_bytes(server, "VmHWM"),
        len(list((process / "task").iterdir())),
        dict(Counter(target.partition(":")[0] for target in outside if target)),
        [target for target in inside if target.endswith("(deleted)")],
    )


def target_of(link: Path) -> str:
    """What a descriptor stands for; nothing if it was closed meanwhile."""
    try:
        return os.readlink(link)  # noqa: PTH115 - of a socket it is no path
    except OSError:
        return ""
