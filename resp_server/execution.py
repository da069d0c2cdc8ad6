"""What surrounds the running of a command: may it run now, and what is noted when it has run.

The checks stand in Redis's order; each is a small function that raises what the client is told.
A command that passes them is run by the connection, or inside EXEC by run() here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from commands.access.denials import Denial, DenialLog
from commands.client import Client, Condition
from commands.command import Command
from commands.context import Context
from commands.errors import (
    AuthenticationRequired,
    CommandError,
    DebugDisabled,
    InternalError,
    NoPermission,
    NoPermissionAnyMore,
    NotInTransaction,
    OnlySubscribing,
    ReadOnlyServer,
    WrongArity,
)
from commands.observing.calls import CallStatistics
from commands.observing.latency import LatencyMonitor
from commands.observing.slow_log import SlowLog
from commands.replies import Failure
from commands.table import TABLE
from resp_server.clients import ClientRegistry, changes_anything
from storage.errors import StorageError

log = logging.getLogger(__name__)

_WHILE_SUBSCRIBED = {
    "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe", "ping",
    "quit", "reset",
}  # fmt: skip
_NEVER_QUEUED = {"exec", "discard", "multi", "watch", "quit", "reset"}


SLOW_TOGETHER_SECONDS = 0.001
"""Many calls that are answered together take less, or something held them up."""


class Postponed(Exception):
    """Not now: a pause holds this command back until it ends."""


class Execution:
    """The checks before a command and the notes after it, for all clients of a server."""

    def __init__(
        self,
        clients: ClientRegistry,
        calls: CallStatistics,
        slow_log: SlowLog,
        latency: LatencyMonitor,
        denials: DenialLog,
        allows_debugging: Callable[[Client], bool],
    ) -> None:
        self._clients = clients
        self._calls = calls
        self._slow_log = slow_log
        self._latency = latency
        self._denials = denials
        self._allows_debugging = allows_debugging
        self.slow_seconds = 0.0
        """A call that takes longer is told to slow log and latency monitor; see update()."""
        self.update()

    def update(self) -> None:
        """After a change of the limits of the slow log or the latency monitor."""
        self.slow_seconds = min(self._slow_log.limit_seconds, self._latency.limit_seconds)

    # Before

    @property
    def watches_each(self) -> bool:
        """Whether somebody wants to know of each call when it runs, or how long it takes by itself:
        then none are answered together."""
        return self._clients.watchful or self.slow_seconds < SLOW_TOGETHER_SECONDS

    def queue_or_pass(self, context: Context, command: Command, words: list[bytes]) -> bool:
        """Raise what speaks against running it now; True when it was queued for EXEC instead."""
        client = context.client
        conditions = client.conditions
        if command.name == "debug" and not self._allows_debugging(client):
            raise DebugDisabled
        if conditions & Condition.LOGIN and not command.before_login:
            raise AuthenticationRequired
        if conditions & Condition.TRANSACTION and "no_multi" in command.flags:
            raise NotInTransaction
        if conditions & Condition.LIMITED:
            self._check_permission(context, command, words)
        if conditions & Condition.READER and not command.only_reads:
            raise ReadOnlyServer
        if conditions & Condition.SUBSCRIBED and command.name not in _WHILE_SUBSCRIBED:
            raise OnlySubscribing(command.name)
        if self._clients.holds_back(context, command):
            raise Postponed
        transaction = client.transaction
        if transaction is None or command.name in _NEVER_QUEUED:
            return False
        transaction.add(words, writes=changes_anything(command))
        return True

    def _check_permission(
        self,
        context: Context,
        command: Command,
        words: list[bytes],
    ) -> None:
        denial = self._denial(context, command, words)
        if denial is not None:
            raise NoPermission(denial.reason, command.name)

    def _denial(self, context: Context, command: Command, words: list[bytes]) -> Denial | None:
        """Why the user may not run it, which is noted for ACL LOG."""
        denial = context.client.user.denial(command, words)
        if denial is not None:
            self._denials.add(
                denial,
                user=context.client.user.name,
                in_transaction=context.client.transaction is not None,
                client=self._clients.describe(context.client),
            )
        return denial

    # After

    def note(self, context: Context, command: Command, words: list[bytes], seconds: float) -> None:
        """A command has run, well or not: tell those whom this one interests. Recording that it ran
        is its caller's, so that this need not be called for an ordinary one."""
        if seconds >= self.slow_seconds:
            self._note_slow(context, command, words, seconds)
        if self._clients.watchful:
            self._clients.show(context.client, command, words)

    def _note_slow(
        self, context: Context, command: Command, words: list[bytes], seconds: float
    ) -> None:
        client, now = context.client, int(time.time())
        if "skip_slowlog" not in command.flags:
            self._slow_log.add(words, seconds, now, client.address, client.name)
        event = "fast-command" if "fast" in command.flags else "command"
        self._latency.add(event, int(seconds * 1000), now)

    def failure(self, error: Exception, command: Command | None, *, ran: bool) -> Failure:
        """What the client is told of an error, which is counted; a defect is logged."""
        if not isinstance(error, CommandError | StorageError):
            name = "a command" if command is None else command.name
            log.error("%s failed", name, exc_info=error)
            error = InternalError()
        self._calls.errors[error.code] += 1
        if command is not None:
            calls = self._calls.of(command.name)
            calls.failed += ran
            calls.rejected += not ran
        elif isinstance(error, WrongArity):
            self._calls.of(error.command_name).rejected += 1
        return Failure(error.code, str(error))

    # For EXEC

    async def run(self, context: Context, words: list[bytes]) -> Any:
        """Run a queued command: its value, or a Failure."""
        command = TABLE.resolve(words)
        client = context.client
        ran = False
        started = time.perf_counter()
        try:
            if client.conditions & Condition.LIMITED:
                denial = self._denial(context, command, words)
                if denial is not None:
                    raise NoPermissionAnyMore(denial.reason)
            assert command.handler is not None
            ran = True
            return await command.handler(context, words)
        except Exception as error:
            return self.failure(error, command, ran=ran)
        finally:
            if ran:
                self._calls.record(command.name, time.perf_counter() - started)
                self.note(context, command, words, time.perf_counter() - started)
