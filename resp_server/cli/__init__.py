"""The command line beside the server: `colonnade COMMAND ...`, or python -m resp_server.cli.

One module a command, with `add_parser(subparsers)` that adds its parser: see MODULES. What a
command does is in the library; here are arguments, progress and what is printed.

Exit codes: 0 done, 1 it cannot be done, 2 a wrong command line, 3 damage was found, 130 for an
interruption.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from resp_server.cli import backup, backups, export, importing, prune, restore, verify
from resp_server.cli.asking import ServerRefuses
from resp_server.version import VERSION
from storage.errors import CannotOpen, StorageError

MODULES = (backup, backups, verify, restore, prune, export, importing)
EXIT_CANNOT = 1
EXIT_INTERRUPTED = 130
OWNER_ONLY = 0o077


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="colonnade", description="Work with the data of Colonnade servers."
    )
    parser.add_argument("-v", "--version", action="version", version=f"Colonnade v={VERSION}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in MODULES:
        module.add_parser(subparsers)
    given = parser.parse_args(arguments)
    os.umask(OWNER_ONLY)
    try:
        code: int = given.run(given)
    except KeyboardInterrupt:
        print(f"colonnade {given.command}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (StorageError, CannotOpen, ServerRefuses, OSError) as error:
        print(f"colonnade {given.command}: {error}", file=sys.stderr)
        return EXIT_CANNOT
    return code
