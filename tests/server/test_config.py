"""CONFIG through a socket: what a change does to the server, and the file it is written to.

What is read and refused is tested without a server, in test_settings.py and test_configuration.py.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from resp_server.settings import DIRECTIVES, FIXED
from tests.harness import ROOT, MakeServer, ServerProcess, free_port
from tests.wire import Wire


@pytest.fixture
def own_client(make_server: MakeServer) -> Iterator[redis.Redis]:
    """A client of a server that nobody else uses."""
    with make_server().client() as connected:
        yield connected


def config(client: redis.Redis, *words: object) -> Any:
    return client.execute_command("CONFIG", *words)


def refusal(client: redis.Redis, *words: object) -> str:
    with pytest.raises(redis.ResponseError) as caught:
        config(client, *words)
    return str(caught.value)


# Replies


def test_get_answers_a_map(server: ServerProcess) -> None:
    with Wire(server) as wire:
        expected = [b"maxclients", b"10000"]
        assert wire.call("CONFIG", "GET", "maxclients") == expected
        wire.call("HELLO", "3")
        assert wire.call("CONFIG", "GET", "MaxClient[s]") == {b"maxclients": b"10000"}
        assert wire.call("config", "get", "nothing") == {}


def test_everything_is_answered_once(client: redis.Redis) -> None:
    assert set(client.config_get("*")) == {*DIRECTIVES, *FIXED}


def test_refusals(client: redis.Redis) -> None:
    assert refusal(client, "SET", "timeout", 1, "port") == "syntax error"
    assert refusal(client, "SET", "a\r\nb", 1) == (
        "Unknown option or number of arguments for CONFIG SET - 'a  b'"
    )
    assert refusal(client, "SET", "TIMEOUT", "x") == (
        "CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed"
        " into an integer"
    )
    for words in (["GET"], ["SET", "timeout"], ["REWRITE", "x"], ["RESETSTAT", "x"], ["HELP", "x"]):
        name = f"config|{words[0].lower()}"
        assert refusal(client, *words) == f"wrong number of arguments for '{name}' command"
    assert refusal(client, "REWRITE") == "The server is running without a config file"


def test_help_names_the_subcommands(client: redis.Redis) -> None:
    lines = config(client, "HELP")
    assert lines[0] == b"CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    named = {line.split()[0] for line in lines[1:] if not line.startswith(b" ")}
    assert named == {b"GET", b"SET", b"REWRITE", b"RESETSTAT", b"HELP"}


@pytest.mark.skipif(shutil.which("redis-benchmark") is None, reason="redis-benchmark is missing")
def test_redis_benchmark_finds_what_it_asks_for(server: ServerProcess) -> None:
    ran = subprocess.run(
        ["redis-benchmark", "-p", str(server.port), "-n", "1", "-c", "1", "-t", "ping_mbulk"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "WARNING" not in ran.stdout + ran.stderr
    assert "host configuration" in ran.stdout


# What a change does


def test_all_or_none_is_set(own_client: redis.Redis) -> None:
    config(own_client, "SET", "timeout", 100, "wc-page-cells", 5)
    refusal(own_client, "SET", "timeout", 200, "wc-page-cells", 0)
    assert config(own_client, "GET", "timeout", "wc-page-cells") == {
        b"timeout": b"100",
        b"wc-page-cells": b"5",
    }


def test_directives_of_wide_columns_act_at_once(own_client: redis.Redis) -> None:
    config(own_client, "SET", "wc-auto-create", "no")
    with pytest.raises(redis.ResponseError):
        own_client.execute_command("WCPUT", "d", "r", "*", "c", "v")
    config(
        own_client,
        "SET",
        "wc-auto-create",
        "yes",
        "wc-default-maxversions",
        1,
        "wc-page-columns",
        2,
    )
    for column in ("a", "b", "c"):
        own_client.execute_command("WCPUT", "d", "r", 1, column, "v")
    assert own_client.execute_command("WCDATASET", "INFO", "d")[b"maxversions"] == 1
    _, columns = own_client.execute_command("WCGET", "d", "r")
    assert len(columns) == 2


def test_the_port_moves_and_clients_stay(make_server: MakeServer, server: ServerProcess) -> None:
    moving, port = make_server(), free_port()
    with Wire(moving) as wire:
        assert wire.call("CONFIG", "SET", "port", port) == b"OK"
        with pytest.raises(ConnectionRefusedError):
            moving.raw().close()
        moving.port = port
        with Wire(moving) as another:
            assert another.call("PING") == wire.call("PING") == b"PONG"
        taken = str(wire.call("CONFIG", "SET", "timeout", 5, "port", server.port))
        assert "(possibly related to argument 'port')" in taken
        assert wire.call("CONFIG", "GET", "timeout") == [b"timeout", b"0"]
        with Wire(moving) as another:
            assert another.call("CONFIG", "GET", "port") == [b"port", str(port).encode()]


def test_a_password_holds_for_those_who_come(make_server: MakeServer) -> None:
    server = make_server()
    with Wire(server) as within, server.client() as client:
        config(client, "SET", "requirepass", "a b")
        with Wire(server) as without:
            assert str(without.call("PING")).startswith("NOAUTH")
            assert without.call("AUTH", "a b") == b"OK"
            assert without.call("CONFIG", "GET", "requirepass") == [b"requirepass", b"a b"]
            assert without.call("CONFIG", "SET", "requirepass", "") == b"OK"
        assert within.call("PING") == b"PONG"
        with Wire(server) as another:
            assert another.call("PING") == b"PONG"


def test_a_password_is_not_in_the_slow_log(own_client: redis.Redis) -> None:
    config(own_client, "SET", "slowlog-log-slower-than", 0)
    config(own_client, "SET", "timeout", 0, "requirepass", "secret")
    own_client.execute_command("AUTH", "secret")
    logged = own_client.execute_command("SLOWLOG", "GET", -1)
    assert b"requirepass" in repr(logged).encode()
    assert "secret" not in repr(logged)


def test_counts_begin_anew(own_client: redis.Redis) -> None:
    for _ in range(50):
        own_client.ping()
    assert own_client.info("stats")["total_commands_processed"] >= 50
    assert config(own_client, "RESETSTAT") in (b"OK", True)
    assert own_client.info("stats")["total_commands_processed"] < 50


# The file


@pytest.fixture
def with_file(tmp_path: Path) -> Iterator[tuple[ServerProcess, Path]]:
    """A server that was started with a file, beside its port and directory."""
    file = tmp_path / "redis.conf"
    file.write_text("# the head\nmaxclients 77\n\nwc-page-rows 7\n# the tail\n")
    program = (sys.executable, "-m", "resp_server", str(file))
    running = ServerProcess(tmp_path / "data", command=program)
    yield running.start(), file
    running.close()


def test_what_is_rewritten_is_there_after_a_restart(
    with_file: tuple[ServerProcess, Path],
) -> None:
    server, file = with_file
    with server.client() as client:
        config(client, "SET", "maxclients", 78, "timeout", 500, "requirepass", "a b")
        client.execute_command("AUTH", "a b")
        client.execute_command("ACL", "SETUSER", "alice", "on", ">secret", "~events*", "+ping")
        assert config(client, "REWRITE") in (b"OK", True)
    lines = file.read_text().splitlines()
    assert lines[:5] == ["# the head", "maxclients 78", "", "wc-page-rows 7", "# the tail"]
    assert "# Generated by CONFIG REWRITE" in lines
    assert 'requirepass "a b"' in lines
    assert [line.split()[1] for line in lines if line.startswith("user ")] == ["alice"]
    server.restart()
    with server.client(username="alice", password="secret") as alice:
        assert alice.ping()
    with server.client(password="a b") as client:
        names = ("maxclients", "timeout", "wc-page-rows", "requirepass")
        assert list(config(client, "GET", *names).values()) == [b"78", b"500", b"7", b"a b"]
        before = file.read_text()
        config(client, "REWRITE")
        assert file.read_text() == before


def test_the_port_and_directory_of_the_command_line_get_into_the_file(
    with_file: tuple[ServerProcess, Path],
) -> None:
    server, file = with_file
    with server.client() as client:
        config(client, "REWRITE")
    lines = file.read_text().splitlines()
    assert f"port {server.port}" in lines
    assert f"dir {server.directory}" in lines


def test_the_configuration_may_come_from_the_standard_input() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "resp_server", "-", "--timeout", "5"],
        cwd=ROOT,
        input="maxclients 7\nmaxclient 8\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert (
        "the standard input, line 2: unknown directive 'maxclient'. Did you mean 'maxclients'?"
        in ran.stderr
    )
