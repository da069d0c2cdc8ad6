"""The command table against Redis's: what COMMAND tells of every command that both have.

No command is named here: what both have is compared, and none of it may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import commands.families  # noqa: F401 - fills the table
from tests.compare import redis_commands, shared
from tests.compare.conftest import Sides
from tests.compare.servers import Side
from tests.compare.wire import Reply, Wire

FIELDS = (
    "name", "arity", "flags", "first key", "last key", "step", "categories", "tips", "keys",
)  # fmt: skip
OF_REDIS = redis_commands.names()


def plain(reply: Reply) -> Any:
    """A reply as Python values; a set and a map lose their order."""
    if reply.kind == "map":
        return {plain(name): plain(value) for name, value in reply.pairs}
    if reply.kind == "set":
        return sorted((plain(element) for element in reply.elements), key=repr)
    if isinstance(reply.value, tuple):
        return [plain(element) for element in reply.value]
    return str(reply)


def same(theirs: object, ours: object, asked: object) -> None:
    assert str(ours) == str(theirs), f"{asked}: redis {theirs}, ours {ours}"


def ask(side: Side, *words: str) -> Reply:
    """A call in RESP3, on a connection of its own."""
    with Wire(side.port, patience_seconds=10) as wire:
        wire.call("HELLO", "3")
        return wire.call(*words)


@pytest.fixture(scope="module")
def entries(reference: Sides, colonnade: Sides) -> tuple[dict[str, Any], dict[str, Any]]:
    """COMMAND's entries of both, subcommands among them, by name."""
    return _entries(reference(())), _entries(colonnade(()))


def _entries(side: Side) -> dict[str, Any]:
    return dict(_with_subcommands(ask(side, "COMMAND")))


def _with_subcommands(entries: Reply) -> Iterator[tuple[str, Any]]:
    for entry in entries.elements:
        *fields, subcommands = entry.elements
        yield entry.elements[0].text.decode(), [plain(field) for field in fields]
        yield from _with_subcommands(subcommands)


def test_the_list_of_redis_commands_is_that_of_redis(reference: Sides) -> None:
    known = {name for name, _ in _with_subcommands(ask(reference(()), "COMMAND"))}
    listed = {
        command
        for name in OF_REDIS
        for command in (name, *(f"{name}|{sub}" for sub in redis_commands.subcommands(name)))
    }
    assert known == listed - redis_commands.ADDED_IN_7_2


@pytest.mark.parametrize("words", shared.WORDS, ids=" ".join)
def test_command_info_is_that_of_redis(
    entries: tuple[dict[str, Any], dict[str, Any]], words: list[str]
) -> None:
    name = "|".join(words)
    theirs, ours = entries
    assert name in theirs, f"{name} is no command of Redis"
    different = {
        field: (expected, got)
        for field, expected, got in zip(FIELDS, theirs[name], ours[name], strict=True)
        if expected != got
    }
    assert not different, "; ".join(
        f"{field}: redis {expected}, ours {got}" for field, (expected, got) in different.items()
    )


@pytest.mark.parametrize("protocol", ["2", "3"])
@pytest.mark.parametrize("words", shared.WORDS, ids=" ".join)
def test_arity_errors_are_those_of_redis(
    reference: Sides, colonnade: Sides, words: list[str], protocol: str
) -> None:
    for call in _with_wrong_arity(words):
        replies = []
        for side in (reference(()), colonnade(())):
            with Wire(side.port, patience_seconds=10) as wire:
                wire.call("HELLO", protocol)
                replies.append(wire.call(*call))
        theirs, ours = replies
        assert theirs.kind == "error", f"{call} is no error in Redis"
        same(theirs, ours, call)


def _with_wrong_arity(words: list[str]) -> Iterator[list[str]]:
    command = shared.declared(words)
    least = abs(command.arity)
    if least > len(words):
        yield words + ["x"] * (least - 1 - len(words))
    if command.arity > 0:
        yield words + ["x"] * (command.arity + 1 - len(words))


@pytest.mark.parametrize("words", shared.WORDS, ids=" ".join)
def test_keys_of_a_call_are_those_of_redis(
    reference: Sides, colonnade: Sides, words: list[str]
) -> None:
    arity = abs(shared.declared(words).arity)
    for length in {max(arity, len(words)), max(arity, len(words)) + 2, max(arity, len(words)) - 1}:
        call = words + [f"k{number}" for number in range(length - len(words))]
        for form in ("GETKEYS", "GETKEYSANDFLAGS"):
            theirs = ask(reference(()), "COMMAND", form, *call)
            same(theirs, ask(colonnade(()), "COMMAND", form, *call), [form, *call])


@pytest.mark.parametrize("name", shared.NAMES)
def test_command_docs_has_the_shape_of_redis(reference: Sides, colonnade: Sides, name: str) -> None:
    theirs, ours = (
        dict(_docs(ask(side, "COMMAND", "DOCS", name))) for side in (reference(()), colonnade(()))
    )
    for command in sorted(set(theirs) & set(ours)):
        for field in ("since", "group"):
            same(theirs[command][field], ours[command][field], (command, field))
        more = set(ours[command]) - {*theirs[command], "arguments", "complexity"}
        assert not more, f"{command}: Redis has no {more}"


def _docs(reply: Reply) -> Iterator[tuple[str, dict[str, str]]]:
    for name, described in reply.pairs:
        fields = {field.text.decode(): value for field, value in described.pairs}
        yield name.text.decode(), {field: str(value) for field, value in fields.items()}
        if "subcommands" in fields:
            yield from _docs(fields["subcommands"])


@pytest.mark.parametrize("name", shared.NAMES)
def test_documented_options_are_those_of_redis(
    reference: Sides, colonnade: Sides, name: str
) -> None:
    """Each command documents the same literal words, which redis-cli shows while one types."""
    theirs, ours = (
        dict(_options(ask(side, "COMMAND", "DOCS", name)))
        for side in (reference(()), colonnade(()))
    )
    for command in sorted(set(theirs) & set(ours)):
        same(sorted(theirs[command]), sorted(ours[command]), command)


def _options(reply: Reply) -> Iterator[tuple[str, set[str]]]:
    for name, described in reply.pairs:
        fields = {field.text.decode(): value for field, value in described.pairs}
        arguments = fields.get("arguments", Reply("array", ()))
        yield name.text.decode(), set(_tokens(arguments))
        if "subcommands" in fields:
            yield from _options(fields["subcommands"])


def _tokens(arguments: Reply) -> Iterator[str]:
    for argument in arguments.elements:
        for field, value in argument.pairs:
            if field.text == b"token":
                yield value.text.decode().upper()
            elif field.text == b"arguments":
                yield from _tokens(value)
