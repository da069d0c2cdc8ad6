"""The protocol as bytes on a socket: replies, errors, limits, and what hostile clients get.

Where a real redis-server is installed (apt install redis-server; CI does), what both answer is
compared byte for byte.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from typing import Any

import hiredis
import pytest

from tests.harness import MakeServer, ServerProcess, until
from tests.wire import (
    MEGABYTE,
    MEMORY_LIMIT,
    PATIENCE_SECONDS,
    RealRedis,
    Wire,
    Word,
    encode,
    resident_bytes,
)

Command = tuple[Word, ...]
SENTINEL: tuple[Command, bytes] = (("ECHO", "end of the talk"), b"end of the talk\r\n")
SENTINEL_BEFORE_LOGIN: tuple[Command, bytes] = (
    ("HELLO", 2, "sentinel"),
    b"-ERR Syntax error in HELLO option 'sentinel'\r\n",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for this module: its log is looked at."""
    running = ServerProcess(tmp_path_factory.mktemp("protocol") / "data")
    running.start()
    yield running
    running.close()


@pytest.fixture
def wire(served: ServerProcess) -> Iterator[Wire]:
    with Wire(served) as connected:
        yield connected


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a password."""
    running = ServerProcess(tmp_path_factory.mktemp("guarded") / "data", requirepass="secret")
    running.start()
    yield running
    running.close()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRedis]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: nothing to compare with")
    running = RealRedis(tmp_path_factory.mktemp("real"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def guarded_real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRedis]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: nothing to compare with")
    running = RealRedis(tmp_path_factory.mktemp("real"), "--requirepass", "secret")
    yield running
    running.close()


def commands_run(wire: Wire) -> int:
    """How many commands the server has run."""
    (processed,) = re.findall(rb"total_commands_processed:(\d+)", wire.call("INFO", "stats"))
    return int(processed)


def await_idle(wire: Wire) -> None:
    """Return once the server has run nothing but this for a while: it has nothing to run."""
    before = idle = 0

    def is_idle() -> bool:
        nonlocal before, idle
        after = commands_run(wire)
        idle = idle + 1 if after == before + 1 else 0
        before = after
        return idle >= 20

    until(is_idle)


# Hostile bytes

PROTOCOL_ERRORS = {
    b"*1000000000\r\n": b"invalid multibulk length",
    b"*1048577\r\n": b"invalid multibulk length",
    b"*99999999999999999999\r\n": b"invalid multibulk length",
    b"*abc\r\n": b"invalid multibulk length",
    b"*1\r\n$600000000\r\n": b"invalid bulk length",
    b"*1\r\n$-1\r\n": b"invalid bulk length",
    b"*1\r\n$abc\r\n": b"invalid bulk length",
    b"*2\r\n$4\r\nECHO\r\n$99999999999999999999\r\n": b"invalid bulk length",
    b"*1\r\n:5\r\n": b"expected '$', got ':'",
    b"*1\r\n-err\r\n": b"expected '$', got '-'",
    b"*1\r\n*1\r\n$4\r\nPING\r\n": b"expected '$', got '*'",
    b"*1\r\n%1\r\n$1\r\na\r\n$1\r\nb\r\n": b"expected '$', got '%'",
    b"*1\r\n~1\r\n$1\r\na\r\n": b"expected '$', got '~'",
    b"*1\r\n>10000000\r\n": b"expected '$', got '>'",
    b"*1\r\n,1.5\r\n": b"expected '$', got ','",
    b"*1\r\n_\r\n": b"expected '$', got '_'",
    b"*1\r\nPING\r\n": b"expected '$', got 'P'",
    b"x" * 70_000: b"too big inline request",
    b"\xff" * 70_000: b"too big inline request",
    b"*" + b"x" * 70_000: b"too big mbulk count string",
    b"*1\r\n$" + b"x" * 70_000: b"too big bulk count string",
    b'ECHO "a\r\n': b"unbalanced quotes in request",
    b"ECHO 'a\r\n": b"unbalanced quotes in request",
    b'ECHO "a"b\r\n': b"unbalanced quotes in request",
}
GREATER_THAN_REDIS_ALLOWS_FOR = {b"*1000000000\r\n", b"*1048577\r\n"}
"""Redis 7 takes arrays of up to 2^31-1 words; Colonnade 2^20, as Redis did until 6."""


def shown(data: bytes) -> str:
    return repr(data[:40])


@pytest.mark.parametrize("hostile", PROTOCOL_ERRORS, ids=shown)
@pytest.mark.parametrize("before", [b"", b"PING\r\n", encode("PING")], ids=shown)
def test_hostile_bytes_get_an_error_and_a_close(
    served: ServerProcess, wire: Wire, hostile: bytes, before: bytes
) -> None:
    with Wire(served) as other:
        assert other.call("PING") == b"PONG"
        wire.send(before + hostile)
        expected = b"+PONG\r\n" if before else b""
        expected += b"-ERR Protocol error: " + PROTOCOL_ERRORS[hostile] + b"\r\n"
        assert wire.read_to_end() == expected
        assert other.call("PING") == b"PONG"
    assert "Traceback" not in served.log


@pytest.mark.parametrize(
    "hostile", [item for item in PROTOCOL_ERRORS if item not in GREATER_THAN_REDIS_ALLOWS_FOR],
    ids=shown,
)  # fmt: skip
def test_redis_says_the_same_of_hostile_bytes(real: RealRedis, wire: Wire, hostile: bytes) -> None:
    with Wire(real) as redis:
        redis.send(hostile)
        wire.send(hostile)
        assert wire.read_to_end() == redis.read_to_end()


def test_what_follows_hostile_bytes_is_not_run(served: ServerProcess, wire: Wire) -> None:
    put = encode("WCPUT", "hostile", "r", 1, "c", "v")
    wire.send(b"PING\r\n*1\r\n:5\r\n" + put)
    with contextlib.suppress(ConnectionError):
        wire.send(put)
    assert wire.read_until(b"no end").startswith(b"+PONG\r\n-ERR Protocol error: ")
    with Wire(served) as other:
        assert str(other.call("WCGET", "hostile", "r")).startswith("NODATASET")


@pytest.mark.parametrize("protocol_word", [b"POST", b"post", b"Host:"])
def test_a_web_page_that_posts_commands_is_cut_off(
    served: ServerProcess, wire: Wire, protocol_word: bytes
) -> None:
    """As Redis does: a browser may be made to send such a request to a server on this machine."""
    put = b"WCPUT posted r 1 c v\r\n"
    wire.send(protocol_word + b" / HTTP/1.1\r\nContent-Length: 20\r\n\r\n" + put)
    with contextlib.suppress(ConnectionError):
        wire.send(put)
    assert wire.read_to_end() == b""
    with Wire(served) as other:
        assert str(other.call("WCGET", "posted", "r")).startswith("NODATASET")
    assert "a web page may be talking to this server" in served.log


def test_noise_of_0xff_is_an_unknown_command(wire: Wire) -> None:
    wire.send(b"\xff" * 10 + b"\r\n")
    assert wire.read_until(b"\r\n").startswith(b"-ERR unknown command '")
    assert wire.call("PING") == b"PONG"


def test_a_client_that_leaves_in_the_middle_of_a_command(served: ServerProcess) -> None:
    data = encode("ECHO", "x" * 100)
    for length in range(1, len(data), 7):
        with Wire(served) as wire:
            wire.send(data[:length])
    with Wire(served) as wire:
        wire.send(data)
        wire.reset()
    with Wire(served) as wire:
        assert wire.call("PING") == b"PONG"
    assert "Traceback" not in served.log


# Ways of sending and reading


def test_bytes_one_by_one(wire: Wire) -> None:
    wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = encode("ECHO", "a\r\nb") + b"PING\r\n" + encode("WCPUT", "one", "r", 1, "c", b"\xff\x00")
    for byte in data + encode("WCGET", "one", "r"):
        wire.send(bytes([byte]))
    assert wire.read(4) == [b"a\r\nb", b"PONG", 1, [b"0", [[b"c", [[1, b"\xff\x00"]]]]]]


def test_resp_and_inline_in_one_packet(wire: Wire) -> None:
    wire.send(b"PING a\r\n", encode("ECHO", "b"), b"\r\n", b"ECHO 'c d'\r\n", encode("PING"))
    assert wire.read(4) == [b"a", b"b", b"c d", b"PONG"]


def test_a_pipeline_of_100_000_commands(wire: Wire) -> None:
    count = 100_000
    data = b"".join(encode("ECHO", number) for number in range(count))
    assert wire.exchange(data, count) == [b"%d" % number for number in range(count)]


def test_a_pipeline_of_writes_and_reads_of_what_they_wrote(wire: Wire) -> None:
    count = 3000
    data = b"".join(
        encode("WCPUT", "pipeline", f"r{number % 7}", number, "c", f"v{number}")
        + encode("WCGET", "pipeline", f"r{number % 7}", "COLUMNS", 1, "c")
        for number in range(count)
    )
    replies = wire.exchange(data, 2 * count)
    assert replies[::2] == [1] * count
    assert replies[1::2] == [
        [b"0", [[b"c", [[number, b"v%d" % number]]]]] for number in range(count)
    ]


def test_a_pipeline_that_takes_many_turns_is_answered_to_its_end(wire: Wire) -> None:
    """One chunk holds more commands than a turn runs, and a turn ends before it ran them all."""
    cells = [word for number in range(300) for word in ("*", f"c{number:03}", "v" * 10)]
    assert wire.call("WCPUT", "turns", "wide", *cells) == 300
    read = encode("WCGET", "turns", "wide", "COUNT", 300)
    wire.send(read)
    (expected,) = wire.read(1)
    assert wire.exchange(read * 1000, 1000) == [expected] * 1000


def test_a_client_that_sends_no_more_still_gets_its_replies(wire: Wire) -> None:
    count = 5000
    wire.send(*(encode("ECHO", number) for number in range(count)))
    wire.socket.shutdown(socket.SHUT_WR)
    assert wire.read(count) == [b"%d" % number for number in range(count)]
    assert wire.read_to_end() == b""


@pytest.mark.parametrize("call", [("SAVE",), ("WAITAOF", 1, 0, 0), ("INFO", "everything")])
def test_what_stands_behind_work_that_takes_a_while_is_done(
    wire: Wire, dataset: str, call: Command
) -> None:
    """Its bytes end while a thread does the work of an earlier command."""
    wire.send(encode(*call), encode("WCPUT", dataset, "r", 1, "c", "v"), encode("PING"))
    wire.socket.shutdown(socket.SHUT_WR)
    *_, put, pong = wire.read(3)
    assert [put, pong] == [1, b"PONG"]
    assert wire.read_to_end() == b""


def test_a_client_that_sends_no_more_still_gets_large_replies(wire: Wire) -> None:
    count = 1000
    cells = [word for number in range(100) for word in ("*", f"c{number}", "v" * 500)]
    wire.call("WCPUT", "halfclosed", "r", *cells)
    wire.send(encode("WCGET", "halfclosed", "r") * count)
    wire.socket.shutdown(socket.SHUT_WR)
    replies = wire.read(count)
    assert all(reply == replies[0] for reply in replies)
    assert len(replies[0][1]) == 100
    assert wire.read_to_end() == b""


def test_a_slow_reader_that_sends_no_more_still_gets_its_replies(
    served: ServerProcess, wire: Wire
) -> None:
    """The end of its bytes comes while commands are left over, because it does not read."""
    count = 1000
    cells = [word for number in range(100) for word in ("*", f"c{number}", "v" * 500)]
    wire.call("WCPUT", "slow", "r", *cells)
    wire.send(encode("WCGET", "slow", "r") * count)
    with Wire(served) as other:
        await_idle(other)
        wire.socket.shutdown(socket.SHUT_WR)
        await_idle(other)
    replies = wire.read(count)
    assert all(reply == replies[0] for reply in replies)
    assert wire.read_to_end() == b""


@pytest.mark.parametrize("half", [b"*2\r\n$4\r\nECHO\r\n$10\r\nabc", b"PIN", b"*", b"*1\r\n$4\r"])
def test_a_client_that_sends_no_more_in_the_middle_of_a_command(wire: Wire, half: bytes) -> None:
    wire.send(encode("PING") + half)
    wire.socket.shutdown(socket.SHUT_WR)
    assert wire.read_to_end() == b"+PONG\r\n"


def test_hostile_bytes_of_a_client_that_sends_no_more(wire: Wire) -> None:
    wire.send(encode("PING") + b"*1\r\n:5\r\n")
    wire.socket.shutdown(socket.SHUT_WR)
    assert wire.read_to_end() == b"+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n"


# Clients that do not read


def test_a_client_that_sends_and_never_reads(make_server: MakeServer) -> None:
    server = make_server()
    one = encode("ECHO", "x" * MEGABYTE)
    with Wire(server) as wire, Wire(server) as other:
        wire.socket.settimeout(1.0)
        sent = 0
        with pytest.raises(TimeoutError):
            for _ in range(400):
                wire.send(one)
                sent += 1
        assert other.call("PING") == b"PONG"
        assert resident_bytes(server) < MEMORY_LIMIT
        wire.socket.settimeout(PATIENCE_SECONDS)
        assert wire.read(sent) == [b"x" * MEGABYTE] * sent
    assert "Traceback" not in server.log


def test_a_client_that_asks_for_large_replies_and_never_reads(
    make_server: MakeServer,
) -> None:
    server, count = make_server(), 100
    with Wire(server) as wire, Wire(server) as other:
        for column in range(8):
            assert other.call("WCPUT", "d", "r", 1, f"c{column}", "x" * 1_000_000) == 1
        wire.send(encode("WCGET", "d", "r") * count)
        await_idle(other)
        assert other.call("PING") == b"PONG"
        assert resident_bytes(server) < MEMORY_LIMIT
        (first,) = wire.read(1)
        assert len(first[1]) == 8
        assert all(reply == first for reply in wire.read(count - 1))


def test_clients_that_never_read_and_leave(make_server: MakeServer) -> None:
    server = make_server()
    with Wire(server) as other:
        other.call("WCPUT", "d", "r", 1, "c", "x" * 4_000_000)
        for number in range(10):
            wire = Wire(server)
            wire.send(encode("WCGET", "d", "r") * 20)
            if number % 2:
                wire.reset()
            else:
                wire.close()
        until(lambda: b"connected_clients:1\r\n" in other.call("INFO", "clients"))
        assert resident_bytes(server) < MEMORY_LIMIT
    assert "Traceback" not in server.log


def test_others_are_served_during_a_long_pipeline(served: ServerProcess, wire: Wire) -> None:
    """Another's command is run before the pipeline has ended."""
    count = 50_000
    with Wire(served) as other:
        before = commands_run(other)
        sender = threading.Thread(
            target=wire.exchange, args=(encode("WCPUT", "long", "r", "*", "c", "v") * count, count)
        )
        sender.start()
        until(lambda: commands_run(other) > before + 1000)
        assert commands_run(other) < before + count
        sender.join()


# HELLO, AUTH and the state of a connection


def hello_of(reply: Any, protocol: int) -> dict[bytes, Any]:
    """HELLO's reply as a map: in RESP2 it comes as pairs in a row."""
    if protocol == 3:
        assert isinstance(reply, dict)
        return reply
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))


@pytest.mark.parametrize("protocol", [2, 3])
def test_hello_switches_the_protocol(wire: Wire, protocol: int) -> None:
    facts = hello_of(wire.call("HELLO", protocol), protocol)
    assert list(facts) == [b"server", b"version", b"proto", b"id", b"mode", b"role", b"modules"]
    assert facts[b"server"] == b"redis"
    assert re.fullmatch(rb"\d+\.\d+\.\d+", facts[b"version"])
    assert facts[b"proto"] == protocol
    assert facts[b"id"] == wire.call("CLIENT", "ID")
    assert facts[b"mode"] == b"standalone"
    assert facts[b"role"] == b"master"
    assert facts[b"modules"] == []
    wire.send(encode("CLIENT", "GETNAME"))
    assert wire.socket.recv(100) == {2: b"$-1\r\n", 3: b"_\r\n"}[protocol]
    assert hello_of(wire.call("HELLO"), protocol) == facts


def test_hello_goes_back_and_forth(wire: Wire) -> None:
    for protocol in (3, 2, 3, 3, 2):
        assert hello_of(wire.call("HELLO", protocol), protocol)[b"proto"] == protocol


def test_hello_has_the_shape_of_redis(real: RealRedis, wire: Wire) -> None:
    with Wire(real) as redis:
        for protocol in (2, 3):
            ours = hello_of(wire.call("HELLO", protocol), protocol)
            theirs = hello_of(redis.call("HELLO", protocol), protocol)
            assert list(ours) == list(theirs)
            assert [type(value) for value in ours.values()] == [
                type(value) for value in theirs.values()
            ]


def test_a_refused_hello_changes_nothing(wire: Wire) -> None:
    for words in (["3", "FOO"], ["4"], ["3", "SETNAME", "a b"], ["3", "AUTH", "other", "x"]):
        assert isinstance(wire.call("HELLO", *words), hiredis.ReplyError)
    wire.send(encode("CLIENT", "GETNAME"))
    assert wire.socket.recv(100) == b"$-1\r\n"


def test_nothing_is_served_before_the_password(guarded: ServerProcess) -> None:
    noauth = "NOAUTH Authentication required."
    with Wire(guarded) as wire:
        for words in (["PING"], ["ECHO", "a"], ["WCPUT", "d", "r", "1", "c", "v"],
                      ["COMMAND"], ["CLIENT", "ID"], ["SELECT", "0"], ["INFO"]):  # fmt: skip
            assert str(wire.call(*words)) == noauth
        assert str(wire.call("HELLO", 3)).startswith("NOAUTH HELLO must be called")
        wrong = "WRONGPASS invalid username-password pair or user is disabled."
        for credentials in (
            ["bad"],
            ["default", "bad"],
            ["other", "secret"],
            [""],
            ["default", ""],
        ):
            assert str(wire.call("AUTH", *credentials)) == wrong
        assert str(wire.call("HELLO", 3, "AUTH", "default", "bad")) == wrong
        assert str(wire.call("PING")) == noauth
        assert wire.call("AUTH", "secret") == b"OK"
        assert wire.call("PING") == b"PONG"
        assert str(wire.call("AUTH", "bad")) == wrong
        assert wire.call("PING") == b"PONG"
        assert wire.call("RESET") == b"RESET"
        assert str(wire.call("PING")) == noauth
        assert hello_of(wire.call("HELLO", 3, "AUTH", "default", "secret"), 3)[b"proto"] == 3
        assert str(wire.call("WCGET", "d", "r")).startswith("NODATASET")


def test_a_stock_client_with_the_password(guarded: ServerProcess) -> None:
    for protocol in (2, 3):
        with guarded.client(protocol=protocol, password="secret") as client:
            assert client.ping()
        with guarded.client(protocol=protocol, username="default", password="secret") as client:
            assert client.ping()


def test_select_takes_databases_in_range(make_server: MakeServer) -> None:
    with Wire(make_server(databases=3)) as wire:
        assert [wire.call("SELECT", index) for index in range(3)] == [b"OK"] * 3
        for index in (3, -1, 2**31 - 1):
            assert str(wire.call("SELECT", index)) == "ERR DB index is out of range"
        assert b" db=2 " in wire.call("CLIENT", "INFO")


def test_reset_makes_the_connection_as_new(wire: Wire) -> None:
    number = wire.call("CLIENT", "ID")
    wire.call("HELLO", 3, "SETNAME", "me")
    wire.call("SELECT", 5)
    assert wire.call("RESET") == b"RESET"
    wire.send(encode("CLIENT", "GETNAME"))
    assert wire.socket.recv(100) == b"$-1\r\n"
    assert b" db=0 " in wire.call("CLIENT", "INFO")
    assert wire.call("CLIENT", "ID") == number


@pytest.mark.parametrize("quit_", [b"QUIT\r\n", encode("quit"), encode("QUIT", "now")])
def test_quit_ends_the_connection_after_its_reply(
    served: ServerProcess, wire: Wire, quit_: bytes
) -> None:
    wire.send(encode("PING") + quit_ + encode("WCPUT", "quit", "r", 1, "c", "v") + b"PING\r\n")
    assert wire.read_to_end() == b"+PONG\r\n+OK\r\n"
    with Wire(served) as other:
        assert str(other.call("WCGET", "quit", "r")).startswith("NODATASET")


def test_quit_behind_a_write_in_the_same_packet(served: ServerProcess, wire: Wire) -> None:
    wire.send(encode("WCPUT", "quitting", "r", 1, "c", "v") + encode("QUIT"))
    assert wire.read_to_end() == b":1\r\n+OK\r\n"
    with Wire(served) as other:
        assert other.call("WCEXISTS", "quitting", "r") == 1


# CLIENT


def test_clients_have_growing_numbers(served: ServerProcess) -> None:
    numbers = []
    for _ in range(5):
        with Wire(served) as wire:
            numbers.append(wire.call("CLIENT", "ID"))
            assert wire.call("client", "id") == numbers[-1]
    assert numbers == sorted(set(numbers))


def test_client_info_tells_what_was_set(wire: Wire) -> None:
    assert wire.call("CLIENT", "SETNAME", "worker:1") == b"OK"
    assert wire.call("CLIENT", "GETNAME") == b"worker:1"
    assert wire.call("CLIENT", "SETINFO", "LIB-NAME", "my-lib") == b"OK"
    assert wire.call("CLIENT", "SETINFO", "lib-ver", "1.2.3") == b"OK"
    assert wire.call("SELECT", 3) == b"OK"
    info = wire.call("CLIENT", "INFO")
    assert info.endswith(b"\n")
    facts = dict(pair.split(b"=", 1) for pair in info.split())
    host, port = wire.socket.getsockname()
    assert facts[b"id"] == b"%d" % wire.call("CLIENT", "ID")
    assert facts[b"addr"] == f"{host}:{port}".encode()
    assert facts[b"laddr"].startswith(b"127.0.0.1:")
    assert facts[b"name"] == b"worker:1"
    assert facts[b"db"] == b"3"
    assert facts[b"resp"] == b"2"
    assert facts[b"lib-name"] == b"my-lib"
    assert facts[b"lib-ver"] == b"1.2.3"
    assert wire.call("CLIENT", "SETNAME", "") == b"OK"
    assert wire.call("CLIENT", "GETNAME") is None


@pytest.mark.parametrize("value", [b"two words", b"line\nend", b"\xff", b"\x00", b"\t"])
def test_what_would_break_client_info_is_refused(wire: Wire, value: bytes) -> None:
    text = "cannot contain spaces, newlines or special characters."
    assert str(wire.call("CLIENT", "SETNAME", value)) == f"ERR Client names {text}"
    assert str(wire.call("CLIENT", "SETINFO", "LIB-NAME", value)) == f"ERR lib-name {text}"
    assert str(wire.call("CLIENT", "SETINFO", "LIB-VER", value)) == f"ERR lib-ver {text}"
    assert str(wire.call("HELLO", 3, "SETNAME", value)) == f"ERR Client names {text}"


def test_an_unknown_attribute_of_setinfo(wire: Wire) -> None:
    assert str(wire.call("CLIENT", "SETINFO", "LIB-X", "1")) == "ERR Unrecognized option 'LIB-X'"


@pytest.mark.parametrize("container", ["CLIENT", "COMMAND", "WCDATASET"])
def test_help_lists_the_subcommands(wire: Wire, container: str) -> None:
    lines = wire.call(container, "HELP")
    assert lines[0].startswith(f"{container} <subcommand>".encode())
    assert lines[-2:] == [b"HELP", b"    Prints this help."]
    (entry,) = wire.call("COMMAND", "INFO", container)
    named = {line.split()[0].lower() for line in lines[1:] if not line.startswith(b" ")}
    assert named == {subcommand[0].partition(b"|")[2] for subcommand in entry[9]}


# COMMAND

FIELDS_OF_A_COMMAND = 10
EXPECTED_COMMANDS = {
    b"ping", b"echo", b"hello", b"auth", b"select", b"quit", b"reset", b"client", b"command",
    b"info", b"wcdataset", b"wcput", b"wcmput", b"wcget", b"wcmget", b"wcscan", b"wcdel",
    b"wcmdel", b"wcincrby", b"wccas", b"wccols", b"wcexists",
}  # fmt: skip


def test_command_count_list_and_info_agree(wire: Wire) -> None:
    entries = wire.call("COMMAND")
    names = wire.call("COMMAND", "LIST")
    assert [entry[0] for entry in entries] == names
    assert wire.call("COMMAND", "COUNT") == len(names) == len(set(names))
    assert set(names) >= EXPECTED_COMMANDS
    assert wire.call("COMMAND", "INFO") == entries
    assert wire.call("COMMAND", "INFO", *names) == entries


def types_of(value: Any) -> Any:
    """The shape of a reply: its types, and those of the elements of the top level."""
    return [type(item) for item in value]


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("name", ["ping", "client", "CLIENT|ID"])
def test_command_info_has_the_shape_of_redis(
    real: RealRedis, wire: Wire, protocol: int, name: str
) -> None:
    with Wire(real) as redis:
        replies = []
        for connection in (wire, redis):
            connection.call("HELLO", protocol)
            (entry,) = connection.call("COMMAND", "INFO", name)
            assert len(entry) == FIELDS_OF_A_COMMAND
            replies.append(entry)
        ours, theirs = replies
        assert types_of(ours) == types_of(theirs)
        assert ours[:2] == theirs[:2]
        assert ours[3:6] == theirs[3:6]


def test_command_info_of_the_unknown_is_what_redis_says(real: RealRedis, wire: Wire) -> None:
    command = encode("COMMAND", "INFO", "nosuch", "CLIENT|NOSUCH")
    with Wire(real) as redis:
        for protocol in (2, 3):
            for connection in (wire, redis):
                connection.call("HELLO", protocol)
            assert said(wire, command, *SENTINEL) == said(redis, command, *SENTINEL)


def test_key_positions_are_those_of_the_dataset(wire: Wire) -> None:
    (put, info) = wire.call("COMMAND", "INFO", "WCPUT", "WCDATASET|INFO")
    assert put[1] == -6
    assert b"write" in put[2]
    assert put[3:6] == [1, 1, 1]
    assert b"@write" in put[6]
    assert info[3:6] == [2, 2, 1]


@pytest.mark.parametrize("protocol", [2, 3])
def test_command_docs_describes_every_command(wire: Wire, protocol: int) -> None:
    wire.call("HELLO", protocol)
    docs = as_map(wire.call("COMMAND", "DOCS"))
    assert list(docs) == wire.call("COMMAND", "LIST")
    for name, written in docs.items():
        document = as_map(written)
        assert set(document) <= {
            b"summary", b"since", b"group", b"complexity", b"arguments", b"subcommands",
        }, name  # fmt: skip
        assert document[b"summary"]
        assert re.fullmatch(rb"\d+\.\d+\.\d+", document[b"since"])
        assert document[b"group"]
        for argument in document.get(b"arguments", []):
            assert {b"name", b"type"} <= set(as_map(argument))
    assert as_map(wire.call("COMMAND", "DOCS", "nosuch")) == {}
    assert list(as_map(wire.call("COMMAND", "DOCS", "wcget", "PING"))) == [b"wcget", b"ping"]


def as_map(reply: Any) -> dict[bytes, Any]:
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_stock_client_understands_command_and_info(served: ServerProcess, protocol: int) -> None:
    with served.client(protocol=protocol) as client:
        known = client.command()
        assert known["wcput"]["arity"] == -6
        assert client.command_count() == len(known)
        info = client.info()
        assert info["redis_mode"] == "standalone"
        assert info["tcp_port"] == served.port


# The same words to both servers


def said(wire: Wire, data: bytes, sentinel: Command, end: bytes) -> bytes:
    """All that is answered to these bytes, up to the sentinel's answer or the connection's end."""
    try:
        wire.send(data + encode(*sentinel))
    except ConnectionError:  # it has ended before, which is an answer too
        return b""
    return wire.read_until(end)


TALKS: dict[str, list[Command]] = {
    "ping": [("PING",), ("ping",), ("PiNg",), ("PING", "hi"), ("PING", ""), ("PING", b"\xff\r\n")],
    "ping arity": [("PING", "a", "b")],
    "echo": [("ECHO", "a"), ("ECHO", ""), ("ECHO", b"\x00\xff\r\n+OK\r\n")],
    "echo arity": [("ECHO",), ("ECHO", "a", "b"), ("echo",)],
    "select": [("SELECT", 0), ("SELECT", 15), ("SELECT", 16), ("SELECT", -1)],
    "select what is no number": [
        ("SELECT", "abc"), ("SELECT", ""), ("SELECT", "1.5"), ("SELECT", "01"), ("SELECT", " 1"),
        ("SELECT", "+1"), ("SELECT", "0x1"), ("SELECT", "1\x00"), ("SELECT", "-0"),
    ],
    "select far out of range": [
        ("SELECT", 2**31 - 1), ("SELECT", 2**31), ("SELECT", -(2**31) - 1), ("SELECT", 2**63),
    ],
    "select arity": [("SELECT",), ("SELECT", 1, 2)],
    "auth": [("AUTH", "x"), ("AUTH", "default", "x"), ("AUTH", "other", "x"), ("AUTH", "", "")],
    "auth arity": [("AUTH",), ("AUTH", "a", "b", "c")],
    "hello errors": [
        ("HELLO", "abc"), ("HELLO", ""), ("HELLO", 1), ("HELLO", 4), ("HELLO", -3),
        ("HELLO", 2**64), ("HELLO", "3.0"), ("HELLO", "AUTH", "a", "b"), ("HELLO", 3, "FOO"),
        ("HELLO", 3, "AUTH"), ("HELLO", 3, "AUTH", "a"), ("HELLO", 3, "AUTH", "other", "x"),
        ("HELLO", 3, "SETNAME"),
        ("HELLO", 3, "SETNAME", "a b"), ("HELLO", 2, "SETNAME", "a b", "AUTH", "other", "x"),
        ("HELLO", 2, "AUTH", "other", "x", "SETNAME", "a b"), ("HELLO", 3, "SETNAME", "a", "b"),
        ("HELLO", 3, "SETNAME", b"\xff"), ("HELLO", 9, "FOO"), ("CLIENT", "GETNAME"),
    ],
    "reset": [
        ("SELECT", 3), ("CLIENT", "SETNAME", "x"), ("RESET",), ("CLIENT", "GETNAME"),
        ("RESET", "x"), ("reset",),
    ],
    "quit": [("PING",), ("QUIT",), ("PING",)],
    "quit with words": [("QUIT", "a", "b"), ("PING",)],
    "client setname": [
        ("CLIENT", "SETNAME", "a"), ("CLIENT", "GETNAME"), ("CLIENT", "SETNAME", ""),
        ("CLIENT", "GETNAME"), ("client", "setname", "~!@#"), ("client", "getname"),
        ("CLIENT", "SETNAME", "a b"), ("CLIENT", "SETNAME", "a\nb"), ("CLIENT", "SETNAME", b"\xff"),
        ("CLIENT", "SETNAME", "\x7f"), ("CLIENT", "SETNAME", "\t"), ("CLIENT", "GETNAME"),
    ],
    "client arity": [
        ("CLIENT",), ("CLIENT", "SETNAME"), ("CLIENT", "SETNAME", "a", "b"),
        ("CLIENT", "GETNAME", "x"), ("CLIENT", "ID", "x"), ("CLIENT", "INFO", "x"),
    ],
    "unknown subcommands": [
        ("CLIENT", "FOO"), ("CLIENT", "foo", "bar"), ("client", "Foo"), ("CLIENT", ""),
        ("CLIENT", "a\r\nb"), ("CLIENT", "x" * 200), ("COMMAND", "FOO"), ("COMMAND", "FOO", "bar"),
        ("CLIENT", "SETNAME|X"), ("CLIENT|ID",),
    ],
    "command arity": [("COMMAND", "COUNT", "x"), ("COMMAND", "HELP", "x")],
    "unknown commands": [
        ("FOO",), ("foo", "bar"), ("FoO", "bar", "baz"), ("",), ("", ""), ("FOO", ""),
        ("FOO", "", "", ""), ("x" * 127,), ("x" * 128,), ("x" * 129,), ("x" * 500, "y"),
        ("FOO", "y" * 500), ("FOO", "y" * 124, "z"), ("FOO", "y" * 125, "z"),
        ("FOO", "y" * 126, "z"), ("FOO", "a" * 60, "b" * 60, "c" * 60, "d"),
        ("FOO", *"abcdefghijklmnopqrstuvwxyz" * 4),
        ("FOO\r\nBAR",), ("FOO", "a\r\nb", "c\n"), ("FOO\n",), ("FOO'", "'"), ('"FOO"', '"'),
        ("PING ",), (" PING",), ("WC",), ("%s%n%d", "%s"),
    ],
    "unknown commands with bytes beyond ascii": [
        (b"\xff\xfe", b"\xc3\xa9"), ("é", "ü"), (b"FOO", b"\xe2\x82"), ("é" * 100, "ü" * 100),
    ],
}  # fmt: skip


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("talk", TALKS)
def test_both_servers_say_the_same(
    served: ServerProcess, real: RealRedis, talk: str, protocol: int
) -> None:
    with Wire(served) as ours, Wire(real) as theirs:
        for wire in (ours, theirs):
            wire.call("HELLO", protocol)
        for command in TALKS[talk]:
            data = encode(*command)
            assert said(ours, data, *SENTINEL) == said(theirs, data, *SENTINEL), command


GUARDED_TALKS: dict[str, list[Command]] = {
    "before login": [("PING",), ("ECHO", "a"), ("SELECT", 0), ("CLIENT", "ID"), ("COMMAND",)],
    "errors before login": [
        ("ECHO",), ("PING", "a", "b"), ("FOO", "bar"), ("CLIENT", "FOO"), ("CLIENT",), ("SELECT",),
    ],
    "hello before login": [
        ("HELLO",), ("HELLO", 2), ("HELLO", 3), ("HELLO", 4), ("HELLO", "x"), ("HELLO", 3, "FOO"),
        ("HELLO", 3, "SETNAME", "a"), ("HELLO", 3, "SETNAME", "a b"), ("HELLO", 3, "AUTH", "a"),
        ("HELLO", 3, "AUTH", "default", "bad"), ("HELLO", 3, "AUTH", "other", "secret"), ("PING",),
    ],
    "auth": [
        ("AUTH",), ("AUTH", "bad"), ("AUTH", ""), ("AUTH", "default", "bad"),
        ("AUTH", "a", "b", "c"), ("AUTH", "other", "secret"), ("AUTH", "DEFAULT", "secret"),
        ("PING",), ("AUTH", "secret"), ("PING",), ("AUTH", "bad"), ("PING",),
        ("AUTH", "default", "secret"), ("PING",), ("RESET",), ("PING",),
    ],
    "a refused hello after login": [
        ("AUTH", "secret"), ("HELLO", 3, "AUTH", "default", "bad"), ("PING",),
        ("CLIENT", "GETNAME"),
    ],
    "quit before login": [("PING",), ("QUIT",), ("PING",)],
    "reset before login": [("RESET",), ("PING",)],
}  # fmt: skip


@pytest.mark.parametrize("talk", GUARDED_TALKS)
def test_both_servers_with_a_password_say_the_same(
    guarded: ServerProcess, guarded_real: RealRedis, talk: str
) -> None:
    """The sentinel is a command that is refused alike before and after the login."""
    with Wire(guarded) as ours, Wire(guarded_real) as theirs:
        for command in GUARDED_TALKS[talk]:
            data = encode(*command)
            # As Redis has worded it since 7.2:
            expected = said(theirs, data, *SENTINEL_BEFORE_LOGIN).replace(
                b"the HELLO AUTH <user>", b"the HELLO <proto> AUTH <user>"
            )
            assert said(ours, data, *SENTINEL_BEFORE_LOGIN) == expected, command


LINES = [
    b"ECHO a", b"  ECHO\ta  ", b'ECHO "a b"', b"ECHO 'a b'", b'ECHO ""', b'ECHO "\\x41\\xff\\n\\r"',
    b'ECHO "\\t\\b\\a\\q\\\\\\""', b"ECHO 'a\\'b\\n'", b'ECHO ab"cd"', b"ECHO ab'c d'",
    b"ECHO a\\nb", b'ECHO "\\xg1"', b'ECHO "\\x4"', b'"ECHO" a', b"PING", b"ping\r", b"\xff\xfe",
    b"$4", b"+ok", b":5 a", b"-err", b"ECHO a\x0bb", b"ECHO a\x0cb", b"\x0b\x0cECHO a",
    b'ECHO "a"\x0b',
    b'ECHO "a" "b"', b"(", b"FETCH / HTTP/1.1",
]  # fmt: skip


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("line", LINES, ids=repr)
def test_both_servers_read_a_line_alike(
    wire: Wire, real: RealRedis, line: bytes, end: bytes
) -> None:
    with Wire(real) as theirs:
        data = b"\r\n" + line + end
        assert said(wire, data, *SENTINEL) == said(theirs, data, *SENTINEL)


def test_inline_commands_in_any_number_of_packets(wire: Wire) -> None:
    line = b'ECHO "a b" \r\n'
    wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for start, end in itertools.combinations(range(1, len(line)), 2):
        wire.send(line[:start])
        wire.send(line[start:end])
        wire.send(line[end:])
        assert wire.read(1) == [b"a b"]
