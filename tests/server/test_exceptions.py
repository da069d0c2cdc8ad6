"""A handler that raises what nobody expects: logged, answered, and nothing else happens.

The server has broken commands here (breaking_server.py).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import hiredis
import pytest

from tests.harness import ServerProcess
from tests.wire import MEGABYTE, Wire, encode, resident_bytes

WARMING, EXCEPTIONS = 2_000, 10_000
MOST_GROWTH_BYTES = 4 * MEGABYTE
BREAKING = [
    ("TESTBREAK", "word"),
    ("TESTBREAKLATER", "word"),
    ("TESTMISPUT", "word"),
    ("TESTUNSPEAKABLE",),
]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(
        tmp_path_factory.mktemp("broken") / "data",
        command=(sys.executable, "-m", "tests.server.breaking_server"),
    )
    yield running.start()
    running.close()


@pytest.fixture
def wire(broken: ServerProcess) -> Iterator[Wire]:
    with Wire(broken) as connected:
        yield connected


def logged(server: ServerProcess) -> int:
    """How many exceptions the log tells of; where one led to another, there are two tracebacks."""
    lines = re.findall(r" ERROR test\w+ failed\nTraceback ", server.log)
    return len(lines)


def is_internal_error(reply: Any) -> bool:
    return isinstance(reply, hiredis.ReplyError) and str(reply) == "ERR internal error"


@pytest.mark.parametrize("words", BREAKING, ids=lambda words: words[0])
@pytest.mark.parametrize("protocol", [2, 3])
def test_the_rest_of_the_pipeline_runs(
    wire: Wire, broken: ServerProcess, words: tuple[str, ...], protocol: int
) -> None:
    wire.call("HELLO", protocol)
    before = logged(broken)
    wire.send(encode("ECHO", "before"), encode(*words), encode("WCPUT", "d", "r", 1, "c", "v"))
    wire.send(encode(*words), encode("ECHO", "after"))
    first, second, third, fourth, fifth = wire.read(5)
    assert (first, third, fifth) == (b"before", 1, b"after")
    assert is_internal_error(second)
    assert is_internal_error(fourth)
    assert logged(broken) == before + 2


def test_in_a_transaction_the_others_run(wire: Wire) -> None:
    for words in (("TESTBREAK", "word"), ("TESTMISPUT", "word")):
        wire.send(encode("MULTI"), encode("ECHO", "before"), encode(*words))
        wire.send(encode("WCPUT", "d", "s", 2, "c", "w"), encode("EXEC"), encode("ECHO", "after"))
        *_, result, after = wire.read(6)
        assert after == b"after"
        assert (result[0], result[2]) == (b"before", 1)
        assert is_internal_error(result[1])
    assert wire.call("WCGET", "d", "s") == [b"0", [[b"c", [[2, b"w"]]]]]


def break_often(wire: Wire, start: int, stop: int) -> None:
    """As many exceptions of all kinds, each followed by a command that is well."""
    for first in range(start, stop, 500):
        numbers = range(first, first + 500)
        data = b"".join(
            encode(*(BREAKING[number % 4][:1]), *([number] if number % 4 != 3 else []))
            + encode("ECHO", number)
            for number in numbers
        )
        replies = wire.exchange(data, 1_000)
        assert all(map(is_internal_error, replies[::2]))
        assert replies[1::2] == [b"%d" % number for number in numbers]


def test_ten_thousand_of_them_leak_nothing(wire: Wire, broken: ServerProcess) -> None:
    """After some to begin with: what is taken once and kept is there then."""
    wire.call("PING")  # by then nothing is left of its coming in
    tasks, logged_before = wire.call("TESTTASKS"), logged(broken)
    break_often(wire, 0, WARMING)
    wire.call("MEMORY", "PURGE")
    before = resident_bytes(broken, "VmRSS")
    break_often(wire, WARMING, WARMING + EXCEPTIONS)
    wire.call("MEMORY", "PURGE")
    assert resident_bytes(broken, "VmRSS") - before < MOST_GROWTH_BYTES
    assert wire.call("TESTTASKS") == tasks
    assert logged(broken) == logged_before + WARMING + EXCEPTIONS
    log = broken.log
    for number in (0, WARMING, WARMING + EXCEPTIONS - 4):
        assert f"RuntimeError: TESTBREAK {number}\n" in log
        assert f"RuntimeError: TESTBREAKLATER {number + 1}\n" in log
