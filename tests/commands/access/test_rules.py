"""The rule language: what rules make of a user, how it is described, and what is refused.

The descriptions and the texts of refusals were taken from redis-server 7.0.15.
"""

from __future__ import annotations

import contextlib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.access.rules import RuleLanguage, joined_selectors
from commands.access.user import User
from commands.errors import RuleProblem, UnmatchedParenthesis
from tests.commands.access.example import TABLE, user_of, words

A = hashlib.sha256(b"a").hexdigest()
B = hashlib.sha256(b"b").hexdigest()


@pytest.mark.parametrize(
    ("rules", "described"),
    [
        ("", "off resetchannels -@all"),
        ("on", "on resetchannels -@all"),
        ("on off", "off resetchannels -@all"),
        ("ON NoPass AllKeys AllChannels AllCommands", "on nopass ~* &* +@all"),
        ("reset", "off sanitize-payload resetchannels -@all"),
        ("on nopass +@all ~* &* (~a) reset", "off sanitize-payload resetchannels -@all"),
        ("skip-sanitize-payload", "off skip-sanitize-payload resetchannels -@all"),
        ("skip-sanitize-payload sanitize-payload", "off sanitize-payload resetchannels -@all"),
        # Passwords
        (">a", f"off #{A} resetchannels -@all"),
        (">a >b >a", f"off #{A} #{B} resetchannels -@all"),
        (f"#{A}", f"off #{A} resetchannels -@all"),
        (">a >b <a", f"off #{B} resetchannels -@all"),
        (f">a >b !{B}", f"off #{A} resetchannels -@all"),
        (">a nopass", "off nopass resetchannels -@all"),
        ("nopass >a", f"off #{A} resetchannels -@all"),
        ("nopass resetpass", "off resetchannels -@all"),
        (">a resetpass", "off resetchannels -@all"),
        (">", f"off #{hashlib.sha256(b'').hexdigest()} resetchannels -@all"),
        # Keys
        ("~a ~b ~a", "off ~a ~b resetchannels -@all"),
        ("%R~a %W~b %RW~c %wr~d %r~e", "off %R~a %W~b ~c ~d %R~e resetchannels -@all"),
        ("%R~a %W~a", "off ~a resetchannels -@all"),
        ("~a allkeys", "off ~* resetchannels -@all"),
        ("~* ~*", "off ~* resetchannels -@all"),
        ("~* resetkeys ~a", "off ~a resetchannels -@all"),
        ("~", "off ~ resetchannels -@all"),
        ("%R", "off %R~ resetchannels -@all"),
        ("%R~~a", "off %R~~a resetchannels -@all"),
        # Channels
        ("&a &b &a", "off resetchannels &a &b -@all"),
        ("&a allchannels", "off &* -@all"),
        ("&* resetchannels &a", "off resetchannels &a -@all"),
        # Commands
        ("+get", "off resetchannels -@all +get"),
        ("+GET", "off resetchannels -@all +get"),
        ("+get -get", "off resetchannels -@all"),
        ("+@all -get +get", "off resetchannels +@all"),
        ("+@all -@all +get", "off resetchannels -@all +get"),
        ("-get", "off resetchannels -@all"),
        ("+@all -get -@string", "off resetchannels +@all -@string"),
        ("+get +@read", "off resetchannels -@all +@read"),
        ("+@READ -get", "off resetchannels -@all +@read -get"),
        ("+set +@hash", "off resetchannels -@all +@hash +set"),
        ("+@string +@hash -@string", "off resetchannels -@all +@hash"),
        ("+@all -@admin", "off resetchannels +@all -@admin"),
        ("+config|get", "off resetchannels -@all +config|get"),
        ("+Config|GET", "off resetchannels -@all +config|get"),
        ("+config|get +config", "off resetchannels -@all +config"),
        ("+config -config|get", "off resetchannels -@all +config -config|get"),
        ("+@all -config", "off resetchannels +@all -config"),
        # A category that holds no command yet
        ("+@geo", "off resetchannels -@all +@geo"),
        ("+@geo -@geo", "off resetchannels -@all"),
        ("+@all -@geo", "off resetchannels +@all -@geo"),
        # The order matters where a category takes a part of a command away
        ("+config -@admin +get", "off resetchannels -@all +config -@admin +get"),
        # First arguments
        ("+select|0 +SELECT|0 +Select|1", "off resetchannels -@all +select|0 +select|1"),
        ("+select|0 +select", "off resetchannels -@all +select"),
        ("+select +select|0", "off resetchannels -@all +select"),
        ("+select +select|0 -select", "off resetchannels -@all"),
        ("+select|0 +@connection", "off resetchannels -@all +@connection"),
        ("+select|0 +@all -select +select|7", "off resetchannels +@all -select +select|7"),
        # Selectors
        ("()", "off resetchannels -@all (resetchannels -@all)"),
        ("(+get) clearselectors", "off resetchannels -@all"),
        ("+get (+@all) (&b)", "off resetchannels -@all +get (resetchannels +@all)"
         " (resetchannels &b -@all)"),
    ],
)  # fmt: skip
def test_rules_make_a_user(rules: str, described: str) -> None:
    assert user_of(rules).describe().decode() == described


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("wat", "Syntax error"),
        (")", "Syntax error"),
        ("%Rx~a", "Syntax error"),
        ("%RR~a", "Syntax error"),
        ("%~a", "Syntax error"),
        ("(on)", "Syntax error"),
        ("(reset)", "Syntax error"),
        ("((+get))", "Syntax error"),
        ("+select|", "Syntax error"),
        ("+config|", "Syntax error"),
        ("+", "Unknown command or category name in ACL"),
        ("-", "Unknown command or category name in ACL"),
        ("+@", "Unknown command or category name in ACL"),
        ("+nosuch", "Unknown command or category name in ACL"),
        ("-nosuch", "Unknown command or category name in ACL"),
        ("+@nosuch", "Unknown command or category name in ACL"),
        ("-@nosuch", "Unknown command or category name in ACL"),
        ("+nosuch|x", "Unknown command or category name in ACL"),
        ("-select|0", "Unknown command or category name in ACL"),
        ("+config|nosuch", "Unknown command or category name in ACL"),
        ("-config|nosuch", "Unknown command or category name in ACL"),
        ("-config|get|x", "Unknown command or category name in ACL"),
        ("(+nosuch)", "Unknown command or category name in ACL"),
        ("+config|get|x", "Allowing first-arg of a subcommand is not supported"),
        ("<a", "The password you are trying to remove from the user does not exist"),
        (f"!{A}", "The password you are trying to remove from the user does not exist"),
        ("#abc", "The password hash must be exactly 64 characters and contain only lowercase"
         " hexadecimal characters"),
        (f"!{A.upper()}", "The password hash must be exactly 64 characters and contain only"
         " lowercase hexadecimal characters"),
        ("allkeys ~a", "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid"
         " and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"),
        ("&* &a", "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid"
         " and does not have any effect. Try 'resetchannels' to start with an empty list of"
         " channels"),
    ],
)  # fmt: skip
def test_a_rule_is_refused(rules: str, problem: str) -> None:
    with pytest.raises(RuleProblem) as refused:
        user_of(rules)
    assert str(refused.value) == problem


@pytest.mark.parametrize("rule", [b"~a b", b"~a\tb", b"&a\nb", b"~\x00", b"%R~ ",
    b"+select|0 +@all", b"(~x) +get ~y)", b"+select|0\nuser x on nopass +@all"])  # fmt: skip
def test_a_rule_is_one_word_of_the_file(rule: bytes) -> None:
    language = RuleLanguage(TABLE)
    with pytest.raises(RuleProblem, match="Syntax error"):
        language.apply(language.new_user(b"x"), rule)


def test_an_empty_rule_changes_nothing() -> None:
    language = RuleLanguage(TABLE)
    user = language.new_user(b"x")
    language.apply(user, b"")
    assert user.describe() == b"off resetchannels -@all"


def test_a_selector_has_spaces_inside() -> None:
    language = RuleLanguage(TABLE)
    user = language.new_user(b"x")
    language.apply(user, b"( +get  %R~a\t&c )")
    assert user.describe() == b"off resetchannels -@all (%R~a resetchannels &c -@all +get)"


def test_users_may_begin_with_all_channels() -> None:
    language = RuleLanguage(TABLE)
    language.all_channels_at_first = True
    user = language.new_user(b"x")
    assert user.describe() == b"off &* -@all"
    language.apply(user, b"resetchannels")
    language.apply(user, b"()")
    assert user.describe() == b"off resetchannels -@all (&* -@all)"
    language.apply(user, b"reset")
    assert user.describe() == b"off sanitize-payload &* -@all"


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        ("", []),
        ("on ~a", ["on", "~a"]),
        ("(+get ~x) on", ["(+get ~x)", "on"]),
        ("(+get ~x ) (&a", None),
        ("( )", ["( )"]),
        ("() (a) )", ["()", "(a)", ")"]),
        ("(", None),
        ("on (a (b c)", ["on", "(a (b c)"]),
    ],
)
def test_a_selector_may_be_spread_over_words(given: str, joined: list[str] | None) -> None:
    if joined is None:
        with pytest.raises(UnmatchedParenthesis, match="starting at '\\("):
            joined_selectors(words(given))
    else:
        assert joined_selectors(words(given)) == [rule.encode() for rule in joined]


# Properties

PERMISSION_RULES = [
    *("~a", "%R~a", "%W~b*", "~*", "resetkeys", "&c", "&d*", "&*", "resetchannels"),
    *("+@all", "-@all", "+@read", "-@read", "+@string", "-@string", "+@admin", "-@admin"),
    *("+@fast", "-@fast", "+@slow", "-@slow", "+@geo", "-@geo", "+@pubsub", "-@connection"),
    *("+get", "-get", "+set", "-set", "+mget", "+config", "-config", "+config|get", "-config|get"),
    *("+config|set", "+select", "-select", "+select|0", "+select|one", "+publish", "+watch"),
]
USER_RULES = ["on", "off", "nopass", ">p", "resetpass", "clearselectors", "reset"]
PERMISSIONS = st.lists(st.sampled_from(PERMISSION_RULES), max_size=12)
SELECTORS = PERMISSIONS.map(lambda rules: f"({' '.join(rules)})")
RULES = st.lists(st.one_of(st.sampled_from(PERMISSION_RULES + USER_RULES), SELECTORS), max_size=15)
COMMANDS = [
    command
    for each in TABLE.all().values()
    for command in (each, *each.subcommands.values())
    if command.handler is not None
]


def made_by(rules: list[bytes]) -> User:
    """Rules that are refused are left out."""
    language = RuleLanguage(TABLE)
    user = language.new_user(b"x")
    for rule in rules:
        with contextlib.suppress(RuleProblem):
            language.apply(user, rule)
    return user


def decisions(user: User) -> list[object]:
    """What the user may do with each command and some names."""
    return [
        user.denial(command, [*command.name.encode().split(b"|"), name, b"0"])
        for command in COMMANDS
        for name in (b"a", b"b1", b"c", b"d*", b"0", b"ONE")
    ]


@given(RULES)
def test_a_description_makes_the_same_user_again(rules: list[str]) -> None:
    user = made_by([rule.encode() for rule in rules])
    described = user.describe()
    language = RuleLanguage(TABLE)
    again = language.new_user(b"x")
    for rule in joined_selectors(described.split()):
        language.apply(again, rule)
    assert again.describe() == described
    assert decisions(again) == decisions(user)
    assert again.unrestricted == user.unrestricted


COMMAND_RULES = [rule for rule in PERMISSION_RULES if rule[0] in "+-" and "select|" not in rule]


@given(st.lists(st.sampled_from(COMMAND_RULES), max_size=12))
def test_the_last_rule_that_names_a_command_decides(rules: list[str]) -> None:
    user = made_by([rule.encode() for rule in rules])
    expected: dict[str, bool] = {}
    for command in COMMANDS:
        names = {command.name, command.name.partition("|")[0], "@all"}
        names |= {f"@{category}" for category in command.categories}
        if "|" in command.name:
            container = TABLE.all()[command.name.partition("|")[0]]
            names |= {f"@{category}" for category in container.categories}
        verdicts = [rule[0] == "+" for rule in rules if rule[1:] in names]
        expected[command.name] = command.before_login or verdicts[-1:] == [True]
    assert {
        command.name: user.permissions[0].commands.allows(command.name) or command.before_login
        for command in COMMANDS
    } == expected
