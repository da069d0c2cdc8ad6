"""redis-py in its asyncio form feels at home, in RESP2 and RESP3."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ResponseError, WatchError

from tests.clients.conftest import Servers
from tests.clients.rows import (
    COMMANDS_IN_PIPELINE,
    EMPTY_ROW,
    EVERY_BYTE,
    ROW,
    WRITE_ROW,
    WRITTEN_ROW,
    new_name,
    one_cell,
)

PATIENCE_SECONDS = 20.0
Use = Callable[[redis.Redis], Awaitable[None]]


def connected(use: Use, **options: Any) -> None:
    """Run `use` with a client in an event loop of its own."""

    async def run() -> None:
        async with redis.Redis(**options) as client:
            await use(client)

    asyncio.run(run())


async def round_trip(client: redis.Redis) -> None:
    name = new_name()
    assert await client.ping() is True
    assert await client.execute_command("WCPUT", name, "r", 1, "c", "value") == 1
    assert await client.execute_command("WCGET", name, "r") == one_cell(1, b"value")


def test_default_settings(servers: Servers) -> None:
    connected(round_trip, port=servers.open.port)


def test_password(servers: Servers, protocol: int) -> None:
    options = {"port": servers.guarded.port, "protocol": protocol}
    connected(round_trip, password=servers.password, **options)
    no_retry = Retry(NoBackoff(), 0)
    with pytest.raises(AuthenticationError):
        connected(round_trip, password="wrong", retry=no_retry, **options)


def test_tls(servers: Servers, protocol: int) -> None:
    options = {"ssl": True, "ssl_ca_certs": str(servers.certificates.ca)}
    connected(round_trip, port=servers.tls_port, protocol=protocol, **options)


def test_binary_arguments(servers: Servers, protocol: int) -> None:
    async def use(client: redis.Redis) -> None:
        name = new_name()
        assert await client.execute_command("WCPUT", name, ROW, *WRITE_ROW) == 2
        assert await client.execute_command("WCGET", name, ROW) == WRITTEN_ROW
        assert await client.execute_command("WCDEL", name, ROW) == 1
        assert await client.execute_command("WCGET", name, ROW) == EMPTY_ROW

    connected(use, port=servers.open.port, protocol=protocol)


def test_pipeline(servers: Servers, protocol: int) -> None:
    async def use(client: redis.Redis) -> None:
        name = new_name()
        numbers = range(COMMANDS_IN_PIPELINE)
        async with client.pipeline(transaction=False) as pipeline:
            for number in numbers:
                pipeline.execute_command("WCPUT", name, number, 1, "c", number)
            assert await pipeline.execute() == [1] * COMMANDS_IN_PIPELINE
            for number in numbers:
                pipeline.execute_command("WCGET", name, number)
            replies = await pipeline.execute()
            pipeline.execute_command("WCGET", "no-such-dataset", "r")
            pipeline.ping()
            refused, answered = await pipeline.execute(raise_on_error=False)
        assert replies == [one_cell(1, b"%d" % number) for number in numbers]
        assert isinstance(refused, ResponseError)
        assert str(refused).startswith("NODATASET ")
        assert answered is True

    connected(use, port=servers.open.port, protocol=protocol)


def test_transaction(servers: Servers, protocol: int) -> None:
    async def use(client: redis.Redis) -> None:
        name = new_name()
        async with client.pipeline() as transaction:
            transaction.execute_command("WCPUT", name, "r", 1, "c", "first")
            transaction.execute_command("WCPUT", name, "r", 2, "c", "second")
            transaction.execute_command("WCGET", name, "r")
            assert await transaction.execute() == [1, 1, one_cell(2, b"second")]

            await transaction.watch(name)
            transaction.multi()
            transaction.execute_command("WCPUT", name, "r", 4, "c", "ours")
            await client.execute_command("WCPUT", name, "r", 3, "c", "theirs")
            with pytest.raises(WatchError):
                await transaction.execute()
        assert await client.execute_command("WCGET", name, "r") == one_cell(3, b"theirs")

    connected(use, port=servers.open.port, protocol=protocol)


async def next_message(subscriber: Any) -> dict[str, Any]:
    message: dict[str, Any] | None = await subscriber.get_message(timeout=PATIENCE_SECONDS)
    assert message is not None
    return message


def test_subscribe(servers: Servers, protocol: int) -> None:
    async def use(client: redis.Redis) -> None:
        channel = new_name().encode()
        async with client.pubsub() as subscriber:
            await subscriber.subscribe(channel)
            assert (await next_message(subscriber))["type"] == "subscribe"
            assert await client.publish(channel, EVERY_BYTE) == 1
            message = await next_message(subscriber)
            assert (message["channel"], message["data"]) == (channel, EVERY_BYTE)
            await subscriber.unsubscribe(channel)
            assert (await next_message(subscriber))["type"] == "unsubscribe"
        assert await client.publish(channel, "nobody listens") == 0

    connected(use, port=servers.open.port, protocol=protocol)


def test_reconnect(servers: Servers, protocol: int) -> None:
    async def use(client: redis.Redis) -> None:
        name = new_name()
        await client.execute_command("WCPUT", name, "r", 1, "c", "value")
        await asyncio.to_thread(servers.open.restart)
        assert await client.execute_command("WCGET", name, "r") == one_cell(1, b"value")

    connected(use, port=servers.open.port, protocol=protocol)


def test_many_tasks_share_a_pool(servers: Servers, protocol: int) -> None:
    tasks = 32

    async def use(client: redis.Redis) -> None:
        name = new_name()

        async def work(row: int) -> None:
            for number in range(20):
                await client.execute_command("WCPUT", name, row, number, "c", number)
                reply = await client.execute_command("WCGET", name, row)
                assert reply == one_cell(number, b"%d" % number)

        await asyncio.gather(*map(work, range(tasks)))

    async def run() -> None:
        pool = redis.BlockingConnectionPool(
            port=servers.open.port, protocol=protocol, max_connections=8
        )
        async with redis.Redis.from_pool(pool) as client:
            await use(client)

    asyncio.run(run())
