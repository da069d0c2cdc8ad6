"""docs/commands.md, made from the command table: `python -m commands.document`.

A test compares the file with what this makes, so that the page cannot go stale.
"""

from __future__ import annotations

import commands.families  # noqa: F401 - fills the table
from commands.command import Command
from commands.table import TABLE

_HEADLINES = {
    "widecolumn": "Wide columns",
    "connection": "Connection",
    "transactions": "Transactions",
    "pubsub": "Publish and subscribe",
    "server": "Server",
    "generic": "Keyspace and waiting",
    "cluster": "Cluster",
    "scripting": "Scripting",
}

_PREFACE = """\
# Commands

Made from the command table by `make docs`; do not edit. [data-model.md](data-model.md) explains
rows, columns, cells, visibility and paging; [compatibility.md](compatibility.md) tells what differs
from Redis.
"""


def page() -> str:
    """The whole page in Markdown."""
    parts = [_PREFACE]
    for group, headline in _HEADLINES.items():
        parts.append(f"## {headline}\n")
        for entry in TABLE.all().values():
            if entry.group == group:
                parts += [_section(leaf) for leaf in (entry, *entry.subcommands.values())]
    return "\n".join(parts)


def _section(entry: Command) -> str:
    if entry.handler is None:
        return f"### {entry.name.upper()}\n\n{entry.summary}\n"
    lines = [
        f"### {entry.name.replace('|', ' ').upper()}",
        "",
        f"    {entry.full_syntax}",
        "",
        entry.summary,
    ]
    if entry.description:
        lines += ["", entry.description]
    lines += ["", f"Since {entry.since}. {entry.complexity}. Flags: {_flags(entry)}.", ""]
    return "\n".join(lines)


def _flags(entry: Command) -> str:
    return ", ".join(sorted(entry.flags)) or "none"


if __name__ == "__main__":
    print(page(), end="")
