"""A handler that waits: the rest of it becomes a task, the client's replies keep their order.

First resp_server.handover.Suspended by itself, on asyncio's loop and on uvloop: the first step is
made outside any task, as a connection makes it. Then a whole server with commands that wait
(suspending_server.py), since none of the embedded engine's does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import hiredis
import pytest
import uvloop

from resp_server.handover import Suspended
from tests.harness import MakeServer, ServerProcess, until
from tests.wire import Wire, encode

Scenario = Callable[[], Coroutine[Any, Any, None]]
Runner = Callable[[Scenario], None]
MANY = 600
"""More commands than one turn takes."""


# Suspended by itself


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Runner:
    """Runs a scenario to its end, and fails if the loop had anything to complain of."""

    def run_it(scenario: Scenario) -> None:
        complaints: list[dict[str, Any]] = []

        async def watched() -> None:
            asyncio.get_running_loop().set_exception_handler(
                lambda _loop, complaint: complaints.append(complaint)
            )
            async with asyncio.timeout(20):
                await scenario()

        request.param(watched())
        assert complaints == []

    return run_it


class Handover:
    """A handler, stepped once by hand outside any task, the rest of it in a task."""

    def __init__(self, handler: Coroutine[Any, Any, Any]) -> None:
        self.told: list[tuple[Any, Exception | None]] = []
        self.done_when_told: list[bool] = []
        self.awaited = handler.send(None)
        suspended = Suspended(handler, self.awaited, self._finished)
        self.task = asyncio.get_running_loop().create_task(suspended)

    def _finished(self, value: Any, error: Exception | None) -> None:
        self.told.append((value, error))
        self.done_when_told.append(self.task.done())

    async def end(self) -> None:
        """Wait for the task without raising what it raised."""
        await asyncio.wait([self.task])


async def hand_over(handler: Coroutine[Any, Any, Any]) -> Handover:
    """Make the first step in a callback of the loop, where no task is current."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Handover] = loop.create_future()

    def step() -> None:
        assert asyncio.current_task() is None
        made.set_result(Handover(handler))

    loop.call_soon(step)
    return await made


async def at_once(value: Any) -> Any:
    return value


async def turn() -> None:
    """Wait for something that comes with the loop's next turn."""
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()


async def wait_once() -> str:
    await turn()
    return "value"


async def wait_for_nothing() -> str:
    await asyncio.sleep(0)
    return "value"


async def wait_often() -> str:
    for _ in range(3):
        await asyncio.sleep(0)
        await turn()
    return "value"


async def wait_deep_inside() -> str:
    async def inner() -> str:
        await wait_once()
        return await wait_often()

    return await inner()


async def wait_for_several() -> str:
    found = await asyncio.gather(wait_once(), at_once(1), wait_often())
    assert list(found) == ["value", 1, "value"]
    return "value"


async def wait_for_a_task() -> str:
    return await asyncio.get_running_loop().create_task(wait_once())


async def wait_for_a_thread() -> str:
    return await asyncio.get_running_loop().run_in_executor(None, lambda: "value")


async def wait_in_a_task_group() -> str:
    await asyncio.sleep(0)
    async with asyncio.TaskGroup() as group:
        first, second = group.create_task(wait_once()), group.create_task(wait_often())
    assert first.result() == second.result() == "value"
    return "value"


async def wait_no_longer_than_allowed() -> str:
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
    except TimeoutError:
        return "value"
    raise AssertionError("it waited for what never comes")


@pytest.mark.parametrize(
    "handler",
    [
        wait_once,
        wait_for_nothing,
        wait_often,
        wait_deep_inside,
        wait_for_several,
        wait_for_a_task,
        wait_for_a_thread,
        wait_in_a_task_group,
        wait_no_longer_than_allowed,
    ],
)
def test_the_value_is_told_once(
    run: Runner, handler: Callable[[], Coroutine[Any, Any, str]]
) -> None:
    async def scenario() -> None:
        handover = await hand_over(handler())
        await handover.task
        assert handover.told == [("value", None)]

    run(scenario)


def test_it_is_told_at_the_step_in_which_the_handler_ends(run: Runner) -> None:
    """Nothing that the loop was asked for meanwhile comes between the two."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        gate: asyncio.Future[None] = loop.create_future()
        told_by_then: list[int] = []

        async def handler() -> str:
            await gate
            loop.call_soon(lambda: told_by_then.append(len(handover.told)))
            return "value"

        handover = await hand_over(handler())
        gate.set_result(None)
        await handover.end()
        assert handover.done_when_told == [False]
        assert told_by_then == [1]

    run(scenario)


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyError("x"), TimeoutError()])
def test_an_error_is_told_and_the_task_ends_well(run: Runner, error: Exception) -> None:
    async def handler() -> None:
        await turn()
        raise error

    async def scenario() -> None:
        handover = await hand_over(handler())
        await handover.task
        assert handover.told == [(None, error)]

    run(scenario)


def test_the_error_of_what_was_awaited_first_reaches_the_handler(run: Runner) -> None:
    async def scenario() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def handler() -> str:
            try:
                await future
            except LookupError as error:
                return f"caught {error}"
            return "nothing came"

        handover = await hand_over(handler())
        future.set_exception(LookupError("it"))
        await handover.task
        assert handover.told == [("caught it", None)]

    run(scenario)


def test_a_future_that_is_done_before_the_task_begins(run: Runner) -> None:
    async def scenario() -> None:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def handler() -> str:
            return await future

        loop = asyncio.get_running_loop()
        handover: list[Handover] = []

        def step() -> None:
            handover.append(Handover(handler()))
            future.set_result("value")

        loop.call_soon(step)
        await asyncio.sleep(0)
        await handover[0].end()
        assert handover[0].told == [("value", None)]

    run(scenario)


def test_cancelled_before_its_first_step_the_handler_still_cleans_up(run: Runner) -> None:
    async def scenario() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        events: list[str] = []

        async def handler() -> None:
            try:
                await future
            except asyncio.CancelledError:
                events.append("cancelled")
                raise
            finally:
                events.append("finally")

        def step() -> None:
            handovers.append(Handover(handler()))
            handovers[0].task.cancel()

        handovers: list[Handover] = []
        asyncio.get_running_loop().call_soon(step)
        await asyncio.sleep(0)
        await handovers[0].end()
        assert events == ["cancelled", "finally"]
        assert future.cancelled()
        assert not future._asyncio_future_blocking
        assert handovers[0].task.cancelled()
        assert handovers[0].told == []

    run(scenario)


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_cancelled_after_some_steps_the_handler_cleans_up(run: Runner, steps: int) -> None:
    async def scenario() -> None:
        events: list[str] = []

        async def handler() -> None:
            try:
                await asyncio.sleep(0)
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                await turn()
                events.append("finally")

        handover = await hand_over(handler())
        for _ in range(steps):
            await asyncio.sleep(0)
        handover.task.cancel()
        await handover.end()
        assert events == ["finally"]
        assert handover.task.cancelled()
        assert handover.told == []

    run(scenario)


def test_what_it_gathers_is_cancelled_with_it(run: Runner) -> None:
    async def scenario() -> None:
        ended: list[int] = []

        async def part(number: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(number)

        async def handler() -> None:
            await asyncio.gather(part(1), part(2))

        handover = await hand_over(handler())
        await asyncio.sleep(0)
        handover.task.cancel()
        await handover.end()
        assert sorted(ended) == [1, 2]
        assert handover.told == []

    run(scenario)


@pytest.mark.parametrize("early", [True, False])
def test_a_handler_that_survives_its_cancellation_tells_its_value(run: Runner, early: bool) -> None:
    async def handler() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            return "all the same"
        return "nothing came"

    async def scenario() -> None:
        handover = await hand_over(handler())
        if not early:
            await asyncio.sleep(0)
        handover.task.cancel()
        await handover.end()
        assert handover.told == [("all the same", None)]

    run(scenario)


def test_closing_it_closes_the_handler() -> None:
    events: list[str] = []

    async def handler() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            events.append("finally")

    coroutine = handler()
    suspended = Suspended(coroutine, coroutine.send(None), lambda *_outcome: events.append("told"))
    suspended.close()
    assert events == ["finally"]


def test_only_a_task_may_drive_it(run: Runner) -> None:
    async def scenario() -> None:
        coroutine = wait_for_nothing()
        suspended: Awaitable[None] = Suspended(coroutine, coroutine.send(None), lambda *_: None)
        with pytest.raises(TypeError):
            await suspended
        coroutine.close()

    run(scenario)


# In a server


@pytest.fixture
def waiting(make_server: MakeServer) -> ServerProcess:
    """A server whose table has the commands of suspending_server.py too."""
    return make_server(command=(sys.executable, "-m", "tests.server.suspending_server"))


def await_waiting(server: ServerProcess, count: int) -> None:
    """Return once so many commands wait."""
    with Wire(server) as other:
        until(lambda: other.call("TESTWAITING") == count)


def test_replies_keep_their_order_around_commands_that_wait(waiting: ServerProcess) -> None:
    with Wire(waiting) as wire:
        wire.send(
            encode("PING"),
            encode("TESTWAIT", 20, "first"),
            encode("WCPUT", "d", "r", 1, "c", "v"),
            encode("WCGET", "d", "r"),
            encode("TESTWAIT", 0, "second"),
            encode("TESTPUT", 5, "d", "r", "c", "waited"),
            encode("WCGET", "d", "r", "NOVALUES", "RANGE", 1, 1),
            encode("TESTREFUSE", 1),
            encode("ECHO", "third"),
            encode("TESTFAIL", 1),
            encode("TESTTIMEOUT", 1),
            encode("PING"),
        )
        replies = wire.read(12)
    assert replies[:7] == [
        b"PONG",
        b"first",
        1,
        [b"0", [[b"c", [[1, b"v"]]]]],
        b"second",
        1,
        [b"0", [[b"c", [1]]]],
    ]
    assert [str(replies[7]), replies[8], str(replies[9])] == [
        "ERR syntax error",
        b"third",
        "ERR internal error",
    ]
    assert replies[10:] == [b"timed out", b"PONG"]
    assert waiting.log.count("Traceback") == 1
    assert "TESTFAIL broke, as it was asked to" in waiting.log
    with waiting.client() as client:
        (_, [(_, [(_, value)])]) = client.execute_command("WCGET", "d", "r")
        assert value == b"waited"


def test_a_long_pipeline_goes_on_after_a_command_that_waits(waiting: ServerProcess) -> None:
    sent = [f"{number}" for number in range(MANY)]
    with Wire(waiting) as wire:
        wire.send(
            *(encode("ECHO", word) for word in sent),
            encode("TESTWAIT", 1, "middle"),
            *(encode("ECHO", word) for word in sent),
        )
        expected = [word.encode() for word in (*sent, "middle", *sent)]
        assert wire.read(2 * MANY + 1) == expected


def test_a_pipeline_of_commands_that_all_wait(waiting: ServerProcess) -> None:
    with Wire(waiting) as wire:
        wire.send(*(encode("TESTWAIT", 0, number) for number in range(MANY)))
        assert wire.read(MANY) == [b"%d" % number for number in range(MANY)]


def test_others_are_served_while_one_waits(waiting: ServerProcess) -> None:
    with Wire(waiting) as wire, Wire(waiting) as other:
        wire.send(encode("TESTWAIT", "held", "held"), encode("PING"))
        await_waiting(waiting, 1)
        for number in range(MANY):
            assert other.call("ECHO", number) == b"%d" % number
        assert not wire.has_something_to_read()
        assert other.call("TESTRELEASE") == 1
        assert wire.read(2) == [b"held", b"PONG"]


def test_many_wait_at_once(waiting: ServerProcess) -> None:
    wires = [Wire(waiting) for _ in range(20)]
    for number, wire in enumerate(wires):
        wire.send(encode("TESTWAIT", "held", number))
    await_waiting(waiting, 20)
    with Wire(waiting) as other:
        assert other.call("TESTRELEASE") == 20
    for number, wire in enumerate(wires):
        assert wire.read(1) == [b"%d" % number]
        wire.close()


def test_what_comes_in_while_it_waits_is_run_afterwards(waiting: ServerProcess) -> None:
    with Wire(waiting) as wire, Wire(waiting) as other:
        wire.send(encode("TESTWAIT", "held", "held"))
        await_waiting(waiting, 1)
        for number in range(MANY):
            wire.send(encode("ECHO", number))
        assert other.call("TESTRELEASE") == 1
        assert wire.read(MANY + 1) == [b"held", *(b"%d" % number for number in range(MANY))]


def test_a_client_that_leaves_while_it_waits_does_no_harm(waiting: ServerProcess) -> None:
    with Wire(waiting) as other:
        with Wire(waiting) as wire:
            wire.send(encode("TESTWAIT", "held", "gone"), encode("PING"))
            wire.send(encode("WCPUT", "d", "r", 1, "never", "v"))
            await_waiting(waiting, 1)
        until(lambda: "TESTWAIT gone was cancelled" in waiting.log)
        until(lambda: b"connected_clients:1" in other.call("INFO", "clients"))
        assert other.call("PING") == b"PONG"
        assert str(other.call("WCGET", "d", "r")).startswith("NODATASET")
    assert waiting.stop() == 0
    assert "Traceback" not in waiting.log


def test_a_client_that_resets_the_connection_while_it_waits(waiting: ServerProcess) -> None:
    with Wire(waiting) as other:
        wire = Wire(waiting)
        wire.send(encode("TESTWAIT", "held", "gone"))
        await_waiting(waiting, 1)
        wire.reset()
        await_waiting(waiting, 0)
        assert other.call("PING") == b"PONG"
    assert "Traceback" not in waiting.log


def test_nobody_waits_for_a_client_that_sends_no_more(waiting: ServerProcess) -> None:
    """As in Redis: the end of its bytes is the end of the client."""
    with Wire(waiting) as wire:
        wire.send(encode("PING"), encode("TESTWAIT", "held", "held"), encode("PING"))
        await_waiting(waiting, 1)
        wire.socket.shutdown(socket.SHUT_WR)
        await_waiting(waiting, 0)
        assert wire.read_to_end() == b"+PONG\r\n"
    assert "Traceback" not in waiting.log


def test_quit_behind_a_command_that_waits(waiting: ServerProcess) -> None:
    with Wire(waiting) as wire:
        wire.send(encode("TESTWAIT", 5, "a"), encode("QUIT"), encode("PING"))
        assert wire.read_to_end() == b"$1\r\na\r\n+OK\r\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop_answers_what_waits(
    waiting: ServerProcess, number: signal.Signals
) -> None:
    with Wire(waiting) as wire:
        wire.send(encode("TESTPUT", "held", "d", "r", "c", "waited"), encode("PING"))
        await_waiting(waiting, 1)
        os.kill(waiting.pid, number)
        until(lambda: "shutting down" in waiting.log)
        os.kill(waiting.pid, signal.SIGUSR1)  # the command goes on
        assert waiting.wait() == 0
        assert wire.read_to_end() == b":1\r\n"
    assert "Traceback" not in waiting.log
    waiting.start()
    with waiting.client() as client:
        (_, [(_, [(_, value)])]) = client.execute_command("WCGET", "d", "r")
        assert value == b"waited"


def test_a_server_that_is_told_to_stop_gives_up_what_waits_too_long(
    waiting: ServerProcess,
) -> None:
    with Wire(waiting) as wire:
        wire.send(encode("TESTWAIT", "held", "long"))
        await_waiting(waiting, 1)
        assert waiting.stop() == 0
        assert wire.read_to_end() == b""
    assert "TESTWAIT long was cancelled" in waiting.log
    assert "the store is closed, bye" in waiting.log
    assert "Traceback" not in waiting.log


def test_an_error_after_waiting_is_an_error_reply(waiting: ServerProcess) -> None:
    with Wire(waiting) as wire:
        assert str(wire.call("TESTFAIL", 0)) == "ERR internal error"
        assert isinstance(wire.call("TESTREFUSE", 0), hiredis.ReplyError)
        assert wire.call("PING") == b"PONG"
