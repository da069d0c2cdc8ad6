"""The data directory: what lies in it, and the check of its format before RocksDB is let near.

    <dir>/FORMAT    a text file, the format's number      <dir>/store/    one RocksDB database

Every opening of a RocksDB database writes to its directory, so a store of a newer format is
recognised by FORMAT alone and stays as it is. Knows nothing of what the store holds.
"""

from __future__ import annotations

import os
from pathlib import Path

from storage.encoding import FORMAT_VERSION
from storage.errors import CannotOpen

FORMAT_FILE = "FORMAT"
STORE_FOLDER = "store"
MAX_FORMAT_DIGITS = 18


def prepare(directory: Path) -> Path:
    """Create or check the directory; return where the database goes. CannotOpen if unusable."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_format(directory)
    except OSError as error:
        raise CannotOpen(f"cannot use the data directory {directory}: {error.strerror}") from error
    return directory / STORE_FOLDER


def _check_format(directory: Path) -> None:
    file = directory / FORMAT_FILE
    if not file.exists():
        if (directory / STORE_FOLDER).exists():
            raise CannotOpen(f"{directory} holds a store but no {FORMAT_FILE} file: restore it")
        _write_format(file)
        return
    text = file.read_text(encoding="ascii", errors="replace").strip()
    if not text.isdecimal() or len(text) > MAX_FORMAT_DIGITS:
        raise CannotOpen(f"{file} does not hold a number: this is no Colonnade data directory")
    if int(text) != FORMAT_VERSION:
        raise CannotOpen(
            f"the store in {directory} has format {text}, this release reads format"
            f" {FORMAT_VERSION}: use the release that wrote it, or a later one"
        )


def _write_format(file: Path) -> None:
    """Write it whole or not at all, and to the disk: everything else relies on it."""
    draft = file.with_suffix(".draft")
    with draft.open("w", encoding="ascii") as handle:
        handle.write(f"{FORMAT_VERSION}\n")
        handle.flush()
        os.fsync(handle.fileno())
    draft.rename(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
