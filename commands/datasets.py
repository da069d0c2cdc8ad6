"""WCDATASET: the tables and their settings."""

from __future__ import annotations

from commands.arguments import Arguments, Option, take_options, takes_nothing
from commands.context import Context
from commands.errors import SyntaxProblem
from commands.help import help_lines
from commands.patterns import Pattern
from commands.replies import OK, Reply
from commands.table import DATASET_OF_SUBCOMMAND, command, container
from storage.model import MAX_TTL_SECONDS, MAX_VERSIONS_LIMIT, DatasetSettings

container(
    "WCDATASET", group="widecolumn", since="0.1.0", summary="A container for dataset commands."
)

_SETTINGS = "[MAXVERSIONS n] [TTL seconds]"


class _Settings:
    """MAXVERSIONS and TTL where given, and which of the flags that may stand among them."""

    def __init__(self, arguments: Arguments, *flags: bytes) -> None:
        self.max_versions: int | None = None
        self.ttl_seconds: int | None = None
        options: dict[bytes, Option] = dict.fromkeys(flags, takes_nothing)
        options |= {b"MAXVERSIONS": self._max_versions, b"TTL": self._ttl}
        self.seen = take_options(arguments, options)

    def _max_versions(self, arguments: Arguments) -> None:
        self.max_versions = arguments.take_integer(0, MAX_VERSIONS_LIMIT)

    def _ttl(self, arguments: Arguments) -> None:
        self.ttl_seconds = arguments.take_integer(0, MAX_TTL_SECONDS)


@command(
    "WCDATASET|CREATE",
    arity=-3,
    flags="write denyoom",
    keys=DATASET_OF_SUBCOMMAND,
    group="widecolumn",
    since="0.1.0",
    complexity="O(1), a few milliseconds",
    syntax=f"name {_SETTINGS} [IFNOTEXISTS]",
)
async def create(context: Context, words: list[bytes]) -> Reply:
    """Creates a dataset.

    MAXVERSIONS is how many cells a column keeps, 0 all; TTL is in seconds from a cell's timestamp,
    0 never. Settings not given are those of the configuration.
    """
    given = _Settings(Arguments(words, 3), b"IFNOTEXISTS")
    default = context.settings.new_dataset
    settings = DatasetSettings(
        default.max_versions if given.max_versions is None else given.max_versions,
        default.ttl_seconds if given.ttl_seconds is None else given.ttl_seconds,
    )
    await context.store.create_dataset(
        words[2], settings, if_not_exists=b"IFNOTEXISTS" in given.seen
    )
    return OK


@command(
    "WCDATASET|ALTER",
    arity=-3,
    flags="write denyoom",
    keys=DATASET_OF_SUBCOMMAND,
    group="widecolumn",
    since="0.1.0",
    complexity="O(1)",
    syntax=f"name {_SETTINGS}",
)
async def alter(context: Context, words: list[bytes]) -> Reply:
    """Changes a dataset's settings, from the next read on."""
    given = _Settings(Arguments(words, 3))
    if not given.seen:
        raise SyntaxProblem
    await context.store.alter_dataset(
        words[2], max_versions=given.max_versions, ttl_seconds=given.ttl_seconds
    )
    return OK


@command(
    "WCDATASET|DROP",
    arity=-3,
    flags="write",
    keys=DATASET_OF_SUBCOMMAND,
    group="widecolumn",
    since="0.1.0",
    complexity="O(1), a few milliseconds",
    syntax="name [IFEXISTS]",
)
async def drop(context: Context, words: list[bytes]) -> Reply:
    """Drops a dataset and all its data."""
    seen = take_options(Arguments(words, 3), {b"IFEXISTS": takes_nothing})
    await context.store.drop_dataset(words[2], if_exists=bool(seen))
    return OK


@command(
    "WCDATASET|LIST",
    arity=-2,
    flags="readonly",
    group="widecolumn",
    since="0.1.0",
    complexity="O(N) for N datasets",
    syntax="[pattern]",
)
async def list_names(context: Context, words: list[bytes]) -> Reply:
    """Lists the names of the datasets, sorted, all or those that fit a glob pattern."""
    arguments = Arguments(words, 2)
    pattern = arguments.take() if arguments.left else b"*"
    arguments.expect_end()
    user = context.client.user
    fits = Pattern(pattern).fits
    names = [name for name in context.store.dataset_names() if fits(name)]
    return names if user.unrestricted else [name for name in names if user.may_read(name)]


@command(
    "WCDATASET|INFO",
    arity=3,
    flags="readonly",
    keys=DATASET_OF_SUBCOMMAND,
    group="widecolumn",
    since="0.1.0",
    complexity="O(1)",
    syntax="name",
)
async def info(context: Context, words: list[bytes]) -> Reply:
    """Tells a dataset's settings and what it holds."""
    found = await context.store.dataset_info(words[2])
    return {
        b"name": found.name,
        b"maxversions": found.settings.max_versions,
        b"ttl": found.settings.ttl_seconds,
        b"created-ms": found.created_ms,
        b"estimated-cells": found.estimated_cells,
        b"disk-bytes": found.disk_bytes,
        b"memtable-bytes": found.memtable_bytes,
        b"last-compaction-ms": found.last_compaction_ms,
        b"last-compaction-removed-cells": found.last_compaction_removed_cells,
        b"compaction": found.compaction.encode(),
    }


@command(
    "WCDATASET|COMPACT",
    arity=3,
    flags="write",
    keys=DATASET_OF_SUBCOMMAND,
    group="widecolumn",
    since="0.1.0",
    complexity="O(1); the work itself is O(N) for N cells, in the background",
    syntax="name",
)
async def compact(context: Context, words: list[bytes]) -> Reply:
    """Starts to remove expired and surplus cells from the files of a dataset.

    It changes no answer. WCDATASET INFO tells how far it is, when it last ended and how much it
    removed.
    """
    await context.store.compact_dataset(words[2])
    return OK


@command(
    "WCDATASET|EXPLAIN",
    arity=-3,
    flags="readonly no_multi",
    keys=DATASET_OF_SUBCOMMAND,
    group="widecolumn",
    since="0.1.0",
    complexity="O(N) for N cells, in another process if there are many",
    syntax=f"name {_SETTINGS}",
)
async def explain(context: Context, words: list[bytes]) -> Reply:
    """Counts what a compaction would remove, and removes nothing.

    With MAXVERSIONS or TTL: what it would remove if the dataset had these settings. Sizes are those
    of keys and values before compression.
    """
    given = _Settings(Arguments(words, 3))
    found = await context.store.explain_compaction(
        words[2], max_versions=given.max_versions, ttl_seconds=given.ttl_seconds
    )
    return {
        b"cells": found.cells,
        b"bytes": found.bytes,
        b"expired-cells": found.expired_cells,
        b"expired-bytes": found.expired_bytes,
        b"surplus-cells": found.surplus_cells,
        b"surplus-bytes": found.surplus_bytes,
    }


@command(
    "WCDATASET|HELP",
    arity=2,
    flags="loading stale",
    group="widecolumn",
    since="0.1.0",
    complexity="O(1)",
)
async def help_(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of WCDATASET."""
    return help_lines("WCDATASET")
