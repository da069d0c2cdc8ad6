"""Fixtures: one server for all tests that need no special one, and a factory for the others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.harness import MakeServer, ServerProcess

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The server most tests share: default settings. Use a dataset of your own in it."""
    running = ServerProcess(tmp_path_factory.mktemp("shared") / "data")
    running.start()
    yield running
    running.close()


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[MakeServer]:
    """Starts servers with directives of the test's own; all are gone when the test ends."""
    started: list[ServerProcess] = []

    def make(**directives: object) -> ServerProcess:
        running = ServerProcess(tmp_path / f"data{len(started)}", **directives)  # type: ignore[arg-type]
        started.append(running)
        return running.start()

    yield make
    for running in started:
        running.close()


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request: pytest.FixtureRequest) -> int:
    """Once RESP2 and once RESP3."""
    found: int = request.param
    return found


@pytest.fixture
def client(server: ServerProcess, protocol: int) -> Iterator[redis.Redis]:
    """A redis-py client on the shared server, once in RESP2 and once in RESP3."""
    with server.client(protocol=protocol) as connected:
        yield connected


@pytest.fixture
def dataset() -> str:
    """A dataset name that no other test uses."""
    return f"test{next(_numbers)}"
