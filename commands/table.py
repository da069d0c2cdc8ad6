"""The command table: one declaration a command, on its handler.

From it derive arity checks, COMMAND, COMMAND DOCS, ACL categories, redis-cli's hints and
docs/commands.md; there is no second list of commands. It is filled while the modules of
commands.families are imported. Knows nothing of how a command is run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from commands.command import NO_KEYS, Channels, Command, Keys, Table
from commands.context import Context
from commands.replies import Reply

Handler = Callable[[Context, list[bytes]], Coroutine[Any, Any, Reply]]

QuickHandler = Callable[[Context, list[list[bytes]], int], Sequence[Reply]]
MOST_AT_ONCE = 64
"""Calls that a quick handler may answer, so that others get their turn."""
MOST_BYTES_AT_ONCE = 256 * 1024
"""About so much it may reply."""

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


def quickly(name: str) -> Callable[[QuickHandler], QuickHandler]:
    """Declare the function below as the quick handler of a command, for those who send many calls.

    It is given commands and the place of one that calls it by this name. It may answer that one and
    the calls that follow it, with one reply each, as the command's own handler would, if that needs
    no waiting and breaks no rule. What it leaves unanswered, it leaves undone: the command's own
    handler runs that, and says what is wrong with it. No more than MOST_AT_ONCE at once.
    """

    def declare(handler: QuickHandler) -> QuickHandler:
        TABLE.add_quick_handler(name.lower(), handler)
        return handler

    return declare


def container(name: str, *, group: str, since: str, summary: str) -> None:
    """Declare a command that only leads to its subcommands."""
    nothing = frozenset[str]()
    TABLE.add(Command(name.lower(), -2, nothing, NO_KEYS, group, since, "", "", summary, "", None))
