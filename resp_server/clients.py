"""The connected clients: who is there, who monitors, who waits, and whether all are paused.

Answers commands.context.Clients. Knows connections by what End says of them, no bytes of theirs.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from commands.access.users import User
from commands.client import Client
from commands.clients import description
from commands.command import Command
from commands.context import Context
from commands.errors import ClientUnblocked
from commands.publishing.broker import Listener
from commands.publishing.subscriptions import Subscriptions
from commands.replies import Push, Status
from resp_server.monitoring import monitor_line


class Paused:
    """What CLIENT PAUSE holds back."""

    NOTHING: Final = 0
    WRITES: Final = 1
    ALL: Final = 2


class End(Protocol):
    """A connection, as the registry needs it. It is a Listener too."""

    client: Client

    @property
    def subscriptions(self) -> Subscriptions: ...

    def may_hear_of(self, dataset: bytes) -> bool: ...

    def deliver(self, message: Push | Status, *, tells_of_write: bool = False) -> None: ...

    def end(self, *, at_once: bool) -> None:
        """Close: at once, or after the replies of the command that runs."""
        ...

    def resume(self) -> None:
        """Take commands on again that a pause held back."""
        ...

    def buffers(self) -> dict[str, int]:
        """Sizes of its buffers, by Redis's names in CLIENT LIST."""
        ...


class ClientRegistry:
    """All connections by their clients' numbers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ends: dict[int, End] = {}
        self._last_number = 0
        self._waiting: dict[Client, asyncio.Future[None]] = {}
        self._paused = Paused.NOTHING
        self._pause_ends = 0.0
        self._pause_timer: asyncio.TimerHandle | None = None
        self._held_back: dict[End, None] = {}
        """Those that a pause holds back, in the order in which it did."""
        self.monitors: dict[End, None] = {}
        self.watchful = False
        """Whether commands must be looked at because of what is here: a pause, or a monitor."""

    def __len__(self) -> int:
        return len(self._ends)

    # Coming and going

    def next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def add(self, end: End) -> None:
        self._ends[end.client.identifier] = end

    def remove(self, end: End) -> None:
        self._ends.pop(end.client.identifier, None)
        self.monitors.pop(end, None)
        self._held_back.pop(end, None)
        self._update()

    def ends(self) -> list[End]:
        return list(self._ends.values())

    # commands.context.Clients

    def all(self) -> list[Client]:
        return [end.client for end in self._ends.values()]

    def describe(self, client: Client) -> bytes:
        return description(client, self._ends[client.identifier].buffers())

    def listener(self, client: Client) -> Listener:
        return self._ends[client.identifier]

    def kill(self, client: Client, *, by: Client | None = None) -> None:
        end = self._ends.get(client.identifier)
        if end is not None:
            end.end(at_once=client is not by)

    def user_changed(self, user: User, removed: bool) -> None:
        """Its clients feel it at once: they go if it is removed, or hears less than they do."""
        for end in self.ends():
            if end.client.user is not user:
                continue
            end.client.update_conditions()
            if removed or not _may_hear_all(end.client):
                end.end(at_once=False)

    # Monitoring

    def monitor(self, client: Client) -> None:
        client.monitoring = True
        self.monitors[self._ends[client.identifier]] = None
        self._update()

    def show(self, client: Client, command: Command, words: list[bytes]) -> None:
        """Show a command to all who monitor, but for administration, which may hold secrets."""
        if command.name == "quit" or not command.flags.isdisjoint(("admin", "skip_monitor")):
            return
        line = Status(monitor_line(client, command, words))
        for end in list(self.monitors):
            if not end.client.monitoring:  # RESET ended it
                del self.monitors[end]
            elif not end.client.silent:
                end.deliver(line)
        self._update()

    # Pausing

    def pause(self, milliseconds: int, *, writes_only: bool) -> None:
        """Longer and wider only, as in Redis: a pause in force is never cut short by another."""
        ends = self._loop.time() + milliseconds / 1000
        self._paused = max(self._paused, Paused.WRITES if writes_only else Paused.ALL)
        if ends > self._pause_ends:
            self._pause_ends = ends
            if self._pause_timer is not None:
                self._pause_timer.cancel()
            self._pause_timer = self._loop.call_at(ends, self.unpause)
        self._update()

    def unpause(self) -> None:
        self._paused, self._pause_ends = Paused.NOTHING, 0.0
        if self._pause_timer is not None:
            self._pause_timer.cancel()
            self._pause_timer = None
        self._update()
        held_back, self._held_back = self._held_back, {}
        for end in held_back:
            # Not at once: this may be said in the midst of a transaction.
            self._loop.call_soon(end.resume)

    def holds_back(self, context: Context, command: Command) -> bool:
        """Whether a pause holds this command back."""
        holds = self._paused == Paused.ALL
        if self._paused == Paused.WRITES:
            holds = _may_write(context.client, command)
        if holds:
            self._held_back[self._ends[context.client.identifier]] = None
        return holds

    def _update(self) -> None:
        self.watchful = bool(self.monitors) or self._paused != Paused.NOTHING

    # Waiting

    @property
    def blocked_count(self) -> int:
        """Those that wait in a command, and those that a pause holds back."""
        return sum(client.blocked for client in self.all())

    async def wait(self, client: Client, seconds: float | None) -> None:
        """Until the time is over, or unblock(): then ClientUnblocked if it asks for an error."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting[client] = future
        client.blocked = True
        # No asyncio.wait_for: a handler is no task yet when it first waits.
        timer = None if seconds is None else self._loop.call_later(seconds, _wake, future)
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()
            client.blocked = False
            del self._waiting[client]

    def unblock(self, client: Client, *, with_error: bool) -> bool:
        future = self._waiting.get(client)
        if future is None or future.done():
            return False
        if with_error:
            future.set_exception(ClientUnblocked())
        else:
            _wake(future)
        return True

    def unblock_all(self) -> None:
        """The server ends: nobody waits any longer."""
        for client in list(self._waiting):
            self.unblock(client, with_error=True)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _may_hear_all(client: Client) -> bool:
    held, user = client.subscriptions, client.user
    return (
        all(map(user.may_hear, held.channels))
        and all(map(user.may_hear, held.shard_channels))
        and all(map(user.may_hear_pattern, held.patterns))
    )


def _may_write(client: Client, command: Command) -> bool:
    if command.name == "exec" and client.transaction is not None:
        return client.transaction.writes
    return changes_anything(command)


def changes_anything(command: Command) -> bool:
    """Whether CLIENT PAUSE WRITE holds it back: writes, and what replicas would be sent."""
    return "write" in command.flags or command.name in ("publish", "spublish")
