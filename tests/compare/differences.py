"""Where Colonnade answers otherwise than redis-server 7.0 on purpose: each with its reason.

A difference names the conversation and the step by its text, and what Colonnade says there, as a
pattern for the whole of `str(reply)` (several replies are joined by a space). The comparison fails
for a difference that is not listed, and for a listed one that is none any more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.compare.wire import Reply


@dataclass(frozen=True, slots=True)
class Difference:
    conversation: str
    step: str
    ours: str
    """A regular expression for what Colonnade says."""
    reason: str

    def allows(self, replies: Sequence[Reply]) -> bool:
        return re.fullmatch(self.ours, shown(replies), re.DOTALL) is not None


def shown(replies: Sequence[Reply]) -> str:
    return " ".join(str(reply) for reply in replies)


def _listed(conversation: str, reason: str, steps: dict[str, str]) -> list[Difference]:
    return [Difference(conversation, step, ours, reason) for step, ours in steps.items()]


def _lenient(what: str, data: str) -> list[Difference]:
    """A PING in an odd spelling that is understood here."""
    reason = f"the parser, which is hiredis, {what}"
    return _listed(f"hostile {data}", reason, {f"b'{data}'": r"\+PONG \$'fence'"})


def _anyhow(words: str) -> str:
    """A list of just these words in any order."""
    names = words.split()
    each_one = "".join(rf"(?=.*'{name}')" for name in names)
    return rf"[*~]\[{each_one}(\S+ ?){{{len(names)}}}"


_HELLO = (
    "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO"
    " <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP"
    " protocol version at the same time"
)
_RULES = "rules of commands are listed as they were given, as by later versions of Redis"
_UNTRACKED = r"-ERR client side caching \(CLIENT TRACKING\) is not supported by this server"
_DRAWING = r"[$=]['\"](txt:)?.*Colonnade ver\. .*"

_CATEGORIES = (
    "admin bitmap blocking connection dangerous fast geo hash hyperloglog keyspace list pubsub read"
    " scripting set slow sortedset stream string transaction widecolumn write"
)

DIFFERENCES: list[Difference] = [
    *_listed(
        "hello alone before login",
        "the text of Redis 7.2, which names the protocol among HELLO's words",
        dict.fromkeys(("HELLO", "HELLO 2", "HELLO 3", "HELLO 3 SETNAME fox"), re.escape(_HELLO)),
    ),
    *_listed(
        "a default user that is off",
        "the text of Redis 7.2, which names the protocol among HELLO's words",
        {"HELLO 3": re.escape(_HELLO)},
    ),
    *_lenient("takes an argument sent as a status as its text", r"*1\r\n+PING\r\n"),
    *_lenient("takes a verbatim string as its text", r"*1\r\n=8\r\ntxt:PING\r\n"),
    *_listed(
        "client tracking when it is off",
        "client side caching is not there, and says so before it looks at the options",
        dict.fromkeys(
            (
                "CLIENT TRACKING ON FOO",
                "CLIENT TRACKING ON OPTIN OPTOUT",
                "CLIENT TRACKING ON PREFIX a",
                "CLIENT TRACKING ON REDIRECT x",
                "CLIENT TRACKING ON REDIRECT 99999999",
            ),
            _UNTRACKED,
        ),
    ),
    *_listed(
        "client tracking", "client side caching is not there", {"CLIENT TRACKING ON": _UNTRACKED}
    ),
    *_listed(
        "lolwut",
        "a drawing of our own, with our own name below it",
        dict.fromkeys(
            ("LOLWUT", "lolwut version 9", "LOLWUT VERSION", "LOLWUT VERSION 9 x", "LOLWUT foo"),
            _DRAWING,
        ),
    ),
    *_listed(
        "acl setuser: commands",
        _RULES,
        {
            "ACL LIST": r".*'user fox off resetchannels \+@all -@dangerous \+config'\]",
            "ACL GETUSER fox": r".*\$'\+@all -@dangerous \+config'.*",
        },
    ),
    *_listed(
        "acl setuser: the rest",
        _RULES,
        {
            "ACL LIST": r".* resetchannels &news\.\* -@all \+@read \+@write -@dangerous'\]",
            "ACL GETUSER fox": r".*\$'-@all \+@read \+@write -@dangerous'.*",
        },
    ),
    *_listed(
        "acl setuser of the default user",
        _RULES,
        {"ACL LIST": r".*resetchannels \+@all -@dangerous \+acl'\]"},
    ),
    *_listed(
        "client kill within a transaction",
        "what EXEC replies is sent before the connection ends, as the reply of any other kill is",
        {"EXEC": r"\*\[:1, :1, \+PONG\] <end>"},
    ),
    *_listed(
        "publishing to oneself in a transaction",
        "Redis 7.0 sends the message in the midst of EXEC's array, which breaks it in two",
        {"EXEC": r">\[\$'message', \$'one', \$'hello'\] \*\[:1, \+PONG\]"},
    ),
    *_listed(
        "acl cat",
        "one category more",
        {"ACL CAT": _anyhow(_CATEGORIES)},
    ),
    *_listed(
        "config set of events",
        "one class of events more, w for those of datasets, which A stands for, too",
        {
            "CONFIG GET notify-keyspace-events": r".*\$'g\$lshzxetdnKEm'\]",
            "CONFIG SET notify-keyspace-events foo": r".*class character\. Use '.*w.*'\.",
            "CONFIG SET notify-keyspace-events KEA!": r".*class character\. Use '.*w.*'\.",
        },
    ),
    *_listed(
        "config set of maxmemory and the like",
        "data is on disk, always, and needs neither a memory limit nor snapshots",
        {
            "CONFIG SET maxmemory 100mb": r"-ERR CONFIG SET failed .*maxmemory.* can only be 0 .*",
            "CONFIG GET maxmemory": r".\[\$'maxmemory', \$'0'\]",
            "CONFIG SET save '3600 1 300 100'": r'-ERR CONFIG SET .*save.* can only be "" .*',
            "CONFIG GET save": r".\[\$'save', \$''\]",
            "CONFIG SET appendonly no": r"-ERR CONFIG SET failed .*appendonly.* can only be yes .*",
            "CONFIG GET appendonly": r".\[\$'appendonly', \$'yes'\]",
        },
    ),
    *_listed(
        "config get of defaults",
        "data is always on disk",
        {"CONFIG GET appendonly": r"[*%]\[\$'appendonly', \$'yes'\]"},
    ),
    *_listed(
        "config get of defaults",
        "only loopback is listened on where redis.conf says nothing",
        {"CONFIG GET bind": r"[*%]\[\$'bind', \$'127\.0\.0\.1'\]"},
    ),
    *_listed(
        "config get of defaults",
        "a unix socket is the owner's alone where redis.conf says nothing",
        {"CONFIG GET unixsocketperm": r"[*%]\[\$'unixsocketperm', \$'700'\]"},
    ),
]


def of(conversation: str) -> list[Difference]:
    return [each for each in DIFFERENCES if each.conversation == conversation]


def find(conversation: str, step: str, ours: Sequence[Reply]) -> list[Difference]:
    """The entries that allow this reply of Colonnade's at this step."""
    return [each for each in of(conversation) if each.step == step and each.allows(ours)]
