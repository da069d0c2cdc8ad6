"""Checkpoints: a copy of all that is written, which stays as it is and opens like any store."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from storage.embedded.engine import EmbeddedEngine
from storage.errors import StoreFailure
from storage.model import EVERYTHING, DatasetSettings, PageLimits, PageRequest
from storage.opening import open_engine, open_memory_engine, open_reader


def at_once(call: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(call)


def put(engine: EmbeddedEngine, timestamp: int, value: bytes) -> None:
    at_once(engine.put(b"d", [(b"r", timestamp, b"c", value)], None, DatasetSettings()))


def shown(engine: EmbeddedEngine) -> list[bytes]:
    request = PageRequest(PageLimits(100, 100, 100, 10_000, 100))
    page = at_once(engine.read_row(b"d", b"r", EVERYTHING, request))
    return [value for _, cells in page.columns for _, value in cells]


def test_it_holds_what_was_written_and_no_more(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "data")
    put(engine, 1, b"committed")
    engine.commit()
    put(engine, 2, b"in the group")
    engine.checkpoint(tmp_path / "copy")
    put(engine, 3, b"later")
    engine.commit()
    reader = open_reader(tmp_path / "copy")
    assert shown(reader) == [b"in the group", b"committed"]
    assert shown(engine) == [b"later", b"in the group", b"committed"]
    at_once(reader.close())
    at_once(engine.close())
    copy = open_engine(tmp_path / "copy")
    assert shown(copy) == [b"in the group", b"committed"]
    put(copy, 4, b"of the copy alone")
    at_once(copy.close())
    original = open_engine(tmp_path / "data")
    assert shown(original) == [b"later", b"in the group", b"committed"]
    at_once(original.close())


def test_a_place_that_is_taken_is_left_as_it_is(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "data")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "mine").touch()
    with pytest.raises(StoreFailure, match="File exists"):
        engine.checkpoint(tmp_path / "copy")
    assert (tmp_path / "copy" / "mine").exists()
    at_once(engine.close())


def test_memory_has_none(tmp_path: Path) -> None:
    engine = open_memory_engine()
    with pytest.raises(StoreFailure, match="memory"):
        engine.checkpoint(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    at_once(engine.close())
