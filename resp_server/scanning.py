"""Looking through a chunk for what hiredis must not get, or not at once. Knows nothing of parsers.

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


find_suspicious = twin("resp_server._scanning", "find_suspicious", find_suspicious_in_python)
holds_huge_collection = twin(
    "resp_server._scanning", "holds_huge_collection", holds_huge_collection_in_python
)
