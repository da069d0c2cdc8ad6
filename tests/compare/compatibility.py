"""The table of docs/compatibility.md: every command of Redis 7.2, whether it is here, and why not.

Made from the command table, the list of Redis's commands and the reasons below; a test holds the
page to it. `python -m tests.compare.compatibility` writes it into the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import commands.families  # noqa: F401 - fills the table
from commands.table import TABLE
from tests.compare.redis_commands import COMMANDS, subcommands

PAGE = Path(__file__).resolve().parents[2] / "docs/compatibility.md"
BEGINNING = "<!-- The commands of Redis 7.2, made by tests/compare/compatibility.py -->\n\n"
END = "<!-- The end of what was made -->\n"

TITLES = {
    "connection": "Connection",
    "server": "Server",
    "transactions": "Transactions",
    "pubsub": "Publish and subscribe",
    "scripting": "Scripts and functions",
    "cluster": "Cluster",
    "generic": "Keys of any type",
    "string": "Strings",
    "hash": "Hashes",
    "list": "Lists",
    "set": "Sets",
    "sorted-set": "Sorted sets",
    "stream": "Streams",
    "bitmap": "Bitmaps",
    "hyperloglog": "HyperLogLog",
    "geo": "Geography",
}
_NO_TYPES = "the Redis data types are not there yet"
_NO_REPLICATION = "there is no replication"
REASONS_OF_GROUPS = {
    "scripting": "scripts and functions are not there yet",
    "generic": _NO_TYPES,
    **dict.fromkeys(("string", "hash", "list", "set", "sorted-set", "stream"), _NO_TYPES),
    **dict.fromkeys(("bitmap", "hyperloglog", "geo"), _NO_TYPES),
}
REASONS = {
    "failover": _NO_REPLICATION,
    "psync": _NO_REPLICATION,
    "replconf": _NO_REPLICATION,
    "sync": _NO_REPLICATION,
    "restore-asking": "there is no cluster",
}
"""Why a command is not there, where its group does not say."""
WITHOUT_SUBCOMMANDS = {
    "cluster": "there is no cluster",
    "function": REASONS_OF_GROUPS["scripting"],
    "module": "modules of Redis cannot be loaded",
}
"""Why some of a command's subcommands are not there."""
_NO_CLUSTER = "refused in Redis's words: cluster support is disabled"
_NO_KEYS = "the keyspace of Redis is empty until its types are there"
REMARKS = {
    "acl": "keys are names of datasets; the category `@widecolumn` is added",
    "asking": _NO_CLUSTER,
    "bgrewriteaof": "compacts all datasets",
    "client": "`TRACKING ON` is refused: there is no client side caching",
    "cluster": _NO_CLUSTER,
    "dbsize": _NO_KEYS,
    "debug": "`SLEEP` alone, and only with `enable-debug-command`",
    "exists": _NO_KEYS,
    "flushall": "drops the datasets, too",
    "flushdb": "removes no dataset",
    "function": "of an empty library",
    "keys": _NO_KEYS,
    "latency": "the events `command` and `fast-command`",
    "lolwut": "a drawing of our own",
    "memory": "`USAGE` of a dataset",
    "module": "there are none",
    "object": _NO_KEYS,
    "randomkey": _NO_KEYS,
    "readonly": _NO_CLUSTER,
    "readwrite": _NO_CLUSTER,
    "replicaof": "`NO ONE` alone: " + _NO_REPLICATION,
    "scan": _NO_KEYS,
    "select": "datasets are shared by all databases",
    "shutdown": "always with all that was written on the disk",
    "slaveof": "`NO ONE` alone: " + _NO_REPLICATION,
    "swapdb": _NO_KEYS,
    "type": _NO_KEYS,
    "wait": "there are no replicas",
    "waitaof": "the log is always on; there are no replicas",
    "watch": "names of datasets",
}
"""What is to be known about a command that is there."""


def table() -> str:
    """The page's part, in Markdown: a table for each family, a row for each command."""
    return "\n".join(line for group in COMMANDS for line in _family(group))


def _family(group: str) -> Iterator[str]:
    yield from (f"### {TITLES[group]}", "", "| command | here | remarks |", "| --- | --- | --- |")
    for name in COMMANDS[group]:
        yield f"| `{name.upper()}` | {_support(name)} | {_remarks(name, group)} |"
    yield ""


def _missing(name: str) -> list[str]:
    """The subcommands of Redis that are not there."""
    there = TABLE.all()[name].subcommands
    return [word for word in subcommands(name) if word not in there] if there else []


def _support(name: str) -> str:
    if name not in TABLE.all():
        return "no"
    return "partly" if _missing(name) else "yes"


def _remarks(name: str, group: str) -> str:
    if name not in TABLE.all():
        return REASONS.get(name) or REASONS_OF_GROUPS[group]
    remarks = [REMARKS[name]] if name in REMARKS else []
    missing = _missing(name)
    there = [word for word in subcommands(name) if word not in missing]
    if missing:
        remarks.append(f"has {_listed(there)}")
        remarks.append(f"has not {_listed(missing)}: {WITHOUT_SUBCOMMANDS[name]}")
    elif there and TABLE.all()[name].subcommands:
        remarks.append("has all subcommands")
    return "; ".join(remarks)


def _listed(words: list[str]) -> str:
    return " ".join(f"`{word.upper()}`" for word in words)


def part_of_the_page() -> str:
    """What stands between the two marks now."""
    return PAGE.read_text().partition(BEGINNING)[2].partition(END)[0]


def write() -> None:
    """Put the table between the two marks; at the end where there are none."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGINNING)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGINNING + table() + END + after)


if __name__ == "__main__":
    write()
