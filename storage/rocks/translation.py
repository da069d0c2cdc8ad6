"""What rocksdict says, as errors of ours. Knows no database.

rocksdict raises plain exceptions whose text alone tells what happened (trap 21).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rocksdict import DbClosedError

from storage.errors import CorruptData, StoreFailure, StoreStalled


class _Gone:
    """Stands where an object of rocksdict was: every use of it is a StoreFailure.

    rocksdict refuses it as a handle, while None would mean the default family.
    """

    def __getattr__(self, name: str) -> Any:
        raise StoreFailure("the store is closed")


GONE: Any = _Gone()


@contextmanager
def translated() -> Iterator[None]:
    """Turn rocksdict's plain exceptions into ours; anything else is a defect and goes through."""
    try:
        yield
    except Exception as error:
        raise translation(error) from error


def translation(error: Exception) -> Exception:
    if type(error) is not Exception and not isinstance(error, DbClosedError):
        return error
    text = plain(error)
    if text.startswith("Result incomplete") and "stall" in text.lower():
        return StoreStalled(text)
    if text.startswith("Corruption"):
        return CorruptData(text)
    return StoreFailure(text)


_FOLDERS = re.compile(r"/[^\n]*?/(?=\d{6,}\.\w)")
"""What stands before the name of a file of RocksDB: clients are told the file, not where it is."""
_SUSPICION = re.compile(r"\s*The file [^\n]*MANIFEST-\d+ may be corrupted\.")
"""What RocksDB adds about the list of files when it is one of the files that is damaged."""


def plain(error: Exception) -> str:
    """RocksDB's text on one line, without what only misleads those who read it."""
    return " ".join(_FOLDERS.sub("", _SUSPICION.sub("", str(error))).split())
