"""Publish and subscribe: listening to channels and patterns, and publishing to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from commands.command import Channels, Keys
from commands.context import Context
from commands.errors import BadSubcommandUse, ShardSubscriptionWhileExecuting
from commands.help import help_lines
from commands.patterns import Pattern
from commands.publishing.broker import Audience, Listener
from commands.replies import Messages, Push, Reply
from commands.table import command, container

_CHANNEL_KEYS = Keys(1, -1, 1)


def _messages(
    context: Context, kind: bytes, names: Iterable[bytes], change: Callable[[Listener, bytes], int]
) -> Reply:
    """Change subscriptions one after another; a message tells of each."""
    listener = context.server.clients.listener(context.client)
    replies = Messages(Push((kind, name, change(listener, name))) for name in names)
    context.client.update_conditions()
    return replies


def _leave(
    context: Context,
    kind: bytes,
    names: Sequence[bytes],
    held: dict[bytes, None],
    change: Callable[[Listener, bytes], int],
) -> Reply:
    """Leave the named ones, or all that are held; a message tells of each, or that none was."""
    names = names or list(held)
    if names:
        return _messages(context, kind, names, change)
    subscriptions = context.client.subscriptions
    shard = held is subscriptions.shard_channels
    left = len(held) if shard else subscriptions.plain_count
    return Messages([Push((kind, None, left))])


def leave_all(context: Context) -> None:
    """Take the client out of all it listens to, as RESET does, without telling it."""
    context.server.broker.forget(context.server.clients.listener(context.client))


@command(
    "SUBSCRIBE",
    arity=-2,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since="2.0.0",
    complexity="O(N) for N channels",
    syntax="channel [channel ...]",
    channels=Channels(1, -1),
)
async def subscribe(context: Context, words: list[bytes]) -> Reply:
    """Listens to channels."""
    return _messages(context, b"subscribe", words[1:], context.server.broker.subscribe)


@command(
    "UNSUBSCRIBE",
    arity=-1,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since="2.0.0",
    complexity="O(N) for N channels",
    syntax="[channel [channel ...]]",
)
async def unsubscribe(context: Context, words: list[bytes]) -> Reply:
    """Stops listening to channels, or to all."""
    held, change = context.client.subscriptions.channels, context.server.broker.unsubscribe
    return _leave(context, b"unsubscribe", words[1:], held, change)


@command(
    "PSUBSCRIBE",
    arity=-2,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since="2.0.0",
    complexity="O(N) for N patterns",
    syntax="pattern [pattern ...]",
    channels=Channels(1, -1, are_patterns=True),
)
async def psubscribe(context: Context, words: list[bytes]) -> Reply:
    """Listens to all channels that fit glob patterns."""
    return _messages(context, b"psubscribe", words[1:], context.server.broker.subscribe_pattern)


@command(
    "PUNSUBSCRIBE",
    arity=-1,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since="2.0.0",
    complexity="O(N) for N patterns",
    syntax="[pattern [pattern ...]]",
)
async def punsubscribe(context: Context, words: list[bytes]) -> Reply:
    """Stops listening to patterns, or to all."""
    held, change = context.client.subscriptions.patterns, context.server.broker.unsubscribe_pattern
    return _leave(context, b"punsubscribe", words[1:], held, change)


@command(
    "SSUBSCRIBE",
    arity=-2,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since="7.0.0",
    complexity="O(N) for N shard channels",
    syntax="shardchannel [shardchannel ...]",
    keys=_CHANNEL_KEYS,
    channels=Channels(1, -1),
)
async def ssubscribe(context: Context, words: list[bytes]) -> Reply:
    """Listens to shard channels; this server is the one shard there is."""
    if context.client.executing:
        raise ShardSubscriptionWhileExecuting
    return _messages(context, b"ssubscribe", words[1:], context.server.broker.subscribe_shard)


@command(
    "SUNSUBSCRIBE",
    arity=-1,
    flags="pubsub noscript loading stale",
    group="pubsub",
    since="7.0.0",
    complexity="O(N) for N shard channels",
    syntax="[shardchannel [shardchannel ...]]",
    keys=_CHANNEL_KEYS,
)
async def sunsubscribe(context: Context, words: list[bytes]) -> Reply:
    """Stops listening to shard channels, or to all."""
    broker, held = context.server.broker, context.client.subscriptions.shard_channels
    return _leave(context, b"sunsubscribe", words[1:], held, broker.unsubscribe_shard)


@command(
    "PUBLISH",
    arity=3,
    flags="pubsub loading stale fast",
    group="pubsub",
    since="2.0.0",
    complexity="O(N+M) for N listeners of the channel and M patterns",
    syntax="channel message",
    channels=Channels(1, 1),
)
async def publish(context: Context, words: list[bytes]) -> Reply:
    """Sends a message to all who listen to a channel; replies with how many they were."""
    return context.server.broker.publish(words[1], words[2])


@command(
    "SPUBLISH",
    arity=3,
    flags="pubsub loading stale fast",
    group="pubsub",
    since="7.0.0",
    complexity="O(N) for N listeners",
    syntax="shardchannel message",
    keys=Keys(1, 1, 1),
    channels=Channels(1, 1),
)
async def spublish(context: Context, words: list[bytes]) -> Reply:
    """Sends a message to all who listen to a shard channel."""
    return context.server.broker.publish_to_shard(words[1], words[2])


# PUBSUB

container("PUBSUB", group="pubsub", since="2.8.0", summary="A container for pub/sub commands.")


def _names(audience: Audience, words: list[bytes]) -> Reply:
    if len(words) > 3:
        raise BadSubcommandUse("PUBSUB", words[1])
    pattern = words[2] if len(words) == 3 else b"*"
    fits = Pattern(pattern).fits
    return [channel for channel in audience if fits(channel)]


def _counts(audience: Audience, channels: list[bytes]) -> Reply:
    counts: list[object] = []
    for channel in channels:
        counts += [channel, len(audience.get(channel, ()))]
    return counts


@command(
    "PUBSUB|CHANNELS",
    arity=-2,
    flags="pubsub loading stale",
    group="pubsub",
    since="2.8.0",
    complexity="O(N) for N channels",
    syntax="[pattern]",
)
async def pubsub_channels(context: Context, words: list[bytes]) -> Reply:
    """Lists the channels that somebody listens to by name."""
    return _names(context.server.broker.channels, words)


@command(
    "PUBSUB|NUMSUB",
    arity=-2,
    flags="pubsub loading stale",
    group="pubsub",
    since="2.8.0",
    complexity="O(N) for N channels",
    syntax="[channel [channel ...]]",
)
async def pubsub_numsub(context: Context, words: list[bytes]) -> Reply:
    """Tells how many listen to each channel by name."""
    return _counts(context.server.broker.channels, words[2:])


@command(
    "PUBSUB|NUMPAT",
    arity=2,
    flags="pubsub loading stale",
    group="pubsub",
    since="2.8.0",
    complexity="O(1)",
)
async def pubsub_numpat(context: Context, _words: list[bytes]) -> Reply:
    """Tells how many different patterns are listened to."""
    return len(context.server.broker.patterns)


@command(
    "PUBSUB|SHARDCHANNELS",
    arity=-2,
    flags="pubsub loading stale",
    group="pubsub",
    since="7.0.0",
    complexity="O(N) for N shard channels",
    syntax="[pattern]",
)
async def pubsub_shardchannels(context: Context, words: list[bytes]) -> Reply:
    """Lists the shard channels that somebody listens to."""
    return _names(context.server.broker.shard_channels, words)


@command(
    "PUBSUB|SHARDNUMSUB",
    arity=-2,
    flags="pubsub loading stale",
    group="pubsub",
    since="7.0.0",
    complexity="O(N) for N shard channels",
    syntax="[shardchannel [shardchannel ...]]",
)
async def pubsub_shardnumsub(context: Context, words: list[bytes]) -> Reply:
    """Tells how many listen to each shard channel."""
    return _counts(context.server.broker.shard_channels, words[2:])


@command(
    "PUBSUB|HELP",
    arity=2,
    flags="loading stale",
    group="pubsub",
    since="6.2.0",
    complexity="O(1)",
)
async def pubsub_help(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of PUBSUB."""
    return help_lines("PUBSUB")
