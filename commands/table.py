"""The command table: one declaration a command, on its handler.

From it derive arity checks, COMMAND, COMMAND DOCS, ACL categories, redis-cli's hints and
docs/commands.md; there is no second list of commands. It is filled while the modules of
commands.families are imported. Knows nothing of how a command is run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from commands.command import NO_KEYS, Channels, Command, Keys, Table
from commands.context import Context
from commands.replies import Reply

Handler = Callable[[Context, list[bytes]], Coroutine[Any, Any, Reply]]

DATASET = Keys(1, 1, 1)
"""The dataset's name is the key, and follows the command's name."""
DATASET_OF_SUBCOMMAND = Keys(2, 2, 1)

TABLE = Table()
"""The one table; only imports fill it."""


def command(
    name: str,
    *,
    arity: int,
    flags: str,
    group: str,
    since: str,
    complexity: str,
    syntax: str = "",
    keys: Keys = NO_KEYS,
    channels: Channels | None = None,
    categories: str = "",
    tips: str = "",
) -> Callable[[Handler], Handler]:
    """Declare the handler below as a command; its docstring's first line is the summary."""

    def declare(handler: Handler) -> Handler:
        text = inspect.cleandoc(handler.__doc__ or "")
        summary, _, description = text.partition("\n")
        TABLE.add(
            Command(
                name.lower(),
                arity,
                frozenset(flags.split()),
                keys,
                group,
                since,
                complexity,
                syntax,
                summary,
                description.strip(),
                handler,
                frozenset(categories.split()),
                tuple(tips.split()),
                channels,
            )
        )
        return handler

    return declare


def container(name: str, *, group: str, since: str, summary: str) -> None:
    """Declare a command that only leads to its subcommands."""
    nothing = frozenset[str]()
    TABLE.add(Command(name.lower(), -2, nothing, NO_KEYS, group, since, "", "", summary, "", None))
