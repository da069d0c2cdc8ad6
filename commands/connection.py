"""The commands of a connection: who speaks, in which protocol, to which database."""

from __future__ import annotations

from commands.access.denials import Denial
from commands.arguments import Arguments
from commands.client import Condition
from commands.clients import checked_name
from commands.context import Context
from commands.errors import (
    AuthenticationRequiredForHello,
    BadProtocolNumber,
    DatabaseOutOfRange,
    HelloSyntax,
    NoPasswordSet,
    NotAnIndex,
    SyntaxProblem,
    UnsupportedProtocol,
    WrongArity,
    WrongPassword,
)
from commands.pubsub import leave_all
from commands.replies import OK, PONG, RESET, Reply
from commands.table import command
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
    tips="request_policy:all_shards response_policy:all_succeeded",
)
async def ping(context: Context, words: list[bytes]) -> Reply:
    """Answers PONG, or the message."""
    if len(words) > 2:
        raise WrongArity("ping")
    if context.client.conditions & Condition.SUBSCRIBED:
        return [b"pong", words[1] if len(words) == 2 else b""]
    return words[1] if len(words) == 2 else PONG


@command(
    "ECHO",
    arity=2,
    flags="loading stale fast",
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
            _log_in(context, words[0], arguments.take(), arguments.take())
        elif option.upper() == b"SETNAME" and arguments.left >= 1:
            client.name = checked_name(arguments.take())
        else:
            raise HelloSyntax(option)
    if not client.is_admitted:
        raise AuthenticationRequiredForHello
    client.protocol = protocol
    client.update_conditions()
    return {
        b"server": b"redis",
        b"version": context.server.redis_version().encode(),
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
    if len(words) == 2 and context.server.users.default.without_password:
        raise NoPasswordSet
    user = words[1] if len(words) == 3 else _DEFAULT_USER
    _log_in(context, words[0], user, words[-1])
    return OK


def _log_in(context: Context, by: bytes, name: bytes, password: bytes) -> None:
    """WrongPassword unless there is such a user, who is enabled and has this password."""
    users, client = context.server.users, context.client
    user = users.authenticate(name, password)
    if user is None:
        users.denials.add(
            Denial("auth", by),
            user=name,
            in_transaction=client.transaction is not None,
            client=context.server.clients.describe(client),
        )
        raise WrongPassword
    client.log_in(user)


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
    """Makes the connection as new.

    RESP2, database 0, the default user; out of its transaction and its subscriptions.
    """
    client = context.client
    leave_all(context)
    client.reset(context.server.users.default)
    return RESET
