"""A server on a clock that the test holds, for examples that do not page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.against_model.steered import Limits, SteeredServer


@pytest.fixture(scope="module")
def unhurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SteeredServer]:
    """One whose pages hold whatever a test reads."""
    limits = Limits(columns=1_000, rows=1_000, cells=10_000)
    server = SteeredServer(tmp_path_factory.mktemp("unhurried"), limits)
    yield server
    server.process.close()
