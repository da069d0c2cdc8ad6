"""WCADMIN: what `colonnade export`, `import` and `restore` ask of the server on their machine.

Paths go out of the server, never in: folders have names that it made up itself, in its own
directory, and what a crash leaves there is removed at the next start.
"""

from __future__ import annotations

import os

from commands.arguments import Arguments, take_options, takes_nothing
from commands.context import Context
from commands.help import help_lines
from commands.replies import OK, Reply
from commands.table import DATASET_OF_SUBCOMMAND, command, container
from storage.model import MAX_TTL_SECONDS, MAX_VERSIONS_LIMIT, DatasetSettings

container(
    "WCADMIN",
    group="server",
    since="0.1.0",
    summary="A container for exports, imports and restores.",
)

_FLAGS = "admin noscript no_async_loading no_multi files"


@command(
    "WCADMIN|CHECKPOINT",
    arity=2,
    flags=_FLAGS,
    group="server",
    since="0.1.0",
    complexity="O(1), some milliseconds",
)
async def checkpoint(context: Context, _words: list[bytes]) -> Reply:
    """Makes a copy of all that is written, for a tool on this machine to read; tells its path.

    Table files are hard links, which keep their room on the disk until WCADMIN RELEASE.
    """
    return os.fsencode(await context.store.checkpoint_for_export())


@command(
    "WCADMIN|STAGE",
    arity=2,
    flags=_FLAGS,
    group="server",
    since="0.1.0",
    complexity="O(1)",
)
async def stage(context: Context, _words: list[bytes]) -> Reply:
    """Makes a folder for a tool on this machine to put tables of cells into; tells its path."""
    return os.fsencode(context.store.folder_for_import())


@command(
    "WCADMIN|INGEST",
    arity=-4,
    flags=f"write {_FLAGS}",
    keys=DATASET_OF_SUBCOMMAND,
    group="server",
    since="0.1.0",
    complexity="O(N) for N tables, some milliseconds",
    syntax="dataset folder [EXPIRING]",
)
async def ingest(context: Context, words: list[bytes]) -> Reply:
    """Puts all cells of a folder of WCADMIN STAGE into a dataset, at once or not at all.

    The folder is its last part of the path. The tables are trusted. EXPIRING says that some cells
    have expiries of their own; a dataset with MAXVERSIONS takes those only while it is empty.
    """
    seen = take_options(Arguments(words, 4), {b"EXPIRING": takes_nothing})
    return await context.store.ingest(
        words[2], words[3], context.settings.create_with, expiring=bool(seen)
    )


@command(
    "WCADMIN|CREATE",
    arity=6,
    flags=f"write {_FLAGS}",
    keys=DATASET_OF_SUBCOMMAND,
    group="server",
    since="0.1.0",
    complexity="O(N) for N tables, some milliseconds",
    syntax="dataset folder maxversions ttl",
)
async def create(context: Context, words: list[bytes]) -> Reply:
    """Creates a dataset of all cells of a folder of WCADMIN STAGE, at once or not at all.

    The folder is its last part of the path. The tables are trusted. Not even a crash leaves a
    dataset that holds a part of them. The settings are those of WCDATASET CREATE.
    """
    arguments = Arguments(words, 4)
    settings = DatasetSettings(
        arguments.take_integer(0, MAX_VERSIONS_LIMIT), arguments.take_integer(0, MAX_TTL_SECONDS)
    )
    return await context.store.ingest_new(words[2], words[3], settings)


@command(
    "WCADMIN|RELEASE",
    arity=3,
    flags=_FLAGS,
    group="server",
    since="0.1.0",
    complexity="O(N) for N files",
    syntax="folder",
)
async def release(context: Context, words: list[bytes]) -> Reply:
    """Removes a folder of WCADMIN CHECKPOINT or STAGE, named by the last part of its path."""
    context.store.release(words[2])
    return OK


@command(
    "WCADMIN|HELP",
    arity=2,
    flags="loading stale",
    group="server",
    since="0.1.0",
    complexity="O(1)",
)
async def help_(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of WCADMIN."""
    return help_lines("WCADMIN")
