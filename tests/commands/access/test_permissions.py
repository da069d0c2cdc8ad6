"""What a user may do: a table of denials, and that what is remembered is never out of date."""

from __future__ import annotations

import pytest

from commands.access import permissions
from commands.access.denials import Denial
from commands.access.rules import RuleLanguage
from commands.command import Access
from tests.commands.access.example import TABLE, user_of, words


@pytest.mark.parametrize(
    ("rules", "call", "denied"),
    [
        # Commands
        ("", "get a", "command get"),
        ("~*", "GET a", "command get"),
        ("+get", "get a", "key a"),
        ("+get ~*", "get a", None),
        ("+@read ~*", "get a", None),
        ("+@read ~*", "set a 1", "command set"),
        ("+@all -@string ~*", "get a", "command get"),
        ("+@all -@string ~*", "hget a f", None),
        ("", "auth p", None),
        ("+@all -auth", "auth u p", None),
        ("+config|get", "config get a", None),
        ("+config|get", "CONFIG SET a b", "command config|set"),
        ("+config", "config set a b", None),
        ("+@all -config|set", "config set a b", "command config|set"),
        ("+@admin", "config set a b", None),
        ("+select|0 +select|one", "select 0", None),
        ("+select|0 +select|one", "select ONE", None),
        ("+select|0", "select 1", "command select"),
        # Keys
        ("+@all ~a", "get a", None),
        ("+@all ~a", "get ab", "key ab"),
        ("+@all ~a*", "get ab", None),
        ("+@all ~a* ~b", "mget a1 b c d", "key c"),
        ("+@all ~a* ~b", "mget a1 b a2", None),
        ("+@all %R~a", "get a", None),
        ("+@all %R~a", "set a 1", "key a"),
        ("+@all %W~a", "set a 1", None),
        ("+@all %W~a", "get a", "key a"),
        ("+@all %R~a", "getset a 1", "key a"),
        ("+@all %W~a", "getset a 1", "key a"),
        ("+@all %RW~a", "getset a 1", None),
        ("+@all %R~a %W~a", "getset a 1", None),
        ("+@all %R~a* %W~*a", "getset a 1", "key a"),
        ("+@all %R~a", "watch a", None),
        ("+@all %W~a", "watch a", None),
        ("+@all ~b", "watch a", "key a"),
        ("+@all", "select 1", None),
        # Channels
        ("+@all", "publish c m", "channel c"),
        ("+@all &c", "publish c m", None),
        ("+@all &c*", "subscribe c1 d", "channel d"),
        ("+@all &c*", "subscribe c1 c2", None),
        ("+@all &c*", "psubscribe c*", None),
        ("+@all &c*", "psubscribe c1", "channel c1"),
        ("+@all &*", "psubscribe x", None),
        ("+@all &c", "ssubscribe c", None),
        ("+@all &c", "ssubscribe d", "channel d"),
        # Selectors: one must allow all of it; of several denials the nearest to a yes is told
        ("+get (+set ~a)", "set a 1", None),
        ("+get ~b (+set ~a)", "get a", "key a"),
        ("+get ~b (+set ~a)", "set b 1", "key b"),
        ("+get ~b (+set ~a)", "hget a f", "command hget"),
        ("+@read ~a (+@read ~b)", "get b", None),
        ("+@read ~a (+@read ~b)", "mget a b", "key b"),
        ("+@read ~a ~b (+@read ~b)", "mget a b c", "key c"),
        ("+@read ~b (+@read ~a ~b)", "mget a b c", "key c"),
        ("+@all ~a (+publish) (+publish &d)", "publish c m", "channel c"),
    ],
)
def test_what_is_denied(rules: str, call: str, denied: str | None) -> None:
    user = user_of(rules)
    given = words(call)
    found = user.denial(TABLE.resolve(given), given)
    assert (None if found is None else f"{found.reason} {found.name.decode()}") == denied
    assert user.denial(TABLE.resolve(given), given) == found, "the second time"


def test_a_denial_tells_where_the_name_stands() -> None:
    given = words("mget a b c")
    assert user_of("+@all ~a ~c").denial(TABLE.resolve(given), given) == Denial("key", b"b", 2)


@pytest.mark.parametrize(
    ("rules", "unrestricted"),
    [
        ("+@all ~* &*", True),
        ("+@all ~* &* -get +get", True),
        ("+@all ~* &* -get", False),
        ("+@all ~* &* -@geo", False),
        ("+@all ~*", False),
        ("+@all &*", False),
        ("+@all %R~* &*", False),
        ("", False),
    ],
)
def test_who_is_unrestricted(rules: str, unrestricted: bool) -> None:
    assert user_of(rules).unrestricted is unrestricted


def test_a_selector_may_make_a_user_unrestricted() -> None:
    language = RuleLanguage(TABLE)
    user = language.new_user(b"x")
    language.apply(user, b"(+@all ~* &*)")
    assert user.unrestricted


@pytest.mark.parametrize("commands", ["+@all", "+wcget", "+@read", "-@all (+wcscan ~*)"])
def test_what_may_be_shown_without_a_command(commands: str) -> None:
    user = user_of(f"{commands} %R~a* %W~b* ~c*")
    own = [name for name in ("a1", "b1", "c1", "d") if user.may_read(name.encode())]
    assert own == (["a1", "b1", "c1", "d"] if "(" in commands else ["a1", "c1"])


@pytest.mark.parametrize("commands", ["", "+@all -@read", "+@all -@widecolumn", "+wcdel +get"])
def test_who_may_run_no_reading_command_is_shown_nothing(commands: str) -> None:
    user = user_of(f"{commands} ~* &* (+wcget ~b)")
    assert not user.may_read(b"a")
    assert user.may_read(b"b")


def test_what_may_be_heard_without_a_command() -> None:
    user = user_of("&c*")
    assert user.may_hear(b"c1")
    assert not user.may_hear(b"d")
    assert user.may_hear_pattern(b"c*")
    assert not user.may_hear_pattern(b"c1")


def test_a_change_is_felt_at_once() -> None:
    language = RuleLanguage(TABLE)
    user = user_of("+get ~a")
    given = words("get a")
    command = TABLE.resolve(given)
    assert user.denial(command, given) is None
    for rule, denied in ((b"resetkeys", "key"), (b"~*", None), (b"-get", "command")):
        draft = user.copy()
        language.apply(draft, rule)
        user.become(draft)
        found = user.denial(command, given)
        assert (found and found.reason) == denied


def test_a_copy_leaves_the_first_as_it_was() -> None:
    language = RuleLanguage(TABLE)
    user = user_of("on >p ~a &c +get +select|0 () skip-sanitize-payload")
    before = user.describe()
    draft = user.copy()
    assert draft.describe() == before
    for rule in (b"off", b">q", b"%R~z", b"&z", b"+set", b"+select|1", b"(~z)", b"-get"):
        language.apply(draft, rule)
    assert user.describe() == before


def test_clients_cannot_fill_the_memory_with_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "_MOST_REMEMBERED", 10)
    user = user_of("+@all ~a* &a*")
    own = user.permissions[0]
    for number in range(100):
        assert user.may_read(b"a%d" % number)
        assert not user.may_hear(b"b%d" % number)
    assert 0 < len(own._reached[Access.READ]) <= 10
    assert 0 < len(own._heard) <= 10
    long = b"a" * 10_000
    assert user.may_read(long)
    assert long not in own._reached[Access.READ]
