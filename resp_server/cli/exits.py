"""The exit codes of the command line; 0 is for what was done."""

from __future__ import annotations

EXIT_CANNOT = 1
"""It cannot be done; the line on standard error says why."""
EXIT_WRONG_WORDS = 2
"""The command line is wrong; argparse ends with this, too."""
EXIT_DAMAGED = 3
"""Damage was found."""
EXIT_INTERRUPTED = 130
"""By Ctrl-C or SIGTERM."""
