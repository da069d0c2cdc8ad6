"""colonnade import: Parquet, CSV and NDJSON files into a dataset of a running server.

Small files go in as one transaction of commands. Larger ones become sorted tables, made by
processes of their own in a folder of the server's, which it takes over at once; a server on another
machine is sent commands. Knows nothing of the files' formats: storage/transfer/ does.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from resp_server.cli.link import Link, Refused
from resp_server.cli.progress import counted
from resp_server.cli.sending import send, send_at_once
from resp_server.cli.server import add_server_options, linked
from resp_server.cli.words import name
from storage.errors import CannotTransfer
from storage.transfer.bulk import MOST_COMPLAINTS, Converted, convert_all
from storage.transfer.mapping import Defaults, ImportedCell, Mapping
from storage.transfer.sources import Complaint, Unit, cells_of, units_of

SMALL_CELLS = 20_000
"""As many go in by commands, in one transaction."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "import",
        help="bring Parquet, CSV or NDJSON files into a dataset",
        description="Brings files into a dataset of a running server: all that is in them or, if"
        " something is wrong with a record, nothing. Files of colonnade export need no --map.",
    )
    parser.add_argument("dataset", type=name, metavar="DATASET")
    parser.add_argument("files", nargs="+", metavar="FILE")
    add_server_options(parser)
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="PART=FIELD,...",
        help="which field is the row, column, timestamp, value, expires; without column and value"
        " every other field is a column",
    )
    parser.add_argument("--format", choices=("parquet", "csv", "ndjson"))
    parser.add_argument("--on-error", choices=("stop", "skip"), default="stop")
    parser.add_argument(
        "--via",
        choices=("auto", "commands", "tables"),
        default="auto",
        help="how: commands, or tables that a server on this machine takes over",
    )
    parser.set_defaults(run=run, interrupted="it can be run again")


def run(given: argparse.Namespace) -> int:
    mapping = Mapping.parse(given.map)
    units = [unit for file in given.files for unit in units_of(file, given.format, mapping)]
    with linked(given) as link:
        work = _Import(given, link, units)
        began = time.monotonic()
        cells = work.run()
    _complain(work.result)
    if cells is None:
        raise CannotTransfer("nothing was imported")
    seconds = max(0.001, time.monotonic() - began)
    skipped = f", {work.result.bad} bad records left out" if work.result.bad else ""
    if cells < work.result.cells:
        merged = work.result.cells - cells
        print(f"{merged} cells differed from another in their sequence alone, and are not there")
    print(f"{cells} cells in {seconds:.1f} s ({cells / seconds:,.0f} a second){skipped}")
    return 0


def _complain(result: Converted) -> None:
    for file, line, reason in result.complaints[:MOST_COMPLAINTS]:
        print(f"{file}:{line}: {reason}", file=sys.stderr)
    more = result.bad - min(len(result.complaints), MOST_COMPLAINTS)
    if more > 0:
        print(f"and {more} more bad records", file=sys.stderr)


class _Stopped(Exception):
    """At the first bad record."""


class _Import:
    """One import, by commands or by tables. run() gives how many cells went in, None for none."""

    def __init__(self, given: argparse.Namespace, link: Link, units: Sequence[Unit]) -> None:
        self._dataset: bytes = given.dataset
        self._stop = given.on_error == "stop"
        self._via: str = given.via
        self._link = link
        self._units = units
        self._records = sum(unit.records for unit in units)
        seconds, microseconds = link.call(b"TIME")
        clock = int(seconds) * 1000 + int(microseconds) // 1000
        self._defaults = Defaults(timestamp=clock, clock=clock)
        self.result = Converted()

    def run(self) -> int | None:
        small = self._records <= SMALL_CELLS and not any(unit.has_sequences for unit in self._units)
        if self._via == "commands" or (self._via == "auto" and small):
            return self._by_commands()
        try:
            folder = self._folder()
        except Refused as error:
            if self._via == "tables":
                raise
            print(f"by commands, not by tables: {error}", file=sys.stderr)
            return self._by_commands()
        return self._by_tables(folder)

    # Tables

    def _folder(self) -> Path:
        """A folder that the server and this process share; Refused where there is none."""
        folder = Path(os.fsdecode(self._link.call(b"WCADMIN", b"STAGE")))
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder
        self._link.call(b"WCADMIN", b"RELEASE", folder.name.encode())
        raise Refused(f"{folder} cannot be written to from here")

    def _by_tables(self, folder: Path) -> int | None:
        taken = False
        try:
            with counted("import", "records") as show:
                self.result = convert_all(
                    self._units, self._defaults, folder, stop=self._stop, progress=show
                )
            if self._stop and self.result.bad:
                return None
            expiring = [b"EXPIRING"] if self.result.expiring else []
            words = [b"INGEST", self._dataset, folder.name.encode(), *expiring]
            try:
                self._link.call(b"WCADMIN", *words)
                taken = True
            except Refused as error:
                if self._via == "tables" or not expiring:
                    raise
                print(f"by commands, not by tables: {error}", file=sys.stderr)
        finally:
            if not taken:
                self._link.call(b"WCADMIN", b"RELEASE", folder.name.encode())
        return self.result.cells if taken else self._by_commands()

    # Commands

    def _by_commands(self) -> int | None:
        """All files are looked through first if a bad record is to stop it."""
        self.result = Converted()
        try:
            cells = list(itertools.islice(self._cells(), SMALL_CELLS + 1))
            if len(cells) <= SMALL_CELLS:
                return send_at_once(self._link, self._dataset, cells)
            if self._stop:
                for _ in self._cells():
                    pass
        except _Stopped:
            return None
        self.result = Converted()
        with counted("import", "cells") as show:
            return send(
                self._link,
                self._dataset,
                self._cells(),
                lambda done: show(done, self._records),
            )

    def _cells(self) -> Iterator[ImportedCell]:
        for unit in self._units:
            for cell in cells_of(unit, self._defaults, self._complaint(unit)):
                self.result.cells += 1
                yield cell

    def _complaint(self, unit: Unit) -> Complaint:
        def complain(line: int, reason: str) -> None:
            self.result.bad += 1
            if len(self.result.complaints) < MOST_COMPLAINTS:
                self.result.complaints.append((unit.path, line, reason))
            if self._stop:
                raise _Stopped

        return complain
