"""Measure, and tell what came out: `make bench`, `make bench-quick`.

    python -m benchmarks [--quick] [--only P1,P2,G] [--json FILE] [--write-docs]
    python -m benchmarks --colonnade ../before        another checkout beside this one
    python -m benchmarks --peer 127.0.0.1:6666        another server that has Redis's commands
    python -m benchmarks --from FILE --write-docs     the table of an earlier run

A peer must be empty, and is emptied. Exit codes: 0, also where a target was missed; 1 if something
could not be measured; 2 for a wrong command line; 130 when it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks import direct, growth, peers
from benchmarks.chart import draw
from benchmarks.documents import write_documents
from benchmarks.lag import told
from benchmarks.load import CONNECTIONS, Failure, prepare
from benchmarks.machine import described
from benchmarks.results import Report, Row, as_json, from_json
from benchmarks.servers import Family, Product, examined
from benchmarks.sitting import QUICK, Scale, Sitting
from benchmarks.table import as_text
from benchmarks.workloads import groups

ROOT = Path(__file__).resolve().parent.parent
EXIT_INCOMPLETE, EXIT_INTERRUPTED = 1, 130


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# The command line


def reading() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compare Colonnade with redis-server and itself."
    )
    parser.add_argument("--quick", action="store_true", help="fewer calls and cells: 3 minutes")
    parser.add_argument("--only", default="", metavar="KEYS", help="as P,G1: what to measure")
    parser.add_argument("--rounds", type=int, help="default 3")
    parser.add_argument("--rows", type=int, help="default 100,000")
    parser.add_argument("--cells", type=int, help="of a large store; default 10,000,000")
    parser.add_argument("--calls", type=float, metavar="FACTOR", help="so many times the calls")
    parser.add_argument("--colonnade", type=Path, metavar="PATH", help="a second checkout")
    parser.add_argument("--peer", metavar="HOST:PORT", help="a server to measure beside redis's")
    parser.add_argument("--no-redis", action="store_true", help="leave redis-server out")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="earlier", help="of --json")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the chart there")
    parser.add_argument("--write-docs", action="store_true", help="into docs/performance.md")
    return parser


def scale_of(options: argparse.Namespace) -> Scale:
    names = ("rounds", "rows", "cells", "calls")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if any([value <= 0 for value in given.values()]):
        raise Failure("--rounds, --rows, --cells and --calls are more than 0")
    return replace(QUICK if options.quick else Scale(), **given)


def chooser(only: str) -> Callable[[str], bool]:
    """Whether a row's key was asked for, by itself or by its first letter."""
    keys = [key.upper() for key in only.split(",") if key]
    return lambda key: not keys or key in keys or key[0] in keys


def address_of(peer: str) -> tuple[str, int]:
    host, colon, port = peer.rpartition(":")
    if not colon or not port.isdigit():
        raise Failure(f"{peer} is not HOST:PORT")
    try:
        return socket.gethostbyname(host or "127.0.0.1"), int(port)
    except OSError as error:
        raise Failure(f"{peer}: {error}") from error


def products_of(options: argparse.Namespace) -> list[Product]:
    """What is to be measured: this checkout first, redis-server last."""
    products = [Product("colonnade", Family.COLONNADE, checkout=ROOT)]
    if options.colonnade is not None:
        other = options.colonnade.resolve()
        if not (other / "resp_server").is_dir():
            raise Failure(f"{options.colonnade} is no checkout of Colonnade")
        products.append(Product(f"colonnade {other.name}", Family.COLONNADE, checkout=other))
    if options.peer:
        name = f"peer {options.peer}"
        products.append(Product(name, Family.REDIS, address=address_of(options.peer)))
    if not options.no_redis and shutil.which("redis-server"):
        products.append(Product("redis", Family.REDIS))
    return products


# A run


@dataclass(slots=True)
class Progress:
    """What a run has brought so far; what fails is told and left out."""

    sitting: Sitting
    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def take(self, measurement: Callable[[], list[Row]]) -> None:
        try:
            self.rows += measurement()
        except Failure as failure:
            self.failures.append(f"not measured: {failure}")
            note(str(failure))


def measure(sitting: Sitting, wanted: Callable[[str], bool]) -> Progress:
    progress = Progress(sitting)
    for group in groups(sitting.scale):
        works = [work for work in group.works if wanted(work.key)]
        if works:
            progress.take(partial(peers.compare, sitting, replace(group, works=works)))
    for measurement in growth.grow(sitting, wanted):
        progress.take(measurement)
    if wanted("S"):
        progress.take(partial(direct.measure, sitting))
    return progress


def run(options: argparse.Namespace) -> tuple[Report, bool]:
    """The report, and whether all of it could be measured."""
    scale = scale_of(options)
    date = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    facts: dict[str, Any] = {"date": date, "machine": described()}
    with ExitStack() as stack:
        generators = prepare(stack)
        found = [examined(product) for product in products_of(options)]
        products = [product for product, _ in found]
        baseline = products[-1] if products[-1].name == "redis" else None
        sitting = Sitting(scale, generators, products, baseline, note)
        progress = measure(sitting, chooser(options.only))
        facts |= {product.name: told_of for product, told_of in found}
    facts |= {"python": platform.python_version(), "load": load_facts(sitting)}
    progress.rows.sort(key=place_of)
    report = Report(facts, progress.rows, remarks(sitting) + progress.failures, sitting.runs)
    return report, not progress.failures


def place_of(row: Row) -> tuple[int, str]:
    """In the table: G's numbers were not measured in their order, the others were."""
    letter = row.key[0]
    return "PZGS".index(letter), row.key if letter == "G" else ""


def earlier(path: Path) -> Report:
    """What --json wrote there."""
    try:
        return from_json(json.loads(path.read_text()))
    except (ValueError, TypeError, KeyError) as error:
        raise Failure(f"{path} is no file that --json wrote: {error!r}") from error


def load_facts(sitting: Sitting) -> dict[str, Any]:
    scale, generators = sitting.scale, sitting.generators
    tools = [name for name in ("redis-benchmark", generators.driver_name) if name]
    if generators.redis_benchmark is None:
        tools.remove("redis-benchmark")
    return {
        "connections": CONNECTIONS,
        "rounds": scale.rounds,
        "rows": scale.rows,
        "cells of a large store": scale.stored_cells,
        "calls": f"x {scale.calls:g}",
        "given by": " and ".join(tools),
    }


def remarks(sitting: Sitting) -> list[str]:
    lines = [f"{name}'s event loop: {told(lag)}" for name, lag in sitting.lag.items() if told(lag)]
    if sitting.generators.remark:
        lines.append(sitting.generators.remark)
    if sitting.scale != Scale():
        lines.append("this was a run with other amounts than the targets are meant for")
    if sitting.baseline is None:
        lines.append("redis-server was not measured, so there is nothing to compare with")
    return lines


# The program


def tell(options: argparse.Namespace, report: Report) -> None:
    print(as_text(report), end="")
    if options.json:
        found = {"command": sys.argv[1:], **as_json(report)}
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if options.svg:
        options.svg.write_text(draw(report))
    if options.write_docs:
        write_documents(report, ROOT / "docs")


def leave(_number: int, _frame: FrameType | None) -> None:
    """Leave by an exception, so that the servers are ended on the way out."""
    sys.exit("stopped")


def raise_limit_of_files() -> None:
    """Idle connections are open files here, and servers inherit the limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main(words: Sequence[str] | None = None) -> int:
    options = reading().parse_args(words)
    signal.signal(signal.SIGTERM, leave)
    raise_limit_of_files()
    try:
        if options.earlier:
            if options.json:
                raise Failure("--from measures nothing that --json could write")
            report, complete = earlier(options.earlier), True
        else:
            report, complete = run(options)
        tell(options, report)
    except (Failure, OSError) as error:
        note(str(error))
        return EXIT_INCOMPLETE
    except KeyboardInterrupt:
        note("stopped")
        return EXIT_INTERRUPTED
    return 0 if complete else EXIT_INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
