"""`colonnade verify URL`: whether a backup is whole."""

from __future__ import annotations

import argparse

from resp_server.cli.exits import EXIT_DAMAGED
from resp_server.cli.progress import shown
from storage.backup.places import place_at
from storage.backup.repository import Repository
from storage.backup.restoring import verify


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "verify",
        help="check a backup",
        description="Compare every file of a backup with the manifest, then open it and read all"
        " of it. What is not on this machine is fetched into the place for temporary files.",
    )
    parser.add_argument("url", metavar="URL", help="where the backups are")
    parser.add_argument("--backup", metavar="NAME", help="which one; the newest if not given")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    repository = Repository(place_at(given.url))
    with shown(endless="cells") as progress:  # of the store that is opened in the end
        verdict = verify(repository, given.backup, progress)
    if verdict.findings is not None:
        for found in verdict.findings.datasets:
            print(f"dataset {found.name}: {found.cells} cells, {found.bytes} bytes")
    for problem in verdict.problems:
        print(f"DAMAGE: {problem}")
    manifest = verdict.manifest
    print(
        f"backup {manifest.name}: {len(manifest.files)} files, {manifest.total_bytes} bytes,"
        f" {len(verdict.problems)} problems"
    )
    return EXIT_DAMAGED if verdict.problems else 0
