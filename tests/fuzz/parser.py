"""The parser: however bytes are cut, it reads them as CarefulParser does.

An input is

    flags(1) logins(1) cuts(1) place(2) ... data
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from resp_server.careful import CarefulParser, ProtocolError
from resp_server.parser import CommandParser
from storage.integers import parse_integer
from tests.fuzz.choices import Choices
from tests.fuzz.target import Target
from tests.server.test_parser import HEADER_LIKE, HOSTILE_HEADERS, Outcome, cut

MEGABYTE = 1024 * 1024
MOST_CUTS = 12
MOST_HELD_BYTES = 20 * MEGABYTE
"""What no input of a few kilobytes may take: an array of as many elements as its header says."""
_TAKE_EACH, _RESTRICTED, _MOST_SHIFT = 1, 2, 2
_MOSTS = (256, 1, 2, 3)
_READ_AS_WORDS = re.compile(rb"[+(=]|(?s:.)[*%~>|][0-9]{1,6}\r\n")
"""What hiredis takes for a word or waits for the end of, where Redis refuses it: no harm in it."""
_TYPES = b"$+-:_,#!=(%~>|"
"""hiredis believes these to begin a value, where they begin an inline command."""
_HUGE = re.compile(rb"[*%~>|][0-9]{7}")
_STATUS = Path("/proc/self/statm")
_PAGE_BYTES = 4096


def run(data: bytes) -> None:
    choices = Choices(data)
    flags, logins, cuts = choices.number(), choices.number(), choices.number() % (MOST_CUTS + 1)
    places = [choices.number(2) for _ in range(cuts)]
    sent = choices.rest()
    after = logins % 4 if flags & _RESTRICTED else None
    expected = read_carefully(sent, after)
    found = read_in_pieces(
        cut(sent, places),
        _MOSTS[flags >> _MOST_SHIFT & 3],
        after,
        take_each=bool(flags & _TAKE_EACH),
    )
    for command in found.commands:
        assert command
        assert all(type(word) is bytes for word in command)
    check_order(sent, found)
    if is_tidy(sent):
        check_alike(sent, after, expected, found)


def check_order(data: bytes, found: Outcome) -> None:
    """All words stand in the stream in this order: nothing was run twice."""
    if b'"' in data or b"'" in data:
        return  # there may be escapes
    place = 0
    for word in itertools.chain.from_iterable(found.commands):
        place = data.find(word, place)
        assert place >= 0, (found, word)
        place += len(word)


def check_alike(data: bytes, after: int | None, expected: Outcome, found: Outcome) -> None:
    if found.error is not None and expected.error is None:
        # A line that will be wrong, however it ends, may be refused before its end.
        expected = read_carefully(data + b"\r\n", after)
    assert found.commands[: len(expected.commands)] == expected.commands
    if expected.error is None or not _READ_AS_WORDS.search(data):
        assert found.commands == expected.commands
        assert (found.error is None) == (expected.error is None), (found, expected)


def is_tidy(data: bytes) -> bool:
    """Whether lines and words end as they should, and inline commands do not begin like values.

    hiredis does not look at the two bytes behind a word, and sees other ends than Redis in lines
    that hold a return or a feed. What it then makes of a stream is its sender's own loss.
    """
    place = missing = 0
    while place < len(data):
        if not missing and data[place] != ord("*"):
            end = data.find(b"\n", place)
            if data[place] in _TYPES or (end >= 0 and data[end - 1 : end] != b"\r"):
                return False
            place = end + 1 if end >= 0 else len(data)
            continue
        end = data.find(b"\r", place)
        if b"\n" in data[place : end if end >= 0 else len(data)]:
            return False
        if end < 0:
            return True
        if data[end + 1 : end + 2] not in (b"", b"\n"):
            return False
        number = parse_integer(data[place + 1 : end])
        if number is None or data[place] != (ord("$") if missing else ord("*")):
            return True  # wrong for everybody, and nothing is read after it
        place = end + 2
        if not missing:
            missing = max(0, number)
        elif not 0 <= number <= MEGABYTE:
            return True
        else:
            place += number + 2
            missing -= 1
            if not b"\r\n".startswith(data[place - 2 : place]):
                return False
    return True


def read_carefully(data: bytes, logs_in_after: int | None) -> Outcome:
    """All at once. `logs_in_after` so many commands a client may send large ones; None: at once."""
    outcome = Outcome()
    parser = CarefulParser(MEGABYTE, restricted=logs_in_after is not None)
    parser.feed(data)
    try:
        while True:
            if len(outcome.commands) == logs_in_after:
                parser.restricted = False
            command = parser.next()
            if command is None:
                return outcome
            outcome.commands.append(command)
    except ProtocolError as error:
        outcome.error = str(error)
    return outcome


def read_in_pieces(
    chunks: list[bytes], most: int, logs_in_after: int | None, *, take_each: bool
) -> Outcome:
    """As a connection does: while it is restricted, one command at a time."""
    outcome = Outcome()
    parser = CommandParser(MEGABYTE, 2 * MEGABYTE)
    if logs_in_after is not None:
        parser.restrict()
    fed, held_before = 0, address_space_bytes() if _HUGE.search(b"".join(chunks)) else 0
    for number, chunk in enumerate(chunks, start=1):
        parser.feed(chunk)
        fed += len(chunk)
        if take_each or number == len(chunks):
            _take_all(parser, most, logs_in_after, outcome)
            assert parser.failed == (outcome.error is not None)
        assert parser.buffered <= fed
        if outcome.error is not None:
            break
    if held_before:
        assert address_space_bytes() - held_before < MOST_HELD_BYTES
    return outcome


def address_space_bytes() -> int:
    """Of this process; 0 where the system does not tell."""
    return int(_STATUS.read_bytes().split()[0]) * _PAGE_BYTES if _STATUS.exists() else 0


def _take_all(
    parser: CommandParser, most: int, logs_in_after: int | None, outcome: Outcome
) -> None:
    restricted = logs_in_after is not None and len(outcome.commands) <= logs_in_after
    try:
        while True:
            if restricted and len(outcome.commands) == logs_in_after:
                parser.lift()
                restricted = False
            wanted = 1 if restricted else most
            taken = parser.take(wanted)
            assert len(taken) <= wanted
            if not taken:
                return
            outcome.commands += taken
    except ProtocolError as error:
        outcome.error = str(error)


TARGET = Target(
    run,
    tokens=(
        *HEADER_LIKE, *HOSTILE_HEADERS,
        b"*1\r\n$4\r\nPING\r\n", b"*2\r\n$4\r\nECHO\r\n$3\r\nabc\r\n", b"*2\r\n", b"$4\r\n",
        b"$0\r\n\r\n",
        b"PING\r\n", b"ECHO 'a b'\r\n", b'"', b"'", b"\\x4", b"%1\r\n", b"~1\r\n", b">1\r\n",
        b"|1\r\n", b"*11\r\n", b"$16385\r\n", b"*-1\r\n", b"*0\r\n", b"+ok\r\n",
        b"(1\r\n", b"=8\r\ntxt:PING\r\n",
    ),
)  # fmt: skip
