"""`colonnade backup URL`: a backup of a running server, or of a directory that no server uses."""

from __future__ import annotations

import argparse
import socket
import time
from pathlib import Path

from resp_server.cli.link import Link, Refused
from resp_server.cli.progress import shown
from resp_server.cli.server import add_server_options, linked
from resp_server.saving import BACKUPS_FOLDER
from resp_server.version import VERSION
from storage.backup.places import LocalPlace, place_at
from storage.backup.repository import Made, Origin, Repository, now_ms
from storage.directory import hold_for_reading

LOOK_SECONDS = 0.1


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "backup",
        help="send a backup to a directory or a URL",
        description="Send a backup to a directory or a URL of fsspec's; what is there already is"
        " not sent again. With --server the server makes a backup in its own directory, which is"
        " then sent: run it on the server's machine.",
    )
    parser.add_argument("url", metavar="URL", help="a path, or for example s3://bucket/folder")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--dir", metavar="DIR", type=Path, help="a directory no server uses")
    add_server_options(parser, source, default=None)
    parser.add_argument(
        "--full", action="store_true", help="send all files, also those that are there"
    )
    parser.set_defaults(run=run, interrupted="the next backup uses what was sent")


def run(given: argparse.Namespace) -> int:
    repository = Repository(place_at(given.url))
    made = _of_directory(given, repository) if given.dir else _of_server(given, repository)
    manifest = made.manifest
    print(
        f"backup {manifest.name} to {repository.place.shown}: {len(manifest.files)} files,"
        f" {manifest.total_bytes} bytes; {made.sent_files} files, {made.sent_bytes} bytes sent"
    )
    return 0


def _of_directory(given: argparse.Namespace, repository: Repository) -> Made:
    """Nobody writes there meanwhile, so it need not be opened and nothing in it changes."""
    directory: Path = given.dir.absolute()
    with hold_for_reading(directory), shown() as progress:
        origin = Origin(VERSION, f"{socket.gethostname()}:{directory}", now_ms())
        return repository.add(directory, origin, full=given.full, progress=progress)


def _of_server(given: argparse.Namespace, repository: Repository) -> Made:
    with linked(given) as link:
        directory, name = _saved(link)
    folder = directory / BACKUPS_FOLDER
    if not folder.is_dir():
        raise Refused(f"there is no {folder} here: run this on the server's machine")
    with shown() as progress:
        return repository.copy(name, LocalPlace(folder), full=given.full, progress=progress)


def _saved(link: Link) -> tuple[Path, str]:
    """Where the server's data is, and the name of the backup that it has just made."""
    directory = Path(link.setting("dir"))
    if link.setting("backup-keep") == "0":
        raise Refused("the server keeps no backups: CONFIG SET backup-keep 1")
    while True:
        try:
            link.call(b"SAVE")
        except Refused as refusal:
            if "already in progress" not in str(refusal):
                raise
            time.sleep(LOOK_SECONDS)
        else:
            return directory, link.fields("persistence")["wc_backup_last_name"]
