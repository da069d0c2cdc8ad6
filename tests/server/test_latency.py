"""LATENCY through the socket: spikes, histograms and what is said of them, in both protocols."""

from __future__ import annotations

import time

import pytest

from tests.compare.wire import Reply, Wire
from tests.harness import ServerProcess

PATIENCE_SECONDS = 10.0
SLOW_MS = 12
SLOW = ("DEBUG", "SLEEP", str(SLOW_MS / 1000))


@pytest.fixture(scope="module")
def own_directives() -> dict[str, object]:
    """What takes 10 ms is remembered."""
    return {"latency_monitor_threshold": 10, "enable_debug_command": "yes"}


@pytest.fixture
def wire(typed_wire: Wire) -> Wire:
    """A connection to a server with nothing in its memory."""
    typed_wire.call("LATENCY", "RESET")
    typed_wire.call("CONFIG", "RESETSTAT")
    return typed_wire


def text_of(reply: Reply) -> str:
    """Of a text for people: marked as such in RESP3."""
    assert reply.kind in ("bulk", "verbatim")
    return reply.text.decode().removeprefix("txt:")


def numbers(reply: Reply) -> list[int]:
    assert all(element.kind == "integer" for element in reply.elements)
    return [int(element.text) for element in reply.elements]


def test_a_spike_is_remembered(wire: Wire) -> None:
    wire.call(*SLOW)
    now = time.time()
    (latest,) = wire.call("LATENCY", "LATEST").elements
    assert latest.elements[0] == Reply("bulk", b"command")
    moment, newest, worst = (int(element.text) for element in latest.elements[1:])
    assert abs(moment - now) < PATIENCE_SECONDS
    assert SLOW_MS <= newest <= worst
    (sample,) = wire.call("LATENCY", "HISTORY", "command").elements
    assert numbers(sample) == [moment, newest]


def test_what_was_quick_is_not_remembered(wire: Wire) -> None:
    wire.call("PING")
    for line in ("LATEST", "HISTORY command", "HISTORY fast-command", "HISTORY nothing"):
        assert wire.call("LATENCY", *line.split()) == Reply("array", ())


def test_events_are_named_as_they_are_written(wire: Wire) -> None:
    wire.call(*SLOW)
    assert wire.call("LATENCY", "HISTORY", "COMMAND") == Reply("array", ())
    assert wire.call("LATENCY", "HISTORY", b"\xff") == Reply("array", ())


def test_spikes_are_forgotten_by_event(wire: Wire) -> None:
    wire.call(*SLOW)
    assert str(wire.call("LATENCY", "RESET", "nothing", "fast-command")) == ":0"
    assert str(wire.call("LATENCY", "RESET", "command", "command")) == ":1"
    assert wire.call("LATENCY", "LATEST") == Reply("array", ())
    assert str(wire.call("LATENCY", "RESET")) == ":0"


def test_a_graph_is_drawn_where_there_is_something_to_draw(wire: Wire) -> None:
    refusal = "-ERR No samples available for event 'command'"
    assert str(wire.call("LATENCY", "GRAPH", "command")) == refusal
    wire.call(*SLOW)
    headline, bar = text_of(wire.call("LATENCY", "GRAPH", "command")).splitlines()
    assert headline.startswith("command: 1 second with a spike")
    assert "|####" in bar


def test_the_doctor_reports_spikes(wire: Wire) -> None:
    assert "All is well" in text_of(wire.call("LATENCY", "DOCTOR"))
    wire.call(*SLOW)
    report = text_of(wire.call("LATENCY", "DOCTOR"))
    assert "command: 1 second with a spike" in report
    assert "SLOWLOG GET" in report


def histogram(wire: Wire, *names: str) -> dict[str, tuple[int, dict[int, int]]]:
    """Command -> (calls, bound in microseconds -> calls up to it)."""
    reply = wire.call("LATENCY", "HISTOGRAM", *names)
    found = {}
    for name, value in reply.pairs:
        keys, (calls, bounds) = zip(*value.pairs, strict=True)
        assert [key.text for key in keys] == [b"calls", b"histogram_usec"]
        assert {reply.kind, value.kind, bounds.kind} in ({"map"}, {"array"})
        found[name.text.decode()] = (
            int(calls.text),
            {int(bound.text): int(count.text) for bound, count in bounds.pairs},
        )
    return found


def test_a_histogram_counts_all_calls_of_a_command(wire: Wire) -> None:
    for _ in range(3):
        wire.call("ECHO", "x")
    wire.call(*SLOW)
    told = histogram(wire, "ECHO", "debug")
    calls, bounds = told["echo"]
    assert calls == 3
    assert list(bounds.values())[-1] == 3
    assert list(bounds.values()) == sorted(set(bounds.values()))
    ((bound, count),) = told["debug"][1].items()
    assert (bound >= 1000 * SLOW_MS, count) == (True, 1)


def test_a_histogram_of_a_container_is_of_its_subcommands(wire: Wire) -> None:
    for line in ("CLIENT ID", "CLIENT GETNAME", "PING"):
        wire.call(*line.split())
    assert list(histogram(wire, "client")) == ["client|id", "client|getname"]
    assert list(histogram(wire, "client|id")) == ["client|id"]
    assert histogram(wire, "nothing", "wcput") == {}
    assert {"config|resetstat", "client|id", "client|getname", "ping"} <= set(histogram(wire))


def test_refused_calls_have_no_histogram(wire: Wire) -> None:
    assert wire.call("ECHO").kind == "error"
    assert histogram(wire, "echo") == {}


def test_tracking_can_be_switched_off(wire: Wire) -> None:
    wire.call("PING")
    wire.call("CONFIG", "SET", "latency-tracking", "no")
    wire.call("PING")
    wire.call("CONFIG", "SET", "latency-tracking", "yes")
    assert histogram(wire, "ping")["ping"][0] == 1


def test_by_default_nothing_is_remembered(server: ServerProcess) -> None:
    with Wire(server.port, PATIENCE_SECONDS) as connected:
        assert connected.call("LATENCY", "LATEST") == Reply("array", ())
        report = text_of(connected.call("LATENCY", "DOCTOR"))
        assert "CONFIG SET latency-monitor-threshold" in report
