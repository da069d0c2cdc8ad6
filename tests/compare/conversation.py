"""Conversations: calls on one or several connections, and what a server answered to each.

Conversations are data. A step is mostly one line of text, `b: CLIENT KILL ID {a.id}`: on which
connection (`a` where none is named), and words, quoted as in a shell. `{a.id}`, `{a.address}` and
`{a.server}` stand for the number and the addresses of a connection that was opened before. `run`
has a conversation with a server; knows nothing of how two servers' answers are compared.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.compare.wire import END, SILENCE, Reply, Wire, encode
from tests.harness import came

Likeness = Callable[[Reply], Reply]
"""What of a reply is compared; tests/compare/likeness.py has them, each named for what it drops."""

_SPEAKER = re.compile(r"([a-z]): (.*)", re.DOTALL)
_PLACEHOLDER = re.compile(rb"\{([a-z])\.(id|address|server)\}")
UNTIL_SECONDS = 10.0
FENCE = b"fence"


def exactly(reply: Reply) -> Reply:
    """Type and text are compared."""
    return reply


@dataclass(frozen=True, slots=True)
class Step:
    """One call, or only a wait for replies (`sent` is empty)."""

    label: str
    """As it was written down; reports and differences.py name it by this."""
    speaker: str
    words: tuple[bytes, ...] = ()
    raw: bytes = b""
    """Bytes that are sent as they are, instead of words."""
    replies: int = 1
    ends: bool = False
    """Whether the server closes the connection after that."""
    like: tuple[Likeness, ...] = ()
    colonnade_words: tuple[bytes, ...] = ()
    """What Colonnade is told instead, where Redis has a data type and Colonnade a dataset."""
    fenced: bool = False
    """Whether FENCE is sent behind it, and read up to: shows who reads on and who hangs up."""
    is_leftover: bool = False
    """Whether it stands for what was heard at the end and had not been awaited."""
    until: bytes = b""
    """Said again and again until the reply holds these bytes; only that it did is compared."""

    def compared(self, replies: Sequence[Reply]) -> tuple[Reply, ...]:
        for likeness in self.like:
            replies = [likeness(reply) for reply in replies]
        return tuple(replies)


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    steps: tuple[Step, ...]
    protocols: tuple[int, ...] = (2, 3)
    directives: tuple[tuple[str, str], ...] = ()
    """What the server must have been started with. A server of its own is started for it."""


def talk(
    name: str,
    *lines: str | Step,
    protocols: tuple[int, ...] = (2, 3),
    like: Likeness | None = None,
    directives: dict[str, str] | None = None,
) -> Conversation:
    """A conversation; `like` holds for those steps that are given as text alone."""
    steps = [line if isinstance(line, Step) else step(line, like=like) for line in lines]
    given = tuple((directives or {}).items())
    return Conversation(name, tuple(steps), protocols, given)


def step(
    line: str,
    *more: Likeness,
    like: Likeness | None = None,
    replies: int = 1,
    ends: bool = False,
) -> Step:
    """A command, as text. `replies` is how many the speaker then reads."""
    speaker, text = _speaker(line)
    words = tuple(word.encode() for word in shlex.split(text))
    likenesses = (*((like,) if like else ()), *more)
    return Step(line, speaker, words, b"", replies, ends, likenesses)


def words(*given: bytes | str, speaker: str = "a", like: Likeness | None = None) -> Step:
    """A command whose words no text says well, as binary ones."""
    raw = tuple(word if isinstance(word, bytes) else word.encode() for word in given)
    label = " ".join(repr(word)[1:] for word in raw)
    return Step(label, speaker, raw, like=(like,) if like else ())


def raw(
    data: bytes, *, speaker: str = "a", replies: int = 1, ends: bool = False, label: str = ""
) -> Step:
    """Bytes as they are: inline commands, hostile ones, several commands in one packet."""
    return Step(label or repr(data), speaker, (), data, replies, ends)


def fenced(data: bytes) -> Step:
    """Bytes as they are, and FENCE behind them: its reply comes, or the connection ends."""
    return Step(repr(data), "a", (), data, 0, fenced=True)


def hears(
    speaker: str, replies: int = 1, *, like: Likeness | None = None, ends: bool = False
) -> Step:
    """The speaker only reads: what others published, or the reply that it waited for."""
    return Step(f"{speaker} hears", speaker, (), b"", replies, ends, (like,) if like else ())


def changes(speaker: str, key: str, *, queued: bool = False, replies: int = 1) -> Step:
    """A write to what is called `key`: a string in Redis, a row of a dataset in Colonnade."""
    theirs = ("SET", key, "value")
    ours = ("WCPUT", key, "row", "*", "column", "value")
    change = _translated(
        f"{speaker}: a change of {key}", theirs, ours, exactly if queued else _done
    )
    return replace(change, replies=replies)


def reads(speaker: str, key: str) -> Step:
    """A read of what is called `key`, as changes() has it."""
    return _translated(f"{speaker}: a read of {key}", ("GET", key), ("WCGET", key, "row"), _done)


def _translated(label: str, theirs: tuple[str, ...], ours: tuple[str, ...], like: Likeness) -> Step:
    first, second = (tuple(word.encode() for word in words) for words in (theirs, ours))
    return Step(label, label[0], first, like=(like,), colonnade_words=second)


def _done(reply: Reply) -> Reply:
    """Whether it was done, or the error, but for the command's name in it."""
    if reply.kind != "error":
        return Reply("done")
    return Reply("error", re.sub(rb"'\w+' command", b"'#' command", reply.text))


def until(line: str, shown: str) -> Step:
    """Say it until the reply holds this text: waits for what another connection's call does."""
    said = step(line)
    return Step(f"until {line}", said.speaker, said.words, until=shown.encode())


def _speaker(line: str) -> tuple[str, str]:
    found = _SPEAKER.fullmatch(line)
    return (found[1], found[2]) if found else ("a", line)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came to one step."""

    step: Step
    replies: tuple[Reply, ...]


def run(
    conversation: Conversation,
    port: int,
    protocol: int,
    patience_seconds: float,
    *,
    is_colonnade: bool = False,
) -> list[Answer]:
    """Have the conversation. It ends early with a SILENCE, where a reply did not come."""
    connections = _Connections(port, protocol, patience_seconds, is_colonnade)
    answers: list[Answer] = []
    try:
        for each in conversation.steps:
            answers.append(Answer(each, connections.take(each)))
            if SILENCE in answers[-1].replies:
                return answers
        return [*answers, *connections.finish()]
    finally:
        connections.close()


class _Connections:
    """The connections of one conversation, by their speaker; opened when first spoken on."""

    def __init__(
        self, port: int, protocol: int, patience_seconds: float, is_colonnade: bool
    ) -> None:
        self._port = port
        self._is_colonnade = is_colonnade
        self._protocol = protocol
        self._patience_seconds = patience_seconds
        self._wires: dict[str, Wire] = {}
        self._numbers: dict[str, bytes] = {}
        self._ended: set[str] = set()

    def _wire(self, speaker: str) -> Wire:
        if speaker not in self._wires:
            self._wires[speaker] = Wire(self._port, self._patience_seconds)
            if self._protocol != 2:
                self._wires[speaker].call("HELLO", str(self._protocol))
        return self._wires[speaker]

    def take(self, each: Step) -> tuple[Reply, ...]:
        wire = self._wire(each.speaker)
        if each.until:
            return self._until(wire, each)
        words = each.words
        if self._is_colonnade and each.colonnade_words:
            words = each.colonnade_words
        if words:
            wire.send(encode([self._filled_in(word) for word in words]))
        elif each.raw:
            wire.send(each.raw + (encode([b"ECHO", FENCE]) if each.fenced else b""))
        replies = [wire.read() for _ in range(each.replies)]
        if each.ends:
            replies += wire.read_to_end()
        if each.fenced:
            replies += wire.read_to_end(FENCE)
        if END in replies:
            self._ended.add(each.speaker)
        return tuple(replies)

    def _until(self, wire: Wire, each: Step) -> tuple[Reply, ...]:
        words = [self._filled_in(word) for word in each.words]
        shown = came(lambda: each.until in str(wire.call(*words)).encode(), UNTIL_SECONDS)
        return () if shown else (SILENCE,)

    def _filled_in(self, word: bytes) -> bytes:
        return _PLACEHOLDER.sub(self._standing_for, word)

    def _standing_for(self, found: re.Match[bytes]) -> bytes:
        speaker, what = found[1].decode(), found[2]
        wire = self._wire(speaker)
        if what == b"address":
            return wire.address.encode()
        if what == b"server":
            return wire.server_address.encode()
        if speaker not in self._numbers:
            number = wire.call("CLIENT", "ID")
            assert number.kind == "integer", f"{speaker} is not told its number: {number}"
            self._numbers[speaker] = number.text
        return self._numbers[speaker]

    def finish(self) -> list[Answer]:
        """Replies that nobody awaited; there should be none."""
        return [
            Answer(Step(f"{speaker} hears at the end", speaker, is_leftover=True), wire.finish())
            for speaker, wire in self._wires.items()
            if speaker not in self._ended
        ]

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()
