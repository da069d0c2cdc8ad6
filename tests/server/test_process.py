"""What the system allows the process, and what follows from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from resp_server import process, server
from resp_server.settings import Settings

MEGABYTE = 1024**2


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        ([], 8_000 * MEGABYTE),
        (["max\n"], 8_000 * MEGABYTE),
        ([str(512 * MEGABYTE) + "\n"], 512 * MEGABYTE),
        (["max", str(700 * MEGABYTE)], 700 * MEGABYTE),
        ([str(2**63 - 4096)], 8_000 * MEGABYTE),  # how the first version says that there is none
    ],
)
def test_a_container_may_allow_less_than_the_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: list[str], allowed: int
) -> None:
    files = [tmp_path / "missing"]
    for number, text in enumerate(limits):
        files.append(tmp_path / str(number))
        files[-1].write_text(text)
    monkeypatch.setattr(process, "_LIMITS", tuple(files))
    monkeypatch.setattr(process, "machine_memory_bytes", lambda: 8_000 * MEGABYTE)
    assert process.allowed_memory_bytes() == allowed


@pytest.mark.parametrize(
    ("configured", "allowed", "taken"),
    [
        (0, 0, 64),  # a system that does not tell
        (0, 256, 64),
        (0, 2_048, 256),
        (0, 100_000, 1_024),
        (5, 100_000, 5),
        (4_096, 2_048, 4_096),
    ],
)
def test_the_cache_of_blocks_suits_the_memory_unless_it_is_configured(
    monkeypatch: pytest.MonkeyPatch, configured: int, allowed: int, taken: int
) -> None:
    monkeypatch.setattr(server, "allowed_memory_bytes", lambda: allowed * MEGABYTE)
    settings = replace(Settings(), rocksdb_block_cache_size=configured * MEGABYTE)
    assert server.block_cache_bytes(settings) == taken * MEGABYTE
    assert server.rocks_settings(settings).block_cache_bytes == taken * MEGABYTE
