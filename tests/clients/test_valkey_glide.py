"""valkey-glide, whose core is in Rust, feels at home in RESP2 and RESP3."""

from __future__ import annotations

import asyncio
import contextlib
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
from tests.harness import eventually

glide = pytest.importorskip("glide", reason="valkey-glide is not installed")

PATIENCE_SECONDS = 20.0
# As delivered, glide gives a request a quarter of a second, a batch of 10,000 commands too.
BATCH_TIMEOUT_MS = 20_000
Use = Callable[[Any], Awaitable[None]]


@pytest.fixture(params=["RESP2", "RESP3"])
def protocol(request: pytest.FixtureRequest) -> Any:
    return getattr(glide.ProtocolVersion, request.param)


def connected(use: Use, port: int, **options: Any) -> None:
    """Run `use` with a client in an event loop of its own."""

    async def run() -> None:
        addresses = [glide.NodeAddress("127.0.0.1", port)]
        client = await glide.GlideClient.create(
            glide.GlideClientConfiguration(addresses, **options)
        )
        try:
            await use(client)
        finally:
            await client.close()

    asyncio.run(run())


async def round_trip(client: Any) -> None:
    name = new_name()
    assert await client.ping() == b"PONG"
    assert await client.custom_command(["WCPUT", name, "r", "1", "c", "value"]) == 1
    assert await client.custom_command(["WCGET", name, "r"]) == one_cell(1, b"value")


def test_default_settings(servers: Servers) -> None:
    connected(round_trip, servers.open.port)


def test_password(servers: Servers, protocol: Any) -> None:
    credentials = glide.ServerCredentials(servers.password)
    connected(round_trip, servers.guarded.port, credentials=credentials, protocol=protocol)


def test_tls(servers: Servers, protocol: Any) -> None:
    authority = servers.certificates.ca.read_bytes()
    advanced = glide.AdvancedGlideClientConfiguration(
        tls_config=glide.TlsAdvancedConfiguration(root_pem_cacerts=authority)
    )
    options = {"use_tls": True, "advanced_config": advanced}
    connected(round_trip, servers.tls_port, protocol=protocol, **options)


def test_binary_arguments(servers: Servers, protocol: Any) -> None:
    async def use(client: Any) -> None:
        name = new_name()
        assert await client.custom_command(["WCPUT", name, ROW, *WRITE_ROW]) == 2
        assert await client.custom_command(["WCGET", name, ROW]) == WRITTEN_ROW
        assert await client.custom_command(["WCDEL", name, ROW]) == 1
        assert await client.custom_command(["WCGET", name, ROW]) == EMPTY_ROW

    connected(use, servers.open.port, protocol=protocol)


def test_pipeline(servers: Servers, protocol: Any) -> None:
    async def use(client: Any) -> None:
        name = new_name()
        numbers = range(COMMANDS_IN_PIPELINE)
        patient = glide.BatchOptions(timeout=BATCH_TIMEOUT_MS)
        writes, reads = glide.Batch(is_atomic=False), glide.Batch(is_atomic=False)
        for number in numbers:
            writes.custom_command(["WCPUT", name, f"{number}", "1", "c", f"{number}"])
            reads.custom_command(["WCGET", name, f"{number}"])
        written = await client.exec(writes, raise_on_error=True, options=patient)
        assert written == [1] * COMMANDS_IN_PIPELINE
        read = await client.exec(reads, raise_on_error=True, options=patient)
        assert read == [one_cell(1, b"%d" % number) for number in numbers]

        mixed = glide.Batch(is_atomic=False)
        mixed.custom_command(["WCGET", "no-such-dataset", "r"])
        mixed.ping()
        refused, answered = await client.exec(mixed, raise_on_error=False)
        assert isinstance(refused, glide.RequestError)
        assert "NODATASET" in str(refused)
        assert answered == b"PONG"

    connected(use, servers.open.port, protocol=protocol)


def test_transaction(servers: Servers, protocol: Any) -> None:
    async def use(client: Any) -> None:
        name = new_name()
        transaction = glide.Batch(is_atomic=True)
        transaction.custom_command(["WCPUT", name, "r", "1", "c", "first"])
        transaction.custom_command(["WCPUT", name, "r", "2", "c", "second"])
        transaction.custom_command(["WCGET", name, "r"])
        replies = await client.exec(transaction, raise_on_error=True)
        assert replies == [1, 1, one_cell(2, b"second")]

    connected(use, servers.open.port, protocol=protocol)


def test_watched_dataset_aborts_a_transaction(servers: Servers, protocol: Any) -> None:
    async def use(client: Any) -> None:
        name = new_name()
        await client.watch([name])
        # A watch counts commands of the same connection as well, as in Redis.
        await client.custom_command(["WCPUT", name, "r", "1", "c", "theirs"])
        transaction = glide.Batch(is_atomic=True)
        transaction.custom_command(["WCPUT", name, "r", "2", "c", "ours"])
        assert await client.exec(transaction, raise_on_error=True) is None
        assert await client.custom_command(["WCGET", name, "r"]) == one_cell(1, b"theirs")

    connected(use, servers.open.port, protocol=protocol)


def test_subscribe(servers: Servers) -> None:
    """In RESP3 only: this client refuses to subscribe in RESP2."""

    async def use(client: Any) -> None:
        channel = new_name()
        await client.subscribe({channel}, timeout_ms=int(PATIENCE_SECONDS * 1000))
        # What is published must be text for this client; what is received comes in bytes.
        assert await client.publish("every \x00\r\n", channel) == 1
        message = await asyncio.wait_for(client.get_pubsub_message(), PATIENCE_SECONDS)
        assert (message.channel, message.message) == (channel.encode(), b"every \x00\r\n")
        assert await client.custom_command(["PUBLISH", channel, EVERY_BYTE]) == 1
        message = await asyncio.wait_for(client.get_pubsub_message(), PATIENCE_SECONDS)
        assert message.message == EVERY_BYTE
        await client.unsubscribe({channel}, timeout_ms=int(PATIENCE_SECONDS * 1000))
        assert await client.publish("nobody listens", channel) == 0

    connected(use, servers.open.port)


def test_reconnect(servers: Servers, protocol: Any) -> None:
    async def use(client: Any) -> None:
        async def answers() -> bool:
            with contextlib.suppress(glide.ConnectionError, glide.TimeoutError):
                return bool(await client.ping())
            return False

        name = new_name()
        await client.custom_command(["WCPUT", name, "r", "1", "c", "value"])
        await asyncio.to_thread(servers.open.restart)
        await eventually(answers)
        assert await client.custom_command(["WCGET", name, "r"]) == one_cell(1, b"value")

    connected(use, servers.open.port, protocol=protocol)
