"""Each server in turn does the same work: Colonnade in its words, the others in Redis's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.load import Call, Load, Measured
from benchmarks.results import Row, Unit
from benchmarks.servers import Family, Product, Server, Variant, running
from benchmarks.sitting import Sitting, in_turn
from benchmarks.workloads import Group, Work

Servers = dict[tuple[str, Variant], Server]
"""By the name of the product."""


def compare(sitting: Sitting, group: Group) -> list[Row]:
    """A row for each work of the group."""
    with ExitStack() as stack:
        servers = _start(sitting, stack, group)
        figures: list[dict[str, list[float]]] = [{} for _ in group.works]
        for number in sitting.rounds:
            for work, found in zip(group.works, figures, strict=True):
                for product in in_turn(_who_does(sitting, work), number):
                    server = servers[product.name, _variant(product, work)]
                    load = _in_round(work.loads[product.family], number)
                    measured = sitting.measure(server, load, work.key, number)
                    found.setdefault(product.name, []).append(_figure(work, measured))
    return [_row(sitting, *pair) for pair in zip(group.works, figures, strict=True)]


def _who_does(sitting: Sitting, work: Work) -> list[Product]:
    """Nobody, if there would be nothing but the baseline."""
    able = [product for product in sitting.products if product.offers(work.variant)]
    return [] if able == [sitting.baseline] else able


def _variant(product: Product, work: Work) -> Variant:
    """Of others only the durable one differs."""
    if product.family is Family.REDIS and work.variant is not Variant.DURABLE:
        return Variant.DEFAULT
    return work.variant


def _start(sitting: Sitting, stack: ExitStack, group: Group) -> Servers:
    """What the works need, with its data, and what is to be in caches there already."""
    servers: Servers = {}
    for work in group.works:
        for product in _who_does(sitting, work):
            key = product.name, _variant(product, work)
            if key not in servers:
                servers[key] = stack.enter_context(running(product, key[1]))
    for server in servers.values():
        if group.fill:
            sitting.fill(server, group.fill[server.product.family], group.fill_count)
    for work in group.works:
        if work.warmed:
            for product in _who_does(sitting, work):
                server = servers[product.name, _variant(product, work)]
                sitting.read_through(server, work.loads[product.family])
    return servers


def _in_round(load: Load, number: int) -> Load:
    """With the number of the round where a word asks for it."""

    def told(call: Call) -> Call:
        words = tuple(tuple(word.format(round=number) for word in each) for each in call.commands)
        return Call(words, call.weight)

    return replace(load, calls=tuple(told(call) for call in load.calls))


_FIGURES: dict[Unit, Callable[[Measured], float]] = {
    Unit.RATE: lambda measured: measured.rate,
    Unit.TIME: lambda measured: measured.p99_us,
}


def _figure(work: Work, measured: Measured) -> float:
    return _FIGURES[work.unit](measured)


def _row(sitting: Sitting, work: Work, figures: dict[str, list[float]]) -> Row:
    """Every server but the baseline is compared with it."""
    row = Row(work.key, work.what, work.against, work.unit, work.target)
    baseline = sitting.baseline
    for product in sitting.products:
        if product is baseline:
            continue
        if product.name not in figures:
            row.remarks.append(f"{product.name} {_why_not(work)}")
            continue
        comparison = row.of(product.name)
        comparison.has_target = product.family is Family.COLONNADE
        comparison.measured = figures[product.name]
        comparison.reference = figures.get(baseline.name, []) if baseline else []
    return row


def _why_not(work: Work) -> str:
    reasons = {Variant.CACHED: "has no row cache", Variant.DURABLE: "cannot be set up like that"}
    return reasons.get(work.variant, "cannot do this")
