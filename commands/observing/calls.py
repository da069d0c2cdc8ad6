"""How often each command ran, how long it took, and which errors were answered.

Recording a call is part of every command, so it only appends a duration to a list; when the list is
long, or somebody asks, its durations are added up and sorted into the histogram together.
"""

from __future__ import annotations

from collections import Counter

from commands.observing.histogram import Histogram

WAITING_CALLS = 512
"""So many durations are kept before they are sorted in, which then takes some 60 microseconds."""


class Calls:
    """One command's. Times in seconds."""

    __slots__ = ("_count", "_histogram", "_seconds", "failed", "rejected", "tracked", "waiting")

    def __init__(self, *, tracked: bool) -> None:
        self.failed = 0
        """Calls that ran and were answered with an error; they are counted as calls too."""
        self.rejected = 0
        """Calls that were refused before they ran; they are not."""
        self.tracked = tracked
        self.waiting: list[float] = []
        """Durations that are not sorted in yet."""
        self._count = 0
        self._seconds = 0.0
        self._histogram = Histogram()

    @property
    def count(self) -> int:
        return self._count + len(self.waiting)

    @property
    def seconds(self) -> float:
        """All calls together."""
        self.sort_in()
        return self._seconds

    @property
    def histogram(self) -> Histogram:
        """The calls since durations are tracked."""
        self.sort_in()
        return self._histogram

    def sort_in(self) -> None:
        """Add up the durations that wait."""
        durations, self.waiting = self.waiting, []
        seconds = sum(durations)
        self._count += len(durations)
        self._seconds += seconds
        if self.tracked and durations:
            self._histogram.add(durations)
            self._histogram.seconds += seconds


class CallStatistics:
    """All commands' since the start or the last reset."""

    def __init__(self) -> None:
        self.by_command: dict[str, Calls] = {}
        self.errors: Counter[str] = Counter()
        """Errors answered, by their first word."""
        self.percentiles: tuple[float, ...] = (50.0, 99.0, 99.9)
        """Those that INFO shows of each command."""
        self._tracking = True

    @property
    def tracking(self) -> bool:
        """Whether durations are sorted into histograms."""
        return self._tracking

    @tracking.setter
    def tracking(self, tracking: bool) -> None:
        self._tracking = tracking
        for calls in self.by_command.values():
            calls.sort_in()
            calls.tracked = tracking

    def record(self, command: str, seconds: float, count: int = 1) -> None:
        """Count calls that ran and took so long each. The hot path: part of every command."""
        try:
            calls = self.by_command[command]
        except KeyError:
            calls = self.of(command)
        waiting = calls.waiting
        if count == 1:
            waiting.append(seconds)
        else:
            waiting += [seconds] * count
        if len(waiting) >= WAITING_CALLS:
            calls.sort_in()

    def of(self, command: str) -> Calls:
        found = self.by_command.get(command)
        if found is None:
            found = self.by_command[command] = Calls(tracked=self._tracking)
        return found

    def named(self, name: str) -> dict[str, Calls]:
        """Those of a command and, if it is a container, of its subcommands."""
        name = name.lower()
        return {
            command: calls
            for command, calls in self.by_command.items()
            if command == name or command.startswith(f"{name}|")
        }

    def reset(self) -> None:
        self.by_command.clear()
        self.errors.clear()
