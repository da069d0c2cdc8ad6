"""Tables of sorted cells in files, which a running database takes over as they are.

Written by processes of their own, beside the server. Keys come in strictly ascending order, and
both are bytes in raw mode: rocksdict's traps 10 and 11 (tests/storage/test_rocksdict_traps.py).
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rocksdict import (
    DBCompressionType,
    IngestExternalFileOptions,
    Options,
    Rdict,
    SstFileWriter,
)

from storage.errors import StoreFailure

TABLE_BYTES = 128 * 1024 * 1024
"""Keys and values of one file that a merge writes."""

Pairs = Iterable[tuple[bytes, bytes]]


def write_table(path: Path, pairs: Pairs) -> None:
    """StoreFailure where the keys do not ascend, there are none, or the disk is full."""
    writer = SstFileWriter(_options())
    try:
        writer.open(str(path))
        for key, value in pairs:
            writer[key] = value
        writer.finish()
    except Exception as error:
        raise _failure(path, error) from error


def merge_tables(
    tables: Sequence[Path], folder: Path, start: bytes, end: bytes | None
) -> list[Path]:
    """New tables in `folder`, that do not overlap, with the keys of these in [start, end).

    Of a key in several of them the last table's value is taken. `folder` is a new one.
    """
    base = folder / "merging"
    base.mkdir(parents=True)
    options = _options()
    options.create_if_missing(True)
    options.set_disable_auto_compactions(True)
    moving = IngestExternalFileOptions()
    moving.set_move_files(True)
    try:
        database = Rdict(str(base / "store"), options, {"default": options})
        database.ingest_external_file([str(_linked(table, base)) for table in tables], moving)
        merged = list(write_tables(_walk(database, start, end), folder))
        database.close()
    except StoreFailure:
        raise
    except Exception as error:
        raise _failure(base, error) from error
    shutil.rmtree(base, ignore_errors=True)
    return merged


def _linked(table: Path, folder: Path) -> Path:
    """A second name of a file, or a copy where a file can have but one."""
    other = folder / table.name
    try:
        other.hardlink_to(table)
    except OSError:
        shutil.copyfile(table, other)
    return other


def _walk(database: Rdict, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
    iterator = database.iter()
    iterator.seek(start)
    while iterator.valid():
        key = iterator.key()
        if end is not None and key >= end:
            return
        yield key, iterator.value()
        iterator.next()
    iterator.status()


def write_tables(pairs: Iterator[tuple[bytes, bytes]], folder: Path) -> Iterator[Path]:
    """Tables of pairs that ascend, as they come: none of them overlaps another."""
    for number, first in enumerate(pairs):
        path = folder / f"{number:06d}.sst"
        write_table(path, _bounded(first, pairs))
        yield path


def _bounded(
    first: tuple[bytes, bytes], pairs: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes]]:
    """The first and those after it, until they fill a table."""
    left = TABLE_BYTES
    for pair in itertools.chain((first,), pairs):
        yield pair
        left -= len(pair[0]) + len(pair[1])
        if left <= 0:
            return


def _options() -> Options:
    options = Options(raw_mode=True)
    options.set_compression_type(DBCompressionType.lz4())
    return options


def _failure(path: Path, error: Exception) -> StoreFailure:
    if isinstance(error, StoreFailure):
        return error
    return StoreFailure(f"{path.name}: {' '.join(str(error).split())}")
