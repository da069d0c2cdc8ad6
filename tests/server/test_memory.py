"""MEMORY through the socket: by Redis's names and types, with figures that are true."""

from __future__ import annotations

import pytest

from tests.compare.servers import RedisProcess, redis_is_installed
from tests.compare.wire import Reply, Wire
from tests.harness import ServerProcess

PATIENCE_SECONDS = 10.0


@pytest.fixture
def wire(typed_wire: Wire) -> Wire:
    return typed_wire


def is_null(reply: Reply) -> bool:
    return reply.kind in ("null", "null bulk")


def test_a_dataset_uses_more_memory_when_more_is_written(wire: Wire, dataset: str) -> None:
    assert is_null(wire.call("MEMORY", "USAGE", dataset))
    wire.call("WCPUT", dataset, "row", "*", "column", "v" * 1000)
    before = wire.call("MEMORY", "USAGE", dataset)
    assert before.kind == "integer"
    assert int(before.text) > 1000
    wire.call("WCPUT", dataset, "row", "*", "column", "v" * 100_000)
    assert int(wire.call("MEMORY", "USAGE", dataset).text) > int(before.text) + 100_000


def test_a_dataset_there_is_not_is_null(wire: Wire) -> None:
    for name in ("nosuch", "", "no such", b"\xff", "x" * 1000):
        assert is_null(wire.call("MEMORY", "USAGE", name))


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ("SAMPLES 0", "a number"),
        ("samples 5", "a number"),
        ("SAMPLES 1 SAMPLES 2", "a number"),
        ("SAMPLES -1", "-ERR syntax error"),
        ("SAMPLES", "-ERR syntax error"),
        ("SAMPLES x", "-ERR value is not an integer or out of range"),
        ("5", "-ERR syntax error"),
    ],
)
def test_samples_are_taken_as_redis_takes_them(
    wire: Wire, dataset: str, options: str, answer: str
) -> None:
    wire.call("WCPUT", dataset, "r", "*", "c", "v")
    reply = wire.call("MEMORY", "USAGE", dataset, *options.split())
    assert reply.kind == "integer" if answer == "a number" else str(reply) == answer


@pytest.mark.skipif(not redis_is_installed(), reason="redis-server is not installed")
@pytest.mark.parametrize("protocol", [2, 3])
def test_stats_have_the_names_and_types_of_redis(
    tmp_path_factory: pytest.TempPathFactory, server: ServerProcess, protocol: int
) -> None:
    reference = RedisProcess(tmp_path_factory.mktemp("reference"), {})
    told = []
    try:
        reference.start()
        for port in (reference.port, server.port):
            with Wire(port, PATIENCE_SECONDS) as connected:
                connected.call("HELLO", str(protocol))
                stats = connected.call("MEMORY", "STATS")
                told.append((stats.kind, [(name, value.kind) for name, value in stats.pairs]))
    finally:
        reference.close()
    assert told[0] == told[1]


def test_stats_add_up(wire: Wire) -> None:
    told = {name.text: float(value.text) for name, value in wire.call("MEMORY", "STATS").pairs}
    used = told[b"total.allocated"]
    assert 2**20 < used <= told[b"peak.allocated"]
    assert told[b"overhead.total"] + told[b"dataset.bytes"] == used
    assert used + told[b"fragmentation.bytes"] == pytest.approx(used * told[b"fragmentation"])
    assert 0 <= told[b"dataset.percentage"] <= 100
    assert 0 < told[b"peak.percentage"] <= 100


@pytest.mark.parametrize("subcommand", ["DOCTOR", "MALLOC-STATS"])
def test_reports_are_texts_for_people(wire: Wire, subcommand: str) -> None:
    reply = wire.call("MEMORY", subcommand)
    assert reply.kind in ("bulk", "verbatim")
    assert reply.text.endswith(b"\n")


def test_memory_is_given_back(wire: Wire) -> None:
    assert str(wire.call("MEMORY", "PURGE")) == "+OK"


def test_another_subcommand_is_unknown(wire: Wire) -> None:
    refusal = "-ERR unknown subcommand 'nothing'. Try MEMORY HELP."
    assert str(wire.call("MEMORY", "nothing")) == refusal
