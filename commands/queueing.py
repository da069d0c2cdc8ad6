"""The commands a client queues between MULTI and EXEC."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Transaction:
    """Commands in order, each resolved and allowed when it was queued."""

    queued: list[list[bytes]] = field(default_factory=list)
    writes: bool = False
    """Whether one of them may change data."""
    failed: bool = False
    """Whether a command was refused at queueing, so that EXEC runs nothing."""
    queued_bytes: int = 0

    def add(self, words: list[bytes], *, writes: bool) -> None:
        """Queue a command, unless EXEC will run none of them anyway."""
        if self.failed:
            return
        self.queued.append(words)
        self.queued_bytes += sum(map(len, words))
        self.writes |= writes
