"""coredis, which speaks RESP3 only, feels at home."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

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

coredis = pytest.importorskip("coredis", reason="coredis is not installed")

PATIENCE_SECONDS = 20.0
Use = Callable[[Any], Awaitable[None]]


def connected(use: Use, **options: Any) -> None:
    """Run `use` with a client in an event loop of its own."""

    async def run() -> None:
        async with coredis.Redis(**options) as client:
            await use(client)

    asyncio.run(run())


def call(client: Any, name: bytes, *words: object) -> Any:
    """A request for a command that the client does not know; in a pipeline it is queued.

    The reply comes as the server gave it.
    """
    return client.create_request(name, *words, callback=lambda reply: reply)


async def round_trip(client: Any) -> None:
    name = new_name()
    assert await client.ping() == b"PONG"
    assert await call(client, b"WCPUT", name, "r", 1, "c", "value") == 1
    assert await call(client, b"WCGET", name, "r") == one_cell(1, b"value")


def test_default_settings(servers: Servers) -> None:
    connected(round_trip, port=servers.open.port)


def test_password(servers: Servers) -> None:
    connected(round_trip, port=servers.guarded.port, password=servers.password)


def test_wrong_password_is_refused(servers: Servers) -> None:
    with pytest.RaisesGroup(coredis.exceptions.AuthenticationError, flatten_subgroups=True):
        connected(round_trip, port=servers.guarded.port, password="wrong")


def test_tls(servers: Servers) -> None:
    authority = str(servers.certificates.ca)
    connected(round_trip, port=servers.tls_port, ssl=True, ssl_ca_certs=authority)


def test_binary_arguments(servers: Servers) -> None:
    async def use(client: Any) -> None:
        name = new_name()
        assert await call(client, b"WCPUT", name, ROW, *WRITE_ROW) == 2
        assert await call(client, b"WCGET", name, ROW) == WRITTEN_ROW
        assert await call(client, b"WCDEL", name, ROW) == 1
        assert await call(client, b"WCGET", name, ROW) == EMPTY_ROW

    connected(use, port=servers.open.port)


def test_pipeline(servers: Servers) -> None:
    async def use(client: Any) -> None:
        name = new_name()
        numbers = range(COMMANDS_IN_PIPELINE)
        async with client.pipeline(transaction=False) as pipeline:
            for number in numbers:
                call(pipeline, b"WCPUT", name, number, 1, "c", number)
        assert pipeline.results == (1,) * COMMANDS_IN_PIPELINE
        async with client.pipeline(transaction=False) as pipeline:
            for number in numbers:
                call(pipeline, b"WCGET", name, number)
        assert pipeline.results == tuple(one_cell(1, b"%d" % number) for number in numbers)

    connected(use, port=servers.open.port)


def test_error_in_a_pipeline_leaves_the_rest_alone(servers: Servers) -> None:
    async def use(client: Any) -> None:
        async with client.pipeline(transaction=False, raise_on_error=False) as pipeline:
            refused = call(pipeline, b"WCGET", "no-such-dataset", "r")
            answered = pipeline.ping()
        with pytest.raises(coredis.exceptions.ResponseError, match="NODATASET"):
            await refused
        assert await answered == b"PONG"

    connected(use, port=servers.open.port)


def test_transaction(servers: Servers) -> None:
    async def use(client: Any) -> None:
        name = new_name()
        async with client.pipeline(transaction=True) as transaction:
            call(transaction, b"WCPUT", name, "r", 1, "c", "first")
            call(transaction, b"WCPUT", name, "r", 2, "c", "second")
            call(transaction, b"WCGET", name, "r")
        assert transaction.results == (1, 1, one_cell(2, b"second"))

    connected(use, port=servers.open.port)


def test_watched_dataset_aborts_a_transaction(servers: Servers) -> None:
    async def use(client: Any) -> None:
        name = new_name()
        with pytest.raises(coredis.exceptions.WatchError):
            async with client.pipeline(transaction=False) as pipeline, pipeline.watch(name):
                call(pipeline, b"WCPUT", name, "r", 2, "c", "ours")
                await call(client, b"WCPUT", name, "r", 1, "c", "theirs")
        assert await call(client, b"WCGET", name, "r") == one_cell(1, b"theirs")

    connected(use, port=servers.open.port)


def test_subscribe(servers: Servers) -> None:
    async def use(client: Any) -> None:
        channel = new_name().encode()
        async with client.pubsub(channels=[channel]) as subscriber:
            confirmed = await subscriber.get_message(timeout=PATIENCE_SECONDS)
            assert confirmed["type"] == "subscribe"
            assert await client.publish(channel, EVERY_BYTE) == 1
            message = await subscriber.get_message(timeout=PATIENCE_SECONDS)
            assert (message["channel"], message["data"]) == (channel, EVERY_BYTE)
        assert await client.publish(channel, "nobody listens") == 0

    connected(use, port=servers.open.port)


def test_reconnect(servers: Servers) -> None:
    async def use(client: Any) -> None:
        name = new_name()
        await call(client, b"WCPUT", name, "r", 1, "c", "value")
        await asyncio.to_thread(servers.open.restart)
        assert await call(client, b"WCGET", name, "r") == one_cell(1, b"value")

    connected(use, port=servers.open.port)
