"""All users: logging in, changing them whole or not at all, and the file they are kept in."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.access.users import User, Users
from commands.errors import (
    AclFileNotRead,
    AclFileNotWritten,
    AclFileRefused,
    BadUserName,
    CommandError,
    DefaultUserStays,
    NoAclFile,
    RefusedRule,
    RefusedUserLine,
    UnmatchedParenthesis,
    UsersInTwoPlaces,
)
from tests.commands.access.example import TABLE, words

OPEN = b"user default on nopass ~* &* +@all"


@pytest.fixture
def users() -> Users:
    return Users(TABLE)


def lines(users: Users) -> list[bytes]:
    return [user.line() for user in users.all()]


def watched(users: Users) -> list[tuple[bytes, bool]]:
    """Changes that the server is told of from here on: names, and whether removed."""
    seen: list[tuple[bytes, bool]] = []
    users.on_change = lambda user, removed: seen.append((user.name, removed))
    return seen


# Logging in


def test_at_first_everybody_may_do_everything(users: Users) -> None:
    assert lines(users) == [OPEN]
    assert users.default.unrestricted
    assert not users.login_needed
    assert users.authenticate(b"default", b"anything") is users.default


def test_the_default_password(users: Users) -> None:
    seen = watched(users)
    users.set_default_password(b"secret")
    assert users.login_needed
    assert users.authenticate(b"default", b"secret") is users.default
    assert users.authenticate(b"default", b"wrong") is None
    assert users.authenticate(b"default", b"") is None
    users.set_default_password(b"")
    assert not users.login_needed
    assert seen == [(b"default", False), (b"default", False)]


@pytest.mark.parametrize(
    ("rules", "password", "fits"),
    [
        ("on >p", b"p", True),
        ("on >p", b"q", False),
        ("on >p >q", b"q", True),
        ("on >p >q <q", b"q", False),
        ("on nopass", b"", True),
        ("on nopass", b"x", True),
        ("on", b"", False),
        ("off >p", b"p", False),
        ("off nopass", b"p", False),
        ("on >", b"", True),
    ],
)
def test_logging_in(users: Users, rules: str, password: bytes, fits: bool) -> None:
    users.change(b"x", words(rules))
    assert users.authenticate(b"x", password) is (users.find(b"x") if fits else None)


def test_nobody_unknown_logs_in(users: Users) -> None:
    assert users.authenticate(b"nobody", b"") is None
    assert users.authenticate(b"DEFAULT", b"") is None


@pytest.mark.parametrize("name", [b"nobody", b"disabled", b"locked", b"known"])
def test_every_attempt_compares_a_digest(
    users: Users, name: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    users.change(b"disabled", words("off >p"))
    users.change(b"locked", words("on"))
    users.change(b"known", words("on >p"))
    compared: list[tuple[str, str]] = []

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert users.authenticate(name, b"p") is None
    assert [(len(one), len(other)) for one, other in compared] == [(64, 64)]


def test_no_digest_stands_for_a_missing_password(
    users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    users.change(b"locked", words("on"))
    monkeypatch.setattr("hmac.compare_digest", lambda _one, _other: True)
    assert users.authenticate(b"locked", b"p") is None
    assert users.authenticate(b"nobody", b"p") is None


# Changing


def test_a_new_user_may_nothing(users: Users) -> None:
    users.change(b"x", [])
    assert lines(users) == [OPEN, b"user x off resetchannels -@all"]


def test_rules_add_to_what_a_user_has(users: Users) -> None:
    seen = watched(users)
    users.change(b"x", words("on >p +get"))
    user = users.find(b"x")
    users.change(b"x", words("~a (+set ~b) -get"))
    assert users.find(b"x") is user
    assert lines(users)[1].endswith(b"~a resetchannels -@all (~b resetchannels -@all +set)")
    assert seen == [(b"x", False)]


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ("on +get wat ~a", "Error in ACL SETUSER modifier 'wat': Syntax error"),
        (
            "on (~x +nosuch)",
            "Error in ACL SETUSER modifier '(~x +nosuch)': Unknown command or category name in ACL",
        ),
    ],
)
def test_all_rules_or_none(users: Users, rules: str, error: str) -> None:
    users.change(b"x", words("off +set"))
    before = lines(users)
    seen = watched(users)
    for name in (b"x", b"new"):
        with pytest.raises(RefusedRule) as refused:
            users.change(name, words(rules))
        assert str(refused.value) == error
    assert lines(users) == before
    assert seen == []


def test_a_parenthesis_must_be_closed(users: Users) -> None:
    with pytest.raises(UnmatchedParenthesis) as refused:
        users.change(b"x", words("on (+get ~x"))
    assert str(refused.value) == "Unmatched parenthesis in acl selector starting at '(+get'."
    assert users.find(b"x") is None


@pytest.mark.parametrize("name", [b"a b", b"a\x00", b"\n"])
def test_a_name_has_no_spaces(users: Users, name: bytes) -> None:
    with pytest.raises(BadUserName):
        users.change(name, [b"on"])
    assert lines(users) == [OPEN]


def test_users_are_listed_by_name(users: Users) -> None:
    for name in (b"z", b"a", b"\xff", b""):
        users.change(name, [])
    assert [user.name for user in users.all()] == [b"", b"a", b"default", b"z", b"\xff"]


def test_deleting(users: Users) -> None:
    users.change(b"x", [])
    users.change(b"y", [])
    seen = watched(users)
    assert users.delete([b"x", b"x", b"nobody"]) == 1
    assert [user.name for user in users.all()] == [b"default", b"y"]
    assert seen == [(b"x", True)]


def test_the_default_user_stays(users: Users) -> None:
    users.change(b"x", [])
    with pytest.raises(DefaultUserStays):
        users.delete([b"x", b"default"])
    assert users.find(b"x") is not None


# The configuration


def test_users_of_the_configuration(users: Users) -> None:
    default = users.default
    users.set_default_password(b"secret")
    users.start([words("x on nopass (+get ~a)"), words("default on >p +@all")], "")
    assert users.default is default
    assert users.authenticate(b"default", b"p") is default
    assert users.authenticate(b"default", b"secret") is None
    assert [line.partition(b"#")[0] for line in lines(users)] == [
        b"user default on ",
        b"user x on nopass resetchannels -@all (~a resetchannels -@all +get)",
    ]


@pytest.mark.parametrize(
    ("declarations", "error"),
    [
        (["x on wat"], "Error in user declaration 'wat': Syntax error"),
        (
            ["x on +nosuch"],
            "Error in user declaration '+nosuch': Unknown command or category name in ACL",
        ),
        (
            ["x on (+get"],
            "Error in user declaration 'x':"
            " Unmatched parenthesis in acl selector starting at '(+get'.",
        ),
        (
            ["x on", "y on", "x off"],
            "Error in user declaration 'x': Duplicate user found."
            " A user can only be defined once in config files",
        ),
    ],
)
def test_a_declaration_is_refused(users: Users, declarations: list[str], error: str) -> None:
    with pytest.raises(RefusedUserLine) as refused:
        users.start([words(line) for line in declarations], "")
    assert str(refused.value) == error


def test_a_declared_name_has_no_spaces(users: Users) -> None:
    with pytest.raises(RefusedUserLine, match="'a b': Usernames can't contain spaces"):
        users.start([[b"a b", b"on"]], "")


def test_users_are_declared_in_one_place(users: Users, tmp_path: Path) -> None:
    with pytest.raises(UsersInTwoPlaces):
        users.start([words("x on")], str(tmp_path / "users.acl"))


# The file


@pytest.fixture
def path(tmp_path: Path, users: Users) -> Path:
    found = tmp_path / "users.acl"
    users.file = str(found)
    return found


def test_without_a_file(users: Users) -> None:
    for call in (users.load, users.save):
        with pytest.raises(NoAclFile):
            call()


def test_saving_and_loading(users: Users, path: Path) -> None:
    users.set_default_password(b"secret")
    users.change(b"x", words("on >p ~a %R~b &c +@read -get (+set ~d)"))
    users.change(b"y", words("reset +select|0"))
    users.save()
    assert path.read_bytes() == b"".join(line + b"\n" for line in lines(users))
    others = Users(TABLE)
    others.start([], str(path))
    assert lines(others) == lines(users)


def test_saving_replaces_the_file_and_leaves_no_other(users: Users, path: Path) -> None:
    users.save()
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    users.change(b"x", [])
    users.save()
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_bytes().startswith(OPEN + b"\nuser x ")
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_saved_leaves_no_file_behind(
    users: Users, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.mkdir()
    with pytest.raises(AclFileNotWritten):
        users.save()
    assert list(path.parent.iterdir()) == [path]
    assert "cannot write the ACL file" in caplog.text


def test_nowhere_to_save(users: Users, path: Path) -> None:
    users.file = str(path.parent / "missing" / "users.acl")
    with pytest.raises(AclFileNotWritten):
        users.save()


def test_loading_replaces_all_users(users: Users, path: Path) -> None:
    users.change(b"x", words("on +get"))
    users.change(b"gone", [])
    old = users.find(b"x")
    default = users.default
    seen = watched(users)
    path.write_bytes(b"user x on +set\r\n\n  user default on >p +@all  \n")
    users.load()
    assert users.find(b"gone") is None
    assert users.find(b"x") not in (None, old)
    assert users.default is default is users.find(b"default")
    assert users.login_needed
    assert sorted(seen) == [(b"default", False), (b"gone", True), (b"x", True)]


def test_a_file_without_the_default_user_opens_it(users: Users, path: Path) -> None:
    users.set_default_password(b"secret")
    path.write_bytes(b"")
    users.load()
    assert lines(users) == [OPEN]


def test_a_missing_file(users: Users, path: Path) -> None:
    with pytest.raises(AclFileNotRead) as refused:
        users.load()
    expected = f"Error loading ACLs, opening file '{path}': No such file or directory"
    assert str(refused.value) == expected


BROKEN = b"""\
user default on nopass ~* &* +@all
user a on >p +get ~x

usr c on
user
user d +nosuch +@nosuch2 ~* ~a wat (+nosuch3)
user a on
user e "on"
# comment
user f  on   +get
USER g on
user b off (+get ~q
user x\x0by on
"""


def test_a_broken_file_tells_all_that_is_wrong_and_changes_nothing(
    users: Users, path: Path
) -> None:
    users.change(b"x", words("on"))
    before: list[User] = users.all()
    seen = watched(users)
    path.write_bytes(BROKEN)
    with pytest.raises(AclFileRefused) as refused:
        users.load()
    unknown = "Unknown command or category name in ACL"
    starts = "should start with user keyword followed by the username."
    assert str(refused.value) == (
        f"{path}:4 {starts} {path}:5 {starts}"
        f" {path}:6: Error in applying operation '+nosuch': {unknown}."
        f" {path}:6: Error in applying operation '+@nosuch2': {unknown}."
        f" {path}:6: Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and"
        " does not have any effect. Try 'resetkeys' to start with an empty list of patterns."
        f" {path}:6: Error in applying operation '(+nosuch3)': {unknown}."
        " WARNING: Duplicate user 'a' found on line 7."
        f" {path}:8: Syntax error. {path}:9 {starts} {path}:11 {starts}"
        f" {path}:12: Unmatched parenthesis in selector definition."
        f" '{path}:13: username 'x\x0by' contains invalid characters."
        " WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
    )
    assert users.all() == before
    assert seen == []


def test_a_broken_file_stops_the_start(users: Users, path: Path) -> None:
    path.write_bytes(b"user x wat\n")
    with pytest.raises(CommandError, match=r"users\.acl:1: Syntax error"):
        users.start([], str(path))
