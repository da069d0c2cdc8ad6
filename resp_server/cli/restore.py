"""`colonnade restore URL DIR`: a new data directory from a backup."""

from __future__ import annotations

import argparse
from pathlib import Path

from resp_server.cli.progress import shown
from storage.backup.places import place_at
from storage.backup.repository import Repository
from storage.backup.restoring import restore


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "restore",
        help="make a data directory from a backup",
        description="Make a data directory from a backup, and compare every byte on the way. The"
        " directory must be empty, or not there yet. What was interrupted can be begun again.",
    )
    parser.add_argument("url", metavar="URL", help="where the backups are")
    parser.add_argument("directory", metavar="DIR", type=Path, help="the new data directory")
    parser.add_argument("--backup", metavar="NAME", help="which one; the newest if not given")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    repository = Repository(place_at(given.url))
    with shown() as progress:
        manifest = restore(repository, given.backup, given.directory, progress)
    print(
        f"backup {manifest.name} is in {given.directory}: {len(manifest.files)} files,"
        f" {manifest.total_bytes} bytes"
    )
    return 0
