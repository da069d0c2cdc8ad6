"""CarefulParser by itself: it reads as Redis does, byte for byte, and says what Redis says.

test_parser.py holds it against the quick way of reading, test_protocol.py against a redis-server.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resp_server.careful import MAX_LINE_BYTES, MAX_MULTIBULK, CarefulParser, ProtocolError

MEGABYTE = 1024 * 1024
PING = b"*1\r\n$4\r\nPING\r\n"


def read(*chunks: bytes) -> list[list[bytes]]:
    """All commands in the chunks."""
    parser = CarefulParser(MEGABYTE)
    found = []
    for chunk in chunks:
        parser.feed(chunk)
        while (words := parser.next()) is not None:
            found.append(words)
    return found


def error_of(*chunks: bytes) -> str:
    with pytest.raises(ProtocolError) as caught:
        read(*chunks)
    return str(caught.value).removeprefix("Protocol error: ")


words = st.binary(max_size=12) | st.sampled_from([b"*1\r\n", b"$4\r\n", b"\r\n", b"\x00", b"\xff"])
commands = st.lists(st.lists(words, min_size=1, max_size=4), max_size=5)


@given(commands, st.integers(1, 9))
def test_commands_in_pieces_of_any_size(sent: list[list[bytes]], size: int) -> None:
    data = b"".join(
        b"*%d\r\n" % len(command)
        + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in command)
        for command in sent
    )
    assert read(data) == sent
    assert read(*(data[at : at + size] for at in range(0, len(data), size))) == sent


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", []),
        (b"\r\n\n  \r\n", []),
        (b"*0\r\n*-1\r\n*-9\r\n" + PING, [[b"PING"]]),
        (PING + b"PING a\r\n" + PING + b"\n", [[b"PING"], [b"PING", b"a"], [b"PING"]]),
        (b"$4\r\nPING\r\n", [[b"$4"], [b"PING"]]),
        (b"+ok\n-err\n:1\n", [[b"+ok"], [b"-err"], [b":1"]]),
        (b"*2\r\n$0\r\n\r\n$2\r\n\r\n\r\n", [[b"", b"\r\n"]]),
        (b"PING", []),
        (b"*1\r\n$4\r\nPING\r", []),
        (b"*1\r\n$4\r\nPIN", []),
        (b"*1\r\n$4", []),
        (b"*1", []),
    ],
)
def test_what_is_read(data: bytes, found: list[list[bytes]]) -> None:
    assert read(data) == found
    assert read(*(data[at : at + 1] for at in range(len(data)))) == found


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"*x\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*1.5\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*%d\r\n" % (MAX_MULTIBULK + 1), "invalid multibulk length"),
        (b"*" + b"9" * 30 + b"\r\n", "invalid multibulk length"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$%d\r\n" % (MEGABYTE + 1), "invalid bulk length"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*1\r\n+ok\r\n", "expected '$', got '+'"),
        (b"*1\r\n(1\r\n", "expected '$', got '('"),
        (b"*1\r\n=8\r\ntxt:PING\r\n", "expected '$', got '='"),
        (b"*1\r\n*1\r\n", "expected '$', got '*'"),
        (b"*1\r\n>1\r\n", "expected '$', got '>'"),
        (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
        (b"*2\r\n$4\r\nPING\r\nx\r\n", "expected '$', got 'x'"),
        (b'"a\r\n', "unbalanced quotes in request"),
        (b"'a\r\n", "unbalanced quotes in request"),
        (b'"a"b\r\n', "unbalanced quotes in request"),
        (b"x" * (MAX_LINE_BYTES + 1), "too big inline request"),
        (b"*" + b"x" * (MAX_LINE_BYTES + 1), "too big mbulk count string"),
        (b"*1\r\n$" + b"x" * (MAX_LINE_BYTES + 1), "too big bulk count string"),
    ],
)
def test_what_is_refused_and_how(data: bytes, text: str) -> None:
    assert error_of(data) == text
    assert error_of(PING + data) == text
    assert error_of(*(data[at : at + 999] for at in range(0, len(data), 999))) == text
    parser = CarefulParser(MEGABYTE)
    parser.feed(PING + data)
    assert parser.next() == [b"PING"]
    with pytest.raises(ProtocolError):
        parser.next()


def test_the_limits_themselves_are_allowed() -> None:
    assert read(b"*1\r\n$%d\r\n" % MEGABYTE + b"x" * MEGABYTE + b"\r\n") == [[b"x" * MEGABYTE]]
    assert read(b"*%d\r\n" % MAX_MULTIBULK) == []
    line = b"x" * (MAX_LINE_BYTES - 1)
    assert read(line + b"\n") == [[line]]


def test_buffered_is_what_it_holds_of_an_incomplete_command() -> None:
    parser = CarefulParser(MEGABYTE)
    parser.feed(PING + b"*3\r\n$5\r\nabcde\r\n")
    assert parser.next() == [b"PING"]
    assert parser.next() is None
    assert parser.buffered >= 5
    for _ in range(100):
        before = parser.buffered
        parser.feed(b"")
        assert parser.next() is None
        assert parser.buffered == before
    parser.feed(b"$1000\r\n" + b"x" * 999)
    assert parser.next() is None
    assert parser.buffered >= 1004
    parser.feed(b"x\r\n$0\r\n\r\n")
    assert parser.next() == [b"abcde", b"x" * 1000, b""]
    assert parser.buffered == 0
