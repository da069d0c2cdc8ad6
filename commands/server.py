"""The commands about the server: COMMAND and its kin, made from the table, and INFO."""

from __future__ import annotations

from commands.context import Context
from commands.help import help_lines
from commands.replies import Flags, Reply, Status, Verbatim
from commands.syntax import Argument
from commands.table import TABLE, Command, command

DEFAULT_SECTIONS = frozenset((b"default", b"all", b"everything"))
_CATEGORIES = {
    "write": b"@write",
    "readonly": b"@read",
    "fast": b"@fast",
    "admin": b"@admin",
    "blocking": b"@blocking",
}


@command(
    "COMMAND",
    arity=-1,
    flags="loading stale",
    group="server",
    since="2.8.13",
    complexity="O(N) for N commands",
)
async def command_(_context: Context, _words: list[bytes]) -> Reply:
    """Describes all commands: name, arity, flags, keys, categories, subcommands."""
    return [_entry(entry) for entry in TABLE.all().values()]


@command(
    "COMMAND|COUNT",
    arity=2,
    flags="loading stale",
    group="server",
    since="2.8.13",
    complexity="O(1)",
)
async def count(_context: Context, _words: list[bytes]) -> Reply:
    """Tells how many commands there are."""
    return len(TABLE.all())


@command(
    "COMMAND|LIST",
    arity=2,
    flags="loading stale",
    group="server",
    since="7.0.0",
    complexity="O(N) for N commands",
)
async def list_(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the names of the commands."""
    return [name.encode() for name in TABLE.all()]


@command(
    "COMMAND|INFO",
    arity=-2,
    flags="loading stale",
    group="server",
    since="2.8.13",
    complexity="O(N) for N commands",
    syntax="[command-name [command-name ...]]",
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
    since="7.0.0",
    complexity="O(N) for N commands",
    syntax="[command-name [command-name ...]]",
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
    since="5.0.0",
    complexity="O(1)",
)
async def help_(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of COMMAND."""
    return help_lines("COMMAND")


@command(
    "INFO",
    arity=-1,
    flags="loading stale",
    group="server",
    since="1.0.0",
    complexity="O(1)",
    syntax="[section [section ...]]",
)
async def info(context: Context, words: list[bytes]) -> Reply:
    """Tells about the server, in sections."""
    wanted = {word.lower() for word in words[1:]} or DEFAULT_SECTIONS
    everything = not wanted.isdisjoint(DEFAULT_SECTIONS)
    sections = [
        _section(title, fields)
        for title, fields in context.facts.information().items()
        if everything or title.lower().encode() in wanted
    ]
    return Verbatim("\r\n".join(sections).encode())


def _section(title: str, fields: object) -> str:
    assert isinstance(fields, dict)
    lines = [f"# {title}", *(f"{name}:{value}" for name, value in fields.items())]
    return "".join(f"{line}\r\n" for line in lines)


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
        Flags([Status(flag.encode()) for flag in sorted(entry.flags)]),
        entry.keys.first,
        entry.keys.last,
        entry.keys.step,
        Flags([Status(category) for category in _categories(entry)]),
        [],
        _key_specifications(entry),
        [_entry(subcommand) for subcommand in entry.subcommands.values()],
    ]


def _categories(entry: Command) -> list[bytes]:
    named = [_CATEGORIES[flag] for flag in sorted(entry.flags) if flag in _CATEGORIES]
    if "fast" not in entry.flags:
        named.append(b"@slow")
    return [b"@" + entry.group.encode(), *named]


def _key_specifications(entry: Command) -> list[object]:
    keys = entry.keys
    if not keys.first:
        return []
    access = [b"RW", b"UPDATE"] if entry.is_write else [b"RO", b"ACCESS"]
    return [
        {
            b"flags": Flags([Status(flag) for flag in access]),
            b"begin_search": {b"type": b"index", b"spec": {b"index": keys.first}},
            b"find_keys": {
                b"type": b"range",
                b"spec": {b"lastkey": 0, b"keystep": keys.step, b"limit": 0},
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
