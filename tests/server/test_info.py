"""INFO: Redis's sections, fields and order, our own beside them, and values that are true.

What Redis prints is asked of a redis-server of Debian's, where one is installed.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from resp_server.counters import SAMPLES, Counters, Rate, Sampler
from tests.compare.servers import RedisProcess, redis_is_installed
from tests.compare.wire import Wire, encode
from tests.harness import MakeServer, ServerProcess, until

PATIENCE_SECONDS = 10.0

OWN_SECTIONS = {"Rocksdb", "Datasets"}
OWN_FIELDS = {
    "colonnade_version", "python_version", "wc_fsyncs", "wc_fsync_on", "wc_last_fsync_time",
    "wc_last_fsync_usec", "wc_last_fsync_status", "wc_last_fsync_error",
    "wc_degraded", "wc_problems", "wc_read_only", "wc_compiled", "wc_row_cache_hits",
    "wc_row_cache_misses", "wc_row_cache_rows", "wc_row_cache_bytes",
}  # fmt: skip
BACKUP_FIELDS = {
    "wc_backup_in_progress", "wc_backup_progress_bytes", "wc_backup_progress_total_bytes",
    "wc_backups_made", "wc_backups_failed", "wc_backup_next_time", "wc_backup_last_time",
    "wc_backup_last_name", "wc_backup_last_to", "wc_backup_last_bytes",
    "wc_backup_last_sent_bytes", "wc_backup_last_time_sec", "wc_backup_last_checkpoint_usec",
    "wc_backup_last_status", "wc_backup_last_error",
}  # fmt: skip
OF_THE_MOMENT = {"Commandstats", "Latencystats", "Errorstats", "Keyspace"}
"""Sections whose fields are named after what happened."""
ANY_KIND = {"config_file", "executable", "mem_allocator", "atomicvar_api"}
KINDS = {
    "integer": r"-?\d+",
    "decimal": r"-?\d+\.\d+",
    "percent": r"\d+\.\d+%",
    "size": r"(\d+B|\d+\.\d\d[KMGTP])",
    "version": r"\d+\.\d+\.\d+",
    "identifier": r"[0-9a-f]{40}",
}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a redis-server that keeps a log, as Colonnade does."""
    if not redis_is_installed():
        pytest.skip("redis-server is not installed: nothing to compare with")
    running = RedisProcess(tmp_path_factory.mktemp("reference"), {"appendonly": "yes"})
    yield running.start().port
    running.close()


def info(port: int, *sections: str, protocol: int = 2) -> str:
    with Wire(port, PATIENCE_SECONDS) as wire:
        wire.call("HELLO", str(protocol))
        reply = wire.call("INFO", *sections)
        assert reply.kind == {2: "bulk", 3: "verbatim"}[protocol]
        return reply.text.decode().removeprefix("txt:")


def parsed(text: str) -> dict[str, dict[str, str]]:
    """Section -> field -> value. Fails where the text is not laid out as Redis does it."""
    sections: dict[str, dict[str, str]] = {}
    for block in text.split("\r\n\r\n") if text else []:
        headline, *lines = block.removesuffix("\r\n").split("\r\n")
        assert headline.startswith("# ")
        sections[headline[2:]] = dict(line.split(":", 1) for line in lines)
    return sections


def fields(server: ServerProcess, section: str) -> dict[str, str]:
    (found,) = parsed(info(server.port, section)).values()
    return found


# As Redis


@pytest.mark.parametrize("protocol", [2, 3])
def test_sections_and_fields_are_those_of_redis_in_its_order(
    reference: int, server: ServerProcess, protocol: int
) -> None:
    theirs = parsed(info(reference, "everything", protocol=protocol))
    ours = parsed(info(server.port, "everything", protocol=protocol))
    assert [name for name in ours if name not in OWN_SECTIONS] == list(theirs)
    for section in theirs.keys() - OF_THE_MOMENT:
        names = [name for name in ours[section] if name not in OWN_FIELDS | BACKUP_FIELDS]
        assert names == list(theirs[section])


def test_values_are_of_the_kind_that_redis_has_there(reference: int, server: ServerProcess) -> None:
    theirs, ours = parsed(info(reference, "everything")), parsed(info(server.port, "everything"))
    odd = [
        (field, value, ours[section][field])
        for section in theirs.keys() - OF_THE_MOMENT
        for field, value in theirs[section].items()
        if field not in ANY_KIND and kind(value) != kind(ours[section][field])
    ]
    assert odd == []


def kind(value: str) -> str:
    fitting = (name for name, pattern in KINDS.items() if re.fullmatch(pattern, value))
    return next(fitting, "text")


@pytest.mark.parametrize(
    "words",
    ["", "default", "all", "everything", "ALL", "Default", "server", "SERVER CPU", "cpu server",
     "commandstats", "default commandstats", "nothing", "nothing memory", "all nothing",
     "keyspace cluster keyspace modules", "latencystats stats errorstats"],
)  # fmt: skip
def test_words_select_the_sections_that_redis_selects(
    reference: int, server: ServerProcess, words: str
) -> None:
    theirs, ours = (parsed(info(port, *words.split())) for port in (reference, server.port))
    assert [name for name in ours if name not in OWN_SECTIONS] == list(theirs)


@pytest.mark.parametrize("words", ["cluster", "modules keyspace", "nothing"])
def test_the_text_is_byte_for_byte_that_of_redis(
    reference: int, server: ServerProcess, words: str
) -> None:
    assert info(server.port, *words.split()) == info(reference, *words.split())


def test_statistics_of_calls_and_errors_are_written_as_by_redis(
    reference: int, server: ServerProcess
) -> None:
    texts = []
    for port in (reference, server.port):
        with Wire(port, PATIENCE_SECONDS) as wire:
            for line in ("PING", "CONFIG RESETSTAT", "ECHO x", "CLIENT ID", "SELECT 99", "NOTHING"):
                wire.call(*line.split())
            text = wire.call("INFO", "commandstats", "errorstats", "latencystats").text.decode()
        lines = re.sub(r"(usec|p[\d.]+|usec_per_call)=[\d.]+", r"\1=#", text).split("\r\n")
        texts.append(sorted(lines))  # Redis has no order of commands
    assert texts[0] == texts[1]


@pytest.mark.parametrize("words", ["", "all", "everything", "ROCKSDB datasets"])
def test_our_own_sections_come_last(server: ServerProcess, words: str) -> None:
    assert list(parsed(info(server.port, *words.split())))[-2:] == ["Rocksdb", "Datasets"]


def test_a_stock_client_reads_it(client: redis.Redis) -> None:
    told = client.info("everything")
    assert told["redis_version"] == "7.0.15"
    assert told["cmdstat_client|setinfo"]["calls"] > 0


# True


def test_it_says_who_it_is(server: ServerProcess) -> None:
    told = fields(server, "server")
    assert told["process_id"] == str(server.pid)
    assert told["tcp_port"] == str(server.port)
    assert abs(int(told["server_time_usec"]) / 1e6 - time.time()) < PATIENCE_SECONDS
    assert told["run_id"] == fields(server, "server")["run_id"]


def test_clients_are_counted_with_what_waits_for_them(server: ServerProcess) -> None:
    before = int(fields(server, "clients")["connected_clients"])
    with Wire(server.port, PATIENCE_SECONDS) as wire:
        wire.call("PING")
        wire.send(b"*2\r\n$4\r\nECHO\r\n$100000\r\n" + b"x" * 50_000)
        until(lambda: int(fields(server, "clients")["client_recent_max_input_buffer"]) >= 50_000)
        assert int(fields(server, "clients")["connected_clients"]) == before + 1
        assert int(fields(server, "memory")["mem_clients_normal"]) >= 50_000
    until(lambda: fields(server, "clients")["connected_clients"] == str(before))


def test_what_is_done_is_counted(make_server: MakeServer) -> None:
    server = make_server()
    with Wire(server.port, PATIENCE_SECONDS) as wire:
        before = counted(wire)
        for _ in range(10):
            wire.call("ECHO", "x" * 1000)
        after = counted(wire)
    grown = {name: after[name] - before[name] for name in before}
    assert grown["total_connections_received"] == 0
    assert grown["total_commands_processed"] == 11
    sent = 10 * len(encode([b"ECHO", b"x" * 1000])) + len(encode([b"INFO", b"stats"]))
    assert grown["total_net_input_bytes"] == sent
    assert grown["total_net_output_bytes"] >= 10 * 1009
    assert grown["total_reads_processed"] >= 11
    assert grown["total_writes_processed"] == 11


def counted(wire: Wire) -> dict[str, int]:
    (told,) = parsed(wire.call("INFO", "stats").text.decode()).values()
    return {name: int(value) for name, value in told.items() if name.startswith("total_")}


def test_rates_rise_under_load(server: ServerProcess) -> None:
    with Wire(server.port, PATIENCE_SECONDS) as wire:

        def rates() -> tuple[float, float]:
            wire.send(b"PING\r\n" * 200)
            for _ in range(200):
                wire.read()
            told = fields(server, "stats")
            return (
                float(told["instantaneous_ops_per_sec"]),
                float(told["instantaneous_input_kbps"]),
            )

        until(lambda: rates()[0] > 100 and rates()[1] > 1)


def test_memory_adds_up(server: ServerProcess) -> None:
    told = fields(server, "memory")
    used = int(told["used_memory"])
    assert 2**20 < used <= int(told["used_memory_peak"])
    assert used <= int(told["used_memory_rss"]) < int(told["total_system_memory"])
    assert int(told["used_memory_overhead"]) + int(told["used_memory_dataset"]) == used
    assert 0 < int(told["used_memory_startup"]) <= int(told["used_memory_peak"])


def test_subscriptions_are_counted(make_server: MakeServer) -> None:
    server = make_server()
    with Wire(server.port, PATIENCE_SECONDS) as wire:
        for line in ("SUBSCRIBE a", "SUBSCRIBE b", "PSUBSCRIBE c*", "SSUBSCRIBE d"):
            wire.call(*line.split())
        told = fields(server, "stats")
        assert told["pubsub_channels"] == "2"
        assert (told["pubsub_patterns"], told["pubsubshard_channels"]) == ("1", "1")
    until(lambda: fields(server, "stats")["pubsub_channels"] == "0")


def test_datasets_are_told_with_what_they_hold(make_server: MakeServer) -> None:
    server = make_server()
    with server.client() as client:
        client.execute_command("WCDATASET", "CREATE", "events", "MAXVERSIONS", 3, "TTL", 60)
        client.execute_command("WCPUT", "events", "r", "*", "c", "v" * 1000)
        client.execute_command("WCDATASET", "CREATE", "another")
    told = fields(server, "datasets")
    assert list(told) == ["another", "events"]
    held = re.fullmatch(
        r"cells=1,disk_bytes=0,memtable_bytes=(\d+),maxversions=3,ttl=60", told["events"]
    )
    assert held is not None
    assert int(held[1]) > 1000
    store = fields(server, "rocksdb")
    assert (store["engine"], store["datasets"], store["estimated_cells"]) == ("rocksdb", "2", "1")
    assert int(store["memtable_bytes"]) > 1000


def test_datasets_a_user_may_not_read_are_not_told(make_server: MakeServer) -> None:
    server = make_server()
    with server.client() as client:
        for name in ("mine1", "theirs"):
            client.execute_command("WCPUT", name, "r", "*", "c", "v")
        client.execute_command("ACL", "SETUSER", "me", "on", ">pw", "~mine*", "%W~theirs", "+@all")
    with server.client(username="me", password="pw") as client:
        told = client.info("datasets")
    assert list(told) == ["mine1"]


@pytest.mark.parametrize(("engine", "log"), [("rocksdb", "1"), ("memory", "0")])
def test_a_store_in_memory_has_no_log(make_server: MakeServer, engine: str, log: str) -> None:
    server = make_server(wc_engine=engine)
    told = fields(server, "persistence")
    assert told["aof_enabled"] == log
    assert ("aof_pending_bio_fsync" in told) == (log == "1")
    assert fields(server, "rocksdb")["engine"] == engine


def test_a_reset_sets_counts_back(make_server: MakeServer) -> None:
    server = make_server()
    with Wire(server.port, PATIENCE_SECONDS) as wire:
        for line in ("NOTHING", "PING", "CONFIG RESETSTAT"):
            wire.call(*line.split())
        told = parsed(wire.call("INFO", "all").text.decode())
    assert told["Stats"]["total_commands_processed"] == "1"
    assert told["Stats"]["total_error_replies"] == "0"
    assert list(told["Commandstats"]) == ["cmdstat_config|resetstat"]
    assert told["Errorstats"] == {}


def test_percentiles_are_those_asked_for(make_server: MakeServer) -> None:
    server = make_server(latency_tracking_info_percentiles="0 99.999 100")
    with Wire(server.port, PATIENCE_SECONDS) as wire:
        wire.call("PING")
        told = wire.call("INFO", "latencystats").text.decode()
        assert re.search(r"_ping:p0=[\d.]+,p99.999=[\d.]+,p100=[\d.]+\r\n", told)
        wire.call("CONFIG", "SET", "latency-tracking", "no")
        assert wire.call("INFO", "latencystats").text == b"# Latencystats\r\n"


def test_the_configuration_file_is_named(tmp_path: Path, make_server: MakeServer) -> None:
    file = tmp_path / "colonnade.conf"
    file.write_text("databases 3\n")
    command = (sys.executable, "-m", "resp_server", str(file))
    server = make_server(command=command)
    assert fields(server, "server")["config_file"] == str(file)


# Rates


def test_a_rate_is_the_average_of_its_samples() -> None:
    rate = Rate()
    rate.sample(100, 0.1)
    assert rate.per_second == 1000 / SAMPLES
    for reading in range(200, 1700, 100):
        rate.sample(reading, 0.1)
    assert rate.per_second == pytest.approx(1000)
    for _ in range(SAMPLES):
        rate.sample(1600, 0.1)
    assert rate.per_second == 0


def test_a_counter_set_back_gives_no_negative_rate() -> None:
    rate = Rate()
    rate.sample(1000, 0.1)
    rate.sample(5, 0.1)
    rate.sample(6, 0.0)
    assert rate.per_second == pytest.approx(10_000 / SAMPLES)


def test_the_sampler_goes_by_the_time_it_is_told() -> None:
    counters = Counters()
    sampler = Sampler(counters, 50.0)
    counters.commands_processed, counters.input_bytes = 30, 3000
    sampler.sample(50.5)
    assert sampler.commands.per_second == 60 / SAMPLES
    assert sampler.input_bytes.per_second == 6000 / SAMPLES
    assert sampler.output_bytes.per_second == 0


def test_the_peak_is_never_below_what_is_in_use() -> None:
    sampler = Sampler(Counters(), 0.0)
    high = sampler.peak_bytes + 1
    sampler.see(high)
    sampler.see(5)
    assert sampler.peak_bytes == high
