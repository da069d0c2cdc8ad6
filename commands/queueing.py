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
