"""Looking through a chunk: for commands that are there as a whole, which need no hiredis, and for
what hiredis must not get, or not at once. Knows nothing of parsers.

_scanning.pyx is its compiled twin: every byte that comes is looked at here.
"""

from __future__ import annotations

import re

from storage.compiled import twin

_SUSPICIOUS = re.compile(
    rb"(?:\A|(?<=\n))(?:"
    rb"[*$](?:[0-9]{7}|[^0-9]|[0-9]{1,6}(?:[^0-9\r]|\r[^\n]))"
    rb"|\*[0-9]{1,6}\r\n[^$]"
    rb"|[-+:_,#!=(%~>|]"
    rb")|[*$%~>|][0-9]{7}"
)
_HUGE_COLLECTION = re.compile(rb"[*%~>|][0-9]{7}|\n[|~_]")


def find_suspicious_in_python(chunk: bytes, start: int = 0) -> int:
    """Where something stands that may be a header announcing too much, or of a type that no client
    sends, from `start` on; -1 if nowhere. It may as well be a part of somebody's data."""
    found = _SUSPICIOUS.search(chunk, start)
    return -1 if found is None else found.start()


def holds_huge_collection_in_python(chunk: bytes) -> bool:
    """Whether something in it may be a header for which hiredis makes room at once.

    Giving that up again takes seconds. It may stand behind any byte: hiredis passes over the two
    after a word without looking at them.
    """
    return _HUGE_COLLECTION.search(chunk) is not None


def take_whole_in_python(
    _chunk: bytes, _most: int, _most_bulk: int
) -> tuple[list[list[bytes]], int]:
    """Up to `most` commands at the beginning of a chunk, and how many bytes they take.

    Those only that are there to their last byte, written as clients write them, and with words of
    up to `most_bulk` bytes: whatever else stands there is for others to read. In Python hiredis is
    quicker, so this takes none.
    """
    return [], 0


take_whole = twin("resp_server._scanning", "take_whole", take_whole_in_python)
find_suspicious = twin("resp_server._scanning", "find_suspicious", find_suspicious_in_python)
holds_huge_collection = twin(
    "resp_server._scanning", "holds_huge_collection", holds_huge_collection_in_python
)
