"""Starting programs of ours in processes of their own.

They are started anew, not forked: a fork would share the lock on the data directory.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import storage


def program(module: str) -> list[str]:
    """The words that begin its command line."""
    return [sys.executable, "-m", module]


def environment() -> dict[str, str]:
    """This process's, in which the program is found where this one was imported from.

    Its working directory stays, so that relative paths mean what they mean here.
    """
    here = str(Path(next(iter(storage.__path__))).resolve().parent)
    search = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": search}
