"""ACL rules: refused as they should be and without a trace, or a user that its line makes again.

An input is the user's name and the rules, a line each; a line of "--" begins another ACL SETUSER.
"""

from __future__ import annotations

import random
from functools import cache

import commands.families  # noqa: F401 - fills the command table
from commands.access import user_file
from commands.access.user import User
from commands.access.users import Users
from commands.command import CATEGORIES, Command
from commands.errors import CommandError
from commands.table import TABLE
from tests.fuzz.target import Target
from tests.fuzz.users import new_users

ANOTHER = b"--"
KEYS = (b"", b"a", b"ab", b"hostile", b"x\xff", b"*", b"[")
ASKED_COMMANDS = 40


def run(data: bytes) -> None:
    lines = data.split(b"\n")
    name, rules = lines[0], lines[1:]
    users = new_users()
    while True:
        end = rules.index(ANOTHER) if ANOTHER in rules else len(rules)
        change(users, name, rules[:end])
        if end == len(rules):
            return
        rules = rules[end + 1 :]


def change(users: Users, name: bytes, rules: list[bytes]) -> None:
    before = [user.line() for user in users.all()]
    try:
        users.change(name, rules)
    except CommandError as refusal:
        assert refusal.code == "ERR"
        assert [user.line() for user in users.all()] == before
        return
    user = users.find(name)
    assert user is not None
    line = user.line()
    (read,) = user_file.parse(line, "users.acl", users._language).values()
    restarted = new_users()
    restarted.start([line.split(b" ")[1:]], "")
    started = restarted.find(name)
    assert started is not None
    for other in (user.copy(), read, started):
        assert other.line() == line
        assert other.name == name
        assert other.unrestricted == user.unrestricted
        check_alike(user, other, line)


def check_alike(user: User, other: User, seed: bytes) -> None:
    """Both are allowed the same: of many commands, some are asked for."""
    chosen = random.Random(seed)
    for command in chosen.sample(leaves(), ASKED_COMMANDS):
        key = chosen.choice(KEYS)
        words = [command.name.encode(), *[key] * (abs(command.arity) + 1)]
        assert user.denial(command, words) == other.denial(command, words), command.name
        assert user.may_read(key) == other.may_read(key)
        assert user.may_hear(key) == other.may_hear(key)
        assert user.may_hear_pattern(key) == other.may_hear_pattern(key)


@cache
def leaves() -> list[Command]:
    entries = TABLE.all().values()
    return [leaf for entry in entries for leaf in (entry, *entry.subcommands.values())]


_WORDS = (
    b"on", b"off", b"nopass", b"resetpass", b"reset", b"sanitize-payload", b"skip-sanitize-payload",
    b"clearselectors", b"allkeys", b"resetkeys", b"allchannels", b"resetchannels", b"allcommands",
    b"nocommands", b">pw", b"<pw", b"#" + b"a0" * 32, b"!" + b"a0" * 32, b"~*", b"~a*", b"%R~a",
    b"%W~a", b"%RW~a", b"%wr~", b"&*", b"&a", b"+@all", b"-@all", b"(+get ~x)", b"(", b")",
    b"(+@read", b"~x)",
    b"()", b"(~a)", b"|", b"+config|get", b"-config|set", b"+config", b"+select|0", b"+wcget|a",
    b"+client|",
)  # fmt: skip


def _rule(chosen: random.Random) -> bytes:
    """A rule that may well be a right one."""
    kind = chosen.randrange(4)
    sign = chosen.choice((b"+", b"-"))
    if kind == 0:
        return sign + b"@" + chosen.choice(sorted(CATEGORIES)).encode()
    if kind == 1:
        return sign + chosen.choice(leaves()).name.encode()
    if kind == 2:
        inner = [_rule(chosen) for _ in range(chosen.randrange(3))]
        return b"(" + chosen.choice((b" ", b"\n")).join(inner) + b")"
    return chosen.choice(_WORDS)


def mutate(data: bytes, chosen: random.Random) -> bytes:
    lines = data.split(b"\n")
    for _ in range(chosen.randint(1, 3)):
        place = chosen.randint(1, len(lines))
        match chosen.randrange(5):
            case 0 | 1:
                lines.insert(place, _rule(chosen))
            case 2:
                lines[place : place + 1] = []
            case 3:
                lines.insert(place, chosen.choice(lines))
            case _:
                lines.insert(place, ANOTHER)
    return b"\n".join(lines)


TARGET = Target(
    run,
    tokens=(
        *_WORDS, b"\n", b"\n--\n", b"\x00", b"\xff", b" ", b"+@", b"-@", b"%", b"~", b"+", b"-",
        *(b"@" + category.encode() for category in CATEGORIES),
    ),
    mutate=mutate,
    max_bytes=1500,
)  # fmt: skip
