"""COMMAND: lists, descriptions and the keys of a call. The entries themselves: test_table.py."""

from __future__ import annotations

from tests.compare.conversation import step, talk
from tests.compare.likeness import (
    any_order,
    help_text,
    number,
    outermost_type,
    subcommands_in_any_order,
    words_in_any_order,
)

DESCRIBED = (
    "ping", "PING echo", "client|id", "watch", "publish", "auth nothing exec", "config|get",
    "slowlog",
)  # fmt: skip

CONVERSATIONS = [
    talk("command count", step("COMMAND COUNT", number), "COMMAND COUNT x"),
    talk("command", step("COMMAND", outermost_type), step("COMMAND LIST", outermost_type)),
    talk(
        "command list filtered",
        "COMMAND LIST FILTERBY PATTERN pin[g]",
        "COMMAND LIST FILTERBY pattern PING",
        "COMMAND LIST FILTERBY PATTERN nothing*",
        step("COMMAND LIST FILTERBY PATTERN *subscribe", any_order),
        step("COMMAND LIST FILTERBY PATTERN config|*", any_order),
        step("COMMAND LIST FILTERBY PATTERN config*", any_order),
        "COMMAND LIST FILTERBY PATTERN ''",
        step("COMMAND LIST FILTERBY ACLCAT transaction", any_order),
        "COMMAND LIST FILTERBY ACLCAT nothing",
        "COMMAND LIST FILTERBY ACLCAT @transaction",
        "COMMAND LIST FILTERBY MODULE nothing",
        "COMMAND LIST FILTERBY foo bar",
        "COMMAND LIST FILTERBY PATTERN",
        "COMMAND LIST FILTERBY",
        "COMMAND LIST foo",
        "COMMAND LIST FILTERBY PATTERN a b",
        "COMMAND LIST FILTERBY PATTERN a FILTERBY MODULE b",
    ),
    talk(
        "command info",
        *[
            step(f"COMMAND INFO {names}", words_in_any_order, subcommands_in_any_order)
            for names in DESCRIBED
        ],
    ),
    talk(
        "command info of what is not there",
        "COMMAND INFO nothing",
        "COMMAND INFO nothing client|nothing",
        "COMMAND INFO client|id|x",
        "COMMAND INFO ping|x",
        "COMMAND INFO ''",
        "COMMAND INFO |",
        "command info NOTHING",
    ),
    talk(
        "command docs of what is not there",
        "COMMAND DOCS nothing",
        "COMMAND DOCS nothing client|nothing",
    ),
    talk(
        "command getkeys",
        "COMMAND GETKEYS WATCH a b c",
        "COMMAND GETKEYS watch a",
        "COMMAND GETKEYS OBJECT ENCODING a",
        "COMMAND GETKEYS MEMORY USAGE a",
        "COMMAND GETKEYS PING",
        "COMMAND GETKEYS ECHO a",
        "COMMAND GETKEYS CONFIG GET a",
        "COMMAND GETKEYS CONFIG",
        "COMMAND GETKEYS FOO a",
        "COMMAND GETKEYS CLIENT FOO",
        "COMMAND GETKEYS WATCH",
        "COMMAND GETKEYS ECHO",
        "COMMAND GETKEYS PUBLISH a b",
        "COMMAND GETKEYS SPUBLISH a b",
        "COMMAND GETKEYS SUBSCRIBE a b",
        "COMMAND GETKEYS",
    ),
    talk(
        "command getkeysandflags",
        "COMMAND GETKEYSANDFLAGS WATCH a b",
        "COMMAND GETKEYSANDFLAGS OBJECT ENCODING a",
        "COMMAND GETKEYSANDFLAGS PING",
        "COMMAND GETKEYSANDFLAGS FOO",
        "COMMAND GETKEYSANDFLAGS WATCH",
        "COMMAND GETKEYSANDFLAGS",
    ),
    talk("command help", step("COMMAND HELP", help_text), "COMMAND HELP x"),
]
