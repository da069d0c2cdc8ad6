"""SLOWLOG through the socket: entries as Redis has them, in both protocols, without passwords."""

from __future__ import annotations

import time

import pytest

from tests.compare.wire import Reply, Wire
from tests.harness import MakeServer, ServerProcess

PATIENCE_SECONDS = 10.0


@pytest.fixture(scope="module")
def own_directives() -> dict[str, object]:
    """The slow log takes every call."""
    return {"slowlog_log_slower_than": 0}


@pytest.fixture
def wire(typed_wire: Wire) -> Wire:
    """A connection; the log is empty but for what emptied it."""
    typed_wire.call("SLOWLOG", "RESET")
    return typed_wire


def logged(reply: Reply) -> list[str]:
    """The commands of the entries, the newest first."""
    return [
        b" ".join(word.text for word in entry.elements[3].elements).decode(errors="replace")
        for entry in reply.elements
    ]


def test_an_entry_has_six_fields(wire: Wire) -> None:
    wire.call("CLIENT", "SETNAME", "fox")
    wire.call("ECHO", "hello")
    before = time.time()
    (entry,) = wire.call("SLOWLOG", "GET", "1").elements
    identifier, moment, microseconds, words, address, name = entry.elements
    assert {field.kind for field in (identifier, moment, microseconds)} == {"integer"}
    assert abs(int(moment.text) - before) < PATIENCE_SECONDS
    assert 0 <= int(microseconds.text) < 1e6
    assert [word.text for word in words.elements] == [b"ECHO", b"hello"]
    assert (address.text.decode(), name.text) == (wire.address, b"fox")
    assert {reply.kind for reply in (address, name, *words.elements)} == {"bulk"}


def test_the_newest_come_first_ten_of_them_or_as_many_as_asked_for(wire: Wire) -> None:
    for number in range(12):
        wire.call("ECHO", str(number))
    echoes = [f"ECHO {number}" for number in range(11, -1, -1)]
    assert logged(wire.call("SLOWLOG", "GET")) == echoes[:10]
    assert logged(wire.call("SLOWLOG", "GET", "3")) == ["SLOWLOG GET", *echoes[:2]]
    assert logged(wire.call("SLOWLOG", "GET", "0")) == []
    assert logged(wire.call("SLOWLOG", "GET", "-1"))[3:15] == echoes
    assert int(wire.call("SLOWLOG", "LEN").text) == 12 + 4 + 1


def test_numbers_go_on_after_a_reset(wire: Wire) -> None:
    def newest() -> int:
        (entry,) = wire.call("SLOWLOG", "GET", "1").elements
        return int(entry.elements[0].text)

    before = newest()
    assert str(wire.call("SLOWLOG", "RESET")) == "+OK"
    assert newest() == before + 2


@pytest.mark.parametrize("count", ["-2", "x", "", "1.5", "99999999999999999999"])
def test_a_count_that_is_none_is_refused(wire: Wire, count: str) -> None:
    refusal = "-ERR count should be greater than or equal to -1"
    assert str(wire.call("SLOWLOG", "GET", count)) == refusal


def test_too_many_words_are_refused(wire: Wire) -> None:
    assert str(wire.call("SLOWLOG", "get", "1", "2")) == (
        "-ERR unknown subcommand or wrong number of arguments for 'get'. Try SLOWLOG HELP."
    )


def test_long_commands_are_cut(wire: Wire) -> None:
    wire.call("ECHO", "x" * 200)
    entries = logged(wire.call("SLOWLOG", "GET", "-1"))
    assert f"ECHO {'x' * 128}... (72 more bytes)" in entries


def test_passwords_are_not_logged(wire: Wire) -> None:
    for line in (
        "AUTH nobody hole",
        "HELLO 2 AUTH nobody hole",
        "CONFIG SET masterauth hole",
        "ACL SETUSER fox >hole",
        "ACL DELUSER fox",
    ):
        wire.call(*line.split())
    assert logged(wire.call("SLOWLOG", "GET"))[:5] == [
        "ACL DELUSER fox",
        "ACL SETUSER (redacted) (redacted)",
        "CONFIG SET masterauth (redacted)",
        "HELLO 2 AUTH (redacted) (redacted)",
        "AUTH (redacted) (redacted)",
    ]


def test_commands_that_fail_are_logged_and_refused_ones_are_not(wire: Wire) -> None:
    for line in ("SELECT 99", "NOTHING", "ECHO"):
        assert wire.call(*line.split()).kind == "error"
    assert logged(wire.call("SLOWLOG", "GET", "2")) == ["SELECT 99", "SLOWLOG RESET"]


def test_limits_are_changed_while_it_runs(make_server: MakeServer) -> None:
    server = make_server(slowlog_log_slower_than=0, slowlog_max_len=3)
    with Wire(server.port, PATIENCE_SECONDS) as connected:
        for number in range(5):
            connected.call("ECHO", str(number))
        assert logged(connected.call("SLOWLOG", "GET")) == ["ECHO 4", "ECHO 3", "ECHO 2"]
        connected.call("CONFIG", "SET", "slowlog-max-len", "1")
        assert int(connected.call("SLOWLOG", "LEN").text) == 1
        connected.call("CONFIG", "SET", "slowlog-log-slower-than", "-1")
        connected.call("SLOWLOG", "RESET")
        connected.call("PING")
        assert int(connected.call("SLOWLOG", "LEN").text) == 0


def test_by_default_quick_calls_are_not_logged(server: ServerProcess) -> None:
    with Wire(server.port, PATIENCE_SECONDS) as connected:
        connected.call("ECHO", "quick as a fox")
        assert "ECHO quick as a fox" not in logged(connected.call("SLOWLOG", "GET", "-1"))
