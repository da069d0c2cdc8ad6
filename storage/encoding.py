"""Bytes on disk: keys and values of cells, as pure functions in pairs.

Imports nothing but the standard library, the model's limits and the errors; knows no database.
docs/disk-format.md is the record of this grammar and its examples are test cases.

    key   := escape(row) 00 00 escape(column) 00 00 ~timestamp(8) ~sequence(2)
    value := 00 payload | 01 expires-at(8) payload

`escape` turns every byte 00 into 00 01, so that with the terminator 00 00 any bytes can be a name
and byte order is kept. `~timestamp` is 2^64-1 minus the milliseconds, `~sequence` 65535 minus the
sequence, both big-endian: the newest cell of a column comes first. Every number here is a promise
to data already written: do not change.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence

from storage.errors import ColumnNameTooLong, CorruptData, RowKeyTooLong
from storage.model import MAX_NAME_BYTES, MAX_TIMESTAMP, NameRange

FORMAT_VERSION = 1
"""The content of <dir>/FORMAT. Do not change without a way to read what older releases wrote."""

TOP_TIMESTAMP = 2**64 - 1
TOP_SEQUENCE = 65_535
SUFFIX_BYTES = 10
"""Length of ~timestamp and ~sequence together."""
TERMINATOR_BYTES = 2

PLAIN = b"\x00"
EXPIRING = b"\x01"
EXPIRING_HEADER_BYTES = 9

AFTER_ALL_KEYS = b"\xff" * (MAX_NAME_BYTES + 1)
"""Sorts after every key of a cell: no row begins with so many bytes FF."""

_SUFFIX = struct.Struct(">QH")
_MILLISECONDS = struct.Struct(">Q")
_INVERTED = bytes(range(255, -1, -1))


def escape(name: bytes) -> bytes:
    return name.replace(b"\x00", b"\x00\x01")


def unescape(escaped: bytes) -> bytes:
    return escaped.replace(b"\x00\x01", b"\x00")


def row_prefix(row: bytes) -> bytes:
    """What every key of a row begins with. RowKeyTooLong over 65,535 bytes."""
    if len(row) > MAX_NAME_BYTES:
        raise RowKeyTooLong
    return row.replace(b"\x00", b"\x00\x01") + b"\x00\x00"


def column_prefix(prefix: bytes, column: bytes) -> bytes:
    """What every key of a column begins with, given its row's prefix."""
    if len(column) > MAX_NAME_BYTES:
        raise ColumnNameTooLong
    return prefix + column.replace(b"\x00", b"\x00\x01") + b"\x00\x00"


def end_of(prefix: bytes) -> bytes:
    """The first key after all that begin with a row's or a column's prefix."""
    return prefix[:-1] + b"\x01"


def cell_suffix(timestamp: int, sequence: int) -> bytes:
    return _SUFFIX.pack(TOP_TIMESTAMP - timestamp, TOP_SEQUENCE - sequence)


def timestamp_of(key: bytes) -> int:
    return TOP_TIMESTAMP - int.from_bytes(key[-10:-2], "big")


def stamp_of(key: bytes) -> tuple[int, int]:
    """(timestamp, sequence) of a key."""
    timestamp, sequence = _SUFFIX.unpack_from(key, len(key) - SUFFIX_BYTES)
    return TOP_TIMESTAMP - timestamp, TOP_SEQUENCE - sequence


def first_at(prefix: bytes, timestamp: int) -> bytes:
    """Where, in a column, the cells of this millisecond or older begin."""
    return prefix + _MILLISECONDS.pack(TOP_TIMESTAMP - timestamp)


def after(prefix: bytes, timestamp: int) -> bytes:
    """Where, in a column, the cells older than this millisecond begin."""
    return prefix + _MILLISECONDS.pack(TOP_TIMESTAMP - timestamp) + b"\xff\xff\x00"


def row_prefix_of(key: bytes) -> bytes:
    """The row prefix of a cell's key: an escaped name never holds 00 00, so the first ends it."""
    end = key.find(b"\x00\x00")
    if end < 0:
        raise CorruptData(f"a key without a row: {key[:64].hex()}")
    return key[: end + 2]


def row_of(prefix: bytes) -> bytes:
    return unescape(prefix[:-2])


def split_key(key: bytes) -> tuple[bytes, bytes, int, int]:
    """(row, column, timestamp, sequence) of a key; CorruptData if it is no cell's key."""
    prefix = row_prefix_of(key)
    column_part = key[len(prefix) : -SUFFIX_BYTES]
    if len(key) < len(prefix) + 2 + SUFFIX_BYTES or column_part.find(b"\x00\x00") != (
        len(column_part) - 2
    ):
        raise CorruptData(f"a key of no known form: {key[:64].hex()}")
    row, column = row_of(prefix), unescape(column_part[:-2])
    if escape(row) != prefix[:-2] or escape(column) != column_part[:-2]:
        raise CorruptData(f"a key with a badly escaped name: {key[:64].hex()}")
    timestamp, sequence = stamp_of(key)
    if timestamp > MAX_TIMESTAMP:
        raise CorruptData(f"a key with an impossible timestamp: {key[:64].hex()}")
    return row, column, timestamp, sequence


def cell_key(row: bytes, column: bytes, timestamp: int, sequence: int) -> bytes:
    return column_prefix(row_prefix(row), column) + cell_suffix(timestamp, sequence)


def value_header(expires_at: int | None) -> bytes:
    """What stands before the payload; `expires_at` in Unix milliseconds."""
    return PLAIN if expires_at is None else EXPIRING + _MILLISECONDS.pack(expires_at)


def split_value(stored: bytes) -> tuple[int | None, bytes]:
    """(expires-at in ms or None, payload); CorruptData for flags this release does not know."""
    flags = stored[:1]
    if flags == PLAIN:
        return None, stored[1:]
    if flags == EXPIRING and len(stored) >= EXPIRING_HEADER_BYTES:
        return int.from_bytes(stored[1:9], "big"), stored[9:]
    raise CorruptData(f"a value with unknown flags: {stored[:16].hex()}")


# Many cells at once, side by side: the same as one by one, for those who have millions.


def cell_keys(
    rows: Sequence[bytes],
    columns: Sequence[bytes],
    timestamps: Iterable[int],
    sequences: Iterable[int],
) -> list[bytes]:
    """cell_key() of each."""
    if max(map(len, rows), default=0) > MAX_NAME_BYTES:
        raise RowKeyTooLong
    if max(map(len, columns), default=0) > MAX_NAME_BYTES:
        raise ColumnNameTooLong
    pack = _SUFFIX.pack
    suffixes = [
        pack(TOP_TIMESTAMP - timestamp, TOP_SEQUENCE - sequence)
        for timestamp, sequence in zip(timestamps, sequences, strict=True)
    ]
    names = zip(_escaped(rows), _escaped(columns), suffixes, strict=True)
    return list(map(b"\x00\x00".join, names))


def _escaped(names: Sequence[bytes]) -> Sequence[bytes]:
    return list(map(escape, names)) if b"\x00" in b"".join(names) else names


def split_names(keys: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The rows and the columns that split_key() finds."""
    ends = [key.find(b"\x00\x00") for key in keys]
    rows = [key[:end] for key, end in zip(keys, ends, strict=True)]
    columns = [key[end + 2 : -2 - SUFFIX_BYTES] for key, end in zip(keys, ends, strict=True)]
    if (
        all([len(key) - end >= 4 + SUFFIX_BYTES for key, end in zip(keys, ends, strict=True)])
        and {key[-2 - SUFFIX_BYTES : -SUFFIX_BYTES] for key in keys} <= {b"\x00\x00"}
        and b"\x00" not in b"".join(rows)
        and b"\x00" not in b"".join(columns)
    ):
        return rows, columns
    # There are names with escaped bytes, or something is wrong with a key.
    split = [split_key(key) for key in keys]
    return [row for row, *_ in split], [column for _, column, *_ in split]


def stamps_of(keys: Sequence[bytes]) -> tuple[Sequence[int], Sequence[int]]:
    """The timestamps and the sequences; CorruptData for a timestamp that no key can have."""
    times = _inverted("q", b"".join([key[-SUFFIX_BYTES:-2] for key in keys]))
    if min(times, default=0) < 0:
        raise CorruptData("a key with an impossible timestamp")
    return times, _inverted("H", b"".join([key[-2:] for key in keys]))


def _inverted(code: str, data: bytes) -> Sequence[int]:
    """Numbers whose every bit is the other way round, big-endian."""
    found = array(code, data.translate(_INVERTED))
    if sys.byteorder == "little":
        found.byteswap()
    return found


def stored_values(payloads: Iterable[bytes], expiries: Sequence[int | None]) -> list[bytes]:
    """The header and the payload of each."""
    if expiries.count(None) == len(expiries):
        return list(map(PLAIN.__add__, payloads))
    pairs = zip(payloads, expiries, strict=True)
    return [value_header(expires_at) + payload for payload, expires_at in pairs]


def prefix_end(prefix: bytes) -> bytes | None:
    """The first byte string after all that begin with `prefix`; None when there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def name_bounds(base: bytes, end: bytes | None, names: NameRange) -> tuple[bytes, bytes | None]:
    """[start, end) of the keys below `base` whose next name lies in `names`.

    `end` is where the keys below `base` end (None: nowhere). The range is empty when start >= end.
    """
    start = base
    if names.start is not None:
        start = max(start, base + escape(names.start))
    if names.stop is not None:
        end = _earlier(end, base + escape(names.stop))
    if names.prefix is not None:
        wanted = base + escape(names.prefix)
        start = max(start, wanted)
        end = _earlier(end, prefix_end(wanted))
    return start, end


def _earlier(one: bytes | None, other: bytes | None) -> bytes | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
