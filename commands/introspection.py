"""COMMAND and its kin: what the server tells of its commands, made from the table."""

from __future__ import annotations

from commands.command import HIDDEN_FLAGS, Access, Command
from commands.context import Context
from commands.errors import (
    BadArgumentCount,
    NoKeyArguments,
    NotACommand,
    SyntaxProblem,
)
from commands.help import help_lines
from commands.patterns import Pattern
from commands.replies import Flags, Reply, Status
from commands.syntax import Argument
from commands.table import TABLE, command


@command(
    "COMMAND",
    arity=-1,
    flags="loading stale",
    group="server",
    categories="connection",
    since="2.8.13",
    complexity="O(N) for N commands",
    tips="nondeterministic_output_order",
)
async def command_(_context: Context, _words: list[bytes]) -> Reply:
    """Describes all commands: name, arity, flags, keys, categories, subcommands."""
    return [_entry(entry) for entry in TABLE.all().values()]


@command(
    "COMMAND|COUNT",
    arity=2,
    flags="loading stale",
    group="server",
    categories="connection",
    since="2.8.13",
    complexity="O(1)",
)
async def count(_context: Context, _words: list[bytes]) -> Reply:
    """Tells how many commands there are."""
    return len(TABLE.all())


@command(
    "COMMAND|LIST",
    arity=-2,
    flags="loading stale",
    group="server",
    categories="connection",
    since="7.0.0",
    complexity="O(N) for N commands",
    syntax="[FILTERBY (MODULE module-name | ACLCAT category | PATTERN pattern)]",
    tips="nondeterministic_output_order",
)
async def list_(_context: Context, words: list[bytes]) -> Reply:
    """Lists the names of the commands, all or those of a category or a glob pattern."""
    if len(words) == 2:
        return [name.encode() for name in TABLE.all()]
    if len(words) != 5 or words[2].upper() != b"FILTERBY":
        raise SyntaxProblem
    kind, wanted = words[3].upper(), words[4]
    everything = [leaf for entry in TABLE.all().values() for leaf in (entry, *_subcommands(entry))]
    if kind == b"MODULE":
        return []  # no command here comes from a module
    if kind == b"ACLCAT":
        category = wanted.decode("latin-1").lower()
        return [leaf.name.encode() for leaf in everything if category in leaf.categories]
    if kind == b"PATTERN":
        pattern = wanted.lower()
        fits = Pattern(pattern).fits
        return [leaf.name.encode() for leaf in everything if fits(leaf.name.encode())]
    raise SyntaxProblem


@command(
    "COMMAND|GETKEYS",
    arity=-4,
    flags="loading stale",
    group="server",
    categories="connection",
    since="2.8.13",
    complexity="O(N) for N words",
    syntax="command arg [arg ...]",
)
async def getkeys(_context: Context, words: list[bytes]) -> Reply:
    """Tells which words of a command are keys: here, names of datasets."""
    return _keys_of(words[2:])[1]


@command(
    "COMMAND|GETKEYSANDFLAGS",
    arity=-4,
    flags="loading stale",
    group="server",
    categories="connection",
    since="7.0.0",
    complexity="O(N) for N words",
    syntax="command arg [arg ...]",
)
async def getkeysandflags(_context: Context, words: list[bytes]) -> Reply:
    """Tells which words of a command are keys, and what it does to them."""
    found, keys = _keys_of(words[2:])
    flags = Flags([Status(flag) for flag in _access(found)])
    return [[key, flags] for key in keys]


def _keys_of(words: list[bytes]) -> tuple[Command, list[bytes]]:
    found = _named(words)
    if not found.keys.first or "pubsub" in found.flags:
        raise NoKeyArguments
    if not found.least_words <= len(words) <= found.most_words:
        raise BadArgumentCount
    return found, found.keys.among(words)


def _named(words: list[bytes]) -> Command:
    """The command that words begin with, whatever their number."""
    found = TABLE.find(words[0])
    if found is not None and found.subcommands and len(words) > 1:
        found = found.subcommands.get(words[1].decode("latin-1").lower())
    if found is None:
        raise NotACommand
    return found


def _subcommands(entry: Command) -> list[Command]:
    return list(entry.subcommands.values())


@command(
    "COMMAND|INFO",
    arity=-2,
    flags="loading stale",
    group="server",
    categories="connection",
    since="2.8.13",
    complexity="O(N) for N commands",
    syntax="[command-name [command-name ...]]",
    tips="nondeterministic_output_order",
)
async def info_of_commands(_context: Context, words: list[bytes]) -> Reply:
    """Describes some commands, or all."""
    if len(words) == 2:
        return [_entry(entry) for entry in TABLE.all().values()]
    found = [_find(word) for word in words[2:]]
    return [None if entry is None else _entry(entry) for entry in found]


@command(
    "COMMAND|DOCS",
    arity=-2,
    flags="loading stale",
    group="server",
    categories="connection",
    since="7.0.0",
    complexity="O(N) for N commands",
    syntax="[command-name [command-name ...]]",
    tips="nondeterministic_output_order",
)
async def docs(_context: Context, words: list[bytes]) -> Reply:
    """Documents some commands, or all: summary, complexity, arguments."""
    found = [_find(word) for word in words[2:]] if len(words) > 2 else TABLE.all().values()
    return {entry.name.encode(): _documentation(entry) for entry in found if entry is not None}


@command(
    "COMMAND|HELP",
    arity=2,
    flags="loading stale",
    group="server",
    categories="connection",
    since="5.0.0",
    complexity="O(1)",
)
async def help_(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of COMMAND."""
    return help_lines("COMMAND")


def _find(name: bytes) -> Command | None:
    """A command or, written `container|subcommand`, a subcommand."""
    container, _, subcommand = name.lower().partition(b"|")
    found = TABLE.find(container)
    if found is None or not subcommand:
        return found
    return found.subcommands.get(subcommand.decode("latin-1"))


def _entry(entry: Command) -> list[object]:
    """One element of COMMAND's reply, in Redis 7's layout."""
    return [
        entry.name.encode(),
        entry.arity,
        Flags([Status(flag.encode()) for flag in sorted(entry.flags - HIDDEN_FLAGS)]),
        entry.keys.first,
        entry.keys.last,
        entry.keys.step,
        Flags([Status(b"@" + name.encode()) for name in sorted(entry.categories)]),
        Flags([tip.encode() for tip in entry.tips]),
        Flags(_key_specifications(entry)),
        [_entry(subcommand) for subcommand in _subcommands(entry)] or Flags(),
    ]


def _key_specifications(entry: Command) -> list[object]:
    keys = entry.keys
    if not keys.first:
        return []
    access = _access(entry)
    last = keys.last if keys.last < 0 else keys.last - keys.first
    return [
        {
            b"flags": Flags([Status(flag) for flag in access]),
            b"begin_search": {b"type": b"index", b"spec": {b"index": keys.first}},
            b"find_keys": {
                b"type": b"range",
                b"spec": {b"lastkey": last, b"keystep": keys.step, b"limit": 0},
            },
        }
    ]


def _documentation(entry: Command) -> dict[bytes, object]:
    described: dict[bytes, object] = {
        b"summary": entry.summary.encode(),
        b"since": entry.since.encode(),
        b"group": entry.group.encode(),
    }
    if entry.complexity:
        described[b"complexity"] = entry.complexity.encode()
    arguments = entry.arguments()
    if arguments:
        described[b"arguments"] = [_argument(argument) for argument in arguments]
    if entry.subcommands:
        described[b"subcommands"] = {
            subcommand.name.encode(): _documentation(subcommand)
            for subcommand in entry.subcommands.values()
        }
    return described


def _argument(argument: Argument) -> dict[bytes, object]:
    described: dict[bytes, object] = {
        b"name": argument.name.encode(),
        b"type": argument.type.encode(),
    }
    if argument.type in ("string", "integer"):
        described[b"display_text"] = argument.name.encode()
    if argument.token:
        described[b"token"] = argument.token.encode()
    flags = [b"optional"] * argument.optional + [b"multiple"] * argument.multiple
    if flags:
        described[b"flags"] = Flags([Status(flag) for flag in flags])
    if argument.arguments:
        described[b"arguments"] = [_argument(inner) for inner in argument.arguments]
    return described


def _access(entry: Command) -> list[bytes]:
    """What it does to its keys, in Redis's words."""
    if "pubsub" in entry.flags:
        return [b"not_key"]
    if "write" in entry.flags:
        return [b"RW", b"UPDATE"]
    return [b"RO"] if entry.key_access == Access.NONE else [b"RO", b"ACCESS"]
