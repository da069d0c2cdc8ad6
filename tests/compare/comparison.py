"""One conversation with two servers: where their answers differ, but for what is meant to.

Used by the tests, which compare redis-server with Colonnade, and with another redis-server to see
that the conversations themselves are sound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from tests.compare import differences
from tests.compare.conversation import Answer, Conversation, run
from tests.compare.differences import Difference, shown
from tests.compare.servers import PATIENCE_SECONDS, Side
from tests.compare.wire import SILENCE

NOTHING = "(not asked)"


@dataclass(frozen=True, slots=True)
class Finding:
    """A step that the two answered differently, or that is listed as a difference and is none."""

    step: str
    theirs: str
    ours: str
    remark: str = ""

    def __str__(self) -> str:
        return f"{self.step}\n    redis: {self.theirs}\n    ours:  {self.ours}  {self.remark}"


def findings(
    conversation: Conversation,
    protocol: int,
    reference: Side,
    other: Side,
    patience_seconds: float = PATIENCE_SECONDS,
) -> list[Finding]:
    """Every difference that no entry of differences.py allows, and every entry not needed."""
    theirs = _answers(conversation, protocol, reference, patience_seconds)
    ours = _answers(conversation, protocol, other, patience_seconds)
    return list(_compared(conversation, theirs, ours))


def flaws(conversation: Conversation, protocol: int, one: Side, another: Side) -> list[Finding]:
    """What is wrong with a conversation, that two servers of one kind do not have it alike, or one
    of them has said nothing where something is awaited, or something where nothing is."""
    both = [_answers(conversation, protocol, side, PATIENCE_SECONDS) for side in (one, another)]
    unsound = [
        Finding(answer.step.label, shown(answer.replies), "", "was not awaited")
        for answer in both[0]
        if SILENCE in answer.replies or (answer.replies and answer.step.is_leftover)
    ]
    return [finding for finding, _ in _unequal(*both)] + unsound


def _answers(
    conversation: Conversation, protocol: int, side: Side, patience_seconds: float
) -> list[Answer]:
    side.restore()
    return run(conversation, side.port, protocol, patience_seconds, is_colonnade=side.is_colonnade)


def _compared(
    conversation: Conversation, theirs: list[Answer], ours: list[Answer]
) -> Iterator[Finding]:
    needed: set[Difference] = set()
    for finding, answer in _unequal(theirs, ours):
        listed = differences.find(conversation.name, finding.step, answer.replies)
        needed |= set(listed)
        if not listed:
            yield finding
    for difference in differences.of(conversation.name):
        if difference not in needed:
            yield Finding(difference.step, "", "", f"differs no more: {difference}")


def _unequal(theirs: list[Answer], ours: list[Answer]) -> Iterator[tuple[Finding, Answer]]:
    for one, other in zip_longest(theirs, ours):
        said = other or one
        assert said is not None
        step = said.step
        expected = shown(step.compared(one.replies)) if one else NOTHING
        got = shown(step.compared(other.replies)) if other else NOTHING
        if expected != got and (expected, got) not in (("", NOTHING), (NOTHING, "")):
            yield Finding(step.label, expected, got), said
        if SILENCE in (*(one.replies if one else ()), *(other.replies if other else ())):
            return  # Nothing was said from here on.
