"""ACL: users, and what they may do.

The rule language, the users and their file are in commands.access; here are the words of the
subcommands and the shapes of their replies.
"""

from __future__ import annotations

import secrets

from commands.access.denials import DenialEntry, DenialLog
from commands.access.permissions import Permissions
from commands.arguments import Arguments
from commands.command import CATEGORIES
from commands.context import Context
from commands.errors import (
    BadAclSubcommand,
    BadPasswordBits,
    CommandNotFound,
    UnknownCategory,
    UnknownCommand,
    UnknownInRule,
    UnknownSubcommand,
    UserNotFound,
)
from commands.help import help_lines
from commands.replies import OK, Flags, Reply
from commands.table import TABLE, command, container
from storage.integers import MIN_INTEGER

_PASSWORD_BITS = 256
_MOST_PASSWORD_BITS = 4096
_BITS_PER_CHARACTER = 4
_LOG_ENTRIES = 10
_DENIED = {
    "command": b"This user has no permissions to run the '%b' command",
    "key": b"This user has no permissions to access the '%b' key",
    "channel": b"This user has no permissions to access the '%b' channel",
}

container(
    "ACL", group="server", since="6.0.0", summary="A container for commands about users' rights."
)


# Users


@command(
    "ACL|SETUSER",
    arity=-3,
    flags="admin noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(N) for N rules",
    syntax="username [rule [rule ...]]",
)
async def setuser(context: Context, words: list[bytes]) -> Reply:
    """Creates a user or changes it by rules: by all of them or by none."""
    context.server.users.change(words[2], words[3:])
    return OK


@command(
    "ACL|DELUSER",
    arity=-3,
    flags="admin noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(N) for N users and connected clients",
    syntax="username [username ...]",
)
async def deluser(context: Context, words: list[bytes]) -> Reply:
    """Deletes users and disconnects their clients.

    Replies with the number of users that there were.
    """
    return context.server.users.delete(words[2:])


@command(
    "ACL|GETUSER",
    arity=3,
    flags="admin noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(N) for N rules of the user",
    syntax="username",
)
async def getuser(context: Context, words: list[bytes]) -> Reply:
    """Tells a user's flags, password digests and rules; nothing if there is no such user."""
    user = context.server.users.find(words[2])
    if user is None:
        return None
    own, *selectors = user.permissions
    return {
        b"flags": Flags(user.flags()),
        b"passwords": [digest.encode() for digest in user.password_digests],
        **_description(own),
        b"selectors": [_description(selector) for selector in selectors],
    }


def _description(permissions: Permissions) -> dict[bytes, bytes]:
    return {
        b"commands": permissions.commands.describe(),
        b"keys": permissions.describe_keys(),
        b"channels": permissions.describe_channels(),
    }


@command(
    "ACL|LIST",
    arity=2,
    flags="admin noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(N) for N users",
)
async def list_(context: Context, _words: list[bytes]) -> Reply:
    """Lists the users with their rules, each as a line of an ACL file."""
    return [user.line() for user in context.server.users.all()]


@command(
    "ACL|USERS",
    arity=2,
    flags="admin noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(N) for N users",
)
async def names(context: Context, _words: list[bytes]) -> Reply:
    """Lists the names of the users."""
    return [user.name for user in context.server.users.all()]


@command(
    "ACL|WHOAMI",
    arity=2,
    flags="noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(1)",
)
async def whoami(context: Context, _words: list[bytes]) -> Reply:
    """Tells which user the connection is logged in as."""
    return context.client.user.name


@command(
    "ACL|DRYRUN",
    arity=-4,
    flags="admin noscript loading stale",
    group="server",
    since="7.0.0",
    complexity="O(N) for N rules of the user",
    syntax="username command [argument [argument ...]]",
)
async def dryrun(context: Context, words: list[bytes]) -> Reply:
    """Tells whether a user may run a command, without running it."""
    user = context.server.users.find(words[2])
    if user is None:
        raise UserNotFound(words[2])
    try:
        tried = TABLE.resolve(words[3:])
    except (UnknownCommand, UnknownSubcommand):
        raise CommandNotFound(words[3]) from None
    denial = user.denial(tried, words[3:])
    return OK if denial is None else _DENIED[denial.reason] % denial.name


# Around them


@command(
    "ACL|CAT",
    arity=-2,
    flags="noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(N) for N commands",
    syntax="[category]",
)
async def cat(context: Context, words: list[bytes]) -> Reply:
    """Lists the categories of commands, or the commands of one category."""
    if len(words) == 2:
        return [category.encode() for category in CATEGORIES]
    _expect_words(words, 3)
    try:
        return [name.encode() for name in context.server.users.category(words[2])]
    except UnknownInRule:
        raise UnknownCategory(words[2]) from None


@command(
    "ACL|GENPASS",
    arity=-2,
    flags="noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(1)",
    syntax="[bits]",
)
async def genpass(_context: Context, words: list[bytes]) -> Reply:
    """Makes up a password of 256 bits, or of as many as asked for, in hexadecimal digits."""
    _expect_words(words, 3)
    bits = _PASSWORD_BITS
    if len(words) == 3:
        bits = Arguments(words, 2).take_integer(MIN_INTEGER)
    if not 1 <= bits <= _MOST_PASSWORD_BITS:
        raise BadPasswordBits(_MOST_PASSWORD_BITS)
    digits = -(-bits // _BITS_PER_CHARACTER)
    return secrets.token_hex(digits)[:digits].encode()


@command(
    "ACL|LOG",
    arity=-2,
    flags="admin noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(N) for N entries",
    syntax="[count | RESET]",
)
async def log(context: Context, words: list[bytes]) -> Reply:
    """Tells what was refused lately, the newest first, or forgets it.

    Commands, datasets and channels refused to a user, and attempts to log in that failed. Shows
    10 entries without a count.
    """
    _expect_words(words, 3)
    denials = context.server.users.denials
    count = _LOG_ENTRIES
    if len(words) == 3:
        if words[2].upper() == b"RESET":
            denials.reset()
            return OK
        count = max(0, Arguments(words, 2).take_integer(MIN_INTEGER))
    return [_entry(denials, entry) for entry in list(denials.entries)[:count]]


def _entry(denials: DenialLog, entry: DenialEntry) -> dict[bytes, object]:
    return {
        b"count": entry.count,
        b"reason": entry.denial.reason.encode(),
        b"context": b"multi" if entry.in_transaction else b"toplevel",
        b"object": entry.denial.name,
        b"username": entry.user,
        b"age-seconds": denials.age_seconds(entry),
        b"client-info": entry.client,
    }


@command(
    "ACL|LOAD",
    arity=2,
    flags="admin noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(N) for N users",
)
async def load(context: Context, _words: list[bytes]) -> Reply:
    """Replaces the users by those of the ACL file, unless anything in it is wrong.

    Clients of other users than the default one are disconnected.
    """
    context.server.users.load()
    return OK


@command(
    "ACL|SAVE",
    arity=2,
    flags="admin noscript loading stale",
    group="server",
    since="6.0.0",
    complexity="O(N) for N users",
)
async def save(context: Context, _words: list[bytes]) -> Reply:
    """Writes the users to the ACL file."""
    context.server.users.save()
    return OK


@command(
    "ACL|HELP",
    arity=2,
    flags="loading stale",
    group="server",
    since="6.0.0",
    complexity="O(1)",
)
async def help_(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of ACL."""
    return help_lines("ACL")


def _expect_words(words: list[bytes], most: int) -> None:
    if len(words) > most:
        raise BadAclSubcommand(words[1])
