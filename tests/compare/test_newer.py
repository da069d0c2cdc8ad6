"""What came with Redis 7.2, which the redis-server of Debian 12 has not: its replies, written down.

Each was asked of a server that has the command.
"""

from __future__ import annotations

import pytest

from tests.compare.conversation import step
from tests.compare.differences import shown
from tests.compare.wire import Wire, encode
from tests.harness import ServerProcess

OK = "+OK"
NO_NUMBER = "-ERR value is not an integer or out of range"
NOT_0_OR_1 = "-ERR value is out of range, value must between 0 and 1"
NOT_POSITIVE = "-ERR value is out of range, must be positive"
ODD_NAME = "-ERR lib-name cannot contain spaces, newlines or special characters."
ODD_VERSION = "-ERR lib-ver cannot contain spaces, newlines or special characters."

REPLIES = {
    "CLIENT SETINFO lib-name fox": OK,
    "client setinfo LIB-VER 1.2.3": OK,
    "CLIENT SETINFO lib-name ''": OK,
    "CLIENT SETINFO lib-name 'a b'": ODD_NAME,
    "CLIENT SETINFO LIB-NAME 'a\nb'": ODD_NAME,
    "CLIENT SETINFO lib-ver 'a b'": ODD_VERSION,
    "CLIENT SETINFO foo x": "-ERR Unrecognized option 'foo'",
    "CLIENT SETINFO": "-ERR wrong number of arguments for 'client|setinfo' command",
    "CLIENT SETINFO lib-name": "-ERR wrong number of arguments for 'client|setinfo' command",
    "CLIENT NO-TOUCH ON": OK,
    "client no-touch off": OK,
    "CLIENT NO-TOUCH foo": "-ERR syntax error",
    "CLIENT NO-TOUCH": "-ERR wrong number of arguments for 'client|no-touch' command",
    "WAITAOF 0 0 0": "*[:1, :0]",
    "WAITAOF 1 0 0": "*[:1, :0]",
    "WAITAOF 0 1 1": "*[:1, :0]",
    "WAITAOF 2 0 0": NOT_0_OR_1,
    "WAITAOF -1 0 0": NOT_0_OR_1,
    "WAITAOF x 0 0": NO_NUMBER,
    "WAITAOF 0 x 0": NOT_POSITIVE,
    "WAITAOF 0 -1 0": NOT_POSITIVE,
    "WAITAOF 0 0 x": "-ERR timeout is not an integer or out of range",
    "WAITAOF 0 0 -1": "-ERR timeout is negative",
    "WAITAOF 0": "-ERR wrong number of arguments for 'waitaof' command",
}
"""WAITAOF counts this server's log as one that is always there: appendonly is always on."""


@pytest.mark.parametrize("protocol", ["2", "3"])
@pytest.mark.parametrize("line", REPLIES)
def test_what_came_with_7_2(server: ServerProcess, line: str, protocol: str) -> None:
    with Wire(server.port, patience_seconds=10) as wire:
        wire.call("HELLO", protocol)
        wire.call("SAVE")  # WAITAOF tells whether everything is on the disk
        wire.send(encode(list(step(line).words)))
        reply = shown([wire.read()])
    assert reply == REPLIES[line], f"redis {REPLIES[line]}, ours {reply}"


def test_client_info_tells_the_library(server: ServerProcess) -> None:
    with Wire(server.port, patience_seconds=10) as wire:
        wire.call("CLIENT", "SETINFO", "LIB-NAME", "fox")
        wire.call("CLIENT", "SETINFO", "LIB-VER", "1.2")
        line = wire.call("CLIENT", "INFO").text
        assert line.endswith(b" resp=2 lib-name=fox lib-ver=1.2\n")
        wire.call("RESET")
        assert wire.call("CLIENT", "INFO").text.endswith(b" lib-name=fox lib-ver=1.2\n")
