"""Compaction by the clock, and what WCDATASET tells of it, through the socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, cast
from unittest import mock

from resp_server import scheduling
from resp_server.compactions import Compactions
from resp_server.settings import Settings
from tests.harness import ServerProcess, until
from tests.wire import Wire

MakeServer = Callable[..., ServerProcess]


def info(wire: Wire) -> dict[bytes, Any]:
    flat = wire.call("WCDATASET", "INFO", "d")
    return dict(zip(flat[::2], flat[1::2], strict=True))


def explained(wire: Wire, *words: str | int) -> dict[bytes, int]:
    flat = wire.call("WCDATASET", "EXPLAIN", "d", *words)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def fill(wire: Wire) -> None:
    wire.call("WCDATASET", "CREATE", "d", "MAXVERSIONS", 3)
    for timestamp in range(1, 11):
        wire.call("WCPUT", "d", "r", timestamp, "c", "v")


def test_explain_tells_what_compact_then_removes(make_server: MakeServer) -> None:
    with Wire(make_server()) as wire:
        fill(wire)
        before = wire.call("WCGET", "d", "r", "VERSIONS", "ALL")
        found = explained(wire)
        assert (found[b"cells"], found[b"surplus-cells"], found[b"expired-cells"]) == (10, 7, 0)
        assert 0 < found[b"surplus-bytes"] < found[b"bytes"]
        assert explained(wire, "MAXVERSIONS", 0)[b"surplus-cells"] == 0
        assert explained(wire, "TTL", 1, "MAXVERSIONS", 5)[b"expired-cells"] == 10
        assert info(wire)[b"maxversions"] == 3, "nothing was altered"
        assert wire.call("WCDATASET", "COMPACT", "d") == b"OK"
        until(lambda: info(wire)[b"last-compaction-ms"] > 0)
        assert info(wire)[b"last-compaction-removed-cells"] == 7
        assert info(wire)[b"compaction"] == b"idle"
        assert explained(wire)[b"cells"] == 3
        assert wire.call("WCGET", "d", "r", "VERSIONS", "ALL") == before


def test_explain_refuses_what_makes_no_sense(make_server: MakeServer) -> None:
    with Wire(make_server()) as wire:
        fill(wire)
        for words, text in (
            (("nosuch",), "NODATASET no such dataset 'nosuch'"),
            (("d", "TTL"), "ERR syntax error"),
            (("d", "TTL", "x"), "ERR value is not an integer or out of range"),
            (("d", "FOO"), "ERR syntax error"),
        ):
            assert str(wire.call("WCDATASET", "EXPLAIN", *words)) == text
        assert wire.call("MULTI") == b"OK"
        refused = wire.call("WCDATASET", "EXPLAIN", "d")
        assert str(refused) == "ERR Command not allowed inside a transaction"


def test_the_schedules_may_change_while_it_runs(make_server: MakeServer) -> None:
    with Wire(make_server()) as wire:
        for name, default in (
            ("wc-compaction-cron", b"0 3 * * *"),
            ("wc-compaction-checker-cron", b"*/30 0-6 * * *"),
        ):
            assert wire.call("CONFIG", "GET", name) == [name.encode(), default]
            assert wire.call("CONFIG", "SET", name, "") == b"OK"
            assert wire.call("CONFIG", "SET", name, "* * * * *") == b"OK"
            assert name in str(wire.call("CONFIG", "SET", name, "61 * * * *"))
            assert wire.call("CONFIG", "GET", name) == [name.encode(), b"* * * * *"]


def test_a_schedule_calls_what_it_is_to_call() -> None:
    """The engine's side of it is in tests/storage; the clock's in the tests of scheduling."""

    class Engine:
        def __init__(self) -> None:
            self.asked: list[bytes] = []

        def dataset_names(self) -> list[bytes]:
            return [b"a", b"b"]

        async def compact_dataset(self, name: bytes) -> None:
            self.asked.append(name)

        async def compact_worn(self) -> list[bytes]:
            self.asked.append(b"worn?")
            return []

    async def scenario() -> list[bytes]:
        engine = Engine()
        settings = Settings()
        compactions = Compactions(settings, cast(Any, engine))
        asked_before: set[str] = set()

        def once_now(expression: str, now: datetime) -> datetime:
            later = expression in asked_before
            asked_before.add(expression)
            return now + timedelta(hours=1) if later else now

        with mock.patch.object(scheduling, "next_moment", once_now):
            tasks = [asyncio.create_task(each.run()) for each in compactions.schedules]
            while len(engine.asked) < 3:
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
        return engine.asked

    assert sorted(asyncio.run(scenario())) == [b"a", b"b", b"worn?"]
