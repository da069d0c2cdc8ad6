"""What several commands of the command line read alike: moments, ranges of time, names."""

from __future__ import annotations

import argparse

from storage.model import MAX_TIMESTAMP, TimeRange
from storage.transfer.moments import milliseconds

_ENDS = {"-": 0, "+": MAX_TIMESTAMP}


def moment(text: str) -> int:
    """Unix milliseconds, an ISO 8601 time (UTC unless it says otherwise), `-` or `+`."""
    try:
        return _ENDS[text] if text in _ENDS else milliseconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def time_range(ends: list[int] | None) -> TimeRange:
    return TimeRange() if ends is None else TimeRange(*ends)


def name(text: str) -> bytes:
    """A row, a column or a dataset as it was typed, byte by byte."""
    return text.encode("utf-8", "surrogateescape")


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
