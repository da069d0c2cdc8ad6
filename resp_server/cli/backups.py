"""`colonnade backups URL`: which backups there are."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from resp_server.cli.exits import EXIT_DAMAGED
from storage.backup.failures import DamagedBackup
from storage.backup.places import place_at
from storage.backup.repository import Repository


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "backups",
        help="list backups",
        description="List the backups at a directory or URL, the oldest first.",
    )
    parser.add_argument("url", metavar="URL", help="where they are")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    repository, code = Repository(place_at(given.url)), 0
    for name in repository.names():
        try:
            manifest = repository.manifest(name)
        except DamagedBackup as error:
            print(f"DAMAGE: {error}")
            code = EXIT_DAMAGED
        else:
            made = datetime.fromtimestamp(manifest.created_ms // 1000, UTC)
            print(
                f"{name}  {made:%Y-%m-%d %H:%M:%S} UTC  {len(manifest.files)} files"
                f"  {manifest.total_bytes} bytes  of {manifest.source}"
            )
    return code
