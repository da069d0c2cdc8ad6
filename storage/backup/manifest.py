"""A backup's list of files, and how it is written: JSON with a checksum of its own.

Pure functions of text. A manifest that was cut short or changed is DamagedBackup, and so is one
that names files outside of the directory that it describes.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from storage.backup.failures import DamagedBackup

MANIFEST_VERSION = 1
"""Do not change without a way to read what older releases wrote."""

_NAME = re.compile(r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{6}")
_PATH = re.compile(r"FORMAT|store/[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a data directory."""

    path: str
    """Below the directory: FORMAT, or store/ and a name."""
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One backup."""

    name: str
    created_ms: int
    """When the checkpoint was made: the backup holds what was written until then."""
    colonnade: str
    """The release that made it."""
    format: int
    """That of the store, as in FORMAT."""
    source: str
    """Where it is from, for people."""
    files: tuple[StoredFile, ...]

    @property
    def total_bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def hashes(self) -> dict[str, int]:
        """Every object that is needed, with its size."""
        return {file.sha256: file.bytes for file in self.files}


def new_name(created_ms: int) -> str:
    """`20240131T235959.123Z-1a2b3c`: in order of time, and no other backup's, whoever makes it."""
    seconds, milliseconds = divmod(created_ms, 1000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y%m%dT%H%M%S}.{milliseconds:03}Z-{secrets.token_hex(3)}"


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def encode(manifest: Manifest) -> bytes:
    fields = {"manifest": MANIFEST_VERSION, **asdict(manifest)}
    return json.dumps({**fields, "checksum": _checksum(fields)}, indent=1).encode() + b"\n"


def decode(name: str, data: bytes) -> Manifest:
    """DamagedBackup unless it is what encode() wrote for the backup of that name."""
    try:
        fields = json.loads(data)
        version, checksum = fields.pop("manifest"), fields.pop("checksum")
        if version != MANIFEST_VERSION:
            raise DamagedBackup(
                f"backup {name}: its manifest has version {version}, this release reads version"
                f" {MANIFEST_VERSION}"
            )
        if checksum != _checksum({"manifest": version, **fields}):
            raise DamagedBackup(f"backup {name}: its manifest is damaged")
        files = tuple(StoredFile(**file) for file in fields.pop("files"))
        manifest = Manifest(files=files, **fields)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise DamagedBackup(f"backup {name}: its manifest is damaged") from error
    _check(name, manifest)
    return manifest


def _check(name: str, manifest: Manifest) -> None:
    """The checksum keeps accidents out; this keeps out what somebody made to do harm."""
    paths = {file.path for file in manifest.files}
    sound = all(
        _PATH.fullmatch(file.path) and _HASH.fullmatch(file.sha256) and file.bytes >= 0
        for file in manifest.files
    )
    if not sound or manifest.name != name or len(paths) != len(manifest.files):
        raise DamagedBackup(f"backup {name}: its manifest names what no backup has")


def _checksum(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
