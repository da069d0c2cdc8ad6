"""`colonnade prune URL --keep N`: removing old backups."""

from __future__ import annotations

import argparse

from resp_server.cli.words import positive
from storage.backup.places import place_at
from storage.backup.repository import Repository


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "prune",
        help="remove old backups",
        description="Remove all but the newest backups, and the files that only those needed.",
    )
    parser.add_argument("url", metavar="URL", help="where the backups are")
    parser.add_argument(
        "--keep", metavar="N", type=positive, required=True, help="how many stay, at least 1"
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    removed = Repository(place_at(given.url)).prune(given.keep)
    for name in removed:
        print(f"removed {name}")
    print(f"{len(removed)} backups removed")
    return 0
