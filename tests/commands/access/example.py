"""A small command table, like a corner of Redis, for tests that need no other family."""

from __future__ import annotations

from typing import Any

from commands.access.rules import RuleLanguage, joined_selectors
from commands.access.user import User
from commands.command import NO_KEYS, Access, Channels, Command, Keys, Table

KEY = Keys(1, 1, 1)


async def nothing(_context: Any, _words: list[bytes]) -> None:
    """Does nothing."""


def _command(name: str, arity: int, flags: str, syntax: str = "", **more: Any) -> Command:
    given: dict[str, Any] = {
        "keys": NO_KEYS,
        "group": "generic",
        "since": "1.0.0",
        "complexity": "O(1)",
        "summary": "Does something.",
        "description": "",
        "handler": nothing,
    } | more
    categories = frozenset(given.pop("categories", "").split())
    return Command(
        name,
        arity,
        frozenset(flags.split()),
        syntax=syntax,
        declared_categories=categories,
        **given,
    )


def _table() -> Table:
    both = Keys(1, 1, 1, Access.READ | Access.WRITE)
    table = Table()
    for command in (
        _command("get", 2, "readonly fast", "key", keys=KEY, categories="string"),
        _command("mget", -2, "readonly fast", "key [key ...]", keys=Keys(1, -1, 1)),
        _command("set", 3, "write", "key value", keys=KEY, categories="string"),
        _command("getset", 3, "write fast", "key value", keys=both, categories="string"),
        _command("hget", 3, "readonly fast", "key field", keys=KEY, categories="hash"),
        _command("wcget", 3, "readonly", "dataset row", keys=KEY, group="widecolumn"),
        _command("wcscan", 2, "readonly", "dataset", keys=KEY, group="widecolumn"),
        _command("wcdel", 3, "write", "dataset row", keys=KEY, group="widecolumn"),
        _command("watch", -2, "fast", "key [key ...]", keys=Keys(1, -1, 1), group="transactions"),
        _command("select", 2, "fast", "index", group="connection"),
        _command("auth", -2, "no_auth fast", "[username] password", group="connection"),
        _command("publish", 3, "pubsub", "channel message", channels=Channels(1, 1)),
        _command("subscribe", -2, "pubsub", "channel [channel ...]", channels=Channels(1, -1)),
        _command(
            "psubscribe",
            -2,
            "pubsub",
            "pattern [pattern ...]",
            channels=Channels(1, -1, are_patterns=True),
        ),
        _command(
            "ssubscribe",
            -2,
            "pubsub",
            "channel [channel ...]",
            keys=Keys(1, -1, 1),
            group="pubsub",
            channels=Channels(1, -1),
        ),
        _command("config", -2, "", handler=None),
        _command("config|get", 3, "admin", "name"),
        _command("config|set", 4, "admin", "name value"),
    ):
        table.add(command)
    return table


TABLE = _table()
"""Nobody changes it."""


def words(text: str) -> list[bytes]:
    return text.encode().split()


def user_of(rules: str) -> User:
    """A user made by these rules."""
    language = RuleLanguage(TABLE)
    user = language.new_user(b"x")
    for rule in joined_selectors(words(rules)):
        language.apply(user, rule)
    return user
