"""One run of the benchmark: how much of everything, which servers, and what each load showed.

What counts in the end are ratios of neighbouring measurements. Beside each it is noted how many
processors the server used meanwhile: a server that could have used more was held back by something
else. Knows nothing of what is compared with what.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from benchmarks.lag import Lag
from benchmarks.load import CONNECTIONS, Call, Generators, Load, Measured, Numbers, run, told_as
from benchmarks.servers import Family, Product, Server, wait_until_quiet

CELLS_A_ROW = 100
FILL_CONNECTIONS, FILL_PIPELINE = 16, 4
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything. What performance.md asks for is the default; `calls` is a factor."""

    rounds: int = 3
    rows: int = 100_000
    cells: int = 10_000_000
    calls: float = 1.0

    @property
    def wide_rows(self) -> int:
        """Of CELLS_A_ROW cells each."""
        return max(1, min(self.rows, self.cells // CELLS_A_ROW))

    @property
    def stored_cells(self) -> int:
        """Of a store that is to be large."""
        return self.wide_rows * CELLS_A_ROW

    @property
    def deep_cells(self) -> int:
        """Of one row, or one column, that is large."""
        return max(CELLS_A_ROW, min(1_000_000, self.cells // 10))

    @property
    def wide_columns(self) -> int:
        """Of the row that is read page by page."""
        return max(2 * CELLS_A_ROW, min(100_000, self.cells // 10))

    @property
    def datasets(self) -> int:
        return max(2, min(200, self.cells // 1_000))

    @property
    def idle_connections(self) -> int:
        return max(1, min(5_000, self.cells // 100))

    def count(self, calls: int) -> int:
        """How many of that many calls to make."""
        return max(CONNECTIONS, round(calls * self.calls))


QUICK = Scale(cells=1_000_000, rows=100_000, calls=0.1)


@dataclass(slots=True)
class Sitting:
    """`products` are measured; the first is Colonnade, and ratios are to `baseline`."""

    scale: Scale
    generators: Generators
    products: list[Product]
    baseline: Product | None
    tell: Callable[[str], None]
    runs: list[dict[str, Any]] = field(default_factory=list)
    lag: dict[str, Lag] = field(default_factory=dict)
    """Of each product's loops while they were measured."""

    @property
    def rounds(self) -> range:
        return range(1, self.scale.rounds + 1)

    @property
    def colonnades(self) -> list[Product]:
        return [product for product in self.products if product.family is Family.COLONNADE]

    def fill(self, server: Server, call: Call, count: int) -> None:
        """Make the call with each number below `count`, and wait until that is digested."""
        began = time.monotonic()
        by = (FILL_PIPELINE, FILL_CONNECTIONS, Numbers.SEQUENCE)
        load = Load((call,), count, count, *by)
        with told_as(f"filling {server.name}"):
            run(load, server.host, server.port, self.generators)
        filled = time.monotonic()
        wait_until_quiet(server)
        seconds = f"{filled - began:.1f} s, digested in {time.monotonic() - filled:.1f} s"
        self.tell(f"{server.name}: {count:,} calls of data in {seconds}")

    def read_through(self, server: Server, load: Load) -> None:
        """Make the load's calls once with every number, so that caches have seen them."""
        once = replace(load, count=load.keyspace, numbers=Numbers.SEQUENCE, simple=False)
        with told_as(f"reading all of {server.name}"):
            run(once, server.host, server.port, self.generators)

    def measure(self, server: Server, load: Load, key: str, number: int) -> Measured:
        """Run the load, the round's `number`, and note what there is to note about it."""
        with told_as(f"{key} on {server.name}"), self.noting(server, key, number) as note:
            # Other rows than in the round before, and the same for all servers.
            drawn = replace(load, seed=number)
            measured = run(drawn, server.host, server.port, self.generators)
            note(measured)
        return measured

    @contextmanager
    def noting(self, server: Server, key: str, number: int) -> Iterator[Callable[[Measured], None]]:
        """Look at the server before and after a load, whose figures go to what this yields."""
        lag, used, began = server.lag(), server.processor_seconds(), time.monotonic()
        given: list[Measured] = []
        yield given.append
        seconds, now_used = time.monotonic() - began, server.processor_seconds()
        cores = None if used is None or now_used is None else (now_used - used) / seconds
        late = server.lag()
        late.subtract(lag)
        self._note(server, key, number, given[0], cores, late)

    def _note(
        self,
        server: Server,
        key: str,
        number: int,
        measured: Measured,
        cores: float | None,
        lag: Lag,
    ) -> None:
        self.lag.setdefault(server.product.name, Lag()).update(lag)
        looks = {str(bound): count for bound, count in sorted(lag.items())}
        told = {"key": key, "round": number, "server": server.name, **asdict(measured)}
        self.runs.append({**told, "server_processors": cores, "loop_lag_seconds": looks})
        used = "" if cores is None else f"{cores:5.2f} processors"
        self.tell(
            f"{key:10} round {number}  {server.name:20} {measured.rate / 1000:8.1f} k/s"
            f"  p99 {measured.p99_us:8.0f} us {used}"
        )


def in_turn(things: Sequence[T], number: int) -> Iterable[T]:
    """Who goes first changes from round to round."""
    shift = number % len(things) if things else 0
    return [*things[shift:], *things[:shift]]
