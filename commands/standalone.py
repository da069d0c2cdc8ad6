"""What a server answers that stands alone: no cluster, no replicas, no modules, no scripts.

In Redis's words, so that clients and tools that ask first find out in the way they know.
"""

from __future__ import annotations

from commands.arguments import Arguments
from commands.context import Context
from commands.errors import (
    BadFunctionFlush,
    BadMasterPort,
    BadSubcommandUse,
    ClusterDisabled,
    NoLibraryName,
    ReplicationUnsupported,
    UnknownArgument,
)
from commands.help import help_lines
from commands.replies import OK, Reply
from commands.table import command, container
from storage.integers import parse_integer

# Replication


async def _replicaof(_context: Context, words: list[bytes]) -> Reply:
    if words[1].upper() == b"NO" and words[2].upper() == b"ONE":
        return OK
    port = parse_integer(words[2])
    if port is None or not 0 <= port <= 65535:
        raise BadMasterPort
    raise ReplicationUnsupported


for _name, _since in (("REPLICAOF", "5.0.0"), ("SLAVEOF", "1.0.0")):

    @command(
        _name,
        arity=3,
        flags="admin noscript stale no_async_loading",
        group="server",
        since=_since,
        complexity="O(1)",
        syntax="(host port | NO ONE)",
    )
    async def replicaof(context: Context, words: list[bytes]) -> Reply:
        """NO ONE leaves it a master, which it is. Another server cannot be followed."""
        return await _replicaof(context, words)


# Cluster

container("CLUSTER", group="cluster", since="3.0.0", summary="A container for cluster commands.")

_CLUSTER = {
    "HELP": (2, "loading stale", "", ""),
    "INFO": (2, "stale", "", "nondeterministic_output"),
    "KEYSLOT": (3, "stale", "key", ""),
    "LINKS": (2, "stale", "", "nondeterministic_output"),
    "MYID": (2, "stale", "", ""),
    "NODES": (2, "stale", "", "nondeterministic_output"),
    "SHARDS": (2, "stale", "", "nondeterministic_output"),
    "SLOTS": (2, "stale", "", "nondeterministic_output"),
    "COUNTKEYSINSLOT": (3, "stale", "slot", ""),
    "GETKEYSINSLOT": (4, "stale", "slot count", "nondeterministic_output"),
    "REPLICAS": (3, "admin stale", "node-id", "nondeterministic_output"),
    "RESET": (-2, "admin noscript stale", "[HARD | SOFT]", ""),
    "MEET": (-4, "admin stale no_async_loading", "ip port [cluster-bus-port]", ""),
    "FORGET": (3, "admin stale no_async_loading", "node-id", ""),
}
"""Subcommand: arity, flags, syntax, tips."""

_CLUSTER_SINCE = {"LINKS": "7.0.0", "SHARDS": "7.0.0", "HELP": "5.0.0", "REPLICAS": "5.0.0"}

for _name, (_arity, _flags, _syntax, _tips) in _CLUSTER.items():

    @command(
        f"CLUSTER|{_name}",
        arity=_arity,
        flags=_flags,
        group="cluster",
        since=_CLUSTER_SINCE.get(_name, "3.0.0"),
        complexity="O(1)",
        syntax=_syntax,
        tips=_tips,
    )
    async def cluster_disabled(_context: Context, _words: list[bytes]) -> Reply:
        """Refuses: this server is no part of a cluster."""
        raise ClusterDisabled


for _name in ("READONLY", "READWRITE", "ASKING"):

    @command(
        _name,
        arity=1,
        flags="fast" if _name == "ASKING" else "loading stale fast",
        group="cluster",
        categories="connection",
        since="3.0.0",
        complexity="O(1)",
    )
    async def cluster_mode(_context: Context, _words: list[bytes]) -> Reply:
        """Refuses: this server is no part of a cluster."""
        raise ClusterDisabled


# Modules

container("MODULE", group="server", since="4.0.0", summary="A container for module commands.")


@command(
    "MODULE|LIST",
    arity=2,
    flags="admin noscript",
    group="server",
    since="4.0.0",
    complexity="O(1)",
    tips="nondeterministic_output_order",
)
async def module_list(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the loaded modules: none."""
    return []


@command(
    "MODULE|HELP", arity=2, flags="loading stale", group="server", since="5.0.0", complexity="O(1)"
)
async def module_help(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of MODULE."""
    return help_lines("MODULE")


# Functions

container(
    "FUNCTION", group="scripting", since="7.0.0", summary="A container for function commands."
)


@command(
    "FUNCTION|LIST",
    arity=-2,
    flags="noscript",
    group="scripting",
    since="7.0.0",
    complexity="O(1)",
    syntax="[LIBRARYNAME library-name-pattern] [WITHCODE]",
    tips="nondeterministic_output_order",
)
async def function_list(_context: Context, words: list[bytes]) -> Reply:
    """Lists the function libraries: none."""
    arguments, seen = Arguments(words, 2), set[bytes]()
    while arguments.left:
        word = arguments.take()
        option = word.upper()
        if option not in (b"LIBRARYNAME", b"WITHCODE") or option in seen:
            raise UnknownArgument(word)
        seen.add(option)
        if option == b"LIBRARYNAME":
            if not arguments.left:
                raise NoLibraryName
            arguments.take()
    return []


@command(
    "FUNCTION|FLUSH",
    arity=-2,
    flags="write noscript",
    group="scripting",
    since="7.0.0",
    complexity="O(1)",
    syntax="[ASYNC | SYNC]",
    tips="request_policy:all_shards response_policy:all_succeeded",
)
async def function_flush(_context: Context, words: list[bytes]) -> Reply:
    """Removes all function libraries, of which there are none."""
    if len(words) > 3:
        raise BadSubcommandUse("FUNCTION", words[1])
    if len(words) == 3 and words[2].upper() not in (b"ASYNC", b"SYNC"):
        raise BadFunctionFlush
    return OK


@command(
    "FUNCTION|HELP",
    arity=2,
    flags="loading stale",
    group="scripting",
    since="7.0.0",
    complexity="O(1)",
)
async def function_help(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of FUNCTION."""
    return help_lines("FUNCTION")
