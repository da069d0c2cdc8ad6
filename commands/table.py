"""The command table: one declaration a command, on its handler.

From it derive arity checks, COMMAND, COMMAND DOCS, redis-cli's hints and docs/commands.md; there is
no second list of commands. It is filled while the modules of commands.families are imported, and
refuses at import what contradicts itself. Knows nothing of how a command is run.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from commands import syntax as grammar
from commands.context import Context
from commands.errors import UnknownCommand, UnknownSubcommand, WrongArity
from commands.replies import Reply

Handler = Callable[[Context, list[bytes]], Coroutine[Any, Any, Reply]]

FLAGS = {
    "write", "readonly", "denyoom", "admin", "noscript", "loading", "stale", "fast", "no_auth",
    "allow_busy", "blocking",
}  # fmt: skip
GROUPS = {"widecolumn", "connection", "server", "generic"}


@dataclass(frozen=True, slots=True)
class Keys:
    """Where the keys stand among the words of a command, as Redis counts: first, last, step."""

    first: int = 0
    last: int = 0
    step: int = 0


NO_KEYS = Keys()
DATASET = Keys(1, 1, 1)
"""The dataset's name is the key, and follows the command's name."""
DATASET_OF_SUBCOMMAND = Keys(2, 2, 1)


@dataclass(slots=True)
class Command:
    """One command, or one subcommand (`name` then is `container|subcommand`)."""

    name: str
    arity: int
    flags: frozenset[str]
    keys: Keys
    group: str
    since: str
    complexity: str
    syntax: str
    summary: str
    description: str
    handler: Handler | None
    """None for a container that does nothing without a subcommand."""
    subcommands: dict[str, Command] = field(default_factory=dict)
    is_write: bool = field(init=False)
    before_login: bool = field(init=False)
    least_words: int = field(init=False)
    most_words: int = field(init=False)

    def __post_init__(self) -> None:
        self.least_words = abs(self.arity)
        self.most_words = self.arity if self.arity >= 0 else sys.maxsize
        self.is_write = "write" in self.flags
        self.before_login = "no_auth" in self.flags

    @property
    def full_syntax(self) -> str:
        return f"{self.name.replace('|', ' ').upper()} {self.syntax}".rstrip()

    def arguments(self) -> tuple[grammar.Argument, ...]:
        return grammar.parse(self.syntax)


class Table:
    """Commands by name. Lookups take the bytes a client sent, in any case."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}
        self._by_bytes: dict[bytes, Command] = {}

    def add(self, command: Command) -> None:
        """Refuses what is there already or says two things at once."""
        _check(command)
        container, _, subcommand = command.name.partition("|")
        siblings = self._commands[container].subcommands if subcommand else self._commands
        if (subcommand or container) in siblings:
            raise ValueError(f"{command.name} is declared twice")
        siblings[subcommand or container] = command
        if not subcommand:
            for spelling in (container.encode(), container.upper().encode()):
                self._by_bytes[spelling] = command

    def all(self) -> Mapping[str, Command]:
        return self._commands

    def find(self, name: bytes) -> Command | None:
        """A command, not a subcommand, by its name in any case."""
        return self._by_bytes.get(name) or self._by_bytes.get(name.lower())

    def resolve(self, arguments: list[bytes]) -> Command:
        """The command these words call: UnknownCommand, UnknownSubcommand or WrongArity if none."""
        command = self._by_bytes.get(arguments[0])
        if command is None:
            command = self.find(arguments[0])
            if command is None:
                raise UnknownCommand(arguments)
        if command.subcommands and len(arguments) > 1:
            command = self._subcommand(command, arguments[1])
        if not command.least_words <= len(arguments) <= command.most_words:
            raise WrongArity(command.name)
        return command

    @staticmethod
    def _subcommand(container: Command, word: bytes) -> Command:
        name = word.decode("latin-1").lower()
        found = container.subcommands.get(name)
        if found is None:
            raise UnknownSubcommand(container.name, word)
        return found


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
            )
        )
        return handler

    return declare


def container(name: str, *, group: str, since: str, summary: str) -> None:
    """Declare a command that only leads to its subcommands."""
    nothing = frozenset[str]()
    TABLE.add(Command(name.lower(), -2, nothing, NO_KEYS, group, since, "", "", summary, "", None))


def _check(command: Command) -> None:
    words = command.name.count("|") + 1
    problems = [
        (not command.summary.endswith("."), "its docstring does not open with a sentence"),
        (bool(command.flags - FLAGS), f"unknown flags {sorted(command.flags - FLAGS)}"),
        (command.group not in GROUPS, f"unknown group {command.group}"),
        ({"write", "readonly"} <= command.flags, "it cannot be both write and readonly"),
        (
            command.handler is not None
            # Without a syntax, a negative arity says that words too many are let pass, as by QUIT.
            and grammar.arity(command.syntax, words) != command.arity
            and (command.syntax or command.arity != -words),
            f"arity {command.arity} does not fit its syntax: {command.syntax}",
        ),
    ]
    for wrong, text in problems:
        if wrong:
            raise ValueError(f"{command.name}: {text}")
