"""What the server counts from its start or the last reset, and how fast some of it grows.

A rate is the average of the last 16 samples, one each tenth of a second, as Redis has it: what INFO
calls instantaneous. Knows no clock: whoever samples says what time it is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from resp_server import process
from storage.distribution import Distribution

SAMPLES = 16
SAMPLE_SECONDS = 0.1
"""How often Sampler.sample() is to be called."""
LAG_BOUNDS_SECONDS = (0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


@dataclass(slots=True)
class Counters:
    """Plain numbers; those who see something happen count it."""

    connections_received: int = 0
    connections_rejected: int = 0
    commands_processed: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    reads: int = 0
    """How often something came from a client."""
    writes: int = 0
    """How often something was handed to the system for a client."""
    loop_lag: Distribution = field(default_factory=lambda: Distribution(LAG_BOUNDS_SECONDS))
    """How much later than asked for the loop got to its housekeeping, in seconds."""
    started: float = field(default_factory=time.monotonic)

    def reset(self) -> None:
        """As CONFIG RESETSTAT does; the process goes on, and so does what is wrong."""
        self.connections_received = self.connections_rejected = self.commands_processed = 0
        self.input_bytes = self.output_bytes = self.reads = self.writes = 0


class Rate:
    """How much a counter grows in a second."""

    __slots__ = ("_index", "_last", "_samples")

    def __init__(self) -> None:
        self._samples = [0.0] * SAMPLES
        self._index = 0
        self._last = 0

    def sample(self, reading: int, seconds: float) -> None:
        """The counter's value, so many seconds after the sample before."""
        grown = reading - self._last
        self._samples[self._index] = grown / seconds if seconds > 0 and grown > 0 else 0.0
        self._index = (self._index + 1) % SAMPLES
        self._last = reading

    @property
    def per_second(self) -> float:
        return sum(self._samples) / SAMPLES


class Sampler:
    """Rates of the counters, and the most memory that was seen in use."""

    def __init__(self, counters: Counters, now: float) -> None:
        """`now` as for sample()."""
        self._counters = counters
        self._sampled = now
        self.reset()
        self.startup_bytes = self.peak_bytes = process.memory().own

    def sample(self, now: float) -> None:
        """Look at everything; `now` in seconds of a clock that never goes back."""
        seconds, self._sampled = now - self._sampled, now
        counters = self._counters
        self.commands.sample(counters.commands_processed, seconds)
        self.input_bytes.sample(counters.input_bytes, seconds)
        self.output_bytes.sample(counters.output_bytes, seconds)
        self.see(process.memory().own)

    def see(self, used_bytes: int) -> None:
        """So much memory is in use now."""
        self.peak_bytes = max(self.peak_bytes, used_bytes)

    def reset(self) -> None:
        """Forget the rates, after the counters were set back."""
        self.commands, self.input_bytes, self.output_bytes = Rate(), Rate(), Rate()
