"""One client: bytes in, commands run in order, replies out in order.

The protocol class moves bytes and keeps the order; what a command means is its handler's. All
replies wait for the end of the tick (tick.py). At most COMMANDS_PER_TURN commands or TURN_SECONDS
are spent on one connection before others get theirs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any, Protocol, cast

from commands.context import Client, CommandSettings, Context, ServerFacts
from commands.errors import AuthenticationRequired, CommandError, InternalError, UnknownCommand
from commands.table import TABLE, Command
from resp_server.careful import ProtocolError
from resp_server.flow import Gate, Reason
from resp_server.handover import Suspended
from resp_server.parser import CommandParser
from resp_server.reply import ENCODERS, encode_error
from resp_server.tick import Tick
from storage.engine import Engine
from storage.errors import StorageError, StoreFailure

log = logging.getLogger(__name__)

COMMANDS_PER_TURN = 256
TURN_SECONDS = 0.002
COMMANDS_PER_CLOCK_READING = 16
REPLY_BYTES_PER_TURN = 1024 * 1024
CROSS_PROTOCOL_WORDS = frozenset((b"post", b"host:"))
"""What a browser sends first when a web page makes it talk to us; Redis ends such clients too."""


class Host(Protocol):
    """What a connection needs of the server."""

    loop: asyncio.AbstractEventLoop
    tick: Tick
    command_settings: CommandSettings

    @property
    def engine(self) -> Engine: ...

    @property
    def facts(self) -> ServerFacts: ...

    def parser(self) -> CommandParser: ...

    def admit(self, connection: Connection) -> int | None:
        """The new client's number; None when there is no room for it."""
        ...

    def forget(self, connection: Connection) -> None: ...

    def count_commands(self, count: int) -> None: ...


class Connection(asyncio.Protocol):
    """A client's socket, its parser, its state and its waiting replies."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tick = host.tick
        self._parser = host.parser()
        self._left: list[list[bytes]] = []
        """Commands parsed, but left for the next turn."""
        self._replies: list[bytes] = []
        self._unsettled: list[int] = []
        """Places in _replies of those that tell of writes not in the log yet."""
        self._task: asyncio.Task[None] | None = None
        self._ended = False
        """The client will send no more."""

    # The transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods, not the class.
        self._transport = cast(asyncio.Transport, transport)
        self._gate = Gate(self._transport)
        host = self._host
        identifier = host.admit(self)
        if identifier is None:
            self._gate.hold(Reason.CLOSING)
            self._transport.write(encode_error("ERR", "max number of clients reached"))
            transport.close()
            return
        self.client = Client(
            identifier,
            _readable_address(transport.get_extra_info("peername")),
            _readable_address(transport.get_extra_info("sockname")),
            authenticated=not host.command_settings.password,
        )
        self._context = Context(host.engine, self.client, host.command_settings, host.facts)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gate.hold(Reason.CLOSING)
        if self._task is not None:
            self._task.cancel()
        self._host.forget(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        if self._gate.open:
            self._take_turn()
        else:
            self._gate.came(len(data))

    def eof_received(self) -> bool:
        """The client has said all it will. It gets its answers, but nobody waits on its behalf."""
        self._ended = True
        if self._task is not None:
            self._transport.close()
        else:
            self._close_if_done()
        return True

    def pause_writing(self) -> None:
        self._gate.hold(Reason.REPLIES)

    def resume_writing(self) -> None:
        self._open(Reason.REPLIES)

    # Commands

    def _take_turn(self) -> None:
        """Run commands that are here already, up to one turn's share."""
        commands, self._left = self._left, []
        more = bool(commands)
        try:
            if not commands:
                commands = self._parser.take(COMMANDS_PER_TURN)
                more = len(commands) == COMMANDS_PER_TURN or self._parser.failed
        except ProtocolError as error:
            self._end_with(encode_error("ERR", str(error)))
        if commands:
            # Before the first of them: a commit in the middle of the turn must find us.
            self._tick.add(self)
            self._left = self._run_all(commands)
        if (more or self._left) and not self.client.closing:
            self._gate.hold(Reason.TURN)
            self._host.loop.call_soon(self._open, Reason.TURN)
        if self._ended:
            self._close_if_done()

    def _end_with(self, reply: bytes) -> None:
        """Say one last thing; the connection closes once it is sent."""
        self._replies.append(reply)
        self.client.closing = True
        self._gate.hold(Reason.CLOSING)
        self._tick.add(self)

    def _run_all(self, commands: list[list[bytes]]) -> list[list[bytes]]:
        """Run them until the turn is over or the gate shuts; return those that are left."""
        run, gate, clock = self._run, self._gate, time.monotonic
        bytes_left = REPLY_BYTES_PER_TURN
        deadline = clock() + TURN_SECONDS
        done = 0
        for words in commands:
            bytes_left -= run(words)
            done += 1
            if not gate.open or bytes_left < 0:
                break
            if done % COMMANDS_PER_CLOCK_READING == 0 and clock() > deadline:
                break
        self._host.count_commands(done)
        return commands[done:]

    def _open(self, reason: int) -> None:
        if self._gate.release(reason):
            self._take_turn()

    def _run(self, words: list[bytes]) -> int:
        """Run one command up to its end or its first wait; the size of its reply."""
        try:
            command = TABLE.resolve(words)
            if not (self.client.authenticated or command.before_login):
                raise AuthenticationRequired
            assert command.handler is not None
            coroutine = command.handler(self._context, words)
            awaited = coroutine.send(None)
        except StopIteration as done:
            return self._reply(command, done.value)
        except Exception as error:
            return self._reply_error(error, words)
        self._suspend(command, coroutine, awaited, words)
        return 0

    def _reply(self, command: Command, value: Any) -> int:
        try:
            encoded = ENCODERS[self.client.protocol].encode(value)
        except Exception as error:
            return self._reply_error(error, [command.name.encode()])
        if command.is_write:
            self._unsettled.append(len(self._replies))
        elif self.client.closing:
            self._gate.hold(Reason.CLOSING)
        self._replies.append(encoded)
        return len(encoded)

    def _reply_error(self, error: Exception, words: list[bytes]) -> int:
        if isinstance(error, UnknownCommand) and words[0].lower() in CROSS_PROTOCOL_WORDS:
            log.warning("a web page may be talking to this server: closing its connection")
            self._end_with(b"")
            return 0
        if not isinstance(error, CommandError | StorageError):
            log.error("%s failed", words[0][:64].decode("latin-1"), exc_info=error)
            error = InternalError()
        encoded = encode_error(error.code, str(error))
        self._replies.append(encoded)
        return len(encoded)

    def _suspend(
        self,
        command: Command,
        coroutine: Coroutine[Any, Any, Any],
        awaited: Any,
        words: list[bytes],
    ) -> None:
        """Let a task end what waits; no further command of this connection runs until then."""

        def finished(value: Any, error: Exception | None) -> None:
            if error is None:
                self._reply(command, value)
            else:
                self._reply_error(error, words)
            self._tick.add(self)
            self._host.loop.call_soon(self._handler_ended)

        self._gate.hold(Reason.HANDLER)
        self._task = self._host.loop.create_task(Suspended(coroutine, awaited, finished))

    def _handler_ended(self) -> None:
        self._task = None
        self._open(Reason.HANDLER)

    # Replies

    @property
    def has_unsettled(self) -> bool:
        return bool(self._unsettled)

    def settle(self, failure: StoreFailure | None) -> None:
        if failure is not None:
            for place in self._unsettled:
                self._replies[place] = encode_error(failure.code, str(failure))
        self._unsettled.clear()

    def stall(self) -> None:
        self._gate.hold(Reason.STALL)

    def flush(self) -> None:
        self._unsettled.clear()
        replies, self._replies = self._replies, []
        if replies and not self._transport.is_closing():
            self._transport.write(replies[0] if len(replies) == 1 else b"".join(replies))
        if self.client.closing:
            self._transport.close()
        elif self._gate.holds(Reason.STALL):
            self._host.loop.call_soon(self._open, Reason.STALL)
        if self._ended:
            self._close_if_done()

    def _close_if_done(self) -> None:
        """Close after the client's end, once everything it asked is answered."""
        if self._gate.open and not (self._replies or self._left):
            self._transport.close()

    # The server's side

    @property
    def waits_for_handler(self) -> bool:
        return self._task is not None

    def stop_reading(self) -> None:
        """The server ends: take no further command on."""
        self._gate.hold(Reason.CLOSING)

    def close(self) -> None:
        """Send what is written and end the connection."""
        self._transport.close()


def _readable_address(address: object) -> str:
    if isinstance(address, tuple):
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"{address or 'unix'}:0"
