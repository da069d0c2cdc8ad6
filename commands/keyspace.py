"""The Redis keyspace of the selected database, which is empty as long as there are no Redis types:
these commands say so, for the tools that ask. Datasets are not in it.
"""

from __future__ import annotations

import re

from commands.arguments import Arguments, Option, take_options
from commands.command import Access, Keys
from commands.context import Context
from commands.errors import BadDatabaseIndex, DatabaseOutOfRange, InvalidCursor, SyntaxProblem
from commands.help import help_lines
from commands.replies import OK, Reply, Status
from commands.server import check_flush_mode
from commands.table import command, container
from storage.integers import MIN_INTEGER, parse_integer

_KEY = Keys(1, 1, 1, Access.NONE)
_KEYS = Keys(1, -1, 1, Access.NONE)
_KEY_OF_SUBCOMMAND = Keys(2, 2, 1, Access.NONE)
_CURSOR = re.compile(rb"[+-]?[0-9]{1,20}")


@command(
    "DBSIZE",
    arity=1,
    flags="readonly fast",
    group="server",
    categories="keyspace",
    since="1.0.0",
    complexity="O(1)",
    tips="request_policy:all_shards response_policy:agg_sum",
)
async def dbsize(_context: Context, _words: list[bytes]) -> Reply:
    """Tells how many keys the selected database has. Datasets are not counted."""
    return 0


@command(
    "FLUSHDB",
    arity=-1,
    flags="write",
    group="server",
    categories="keyspace dangerous",
    since="1.0.0",
    complexity="O(1)",
    syntax="[ASYNC | SYNC]",
    tips="request_policy:all_shards response_policy:all_succeeded",
)
async def flushdb(_context: Context, words: list[bytes]) -> Reply:
    """Removes all keys of the selected database. Datasets stay; FLUSHALL drops them too."""
    check_flush_mode(words)
    return OK


@command(
    "SWAPDB",
    arity=3,
    flags="write fast",
    group="server",
    categories="keyspace dangerous",
    since="4.0.0",
    complexity="O(1)",
    syntax="index1 index2",
)
async def swapdb(context: Context, words: list[bytes]) -> Reply:
    """Exchanges the keys of two databases. Datasets are in all of them."""
    for word, which in zip(words[1:], ("first", "second"), strict=True):
        index = parse_integer(word)
        if index is None or not -(2**31) <= index < 2**31:
            raise BadDatabaseIndex(which)
    if not all(0 <= int(word) < context.settings.databases for word in words[1:]):
        raise DatabaseOutOfRange
    return OK


@command(
    "KEYS",
    arity=2,
    flags="readonly",
    group="generic",
    categories="keyspace dangerous",
    since="1.0.0",
    complexity="O(N) for N keys",
    syntax="pattern",
    tips="request_policy:all_shards nondeterministic_output_order",
)
async def keys(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the keys that fit a glob pattern. WCDATASET LIST lists datasets."""
    return []


@command(
    "SCAN",
    arity=-2,
    flags="readonly",
    group="generic",
    categories="keyspace",
    since="2.8.0",
    complexity="O(1) a call",
    syntax="cursor [MATCH pattern] [COUNT count] [TYPE type]",
    tips="nondeterministic_output request_policy:special",
)
async def scan(_context: Context, words: list[bytes]) -> Reply:
    """Goes through the keys of the selected database. WCSCAN goes through a dataset."""
    if not _CURSOR.fullmatch(words[1]) or abs(int(words[1])) >= 2**64:
        raise InvalidCursor
    options: dict[bytes, Option] = {
        b"MATCH": _take_word,
        b"COUNT": _take_count,
        b"TYPE": _take_word,
    }
    take_options(Arguments(words, 2), options)
    return [b"0", []]


def _take_word(arguments: Arguments) -> None:
    arguments.take()


def _take_count(arguments: Arguments) -> None:
    if arguments.take_integer(MIN_INTEGER) < 1:
        raise SyntaxProblem


@command(
    "RANDOMKEY",
    arity=1,
    flags="readonly",
    group="generic",
    categories="keyspace",
    since="1.0.0",
    complexity="O(1)",
    tips="request_policy:all_shards nondeterministic_output",
)
async def randomkey(_context: Context, _words: list[bytes]) -> Reply:
    """Picks a key of the selected database at random; null when there is none."""
    return None


@command(
    "TYPE",
    arity=2,
    flags="readonly fast",
    keys=_KEY,
    group="generic",
    categories="keyspace",
    since="1.0.0",
    complexity="O(1)",
    syntax="key",
)
async def type_(_context: Context, _words: list[bytes]) -> Reply:
    """Tells the type of a key: none."""
    return Status(b"none")


@command(
    "EXISTS",
    arity=-2,
    flags="readonly fast",
    keys=_KEYS,
    group="generic",
    categories="keyspace",
    since="1.0.0",
    complexity="O(1)",
    syntax="key [key ...]",
    tips="request_policy:multi_shard response_policy:agg_sum",
)
async def exists(_context: Context, _words: list[bytes]) -> Reply:
    """Tells how many of the keys there are. WCEXISTS counts rows."""
    return 0


# OBJECT

container("OBJECT", group="generic", since="2.2.3", summary="A container for object commands.")


@command(
    "OBJECT|ENCODING",
    arity=3,
    flags="readonly",
    keys=_KEY_OF_SUBCOMMAND,
    group="generic",
    categories="keyspace",
    since="2.2.3",
    complexity="O(1)",
    syntax="key",
    tips="nondeterministic_output",
)
async def object_encoding(_context: Context, _words: list[bytes]) -> Reply:
    """Tells how a key's value is held; null when there is no such key."""
    return None


@command(
    "OBJECT|IDLETIME",
    arity=3,
    flags="readonly",
    keys=_KEY_OF_SUBCOMMAND,
    group="generic",
    categories="keyspace",
    since="2.2.3",
    complexity="O(1)",
    syntax="key",
    tips="nondeterministic_output",
)
async def object_idletime(_context: Context, _words: list[bytes]) -> Reply:
    """Tells how long a key was not used; null when there is no such key."""
    return None


@command(
    "OBJECT|FREQ",
    arity=3,
    flags="readonly",
    keys=_KEY_OF_SUBCOMMAND,
    group="generic",
    categories="keyspace",
    since="4.0.0",
    complexity="O(1)",
    syntax="key",
    tips="nondeterministic_output",
)
async def object_freq(_context: Context, _words: list[bytes]) -> Reply:
    """Tells how often a key was used; null when there is no such key."""
    return None


@command(
    "OBJECT|REFCOUNT",
    arity=3,
    flags="readonly",
    keys=_KEY_OF_SUBCOMMAND,
    group="generic",
    categories="keyspace",
    since="2.2.3",
    complexity="O(1)",
    syntax="key",
    tips="nondeterministic_output",
)
async def object_refcount(_context: Context, _words: list[bytes]) -> Reply:
    """Tells how many references a key's value has; null when there is no such key."""
    return None


@command(
    "OBJECT|HELP",
    arity=2,
    flags="loading stale",
    group="generic",
    categories="keyspace",
    since="6.2.0",
    complexity="O(1)",
)
async def object_help(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of OBJECT."""
    return help_lines("OBJECT")
