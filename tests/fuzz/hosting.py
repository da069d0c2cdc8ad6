"""A server in this process, without sockets, and clients that look closely at its replies.

tests/server/test_tick.py has its like; here transports end as real ones do, and whatever is logged
as a defect is kept for the one who asks.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast
from unittest import mock

import hiredis

from commands.client import Client, Condition
from commands.errors import InternalError
from resp_server.connection import Connection
from storage.errors import StoreFailure, StoreStalled
from tests.fuzz.users import new_users
from tests.harness import eventually
from tests.server import test_tick
from tests.server.test_tick import Host, Transport
from tests.wire import encode

TURNS_AFTER = 3
"""How many turns of the loop a reply too many may take to come."""
_MESSAGES = {
    b"message", b"pmessage", b"smessage", b"subscribe", b"unsubscribe", b"psubscribe",
    b"punsubscribe", b"ssubscribe", b"sunsubscribe",
}  # fmt: skip
_UNANSWERED = {b"MONITOR", b"SHUTDOWN"}
"""MONITOR of one who monitors already is answered nothing, and so is the end of the server."""
_INTERNAL = str(InternalError())


class Defects(logging.Handler):
    """Exceptions that were logged; those of a store that failed as it was told to are none."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, StoreFailure | StoreStalled):
            self.found.append(error)

    def note(self, _loop: object, context: dict[str, Any]) -> None:
        """What the event loop has met."""
        self.found.append(context.get("exception") or AssertionError(context["message"]))

    def check(self) -> None:
        if self.found:
            raise self.found[0]


class Wire(Transport):
    """Its connection is told of its end, once, in a later turn."""

    connection: Connection

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    abort = close


class FuzzedHost(Host):
    def __init__(self) -> None:
        with mock.patch.object(test_tick, "Users", lambda _table: new_users()):
            super().__init__()
        self.settings.wc_engine = "memory"  # of which no backup is made

    def connect(self) -> tuple[Connection, Transport]:
        wire = Wire()
        wire.connection = Connection(self)
        wire.connection.connection_made(cast(asyncio.Transport, wire))
        return wire.connection, wire

    def forget(self, connection: Connection) -> None:
        self.server.broker.forget(connection)
        self.clients.remove(connection)

    async def end(self) -> None:
        self.clients.unpause()
        self.clients.unblock_all()
        await eventually(lambda: not self.server.saving.in_progress)
        self.database.stalls = self.database.failures = 0
        await self.tick.finish()
        await self.engine.close()
        self.server.syncing._thread.shutdown()


class Talk:
    """One client: sends a command, and finds out what came for it."""

    def __init__(self, host: FuzzedHost) -> None:
        self._host = host
        self._connection, self._wire = host.connect()
        self._reader = hiredis.Reader(notEnoughData=Ellipsis)
        self.heard = b""
        """All that was ever sent to it."""

    @property
    def client(self) -> Client:
        return self._connection.client

    @property
    def closed(self) -> bool:
        return self._wire.closed

    async def say(self, words: list[bytes]) -> list[Any]:
        """Send a command; its replies, without messages, are looked at and returned."""
        was_quiet = bool(self.client.conditions & Condition.QUIET)
        was_monitoring = self.client.monitoring
        self._connection.data_received(encode(*words))
        await self._settle()
        values = self._values()
        replies = [value for value in values if not is_message(value)]
        monitored = was_monitoring or self.client.monitoring
        if monitored:
            replies = [value for value in replies if not _is_monitored(value)]
        for value in values:
            check_value(value)
        is_quiet = bool(self.client.conditions & Condition.QUIET)
        if self.closed:
            assert len(replies) <= 1
        elif was_quiet or is_quiet:
            assert len(replies) <= (was_quiet != is_quiet), (words[:3], replies)
        elif not replies and words[0].upper() not in _UNANSWERED:
            kind = words[0].lower()
            told = [value for value in values if is_message(value) and value[0] == kind]
            assert told, (words[:3], "no reply")
        else:
            assert len(replies) <= 1, (words[:3], replies)
        return replies

    async def _settle(self) -> None:
        """Until nothing is under way any more; who waits without end is helped on."""
        host = self._host
        for turn in range(100_000):
            if self._wire.closed or not self._is_busy():
                break
            if self._connection.client.blocked:
                host.clients.unpause()
                host.clients.unblock_all()
            await asyncio.sleep(0 if turn < 100 else 0.001)
        else:
            raise AssertionError("it does not end")
        for _ in range(TURNS_AFTER):
            await asyncio.sleep(0)

    def _is_busy(self) -> bool:
        connection = self._connection
        return (
            self._host.tick._scheduled
            or connection.waits_for_handler
            or not (connection._gate.open or self.client.closing)
        )

    def _values(self) -> list[Any]:
        """What came, all of it whole."""
        data = self._wire.take()
        self.heard += data
        self._reader.feed(data)
        values: list[Any] = []
        while (value := self._reader.gets()) is not Ellipsis:
            values.append(value)
        assert not self._reader.has_data(), "a reply was cut"
        return values


def is_message(value: Any) -> bool:
    """Whether it came out of turn, or is what SUBSCRIBE answers."""
    if isinstance(value, hiredis.PushNotification):
        return True
    return (
        isinstance(value, list)
        and len(value) in (3, 4)
        and isinstance(value[0], bytes)
        and value[0] in _MESSAGES
    )


def _is_monitored(value: Any) -> bool:
    return (
        isinstance(value, bytes) and b" [" in value and value[:1].isdigit() and b"." in value[:12]
    )


def check_value(value: Any) -> None:
    if isinstance(value, dict):
        for pair in value.items():
            check_value(list(pair))
    elif isinstance(value, list):
        for each in value:
            check_value(each)
    elif isinstance(value, hiredis.ReplyError):
        text = str(value)
        assert _INTERNAL not in text
        assert "\n" not in text
        assert "\r" not in text
        assert text.split(" ")[0].isupper(), text
