"""The commands of a connection: who speaks, in which protocol, to which database."""

from __future__ import annotations

import hmac

from commands.arguments import Arguments
from commands.context import Client, Context
from commands.errors import (
    AuthenticationRequiredForHello,
    BadClientInfo,
    BadClientName,
    BadProtocolNumber,
    DatabaseOutOfRange,
    HelloSyntax,
    NoPasswordSet,
    NotAnIndex,
    SyntaxProblem,
    UnknownClientInfo,
    UnsupportedProtocol,
    WrongArity,
    WrongPassword,
)
from commands.help import help_lines
from commands.replies import OK, PONG, RESET, Reply
from commands.table import command, container
from storage.integers import MIN_INTEGER, parse_integer

_DEFAULT_USER = b"default"


@command(
    "PING",
    arity=-1,
    flags="fast",
    group="connection",
    since="1.0.0",
    complexity="O(1)",
    syntax="[message]",
)
async def ping(_context: Context, words: list[bytes]) -> Reply:
    """Answers PONG, or the message."""
    if len(words) > 2:
        raise WrongArity("ping")
    return words[1] if len(words) == 2 else PONG


@command(
    "ECHO",
    arity=2,
    flags="fast",
    group="connection",
    since="1.0.0",
    complexity="O(1)",
    syntax="message",
)
async def echo(_context: Context, words: list[bytes]) -> Reply:
    """Answers the message."""
    return words[1]


@command(
    "HELLO",
    arity=-1,
    flags="noscript loading stale fast no_auth allow_busy",
    group="connection",
    since="6.0.0",
    complexity="O(1)",
    syntax="[protover [AUTH username password] [SETNAME clientname]]",
)
async def hello(context: Context, words: list[bytes]) -> Reply:
    """Agrees on the protocol: RESP2 or RESP3; may log in and name the connection.

    Replies with a map of what the server is.
    """
    client = context.client
    protocol = _protocol_of(words, client.protocol)
    arguments = Arguments(words, 2)
    while arguments.left:
        option = arguments.take()
        if option.upper() == b"AUTH" and arguments.left >= 2:
            _log_in(context, arguments.take(), arguments.take())
        elif option.upper() == b"SETNAME" and arguments.left >= 1:
            client.name = _checked_name(arguments.take())
        else:
            raise HelloSyntax(option)
    if not client.authenticated:
        raise AuthenticationRequiredForHello
    client.protocol = protocol
    return {
        b"server": b"redis",
        b"version": context.facts.redis_version().encode(),
        b"proto": protocol,
        b"id": client.identifier,
        b"mode": b"standalone",
        b"role": b"master",
        b"modules": [],
    }


def _protocol_of(words: list[bytes], current: int) -> int:
    if len(words) < 2:
        return current
    version = parse_integer(words[1])
    if version is None:
        raise BadProtocolNumber
    if version not in (2, 3):
        raise UnsupportedProtocol
    return version


@command(
    "AUTH",
    arity=-2,
    flags="noscript loading stale fast no_auth allow_busy",
    group="connection",
    since="1.0.0",
    complexity="O(1)",
    syntax="[username] password",
)
async def auth(context: Context, words: list[bytes]) -> Reply:
    """Logs in."""
    if len(words) > 3:
        raise SyntaxProblem
    if len(words) == 2 and not context.settings.password:
        raise NoPasswordSet
    user = words[1] if len(words) == 3 else _DEFAULT_USER
    _log_in(context, user, words[-1])
    return OK


def _log_in(context: Context, user: bytes, password: bytes) -> None:
    """WrongPassword unless they are those of the one user. Compares in constant time."""
    expected = context.settings.password
    fits = not expected or hmac.compare_digest(password, expected)
    if user != _DEFAULT_USER or not fits:
        raise WrongPassword
    context.client.authenticated = True


@command(
    "SELECT",
    arity=2,
    flags="loading stale fast",
    group="connection",
    since="1.0.0",
    complexity="O(1)",
    syntax="index",
)
async def select(context: Context, words: list[bytes]) -> Reply:
    """Selects a database. Datasets are shared by all of them."""
    index = Arguments(words, 1).take_integer(MIN_INTEGER)
    if not -(2**31) <= index < 2**31:
        raise NotAnIndex
    if not 0 <= index < context.settings.databases:
        raise DatabaseOutOfRange
    context.client.database = index
    return OK


@command(
    "QUIT",
    arity=-1,
    flags="noscript loading stale fast no_auth allow_busy",
    group="connection",
    since="1.0.0",
    complexity="O(1)",
)
async def quit_(context: Context, _words: list[bytes]) -> Reply:
    """Closes the connection once its replies are sent."""
    context.client.closing = True
    return OK


@command(
    "RESET",
    arity=1,
    flags="noscript loading stale fast no_auth allow_busy",
    group="connection",
    since="6.2.0",
    complexity="O(1)",
)
async def reset(context: Context, _words: list[bytes]) -> Reply:
    """Makes the connection as new: RESP2, database 0, logged out where there is a password."""
    context.client.reset(authenticated=not context.settings.password)
    return RESET


# CLIENT

container("CLIENT", group="connection", since="2.4.0", summary="A container for client commands.")


@command(
    "CLIENT|ID",
    arity=2,
    flags="noscript loading stale fast",
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
    flags="noscript loading stale fast",
    group="connection",
    since="2.6.9",
    complexity="O(1)",
    syntax="connection-name",
)
async def client_setname(context: Context, words: list[bytes]) -> Reply:
    """Names the connection."""
    context.client.name = _checked_name(words[2])
    return OK


@command(
    "CLIENT|GETNAME",
    arity=2,
    flags="noscript loading stale fast",
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
    flags="noscript loading stale fast",
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


@command(
    "CLIENT|INFO",
    arity=2,
    flags="noscript loading stale fast",
    group="connection",
    since="6.2.0",
    complexity="O(1)",
)
async def client_info(context: Context, _words: list[bytes]) -> Reply:
    """Describes the connection in one line."""
    return _description(context.client)


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


def _description(client: Client) -> bytes:
    fields = {
        "id": client.identifier,
        "addr": client.address,
        "laddr": client.local_address,
        "name": client.name.decode(),
        "db": client.database,
        "resp": client.protocol,
        "lib-name": client.library_name.decode(),
        "lib-ver": client.library_version.decode(),
    }
    return " ".join(f"{name}={value}" for name, value in fields.items()).encode() + b"\n"


def _is_printable(text: bytes) -> bool:
    return all(33 <= byte <= 126 for byte in text)


def _checked_name(name: bytes) -> bytes:
    if not _is_printable(name):
        raise BadClientName
    return name


def _checked_info(attribute: str, value: bytes) -> bytes:
    if not _is_printable(value):
        raise BadClientInfo(attribute)
    return value
