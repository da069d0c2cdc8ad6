"""MONITOR: what is shown of the calls of others, and what is not."""

from __future__ import annotations

from tests.compare.conversation import hears, raw, step, talk, words
from tests.compare.likeness import masking, outermost_type

line = masking(r"^(\d+\.\d+) ", r"127\.0\.0\.1:\d+")

CONVERSATIONS = [
    talk("monitor refused", "MONITOR x", "MULTI", "MONITOR", "DISCARD"),
    talk(
        "monitor",
        "b: PING",
        "a: MONITOR",
        "b: PING hello",
        hears("a", like=line),
        "b: SELECT 3",
        hears("a", like=line),
        "b: echo 'a \"b\"'",
        hears("a", like=line),
        words("ECHO", b"\x00\xff\r\n\t\a\b\\'", speaker="b"),
        hears("a", like=line),
        "b: FOO",
        "b: ECHO",
        "b: SELECT x",
        hears("a", like=line),
        "b: PUBLISH x y",
        hears("a", like=line),
        raw(b"ping inline\r\n", speaker="b"),
        hears("a", like=line),
    ),
    talk(
        "monitor shows no passwords",
        "b: PING",
        "MONITOR",
        "b: AUTH default hole",
        step("b: HELLO 3 AUTH default hole", outermost_type),
        "b: AUTH nobody hole",
        "b: CONFIG SET requirepass hole",
        "b: ACL SETUSER fox >hole",
        "b: ACL WHOAMI",
        "b: CONFIG GET requirepass",
        "b: PING",
        hears("a", 5, like=line),
    ),
    talk(
        "monitor of a transaction",
        "b: PING",
        "MONITOR",
        "b: MULTI",
        "b: PING",
        "b: ECHO a",
        "b: EXEC",
        hears("a", 4, like=line),
        "b: MULTI",
        "b: PING",
        "b: DISCARD",
        hears("a", 2, like=line),
    ),
    talk(
        "monitor of oneself",
        "MONITOR",
        step("PING", line, replies=2),
        step("MONITOR", replies=0),
        step("ECHO a", line, replies=2),
        "RESET",
        "PING",
    ),
    talk("monitor and quit", "MONITOR", step("QUIT", line, ends=True)),
    talk(
        "two monitors",
        "a: PING",
        "c: PING",
        "b: MONITOR",
        "a: MONITOR",
        "c: PING",
        hears("a", like=line),
        hears("b", like=line),
    ),
]
