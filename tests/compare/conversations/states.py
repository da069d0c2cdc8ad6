"""Every command that both have, in states where most may not be run: before login, without rights,
while queueing, while listening. Each is said with as few words as it takes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.compare import shared
from tests.compare.conversation import talk

LEADING_ELSEWHERE = {"auth", "discard", "exec", "hello", "quit", "reset"}
"""What is run in every state, or ends it; other conversations have it."""


def every_call(*but: str) -> Iterator[str]:
    for words in shared.WORDS:
        if words[0] not in LEADING_ELSEWHERE | set(but):
            yield " ".join(shared.shortest_call(words))


CONVERSATIONS = [
    talk(
        "every command before login",
        "z: CONFIG SET requirepass secret",
        *every_call(),
        protocols=(2,),
    ),
    talk(
        "every command without rights",
        "z: ACL SETUSER fox on nopass",
        "AUTH fox x",
        *every_call(),
    ),
    talk(
        "every command within a transaction",
        "MULTI",
        *every_call(),
        "DISCARD",
    ),
    talk(
        "every command while listening",
        "SUBSCRIBE x",
        *every_call("unsubscribe", "punsubscribe", "sunsubscribe"),
        protocols=(2,),
    ),
]
