"""The text of a container's HELP subcommand, made from the table."""

from __future__ import annotations

from commands.replies import Status
from commands.table import TABLE


def help_lines(container: str) -> list[Status]:
    """Redis's layout: a headline, then each subcommand with its summary indented below it."""
    lines = [f"{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]
    for name, command in sorted(TABLE.all()[container.lower()].subcommands.items()):
        if name == "help":
            continue
        lines += [f"{name.upper()} {command.syntax}".rstrip(), f"    {command.summary}"]
    lines += ["HELP", "    Print this help."]
    return [Status(line.encode()) for line in lines]
