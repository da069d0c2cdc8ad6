"""MULTI, EXEC, DISCARD, WATCH, UNWATCH: commands run as one, which nothing comes between.

A dataset is what WATCH watches: any change of it by a command ends the transaction. EXEC runs the
queue inside one transaction of the store, so that after a crash all its writes are there or none.
"""

from __future__ import annotations

from commands.command import Access, Keys
from commands.context import Context
from commands.errors import (
    DiscardWithoutMulti,
    ExecWithoutMulti,
    NestedMulti,
    TransactionDiscarded,
    WatchInsideMulti,
)
from commands.queueing import Transaction
from commands.replies import NULL_ARRAY, OK, Messages, Reply
from commands.table import command


@command(
    "MULTI",
    arity=1,
    flags="noscript loading stale fast allow_busy",
    group="transactions",
    since="1.2.0",
    complexity="O(1)",
)
async def multi(context: Context, _words: list[bytes]) -> Reply:
    """Begins to queue commands, for EXEC to run as one."""
    if context.client.transaction is not None:
        raise NestedMulti
    context.client.transaction = Transaction()
    context.client.update_conditions()
    return OK


@command(
    "EXEC",
    arity=1,
    flags="noscript loading stale skip_slowlog commits",
    group="transactions",
    since="1.2.0",
    complexity="O(N) for N commands, and theirs",
)
async def exec_(context: Context, _words: list[bytes]) -> Reply:
    """Runs the commands queued since MULTI, all of them or, after a crash, none.

    Replies with their replies. A command that fails leaves its error there and the others run. If
    a watched dataset has changed, nothing is run and the reply is null.
    """
    client = context.client
    transaction = client.transaction
    if transaction is None:
        raise ExecWithoutMulti
    changed = any(
        context.store.version(dataset) != version for dataset, version in client.watched.items()
    )
    client.watched.clear()
    client.executing = True
    try:
        if transaction.failed:
            raise TransactionDiscarded
        if changed:
            return NULL_ARRAY
        async with context.store.transaction():
            values = [await context.server.run(context, words) for words in transaction.queued]
    finally:
        client.executing = False
        client.end_transaction()
    return _framed(values, is_dropped=client.silent or client.skips)


def _framed(values: list[Reply], *, is_dropped: bool) -> Reply:
    """One value a command: of several messages (SUBSCRIBE a b) those after the first follow, and
    null stands for none (CLIENT REPLY SKIP). Where the reply is dropped, the messages are not."""
    several = [value for value in values if type(value) is Messages]
    if not several:
        return values
    if is_dropped:
        return Messages(message for messages in several for message in messages)
    firsts = [(value or [None])[0] if type(value) is Messages else value for value in values]
    rest = [message for messages in several for message in messages[1:]]
    return Messages([firsts, *rest]) if rest else firsts


@command(
    "DISCARD",
    arity=1,
    flags="noscript loading stale fast allow_busy",
    group="transactions",
    since="2.0.0",
    complexity="O(N) for N queued commands",
)
async def discard(context: Context, _words: list[bytes]) -> Reply:
    """Forgets the queued commands and what is watched."""
    if context.client.transaction is None:
        raise DiscardWithoutMulti
    context.client.end_transaction()
    return OK


@command(
    "WATCH",
    arity=-2,
    flags="noscript loading stale fast allow_busy",
    keys=Keys(1, -1, 1, Access.NONE),
    group="transactions",
    since="2.2.0",
    complexity="O(1) for each dataset",
    syntax="dataset [dataset ...]",
)
async def watch(context: Context, words: list[bytes]) -> Reply:
    """Lets the next EXEC run nothing if one of these datasets is changed before it."""
    client = context.client
    if client.transaction is not None:
        raise WatchInsideMulti
    for name in words[1:]:
        client.watched.setdefault(name, context.store.version(name))
    return OK


@command(
    "UNWATCH",
    arity=1,
    flags="noscript loading stale fast allow_busy",
    group="transactions",
    since="2.2.0",
    complexity="O(1)",
)
async def unwatch(context: Context, _words: list[bytes]) -> Reply:
    """Forgets what is watched."""
    context.client.watched.clear()
    return OK
