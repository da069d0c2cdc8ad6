"""Who gets a message: all listeners of a server, by channel, pattern and shard channel.

A listener is told by deliver(), and encodes what it gets itself. The broker keeps what a client's
Subscriptions say in step with its own indexes: change them through it alone.
"""

from __future__ import annotations

from typing import Protocol

from commands.patterns import Pattern
from commands.publishing.subscriptions import Subscriptions
from commands.replies import Push


class Listener(Protocol):
    """One client's end."""

    @property
    def subscriptions(self) -> Subscriptions: ...

    def may_hear_of(self, dataset: bytes) -> bool:
        """Whether it may be told of changes of a dataset."""
        ...

    def deliver(self, message: Push, *, tells_of_write: bool = False) -> None:
        """Send a message after what was answered already. One that tells of a write that is not
        in the log yet is dropped if the log fails."""
        ...


Audience = dict[bytes, dict[Listener, None]]


class Broker:
    """All subscriptions of a server."""

    def __init__(self) -> None:
        self.channels: Audience = {}
        self.patterns: Audience = {}
        self.shard_channels: Audience = {}
        self._compiled: dict[bytes, Pattern] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nobody listens to anything."""
        return not (self.channels or self.patterns or self.shard_channels)

    # Listening. Each returns the count of subscriptions that the client is told.

    def subscribe(self, listener: Listener, channel: bytes) -> int:
        _join(self.channels, listener, channel, listener.subscriptions.channels)
        return listener.subscriptions.plain_count

    def unsubscribe(self, listener: Listener, channel: bytes) -> int:
        _leave(self.channels, listener, channel, listener.subscriptions.channels)
        return listener.subscriptions.plain_count

    def subscribe_pattern(self, listener: Listener, pattern: bytes) -> int:
        _join(self.patterns, listener, pattern, listener.subscriptions.patterns)
        if pattern not in self._compiled:
            self._compiled[pattern] = Pattern(pattern)
        return listener.subscriptions.plain_count

    def unsubscribe_pattern(self, listener: Listener, pattern: bytes) -> int:
        _leave(self.patterns, listener, pattern, listener.subscriptions.patterns)
        if pattern not in self.patterns:
            self._compiled.pop(pattern, None)
        return listener.subscriptions.plain_count

    def subscribe_shard(self, listener: Listener, channel: bytes) -> int:
        _join(self.shard_channels, listener, channel, listener.subscriptions.shard_channels)
        return len(listener.subscriptions.shard_channels)

    def unsubscribe_shard(self, listener: Listener, channel: bytes) -> int:
        _leave(self.shard_channels, listener, channel, listener.subscriptions.shard_channels)
        return len(listener.subscriptions.shard_channels)

    def forget(self, listener: Listener) -> None:
        """Take a listener out of everything, without telling it."""
        held = listener.subscriptions
        for channel in list(held.channels):
            self.unsubscribe(listener, channel)
        for pattern in list(held.patterns):
            self.unsubscribe_pattern(listener, pattern)
        for channel in list(held.shard_channels):
            self.unsubscribe_shard(listener, channel)

    # Publishing. Each returns how many times the message was delivered.

    def publish(self, channel: bytes, payload: bytes) -> int:
        return sum(self._deliver(audience) for audience in self._audiences(channel, payload))

    def publish_change(self, channel: bytes, payload: bytes, dataset: bytes) -> None:
        """Tell of a write to a dataset, which may not be in the log yet, who may hear of it."""
        for message, listeners in self._audiences(channel, payload):
            for listener in list(listeners):
                if listener.may_hear_of(dataset):
                    listener.deliver(message, tells_of_write=True)

    def publish_to_shard(self, channel: bytes, payload: bytes) -> int:
        message = Push((b"smessage", channel, payload))
        return self._deliver((message, self.shard_channels.get(channel, {})))

    def _audiences(self, channel: bytes, payload: bytes) -> list[tuple[Push, dict[Listener, None]]]:
        """The messages that a channel's listeners get, one for it and one a pattern that fits."""
        found = [(Push((b"message", channel, payload)), self.channels.get(channel, {}))]
        for pattern, listeners in self.patterns.items():
            if self._compiled[pattern].fits(channel):
                found.append((Push((b"pmessage", pattern, channel, payload)), listeners))
        return found

    @staticmethod
    def _deliver(audience: tuple[Push, dict[Listener, None]]) -> int:
        message, listeners = audience
        for listener in list(listeners):
            listener.deliver(message)
        return len(listeners)


def _join(audience: Audience, listener: Listener, name: bytes, held: dict[bytes, None]) -> None:
    held[name] = None
    audience.setdefault(name, {})[listener] = None


def _leave(audience: Audience, listener: Listener, name: bytes, held: dict[bytes, None]) -> None:
    if name not in held:
        return
    del held[name]
    listeners = audience[name]
    del listeners[listener]
    if not listeners:
        del audience[name]
