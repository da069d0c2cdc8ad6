"""Monitoring: what /metrics tells is true and documented, /healthz and /readyz, and bytes that no
monitoring would send.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from commands.observing.histogram import Histogram
from resp_server.metrics import http as pages
from resp_server.metrics import page as page_module
from resp_server.metrics.http import (
    MOST_CONNECTIONS,
    MOST_HEAD_BYTES,
    BadRequest,
    Reply,
    Request,
    Visitors,
    encode_reply,
    read_request,
    told,
)
from resp_server.metrics.page import MetricsPage, Pace
from resp_server.metrics.readiness import TRY_AGAIN_SECONDS, Readiness
from storage.commits import Commits
from storage.distribution import Distribution
from storage.embedded.engine import EmbeddedEngine
from storage.errors import StoreFailure, StoreStalled
from storage.model import DatasetSettings
from tests.harness import ROOT, ServerProcess, free_port, until
from tests.server.test_tick import FragileDatabase

MakeServer = Callable[..., ServerProcess]
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def ask(port: int, path: str, method: str = "GET") -> tuple[int, str, dict[str, str]]:
    """(status, body, headers)."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())


class Scrape:
    """The metrics of a server as Prometheus reads them."""

    def __init__(self, port: int) -> None:
        status, text, _ = ask(port, "/metrics")
        assert status == 200
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """That of the monitoring of a server in which everything has happened at least once."""
    found = free_port()
    running = ServerProcess(tmp_path_factory.mktemp("monitored") / "data", metrics_port=found)
    try:
        with running.start().client() as client:
            for number in range(20):
                client.execute_command("WCPUT", "d", f"r{number}", "*", "c", "v")
            for words in (("WCGET", "absent", "r"), ("WCGET", "d")):
                with pytest.raises(Exception, match=r"NODATASET|wrong number"):
                    client.execute_command(*words)
            client.execute_command("WCDATASET", "COMPACT", "d")
            client.execute_command("WAITAOF", 1, 0, 0)
            name = "colonnade_dataset_last_compaction_timestamp_seconds"
            until(lambda: Scrape(found).value(name, dataset="d") > 0)
        yield found
    finally:
        running.close()


# The metrics


def test_commands_and_their_errors_are_counted(port: int) -> None:
    scrape = Scrape(port)
    assert scrape.value("colonnade_command_calls_total", command="wcput") == 20
    assert scrape.value("colonnade_command_calls_total", command="wcget") == 1
    assert scrape.value("colonnade_command_failed_calls_total", command="wcget") == 1
    assert scrape.value("colonnade_command_rejected_calls_total", command="wcget") == 1
    assert scrape.value("colonnade_error_replies_total", code="NODATASET") == 1


def test_histograms_are_what_prometheus_takes_for_one(port: int) -> None:
    histograms = [family for family in Scrape(port).families.values() if family.type == "histogram"]
    assert len(histograms) >= 5
    for family in histograms:
        series: dict[frozenset[tuple[str, str]], dict[str, float]] = {}
        for sample in family.samples:
            labels = frozenset(item for item in sample.labels.items() if item[0] != "le")
            key = sample.labels.get("le", sample.name.rpartition("_")[2])
            series.setdefault(labels, {})[key] = sample.value
        for values in series.values():
            total, sum_of_all = values.pop("count"), values.pop("sum")
            counts = [values[bound] for bound in sorted(values, key=float)]
            assert counts == sorted(counts)
            assert values["+Inf"] == total
            if family.name != "colonnade_event_loop_lag_seconds":  # a first look may find none
                assert (sum_of_all > 0) == (total > 0)


def test_commits_and_fsyncs_are_counted(port: int) -> None:
    scrape = Scrape(port)
    assert scrape.value("colonnade_commit_operations_sum") >= 21
    assert 1 <= scrape.value("colonnade_commit_duration_seconds_count") <= 60
    assert scrape.value("colonnade_commit_failures_total") == 0
    assert scrape.value("colonnade_fsync_duration_seconds_count") >= 1
    # Looked at ten times a second: a server that has just begun may not have done so yet.
    until(lambda: Scrape(port).value("colonnade_event_loop_lag_seconds_count") >= 1)


def test_datasets_and_rocksdb_are_told_of(port: int) -> None:
    scrape = Scrape(port)
    assert scrape.value("colonnade_datasets") == 1
    assert scrape.value("colonnade_dataset_cells", dataset="d") == 20
    assert scrape.value("colonnade_dataset_compacting", dataset="d") in (0, 1)
    assert scrape.value("colonnade_dataset_disk_bytes", dataset="d") > 0
    assert scrape.value("colonnade_rocksdb_sst_bytes") > 0
    assert scrape.value("colonnade_rocksdb_block_cache_capacity_bytes") in range(2**26, 2**30 + 1)
    assert scrape.value("process_resident_memory_bytes") > 10 * 1024**2


def test_backups_are_told_of(make_server: MakeServer) -> None:
    port = free_port()
    server = make_server(metrics_port=port)
    scrape = Scrape(port)
    before = time.time()
    assert scrape.value("colonnade_backup_last_timestamp_seconds") == 0
    assert scrape.value("colonnade_backup_last_duration_seconds") == 0
    assert scrape.value("colonnade_backup_next_timestamp_seconds") == 0
    with server.client() as client:
        client.config_set("backup-cron", "0 3 * * *")
        until(lambda: Scrape(port).value("colonnade_backup_next_timestamp_seconds") > before)
        client.execute_command("WCPUT", "d", "r", "*", "c", "v")
        client.save()
        scrape = Scrape(port)
        assert scrape.value("colonnade_backups_made_total") == 1
        assert scrape.value("colonnade_backup_in_progress") == 0
        assert scrape.value("colonnade_backup_last_failed") == 0
        assert scrape.value("colonnade_backup_last_timestamp_seconds") >= int(before)
        assert scrape.value("colonnade_backup_last_duration_seconds") > 0
        assert scrape.value("colonnade_backup_last_checkpoint_seconds") > 0
        all_bytes = scrape.value("colonnade_backup_last_bytes")
        assert all_bytes == scrape.value("colonnade_backup_last_sent_bytes") > 0
        client.save()
        scrape = Scrape(port)
        assert scrape.value("colonnade_backup_last_sent_bytes") < all_bytes
        assert scrape.value("colonnade_backup_kept") == 2
        assert scrape.value("colonnade_backup_last_files") > 0
        assert scrape.value("colonnade_backup_last_sent_files") == 0
        folder = server.directory / "backups"
        shutil.rmtree(folder)
        folder.write_bytes(b"no folder")
        with pytest.raises(redis.ResponseError):
            client.save()
    scrape = Scrape(port)
    assert scrape.value("colonnade_backups_made_total") == 2
    assert scrape.value("colonnade_backups_failed_total") == 1
    assert scrape.value("colonnade_backup_last_failed") == 1
    assert scrape.value("colonnade_backup_last_timestamp_seconds") > 0


def test_clients_are_counted_and_monitoring_is_none(make_server: MakeServer) -> None:
    port = free_port()
    server = make_server(metrics_port=port, wc_engine="memory")
    until(lambda: Scrape(port).value("colonnade_connected_clients") == 0)
    with server.client() as client:
        client.ping()
        scrape = Scrape(port)
    assert scrape.value("colonnade_connected_clients") == 1
    assert scrape.value("colonnade_net_input_bytes_total") > 0
    assert scrape.families["colonnade_rocksdb_sst_bytes"].samples == []


def test_without_latency_tracking_no_durations_are_told(make_server: MakeServer) -> None:
    port = free_port()
    server = make_server(metrics_port=port, wc_engine="memory", latency_tracking="no")
    with server.client() as client:
        client.ping()
    scrape = Scrape(port)
    assert scrape.value("colonnade_command_calls_total", command="ping") >= 1
    assert scrape.value("colonnade_command_duration_seconds_count", command="ping") == 0
    assert scrape.value("colonnade_command_duration_seconds_sum", command="ping") == 0


# The documents


def exposed(family: Any) -> str:
    """The name of a metric as Prometheus stores it."""
    return f"{family.name}_total" if family.type == "counter" else str(family.name)


def test_the_page_of_metrics_lists_what_there_is(port: int) -> None:
    told_of = {
        (name, kind, frozenset(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in re.findall(
            r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", (ROOT / "docs/metrics.md").read_text(), re.M
        )
    }
    there = {
        (
            exposed(family),
            family.type,
            frozenset(label for sample in family.samples for label in sample.labels) - {"le"},
        )
        for family in Scrape(port).families.values()
    }
    assert told_of == there


def test_the_dashboard_asks_for_metrics_that_there_are(port: int) -> None:
    dashboard = json.loads((ROOT / "docs/grafana-dashboard.json").read_text())
    queries = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])
    ]
    queries += [
        variable["query"]
        for variable in dashboard["templating"]["list"]
        if variable["type"] == "query"
    ]
    scrape = Scrape(port)
    names = {name for name, _ in scrape.samples}
    asked = {
        name for query in queries for name in re.findall(r"\b(?:colonnade|process)_\w+", query)
    }
    assert len(queries) >= 15
    assert asked <= names
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(identifiers) == len(set(identifiers))


# Health


def test_health_and_readiness_are_told(port: int) -> None:
    assert ask(port, "/healthz")[:2] == (200, "the process serves\n")
    assert ask(port, "/readyz?verbose=1")[:2] == (200, "ready\n")


def test_it_is_not_ready_while_it_shuts_down() -> None:
    engine = EmbeddedEngine(FragileDatabase())
    assert Readiness(engine, lambda: True).objection() == "shutting down"
    assert Readiness(engine, lambda: False).objection() == ""


async def put(engine: EmbeddedEngine) -> StoreFailure | None:
    await engine.put(b"d", [(b"r", None, b"c", b"v")], None, DatasetSettings())
    return engine.commit()


def test_it_is_ready_again_once_the_disk_takes_writes_though_nobody_writes() -> None:
    store, now = FragileDatabase(), [0.0]
    engine = EmbeddedEngine(store)
    readiness = Readiness(engine, lambda: False, lambda: now[0])
    assert asyncio.run(put(engine)) is None
    store.failures = 2
    assert asyncio.run(put(engine)) is not None
    objection = "the last write failed: No space left on device"
    assert readiness.objection() == objection
    assert engine.commits.failed_in_a_row == 2
    assert readiness.objection() == objection, "it is not tried again at once"
    now[0] += TRY_AGAIN_SECONDS
    assert readiness.objection() == ""
    assert engine.commits.failed_in_a_row == 0
    assert engine.commits.last_failure == ""


def test_a_read_does_not_make_a_failing_store_ready() -> None:
    store = FragileDatabase()
    engine = EmbeddedEngine(store)
    asyncio.run(put(engine))
    store.failures = 1000
    asyncio.run(put(engine))
    assert engine.commit() is None, "there is nothing to commit"
    assert Readiness(engine, lambda: False).objection() != ""


class StalledEngine:
    """Whose last write failed, and who cannot say yet what becomes of the next."""

    def __init__(self) -> None:
        self.commits = Commits()
        self.commits.note_failure("no\nspace")

    def try_writing(self) -> StoreFailure | None:
        raise StoreStalled


def test_the_reason_is_one_line_and_a_stall_leaves_it() -> None:
    assert (
        Readiness(StalledEngine(), lambda: False).objection() == "the last write failed: no space"
    )


def test_trying_to_write_changes_nothing() -> None:
    store = FragileDatabase()
    engine = EmbeddedEngine(store)
    asyncio.run(put(engine))
    keys = dict(store.default_family().values)  # type: ignore[attr-defined]
    assert engine.try_writing() is None
    assert dict(store.default_family().values) == keys  # type: ignore[attr-defined]


# HTTP


@pytest.mark.parametrize(
    ("head", "request_or_status"),
    [
        (b"GET /x HTTP/1.1\r\nA: b", Request("GET", "/x")),
        (b"HEAD /x?y=z HTTP/1.0", Request("HEAD", "/x")),
        (b"", 400),
        (b"GET /x", 400),
        (b"GET  /x HTTP/1.1", 400),
        (b"GET /x HTTP/1.1 y", 400),
        (b"GET /x\tHTTP/1.1", 400),
        (b"GET /x RESP/3", 400),
        (b"*1 $4 PING", 400),
        (b"PRI * HTTP/2.0", 505),
        (b"POST /x HTTP/1.1", 405),
        (b"get /x HTTP/1.1", 405),
        (b"\xff\x00 \xff HTTP/1.1", 405),
    ],
)
def test_heads_are_read(head: bytes, request_or_status: Request | int) -> None:
    if isinstance(request_or_status, Request):
        assert read_request(head) == request_or_status
        return
    with pytest.raises(BadRequest) as refused:
        read_request(head)
    assert refused.value.status == request_or_status


@given(st.binary())
def test_any_bytes_are_a_request_or_refused(head: bytes) -> None:
    try:
        assert read_request(head).method in ("GET", "HEAD")
    except BadRequest as refused:
        assert 400 <= refused.status < 600


def test_a_reply_to_head_has_no_body() -> None:
    whole = encode_reply(told(HTTPStatus.OK, "text"))
    assert whole.endswith(
        b"\r\nContent-Length: 5\r\nCache-Control: no-store\r\nConnection: close\r\n\r\ntext\n"
    )
    assert encode_reply(told(HTTPStatus.OK, "text"), with_body=False) + b"text\n" == whole


def test_methods_and_paths(port: int) -> None:
    status, body, headers = ask(port, "/metrics", "HEAD")
    assert (status, body) == (200, "")
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert int(headers["Content-Length"]) > 1000
    status, _, headers = ask(port, "/metrics", "DELETE")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert ask(port, "/")[0] == 404


def sent(port: int, data: bytes) -> bytes:
    """What is answered to these bytes, up to the end of the connection."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as wire:
        answer = b""
        try:
            wire.sendall(data)
            while received := wire.recv(65536):
                answer += received
        except ConnectionError:  # hung up on in the midst of what it was sending
            pass
        return answer


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400"),
        (b"\r\n\r\n", b"400"),
        (b"GET /" + b"a" * MOST_HEAD_BYTES, b"431"),
        (b"GET /healthz HTTP/1.1\r\nA: " + b"a" * MOST_HEAD_BYTES + b"\r\n\r\n", b"431"),
        (GET * 5, b"200"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\nsomething", b"405"),
    ],
)
def test_hostile_bytes_are_answered_once(port: int, data: bytes, status: bytes) -> None:
    answer = sent(port, data)
    assert answer.split(b" ")[1:2] == [status]
    assert answer.count(b"HTTP/1.1 ") == 1
    assert ask(port, "/healthz")[0] == 200


def test_a_flood_ends(port: int) -> None:
    assert len(sent(port, b"\x00" * 10_000_000)) < 1000
    assert ask(port, "/healthz")[0] == 200


def test_a_head_may_come_byte_by_byte(port: int) -> None:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in GET:
            wire.sendall(bytes((byte,)))
        assert wire.recv(15) == b"HTTP/1.1 200 OK"


def test_connections_that_say_nothing_keep_nobody_out(port: int) -> None:
    silent = [
        socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(MOST_CONNECTIONS)
    ]
    try:
        assert ask(port, "/healthz")[0] == 200
        with pytest.raises(ConnectionResetError):
            assert silent[0].recv(1) == b"", "the oldest was given up"
            raise ConnectionResetError
    finally:
        for wire in silent:
            wire.close()


class Transport(asyncio.Transport):
    """What a visitor needs of one."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.ended = ""

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.ended = "closed"

    def abort(self) -> None:
        self.ended = "aborted"


def test_who_says_nothing_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_SECONDS", 0.0)

    async def visit() -> None:
        transport, visitors = Transport(), Visitors({})
        visitor = visitors.visitor()
        visitor.connection_made(transport)
        while not transport.ended:
            await asyncio.sleep(0)
        assert transport.ended == "aborted"
        visitor.connection_lost(None)
        assert len(visitors) == 0

    asyncio.run(visit())


def test_a_page_that_fails_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> Reply:
        raise ZeroDivisionError

    async def visit() -> None:
        transport = Transport()
        visitor = Visitors({"/healthz": fail}).visitor()
        visitor.connection_made(transport)
        visitor.data_received(GET)
        while not transport.ended:
            await asyncio.sleep(0)
        visitor.connection_lost(None)
        assert transport.written.startswith(b"HTTP/1.1 500 ")

    asyncio.run(visit())
    assert "ZeroDivisionError" in caplog.text


# The making of the page


async def families_of(pace: Pace) -> AsyncIterator[Metric]:
    gauge = GaugeMetricFamily("many", "Has many samples.", labels=("number",))
    for number in range(1000):
        gauge.add_metric((str(number),), number)
    yield gauge
    await pace.rest()
    yield GaugeMetricFamily("none", "Has none.", labels=("number",))


def test_a_page_is_whole_and_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "SLICE_SECONDS", 0.0)
    turns = 0

    async def make() -> bytes:
        nonlocal turns
        page = asyncio.create_task(MetricsPage(families_of).text())
        while not page.done():
            turns += 1
            await asyncio.sleep(0)
        return page.result()

    lines = asyncio.run(make()).decode().splitlines()
    assert turns > 10
    assert lines[:2] == ["# HELP many Has many samples.", "# TYPE many gauge"]
    assert lines[2:1002] == [f'many{{number="{number}"}} {float(number)}' for number in range(1000)]
    assert lines[1002:] == ["# HELP none Has none.", "# TYPE none gauge"]


def test_those_who_ask_at_once_get_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "SLICE_SECONDS", 0.0)
    made = 0

    async def counted(pace: Pace) -> AsyncIterator[Metric]:
        nonlocal made
        made += 1
        async for family in families_of(pace):
            yield family

    async def ask_often() -> None:
        page = MetricsPage(counted)
        impatient = asyncio.create_task(page.text())
        patient = [asyncio.create_task(page.text()) for _ in range(5)]
        await asyncio.sleep(0)
        impatient.cancel()
        assert len(set(await asyncio.gather(*patient))) == 1
        assert made == 1
        await page.text()
        assert made == 2

    asyncio.run(ask_often())


# What is counted


def test_a_distribution_counts_what_is_within_its_bounds() -> None:
    counted = Distribution((1, 10))
    for amount in (0, 1, 2, 10, 11):
        counted.note(amount)
    assert counted.within() == [(1, 2), (10, 4), (float("inf"), 5)]
    assert (counted.total, counted.sum) == (5, 24)


def test_a_histogram_tells_what_is_within_any_bounds() -> None:
    histogram = Histogram()
    histogram.add([0.0, 9e-6, 0.9e-3, 1.0e-3, 1.1e-3, 2.0])
    assert histogram.within((10e-6, 1e-3, 1.0)) == [2, 4, 5]
    assert Histogram().within((1.0,)) == [0]


def test_stalls_and_groups_are_counted_by_the_engine() -> None:
    store = FragileDatabase()
    engine = EmbeddedEngine(store)
    store.stalls = 1
    with pytest.raises(StoreStalled):
        asyncio.run(put(engine))
    assert engine.commit() is None
    assert engine.commits.stalls == 1
    assert engine.commits.operations.total == 1
    assert engine.commits.operations.sum >= 2, "a catalog entry and a cell"


# The beginning

WITHOUT_THE_LIBRARY = (
    sys.executable,
    "-c",
    "import sys; sys.modules['prometheus_client'] = None; "
    "from resp_server.__main__ import main; sys.exit(main())",
)


def run_to_its_end(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, words)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_the_library_it_says_what_to_install(tmp_path: Path) -> None:
    places = ("--port", free_port(), "--dir", tmp_path, "--metrics-port", free_port())
    ended = run_to_its_end(*WITHOUT_THE_LIBRARY, *places)
    assert ended.returncode == 1
    assert ended.stderr == (
        "colonnade-server cannot start: metrics-port needs the library prometheus_client, which"
        " is not installed: pip install 'colonnade[metrics]'\n"
    )


def test_without_the_library_it_serves_where_no_metrics_are_wanted(tmp_path: Path) -> None:
    running = ServerProcess(tmp_path / "data", command=WITHOUT_THE_LIBRARY, wc_engine="memory")
    try:
        with running.start().client() as client:
            assert client.ping()
    finally:
        running.close()


def test_a_port_that_is_taken_is_named(port: int, tmp_path: Path) -> None:
    places = ("--port", free_port(), "--dir", tmp_path, "--metrics-port", port)
    ended = run_to_its_end(sys.executable, "-m", "resp_server", *places)
    assert ended.returncode == 1
    place = f"127.0.0.1:{port}"
    assert f"cannot start: cannot listen on {place}: Address already in use\n" in ended.stderr
