"""What became of an engine's groups of writes, counted since it was opened.

The engine counts once a group, never once a write. Knows nothing of what is in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.distribution import Distribution

OPERATION_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16_384)
SECONDS_BOUNDS = (
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5,
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5,
)  # fmt: skip


@dataclass(slots=True)
class Commits:
    """Groups that are in the log, and those that are not."""

    operations: Distribution = field(default_factory=lambda: Distribution(OPERATION_BOUNDS))
    """Puts and deletes in a group that reached the log."""
    seconds: Distribution = field(default_factory=lambda: Distribution(SECONDS_BOUNDS))
    """How long the store took for it."""
    stalls: int = 0
    """How often the store put a group off."""
    failures: int = 0
    """Groups whose outcome is unknown; a sync of the log that failed is one too."""
    failed_in_a_row: int = 0
    """Those since the last group that reached the log."""
    last_failure: str = ""
    """Why the last of these failed; empty if there is none."""

    def note(self, operations: int, seconds: float) -> None:
        """A group reached the log."""
        self.operations.note(operations)
        self.seconds.note(seconds)
        self.failed_in_a_row = 0
        self.last_failure = ""

    def note_failure(self, text: str) -> None:
        self.failures += 1
        self.failed_in_a_row += 1
        self.last_failure = text
