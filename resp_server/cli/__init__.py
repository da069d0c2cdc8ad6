"""The command line beside the server: `colonnade COMMAND ...`, or python -m resp_server.cli.

One module a command, with `add_parser(subparsers)` that adds its parser: see MODULES. Its `run`
gives the exit code; what becomes of errors, of Ctrl-C and of SIGTERM is decided here, once. Among
the parser's defaults `interrupted` is what to say when it was interrupted.

What a command does is in the library; here are arguments, progress and what is printed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from resp_server.cli import backup, backups, export, importing, prune, restore, verify
from resp_server.cli.exits import EXIT_CANNOT, EXIT_INTERRUPTED, EXIT_WRONG_WORDS
from resp_server.cli.link import Refused
from resp_server.version import VERSION
from storage.errors import CannotOpen, CannotTransfer, StorageError

MODULES = (backup, backups, verify, restore, prune, export, importing)
OWNER_ONLY = 0o077
_EXTRAS = {"pyarrow": "export", "fsspec": "backup", "s3fs": "s3"}
"""Libraries that not everybody needs, and what of ours is installed to have them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    given = _parser().parse_args(arguments)
    os.umask(OWNER_ONLY)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return int(given.run(given))
    except KeyboardInterrupt:
        code, text = EXIT_INTERRUPTED, ", ".join(filter(None, ("interrupted", given.interrupted)))
    except argparse.ArgumentError as error:
        code, text = EXIT_WRONG_WORDS, str(error)
    except (CannotOpen, CannotTransfer, OSError, Refused, StorageError) as error:
        code, text = EXIT_CANNOT, str(error)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        needed = f"'colonnade[{_EXTRAS[error.name]}]'"
        code, text = EXIT_CANNOT, f"{error.name} is missing: pip install {needed}"
    print(f"colonnade {given.command}: {text}", file=sys.stderr)
    return code


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """As Ctrl-C, but once: some send SIGTERM twice, and what was begun is still to be removed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="colonnade", description="Work with the data of Colonnade servers."
    )
    parser.add_argument("-v", "--version", action="version", version=f"Colonnade v={VERSION}")
    parser.set_defaults(interrupted="")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in MODULES:
        module.add_parser(subparsers)
    return parser
