"""What was refused, to whom and how often: the entries of ACL LOG.

Refusals that are alike and follow each other within a minute are one entry with a count.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

GROUPING_SECONDS = 60
MOST_NAME_BYTES = 1024
"""Names are the clients' own: longer ones are cut, so that they do not fill the memory."""
_SEARCHED_ENTRIES = 10
"""How many of the newest entries are looked at for one that is alike."""
_WEIGHTS = {"command": 0, "key": 1, "auth": 2, "channel": 3}


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a command is refused: "command", "key", "channel" or "auth", and the name it failed on.

    `place` is where that name stands among the command's words.
    """

    reason: str
    name: bytes
    place: int = 0

    @property
    def weight(self) -> tuple[int, int]:
        """Of several denials the one of the greatest weight is told: it came nearest to a yes."""
        return _WEIGHTS[self.reason], self.place


@dataclass(slots=True)
class DenialEntry:
    """Like refusals of one user. `client` describes who was refused last, as CLIENT INFO does."""

    denial: Denial
    user: bytes
    in_transaction: bool
    client: bytes
    unix_seconds: float
    """When it happened last."""
    count: int = 1

    def is_like(self, other: DenialEntry) -> bool:
        return (
            self.denial.reason == other.denial.reason
            and self.denial.name == other.denial.name
            and self.user == other.user
            and self.in_transaction == other.in_transaction
            and abs(self.unix_seconds - other.unix_seconds) <= GROUPING_SECONDS
        )


class DenialLog:
    """The newest first, at most `most` entries; that may be changed at any time."""

    def __init__(self, most: int = 128, clock: Callable[[], float] = time.time) -> None:
        self.most = most
        self.entries: deque[DenialEntry] = deque()
        self._clock = clock

    def add(self, denial: Denial, *, user: bytes, in_transaction: bool, client: bytes) -> None:
        """`user` is whom the client was, or for "auth" whom it claimed to be."""
        denial = replace(denial, name=denial.name[:MOST_NAME_BYTES])
        user = user[:MOST_NAME_BYTES]
        new = DenialEntry(denial, user, in_transaction, client, self._clock())
        old = self._alike(new)
        if old is not None:
            self.entries.remove(old)
            new.count = old.count + 1
        self.entries.appendleft(new)
        while len(self.entries) > self.most:
            self.entries.pop()

    def _alike(self, new: DenialEntry) -> DenialEntry | None:
        newest = list(self.entries)[:_SEARCHED_ENTRIES]
        return next((entry for entry in newest if entry.is_like(new)), None)

    def age_seconds(self, entry: DenialEntry) -> float:
        """How long ago it happened last, to the millisecond."""
        return round(self._clock() - entry.unix_seconds, 3)

    def reset(self) -> None:
        self.entries.clear()
