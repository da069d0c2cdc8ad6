r"""Scripts of commands: the inputs of the target `commands`, to be read and written by people.

    WCPUT d row 1 "a\x00b" {x*70000}    a command, as redis-cli takes it; {x*n}: a word of n letters
    @ 1                                 from here on the other connection speaks: 0 to 2
    @fail  @stall                       the next commit fails, or is put off a few times
    @restricted                         (first line) nobody speaks but a user who may do little

`mutate` changes a script into another one, with commands made after the lines of their syntax.
"""

from __future__ import annotations

import random
import re
from functools import cache

import commands.families  # noqa: F401 - fills the command table
from commands.command import Command
from commands.table import TABLE
from resp_server.careful import ProtocolError, split_inline

Line = list[bytes]
MOST_LINES = 40
MOST_REPEATED = 200_000
_REPEATED = re.compile(rb"\{(.)\*([0-9]{1,7})\}", re.DOTALL)
_PLAIN = re.compile(rb"[!#-&(-\[\]-~]+")
_SYNTAX_WORD = re.compile(r"[A-Za-z][A-Za-z0-9-]*")

NUMBERS = (
    b"", b"0", b"-1", b"1", b"2", b"16", b"+1", b"01", b"-0", b"1.5", b"1e400", b"nan", b"inf",
    b"0x1",
    b" 1", b"1\n", b"2147483648", b"4294967296", b"9223372036854775807", b"9223372036854775808",
    b"-9223372036854775808", b"18446744073709551616", b"{9*400}", b"\xd9\xa1", b"*", b"ALL", b"+",
    b"-",
)  # fmt: skip
NAMES = (
    b"hostile", b"other", b"unseen", b"row", b"column", b"default", b"restricted", b"secret",
    b"@all", b"a", b"b", b"ch", b"hos*", b"*", b"?", b"[", b"[a-", b"\\", b"", b"\x00", b"\xff\xfe",
    b"a\r\nb",
    b"%s", b"{0}", b"|", b"config|set", b"help", b"{n*65535}", b"{n*65536}", b"{n*129}", b"wcget",
    b"127.0.0.1:1", b"1", b"2", b"3", b"on", b">pw", b"~hos*", b"+@all", b"-@dangerous", b"nopass",
    b"maxmemory", b"appendfsync", b"always", b"requirepass", b"notify-keyspace-events", b"KEA",
    b"slowlog-log-slower-than", b"latency-monitor-threshold", b"acllog-max-len", b"yes", b"no",
)  # fmt: skip
USUAL = (
    [b"MULTI"], [b"EXEC"], [b"DISCARD"], [b"HELLO", b"3"], [b"HELLO", b"2"], [b"RESET"],
    [b"AUTH", b"restricted", b"secret"], [b"CLIENT", b"REPLY", b"OFF"],
    [b"CLIENT", b"REPLY", b"ON"],
    [b"CLIENT", b"REPLY", b"SKIP"], [b"@", b"0"], [b"@", b"1"], [b"@", b"2"], [b"@fail"],
    [b"@stall"], [b"WATCH", b"hostile"], [b"SUBSCRIBE", b"a", b"b"], [b"UNSUBSCRIBE"], [b"MONITOR"],
    [b"CONFIG", b"SET", b"notify-keyspace-events", b"KEA"], [b"PSUBSCRIBE", b"*"],
    [b"PUBLISH", b"a", b"x"], [b"WCPUT", b"hostile", b"row", b"1", b"column", b"value"],
    [b"WCGET", b"hostile", b"row"], [b"WCSCAN", b"hostile"], [b"WCDATASET", b"DROP", b"hostile"],
)  # fmt: skip


def lines_of(script: bytes) -> list[Line]:
    """Lines that cannot be read are passed over, and so is what is over MOST_LINES."""
    found: list[Line] = []
    for line in script.split(b"\n"):
        try:
            words = split_inline(line)
        except ProtocolError:
            continue
        if words and len(found) < MOST_LINES:
            found.append(words)
    return found


def written(lines: list[Line]) -> bytes:
    return b"".join(b" ".join(map(_quoted, words)) + b"\n" for words in lines)


def _quoted(word: bytes) -> bytes:
    if _PLAIN.fullmatch(word):
        return word
    escaped = (
        bytes([byte]) if 32 <= byte < 127 and byte not in b'"\\' else b"\\x%02x" % byte
        for byte in word
    )
    return b'"' + b"".join(escaped) + b'"'


def expanded(word: bytes) -> bytes:
    repeated = _REPEATED.fullmatch(word)
    return repeated[1] * min(MOST_REPEATED, int(repeated[2])) if repeated else word


# Mutation


@cache
def leaves() -> list[Command]:
    entries = TABLE.all().values()
    return [leaf for entry in entries for leaf in (entry, *entry.subcommands.values())]


@cache
def wide_leaves() -> list[Command]:
    return [leaf for leaf in leaves() if leaf.name.startswith("wc")]


@cache
def keywords() -> list[bytes]:
    words = {word for leaf in leaves() for word in _SYNTAX_WORD.findall(leaf.syntax)}
    return sorted(word.encode() for word in words if word.isupper())


def any_word(chosen: random.Random) -> bytes:
    return chosen.choice(chosen.choice((NUMBERS, NAMES, NAMES, keywords())))


def any_call(chosen: random.Random) -> Line:
    """A command and words after it, most of them where its syntax has them."""
    leaf = chosen.choice(chosen.choice((leaves(), wide_leaves())))
    words = leaf.name.encode().split(b"|")
    for word in _SYNTAX_WORD.findall(leaf.syntax):
        if chosen.random() < 0.15:
            continue
        words.append(word.encode() if word.isupper() else _fitting(word, chosen))
    if chosen.random() < 0.2:
        words += [any_word(chosen) for _ in range(chosen.randrange(4))]
    if chosen.random() < 0.2:
        del words[chosen.randint(1, len(words)) :]
    return words


def _fitting(name: str, chosen: random.Random) -> bytes:
    """A word for `dataset`, `count` and the like: mostly one that may well be right."""
    if chosen.random() < 0.2:
        return any_word(chosen)
    pools = {
        "dataset": (b"hostile", b"other", b"unseen"), "name": (b"hostile", b"other"),
        "row": (b"row", b"a", b""), "column": (b"column", b"a", b"\x00"), "n": (b"1", b"2"),
        "timestamp": (b"1", b"2", b"*", b"9223372036854775807"), "cursor": (b"0", b"1", b"AAAA"),
        "channel": (b"a", b"b"), "pattern": (b"*", b"a*"),
        "username": (b"restricted", b"default", b"u"),
        "value": (b"value", b"1", b""), "increment": (b"1", b"-1", b"9223372036854775807"),
        "start": (b"-", b"0"), "end": (b"+", b"9"), "command": (b"get", b"wcget", b"config|set"),
    }  # fmt: skip
    return chosen.choice(pools.get(name, (b"0", b"1", b"1000", b"a")))


def mutate(data: bytes, chosen: random.Random) -> bytes:
    lines = lines_of(data)
    for _ in range(chosen.choice((1, 1, 2, 4))):
        place = chosen.randint(0, len(lines))
        match chosen.randrange(8):
            case 0 | 1:
                lines.insert(place, any_call(chosen))
            case 2:
                lines.insert(place, list(chosen.choice(USUAL)))
            case 3:
                del lines[place : place + chosen.choice((1, 1, 3))]
            case 4 if lines:
                lines.insert(place, list(chosen.choice(lines)))
            case 5:
                lines = [*lines[:place], [b"MULTI"], *lines[place:], [b"EXEC"]]
            case _ if lines:
                line = chosen.choice(lines)
                index = chosen.randrange(len(line) + 1)
                line[index : index + chosen.randrange(2)] = [any_word(chosen)]
            case _:
                lines.append([b"PING"])
    return written(lines[:MOST_LINES])
