"""`colonnade restore URL DIR`: a new data directory from a backup.

`colonnade restore URL --dataset NAME --server HOST:PORT`: one dataset of it, into a running server.
It becomes sorted tables in a folder of the server's, which makes a new dataset of them at once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

from resp_server.cli.link import Link, Refused
from resp_server.cli.progress import counted, shown
from resp_server.cli.server import add_server_options, linked
from resp_server.cli.words import name
from storage.backup.places import place_at
from storage.backup.repository import Repository
from storage.backup.restoring import laid_out, restore
from storage.catalog import check_name
from storage.clock import wall_clock_ms
from storage.embedded.datasets import Dataset
from storage.embedded.engine import EmbeddedEngine
from storage.errors import CannotTransfer, DatasetExists
from storage.model import DatasetSettings
from storage.opening import reading
from storage.transfer.copying import copy_cells


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "restore",
        help="make a data directory from a backup, or restore one dataset",
        description="Make a data directory from a backup, and compare every byte on the way. The"
        " directory must be empty, or not there yet. What was interrupted can be begun again."
        " With --dataset, bring one dataset of the backup into a running server instead, under a"
        " name that is free there: run it on the server's machine.",
    )
    parser.add_argument("url", metavar="URL", help="where the backups are")
    parser.add_argument(
        "directory", metavar="DIR", type=Path, nargs="?", help="the new data directory"
    )
    parser.add_argument("--backup", metavar="NAME", help="which one; the newest if not given")
    parser.add_argument("--dataset", metavar="NAME", type=name, help="restore this one alone")
    parser.add_argument("--as", metavar="NAME", type=name, dest="new_name", help="under this name")
    add_server_options(parser, default=None)
    parser.set_defaults(run=run, interrupted="nothing is there that opens: run it again")


def run(given: argparse.Namespace) -> int:
    _check(given)
    repository = Repository(place_at(given.url))
    if given.dataset is not None:
        return _into_server(given, repository)
    with shown() as progress:
        manifest = restore(repository, given.backup, given.directory, progress)
    print(
        f"backup {manifest.name} is in {given.directory}: {len(manifest.files)} files,"
        f" {manifest.total_bytes} bytes"
    )
    return 0


def _check(given: argparse.Namespace) -> None:
    """ArgumentError where the words do not say one thing."""
    wrong = None
    if (given.dataset is None) == (given.directory is None):
        wrong = "it goes to DIR, or one --dataset to a --server: name one of them"
    elif given.dataset is None and (given.new_name is not None or given.server is not None):
        wrong = "--as and --server are for one --dataset"
    elif given.dataset is not None and given.server is None:
        wrong = "--dataset goes to a running server: name it with --server"
    if wrong is not None:
        raise argparse.ArgumentError(None, wrong)


# One dataset


def _into_server(given: argparse.Namespace, repository: Repository) -> int:
    given.interrupted = "the dataset is there as a whole or not at all"
    new_name: bytes = given.dataset if given.new_name is None else given.new_name
    check_name(new_name)
    with linked(given) as link:
        if new_name in link.call(b"WCDATASET", b"LIST", new_name):
            raise DatasetExists(new_name)
        folder = _staged(link)
        try:
            text, settings = _tables(given, repository, folder)
            numbers = settings.max_versions, settings.ttl_seconds
            link.call(b"WCADMIN", b"CREATE", new_name, folder.name.encode(), *numbers)
        except BaseException:
            with contextlib.suppress(Refused):  # what went wrong before is to be told
                link.call(b"WCADMIN", b"RELEASE", folder.name.encode())
            raise
    print(f"dataset {os.fsdecode(new_name)}: {text}")
    return 0


def _staged(link: Link) -> Path:
    """A folder that the server and this process share; Refused where there is none."""
    folder = Path(os.fsdecode(link.call(b"WCADMIN", b"STAGE")))
    if folder.is_dir() and os.access(folder, os.W_OK):
        return folder
    link.call(b"WCADMIN", b"RELEASE", folder.name.encode())
    raise Refused(
        f"{folder} cannot be written to from here: run this on the server's machine, as its user"
    )


def _tables(
    given: argparse.Namespace, repository: Repository, folder: Path
) -> tuple[str, DatasetSettings]:
    """Put the dataset's cells into the folder; what there is to say of them, and its settings."""
    with contextlib.ExitStack() as until_the_end:
        with shown() as progress:
            backup = laid_out(repository, given.backup, progress, within=folder)
            manifest, directory = until_the_end.enter_context(backup)
        engine = until_the_end.enter_context(reading(directory))
        for problem in engine.problems:
            print(f"note: {problem}", file=sys.stderr)
        dataset = _dataset(engine, given.dataset, manifest.name)
        with counted("writing", "cells") as tell:
            cells = copy_cells(dataset, folder, wall_clock_ms(), tell)
        return f"{cells} cells of backup {manifest.name}", dataset.settings


def _dataset(engine: EmbeddedEngine, wanted: bytes, backup: str) -> Dataset:
    dataset = engine.open_dataset(wanted)
    if dataset is None:
        there = ", ".join(map(os.fsdecode, engine.dataset_names())) or "none"
        raise CannotTransfer(
            f"backup {backup} has no dataset {os.fsdecode(wanted)}, but these: {there}"
        )
    return dataset
