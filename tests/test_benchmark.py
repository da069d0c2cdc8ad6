"""The benchmark measures what it says, and tells it soundly: with tiny amounts, in seconds."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from benchmarks import lag, load
from benchmarks.__main__ import chooser
from benchmarks.chart import draw
from benchmarks.documents import BEGIN, END, PAGE, replaced, write_documents
from benchmarks.load import NUMBER, Call, Driving, Failure, Generators, Load, Numbers, call
from benchmarks.results import Comparison, Report, Row, Target, Unit, as_json, from_json
from benchmarks.servers import Family, Product, Variant, running
from benchmarks.sitting import QUICK, Scale, in_turn
from benchmarks.table import as_markdown, as_text, sections
from benchmarks.workloads import groups
from tests.harness import ROOT, ServerProcess

ROWS = 300
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", params=["driver.c", "driver.py"])
def generators(request: pytest.FixtureRequest) -> Iterator[Generators]:
    """The driver in C and its twin, with nothing but itself to fall back to."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        if request.param == "driver.py":
            patch.setenv("CC", "no-such-compiler")
        made = replace(load.prepare(stack), redis_benchmark=None)
        if made.driver_name != request.param:
            pytest.skip(made.remark)
        yield made


def put(dataset: str, weight: int = 1) -> Call:
    return call("WCPUT", dataset, f"row:{NUMBER}", "*", "column", "value", weight=weight)


def rows_of(client: redis.Redis, dataset: str) -> list[bytes]:
    _, rows = client.execute_command("WCSCAN", dataset, "LIMIT", 2 * ROWS)
    return [row for row, *_ in rows]


# The driver


def test_a_sequence_fills_each_row_once(
    server: ServerProcess, generators: Generators, dataset: str
) -> None:
    fill = Load((put(dataset),), ROWS, ROWS, 4, 8, Numbers.SEQUENCE)
    measured = load.run(fill, "127.0.0.1", server.port, generators)
    with server.client() as client:
        assert rows_of(client, dataset) == [b"row:%012d" % place for place in range(ROWS)]
    assert measured.rate > 0
    assert 0 < measured.p50_us <= measured.p99_us <= measured.longest_us


@pytest.mark.parametrize("numbers", [Numbers.UNIFORM, Numbers.ZIPF])
def test_drawn_numbers_are_below_the_keyspace(
    server: ServerProcess, generators: Generators, dataset: str, numbers: Numbers
) -> None:
    load.run(Load((put(dataset),), 2000, 50, 16, numbers=numbers), *place(server), generators)
    with server.client() as client:
        assert set(rows_of(client, dataset)) == {b"row:%012d" % place for place in range(50)}
        _, columns = client.execute_command("WCGET", dataset, b"row:%012d" % 0, "VERSIONS", "ALL")
    ((_, cells),) = columns
    assert (len(cells) > 200) is (numbers is Numbers.ZIPF), "rank 1 has the number 0"


def place(server: ServerProcess) -> tuple[str, int]:
    return "127.0.0.1", server.port


def place_of(listening: socket.socket) -> tuple[str, int]:
    host, port = listening.getsockname()
    return host, port


def test_calls_are_drawn_by_their_weight_and_made_whole(
    server: ServerProcess, generators: Generators, dataset: str
) -> None:
    pair = Call(put(f"{dataset}a").commands + put(f"{dataset}b").commands, weight=9)
    load.run(Load((pair, put(f"{dataset}c")), 2000, 10**9, 3), *place(server), generators)
    with server.client() as client:
        found = [
            client.execute_command("WCDATASET", "INFO", dataset + letter)[b"estimated-cells"]
            for letter in "abc"
        ]
        assert rows_of(client, f"{dataset}a") == rows_of(client, f"{dataset}b")
    assert found[0] == found[1] and found[0] + found[2] == 2000
    assert 1700 < found[0] < 1900


def test_an_endless_load_ends_when_it_is_told(
    server: ServerProcess, generators: Generators, dataset: str
) -> None:
    with Driving(Load((put(dataset),), 0, ROWS), *place(server), generators) as driving:
        with server.client() as client:
            while not client.execute_command("WCDATASET", "LIST", dataset):
                pass
        measured = driving.stop()
    assert measured.rate > 0


def test_an_error_among_the_replies_is_a_failure(
    server: ServerProcess, generators: Generators, dataset: str
) -> None:
    wrong = call("WCGET", dataset, "row", weight=1)
    with pytest.raises(Failure, match=r"\d+ errors, the first: NODATASET"):
        load.run(Load((put(dataset + "x"), wrong), 100, 1), *place(server), generators)


def test_a_server_that_hangs_up_is_a_failure(generators: Generators) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        hanging = threading.Thread(target=lambda: listening.accept()[0].close())
        hanging.start()
        with pytest.raises(Failure, match=r"closed a connection|reset"):
            one = Load((call("PING"),), 1, 1, connections=1)
            load.run(one, *place_of(listening), generators)
        hanging.join()


REPLIES = [
    b"+OK\r\n",
    b":12\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"$0\r\n\r\n",
    b"*0\r\n",
    b"$8\r\n:1\r\n:2\r\n\r\n",
    b"*2\r\n$1\r\n0\r\n*1\r\n*2\r\n$1\r\nc\r\n*2\r\n*2\r\n:1\r\n$4\r\n*9\r\n\r\n*2\r\n:2\r\n$1\r\nv\r\n",
    b"*3\r\n*0\r\n*-1\r\n$3\r\nabc\r\n",
    b"$5000\r\n" + b"x" * 5000 + b"\r\n",
]


def answer(listening: socket.socket, piece: int) -> None:
    """Each PING with the next of the replies, in pieces of so many bytes."""
    wire, _ = listening.accept()
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with wire:
        for reply in REPLIES:
            assert wire.recv(64) == load.encode(("PING",))
            for at in range(0, len(reply), piece):
                wire.sendall(reply[at : at + piece])
        assert wire.recv(64) == b""


@pytest.mark.parametrize("piece", [1, 3, 10_000])
def test_replies_of_all_shapes_are_counted(generators: Generators, piece: int) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        answering = threading.Thread(target=answer, args=(listening, piece))
        answering.start()
        ping = Load((call("PING"),), len(REPLIES), 1, connections=1)
        load.run(ping, *place_of(listening), generators)
        answering.join(timeout=20)
        assert not answering.is_alive()


# Figures and how they are told


def test_the_ratio_is_the_median_of_neighbours_ratios() -> None:
    assert Comparison("a", True, [10, 20, 90], [20, 20, 100]).ratio == 0.9
    assert Comparison("a", True, [10.0], []).ratio is None


@pytest.mark.parametrize(
    ("target", "ratio", "verdict"),
    [
        (Target(0.9), 0.9, "reached"),
        (Target(0.9), 0.89, "MISSED"),
        (Target(1.5, at_least=False), 1.5, "reached"),
        (Target(1.5, at_least=False), 1.51, "MISSED"),
        (None, 1.0, ""),
    ],
)
def test_a_verdict(target: Target | None, ratio: float, verdict: str) -> None:
    row = Row("P1", "", "", Unit.RATE, target)
    assert row.verdict(Comparison("a", True, [ratio * 100], [100])) == verdict
    assert row.verdict(Comparison("peer", False, [ratio * 100], [100])) == ""


def test_every_one_goes_first_in_turn() -> None:
    assert [next(iter(in_turn("abc", number))) for number in (1, 2, 3)] == ["b", "c", "a"]


def test_rows_are_chosen_by_key_or_letter() -> None:
    assert all([chooser("")(key) for key in ("P1", "G8")])
    assert [key for key in ("P1", "P2", "G1", "Z90") if chooser("p1,G")(key)] == ["P1", "G1"]


@pytest.mark.parametrize("scale", [Scale(), QUICK, Scale(1, 10, 100, 0.0001)])
def test_every_work_can_be_done_by_both_families(scale: Scale) -> None:
    keys = []
    for group in groups(scale):
        assert not group.fill or (set(group.fill) == set(Family) and group.fill_count > 0)
        for work in group.works:
            assert set(work.loads) == set(Family)
            assert len({replace(each, calls=()) for each in work.loads.values()}) == 1
            keys.append(work.key)
    assert list(dict.fromkeys(keys)) == [*[f"P{n}" for n in range(1, 10)], "Z90", "Z50"]


def test_full_amounts_are_those_of_the_targets() -> None:
    scale = Scale()
    assert (scale.rows, scale.wide_rows, scale.cells) == (100_000, 100_000, 10_000_000)
    assert (scale.deep_cells, scale.wide_columns) == (1_000_000, 100_000)
    assert (scale.datasets, scale.idle_connections) == (200, 5_000)


PAGE_OF_METRICS = """\
colonnade_event_loop_lag_seconds_bucket{le="0.001"} 5.0
colonnade_event_loop_lag_seconds_bucket{le="0.01"} 7.0
colonnade_event_loop_lag_seconds_bucket{le="0.025"} 8.0
colonnade_event_loop_lag_seconds_bucket{le="+Inf"} 8.0
colonnade_event_loop_lag_seconds_count 8.0
"""


def test_lag_is_read_from_metrics() -> None:
    found = lag.parse(PAGE_OF_METRICS)
    assert found == {0.001: 5, 0.01: 2, 0.025: 1, float("inf"): 0}
    assert lag.told(found) == "8 looks, 1 later than 10 ms, the latest by 10 to 25 ms"
    assert lag.told(lag.Lag()) == ""


def report_of(*servers: str) -> Report:
    """A little of everything: reached, missed, not measured, with characters that XML escapes."""

    def compared(ratio: float) -> list[Comparison]:
        return [Comparison(name, True, [ratio * 1e4, 9.0], [1e4, 9.0 / ratio]) for name in servers]

    rows = [
        Row("P1", "puts <&> gets", "HSET", Unit.RATE, Target(0.9), compared(0.95)),
        Row("P6", "cached", "HGETALL", Unit.RATE, Target(0.6), [], ["colonnade has no row cache"]),
        Row("P8", "p99", "p99", Unit.TIME, Target(1.5, at_least=False), compared(2.5)),
        Row("Z90", "Zipf", "HGETALL", Unit.RATE, None, compared(0.5)),
        Row("G6", "memory", "limit", Unit.MEMORY, Target(1, at_least=False), compared(0.25)),
        Row("S", "in process", "", Unit.RATE, None, [Comparison(servers[0], True, [2e5])]),
    ]
    return Report({"date": "2026-01-05", "load": {"rounds": 2}}, rows, ["a <remark>"])


@pytest.mark.parametrize("servers", [("colonnade",), ("colonnade", "colonnade before")])
def test_tables_are_rectangular_and_say_what_was_missed(servers: tuple[str, ...]) -> None:
    report = report_of(*servers)
    for section in sections(report):
        assert {len(line) for line in section.lines} == {len(section.header)}
    text = as_text(report)
    lines = {line[:2]: line for line in text.splitlines() if line.startswith(("P", "Z", "G"))}
    assert lines["P1"].endswith("reached") and lines["P8"].endswith("MISSED")
    assert "0.95" in lines["P1"] and ">= 0.9" in lines["P1"]
    assert "a <remark>" in text and "colonnade has no row cache" in text
    for line in as_markdown(report).splitlines():
        if line.startswith("| P1"):
            assert line.count("|") == len(sections(report)[0].header) + 1


@pytest.mark.parametrize("servers", [("colonnade",), ("colonnade", "colonnade before")])
def test_the_chart_is_xml_with_a_bar_for_each_ratio(servers: tuple[str, ...]) -> None:
    root = ElementTree.fromstring(draw(report_of(*servers)))
    bars = root.findall(f"{SVG}rect")
    assert len(bars) == 4 * len(servers)
    kinds = [str(bar.get("class")).split()[0] for bar in bars[:: len(servers)]]
    assert kinds == ["reached", "plain", "missed", "reached"]
    width = float(str(root.get("width")))
    assert all([float(str(bar.get("x"))) + float(str(bar.get("width"))) < width for bar in bars])
    assert sum(["missed" in str(text.text) for text in root.iter(f"{SVG}text")]) == len(servers)


def test_a_chart_of_nothing_is_still_a_picture() -> None:
    assert ElementTree.fromstring(draw(Report({}, []))).findall(f"{SVG}rect") == []


def test_a_report_comes_back_from_json() -> None:
    report = report_of("colonnade", "peer")
    again = from_json(json.loads(json.dumps(as_json(report))))
    assert as_text(again) == as_text(report) and draw(again) == draw(report)


def test_the_page_gets_its_table_between_the_marks(tmp_path: Path) -> None:
    page = (ROOT / "docs" / PAGE).read_text()
    assert page.count(BEGIN) == page.count(END) == 1
    (tmp_path / PAGE).write_text(page)
    write_documents(report_of("colonnade"), tmp_path)
    write_documents(report_of("colonnade"), tmp_path)
    written = (tmp_path / PAGE).read_text()
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    assert written.startswith(before + BEGIN) and written.endswith(END + after)
    assert written.count("| P1 |") == 1 and "](performance.svg)" in written
    ElementTree.parse(tmp_path / "performance.svg")


def test_a_page_without_marks_is_left_alone() -> None:
    with pytest.raises(Failure, match="put them where the table goes"):
        replaced("# A page", "table")


# Servers


def test_a_peer_that_holds_data_is_not_emptied(server: ServerProcess) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        spoken: list[bytes] = []

        def serve() -> None:
            wire, _ = listening.accept()
            with wire:
                while got := wire.recv(4096):
                    spoken.append(got)
                    replies = got.count(b"*1\r\n$9\r\nRANDOMKEY\r\n")
                    others = got.count(b"\r\n$6\r\nCLIENT\r\n")
                    wire.sendall(b"$3\r\nkey\r\n" * replies + b"+OK\r\n" * others)

        serving = threading.Thread(target=serve)
        serving.start()
        peer = Product("peer", Family.REDIS, address=place_of(listening))
        with pytest.raises(Failure, match="holds data"), running(peer, Variant.DEFAULT):
            raise AssertionError("it was taken")
        serving.join(timeout=20)
    assert b"RANDOMKEY" in b"".join(spoken) and b"FLUSHALL" not in b"".join(spoken)


# The program


def test_a_whole_run_with_tiny_amounts(tmp_path: Path) -> None:
    figures, chart = tmp_path / "figures.json", tmp_path / "chart.svg"
    amounts = ["--rounds", "1", "--rows", "50", "--cells", "2000", "--calls", "0.0005"]
    only = ["--only", "P5,P9,G8,S"]
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", *amounts, *only, "--json", figures, "--svg", chart],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(figures.read_text())
    has_redis = shutil.which("redis-server") is not None
    measured = {row["key"]: row["comparisons"][0] for row in found["rows"]}
    assert set(measured) == {"P5", "P9", "G8", "S"}
    for key, comparison in measured.items():
        assert comparison["server"] == "colonnade"
        assert all([value > 0 for value in comparison["measured"]])
        compared = key[0] == "G" or (key[0] == "P" and has_redis)
        assert (comparison["ratio"] is not None) is compared, key
    assert found["facts"]["colonnade"]["version"]
    assert "P9  WCPUT, appendfsync always" in ran.stdout
    ElementTree.parse(chart)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--rounds", "0"], "more than 0"),
        (["--peer", "nowhere"], "not HOST:PORT"),
        (["--colonnade", "docs"], "no checkout"),
        (["--from", "README.md"], "no file that --json wrote"),
        (["--from", "a.json", "--json", "b.json"], "--from measures nothing"),
    ],
)
def test_a_wrong_word_is_told_in_one_line(words: list[str], complaint: str) -> None:
    command = [sys.executable, "-m", "benchmarks", *words]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert complaint in ran.stderr and len(ran.stderr.splitlines()) == 1
