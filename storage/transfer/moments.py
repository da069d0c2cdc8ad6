"""Moments as people and programs write them, as Unix milliseconds."""

from __future__ import annotations

import datetime

from storage.model import MAX_TIMESTAMP

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def milliseconds(moment: object) -> int:
    """From an integer, its digits, or an ISO 8601 time, which is UTC unless it says otherwise.

    ValueError with a reason for all else, and for what is not 0..2^63-1.
    """
    if isinstance(moment, bytes):
        moment = moment.decode("utf-8", "replace")
    if isinstance(moment, str):
        text = moment.strip()
        moment = int(text) if text.isascii() and text.isdigit() else _parsed(text)
    if isinstance(moment, bool) or not isinstance(moment, int):
        raise ValueError(f"{moment!r:.60} is not a moment")
    if not 0 <= moment <= MAX_TIMESTAMP:
        raise ValueError(f"{moment} is not a moment from 0 to 2^63-1 milliseconds")
    return moment


def _parsed(text: str) -> int:
    try:
        parsed = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r:.60} is neither milliseconds nor a time like 2026-01-31T12:00:00"
        ) from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=datetime.UTC)
    return (parsed - _EPOCH) // _MILLISECOND
