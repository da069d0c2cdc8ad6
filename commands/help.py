"""The text of a HELP subcommand, in Redis's layout."""

from __future__ import annotations

from collections.abc import Mapping

from commands.replies import Status
from commands.table import TABLE


def help_lines(container: str) -> list[Status]:
    """A container's, made from the table."""
    subcommands = {
        f"{name.upper()} {command.syntax}".rstrip(): command.summary
        for name, command in sorted(TABLE.all()[container.lower()].subcommands.items())
        if name != "help"
    }
    return help_text(container, subcommands)


def help_text(name: str, subcommands: Mapping[str, str]) -> list[Status]:
    """A headline, then each subcommand with its summary indented below it."""
    lines = [f"{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]
    for syntax, summary in subcommands.items():
        lines += [syntax, f"    {summary}"]
    lines += ["HELP", "    Prints this help."]
    return [Status(line.encode()) for line in lines]
