"""The parser: whatever the commands and however the bytes are cut, the same commands come out.

Commands are encoded here, fed in pieces and compared with what was encoded; hostile bytes must end
in a ProtocolError and in nothing else, after the commands before them. What Redis makes of inline
commands is held against a real redis-server in test_protocol.py; here the table of it is kept.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resp_server.careful import MAX_LINE_BYTES, ProtocolError, split_inline
from resp_server.parser import CommandParser
from tests.harness import ROOT

MEGABYTE = 1024 * 1024
BULK_LIMIT = 512 * MEGABYTE
PING = [b"PING"]
EMPTY_LINE = b"\r\n"
"""What follows it is not hiredis' to read: CarefulParser reads it."""

HEADER_LIKE = [
    b"\n*99999999", b"$999999999", b"*99999999\r\n", b"\r\n$999999999\r\n", b"\n$600000000\r\n",
    b"*1\r\n$4\r\nPING\r\n", b"\r\n", b"\r", b"\n", b"*", b"$", b"*1", b"\n*", b"\n$12\r", b"\x00",
    b"\xff\xff", b"", b"*-1\r\n", b"$-1\r\n", b"\n" + b"$" + b"9" * 40, b"PING\r\n", b"-ERR\r\n",
]  # fmt: skip

HOSTILE_HEADERS = [
    b"*1000000000\r\n",
    b"*1048577\r\n",
    b"*99999999999999999999\r\n",
    b"*1\r\n$600000000\r\n",
    b"*1\r\n$536870913\r\n",
    b"*2\r\n$4\r\nECHO\r\n$600000000\r\n",
    b"*2\r\n$4\r\nECHO\r\n$18446744073709551617\r\n",
    b"*2\r\n$4\r\nECHO\r\n$" + b"9" * 100 + b"\r\n",
]

NOT_COMMANDS = {
    "integer": b"*1\r\n:5\r\n",
    "error": b"*1\r\n-err\r\n",
    "nested array": b"*1\r\n*1\r\n$4\r\nPING\r\n",
    "nested empty array": b"*1\r\n*0\r\n",
    "map": b"*1\r\n%1\r\n$1\r\na\r\n$1\r\nb\r\n",
    "set": b"*1\r\n~1\r\n$1\r\na\r\n",
    "push": b"*1\r\n>1\r\n$1\r\na\r\n",
    "attribute": b"*1\r\n|1\r\n$1\r\na\r\n$1\r\nb\r\n$4\r\nPING\r\n",
    "double": b"*1\r\n,1.5\r\n",
    "boolean": b"*1\r\n#t\r\n",
    "null": b"*1\r\n_\r\n",
    "blob error": b"*1\r\n!3\r\nerr\r\n",
    "null bulk": b"*1\r\n$-1\r\n",
    "negative bulk": b"*1\r\n$-2\r\n",
    "bulk without length": b"*1\r\n$\r\nPING\r\n",
    "bulk with a word for length": b"*1\r\n$four\r\nPING\r\n",
    "array with a word for length": b"*one\r\n",
    "array without length": b"*\r\n",
    "inline word inside an array": b"*1\r\nPING\r\n",
    "noise": b"*1\r\n" + b"\xff" * 64 + b"\r\n",
    "unbalanced double quotes": b'ECHO "abc\r\n',
    "unbalanced single quotes": b"ECHO 'abc\r\n",
    "a word against a closing quote": b'ECHO "abc"def\r\n',
    "an escape before the end": b'ECHO "abc\\"\r\n',
}

WORDS_ALL_THE_SAME = {
    b"*1\r\n+ok\r\n": b"ok",
    b"*1\r\n(123\r\n": b"123",
    b"*1\r\n=8\r\ntxt:PING\r\n": b"PING",
}
"""What hiredis reads as text is a word, where Redis wants a bulk string: that does no harm."""

INLINE = [
    (b"PING", [b"PING"]),
    (b"  PING  ", [b"PING"]),
    (b"ECHO a", [b"ECHO", b"a"]),
    (b"ECHO\ta \t b", [b"ECHO", b"a", b"b"]),
    (b'ECHO ""', [b"ECHO", b""]),
    (b"ECHO ''", [b"ECHO", b""]),
    (b'ECHO "a b"', [b"ECHO", b"a b"]),
    (b"ECHO 'a b'", [b"ECHO", b"a b"]),
    (b'ECHO "a\\"b"', [b"ECHO", b'a"b']),
    (b"ECHO 'a\\'b'", [b"ECHO", b"a'b"]),
    (b"ECHO 'a\\nb'", [b"ECHO", b"a\\nb"]),
    (b"ECHO 'a\"b'", [b"ECHO", b'a"b']),
    (b'ECHO "a\'b"', [b"ECHO", b"a'b"]),
    (b'ECHO "\\n\\r\\t\\b\\a"', [b"ECHO", b"\n\r\t\b\a"]),
    (b'ECHO "\\x41\\xfF\\x00"', [b"ECHO", b"A\xff\x00"]),
    (b'ECHO "\\xg1\\x4"', [b"ECHO", b"xg1x4"]),
    (b'ECHO "\\q\\\\"', [b"ECHO", b"q\\"]),
    (b'ECHO ab"cd"', [b"ECHO", b"abcd"]),
    (b'ECHO ab"c d"', [b"ECHO", b"abc d"]),
    (b"ECHO a\\nb", [b"ECHO", b"a\\nb"]),
    (b"\"ECHO\" 'a' b", [b"ECHO", b"a", b"b"]),
    (b"$4", [b"$4"]),
    (b"+ok", [b"+ok"]),
    (b":5 a", [b":5", b"a"]),
    (b"\xff\xfe", [b"\xff\xfe"]),
    (b"", []),
    (b"   ", []),
]


@dataclass
class Outcome:
    """What a parser made of some bytes."""

    commands: list[list[bytes]] = field(default_factory=list)
    error: str | None = None


def encode(*commands: Sequence[bytes]) -> bytes:
    """Commands as arrays of bulk strings."""
    return b"".join(
        b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        for words in commands
    )


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """The data in pieces; none of them is empty, as the loop never hands on an empty chunk."""
    inside = sorted({place % (len(data) + 1) for place in places} - {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise([0, *inside, len(data)])]


def byte_by_byte(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


def new_parser(bulk: int = BULK_LIMIT, buffer: int = 2 * BULK_LIMIT) -> CommandParser:
    return CommandParser(bulk, buffer)


def run(
    chunks: Iterable[bytes],
    most: int = 256,
    *,
    parser: CommandParser | None = None,
    take_each: bool = True,
) -> Outcome:
    """Feed the chunks, taking after each or only at the end; stop at the first error."""
    parser, outcome = parser or new_parser(), Outcome()
    for chunk in chunks:
        parser.feed(chunk)
        if take_each:
            _take_all(parser, most, outcome)
        if outcome.error is not None:
            return outcome
    _take_all(parser, most, outcome)
    return outcome


def _take_all(parser: CommandParser, most: int, outcome: Outcome) -> None:
    try:
        while taken := parser.take(most):
            assert len(taken) <= most
            outcome.commands += taken
    except ProtocolError as error:
        outcome.error = str(error)


words = st.binary(max_size=30) | st.lists(
    st.sampled_from(HEADER_LIKE) | st.binary(max_size=4), min_size=1, max_size=5
).map(b"".join)
commands = st.lists(st.lists(words, min_size=1, max_size=5), max_size=6)
places = st.lists(st.integers(0, 10_000), max_size=12)
mosts = st.sampled_from([1, 2, 3, 256])


# Commands in RESP


@given(commands, places, mosts, st.booleans(), st.booleans())
@example([[b"ECHO", b"\n*99999999"]], [], 1, True, False)
@example([[b"$999999999"], PING], [10], 256, True, False)
@example([[b""], [b"", b""]], [4, 5, 6, 7, 8], 1, True, False)
def test_any_split_gives_the_same_commands(
    sent: list[list[bytes]], where: list[int], most: int, take_each: bool, carefully: bool
) -> None:
    """Also where the connection is read carefully, after an empty line."""
    begin = EMPTY_LINE if carefully else b""
    outcome = run(cut(begin + encode(*sent), where), most, take_each=take_each)
    assert outcome == Outcome(sent)


@given(commands, mosts)
def test_byte_by_byte_gives_the_same_commands(sent: list[list[bytes]], most: int) -> None:
    assert run(byte_by_byte(encode(*sent)), most) == Outcome(sent)


@given(commands, mosts)
def test_bytes_that_all_wait_before_the_first_take(sent: list[list[bytes]], most: int) -> None:
    assert run(byte_by_byte(encode(*sent)), most, take_each=False) == Outcome(sent)


@pytest.mark.parametrize("word", HEADER_LIKE, ids=repr)
def test_data_that_looks_like_a_header_is_data_wherever_it_is_cut(word: bytes) -> None:
    sent = [[b"ECHO", word], [b"SET", word, b"\r\n" + word], PING]
    data = encode(*sent)
    for place in range(1, len(data)):
        assert run([data[:place], data[place:]]) == Outcome(sent), place


@pytest.mark.parametrize("word", [b"\n*99999999", b"$999999999\r\n", b"*1\r\n$600000000\r\n"])
def test_data_full_of_headers(word: bytes) -> None:
    sent = [[b"ECHO", word * 20_000], PING]
    data = encode(*sent)
    assert run([data]) == Outcome(sent)
    assert run(cut(data, range(0, len(data), 999))) == Outcome(sent)


@given(commands, st.binary(min_size=1, max_size=60), places)
def test_half_a_command_is_waited_for(
    sent: list[list[bytes]], word: bytes, where: list[int]
) -> None:
    last = encode([b"ECHO", word])
    for length in range(len(last)):
        assert run(cut(encode(*sent) + last[:length], where)) == Outcome(sent)


@given(commands, places)
def test_take_gives_no_more_than_asked_for_and_keeps_the_rest(
    sent: list[list[bytes]], where: list[int]
) -> None:
    parser = new_parser()
    for chunk in cut(encode(*sent), where):
        parser.feed(chunk)
    for command in sent:
        assert parser.take(1) == [command]
    assert parser.take(1) == []


@given(
    st.lists(st.sampled_from([encode(PING), b"*0\r\n", b"*-1\r\n", b"PING\r\n", b"\r\n"])), places
)
@example([encode(PING), encode(PING), b"*0\r\n", b"\r\n"], [])
def test_no_command_is_taken_twice(parts: list[bytes], where: list[int]) -> None:
    expected = [PING for part in parts if b"PING" in part]
    assert run(cut(b"".join(parts), where)) == Outcome(expected)


@pytest.mark.parametrize("header", [b"*0\r\n", b"*-1\r\n", b"*-5\r\n", b"*-1000000\r\n"])
def test_a_count_that_is_not_positive_is_nothing_at_all(header: bytes) -> None:
    data = header + encode(PING) + header + header + encode([b"ECHO", b"a"]) + header
    expected = Outcome([PING, [b"ECHO", b"a"]])
    for place in range(1, len(data)):
        assert run([data[:place], data[place:]]) == expected, place
    assert run([data]) == expected
    assert run(byte_by_byte(data), 1) == expected


# Limits


@pytest.mark.parametrize("hostile", HOSTILE_HEADERS, ids=repr)
@pytest.mark.parametrize("before", [[], [PING], [PING, [b"ECHO", b"\n$999999999"], PING]])
def test_too_large_a_header_fails_after_the_commands_before_it(
    hostile: bytes, before: list[list[bytes]]
) -> None:
    data = encode(*before) + hostile
    splits = [[data], byte_by_byte(data), *([data[:i], data[i:]] for i in range(1, len(data)))]
    for chunks in splits:
        for most in (1, 256):
            outcome = run(chunks, most)
            assert outcome.commands == before
            assert outcome.error is not None, chunks
            assert outcome.error.startswith("Protocol error: invalid "), chunks


@given(st.sampled_from(HOSTILE_HEADERS), commands, commands, places, mosts, st.booleans())
def test_too_large_a_header_among_commands(
    hostile: bytes,
    before: list[list[bytes]],
    after: list[list[bytes]],
    where: list[int],
    most: int,
    take_each: bool,
) -> None:
    data = encode(*before) + hostile + encode(*after)
    outcome = run(cut(data, where), most, take_each=take_each)
    assert outcome.commands == before
    assert outcome.error is not None


@pytest.mark.parametrize(
    ("length", "fits"), [(MEGABYTE - 1, True), (MEGABYTE, True), (MEGABYTE + 1, False)]
)
def test_the_longest_argument_is_the_limit_itself(length: int, fits: bool) -> None:
    sent = [[b"ECHO", b"x" * length], PING]
    outcome = run([encode(*sent)], parser=new_parser(bulk=MEGABYTE))
    if fits:
        assert outcome == Outcome(sent)
    else:
        assert outcome == Outcome([], "Protocol error: invalid bulk length")


def test_the_longest_array_is_the_limit_itself() -> None:
    sent = [[b"DEL"] + [b"k"] * (1024 * 1024 - 1), PING]
    assert run(cut(encode(*sent), range(0, 8 * MEGABYTE, 65_536))) == Outcome(sent)


@pytest.mark.parametrize("before", [b"", b"\r\n"], ids=["usual", "careful"])
def test_a_command_longer_than_the_buffer_limit_is_refused(before: bytes) -> None:
    parser = new_parser(bulk=MEGABYTE, buffer=2 * MEGABYTE)
    data = before + encode([b"ECHO"] + [b"x" * MEGABYTE] * 3)
    outcome = run(cut(data, range(0, len(data), 65_536)), parser=parser)
    assert outcome == Outcome([], "Protocol error: too large a command")


@pytest.mark.parametrize("chunk", [encode(PING), encode(*[[b"ECHO", b"x" * 1000]] * 20)])
def test_the_buffer_limit_is_of_one_command_not_of_the_connection(chunk: bytes) -> None:
    parser = new_parser(bulk=MEGABYTE, buffer=MEGABYTE)
    for _ in range(3 * MEGABYTE // len(chunk)):
        parser.feed(chunk)
        assert parser.take(256)


def test_the_buffer_limit_counts_from_the_last_command() -> None:
    """A chunk ends one command and begins the next, over and over."""
    sent = [[b"ECHO", b"x" * 100_000]] * 60
    data = encode(*sent)
    parser = new_parser(bulk=MEGABYTE, buffer=MEGABYTE)
    assert run(cut(data, range(0, len(data), 65_536)), parser=parser) == Outcome(sent)


@pytest.mark.parametrize("start", [b"*", b"*1\r\n$", b"*2\r\n$4\r\nECHO\r\n$"])
@pytest.mark.parametrize("size", [100, 65_536])
def test_a_header_without_end_is_not_gathered_for_ever(start: bytes, size: int) -> None:
    outcome = run([start] + [b"x" * size] * (MEGABYTE // size))
    assert outcome.error is not None


# What is no command


@pytest.mark.parametrize("hostile", NOT_COMMANDS.values(), ids=NOT_COMMANDS)
@pytest.mark.parametrize("before", [[], [PING, [b"ECHO", b"a"]]], ids=["alone", "behind"])
def test_what_is_no_command_is_a_protocol_error(hostile: bytes, before: list[list[bytes]]) -> None:
    begin = encode(*before)
    splits = [[begin, hostile] if begin else [hostile], byte_by_byte(begin + hostile)]
    splits += [[begin + hostile[:i], hostile[i:]] for i in range(1, len(hostile))]
    splits += [[begin + hostile]]
    for chunks in splits:
        outcome = run(chunks, 256)
        assert outcome.commands == before, chunks
        assert outcome.error is not None, chunks
        assert outcome.error.startswith("Protocol error: "), chunks


@pytest.mark.parametrize("hostile", [*NOT_COMMANDS.values(), *HOSTILE_HEADERS], ids=repr)
def test_a_protocol_error_is_final(hostile: bytes) -> None:
    parser = new_parser()
    parser.feed(encode(PING) + hostile + encode([b"ECHO", b"never"]))
    assert parser.take(256) == [PING]
    for _ in range(3):
        with pytest.raises(ProtocolError):
            parser.take(256)
        parser.feed(encode([b"ECHO", b"never"]))


tokens = st.sampled_from(
    [
        *HEADER_LIKE, *HOSTILE_HEADERS, *NOT_COMMANDS.values(), *(line for line, _ in INLINE),
        b"*2\r\n", b"$4\r\n", b"PING", b'"', b"'", b"\\x4", b"%1\r\n", b"~1\r\n", b">1\r\n", b" ",
    ]
)  # fmt: skip
noise = st.binary(max_size=80) | st.lists(tokens | st.binary(max_size=3), max_size=8).map(b"".join)


@settings(max_examples=400)
@given(noise, places, mosts, st.booleans())
def test_random_bytes_raise_nothing_but_protocol_errors(
    data: bytes, where: list[int], most: int, take_each: bool
) -> None:
    outcome = run(cut(data, where), most, take_each=take_each)
    for command in outcome.commands:
        assert command
        assert all(type(word) is bytes for word in command)


def ends_oddly(data: bytes) -> bool:
    """Whether other bytes than CRLF may end a word: neither Redis nor hiredis looks at them."""
    headers = re.finditer(rb"\$([0-9]{1,3})\r\n", data)
    ends = [found.end() + int(found[1]) for found in headers]
    return any(data[end : end + 2] != b"\r\n"[: len(data) - end] for end in ends if end < len(data))


@settings(max_examples=400)
@given(noise, places, mosts, st.booleans())
@example(b"*1\r\n$4\r\nPING\r\n:5\r\n", [14], 1, True)
def test_random_bytes_are_read_alike_however_they_are_split(
    data: bytes, where: list[int], most: int, take_each: bool
) -> None:
    """As they are when they are read carefully; but for what hiredis may read as a word, or wait
    for the end of."""
    strict = run([EMPTY_LINE, data])
    split = run(cut(data, where), most, take_each=take_each)
    if ends_oddly(data):  # hiredis may wait for more behind it
        both = min(len(split.commands), len(strict.commands))
        assert split.commands[:both] == strict.commands[:both]
        return
    assert split.commands[: len(strict.commands)] == strict.commands
    if strict.error is None or not re.search(rb"\n[+(=*]", data):
        assert split.commands == strict.commands
        assert (split.error is None) == (strict.error is None)


@pytest.mark.parametrize("data", WORDS_ALL_THE_SAME)
def test_other_texts_are_no_words_where_they_are_read_carefully(data: bytes) -> None:
    outcome = run([EMPTY_LINE, data])
    assert outcome.commands == []
    assert outcome.error is not None
    assert outcome.error.startswith("Protocol error: expected '$', got '")


@pytest.mark.parametrize("data", WORDS_ALL_THE_SAME)
def test_other_texts_do_no_harm_to_what_follows(data: bytes) -> None:
    whole = encode(PING) + data + encode([b"ECHO", b"after"])
    for place in range(1, len(whole)):
        outcome = run([whole[:place], whole[place:]])
        expected = [PING, [WORDS_ALL_THE_SAME[data]], [b"ECHO", b"after"]]
        if outcome.error is None:
            assert outcome.commands == expected
        else:
            assert outcome.commands in (expected[:1], expected[:2])


@pytest.mark.parametrize("data", WORDS_ALL_THE_SAME)
def test_other_texts_are_words(data: bytes) -> None:
    assert run([data]) == Outcome([[WORDS_ALL_THE_SAME[data]]])


def test_noise_of_0xff() -> None:
    """Without a line's end it is an inline command that grows too big; with one, a strange word."""
    assert run([b"\xff" * 1000]) == Outcome()
    assert run([b"\xff" * 70_000]) == Outcome([], "Protocol error: too big inline request")
    assert run([b"\xff" * 10 + b"\r\n"]) == Outcome([[b"\xff" * 10]])


@pytest.mark.parametrize("header", [b"~", b"%", b">", b"*"])
@pytest.mark.parametrize("count", [b"1", b"1000000", b"4294967295", b"9223372036854775807"])
def test_a_collection_inside_a_command(header: bytes, count: bytes) -> None:
    inner = header + count + b"\r\n$1\r\na\r\n$1\r\nb\r\n"
    for chunks in ([b"*1\r\n" + inner], [b"*1\r\n", inner]):
        outcome = run(chunks)
        assert outcome.commands == []
        assert outcome.error is not None


HUGE_COLLECTIONS = """
import re, resource
from pathlib import Path
from resp_server.careful import ProtocolError
from resp_server.parser import CommandParser

resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
for header in (b"*", b"$", b">", b"~", b"%", b"|"):
    line = header + b"1000000000\\r\\n"
    ping = b"$4\\r\\nPING\\r\\n"
    odd = b"*1\\r\\n$4\\r\\nPINGxx"  # hiredis does not look at what ends a word
    for begin in (b"*1\\r\\n", b"*2\\r\\n" + ping, b"*1\\r\\n" + ping + b"*1\\r\\n", odd):
        for chunks in ([begin + line], [begin, line], [begin + line[:5], line[5:]]):
            parser = CommandParser(2**29, 2**30)
            try:
                for chunk in chunks:
                    parser.feed(chunk)
                    parser.take(256)
                parser.take(256)
            except ProtocolError:
                continue
            if begin is not odd:  # behind that it is an inline command
                raise SystemExit(f"{chunks} are waited for")
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def test_a_huge_collection_takes_neither_time_nor_memory() -> None:
    """hiredis makes room as soon as it reads the line: gigabytes for a few bytes. In a process of
    its own, so that a failure is not the end of the tests."""
    ended = subprocess.run(
        [sys.executable, "-c", HUGE_COLLECTIONS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert int(ended.stdout) * 1024 < 100 * MEGABYTE


# Inline commands


@pytest.mark.parametrize(("line", "expected"), INLINE, ids=[repr(line) for line, _ in INLINE])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_inline_commands_are_split_as_redis_does(
    line: bytes, expected: list[bytes], end: bytes
) -> None:
    assert split_inline(line) == expected
    data, commands = line + end, [expected] if expected else []
    assert run([data]) == Outcome(commands)
    assert run(byte_by_byte(data)) == Outcome(commands)
    for place in range(1, len(data)):
        assert run([data[:place], data[place:]]) == Outcome(commands)


def quote(word: bytes) -> bytes:
    """A word as redis-cli would print it: in double quotes, with escapes."""
    named = {ord("\n"): b"\\n", ord("\r"): b"\\r", ord('"'): b'\\"', ord("\\"): b"\\\\"}
    escaped = (
        named.get(byte) or (bytes([byte]) if 32 <= byte < 127 else b"\\x%02x" % byte)
        for byte in word
    )
    return b'"' + b"".join(escaped) + b'"'


@given(commands, st.lists(st.sampled_from([b" ", b"  ", b"\t"]), min_size=1), places, mosts)
def test_quoted_inline_words_come_back(
    sent: list[list[bytes]], gaps: list[bytes], where: list[int], most: int
) -> None:
    gap = itertools.cycle(gaps)
    lines = [b"".join(next(gap) + quote(word) for word in words) + b"\r\n" for words in sent]
    assert run(cut(b"".join(lines), where), most) == Outcome(sent)


pieces = st.lists(
    st.tuples(st.booleans(), st.lists(words, min_size=1, max_size=3)), min_size=1, max_size=6
)


def mixed(sent: list[tuple[bool, list[bytes]]]) -> list[bytes]:
    """Each command, in RESP or inline."""
    return [
        b" ".join(map(quote, words)) + b"\r\n" if inline else encode(words)
        for inline, words in sent
    ]


@given(pieces, places, mosts)
def test_inline_and_resp_mixed_each_at_the_start_of_a_chunk(
    sent: list[tuple[bool, list[bytes]]], where: list[int], most: int
) -> None:
    chunks = [chunk for piece in mixed(sent) for chunk in cut(piece, where)]
    assert run(chunks, most) == Outcome([command for _, command in sent])


@given(pieces, places, mosts, st.booleans())
@example([(False, PING), (True, PING)], [], 256, True)
@example([(True, PING), (False, PING)], [], 256, True)
def test_inline_and_resp_mixed_in_one_chunk(
    sent: list[tuple[bool, list[bytes]]], where: list[int], most: int, take_each: bool
) -> None:
    outcome = run(cut(b"".join(mixed(sent)), where), most, take_each=take_each)
    assert outcome == Outcome([command for _, command in sent])


@pytest.mark.parametrize("empty", [b"\r\n", b"\n", b"  \r\n"], ids=repr)
def test_empty_lines_between_commands_are_nothing(empty: bytes) -> None:
    data = empty + encode(PING) + empty + empty + encode([b"ECHO", b"a"]) + empty + b"PING\r\n"
    expected = Outcome([PING, [b"ECHO", b"a"], PING])
    assert run(byte_by_byte(data)) == expected
    assert run([data]) == expected


@pytest.mark.parametrize("size", [1, 1000, MAX_LINE_BYTES, MAX_LINE_BYTES + 1])
def test_an_inline_command_without_end_is_too_big(size: int) -> None:
    data = b"x" * (MAX_LINE_BYTES + 1)
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert run(chunks) == Outcome([], "Protocol error: too big inline request")
    assert run([encode(PING), *chunks]) == Outcome([PING], "Protocol error: too big inline request")


def test_an_inline_command_as_long_as_allowed() -> None:
    word = b"x" * (MAX_LINE_BYTES - 2)
    assert run([word + b"\r\n"]) == Outcome([[word]])
    assert run(cut(word + b"\r\n", range(0, len(word), 1000))) == Outcome([[word]])


def test_an_inline_command_in_thousands_of_chunks_that_wait() -> None:
    data = b"ECHO " + b"x" * 5000 + b"\r\n"
    expected = Outcome([[b"ECHO", b"x" * 5000]])
    assert run(byte_by_byte(data), take_each=False) == expected


@pytest.mark.parametrize("head", [b"|0", b"|1", b"%1", b"~1", b"~0", b">1", b"_"])
def test_inline_commands_that_look_like_types_of_resp3(head: bytes) -> None:
    """Redis reads them as words, wherever they stand."""
    ping, echo = encode([b"PING"]), encode([b"ECHO", b"x"])
    for rest in (b"\r\n", b"\r\n" + ping, b"\r\n" + echo[4:]):
        assert run([ping + head + rest]) == run([ping, head + rest])


@pytest.mark.parametrize("odd", [b"$-1\r\n", b"*-1\r\n", b"$-1\r\n|1\r\n"])
def test_no_command_runs_twice_when_the_parsers_count_differently(odd: bytes) -> None:
    ping, echo = encode([b"PING"]), encode([b"ECHO", b"a"])
    chunk = ping + odd + echo + b"PING\r\n"
    assert run([chunk]).commands == run(cut(chunk, range(1, len(chunk)))).commands


@pytest.mark.parametrize("between", [b"_\r\n", b"~0\r\n", b"|1\r\n", b"$-1\r\n"])
def test_nothing_runs_twice_behind_a_word_of_odd_ending(between: bytes) -> None:
    echo = encode([b"ECHO", b"a"])
    found = run([b"*1\r\n$4\r\nPINGxx" + between + echo + b"PING\r\n"]).commands
    assert found.count([b"ECHO", b"a"]) <= 1


def test_a_large_command_is_not_kept_once_it_was_taken() -> None:
    parser = new_parser()
    large = encode([b"ECHO", b"x" * 5_000_000])
    pieces = [large[place : place + 65536] for place in range(0, len(large), 65536)]
    taken = [command for piece in pieces for command in fed(parser, piece)]
    held = kept_bytes(parser)
    assert len(taken) == 1
    assert held < 2_000_000


def fed(parser: CommandParser, piece: bytes) -> list[list[bytes]]:
    parser.feed(piece)
    return parser.take(256)


def kept_bytes(parser: CommandParser) -> int:
    """Bytes of what the parser itself keeps."""
    history = parser._history or []
    return sum(map(len, history)) + sum(map(len, parser._last))
