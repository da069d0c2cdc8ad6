"""What a command is, and a table of commands that finds the one a client's words call.

Refuses what contradicts itself. Knows no particular command, and not what a handler is given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from commands import syntax as grammar
from commands.errors import UnknownCommand, UnknownSubcommand, WrongArity
from commands.replies import Reply

AnyHandler = Callable[..., Coroutine[Any, Any, Reply]]
"""A handler, whatever it is given; commands.table knows."""
AnyQuickHandler = Callable[..., Sequence[Reply]]

FLAGS = {
    "write", "readonly", "denyoom", "admin", "pubsub", "noscript", "loading", "stale", "fast",
    "no_auth", "no_multi", "no_async_loading", "allow_busy", "blocking", "skip_monitor",
    "skip_slowlog", "commits", "files",
}  # fmt: skip
HIDDEN_FLAGS = frozenset(("commits", "files"))
"""Ours alone, which COMMAND does not show. "commits": no write itself, but its reply waits for the
log as a write's does, because it may run writes. "files": it changes no data, but makes, rewrites
or removes files of the data directory."""
GROUPS = {
    "widecolumn", "connection", "server", "generic", "transactions", "pubsub", "scripting",
    "cluster",
}  # fmt: skip
CATEGORIES = (
    "keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap",
    "hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous",
    "connection", "transaction", "scripting", "widecolumn",
)  # fmt: skip
"""What ACL rules may name after an @: Redis's in its order, and ours."""
_CATEGORIES_OF_FLAGS = {
    "write": {"write"},
    "readonly": {"read"},
    "fast": {"fast"},
    "admin": {"admin", "dangerous"},
    "pubsub": {"pubsub"},
    "blocking": {"blocking"},
}
_CATEGORY_OF_GROUP = {
    "widecolumn": "widecolumn",
    "connection": "connection",
    "transactions": "transaction",
    "scripting": "scripting",
}


class Access:
    """What a command does to its keys, as bits: what a user must be allowed to do to them."""

    NONE: Final = 0
    """It only asks about them, like WATCH: any access at all will do."""
    READ: Final = 1
    WRITE: Final = 2


@dataclass(frozen=True, slots=True)
class Keys:
    """Where the keys stand among the words of a command, as Redis counts: first, last, step."""

    first: int = 0
    last: int = 0
    """Below 0 it counts from the end: -1 is the last word."""
    step: int = 0
    access: int | None = None
    """Bits of Access; None: as the command's flags say."""

    def places(self, words: int) -> range:
        """Where they stand among so many words."""
        if not self.first:
            return range(0)
        last = self.last if self.last >= 0 else words + self.last
        return range(self.first, min(last + 1, words), self.step)

    def among(self, words: list[bytes]) -> list[bytes]:
        """The keys among the words of a command."""
        return [words[place] for place in self.places(len(words))]


NO_KEYS = Keys()


@dataclass(frozen=True, slots=True)
class Channels:
    """Where the channels stand among the words; `are_patterns` where they are glob patterns."""

    first: int
    last: int
    are_patterns: bool = False

    def places(self, words: int) -> range:
        """Where they stand among so many words."""
        return Keys(self.first, self.last, 1).places(words)


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
    handler: AnyHandler | None
    """None for a container that does nothing without a subcommand."""
    declared_categories: frozenset[str] = frozenset()
    """Those that neither flags nor group say."""
    tips: tuple[str, ...] = ()
    channels: Channels | None = None
    quick_handler: AnyQuickHandler | None = None
    """For calls that stand one after another, where it has one; see commands.table.quickly."""
    subcommands: dict[str, Command] = field(default_factory=dict)
    categories: frozenset[str] = field(init=False)
    is_write: bool = field(init=False)
    """Whether its reply must wait for the log."""
    only_reads: bool = field(init=False)
    """Whether it leaves the data directory as it is."""
    key_access: int = field(init=False)
    """What it does to its keys: bits of Access."""
    before_login: bool = field(init=False)
    least_words: int = field(init=False)
    most_words: int = field(init=False)

    def __post_init__(self) -> None:
        self.least_words = abs(self.arity)
        self.most_words = self.arity if self.arity >= 0 else sys.maxsize
        self.is_write = not self.flags.isdisjoint(("write", "commits"))
        self.only_reads = self.flags.isdisjoint(("write", "files"))
        self.before_login = "no_auth" in self.flags
        self.categories = self._categories()
        self.key_access = self._key_access()

    def _key_access(self) -> int:
        if self.keys.access is not None:
            return self.keys.access
        if "write" in self.flags:
            return Access.WRITE
        return Access.READ if "readonly" in self.flags else Access.NONE

    def _categories(self) -> frozenset[str]:
        found = {"slow"} if "fast" not in self.flags else set[str]()
        for flag in self.flags:
            found |= _CATEGORIES_OF_FLAGS.get(flag, set())
        if self.handler is not None and self.group in _CATEGORY_OF_GROUP:
            found.add(_CATEGORY_OF_GROUP[self.group])
        return frozenset(found | self.declared_categories)

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
        self.quick: dict[bytes, Command] = {}
        """Those with a quick handler, by the usual spellings of their names."""

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

    def add_quick_handler(self, name: str, handler: AnyQuickHandler) -> None:
        """Of a command that is there already."""
        command = self._commands[name]
        command.quick_handler = handler
        for spelling in (name.encode(), name.upper().encode()):
            self.quick[spelling] = command

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


def _check(command: Command) -> None:
    words = command.name.count("|") + 1
    problems = [
        (not command.summary.endswith("."), "its docstring does not open with a sentence"),
        (bool(command.flags - FLAGS), f"unknown flags {sorted(command.flags - FLAGS)}"),
        (bool(command.categories.difference(CATEGORIES)), "unknown categories"),
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
