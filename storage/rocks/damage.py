"""What is known to be damaged in a database, and which of RocksDB's checks to do without for it.

Told by the errors of RocksDB and by its LOG. Knows nothing of how a database is opened.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from storage.rocks.translation import plain

log = logging.getLogger(__name__)

_TABLE_FILE = re.compile(r"\d{6,}\.sst")
_DROPPED_LOG = re.compile(r"(\d{6,}\.log): dropping (\d+) bytes; Corruption: (.+)")
_TORN = "truncated"
"""How RocksDB begins the reason when a log ends within a record, as after every crash."""


class Damage:
    """Of one database. It grows as damage is met."""

    def __init__(self, path: Path, *, strict: bool) -> None:
        self.problems: list[str] = []
        """A line each, naming the file."""
        self.degraded = False
        """Whether a table file is damaged, and the database to be opened in spite of it."""
        self.strict = strict
        """Whether the opening fails if the log is not whole: then RocksDB writes no LOG to tell."""
        self._path = path

    def allows_another_try(self, error: Exception) -> bool:
        """Whether opening may succeed now that a check is left out, which has told its news."""
        if not self.degraded and self.met(error):
            return True
        text = plain(error)
        if not self.strict or not text.startswith("Corruption: "):
            return False
        self.strict = False
        reason = text.removeprefix("Corruption: ")
        if not reason.startswith(_TORN):
            logs = [file.name for file in self._path.glob("*.log")]
            self._note(f"{logs[0] if len(logs) == 1 else 'log'} is damaged: {reason}")
        return True

    def met(self, error: Exception) -> bool:
        """Be degraded from the next opening on, if the error is about a table file."""
        text = plain(error)
        file = _TABLE_FILE.search(text)
        if file is None:
            return False
        self.degraded = True
        self._note(f"{file[0]} is damaged: {text}")
        return True

    def note_lost_log(self) -> None:
        """RocksDB takes its log up to the first damage, and says no more of it than in its LOG."""
        try:
            told = (self._path / "LOG").read_text(errors="replace")
        except OSError:
            return
        for file, dropped, reason in _DROPPED_LOG.findall(told):
            if reason.startswith(_TORN):
                log.info("the last %s bytes of %s, a write cut short, were left out", dropped, file)
                continue
            self._note(
                f"{file} is damaged: {reason} in {dropped} bytes of the log; writes that were in"
                " them, or came after them, are lost"
            )

    def _note(self, problem: str) -> None:
        file = problem.partition(" ")[0]
        if any(known.startswith(f"{file} ") for known in self.problems):
            return
        self.problems.append(problem)
        log.warning("damage in the store: %s", problem)
