"""Settings: redis.conf and the command line are read as redis-server reads them.

Every directive is taken from the table itself, so a new one is tested as soon as it is there:
its default is written and read back, and redis.conf.example must be what the table says.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example as sample
from hypothesis import given
from hypothesis import strategies as st

from resp_server.settings import (
    DIRECTIVES,
    BadSetting,
    Settings,
    apply,
    apply_text,
    example,
    from_command_line,
    split_line,
)
from tests.harness import ROOT


def parsed(text: str) -> Settings:
    settings = Settings()
    apply_text(settings, text, "test.conf")
    return settings


def refusal(text: str) -> str:
    with pytest.raises(BadSetting) as caught:
        parsed(text)
    return str(caught.value)


# The text of redis.conf


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("   \t ", []),
        ("# port 7000", []),
        ("   # port 7000", []),
        ("port 7000", ["port", "7000"]),
        ("  port\t7000  ", ["port", "7000"]),
        ('requirepass "two words"', ["requirepass", "two words"]),
        ("requirepass 'two words'", ["requirepass", "two words"]),
        ('requirepass ""', ["requirepass", ""]),
        ("requirepass a#b", ["requirepass", "a#b"]),
        ('requirepass "#b"', ["requirepass", "#b"]),
        ('requirepass "a\\"b\\\\c"', ["requirepass", 'a"b\\c']),
        ('requirepass "\\x41\\n"', ["requirepass", "A\n"]),
        ('requirepass "pässword"', ["requirepass", "pässword"]),
        ("bind 127.0.0.1 -::1", ["bind", "127.0.0.1", "-::1"]),
    ],
)
def test_a_line_is_split_into_words(line: str, words: list[str]) -> None:
    assert split_line(line) == words


def test_a_whole_file_is_read() -> None:
    settings = parsed(
        "# a comment\n"
        "\n"
        "port 7000\r\n"
        "  BIND 127.0.0.1 ::1\n"
        'requirepass "a # b"\n'
        "appendfsync ALWAYS\n"
        "wc-auto-create no\n"
        "unixsocketperm 770\n"
        "wc-page-bytes 1mb\n"
        "port 7001"
    )
    assert settings == Settings(
        port=7001,
        bind=("127.0.0.1", "::1"),
        requirepass="a # b",
        appendfsync="always",
        wc_auto_create=False,
        unixsocketperm=0o770,
        wc_page_bytes=1024 * 1024,
    )


def test_nothing_leaves_the_defaults() -> None:
    assert parsed("") == parsed("# port 1\n\n") == Settings()


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("1048577", 1048577),
        ("2097152b", 2097152),
        ("2000k", 2_000_000),
        ("2000kb", 2_048_000),
        ("2m", 2_000_000),
        ("2mb", 2 * 1024**2),
        ("2MB", 2 * 1024**2),
        ("1g", 1_000_000_000),
        ("1gb", 1024**3),
        ("1Gb", 1024**3),
    ],
)
def test_sizes_have_units(written: str, amount: int) -> None:
    assert parsed(f"proto-max-bulk-len {written}").proto_max_bulk_len == amount


@pytest.mark.parametrize(
    ("written", "value"), [("yes", True), ("no", False), ("YES", True), ("No", False)]
)
def test_switches_are_yes_or_no(written: str, value: bool) -> None:
    assert parsed(f"wc-auto-create {written}").wc_auto_create is value


@pytest.mark.parametrize(("written", "value"), [("0", 0), ("700", 0o700), ("0770", 0o770)])
def test_permissions_are_octal(written: str, value: int) -> None:
    assert parsed(f"unixsocketperm {written}").unixsocketperm == value


BAD_LINES = [
    "port",
    "port 1 2",
    "port x",
    "port 1.5",
    "port -1",
    "port 65536",
    "port 0x10",
    "port 99999999999999999999999",
    'port ""',
    "maxclients 0",
    "databases 0",
    "tcp-backlog 0",
    "proto-max-bulk-len 1",
    "proto-max-bulk-len -1",
    "proto-max-bulk-len 1tb",
    "proto-max-bulk-len mb",
    "proto-max-bulk-len 1.5mb",
    "proto-max-bulk-len 999999999999gb",
    "wc-auto-create maybe",
    "wc-auto-create 1",
    "wc-auto-create yes no",
    "unixsocketperm 888",
    "unixsocketperm 1777",
    "unixsocketperm -1",
    "unixsocketperm rwx",
    "loglevel loud",
    "appendfsync sometimes",
    "wc-engine tape",
    "wc-default-maxversions 100001",
    "wc-default-ttl -1",
    "wc-default-ttl 9223372036854775807",
    "dir",
    "dir a b",
    "bind",
    'requirepass "open',
    "requirepass 'open",
    'requirepass "a"b',
    "no-such-directive 1",
    "--port 7000",
]


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_bad_line_is_named_with_its_place(line: str) -> None:
    message = refusal(f"# first\n\n{line}\nport 7000\n")
    assert message.startswith("test.conf, line 3: ")
    assert message.endswith(f"\n>>> '{line}'")


def test_a_bad_value_names_the_directive_and_what_it_takes() -> None:
    assert "'port': argument must be between 0 and 65535 inclusive" in refusal("port 70000")
    assert "'appendfsync': argument must be one of: always, everysec, no" in refusal(
        "appendfsync 1"
    )
    assert "'wc-auto-create': argument must be one of: yes, no" in refusal("wc-auto-create 1")
    assert "'proto-max-bulk-len': argument must be at least 1mb" in refusal("proto-max-bulk-len 1")
    assert "'dir': wrong number of arguments" in refusal("dir a b")
    assert "'bind': wrong number of arguments" in refusal("bind")
    assert "unbalanced quotes" in refusal('dir "a')


def test_a_bad_value_changes_nothing() -> None:
    settings = Settings(port=7000)
    with pytest.raises(BadSetting):
        apply(settings, ["port", "70000"])
    assert settings == Settings(port=7000)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("prot", "port"), ("maxclient", "maxclients"), ("wc-page-column", "wc-page-columns")],
)
def test_an_unknown_directive_is_told_a_near_one(written: str, meant: str) -> None:
    assert f"unknown directive '{written}'. Did you mean '{meant}'?" in refusal(f"{written} 1")


def test_an_unknown_directive_with_nothing_near_is_just_unknown() -> None:
    message = refusal("zzzzzzzzzz 1")
    assert "unknown directive 'zzzzzzzzzz'" in message
    assert "mean" not in message


# The command line


def test_groups_of_the_command_line() -> None:
    settings = from_command_line(
        [
            "--port",
            "7000",
            "--bind",
            "127.0.0.1",
            "-::1",
            "--REQUIREPASS",
            "a b",
            "--unixsocket",
            "",
        ]
    )
    assert settings == Settings(
        port=7000, bind=("127.0.0.1", "-::1"), requirepass="a b", unixsocket=""
    )


def test_no_words_are_the_defaults() -> None:
    assert from_command_line([]) == Settings()


def test_the_command_line_goes_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("port 7000\nmaxclients 5\n")
    settings = from_command_line([str(file), "--port", "7001"])
    assert settings == Settings(port=7001, maxclients=5)


def test_the_file_may_hold_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_bytes(b"# caf\xe9\nrequirepass \xff\xfe\n")
    settings = from_command_line([str(file)])
    assert settings.requirepass.encode("utf-8", "surrogateescape") == b"\xff\xfe"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--port"], "the command line: 'port': wrong number of arguments"),
        (["--port", "x"], "the command line: 'port': argument must be between"),
        (["--prot", "1"], "the command line: unknown directive 'prot'. Did you mean 'port'?"),
        (["--", "1"], "expected --directive, got '--'"),
    ],
)
def test_a_bad_command_line_says_so(words: list[str], text: str) -> None:
    with pytest.raises(BadSetting) as caught:
        from_command_line(words)
    assert text in str(caught.value)


def test_words_after_the_file_must_be_directives(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("")
    with pytest.raises(BadSetting, match="expected --directive, got 'port'"):
        from_command_line([str(file), "port", "7000"])


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.conf", tmp_path):
        with pytest.raises(BadSetting, match=f"cannot read {path}: "):
            from_command_line([str(path)])


def test_a_bad_line_of_a_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("port 7000\nport x\n")
    with pytest.raises(BadSetting) as caught:
        from_command_line([str(file)])
    assert str(caught.value).startswith(f"{file}, line 2: 'port': ")


# Every directive


def read_back(name: str, value: Any) -> Any:
    """A value written as its kind writes it, in a file, and read again."""
    settings = parsed(f"{name} {DIRECTIVES[name].kind.write(value)}\n")
    return getattr(settings, DIRECTIVES[name].attribute)


@pytest.mark.parametrize("name", DIRECTIVES)
def test_a_default_is_read_back_as_it_was_written(name: str) -> None:
    directive = DIRECTIVES[name]
    value = read_back(name, directive.default)
    assert value == directive.default
    assert type(value) is type(directive.default)


OTHER_VALUES: dict[str, list[Any]] = {
    "bind": [("*",), ("127.0.0.1", "-::1"), ("a b",)],
    "port": [0, 65535],
    "tcp-backlog": [1, 65535],
    "unixsocket": ["/run/colonnade.sock", "/with space/and'quote", "back\\slash"],
    "unixsocketperm": [0, 0o7, 0o777],
    "maxclients": [1, 10**6],
    "proto-max-bulk-len": [1024**2, 1024**2 + 1, 10**6 * 7, 1024**3, 5 * 1024**2 + 1024],
    "client-query-buffer-limit": [1024**2, 3 * 1024**3],
    "databases": [1, 2**31 - 1],
    "loglevel": ["debug", "verbose", "notice", "warning"],
    "logfile": ["/var/log/colonnade.log", "#file"],
    "requirepass": ['"', "'", "#", "\\", "a b", "ümlaut", "\t", "\\x41", "\udcff"],
    "dir": [".", "/", "/a b"],
    "wc-engine": ["rocksdb", "memory"],
    "appendfsync": ["always", "everysec", "no"],
    "rocksdb-block-cache-size": [1024**2, 10**9],
    "rocksdb-write-buffer-size": [1024**2, 256 * 1024**2],
    "wc-auto-create": [True, False],
    "wc-default-maxversions": [1, 100_000],
    "wc-default-ttl": [1, (2**63 - 1) // 1000],
    "wc-page-columns": [1, 2**31 - 1],
    "wc-page-rows": [1, 2**31 - 1],
    "wc-page-cells": [1, 2**31 - 1],
    "wc-page-bytes": [1, 999, 1000, 1024, 8 * 1024**2 + 1],
    "wc-page-scan": [1, 2**31 - 1],
}


def test_other_values_are_given_for_every_directive() -> None:
    assert set(OTHER_VALUES) == set(DIRECTIVES)


@pytest.mark.parametrize("name", OTHER_VALUES)
def test_other_values_are_read_back_as_they_were_written(name: str) -> None:
    for value in OTHER_VALUES[name]:
        assert read_back(name, value) == value


@given(st.text())
@sample("a\nport 1")
@sample("a\x85b")
@sample("a\u2028b")
@sample("a\x00b")
@sample("a\\")
def test_any_text_is_read_back_as_it_was_written(text: str) -> None:
    settings = parsed(f"requirepass {DIRECTIVES['requirepass'].kind.write(text)}\n")
    assert settings == Settings(requirepass=text)


@pytest.mark.parametrize("name", DIRECTIVES)
def test_a_directive_is_described(name: str) -> None:
    directive = DIRECTIVES[name]
    assert name == name.lower()
    assert directive.attribute == name.replace("-", "_")
    assert directive.text.endswith((".", '"', ")"))
    assert directive.section


def test_every_field_is_a_directive() -> None:
    assert [item.name for item in dataclasses.fields(Settings)] == [
        directive.attribute for directive in DIRECTIVES.values()
    ]


# redis.conf.example


def test_the_example_is_what_the_table_says() -> None:
    """If this fails: `make docs`, or see CONTRIBUTING.md."""
    assert (ROOT / "redis.conf.example").read_text(encoding="utf-8") == example()


def test_the_example_says_the_defaults() -> None:
    assert from_command_line([str(ROOT / "redis.conf.example")]) == Settings()


def test_the_example_names_every_directive_once() -> None:
    names = [words[0] for words in map(split_line, example().splitlines()) if words]
    assert names == list(DIRECTIVES)
