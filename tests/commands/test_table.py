"""The command table: every declaration says all there is to say, and none contradicts itself.

The first half looks at the commands as they are declared, the second at what a table refuses.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import commands
from commands import families, syntax
from commands.command import FLAGS, GROUPS, NO_KEYS, Command, Keys, Table
from commands.context import Context
from commands.errors import UnknownCommand, UnknownSubcommand, WrongArity
from commands.table import TABLE

FOLDER = Path(commands.__file__).parent


def all_commands() -> Iterator[Command]:
    for command in TABLE.all().values():
        yield command
        yield from command.subcommands.values()


COMMANDS = list(all_commands())
HANDLED = [command for command in COMMANDS if command.handler is not None]
CONTAINERS = [command for command in COMMANDS if command.subcommands]

LENIENT = {"quit", "command"}
"""As in Redis, QUIT lets words pass that mean nothing, and COMMAND those of its subcommands."""

every_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda found: found.name)
every_handled = pytest.mark.parametrize("command", HANDLED, ids=lambda found: found.name)


def test_the_families_fill_the_table() -> None:
    declaring = {
        path.stem
        for path in FOLDER.glob("*.py")
        if re.search(r"^ *@command\(", path.read_text(), re.M)
    }
    source = Path(families.__file__).read_text()
    assert re.findall(r"^import commands\.(\w+)$", source, re.M) == sorted(declaring)
    assert {"wcput", "wcget", "wcdataset", "ping", "command", "info"} <= set(TABLE.all())


@every_handled
def test_the_arity_fits_the_syntax(command: Command) -> None:
    arity = syntax.arity(command.syntax, command.name.count("|") + 1)
    assert command.arity == (-arity if command.name in LENIENT else arity)


@every_command
def test_a_command_says_what_it_does_and_since_when(command: Command) -> None:
    assert re.fullmatch(r"[A-Z][^\n]*\.", command.summary)
    assert re.fullmatch(r"\d+\.\d+\.\d+", command.since)
    assert command.group in GROUPS
    assert command.flags <= FLAGS
    assert command.name == command.name.lower()


@every_handled
def test_a_command_tells_its_cost(command: Command) -> None:
    assert re.match(r"O\(", command.complexity)


@every_handled
def test_a_handler_is_a_coroutine_with_the_summary_as_its_docstring(command: Command) -> None:
    assert inspect.iscoroutinefunction(command.handler)
    assert (inspect.getdoc(command.handler) or "").startswith(command.summary)
    assert len(inspect.signature(command.handler).parameters) == 2


@every_handled
def test_keys_stand_among_the_words_that_must_be_there(command: Command) -> None:
    if command.keys == NO_KEYS:
        assert not {"dataset", "name"} & {found.name for found in command.arguments()[:1]}
    else:
        assert command.name.count("|") + 1 == command.keys.first
        assert command.keys.last == -1 or 0 < command.keys.last < command.least_words
        assert command.keys.step == 1


@pytest.mark.parametrize(
    "command",
    [found for found in HANDLED if found.group == "widecolumn" and "help" not in found.name],
    ids=lambda found: found.name,
)
def test_a_command_on_data_writes_or_only_reads(command: Command) -> None:
    assert len(command.flags & {"write", "readonly"}) == 1
    assert command.is_write == ("write" in command.flags)


def test_containers_have_subcommands_help_among_them() -> None:
    assert [command.name for command in CONTAINERS if "help" not in command.subcommands] == []
    for container in CONTAINERS:
        for name, subcommand in container.subcommands.items():
            assert subcommand.name == f"{container.name}|{name}"
            assert subcommand.group == container.group
    assert [command.name for command in COMMANDS if command.handler is None] == [
        command.name for command in CONTAINERS if command.handler is None
    ]


@pytest.mark.parametrize("word", [b"wcput", b"WCPUT", b"WcPut"])
def test_a_name_is_found_in_any_case(word: bytes) -> None:
    found = TABLE.find(word)
    assert found is not None
    assert found.name == "wcput"
    assert TABLE.resolve([word, *[b"x"] * 5]) is found


@pytest.mark.parametrize(
    "word", [b"", b"wcputt", b"wcput ", b"\x00", b"\xff\xfe", b"wcdataset|info"]
)
def test_another_name_is_unknown(word: bytes) -> None:
    assert TABLE.find(word) is None
    with pytest.raises(UnknownCommand):
        TABLE.resolve([word, b"x"])


@pytest.mark.parametrize("word", [b"info", b"INFO", b"Info"])
def test_a_subcommand_is_found_in_any_case(word: bytes) -> None:
    assert TABLE.resolve([b"wcdataset", word, b"d"]).name == "wcdataset|info"


@pytest.mark.parametrize("word", [b"", b"nothing", b"info ", b"\xff"])
def test_another_subcommand_is_unknown(word: bytes) -> None:
    with pytest.raises(UnknownSubcommand, match="Try WCDATASET HELP"):
        TABLE.resolve([b"wcdataset", word, b"d"])


def words_of(command: Command, count: int) -> list[bytes]:
    name = [word.encode() for word in command.name.split("|")]
    return [*name, *[b"x"] * (count - len(name))]


@every_handled
def test_words_too_few_or_too_many_are_refused(command: Command) -> None:
    least = abs(command.arity)
    assert TABLE.resolve(words_of(command, least)) is command
    if command.arity > 0:
        with pytest.raises(WrongArity, match=re.escape(f"'{command.name}'")):
            TABLE.resolve(words_of(command, least + 1))
    elif not command.subcommands:
        assert TABLE.resolve(words_of(command, least + 1_000)) is command
    if least > command.name.count("|") + 1:
        with pytest.raises(WrongArity, match=re.escape(f"'{command.name}'")):
            TABLE.resolve(words_of(command, least - 1))


def test_a_container_alone_lacks_a_word() -> None:
    with pytest.raises(WrongArity, match="'wcdataset'"):
        TABLE.resolve([b"WCDATASET"])


def test_the_full_syntax_begins_with_the_name() -> None:
    command = TABLE.resolve([b"wcdataset", b"info", b"d"])
    assert command.full_syntax == "WCDATASET INFO name"


async def nothing(_context: Context, _words: list[bytes]) -> None:
    """Does nothing."""


def declared(name: str = "get", **changes: Any) -> Command:
    sound: dict[str, Any] = {
        "arity": 2,
        "flags": frozenset({"readonly"}),
        "keys": Keys(1, 1, 1),
        "group": "generic",
        "since": "0.1.0",
        "complexity": "O(1)",
        "syntax": "key",
        "summary": "Gets it.",
        "description": "",
        "handler": nothing,
    }
    return Command(name, **(sound | changes))


def test_a_sound_declaration_is_taken() -> None:
    table = Table()
    table.add(declared())
    assert list(table.all()) == ["get"]
    assert table.resolve([b"GET", b"k"]).summary == "Gets it."


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"summary": ""}, "does not open with a sentence"),
        ({"summary": "Gets it"}, "does not open with a sentence"),
        ({"flags": frozenset({"readonly", "slow"})}, r"unknown flags \['slow'\]"),
        ({"flags": frozenset({"readonly", "write"})}, "both write and readonly"),
        ({"group": "misc"}, "unknown group misc"),
        ({"arity": 3}, "arity 3 does not fit its syntax: key"),
        ({"arity": -2}, "arity -2 does not fit its syntax: key"),
        ({"syntax": "key [key ...]"}, "arity 2 does not fit"),
        ({"syntax": "key ]"}, "unbalanced"),
    ],
)
def test_a_contradiction_is_refused(changes: dict[str, Any], problem: str) -> None:
    table = Table()
    with pytest.raises(ValueError, match=problem):
        table.add(declared(**changes))
    assert table.all() == {}


def test_a_name_is_declared_once() -> None:
    table = Table()
    first = declared()
    table.add(first)
    with pytest.raises(ValueError, match="get is declared twice"):
        table.add(declared())
    assert table.find(b"get") is first


def test_a_subcommand_is_declared_once_and_below_its_container() -> None:
    table = Table()
    table.add(declared("box", arity=-2, handler=None))
    table.add(declared("box|open", arity=3))
    with pytest.raises(ValueError, match=r"box\|open is declared twice"):
        table.add(declared("box|open", arity=3))
    with pytest.raises((ValueError, KeyError)):
        table.add(declared("bag|open", arity=3))
    assert list(table.all()) == ["box"]
    assert list(table.all()["box"].subcommands) == ["open"]
    assert table.find(b"open") is None
