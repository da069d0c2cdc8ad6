"""CLIENT: what a connection is called, who else is connected, ending and pausing them."""

from __future__ import annotations

import time
from collections.abc import Callable

from commands.arguments import Arguments, integer
from commands.client import Client
from commands.context import Context
from commands.errors import (
    BadClientIdentifier,
    BadClientInfo,
    BadClientName,
    BadKillIdentifier,
    BadPauseMode,
    BadSubcommandUse,
    BadTimeout,
    BadUnblockReason,
    NegativeTimeout,
    NoSuchClient,
    NoSuchUser,
    NotTracking,
    SyntaxProblem,
    TrackingUnsupported,
    UnknownClientInfo,
    UnknownClientType,
)
from commands.help import help_lines
from commands.replies import NO_REPLY, OK, Flags, Reply, Verbatim
from commands.table import command, container
from storage.integers import MIN_INTEGER, parse_integer

_NORMAL, _REPLICA, _MASTER, _PUBSUB = "normal", "replica", "master", "pubsub"
_TYPES = {
    b"normal": _NORMAL,
    b"replica": _REPLICA,
    b"slave": _REPLICA,
    b"master": _MASTER,
    b"pubsub": _PUBSUB,
}

container("CLIENT", group="connection", since="2.4.0", summary="A container for client commands.")


@command(
    "CLIENT|ID",
    arity=2,
    flags="noscript loading stale",
    group="connection",
    since="5.0.0",
    complexity="O(1)",
)
async def client_id(context: Context, _words: list[bytes]) -> Reply:
    """Tells the connection's number."""
    return context.client.identifier


@command(
    "CLIENT|SETNAME",
    arity=3,
    flags="noscript loading stale",
    group="connection",
    since="2.6.9",
    complexity="O(1)",
    syntax="connection-name",
)
async def client_setname(context: Context, words: list[bytes]) -> Reply:
    """Names the connection."""
    context.client.name = checked_name(words[2])
    return OK


@command(
    "CLIENT|GETNAME",
    arity=2,
    flags="noscript loading stale",
    group="connection",
    since="2.6.9",
    complexity="O(1)",
)
async def client_getname(context: Context, _words: list[bytes]) -> Reply:
    """Tells the connection's name."""
    return context.client.name or None


@command(
    "CLIENT|SETINFO",
    arity=4,
    flags="noscript loading stale",
    group="connection",
    since="7.2.0",
    complexity="O(1)",
    syntax="(LIB-NAME libname | LIB-VER libver)",
)
async def client_setinfo(context: Context, words: list[bytes]) -> Reply:
    """Tells which library the client is."""
    attribute, value = words[2].upper(), words[3]
    if attribute == b"LIB-NAME":
        context.client.library_name = _checked_info("lib-name", value)
    elif attribute == b"LIB-VER":
        context.client.library_version = _checked_info("lib-ver", value)
    else:
        raise UnknownClientInfo(words[2])
    return OK


# Who is there


@command(
    "CLIENT|INFO",
    arity=2,
    flags="noscript loading stale",
    group="connection",
    since="6.2.0",
    complexity="O(1)",
    tips="nondeterministic_output",
)
async def client_info(context: Context, _words: list[bytes]) -> Reply:
    """Describes the connection in one line."""
    return Verbatim(context.server.clients.describe(context.client) + b"\n")


@command(
    "CLIENT|LIST",
    arity=-2,
    flags="admin noscript loading stale",
    group="connection",
    since="2.4.0",
    complexity="O(N) for N clients",
    syntax="[TYPE (NORMAL | MASTER | REPLICA | PUBSUB)] [ID client-id [client-id ...]]",
    tips="nondeterministic_output",
)
async def client_list(context: Context, words: list[bytes]) -> Reply:
    """Describes the connected clients, a line each: all, those of a type, or some."""
    clients = context.server.clients.all()
    if len(words) == 4 and words[2].upper() == b"TYPE":
        wanted = _client_type(words[3])
        clients = [client for client in clients if type_of(client) == wanted]
    elif len(words) > 3 and words[2].upper() == b"ID":
        by_number = {client.identifier: client for client in clients}
        numbers = [_identifier(word) for word in words[3:]]
        clients = [by_number[number] for number in numbers if number in by_number]
    elif len(words) != 2:
        raise SyntaxProblem
    lines = [context.server.clients.describe(client) + b"\n" for client in clients]
    return Verbatim(b"".join(lines))


def _identifier(word: bytes) -> int:
    number = parse_integer(word)
    if number is None:
        raise BadClientIdentifier
    return number


def _client_type(word: bytes) -> str:
    found = _TYPES.get(word.lower())
    if found is None:
        raise UnknownClientType(word)
    return found


def type_of(client: Client) -> str:
    """The type that CLIENT LIST TYPE and the output limits go by."""
    return _PUBSUB if client.subscriptions.count else _NORMAL


def description(client: Client, buffers: dict[str, int]) -> bytes:
    """A client's line in CLIENT LIST, without its end; `buffers` are sizes that only the server
    knows, by Redis's names."""
    now, held = time.monotonic(), client.subscriptions
    queued = client.transaction
    fields: dict[str, object] = {
        "id": client.identifier,
        "addr": client.address,
        "laddr": client.local_address,
        "fd": client.descriptor,
        "name": client.name.decode(),
        "age": int(now - client.created),
        "idle": int(now - client.last_active),
        "flags": _flags(client),
        "db": client.database,
        "sub": len(held.channels),
        "psub": len(held.patterns),
        "ssub": len(held.shard_channels),
        "multi": -1 if queued is None else len(queued.queued),
        **buffers,
        "events": "r",
        "cmd": client.last_command or "NULL",
        "user": client.user.name.decode("utf-8", "surrogateescape"),
        "redir": -1,
        "resp": client.protocol,
        "lib-name": client.library_name.decode(),
        "lib-ver": client.library_version.decode(),
    }
    line = " ".join(f"{name}={value}" for name, value in fields.items())
    return line.encode("utf-8", "surrogateescape")


def _flags(client: Client) -> str:
    flags = [
        ("O", client.monitoring),
        ("P", client.subscriptions.count > 0),
        ("x", client.transaction is not None),
        ("b", client.blocked),
        ("c", client.closing),
        ("U", client.by_socket_file),
        ("e", client.no_evict),
        ("T", client.no_touch),
    ]
    return "".join(letter for letter, holds in flags if holds) or "N"


# Ending, pausing, waking


@command(
    "CLIENT|KILL",
    arity=-3,
    flags="admin noscript loading stale",
    group="connection",
    since="2.4.0",
    complexity="O(N) for N clients",
    syntax=(
        "(address | ID client-id | TYPE (NORMAL | MASTER | SLAVE | REPLICA | PUBSUB)"
        " | USER username | ADDR address | LADDR address | SKIPME yes-or-no)"
        " [filter value [filter value ...]]"
    ),
)
async def client_kill(context: Context, words: list[bytes]) -> Reply:
    """Ends connections.

    With an address, as in CLIENT LIST, that one. With filters all that fit every one of them: the
    caller's own only with SKIPME no. Replies OK, or with filters how many there were.
    """
    clients = context.server.clients
    if len(words) == 3:
        address = words[2].decode("latin-1")
        found = [client for client in clients.all() if client.address == address]
        if not found:
            raise NoSuchClient
        clients.kill(found[0], by=context.client)
        return OK
    filters = _kill_filters(context, words)
    killed = [client for client in clients.all() if all(fits(client) for fits in filters)]
    for client in killed:
        clients.kill(client, by=context.client)
    return len(killed)


Filter = Callable[[Client], bool]


def _kill_filters(context: Context, words: list[bytes]) -> list[Filter]:
    """What a client must fit to be killed; a later filter of a name replaces an earlier one."""
    filters: dict[bytes, Filter] = {b"SKIPME": lambda client: client is not context.client}
    arguments = Arguments(words, 2)
    while arguments.left:
        name, value = arguments.take_keyword(), arguments.take()
        filters[name] = _kill_filter(context, name, value)
    return list(filters.values())


def _kill_filter(context: Context, name: bytes, value: bytes) -> Filter:
    if name == b"ID":
        number = parse_integer(value)
        if number is None or number < 1:
            raise BadKillIdentifier
        return lambda client: client.identifier == number
    if name == b"TYPE":
        wanted = _client_type(value)
        return lambda client: type_of(client) == wanted
    if name == b"USER":
        user = context.server.users.find(value)
        if user is None:
            raise NoSuchUser(value)
        return lambda client: client.authenticated and client.user is user
    address = value.decode("latin-1")
    if name == b"ADDR":
        return lambda client: client.address == address
    if name == b"LADDR":
        return lambda client: client.local_address == address
    if name == b"SKIPME" and value.upper() in (b"YES", b"NO"):
        skips = value.upper() == b"YES"
        return lambda client: not skips or client is not context.client
    raise SyntaxProblem


@command(
    "CLIENT|PAUSE",
    arity=-3,
    flags="admin noscript loading stale",
    group="connection",
    since="2.9.50",
    complexity="O(1)",
    syntax="timeout-ms [WRITE | ALL]",
)
async def client_pause(context: Context, words: list[bytes]) -> Reply:
    """Holds the commands of all clients back for a while, or only their writes."""
    arguments = Arguments(words, 3)
    mode = arguments.take_keyword() if arguments.left else b"ALL"
    if arguments.left:
        raise BadSubcommandUse("CLIENT", words[1])
    if mode not in (b"WRITE", b"ALL"):
        raise BadPauseMode
    milliseconds = parse_integer(words[2])
    if milliseconds is None:
        raise BadTimeout
    if milliseconds < 0:
        raise NegativeTimeout
    context.server.clients.pause(milliseconds, writes_only=mode == b"WRITE")
    return OK


@command(
    "CLIENT|UNPAUSE",
    arity=2,
    flags="admin noscript loading stale",
    group="connection",
    since="6.2.0",
    complexity="O(N) for N clients",
)
async def client_unpause(context: Context, _words: list[bytes]) -> Reply:
    """Lets the clients that CLIENT PAUSE holds back go on."""
    context.server.clients.unpause()
    return OK


@command(
    "CLIENT|UNBLOCK",
    arity=-3,
    flags="admin noscript loading stale",
    group="connection",
    since="5.0.0",
    complexity="O(1)",
    syntax="client-id [TIMEOUT | ERROR]",
)
async def client_unblock(context: Context, words: list[bytes]) -> Reply:
    """Wakes a client that waits in a blocking command: 1 if it did, 0 if it waits in none."""
    arguments = Arguments(words, 3)
    reason = arguments.take_keyword() if arguments.left else b"TIMEOUT"
    if arguments.left:
        raise BadSubcommandUse("CLIENT", words[1])
    if reason not in (b"TIMEOUT", b"ERROR"):
        raise BadUnblockReason
    number = integer(words[2], MIN_INTEGER)
    clients = context.server.clients
    found = [client for client in clients.all() if client.identifier == number]
    with_error = reason == b"ERROR"
    return int(bool(found) and clients.unblock(found[0], with_error=with_error))


# The manner of this connection


@command(
    "CLIENT|REPLY",
    arity=3,
    flags="noscript loading stale",
    group="connection",
    since="3.2.0",
    complexity="O(1)",
    syntax="(ON | OFF | SKIP)",
)
async def client_reply(context: Context, words: list[bytes]) -> Reply:
    """Turns replies to this connection off, on, or off for the next command."""
    mode, client = words[2].upper(), context.client
    if mode not in (b"ON", b"OFF", b"SKIP"):
        raise SyntaxProblem
    if mode == b"SKIP":
        client.skips_next = not client.silent
    else:
        client.silent = mode == b"OFF"
    client.update_conditions()
    return OK if mode == b"ON" else NO_REPLY


def _switch(word: bytes) -> bool:
    if word.upper() not in (b"ON", b"OFF"):
        raise SyntaxProblem
    return word.upper() == b"ON"


@command(
    "CLIENT|NO-EVICT",
    arity=3,
    flags="admin noscript loading stale",
    group="connection",
    since="7.0.0",
    complexity="O(1)",
    syntax="(ON | OFF)",
)
async def client_no_evict(context: Context, words: list[bytes]) -> Reply:
    """Marks the connection as not to be evicted. No client ever is; the mark is shown."""
    context.client.no_evict = _switch(words[2])
    return OK


@command(
    "CLIENT|NO-TOUCH",
    arity=3,
    flags="noscript loading stale",
    group="connection",
    since="7.2.0",
    complexity="O(1)",
    syntax="(ON | OFF)",
)
async def client_no_touch(context: Context, words: list[bytes]) -> Reply:
    """Marks the connection's reads as not to count as use. No use is counted; the mark is shown."""
    context.client.no_touch = _switch(words[2])
    return OK


# Tracking: clients' own caches are not kept in step, and nobody is led to believe it


@command(
    "CLIENT|TRACKING",
    arity=-3,
    flags="noscript loading stale",
    group="connection",
    since="6.0.0",
    complexity="O(1)",
    syntax=("(ON | OFF) [REDIRECT client-id] [PREFIX prefix] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]"),
)
async def client_tracking(_context: Context, words: list[bytes]) -> Reply:
    """Refuses to turn tracking on: invalidation messages are not supported. OFF is the state."""
    if _switch(words[2]):
        raise TrackingUnsupported
    return OK


@command(
    "CLIENT|TRACKINGINFO",
    arity=2,
    flags="noscript loading stale",
    group="connection",
    since="6.2.0",
    complexity="O(1)",
)
async def client_trackinginfo(_context: Context, _words: list[bytes]) -> Reply:
    """Tells that tracking is off."""
    return {b"flags": Flags([b"off"]), b"redirect": -1, b"prefixes": []}


@command(
    "CLIENT|GETREDIR",
    arity=2,
    flags="noscript loading stale",
    group="connection",
    since="6.0.0",
    complexity="O(1)",
)
async def client_getredir(_context: Context, _words: list[bytes]) -> Reply:
    """Tells that tracking is off: -1."""
    return -1


@command(
    "CLIENT|CACHING",
    arity=3,
    flags="noscript loading stale",
    group="connection",
    since="6.0.0",
    complexity="O(1)",
    syntax="(YES | NO)",
)
async def client_caching(_context: Context, _words: list[bytes]) -> Reply:
    """Refuses: tracking is off."""
    raise NotTracking


@command(
    "CLIENT|HELP",
    arity=2,
    flags="loading stale",
    group="connection",
    since="5.0.0",
    complexity="O(1)",
)
async def client_help(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of CLIENT."""
    return help_lines("CLIENT")


def _is_printable(text: bytes) -> bool:
    return all(33 <= byte <= 126 for byte in text)


def checked_name(name: bytes) -> bytes:
    """BadClientName unless CLIENT LIST can show it."""
    if not _is_printable(name):
        raise BadClientName
    return name


def _checked_info(attribute: str, value: bytes) -> bytes:
    if not _is_printable(value):
        raise BadClientInfo(attribute)
    return value
