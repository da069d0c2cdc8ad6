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

from commands.client import Client, Condition
from commands.command import Command
from commands.context import CommandSettings, Context, Server
from commands.errors import CommandError, TransactionDiscarded, UnknownCommand
from commands.publishing.subscriptions import Subscriptions
from commands.replies import QUEUED, AllWritten, Messages, Push, Status
from commands.table import TABLE
from resp_server.careful import ProtocolError
from resp_server.clients import ClientRegistry
from resp_server.execution import Execution, Postponed
from resp_server.flow import Gate, Reason
from resp_server.handover import Suspended
from resp_server.idle import is_idle
from resp_server.keep_alive import keep_alive
from resp_server.output_limit import OutputWatch, limit_of
from resp_server.parser import CommandParser
from resp_server.reply import ENCODERS, encode_error
from resp_server.settings import Settings
from resp_server.tick import Tick
from resp_server.waiting import WaitingReplies
from storage.engine import Engine
from storage.errors import StoreFailure

log = logging.getLogger(__name__)

COMMANDS_PER_TURN = 256
TURN_SECONDS = 0.002
REPLY_BYTES_PER_TURN = 1024 * 1024
CHECKED_OUTPUT_BYTES = 64 * 1024
"""Less than this unread is looked at by and by, not at every reply."""
QUICK = TABLE.quick
CROSS_PROTOCOL_WORDS = frozenset((b"post", b"host:"))
"""What a browser sends first when a web page makes it talk to us; Redis ends such clients too."""


class Host(Protocol):
    """What a connection needs of the server."""

    loop: asyncio.AbstractEventLoop
    tick: Tick
    command_settings: CommandSettings

    clients: ClientRegistry
    execution: Execution

    @property
    def engine(self) -> Engine: ...

    @property
    def server(self) -> Server:
        """What handlers may ask of the server."""
        ...

    def parser(self) -> CommandParser: ...

    def admit(self, connection: Connection, peer: object) -> bytes | None:
        """None when it may come in, else the error line it is turned away with."""
        ...

    def forget(self, connection: Connection) -> None: ...

    def count_traffic(self, commands: int, bytes_in: int) -> None: ...

    def count_sent(self, bytes_out: int) -> None: ...

    @property
    def settings(self) -> Settings: ...


class Connection(asyncio.Protocol):
    """A client's socket, its parser, its state and its waiting replies."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tick = host.tick
        self._parser = host.parser()
        self._restricted = False
        """Whether it has to log in before it may send anything large."""
        self._left: list[list[bytes]] = []
        """Commands parsed, but left for the next turn."""
        self._replies = WaitingReplies()
        self._sealed: WaitingReplies | None = None
        """Those of a tick that waits for the disk."""
        self._clients = host.clients
        self._execution = host.execution
        self._record = host.server.calls.record
        self._ran: Command | None = None
        """The command that has just run to its end, if one has."""
        self._postponed = False
        """Whether the command that was about to run waits for a pause to end."""
        self._task: asyncio.Task[None] | None = None
        self._ended = False
        """The client will send no more."""
        self._output = OutputWatch()
        self._bytes_in = 0
        """Bytes that came since they were last counted."""

    # The transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods, not the class.
        self._transport = cast(asyncio.Transport, transport)
        self._gate = Gate(self._transport)
        host = self._host
        peer = transport.get_extra_info("peername")
        refusal = host.admit(self, peer)
        if refusal is not None:
            self._gate.hold(Reason.CLOSING)
            self._transport.write(refusal)
            transport.close()
            return
        local = transport.get_extra_info("sockname")
        user = host.server.users.default
        by_socket_file = isinstance(local, str)
        self.client = Client(
            host.clients.next_number(),
            _readable_address(local if by_socket_file else peer),
            _readable_address(local),
            user,
            authenticated=user.open_to_all,
            by_socket_file=by_socket_file,
            only_reads=host.engine.read_only,
            descriptor=_descriptor(transport),
        )
        connected = transport.get_extra_info("socket")
        if connected is not None and not by_socket_file:
            keep_alive(connected, host.settings.tcp_keepalive)
        if not self.client.is_admitted:
            self._restricted = True
            self._parser.restrict()
        self._context = Context(host.engine, self.client, host.command_settings, host.server)
        host.clients.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gate.hold(Reason.CLOSING)
        if self._task is not None:
            self._task.cancel()
        if hasattr(self, "client"):  # it was let in
            self._host.forget(self)

    def data_received(self, data: bytes) -> None:
        self._bytes_in += len(data)
        self._parser.feed(data)
        if self._gate.open:
            self._take_turn()
        else:
            self._gate.came(len(data))

    def eof_received(self) -> bool:
        """The client has said all it will. It gets its answers, but nobody waits on its behalf."""
        self._ended = True
        self._close_if_done()
        # With TLS there is no half-closed connection, and saying so brings a warning.
        return self._transport.get_extra_info("ssl_object") is None

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
                most = COMMANDS_PER_TURN if not self._restricted else self._restriction()
                commands = self._parser.take(most)
                more = len(commands) == most or self._parser.failed
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

    def _restriction(self) -> int:
        """Lift it once the client has logged in; how many commands may be read at once."""
        if not self.client.is_admitted:
            return 1  # the next one may come after it has logged in
        self._restricted = False
        self._parser.lift()
        return COMMANDS_PER_TURN

    def limit_input(self, max_bulk_bytes: int, max_buffer_bytes: int) -> None:
        """What the next argument and command may be long."""
        self._parser.limit(max_bulk_bytes, max_buffer_bytes)

    def _end_with(self, reply: bytes) -> None:
        """Say one last thing; the connection closes once it is sent."""
        self._replies.append(reply)
        self.client.closing = True
        self._gate.hold(Reason.CLOSING)
        self._tick.add(self)

    def _run_all(self, commands: list[list[bytes]]) -> list[list[bytes]]:
        """Run them until the turn is over or the gate shuts; return those that are left."""
        gate, client, clock = self._gate, self.client, time.monotonic
        bytes_left = REPLY_BYTES_PER_TURN
        done, count = 0, len(commands)
        started = ended = clock()
        deadline = started + TURN_SECONDS
        while done < count:
            words, answered = commands[done], 0
            if words[0] in QUICK and not (client.conditions or self._execution.watches_each):
                answered, size = self._run_quickly(QUICK[words[0]], commands, done)
            if not answered:
                answered, size = 1, self._run(words)
            ended = clock()
            if self._ran is not None:
                self._note(commands, done, answered, ended - started)
                self._ran = None
            done += answered
            bytes_left -= size
            if not gate.open or bytes_left < 0 or ended > deadline:
                break
            started = ended
        client.last_active = ended
        if self._postponed:
            self._postponed = False
            done -= 1
        self._host.count_traffic(done, self._bytes_in)
        self._bytes_in = 0
        return commands[done:]

    def _note(self, commands: list[list[bytes]], first: int, count: int, seconds: float) -> None:
        """So many calls of the command that has just run took so long, together."""
        command, execution = self._ran, self._execution
        assert command is not None
        self._record(command.name, seconds / count, count)
        if seconds >= execution.slow_seconds or self._clients.watchful:
            # Of several, that were answered together, it stands for all.
            execution.note(self._context, command, commands[first], seconds)

    def _run_quickly(
        self, command: Command, commands: list[list[bytes]], place: int
    ) -> tuple[int, int]:
        """Let a quick handler answer what it will: how many calls, and the size of the replies."""
        assert command.quick_handler is not None
        self._ran = command
        try:
            replies = command.quick_handler(self._context, commands, place)
            if type(replies) is AllWritten:
                encoded: list[bytes] = replies
            else:
                encode = ENCODERS[self.client.protocol].encode
                encoded = [encode(reply) for reply in replies]
        except Exception as error:
            return 1, self._reply_error(error, command)
        if not encoded:
            self._ran = None
            return 0, 0
        self.client.last_command = command.name
        waiting = self._replies
        if command.is_write:
            waiting.writes += range(len(waiting), len(waiting) + len(encoded))
        waiting += encoded
        return len(encoded), sum(map(len, encoded))

    def _open(self, reason: int) -> None:
        if self._gate.release(reason):
            self._take_turn()

    def _run(self, words: list[bytes]) -> int:
        """Run one command up to its end or its first wait; the size of its reply."""
        command, client = None, self.client
        try:
            command = TABLE.resolve(words)
            client.last_command = command.name
            if (client.conditions or self._clients.watchful) and self._execution.queue_or_pass(
                self._context, command, words
            ):
                return self._reply(command, QUEUED)
            assert command.handler is not None
        except Postponed:
            self._postponed = client.blocked = True
            self._gate.hold(Reason.PAUSE)
            return 0
        except Exception as error:
            return self._refuse(error, command, words)
        try:
            coroutine = command.handler(self._context, words)
            awaited = coroutine.send(None)
        except StopIteration as done:
            size = self._reply(command, done.value)
        except Exception as error:
            size = self._reply_error(error, command)
        else:
            self._suspend(command, coroutine, awaited, words)
            return 0
        self._ran = command
        return size

    def _reply(self, command: Command, value: Any) -> int:
        client = self.client
        try:
            encoded = ENCODERS[client.protocol].encode(value)
        except Exception as error:
            return self._reply_error(error, command)
        tells_of_write = command.is_write and value is not QUEUED
        if client.conditions & Condition.QUIET:
            return self._reply_quietly(value, encoded, tells_of_write=tells_of_write)
        if tells_of_write:
            self._replies.writes.append(len(self._replies))
        elif client.closing:
            self._gate.hold(Reason.CLOSING)
        self._replies.append(encoded)
        return len(encoded)

    def _reply_quietly(self, value: Any, encoded: bytes, *, tells_of_write: bool = False) -> int:
        """Drop it, unless it is no reply but messages."""
        if type(value) is Messages or not (self.client.silent or self.client.skips):
            if tells_of_write:
                # Messages of a silenced client are all it hears: no error may stand for them.
                dropped = self.client.silent or self.client.skips
                places = self._replies.messages if dropped else self._replies.writes
                places.append(len(self._replies))
            self._replies.append(encoded)
        if self.client.closing:
            self._gate.hold(Reason.CLOSING)
        self.client.end_command()
        return len(encoded)

    def _refuse(self, error: Exception, command: Command | None, words: list[bytes]) -> int:
        """A command that is not even begun; in a transaction it spoils it."""
        if isinstance(error, UnknownCommand) and words[0].lower() in CROSS_PROTOCOL_WORDS:
            log.warning("a web page may be talking to this server: closing its connection")
            self._end_with(b"")
            return 0
        transaction = self.client.transaction
        if command is None:
            self.client.last_command = getattr(error, "command_name", "")
        if isinstance(error, CommandError) and words[0].lower() == b"exec":
            self.client.end_transaction()
            error = TransactionDiscarded(error)
        elif transaction is not None:
            transaction.failed = True
        return self._reply_error(error, command, ran=False)

    def _reply_error(self, error: Exception, command: Command | None, *, ran: bool = True) -> int:
        failure = self._execution.failure(error, command, ran=ran)
        encoded = encode_error(failure.code, failure.text)
        if self.client.conditions & Condition.QUIET:
            return self._reply_quietly(failure, encoded)
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

        started = time.perf_counter()

        def finished(value: Any, error: Exception | None) -> None:
            if error is None:
                self._reply(command, value)
            else:
                self._reply_error(error, command)
            seconds = time.perf_counter() - started
            self._record(command.name, seconds)
            self._execution.note(self._context, command, words, seconds)
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
        return self._replies.has_unsettled

    def settle(self, failure: StoreFailure | None) -> None:
        self._replies.settle(failure)

    def stall(self) -> None:
        self._gate.hold(Reason.STALL)

    def seal(self) -> None:
        self._sealed, self._replies = self._replies, WaitingReplies()

    def send_sealed(self, failure: StoreFailure | None) -> None:
        sealed, self._sealed = self._sealed, None
        assert sealed is not None
        sealed.settle(failure)
        self._send(sealed)

    def flush(self) -> None:
        self._send(self._replies)

    def _send(self, replies: WaitingReplies) -> None:
        if replies and not self._transport.is_closing():
            sent = replies.take()
            if len(sent) == 1:
                self._transport.write(sent[0])
                self._host.count_sent(len(sent[0]))
            else:
                self._transport.writelines(sent)
                self._host.count_sent(sum(map(len, sent)))
            if self._transport.get_write_buffer_size() > CHECKED_OUTPUT_BYTES:
                self._check_output(time.monotonic())
        if self.client.closing and not self._replies:
            self._transport.close()
        elif self._gate.holds(Reason.STALL):
            self._host.loop.call_soon(self._open, Reason.STALL)
        if self._ended:
            self._close_if_done()

    def _close_if_done(self) -> None:
        """Close after the client's end, once everything it asked is answered, or would wait."""
        client = self.client
        waits = client.blocked and self._gate.holds(Reason.HANDLER | Reason.PAUSE)
        if self._gate.open and not (self._replies or self._sealed or self._left):
            self._transport.close()
        elif waits and not client.closing:
            self.end(at_once=False)

    # Messages

    @property
    def subscriptions(self) -> Subscriptions:
        return self.client.subscriptions

    def check_overdue(self, now: float) -> None:
        """Cut it off if it has been silent, or has left too much unread, for too long."""
        if is_idle(self.client, self._host.settings.timeout, now):
            log.info("closing a connection that was idle: %s", self.client.address)
            self._transport.abort()
        if self._transport.get_write_buffer_size():
            self._check_output(now)

    def _check_output(self, now: float) -> None:
        waiting = self._transport.get_write_buffer_size()
        limit = limit_of(self.client, self._host.settings.client_output_buffer_limit)
        if self._output.exceeded(limit, waiting, now) and not self._transport.is_closing():
            log.warning(
                "closing the connection of %s, which leaves %d bytes unread",
                self.client.address,
                waiting,
            )
            self._gate.hold(Reason.CLOSING)
            self._transport.abort()

    def may_hear_of(self, dataset: bytes) -> bool:
        user = self.client.user
        return user.unrestricted or user.may_read(dataset)

    def deliver(self, message: Push | Status, *, tells_of_write: bool = False) -> None:
        if tells_of_write:
            self._replies.messages.append(len(self._replies))
        self._replies.append(ENCODERS[self.client.protocol].encode(message))
        self._tick.add(self)

    # The server's side

    def end(self, *, at_once: bool) -> None:
        if at_once:
            self._gate.hold(Reason.CLOSING)
            self._transport.abort()
            if self._task is not None:
                self._task.cancel()
            self._host.forget(self)  # the next command must not find it any more
        else:
            self.client.closing = True
            self._gate.hold(Reason.CLOSING)
            self._tick.add(self)

    def resume(self) -> None:
        if self._gate.holds(Reason.PAUSE):
            self.client.blocked = False
            self._open(Reason.PAUSE)

    def buffers(self) -> dict[str, int]:
        waiting = self._transport.get_write_buffer_size() + sum(map(len, self._replies))
        waiting += sum(map(len, self._sealed or ()))
        transaction = self.client.transaction
        queued_bytes = 0 if transaction is None else transaction.queued_bytes
        buffered = self._parser.buffered
        return {
            "qbuf": buffered,
            "qbuf-free": 0,
            "argv-mem": 0,
            "multi-mem": queued_bytes,
            "rbs": 0,
            "rbp": 0,
            "obl": 0,
            "oll": len(self._replies),
            "omem": waiting,
            "tot-mem": buffered + queued_bytes + waiting,
        }

    @property
    def waits_for_handler(self) -> bool:
        return self._task is not None

    def stop_reading(self) -> None:
        """The server ends: take no further command on."""
        self._gate.hold(Reason.CLOSING)

    def close(self) -> None:
        """Send what is written and end the connection."""
        self._transport.close()


def _descriptor(transport: asyncio.BaseTransport) -> int:
    connected = transport.get_extra_info("socket")
    return -1 if connected is None else int(connected.fileno())


def _readable_address(address: object) -> str:
    if isinstance(address, tuple):
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"{address or 'unix'}:0"
