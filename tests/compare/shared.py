"""The commands that both servers have, from the command table and the list of Redis's."""

from __future__ import annotations

import commands.families  # noqa: F401 - fills the table
from commands.command import Command
from commands.table import TABLE
from tests.compare import redis_commands

NAMES = sorted(set(TABLE.all()) & set(redis_commands.names()) - redis_commands.ADDED_IN_7_2)
"""Without subcommands."""
WORDS = [
    command.name.split("|")
    for name in NAMES
    for command in (TABLE.all()[name], *TABLE.all()[name].subcommands.values())
    if command.name not in redis_commands.ADDED_IN_7_2
]
"""Each command and subcommand that redis-server 7.0 should have, as its words."""


def declared(words: list[str]) -> Command:
    """The table's entry."""
    command = TABLE.all()[words[0]]
    return command.subcommands[words[1]] if len(words) > 1 else command


def shortest_call(words: list[str]) -> list[str]:
    """A call with as few words as it takes; the arguments are all `x`."""
    return words + ["x"] * (abs(declared(words).arity) - len(words))
