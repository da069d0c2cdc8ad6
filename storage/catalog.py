"""The catalog: which datasets there are and their settings, as entries of the default family.

Pure functions from names and settings to bytes and back; the engine reads and writes them.

    clock           -> 8 bytes, big-endian: the millisecond the server's clock will not go below
    dataset:<name>  -> settings as JSON
    family d:<name> -> the cells; what is not A-Z a-z 0-9 _ - . in the name is percent-encoded
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from storage.errors import CorruptData, InvalidDatasetName
from storage.model import (
    MAX_TIMESTAMP,
    MAX_TTL_SECONDS,
    MAX_VERSIONS_LIMIT,
    DatasetSettings,
)

CLOCK_KEY = b"clock"
ENTRY_PREFIX = b"dataset:"
ENTRY_END = b"dataset;"
FAMILY_PREFIX = "d:"
_FIELDS = (
    ("maxversions", MAX_VERSIONS_LIMIT),
    ("ttl", MAX_TTL_SECONDS),
    ("created-ms", MAX_TIMESTAMP),
    ("last-compaction-ms", MAX_TIMESTAMP),
    ("last-compaction-removed-cells", MAX_TIMESTAMP),
)
"""The fields of an entry and the largest value of each."""
_NAME = re.compile(rb"[A-Za-z0-9_\-.:]{1,128}")


@dataclass(frozen=True, slots=True)
class Entry:
    """What the catalog says of one dataset. Times in Unix milliseconds, 0: never."""

    settings: DatasetSettings
    created_ms: int
    last_compaction_ms: int = 0
    last_compaction_removed_cells: int = 0

    def altered(self, settings: DatasetSettings) -> Entry:
        return replace(self, settings=settings)

    def compacted(self, now_ms: int, removed_cells: int) -> Entry:
        return replace(self, last_compaction_ms=now_ms, last_compaction_removed_cells=removed_cells)


def check_name(name: bytes) -> None:
    """InvalidDatasetName unless 1..128 characters of A-Z a-z 0-9 _ - . :"""
    if _NAME.fullmatch(name) is None:
        raise InvalidDatasetName


def entry_key(name: bytes) -> bytes:
    return ENTRY_PREFIX + name


def name_of_entry(key: bytes) -> bytes:
    return key[len(ENTRY_PREFIX) :]


def family_name(name: bytes) -> str:
    # quote() leaves "~" alone too, which no dataset name holds.
    return FAMILY_PREFIX + quote(name, safe="")


def name_of_family(family: str) -> bytes:
    return unquote(family.removeprefix(FAMILY_PREFIX)).encode()


def encode_entry(entry: Entry) -> bytes:
    return json.dumps(
        {
            "maxversions": entry.settings.max_versions,
            "ttl": entry.settings.ttl_seconds,
            "created-ms": entry.created_ms,
            "last-compaction-ms": entry.last_compaction_ms,
            "last-compaction-removed-cells": entry.last_compaction_removed_cells,
        }
    ).encode()


def decode_entry(name: bytes, stored: bytes) -> Entry:
    """CorruptData for anything but the JSON that encode_entry writes: it does not guess."""
    damaged = CorruptData(f"the catalog entry of '{name.decode('latin-1')}' is damaged")
    try:
        fields = json.loads(stored)
    except (ValueError, RecursionError):
        raise damaged from None
    if type(fields) is not dict:
        raise damaged
    numbers: list[int] = []
    for field, most in _FIELDS:
        number = fields.get(field)
        if type(number) is not int or not 0 <= number <= most:
            raise damaged
        numbers.append(number)
    max_versions, ttl_seconds, created_ms, compaction_ms, removed = numbers
    settings = DatasetSettings(max_versions, ttl_seconds)
    return Entry(settings, created_ms, compaction_ms, removed)


def encode_clock(milliseconds: int) -> bytes:
    return milliseconds.to_bytes(8, "big")


def decode_clock(stored: bytes | None) -> int:
    if stored is None:
        return 0
    if len(stored) != 8:
        raise CorruptData("the stored clock is damaged")
    return int.from_bytes(stored, "big")
