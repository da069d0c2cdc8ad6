"""The newest visible cell of a column, and what may be written upon it.

Pure functions: increments and compared puts look here before they become ordinary puts. Knows
nothing of datasets' names or of the group.
"""

from __future__ import annotations

from dataclasses import dataclass

from storage.embedded.ordered import Family
from storage.embedded.rules import NEVER, Rules, expiry_of
from storage.encoding import end_of, split_value, timestamp_of
from storage.errors import (
    IncrementOverflow,
    NewestCellInFuture,
    NotAnInteger,
    TimestampNotNewer,
)
from storage.integers import MAX_INTEGER, MIN_INTEGER, parse_integer


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest visible cell of a column. Times in Unix milliseconds."""

    timestamp: int
    expires_at: int | None
    value: bytes


def newest_of(view: Family, place: bytes, rules: Rules) -> Newest | None:
    """That of the column with this prefix, or None."""
    for key, stored in view.scan(end_of(place)).walk(place):
        if expiry_of(key, stored, rules.ttl_ms) >= rules.now:
            expires_at, value = split_value(stored)
            return Newest(timestamp_of(key), expires_at, value)
    return None


def incremented(newest: Newest | None, amount: int, now: int) -> tuple[int, int | None]:
    """The new integer and its expiry in ms, which stays that of the cell before."""
    value, expires_at = amount, None
    if newest is not None:
        old = parse_integer(newest.value)
        if old is None:
            raise NotAnInteger
        value, expires_at = old + amount, newest.expires_at
    if not MIN_INTEGER <= value <= MAX_INTEGER:
        raise IncrementOverflow
    if newest is not None and newest.timestamp > now:
        raise NewestCellInFuture
    return value, expires_at


def check_newer(
    newest: Newest | None, timestamp: int | None, expires_at: int | None, ttl_ms: int, now: int
) -> None:
    """TimestampNotNewer unless a cell of this timestamp would be its column's newest."""
    moment = now if timestamp is None else timestamp
    expires = min(NEVER if expires_at is None else expires_at, moment + ttl_ms if ttl_ms else NEVER)
    if expires < now:
        raise TimestampNotNewer
    if newest is None:
        return
    # A stamp of the clock is newer than all cells of its millisecond, a given timestamp is not.
    if newest.timestamp > moment or (newest.timestamp == moment and timestamp is not None):
        raise TimestampNotNewer
