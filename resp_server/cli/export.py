"""colonnade export: the visible cells of a dataset into Parquet files.

Reads a checkpoint that the server makes for it, or the directory of a server that is stopped, in a
process of its own. Knows nothing of Parquet: storage/transfer/ does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from resp_server.cli.link import Refused
from resp_server.cli.progress import counted
from resp_server.cli.server import add_server_options, linked
from resp_server.cli.words import moment, name, positive, time_range
from storage.embedded.engine import EmbeddedEngine
from storage.model import NameRange
from storage.opening import open_reader, reading

_ROWS_PER_FILE = 10_000_000


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "export",
        help="write a dataset into Parquet files",
        description="Writes the visible cells of a dataset, as of now, into Parquet files."
        " The files get their names once all of them are whole.",
    )
    parser.add_argument("dataset", type=name, metavar="DATASET")
    parser.add_argument("url", metavar="URL", help="a folder, or a URL that fsspec understands")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--dir", type=Path, help="the data directory of a server that is stopped")
    add_server_options(parser, source)
    parser.add_argument(
        "--range",
        nargs=2,
        type=moment,
        metavar=("FROM", "TO"),
        help="timestamps, ends included: milliseconds, an ISO 8601 time, - or +",
    )
    parser.add_argument(
        "--versions", type=_versions, metavar="N", help="newest cells of a column, or all (default)"
    )
    parser.add_argument("--where-row-prefix", type=name, metavar="PREFIX")
    parser.add_argument(
        "--wide", type=_columns, metavar="C1,C2,...", help="a row each, with these columns' newest"
    )
    parser.add_argument("--rows-per-file", type=positive, default=_ROWS_PER_FILE, metavar="N")
    parser.set_defaults(run=run, interrupted="nothing is exported")


def _versions(text: str) -> int | None:
    return None if text.lower() == "all" else positive(text)


def _columns(text: str) -> tuple[bytes, ...]:
    return tuple(name(word) for word in text.split(","))


def run(given: argparse.Namespace) -> int:
    # Here, because only exports need pyarrow.
    from storage.transfer.destinations import destination
    from storage.transfer.exporting import ExportRequest, export

    request = ExportRequest(
        given.dataset,
        NameRange(prefix=given.where_row_prefix),
        time_range(given.range),
        given.versions,
        given.wide,
        given.rows_per_file,
    )
    unit = "cells" if given.wide is None else "rows"
    with _engine(given) as engine, counted("export", unit) as show:
        done = export(engine, request, destination(given.url), show)
    print(f"{done.rows} {unit} in {len(done.files)} files: {done.files[0]} to {done.files[-1]}")
    return 0


@contextlib.contextmanager
def _engine(given: argparse.Namespace) -> Iterator[EmbeddedEngine]:
    if given.dir is not None:
        with reading(given.dir) as engine:
            yield engine
        return
    with linked(given) as link:
        path = Path(os.fsdecode(link.call(b"WCADMIN", b"CHECKPOINT")))
        try:
            if not path.is_dir():
                raise Refused(f"{path} is not on this machine: export beside the server")
            engine = open_reader(path)
            try:
                yield engine
            finally:
                asyncio.run(engine.close())
        finally:
            link.call(b"WCADMIN", b"RELEASE", path.name.encode())
