"""docs/compatibility.md tells of every command of Redis 7.2, as the command table has it."""

from __future__ import annotations

from commands.table import TABLE
from tests.compare import compatibility, redis_commands

OF_REDIS = redis_commands.names()


def test_the_page_has_the_table_of_today() -> None:
    part = compatibility.part_of_the_page()
    assert part == compatibility.table(), "run python -m tests.compare.compatibility"


def test_every_command_has_a_row() -> None:
    table = compatibility.table()
    for name in OF_REDIS:
        assert table.count(f"\n| `{name.upper()}` |") == 1, name


def test_what_is_said_of_commands_is_needed() -> None:
    there = set(TABLE.all())
    assert set(compatibility.REMARKS) <= there
    assert not set(compatibility.REASONS) & there
    assert set(compatibility.REASONS) <= set(OF_REDIS)
    for name in compatibility.WITHOUT_SUBCOMMANDS:
        assert set(redis_commands.subcommands(name)) - set(TABLE.all()[name].subcommands), name


def test_our_commands_of_redis_names_have_redis_groups() -> None:
    """A command of ours that has a name of Redis is counted among its family there."""
    for name in set(TABLE.all()) & set(OF_REDIS):
        assert TABLE.all()[name].group == OF_REDIS[name], name
