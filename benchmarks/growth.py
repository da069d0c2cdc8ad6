"""What more data, more datasets and more connections cost: Colonnade beside itself, G1 to G8.

Both sides of a ratio are measured in turn, within one run, on one server or on two of the same
kind. Single calls are timed by the driver on one connection, without the row cache: what was read
before would answer for what is deep down.
"""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import redis

from benchmarks.load import NUMBER, Call, Driving, Failure, Load, call, encode
from benchmarks.results import Row, Target, Unit
from benchmarks.servers import MEGABYTE, Server, Variant, running, send, wait_until_quiet
from benchmarks.sitting import CELLS_A_ROW, Sitting, in_turn
from benchmarks.workloads import (
    GET_ROW,
    MIXED_CALLS,
    PUT,
    ROW,
    VALUE,
    VERSIONS,
    put_events,
)

PAGE_COLUMNS = 100
SINGLE_CALLS = 2_000
FEW = 10
SHORT_ROWS = 50
ALLOWED_MEGABYTES = 300
SUFFIXES = [f"{place:02}" for place in range(CELLS_A_ROW)]
"""A call that fills writes so many cells: their names are the call's number and one of these."""
IDLE = b"idle"
WAIT_SECONDS = 900.0
COMPACTION_LOAD_SECONDS = 60.0
"""The load goes on no longer, even if the compaction does."""
POLL_SECONDS = 0.05

Measurement = Callable[[], list[Row]]


def grow(sitting: Sitting, wanted: Callable[[str], bool]) -> list[Measurement]:
    """What measures the rows that are wanted, by their keys: each can fail without the others."""
    single: dict[str, Callable[[Sitting], Row]] = {
        "G1": pages,
        "G2": versions,
        "G4": datasets,
        "G5": connections,
        "G7": deletes,
    }
    chosen = [measure for key, measure in single.items() if wanted(key)]
    measurements: list[Measurement] = [partial(_alone, measure, sitting) for measure in chosen]
    if any([wanted(key) for key in FILLED_STORE]):
        measurements.append(partial(filled_store, sitting, wanted))
    return measurements


def _alone(measure: Callable[[Sitting], Row], sitting: Sitting) -> list[Row]:
    return [measure(sitting)]


def cells_in_words(count: int) -> str:
    return f"{count // 1_000_000} million" if count >= 1_000_000 else f"{count:,}"


# One call beside another


def compare_calls(sitting: Sitting, server: Server, row: Row, large: Call, small: Call) -> None:
    """Median times of two calls in turn, into the row."""
    comparison = row.of(server.product.name)
    base = f"{row.key} base"
    sides = ((large, row.key, comparison.measured), (small, base, comparison.reference))
    for number in sitting.rounds:
        for what, key, figures in in_turn(sides, number):
            load = Load((what,), sitting.scale.count(SINGLE_CALLS), 1, connections=1)
            figures.append(sitting.measure(server, load, key, number).p50_us)


def pages(sitting: Sitting) -> Row:
    columns = sitting.scale.wide_columns
    last = columns // PAGE_COLUMNS
    what = f"page {last:,} of a row of {columns:,} columns"
    row = Row("G1", what, "page 1", Unit.TIME, Target(1.2, at_least=False))
    cells = [word for suffix in SUFFIXES for word in ("*", f"{NUMBER}:{suffix}", VALUE)]
    for product in sitting.colonnades:
        with running(product, Variant.UNCACHED) as server:
            fill = call("WCPUT", "bench", "wide", *cells)
            sitting.fill(server, fill, columns // CELLS_A_ROW)
            with server.client() as client:
                cursor = cursor_of_page(client, last)
            compare_calls(sitting, server, row, page_at(cursor), page_at("0"))
    return row


def page_at(cursor: str) -> Call:
    return call("WCGET", "bench", "wide", "COUNT", str(PAGE_COLUMNS), "CURSOR", cursor)


def cursor_of_page(client: redis.Redis, page: int) -> str:
    cursor = b"0"
    for _ in range(page - 1):
        cursor, columns = send(client, *page_at(cursor.decode()).commands[0])
        if len(columns) != PAGE_COLUMNS or cursor == b"0":
            raise Failure(f"a page of the wide row had {len(columns)} columns, cursor {cursor!r}")
    return cursor.decode()


def versions(sitting: Sitting) -> Row:
    deep = sitting.scale.deep_cells
    what = f"newest cell of a column of {cells_in_words(deep)} versions"
    row = Row("G2", what, f"of {FEW} versions", Unit.TIME, Target(1.5, at_least=False))
    cells = [word for suffix in SUFFIXES for word in (f"1{NUMBER}{suffix}", "column", VALUE)]
    for product in sitting.colonnades:
        with running(product, Variant.UNCACHED) as server:
            shallow = call("WCPUT", "bench", "shallow", *cells[: 3 * FEW])
            sitting.fill(server, shallow, 1)
            sitting.fill(server, call("WCPUT", "bench", "deep", *cells), deep // CELLS_A_ROW)
            compare_calls(sitting, server, row, newest_of("deep"), newest_of("shallow"))
    return row


def newest_of(row: str) -> Call:
    return call("WCGET", "bench", row, "COLUMNS", "1", "column")


# Rates beside rates


def datasets(sitting: Sitting) -> Row:
    count = sitting.scale.datasets
    what = f"WCPUT into {count} datasets in turn, pipeline 16"
    row = Row("G4", what, "into one", Unit.RATE, Target(0.85))
    many = tuple(put_into(f"many{place}") for place in range(count))
    for product in sitting.colonnades:
        comparison = row.of(product.name)
        one = (put_into("one"),)
        sides = ((many, "G4", comparison.measured), (one, "G4 base", comparison.reference))
        with running(product) as server:
            create_datasets(server, [each.commands[0][1] for each in (*many, *one)])
            for number in sitting.rounds:
                for calls, key, figures in in_turn(sides, number):
                    load = Load(calls, sitting.scale.count(400_000), sitting.scale.rows, 16)
                    figures.append(sitting.measure(server, load, key, number).rate)
    return row


def create_datasets(server: Server, names: Sequence[str]) -> None:
    """Before the load: it takes milliseconds each, once in a dataset's life."""
    with server.client() as client:
        for name in names:
            send(client, "WCDATASET", "CREATE", name)


def put_into(dataset: str) -> Call:
    return call("WCPUT", dataset, ROW, "*", "column", VALUE)


def connections(sitting: Sitting) -> Row:
    count = sitting.scale.idle_connections
    row = Row(
        "G5",
        f"WCPUT, no pipeline, beside {count:,} idle connections",
        "beside none",
        Unit.RATE,
        Target(0.9),
    )
    load = Load((PUT,), sitting.scale.count(200_000), sitting.scale.rows)
    for product in sitting.colonnades:
        comparison = row.of(product.name)
        sides = ((count, "G5", comparison.measured), (0, "G5 base", comparison.reference))
        with running(product) as server:
            for number in sitting.rounds:
                for idle, key, figures in in_turn(sides, number):
                    with idle_connections(server, idle):
                        figures.append(sitting.measure(server, load, key, number).rate)
    return row


@contextmanager
def idle_connections(server: Server, count: int) -> Iterator[None]:
    """Connections that have said one word and are silent since."""
    with ExitStack() as stack:
        try:
            for _ in range(count):
                wire = socket.create_connection((server.host, server.port), timeout=30)
                stack.enter_context(wire)
                wire.sendall(b"PING\r\n")
                wire.recv(16)
        except OSError as error:
            raise Failure(f"G5: {count} connections cannot be had: {error}") from error
        wait_until_quiet(server)
        yield


# Deletes


def deletes(sitting: Sitting) -> Row:
    cells = sitting.scale.deep_cells
    what = f"WCDEL of a row of {cells_in_words(cells)} cells"
    row = Row("G7", what, f"of {FEW} cells", Unit.TIME, Target(20.0, at_least=False))
    for product in sitting.colonnades:
        comparison = row.of(product.name)
        with running(product) as server:
            for number in sitting.rounds:
                long_us, short_us = delete_times(sitting, server, f"long{number}")
                comparison.measured.append(long_us)
                comparison.reference.append(short_us)
    return row


def delete_times(sitting: Sitting, server: Server, long_row: str) -> tuple[float, float]:
    """Microseconds for the long row, and the median for short ones, half before and half after."""
    cells = [word for suffix in SUFFIXES for word in ("*", f"{NUMBER}:{suffix}", VALUE)]
    short_rows = [f"short{place:012}" for place in range(SHORT_ROWS)]
    fill = call("WCPUT", "bench", long_row, *cells)
    sitting.fill(server, fill, sitting.scale.deep_cells // CELLS_A_ROW)
    sitting.fill(server, call("WCPUT", "bench", f"short{NUMBER}", *cells[: 3 * FEW]), SHORT_ROWS)
    with socket.create_connection((server.host, server.port), timeout=120) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        half = SHORT_ROWS // 2
        short_us = [delete_time_us(wire, row) for row in short_rows[:half]]
        long_us = delete_time_us(wire, long_row)
        short_us += [delete_time_us(wire, row) for row in short_rows[half:]]
    return long_us, statistics.median(short_us)


def delete_time_us(wire: socket.socket, row: str) -> float:
    command = encode(("WCDEL", "bench", row))
    began = time.perf_counter()
    wire.sendall(command)
    reply = wire.recv(256)
    seconds = time.perf_counter() - began
    if reply != b":1\r\n":
        raise Failure(f"WCDEL of {row} answered {reply!r}")
    return seconds * 1e6


# A store of ten million cells: G3, G6 and G8


def filled_store(sitting: Sitting, wanted: Callable[[str], bool]) -> list[Row]:
    """Rates, memory and latencies, as far as they are wanted, on one filled server a product."""
    cells = cells_in_words(sitting.scale.stored_cells)
    measures = {key: FILLED_STORE[key] for key in FILLED_STORE if wanted(key)}
    rows = {key: row_of_filled_store(key, cells) for key in measures}
    for product in sitting.colonnades:
        with running(product) as server:
            sitting.fill(server, put_events(), sitting.scale.wide_rows)
            for key, measure in measures.items():
                measure(sitting, server, rows[key])
    return list(rows.values())


def row_of_filled_store(key: str, cells: str) -> Row:
    if key == "G3":
        what = f"WCPUT into {cells} cells, pipeline 16"
        return Row(key, what, "into an empty store", Unit.RATE, Target(0.8))
    if key == "G6":
        what, against = f"memory with {cells} cells", f"caches + {ALLOWED_MEGABYTES} MB"
        return Row(key, what, against, Unit.MEMORY, Target(1.0, at_least=False))
    what = f"p99 while {cells} cells are compacted"
    return Row(key, what, "p99 without", Unit.TIME, Target(2.0, at_least=False))


def compare_writes(sitting: Sitting, filled: Server, row: Row) -> None:
    """Into this server, and in turn into an empty one, which is a new one each round."""
    comparison = row.of(filled.product.name)
    load = Load((PUT,), sitting.scale.count(400_000), sitting.scale.wide_rows, 16)
    for number in sitting.rounds:
        with running(filled.product) as empty:
            sides = (
                (filled, "G3", comparison.measured),
                (empty, "G3 base", comparison.reference),
            )
            for server, key, figures in in_turn(sides, number):
                figures.append(sitting.measure(server, load, key, number).rate)
                wait_until_quiet(server)


def measure_memory(sitting: Sitting, server: Server, row: Row) -> None:
    """After reads that have filled what caches there are."""
    load = Load((GET_ROW,), sitting.scale.count(100_000), sitting.scale.wide_rows, 16)
    sitting.measure(server, load, "G6", 1)
    resident = server.resident_megabytes()
    if resident is None:
        row.remarks.append(f"memory of {server.product.name} cannot be told without /proc")
        return
    product = server.product
    caches = (product.block_cache_bytes + (product.row_cache_bytes or 0)) / MEGABYTE
    comparison = row.of(product.name)
    comparison.measured.append(resident)
    comparison.reference.append(caches + ALLOWED_MEGABYTES)


def compare_compaction(sitting: Sitting, server: Server, row: Row) -> None:
    """Each round a tenth of all cells becomes too old, and is collected during a load."""
    comparison = row.of(server.product.name)
    load = Load(MIXED_CALLS, sitting.scale.count(200_000), sitting.scale.wide_rows)
    tenth = VERSIONS // 10
    with server.client() as client:
        for number in sitting.rounds:
            wait_until_quiet(server)
            without = sitting.measure(server, load, "G8 base", number)
            kept = VERSIONS - number * tenth
            send(client, "WCDATASET", "ALTER", "bench", "MAXVERSIONS", max(1, kept))
            comparison.measured.append(p99_while_compacting(sitting, server, number, row))
            comparison.reference.append(without.p99_us)
            if not has_compacted(client, WAIT_SECONDS):
                raise Failure(f"G8: without load too a compaction took over {WAIT_SECONDS:.0f} s")


def p99_while_compacting(sitting: Sitting, server: Server, number: int, row: Row) -> float:
    load = Load(MIXED_CALLS, 0, sitting.scale.wide_rows, seed=number)
    with (
        server.client() as client,
        sitting.noting(server, "G8", number) as note,
        Driving(load, server.host, server.port, sitting.generators) as driving,
    ):
        send(client, "WCDATASET", "COMPACT", "bench")
        ended = has_compacted(client, COMPACTION_LOAD_SECONDS)
        measured = driving.stop()
        note(measured)
    if not ended:
        limit = f"{COMPACTION_LOAD_SECONDS:.0f} s"
        row.remarks.append(f"round {number}: under load it did not end within {limit}")
    return measured.p99_us


def has_compacted(client: redis.Redis, seconds: float) -> bool:
    """Whether the compaction ends within so many seconds."""
    deadline = time.monotonic() + seconds
    while state_of_compaction(client) != IDLE:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def state_of_compaction(client: redis.Redis) -> bytes:
    facts: Sequence[bytes] = send(client, "WCDATASET", "INFO", "bench")
    named = dict(zip(facts[::2], facts[1::2], strict=True))
    return named.get(b"compaction", IDLE)


FILLED_STORE: dict[str, Callable[[Sitting, Server, Row], None]] = {
    "G3": compare_writes,
    "G6": measure_memory,
    "G8": compare_compaction,
}
"""In the order in which they are measured."""
