"""Any words at all, as any command: one answer, no defect, and the server still serves everybody.

What the answer says is for other tests; here every command of the table is given words that no
client would send. A defect of the server's would be told as an internal error, which its log holds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import hiredis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import commands.families  # noqa: F401 - fills the command table
from commands.errors import InternalError
from commands.table import TABLE
from tests.harness import ServerProcess

EXAMPLES = 250
"""A quick look; raise it for a longer one."""
INTERNAL = str(InternalError())
LONG_WORD = b"n" * 1_000_000
PASSWORD = b"secret"

NUMBERS = [
    b"", b"0", b"-1", b"1", b"2", b"16", b"+1", b"01", b"-0", b"1.5", b"1e400", b"nan", b"inf",
    b"-inf", b"0x1", b" 1", b"1 ", b"1\n", b"2147483648", b"-2147483649", b"4294967296",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808",
    b"-9223372036854775809", b"18446744073709551616", b"9" * 400, b"\xd9\xa1",
]  # fmt: skip
ODD_WORDS = [
    b"\x00", b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"a\r\nb", b"*", b"?", b"[", b"[a-", b"\\",
    b"%s", b"%b%d", b"{0}", b"|", b"config|set", b"wcdataset|", b"help", b"-", b"+", LONG_WORD,
]  # fmt: skip
NAMES = [b"hostile", b"other", b"row", b"column", b"default", b"restricted", b"@all"]

NEVER_TRIED = frozenset(("shutdown", "debug", "monitor", "quit", "client|pause", "client|kill"))
"""These end the server or the connection, hold others up, or answer with more than one reply."""
NOT_TRIED = NEVER_TRIED | {
    "client|reply",  # answers nothing; has a test of its own
    "config|set",  # would change the server under the other commands
    "acl|deluser", "acl|setuser", "acl|load", "auth", "hello", "reset", "flushall",
    "multi", "exec", "discard",
    "save", "wait", "waitaof",  # slow, or wait as asked
    "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe",
}  # fmt: skip


def _all_commands() -> list[list[bytes]]:
    leaves = [
        leaf for entry in TABLE.all().values() for leaf in (entry, *entry.subcommands.values())
    ]
    return [leaf.name.encode().split(b"|") for leaf in leaves if leaf.name not in NOT_TRIED]


COMMANDS = _all_commands()


def _keywords() -> list[bytes]:
    """Words in upper case of all syntax lines: what may open another way through a handler."""
    leaves = [
        leaf for entry in TABLE.all().values() for leaf in (entry, *entry.subcommands.values())
    ]
    words = {word.strip("[]()|.") for leaf in leaves for word in leaf.syntax.split()}
    return sorted(word.encode() for word in words if word.isupper())


WORD = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(_keywords()),
    st.sampled_from(NAMES),
    st.sampled_from(ODD_WORDS),
    st.binary(max_size=8),
)
CALL = st.builds(
    lambda name, words: [*name, *words],
    st.sampled_from(COMMANDS),
    st.lists(WORD, max_size=12),
)
WIDE_CALL = st.builds(
    lambda name, words: [*name, b"hostile", *words],
    st.sampled_from([name for name in COMMANDS if name[0].startswith(b"wc") and len(name) == 1]),
    st.lists(WORD, max_size=12),
)


class Talk:
    """A connection that sends commands in one piece and takes their replies in order."""

    def __init__(self, server: ServerProcess, *, in_transactions: bool = False) -> None:
        """`in_transactions`: whether the test is to put each command between MULTI and EXEC."""
        self.in_transactions = in_transactions
        self._socket = server.raw()
        self._reader = hiredis.Reader(notEnoughData=Ellipsis)

    def __call__(self, *calls: list[bytes]) -> list[Any]:
        """One reply a command; what else comes makes the next calls' replies the wrong ones."""
        self.send(*calls)
        return [self._reply() for _ in calls]

    def send(self, *calls: list[bytes]) -> None:
        self._socket.sendall(b"".join(map(_encoded, calls)))

    def _reply(self) -> Any:
        while (reply := self._reader.gets()) is Ellipsis:
            received = self._socket.recv(65536)
            assert received, "the server closed the connection"
            self._reader.feed(received)
        return reply

    def close(self) -> None:
        self._socket.close()


def _encoded(words: list[bytes]) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


@pytest.fixture(scope="module")
def hostile_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One of its own, as nobody else should meet the datasets that come of it."""
    running = ServerProcess(tmp_path_factory.mktemp("hostile") / "data", wc_engine="memory")
    running.start()
    yield running
    running.close()


@pytest.fixture(params=["resp2", "resp3", "restricted", "transaction"])
def talk(request: pytest.FixtureRequest, hostile_server: ServerProcess) -> Iterator[Talk]:
    connected = Talk(hostile_server, in_transactions=request.param == "transaction")
    connected([b"WCPUT", b"hostile", b"row", b"1", b"column", b"value"])
    connected([b"WCPUT", b"secret", b"row", b"1", b"column", b"topsecret"])
    if request.param == "resp3":
        connected([b"HELLO", b"3"])
    if request.param == "restricted":
        rules = [b"on", b">" + PASSWORD, b"~hos*", b"%R~other", b"+@all", b"-@dangerous", b"-acl"]
        connected([b"ACL", b"SETUSER", b"restricted", b"reset", *rules])
        assert connected([b"AUTH", b"restricted", PASSWORD]) == [b"OK"]
    yield connected
    connected.close()


def _check(answer: Any) -> None:
    if isinstance(answer, list):
        for each in answer:
            _check(each)
    if isinstance(answer, hiredis.ReplyError):
        text = str(answer)
        assert INTERNAL not in text
        assert "\n" not in text
        assert "\r" not in text


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(call=CALL | WIDE_CALL)
def test_any_words_get_one_answer(talk: Talk, call: list[bytes]) -> None:
    mark = [b"ECHO", b"mark"]
    if talk.in_transactions:
        begun, queued, ran, marked = talk([b"MULTI"], call, [b"EXEC"], mark)
        assert begun == b"OK"
        assert queued != b"QUEUED" or len(ran) == 1
        _check([queued, ran])
    else:
        answer, marked = talk(call, mark)
        _check(answer)
    assert marked == b"mark"


@settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(calls=st.lists(CALL, min_size=1, max_size=5))
def test_a_silenced_client_is_told_nothing(
    hostile_server: ServerProcess, calls: list[list[bytes]]
) -> None:
    with contextlib.closing(Talk(hostile_server)) as talk:
        talk.send([b"CLIENT", b"REPLY", b"OFF"], *calls)
        assert talk([b"CLIENT", b"REPLY", b"ON"]) == [b"OK"]
        assert talk([b"ECHO", b"mark"]) == [b"mark"]


def test_whoever_may_not_read_a_dataset_never_hears_its_name(
    hostile_server: ServerProcess,
) -> None:
    with contextlib.closing(Talk(hostile_server)) as talk:
        talk([b"WCPUT", b"unseen", b"row", b"1", b"column", b"value"])
        rules = [b"on", b">" + PASSWORD, b"~hos*", b"&*", b"+@all"]
        talk([b"ACL", b"SETUSER", b"curious", b"reset", *rules])
        talk([b"AUTH", b"curious", PASSWORD])
        asked = [
            [b"WCDATASET", b"LIST"], [b"WCDATASET", b"LIST", b"unse*"], [b"INFO", b"everything"],
            [b"INFO", b"datasets"], [b"KEYS", b"*"], [b"SCAN", b"0"], [b"MEMORY", b"STATS"],
            [b"CLIENT", b"LIST"], [b"PUBSUB", b"CHANNELS"],
        ]  # fmt: skip
        for words, answer in zip(asked, talk(*asked), strict=True):
            assert not isinstance(answer, hiredis.ReplyError), words
            assert b"unseen" not in repr(answer).encode(), words
        refused = [
            [b"WCGET", b"%b", b"row"], [b"WCDATASET", b"INFO", b"%b"], [b"EXISTS", b"%b"],
            [b"WATCH", b"hostile", b"%b"], [b"TYPE", b"%b"], [b"MEMORY", b"USAGE", b"%b"],
            [b"WCDATASET", b"DROP", b"%b", b"IFEXISTS"], [b"WCPUT", b"%b", b"r", b"*", b"c", b"v"],
        ]  # fmt: skip
        for words in refused:
            existing, missing = talk(
                *([word.replace(b"%b", name) for word in words] for name in (b"unseen", b"absent"))
            )
            assert str(existing).startswith("NOPERM"), words
            assert str(existing) == str(missing)


def test_nothing_of_this_was_a_defect(hostile_server: ServerProcess) -> None:
    """Last in the file: the log has no traceback, and the server answers."""
    with contextlib.closing(Talk(hostile_server)) as talk:
        assert talk([b"PING"]) == [b"PONG"]
    assert "Traceback" not in hostile_server.log
    assert INTERNAL not in hostile_server.log
