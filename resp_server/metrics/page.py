"""The text of the metrics, in the format that Prometheus reads, made in slices.

A page of thousands of lines takes tens of milliseconds; clients of the database are served in
between. Those who ask while a page is being made get that one. Knows nothing of what is measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from prometheus_client import Metric, generate_latest

SLICE_SECONDS = 0.001
"""When so much time has passed, others get their turn."""
_SAMPLES_AT_ONCE = 64


class Pace:
    """Lets others have their turn, as often as whoever works asks it to."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def rest(self) -> None:
        """Return at once, or after the others' turn if the slice is over."""
        if time.perf_counter() - self._began >= SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = time.perf_counter()


Families = Callable[[Pace], AsyncIterator[Metric]]
"""The metrics, one after the other, with rests in between."""


class MetricsPage:
    """One page, made anew whenever it is asked for."""

    def __init__(self, families: Families) -> None:
        self._families = families
        self._making: asyncio.Task[bytes] | None = None

    async def text(self) -> bytes:
        if self._making is None or self._making.done():
            self._making = asyncio.get_running_loop().create_task(self._make())
        # Whoever goes away in the meantime does not take it from the others.
        return await asyncio.shield(self._making)

    def close(self) -> None:
        if self._making is not None:
            self._making.cancel()

    async def _make(self) -> bytes:
        pace = Pace()
        lines: list[bytes] = []
        async for metric in self._families(pace):
            for piece in _pieces(metric):
                lines.append(piece)
                await pace.rest()
        return b"".join(lines)


def _pieces(metric: Metric) -> Iterator[bytes]:
    """The lines of a metric, some at a time."""
    samples = metric.samples
    for start in range(0, len(samples) or 1, _SAMPLES_AT_ONCE):
        part = Metric(metric.name, metric.documentation, metric.type)
        part.samples = samples[start : start + _SAMPLES_AT_ONCE]
        text = generate_latest(_Only(part))
        yield text.split(b"\n", 2)[2] if start else text  # what it is has been said


class _Only:
    """As much of a registry as is needed to print one metric."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return [self._metric]
