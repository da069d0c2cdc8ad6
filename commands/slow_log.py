"""SLOWLOG: the calls that took long."""

from __future__ import annotations

from commands.context import Context
from commands.errors import BadSlowLogCount, SlowLogArity
from commands.help import help_lines
from commands.observing.slow_log import SlowCall
from commands.replies import OK, Reply
from commands.table import command, container
from storage.integers import parse_integer

DEFAULT_COUNT = 10
ALL = -1

container("SLOWLOG", group="server", since="2.2.12", summary="A container for slow log commands.")


@command(
    "SLOWLOG|GET",
    arity=-2,
    flags="admin loading stale",
    group="server",
    since="2.2.12",
    complexity="O(N) for N entries",
    syntax="[count]",
    tips="request_policy:all_nodes nondeterministic_output",
)
async def get(context: Context, words: list[bytes]) -> Reply:
    """Tells the newest entries of the slow log: ten of them, `count`, or all for -1.

    An entry is its number, the Unix time in seconds, how long the call took in microseconds, its
    words (shortened, without passwords), the client's address and its name.
    """
    if len(words) > 3:
        raise SlowLogArity(words[1])
    count = DEFAULT_COUNT if len(words) == 2 else parse_integer(words[2])
    if count is None or count < ALL:
        raise BadSlowLogCount
    entries = list(context.server.slow_log.entries)
    return [_entry(entry) for entry in (entries if count == ALL else entries[:count])]


def _entry(entry: SlowCall) -> list[object]:
    return [
        entry.identifier,
        entry.unix_seconds,
        entry.microseconds,
        entry.words,
        entry.address.encode(),
        entry.client_name,
    ]


@command(
    "SLOWLOG|LEN",
    arity=2,
    flags="admin loading stale",
    group="server",
    since="2.2.12",
    complexity="O(1)",
    tips="request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
)
async def length(context: Context, _words: list[bytes]) -> Reply:
    """Tells how many entries the slow log has."""
    return len(context.server.slow_log.entries)


@command(
    "SLOWLOG|RESET",
    arity=2,
    flags="admin loading stale",
    group="server",
    since="2.2.12",
    complexity="O(N) for N entries",
    tips="request_policy:all_nodes response_policy:all_succeeded",
)
async def reset(context: Context, _words: list[bytes]) -> Reply:
    """Empties the slow log."""
    context.server.slow_log.reset()
    return OK


@command(
    "SLOWLOG|HELP",
    arity=2,
    flags="loading stale",
    group="server",
    since="6.2.0",
    complexity="O(1)",
)
async def help_(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of SLOWLOG."""
    return help_lines("SLOWLOG")
