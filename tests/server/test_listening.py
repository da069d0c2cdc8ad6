"""Where clients come in: addresses, ports, unix sockets, their change while the server runs, and
who is refused at the door.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands.access.user import User
from commands.errors import ProtectedModeDenial
from resp_server.doors import PlainDoor
from resp_server.keep_alive import keep_alive, keep_alive_options
from resp_server.listening import CannotListen
from resp_server.protected import is_local, refuses
from resp_server.settings import BadSetting
from tests.harness import ROOT, free_port
from tests.server.echo import answers, connected, opened, run, says

ELSEWHERE = "192.0.2.1"
"""An address that documents use and no machine has."""
NO_NAME = "x" * 64
"""What cannot be the name of a host; no name server need be asked."""

with_ipv6 = pytest.mark.skipif(
    not Path("/proc/net/if_inet6").exists(), reason="the system has no IPv6"
)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


# Addresses


@with_ipv6
def test_several_addresses() -> None:
    async def test() -> None:
        async with opened(bind=("127.0.0.1", "127.0.0.3", "::1")) as doors:
            for host in doors.settings.bind:
                assert await answers(host, doors.settings.port)
            assert not await answers("127.0.0.2", doors.settings.port)

    run(test)


def test_a_host_name() -> None:
    async def test() -> None:
        async with opened(bind=("localhost",)) as doors:
            assert await answers("127.0.0.1", doors.settings.port)

    run(test)


def test_addresses_that_may_be_missing(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with opened(bind=(f"-{ELSEWHERE}", "-127.0.0.1")) as doors:
            assert await answers("127.0.0.1", doors.settings.port)
            assert f"not listening on {ELSEWHERE}:{doors.settings.port}: " in caplog.text

    run(test)


@pytest.mark.parametrize("address", [ELSEWHERE, NO_NAME])
def test_an_address_that_cannot_be_closes_those_before_it(address: str) -> None:
    async def test() -> None:
        port = free_port()
        with pytest.raises(CannotListen, match=f"cannot listen on {address}:{port}: "):
            async with opened(bind=("127.0.0.1", address), port=port):
                pass
        await asyncio.sleep(0)
        assert is_free(port)

    run(test)


@pytest.mark.parametrize("address", ["127.0.0.1", "-127.0.0.1"])
def test_an_address_in_use_is_not_a_missing_one(address: str) -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            with pytest.raises(CannotListen, match=f"127.0.0.1:{port}: Address already in use"):
                async with opened(bind=(address,), port=port):
                    pass

    run(test)


def test_an_address_given_twice_is_opened_once() -> None:
    async def test() -> None:
        async with opened(bind=("127.0.0.1", "127.0.0.1")) as doors:
            assert await answers("127.0.0.1", doors.settings.port)

    run(test)


@pytest.mark.parametrize(
    "directives",
    [{"port": 0}, {"bind": ()}, {"bind": (f"-{ELSEWHERE}",)}, {"bind": ("",)}],
    ids=["no port", "no address", "no address that is there", "an empty address"],
)
def test_nothing_to_listen_on(directives: dict[str, Any]) -> None:
    async def test() -> None:
        with pytest.raises(CannotListen, match="nothing to listen on"):
            async with opened(**directives):
                pass

    run(test)


def test_replies_are_not_held_back_to_fill_packets() -> None:
    async def test() -> None:
        async with (
            opened() as doors,
            connected("127.0.0.1", doors.settings.port) as (reader, writer),
        ):
            assert await says(reader, writer)
            accepted = doors.connected[0].transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    run(test)


# Unix sockets


async def answers_file(path: Path) -> bool:
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except OSError:
        return False
    try:
        return await says(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("permissions", [0o700, 0o600, 0o666, 0o777])
def test_a_unix_socket_has_its_permissions_before_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, permissions: int
) -> None:
    path = tmp_path / "s"
    seen: list[int] = []
    listen = socket.socket.listen

    def noting(self: socket.socket, *words: int) -> None:
        seen.append(stat.S_IMODE(path.stat().st_mode))
        listen(self, *words)

    monkeypatch.setattr(socket.socket, "listen", noting)

    async def test() -> None:
        async with opened(port=0, unixsocket=str(path), unixsocketperm=permissions):
            assert seen == [permissions]
            assert stat.S_IMODE(path.stat().st_mode) == permissions
            assert await answers_file(path)

    run(test)


def test_without_permissions_a_unix_socket_has_those_of_any_new_file(tmp_path: Path) -> None:
    path = tmp_path / "s"

    async def test() -> None:
        async with opened(port=0, unixsocket=str(path), unixsocketperm=0):
            assert stat.S_IMODE(path.stat().st_mode) == 0o750

    before = os.umask(0o027)
    try:
        run(test)
    finally:
        os.umask(before)


def test_a_unix_socket_that_was_left_behind_is_replaced_and_its_own_is_removed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))

    async def test() -> None:
        async with opened(port=0, unixsocket=str(path)):
            assert await answers_file(path)
        assert not path.exists()

    run(test)


def test_a_file_that_is_no_socket_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")

    async def test() -> None:
        with pytest.raises(CannotListen, match=f"cannot listen on {path}: Address already in use"):
            async with opened(unixsocket=str(path)):
                pass

    run(test)
    assert path.read_text() == "precious"


def test_the_unix_socket_of_another_server_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "s"

    async def test() -> None:
        async with (
            opened(port=0, unixsocket=str(path)) as first,
            opened(port=0, unixsocket=str(path)),
        ):
            first.listeners.close()
            assert await answers_file(path)

    run(test)


@pytest.mark.parametrize("name", ["missing/s", "s" * 200])
def test_a_unix_socket_that_cannot_be_closes_the_ports(tmp_path: Path, name: str) -> None:
    async def test() -> None:
        port = free_port()
        with pytest.raises(CannotListen, match=f"cannot listen on {tmp_path / name}: "):
            async with opened(port=port, unixsocket=str(tmp_path / name)):
                pass
        await asyncio.sleep(0)
        assert is_free(port)

    run(test)


# Changes while it runs


def test_an_address_is_added_and_taken_away() -> None:
    async def test() -> None:
        async with (
            opened(bind=("127.0.0.1",)) as doors,
            connected("127.0.0.1", doors.settings.port) as (reader, writer),
        ):
            assert await says(reader, writer)
            doors.change(bind=("127.0.0.1", "127.0.0.2"))
            assert await answers("127.0.0.1", doors.settings.port)
            assert await answers("127.0.0.2", doors.settings.port)
            doors.change(bind=("127.0.0.2",))
            assert not await answers("127.0.0.1", doors.settings.port)
            assert await says(reader, writer), "who is in stays in"

    run(test)


def test_the_port_changes_and_goes_away() -> None:
    async def test() -> None:
        async with opened() as doors:
            first, second = doors.settings.port, free_port()
            doors.change(port=second)
            assert not await answers("127.0.0.1", first)
            assert await answers("127.0.0.1", second)
            doors.change(port=0)
            assert not await answers("127.0.0.1", second)

    run(test)


@pytest.mark.parametrize(
    ("directive", "value", "message"),
    [
        ("bind", ("127.0.0.2", ELSEWHERE), "Failed to bind to specified addresses."),
        ("bind", (NO_NAME,), "Failed to bind to specified addresses."),
        ("bind", (f"-{ELSEWHERE}",), "Failed to bind to specified addresses."),
        ("port", None, "Unable to listen on this port. Check server logs."),
    ],
)
def test_a_change_that_cannot_be_leaves_all_as_it_was(
    directive: str, value: object, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            async with opened() as doors:
                before = {directive: getattr(doors.settings, directive)}
                with pytest.raises(BadSetting) as refusal:
                    doors.change(**{directive: value or other.getsockname()[1]})
                assert (str(refusal.value), refusal.value.directive) == (message, directive)
                assert "cannot listen on " in caplog.text
                doors.change(**before)  # Configuration tells the old value too
                assert await answers("127.0.0.1", doors.settings.port)
                assert not await answers("127.0.0.2", doors.settings.port)

    run(test)


def test_other_directives_open_nothing() -> None:
    async def test() -> None:
        async with opened() as doors:
            doors.settings.port = free_port()
            doors.change(timeout=5)
            assert not await answers("127.0.0.1", doors.settings.port)

    run(test)


# Asking silent clients whether they are still there


@pytest.mark.parametrize(
    ("interval", "idle", "apart"), [(300, 300, 100), (100, 100, 33), (2, 2, 1), (1, 1, 1)]
)
def test_keep_alive_is_set_as_redis_does(interval: int, idle: int, apart: int) -> None:
    with socket.socket() as connection:
        keep_alive(connection, interval)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_KEEPIDLE"):
            options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            set_to = [connection.getsockopt(socket.IPPROTO_TCP, option) for option in options]
            assert set_to == [idle, apart, 3]


def test_keep_alive_of_0_asks_nobody() -> None:
    assert keep_alive_options(0) == []


def test_keep_alive_of_a_time_that_the_system_does_not_take() -> None:
    with socket.socket() as connection:
        keep_alive(connection, 2**31 - 1)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


# Protected mode


@pytest.mark.parametrize(
    ("peer", "local"),
    [
        (("127.0.0.1", 50000), True),
        (("127.8.9.10", 50000), True),
        (("::1", 50000, 0, 0), True),
        ("", True),
        (None, True),
        (("10.0.0.1", 50000), False),
        (("::ffff:10.0.0.1", 50000, 0, 0), False),
        (("12.7.0.1", 50000), False),
        (("1270::1", 50000, 0, 0), False),
        (("fe80::1", 50000, 0, 2), False),
    ],
)
def test_who_is_local(peer: object, local: bool) -> None:
    assert is_local(peer) == local


@pytest.mark.parametrize("protected_mode", [True, False])
@pytest.mark.parametrize("without_password", [True, False])
@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1"])
def test_who_is_refused(protected_mode: bool, without_password: bool, host: str) -> None:
    default = User(b"default", [], without_password=without_password)
    refused = refuses((host, 50000), default, protected_mode=protected_mode)
    assert refused == (protected_mode and without_password and host == "10.0.0.1")


def said_to_both(*command: str) -> list[str]:
    """What a server without a password says to a client of loopback that quits, and to one that
    comes from elsewhere."""
    inside = ["unshare", "-rn", sys.executable, "-m", "tests.server.other_network", *command]
    ended = subprocess.run(inside, cwd=ROOT, capture_output=True, timeout=60, check=True)
    said: list[str] = json.loads(ended.stdout)
    return said


def may_have_a_network() -> bool:
    """Whether a program can be given a network of its own, that nobody else is in."""
    if not (sys.platform == "linux" and shutil.which("unshare") and shutil.which("ip")):
        return False
    return not subprocess.run(
        ["unshare", "-rn", "true"], capture_output=True, check=False
    ).returncode


with_network = pytest.mark.skipif(
    not may_have_a_network(), reason="the system does not give a test a network of its own"
)


@with_network
@pytest.mark.parametrize("mode", ["yes", "no"])
def test_protected_mode_refuses_other_machines(tmp_path: Path, mode: str) -> None:
    command = (sys.executable, "-m", "resp_server", "--dir", str(tmp_path / "data"))
    refusal = f"-DENIED {ProtectedModeDenial()}\r\n"
    said = said_to_both(*command, "--protected-mode", mode)
    assert said == ["+OK\r\n", refusal if mode == "yes" else "+OK\r\n"]


@with_network
def test_protected_mode_is_off_with_a_password(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "resp_server", "--dir", str(tmp_path / "data"))
    assert said_to_both(*command, "--requirepass", "secret") == ["+OK\r\n"] * 2


@with_network
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is missing")
def test_redis_refuses_in_the_same_words(tmp_path: Path) -> None:
    command = ("redis-server", "--save", "", "--dir", str(tmp_path))
    assert said_to_both(*command) == ["+OK\r\n", f"-DENIED {ProtectedModeDenial()}\r\n"]


def test_newcomers_do_not_wait_turn_by_turn() -> None:
    """A crowd that comes while the loop is busy is in after a few turns, not one a turn."""

    async def crowd() -> None:
        made: list[asyncio.Protocol] = []

        class Guest(asyncio.Protocol):
            def connection_made(self, _transport: asyncio.BaseTransport) -> None:
                made.append(self)

        listening = socket.create_server(("127.0.0.1", 0), backlog=200)
        guests = [socket.create_connection(listening.getsockname()) for _ in range(120)]
        door = PlainDoor(listening, Guest)
        turns = 0
        while len(made) < len(guests):
            turns += 1
            await asyncio.sleep(0)
        door.close()
        for guest in guests:
            guest.close()
        assert turns < 30

    run(crowd)
