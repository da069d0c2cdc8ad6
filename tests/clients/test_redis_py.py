"""redis-py in its blocking form feels at home, in RESP2 and RESP3."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.clients.conftest import Servers
from tests.clients.rows import (
    COLUMN,
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
NO_RETRY = Retry(NoBackoff(), 0)


@pytest.fixture
def client(servers: Servers, protocol: int) -> Iterator[redis.Redis]:
    with redis.Redis(port=servers.open.port, protocol=protocol) as connected:
        yield connected


def round_trip(client: redis.Redis) -> None:
    name = new_name()
    assert client.ping() is True
    assert client.execute_command("WCPUT", name, "r", 1, "c", "value") == 1
    assert client.execute_command("WCGET", name, "r") == one_cell(1, b"value")


def test_default_settings(servers: Servers) -> None:
    with redis.Redis(port=servers.open.port) as client:
        round_trip(client)


def test_address(servers: Servers) -> None:
    with redis.from_url(f"redis://127.0.0.1:{servers.open.port}/0") as client:
        round_trip(client)


def test_password(servers: Servers, protocol: int) -> None:
    port, password = servers.guarded.port, servers.password
    with redis.Redis(port=port, password=password, protocol=protocol) as client:
        round_trip(client)
    with redis.Redis(port=port, username="default", password=password) as client:
        round_trip(client)


@pytest.mark.parametrize("password", ["wrong", None])
def test_wrong_password_is_refused(servers: Servers, protocol: int, password: str | None) -> None:
    with (
        # As delivered, the client tries ten times, ever more slowly.
        redis.Redis(
            port=servers.guarded.port, protocol=protocol, password=password, retry=NO_RETRY
        ) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


def test_tls(servers: Servers, protocol: int) -> None:
    authority = str(servers.certificates.ca)
    with redis.Redis(
        port=servers.tls_port, ssl=True, ssl_ca_certs=authority, protocol=protocol
    ) as client:
        round_trip(client)


def test_much_over_tls(servers: Servers, protocol: int) -> None:
    """More than a TLS record, a socket's buffer and a turn of the server hold."""
    name, authority = new_name(), str(servers.certificates.ca)
    value = EVERY_BYTE * 20_000
    with (
        redis.Redis(
            port=servers.tls_port, ssl=True, ssl_ca_certs=authority, protocol=protocol
        ) as client,
        client.pipeline(transaction=False) as pipeline,
    ):
        pipeline.execute_command("WCPUT", name, "r", 1, "c", value)
        for _ in range(COMMANDS_IN_PIPELINE):
            pipeline.echo("little")
        pipeline.execute_command("WCGET", name, "r")
        written, *echoed, read = pipeline.execute()
    assert written == 1
    assert echoed == [b"little"] * COMMANDS_IN_PIPELINE
    assert read == one_cell(1, value)


def test_server_of_an_unknown_authority_is_not_trusted(servers: Servers) -> None:
    with (
        redis.Redis(port=servers.tls_port, ssl=True, retry=NO_RETRY) as client,
        pytest.raises(redis.ConnectionError, match="certificate verify failed"),
    ):
        client.ping()


def test_binary_arguments(client: redis.Redis) -> None:
    name = new_name()
    assert client.execute_command("WCPUT", name, ROW, *WRITE_ROW) == 2
    assert client.execute_command("WCGET", name, ROW) == WRITTEN_ROW
    assert client.execute_command("WCGET", name, ROW, "COLUMNS", 1, COLUMN)[1] == WRITTEN_ROW[1][1:]
    assert client.execute_command("WCDEL", name, ROW) == 1
    assert client.execute_command("WCGET", name, ROW) == EMPTY_ROW


def test_pipeline(client: redis.Redis) -> None:
    name = new_name()
    numbers = range(COMMANDS_IN_PIPELINE)
    with client.pipeline(transaction=False) as pipeline:
        for number in numbers:
            pipeline.execute_command("WCPUT", name, number, 1, "c", number)
        assert pipeline.execute() == [1] * COMMANDS_IN_PIPELINE
        for number in numbers:
            pipeline.execute_command("WCGET", name, number)
        assert pipeline.execute() == [one_cell(1, b"%d" % number) for number in numbers]


def test_error_in_a_pipeline_leaves_the_rest_alone(client: redis.Redis) -> None:
    with client.pipeline(transaction=False) as pipeline:
        pipeline.execute_command("WCGET", "no-such-dataset", "r")
        pipeline.ping()
        refused, answered = pipeline.execute(raise_on_error=False)
    assert isinstance(refused, redis.ResponseError)
    assert str(refused).startswith("NODATASET ")
    assert answered is True


def test_transaction(client: redis.Redis) -> None:
    name = new_name()
    with client.pipeline() as transaction:
        transaction.execute_command("WCPUT", name, "r", 1, "c", "first")
        transaction.execute_command("WCPUT", name, "r", 2, "c", "second")
        transaction.execute_command("WCGET", name, "r")
        assert transaction.execute() == [1, 1, one_cell(2, b"second")]


def test_watched_dataset_aborts_a_transaction(servers: Servers, client: redis.Redis) -> None:
    name = new_name()
    with client.pipeline() as transaction:
        transaction.watch(name)
        transaction.multi()
        transaction.execute_command("WCPUT", name, "r", 2, "c", "ours")
        client.execute_command("WCPUT", name, "r", 1, "c", "theirs")
        with pytest.raises(redis.WatchError):
            transaction.execute()
    assert client.execute_command("WCGET", name, "r") == one_cell(1, b"theirs")


def test_transaction_function(client: redis.Redis) -> None:
    """redis-py runs it again until nobody else changed what it watches."""
    name = new_name()
    client.execute_command("WCPUT", name, "r", 1, "c", 0)
    runs = 0

    def add_one(transaction: Any) -> None:
        nonlocal runs
        runs += 1
        _, [[_, [[_, value]]]] = transaction.execute_command("WCGET", name, "r")
        if runs == 1:
            client.execute_command("WCPUT", name, "r", 2, "c", 10)
        transaction.multi()
        transaction.execute_command("WCPUT", name, "r", 3, "c", int(value) + 1)

    assert client.transaction(add_one, name) == [1]
    assert runs == 2
    assert client.execute_command("WCGET", name, "r") == one_cell(3, b"11")


def next_message(subscriber: Any) -> dict[str, Any]:
    message: dict[str, Any] | None = subscriber.get_message(timeout=PATIENCE_SECONDS)
    assert message is not None
    return message


def test_subscribe(client: redis.Redis) -> None:
    channel = new_name().encode()
    with client.pubsub() as subscriber:
        subscriber.subscribe(channel)
        assert next_message(subscriber)["type"] == "subscribe"
        assert client.publish(channel, EVERY_BYTE) == 1
        message = next_message(subscriber)
        assert (message["type"], message["channel"]) == ("message", channel)
        assert message["data"] == EVERY_BYTE
        subscriber.ping("still there")
        assert next_message(subscriber)["data"] == b"still there"
        subscriber.unsubscribe(channel)
        assert next_message(subscriber)["type"] == "unsubscribe"
    assert client.publish(channel, "nobody listens") == 0


def test_subscribe_to_a_pattern(client: redis.Redis) -> None:
    channel = new_name()
    with client.pubsub() as subscriber:
        subscriber.psubscribe(f"{channel}:*")
        assert next_message(subscriber)["type"] == "psubscribe"
        assert client.publish(f"{channel}:1", "hello") == 1
        message = next_message(subscriber)
    assert message["pattern"] == f"{channel}:*".encode()
    assert message["channel"] == f"{channel}:1".encode()
    assert message["data"] == b"hello"


def test_reconnect(servers: Servers, client: redis.Redis) -> None:
    name = new_name()
    client.execute_command("WCPUT", name, "r", 1, "c", "value")
    with client.pubsub() as subscriber:
        subscriber.subscribe(name)
        assert next_message(subscriber)["type"] == "subscribe"
        servers.open.restart()
        assert client.execute_command("WCGET", name, "r") == one_cell(1, b"value")
        # The subscriber subscribes anew by itself when it finds its connection gone.
        assert next_message(subscriber)["type"] == "subscribe"
        assert client.publish(name, "after the restart") == 1
        assert next_message(subscriber)["data"] == b"after the restart"


Pool = Callable[..., redis.ConnectionPool]


@pytest.mark.parametrize("make_pool", [redis.ConnectionPool, redis.BlockingConnectionPool])
def test_pool_shared_by_threads(servers: Servers, protocol: int, make_pool: Pool) -> None:
    name, threads, rounds = new_name(), 8, 50
    wrong: list[object] = []
    pool = make_pool(port=servers.open.port, protocol=protocol, max_connections=threads)
    with redis.Redis.from_pool(pool) as client:

        def work(row: int) -> None:
            for number in range(rounds):
                client.execute_command("WCPUT", name, row, number, "c", number)
                reply = client.execute_command("WCGET", name, row)
                if reply != one_cell(number, b"%d" % number):
                    wrong.append(reply)

        workers = [threading.Thread(target=work, args=(row,)) for row in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert wrong == []
        assert client.execute_command("WCEXISTS", name, *range(threads)) == threads
