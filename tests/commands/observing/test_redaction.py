"""No password is shown, whatever else was in the command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.observing.redaction import name_of, redacted

R = "(redacted)"


def shown(line: str) -> str:
    words = line.encode().split()
    return b" ".join(redacted(name_of(words), words)).decode()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("AUTH pw", f"AUTH {R}"),
        ("auth alice pw", f"auth {R} {R}"),
        ("AUTH a b pw", f"AUTH {R} {R} {R}"),
        ("AUTH", "AUTH"),
        ("HELLO", "HELLO"),
        ("HELLO 3", "HELLO 3"),
        ("HELLO 3 AUTH alice pw", f"HELLO 3 AUTH {R} {R}"),
        ("HELLO 3 auth alice pw SETNAME x", f"HELLO 3 auth {R} {R} SETNAME x"),
        ("HELLO 3 SETNAME auth AUTH alice pw", f"HELLO 3 SETNAME auth AUTH {R} {R}"),
        ("HELLO 3 AUTH auth auth SETNAME x", f"HELLO 3 AUTH {R} {R} SETNAME x"),
        ("HELLO 3 AUTH pw", f"HELLO 3 AUTH {R}"),
        ("HELLO AUTH alice pw", f"HELLO AUTH {R} {R}"),
        ("HELLO 3 SETNAME", "HELLO 3 SETNAME"),
        ("CONFIG SET requirepass pw", f"CONFIG SET requirepass {R}"),
        ("config set port 1 MasterAuth pw", f"config set port 1 MasterAuth {R}"),
        ("CONFIG SET masteruser u port 1", f"CONFIG SET masteruser {R} port 1"),
        ("CONFIG SET tls-key-file-pass pw", f"CONFIG SET tls-key-file-pass {R}"),
        ("CONFIG SET requirepass", "CONFIG SET requirepass"),
        ("CONFIG GET requirepass", "CONFIG GET requirepass"),
        ("CONFIG", "CONFIG"),
        ("ACL SETUSER alice on >pw ~*", f"ACL SETUSER {R} {R} {R} {R}"),
        ("acl setuser alice", f"acl setuser {R}"),
        ("ACL DELUSER alice", "ACL DELUSER alice"),
        ("ACL DRYRUN alice AUTH pw", f"ACL DRYRUN alice AUTH {R}"),
        ("ACL DRYRUN u config set requirepass pw", f"ACL DRYRUN u config set requirepass {R}"),
        ("ACL DRYRUN alice", "ACL DRYRUN alice"),
        ("SET auth pw", "SET auth pw"),
    ],
)  # fmt: skip
def test_what_is_shown(line: str, expected: str) -> None:
    assert shown(line) == expected


def test_the_words_themselves_are_left_alone() -> None:
    words = [b"HELLO", b"3", b"AUTH", b"alice", b"pw"]
    redacted("hello", words)
    assert words[-1] == b"pw"


@pytest.mark.parametrize(
    "line",
    ["AUTH {}", "AUTH u {}", "HELLO 2 AUTH u {}", "CONFIG SET requirepass {}", "ACL SETUSER u >{}"],
)
@given(password=st.text("abc{}^*", min_size=12))
def test_a_password_is_never_in_what_is_shown(line: str, password: str) -> None:
    words = line.replace("{}", password).encode().split()
    assert password.encode() not in b" ".join(redacted(name_of(words), words))
