"""The same conversation with redis-server and with Colonnade: type and text of each reply.

The tables are in tests/compare/conversations/, what may differ in tests/compare/differences.py.
"""

from __future__ import annotations

import pytest

from tests.compare import differences
from tests.compare.comparison import findings, flaws
from tests.compare.conftest import Sides
from tests.compare.conversation import Conversation
from tests.compare.conversations import ALL

LEAST_CALLS = 500
RUNS = [
    pytest.param(conversation, protocol, id=f"{conversation.name}-resp{protocol}")
    for conversation in ALL
    for protocol in conversation.protocols
]


@pytest.mark.parametrize(("conversation", "protocol"), RUNS)
def test_both_servers_answer_alike(
    reference: Sides, colonnade: Sides, conversation: Conversation, protocol: int
) -> None:
    directives = conversation.directives
    found = findings(conversation, protocol, reference(directives), colonnade(directives))
    assert not found, "\n".join(["", *map(str, found)])


@pytest.mark.parametrize(("conversation", "protocol"), RUNS)
def test_two_redis_servers_answer_alike(
    reference: Sides, second_reference: Sides, conversation: Conversation, protocol: int
) -> None:
    """What differs here is of the moment, and no likeness in the table says so."""
    directives = conversation.directives
    found = flaws(conversation, protocol, reference(directives), second_reference(directives))
    assert not found, "\n".join(["", *map(str, found)])


def test_both_servers_went_back_to_their_first_state(reference: Sides, colonnade: Sides) -> None:
    for side in (reference(()), colonnade(())):
        side.restore()
        assert not side.complaints


def test_the_tables_are_of_some_length() -> None:
    calls = sum(
        len([step for step in each.steps if step.words or step.raw]) * len(each.protocols)
        for each in ALL
    )
    assert calls >= LEAST_CALLS


def test_each_name_is_used_once() -> None:
    names = [conversation.name for conversation in ALL]
    assert sorted(set(names)) == sorted(names)


def test_each_listed_difference_names_a_step() -> None:
    steps = {(each.name, step.label) for each in ALL for step in each.steps}
    for listed in differences.DIFFERENCES:
        assert (listed.conversation, listed.step) in steps, listed
        assert listed.reason
