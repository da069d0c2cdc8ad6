"""The ACL file: one line a user, as ACL LIST shows them, and nothing else but empty lines.

It is read whole or not at all, and replaced whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from commands.access.rules import RuleLanguage, has_space, joined_selectors
from commands.access.user import User
from commands.errors import (
    AclFileNotRead,
    AclFileRefused,
    RuleProblem,
    UnknownInRule,
    UnmatchedParenthesis,
    readable,
)
from commands.replacing import replace_file


def read(path: str, language: RuleLanguage) -> dict[bytes, User]:
    """The users of a file. AclFileNotRead, or AclFileRefused with all that is wrong with it."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise AclFileNotRead(path, error.strerror or str(error)) from None
    return parse(text, path, language)


def parse(text: bytes, source: str, language: RuleLanguage) -> dict[bytes, User]:
    """AclFileRefused names the source and every line that is wrong."""
    users: dict[bytes, User] = {}
    problems: list[str] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        words = line.strip(b" \t\r\n").split(b" ")
        if words != [b""]:
            problems += _add_user(users, words, f"{source}:{number}", language)
    if problems:
        raise AclFileRefused("".join(f"{problem} " for problem in problems))
    return users


def _add_user(
    users: dict[bytes, User], words: list[bytes], place: str, language: RuleLanguage
) -> list[str]:
    """What is wrong with the line of these words."""
    if words[0] != b"user" or len(words) < 2:
        return [f"{place} should start with user keyword followed by the username."]
    name = words[1]
    if has_space(name):
        return [f"'{place}: username '{readable(name)}' contains invalid characters."]
    if name in users:
        number = place.rpartition(":")[2]
        return [f"WARNING: Duplicate user '{readable(name)}' found on line {number}."]
    users[name] = language.new_user(name)
    try:
        rules = joined_selectors(words[2:])
    except UnmatchedParenthesis:
        return [f"{place}: Unmatched parenthesis in selector definition."]
    return list(_rule_problems(users[name], rules, place, language))


def _rule_problems(
    user: User, rules: Iterable[bytes], place: str, language: RuleLanguage
) -> Iterable[str]:
    """All unknown names, and the first problem of another kind: what follows it may follow from
    it."""
    told = False
    for rule in rules:
        rule = rule.strip(b"\t\r\n")
        try:
            language.apply(user, rule)
        except UnknownInRule as problem:
            yield f"{place}: Error in applying operation '{readable(rule)}': {problem}."
        except RuleProblem as problem:
            if not told:
                yield f"{place}: {problem}."
            told = True


def write(path: str, users: Iterable[User]) -> None:
    """Replace the file. OSError when that cannot be."""
    replace_file(Path(path), b"".join(user.line() + b"\n" for user in users))
