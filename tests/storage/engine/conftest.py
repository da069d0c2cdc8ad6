"""An engine over each of the stores."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.opening import open_engine, open_memory_engine
from tests.storage.engine.store import SMALL, Store


@pytest.fixture(params=["rocks", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    engine = (
        open_engine(tmp_path / "data", SMALL) if request.param == "rocks" else open_memory_engine()
    )
    with asyncio.Runner() as runner:
        yield Store(engine, runner)
        runner.run(engine.close())
