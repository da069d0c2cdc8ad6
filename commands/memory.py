"""MEMORY: what the process's memory is used for."""

from __future__ import annotations

from commands.arguments import Arguments
from commands.command import Access, Keys
from commands.context import Context
from commands.errors import SyntaxProblem
from commands.help import help_lines
from commands.observing import advice
from commands.observing.memory import MemoryFigures
from commands.replies import OK, Reply, Verbatim
from commands.table import command, container
from storage.errors import InvalidDatasetName, NoSuchDataset
from storage.integers import MIN_INTEGER
from storage.model import DatasetInfo

container("MEMORY", group="server", since="4.0.0", summary="A container for memory commands.")

_TIPS = "nondeterministic_output request_policy:all_shards response_policy:special"


@command(
    "MEMORY|USAGE",
    arity=-3,
    flags="readonly",
    keys=Keys(2, 2, 1, Access.NONE),
    group="server",
    since="4.0.0",
    complexity="O(1)",
    syntax="dataset [SAMPLES count]",
)
async def usage(context: Context, words: list[bytes]) -> Reply:
    """Estimates the bytes of memory that a dataset uses; null when there is none of that name.

    They are its writes that are not in files yet, and its share of the blocks kept of all files.
    SAMPLES is taken for the sake of Redis's clients and changes nothing.
    """
    _check_samples(Arguments(words, 3))
    try:
        dataset = await context.store.dataset_info(words[2])
    except (NoSuchDataset, InvalidDatasetName):
        return None
    return _memory_of(dataset, await context.server.memory())


def _check_samples(arguments: Arguments) -> None:
    while arguments.left:
        if arguments.take_keyword() != b"SAMPLES":
            raise SyntaxProblem
        if arguments.take_integer(MIN_INTEGER) < 0:
            raise SyntaxProblem


def _memory_of(dataset: DatasetInfo, figures: MemoryFigures) -> int:
    share = figures.cache * dataset.disk_bytes // max(1, figures.files)
    return dataset.memtable_bytes + share


@command(
    "MEMORY|STATS",
    arity=2,
    flags="",
    group="server",
    since="4.0.0",
    complexity="O(N) for N datasets and clients",
    tips=_TIPS,
)
async def stats(context: Context, _words: list[bytes]) -> Reply:
    """Tells what the memory is used for, in bytes and percent, by the names Redis has for it.

    `dataset.bytes` is what is kept in memory of the datasets; `keys` are those of the Redis
    keyspace.
    """
    return {name.encode(): value for name, value in _stats(await context.server.memory()).items()}


def _stats(figures: MemoryFigures) -> dict[str, int | float]:
    """Redis's fields in its order. The allocator is the process to us, so that both its ratios
    are 1."""
    unused = figures.resident - figures.used
    return {
        "peak.allocated": figures.peak,
        "total.allocated": figures.used,
        "startup.allocated": figures.startup,
        "replication.backlog": 0,
        "clients.slaves": 0,
        "clients.normal": figures.clients,
        "cluster.links": 0,
        "aof.buffer": 0,
        "lua.caches": 0,
        "functions.caches": 0,
        "overhead.total": figures.overhead,
        "keys.count": 0,
        "keys.bytes-per-key": 0,
        "dataset.bytes": figures.datasets,
        "dataset.percentage": figures.datasets_percent,
        "peak.percentage": figures.peak_percent,
        "allocator.allocated": figures.used,
        "allocator.active": figures.used,
        "allocator.resident": figures.used,
        "allocator-fragmentation.ratio": 1.0,
        "allocator-fragmentation.bytes": 0,
        "allocator-rss.ratio": 1.0,
        "allocator-rss.bytes": 0,
        "rss-overhead.ratio": figures.resident_ratio,
        "rss-overhead.bytes": unused,
        "fragmentation": figures.resident_ratio,
        "fragmentation.bytes": unused,
    }


@command(
    "MEMORY|DOCTOR",
    arity=2,
    flags="",
    group="server",
    since="4.0.0",
    complexity="O(N) for N datasets and clients",
    tips=_TIPS,
)
async def doctor(context: Context, _words: list[bytes]) -> Reply:
    """Reports what is odd about the use of memory, with advice, for people to read."""
    clients = len(context.server.clients.all())
    return Verbatim(advice.memory_report(await context.server.memory(), clients).encode())


@command(
    "MEMORY|MALLOC-STATS",
    arity=2,
    flags="",
    group="server",
    since="4.0.0",
    complexity="O(N) for N datasets and clients",
    tips=_TIPS,
)
async def malloc_stats(context: Context, _words: list[bytes]) -> Reply:
    """Reports the figures behind MEMORY STATS, for people to read."""
    return Verbatim(advice.allocation_report(await context.server.memory()).encode())


@command(
    "MEMORY|PURGE",
    arity=2,
    flags="",
    group="server",
    since="4.0.0",
    complexity="O(N) for N pages of memory; other clients wait meanwhile",
    tips="request_policy:all_shards response_policy:all_succeeded",
)
async def purge(context: Context, _words: list[bytes]) -> Reply:
    """Gives memory back to the system that the process does not use."""
    context.server.release_memory()
    return OK


@command(
    "MEMORY|HELP",
    arity=2,
    flags="loading stale",
    group="server",
    since="4.0.0",
    complexity="O(1)",
)
async def help_(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of MEMORY."""
    return help_lines("MEMORY")
