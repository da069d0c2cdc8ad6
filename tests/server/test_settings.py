"""Settings: redis.conf and the command line are read as redis-server reads them.

Every directive is taken from the table itself, so a new one is tested as soon as it is there:
its default is written and read back, and redis.conf.example must be what the table says.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example as sample
from hypothesis import given
from hypothesis import strategies as st

from commands.observing.redaction import REDACTED, redacted
from commands.publishing.notifications import WIDE_COLUMN, parse_flags
from resp_server.server import rocks_settings
from resp_server.settings import (
    DIRECTIVES,
    FIXED,
    BadSetting,
    OutputLimit,
    OutputLimits,
    Settings,
    apply,
    apply_text,
    configuration_file,
    example,
    from_command_line,
    split_line,
)
from resp_server.settings.fixed import MEANINGLESS, UNSUPPORTED
from storage.rocks.options import RocksSettings
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
    "proto-max-bulk-len \u0661048577mb",
    "proto-max-bulk-len 2097152\u212a",
    "port",
    "port 1 2",
    "port x",
    "port 1.5",
    "port -1",
    "port 65536",
    "port 0x10",
    "port 99999999999999999999999",
    'port ""',
    "port 08",
    "maxclients 0",
    "maxclients 4294967296",
    "databases 0",
    "tcp-backlog -1",
    "timeout -1",
    "timeout 2147483648",
    "tcp-keepalive -1",
    "slowlog-log-slower-than -2",
    "slowlog-log-slower-than 9223372036854775808",
    "latency-tracking-info-percentiles 50 x",
    "latency-tracking-info-percentiles 50,99",
    "latency-tracking-info-percentiles 101",
    "latency-tracking-info-percentiles nan",
    "notify-keyspace-events Q",
    "notify-keyspace-events K E",
    "client-output-buffer-limit normal 0 0",
    "client-output-buffer-limit monitor 0 0 0",
    "client-output-buffer-limit normal 1xb 0 0",
    "client-output-buffer-limit normal 0 0 -1",
    "tls-auth-clients perhaps",
    "tls-protocols TLSv1.2 TLSv1.3",
    'tls-protocols "TLSv1.2 SSLv3"',
    "supervised upstart",
    "user",
    "include",
    "include a b",
    'bind a ""',
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
    assert (
        "'appendfsync': argument(s) must be one of the following: everysec, always, no"
        in refusal("appendfsync 1")
    )
    assert "'wc-auto-create': argument must be 'yes' or 'no'" in refusal("wc-auto-create 1")
    assert (
        "'proto-max-bulk-len': argument must be between 1048576 and 9223372036854775807 inclusive"
        in refusal("proto-max-bulk-len 1")
    )
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


def test_all_bad_lines_are_told_at_once() -> None:
    message = refusal("port x\nport 7000\nprot 1\n")
    assert message.splitlines() == [
        "test.conf, line 1: 'port': argument couldn't be parsed into an integer",
        ">>> 'port x'",
        "test.conf, line 3: unknown directive 'prot'. Did you mean 'port'?",
        ">>> 'prot 1'",
    ]


@pytest.mark.parametrize("name", sorted(MEANINGLESS))
def test_a_directive_that_changes_nothing_is_refused_with_that_reason(name: str) -> None:
    assert f"'{name}' is a directive of Redis that changes nothing here" in refusal(f"{name} 1")


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_supported_is_refused_with_what_to_do(name: str) -> None:
    assert f"'{name}' is not supported: {UNSUPPORTED[name]}" in refusal(f"{name} a b")


# Directives with a history: several lines, several words, several files


def test_limits_of_client_classes_add_up() -> None:
    limits = parsed(
        "client-output-buffer-limit normal 1mb 2kb 3\n"
        "client-output-buffer-limit PUBSUB 4 5 6 slave 7 8 9\n"
        "client-output-buffer-limit replica 0 0 0\n"
    ).client_output_buffer_limit
    assert limits == OutputLimits(
        OutputLimit(1024**2, 2048, 3), OutputLimit(0, 0, 0), OutputLimit(4, 5, 6)
    )


def test_users_are_kept_in_order_as_they_are() -> None:
    settings = parsed('user bob on >"a b" ~x\nport 7000\nUSER Alice off "&a b"\n')
    assert settings.user == (("bob", "on", ">a b", "~x"), ("Alice", "off", "&a b"))


@pytest.mark.parametrize(
    ("written", "flags"),
    [
        ("", ""),
        ("K", "K"),
        ("KEA", "AKE"),
        ("Elg", "glE"),
        ("g$lshzxetdwKE", "AKE"),
        ("g$lshzxetdKE", "g$lshzxetdKE"),
        ("nmEKtexzhsl$g", "g$lshzxetnKEm"),
        ("mA", "Am"),
        ("wK", "wK"),
        ("KK", "K"),
    ],
)
def test_events_are_written_in_order(written: str, flags: str) -> None:
    kind = DIRECTIVES["notify-keyspace-events"].kind
    assert kind.show(kind.read([written])) == flags


def test_all_events_are_those_of_datasets_too() -> None:
    assert parsed("notify-keyspace-events KA").notify_keyspace_events & WIDE_COLUMN


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_directive_takes_its_one_value(name: str) -> None:
    fixed = FIXED[name]
    assert parsed(f"{name} {fixed.kind.write(fixed.value)}") == Settings()
    assert fixed.text.endswith(".")


@pytest.mark.parametrize(
    "line",
    [
        "daemonize yes",
        "save 60 1",
        "appendonly no",
        "maxmemory 1gb",
        "maxmemory-policy allkeys-lru",
        "replicaof 127.0.0.1 6379",
        "slaveof 127.0.0.1 6379",
        "cluster-enabled yes",
        "lua-time-limit 1",
        "hz 100",
        "io-threads 4",
        "tls-ciphersuites TLS_AES_128_GCM_SHA256",
    ],
)
def test_a_fixed_directive_refuses_others_in_one_line(line: str) -> None:
    name = line.split()[0]
    place, shown = refusal(line).splitlines()
    value = FIXED[name].kind.write(FIXED[name].value)
    assert f"'{name}': it can only be {value} here. {FIXED[name].text}" in place
    assert shown == f">>> '{line}'"


def test_fixed_directives_may_be_written_otherwise() -> None:
    assert parsed("save\nmaxmemory 0mb\nreplicaof NO ONE\nappendonly YES\n") == Settings()


# Included files


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a subdirectory `more`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more").mkdir()
    return tmp_path


def test_a_file_is_read_where_it_is_included(directory: Path) -> None:
    (directory / "more/a.conf").write_text("port 2\ntimeout 2\nmaxclients 2\n")
    settings = parsed("port 1\ntimeout 1\ninclude more/a.conf\ntimeout 3\n")
    assert (settings.port, settings.timeout, settings.maxclients) == (2, 3, 2)


def test_included_files_are_looked_for_from_the_working_directory(directory: Path) -> None:
    (directory / "more/main.conf").write_text("include b.conf\n")
    (directory / "more/b.conf").write_text("timeout 1\n")
    (directory / "b.conf").write_text("timeout 2\n")
    assert from_command_line(["more/main.conf"]).timeout == 2


def test_a_pattern_includes_files_in_their_order(directory: Path) -> None:
    for number, name in enumerate(["b", "a", "c"]):
        (directory / f"more/{name}.conf").write_text(f"timeout {number}\nuser {name}\n")
    settings = parsed("include more/*.conf\n")
    assert settings.timeout == 2
    assert settings.user == (("a",), ("b",), ("c",))
    assert parsed("include more/*.nothing\n") == Settings()


def test_an_included_file_may_include_others(directory: Path) -> None:
    (directory / "a.conf").write_text("include b.conf\ninclude b.conf\n")
    (directory / "b.conf").write_text("user x\n")
    assert parsed("include a.conf").user == (("x",), ("x",))


def test_an_included_file_that_is_not_there(directory: Path) -> None:
    assert refusal("\ninclude more/a.conf") == (
        "test.conf, line 2: cannot read more/a.conf: No such file or directory\n"
        ">>> 'include more/a.conf'"
    )
    assert "cannot read it: " in refusal('include "a\\x00b"')


def test_a_bad_line_of_an_included_file_names_that_file(directory: Path) -> None:
    (directory / "more/a.conf").write_text("\nport x\n")
    assert refusal("include more/a.conf").startswith("more/a.conf, line 2: 'port': ")


def test_files_that_include_each_other_are_an_error(directory: Path) -> None:
    (directory / "a.conf").write_text("port 7000\ninclude b.conf\n")
    (directory / "b.conf").write_text("include more/../a.conf\n")
    with pytest.raises(BadSetting) as caught:
        from_command_line(["a.conf"])
    assert str(caught.value) == (
        "b.conf, line 1: more/../a.conf includes itself\n>>> 'include more/../a.conf'"
    )


# The command line


Stdin = Callable[[str], None]


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Stdin:
    """Sets what the standard input has."""

    def give(text: str) -> None:
        stream = SimpleNamespace(buffer=io.BytesIO(text.encode("utf-8", "surrogateescape")))
        monkeypatch.setattr("sys.stdin", stream)

    return give


@pytest.mark.parametrize(
    "words", [["-"], ["-", "--maxclients", "3"], ["--maxclients", "3", "-"], ["FILE", "-"]]
)
def test_the_standard_input_goes_over_the_file_and_under_the_directives(
    words: list[str], stdin: Stdin, tmp_path: Path
) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("port 1\ntimeout 1\n")
    stdin("timeout 2\nmaxclients 2\n")
    settings = from_command_line([word.replace("FILE", str(file)) for word in words])
    assert settings == Settings(
        port=1 if "FILE" in words else 6379,
        timeout=2,
        maxclients=3 if "--maxclients" in words else 2,
    )


def test_a_bad_line_of_the_standard_input(stdin: Stdin) -> None:
    stdin("timeout x\n")
    with pytest.raises(BadSetting, match="the standard input, line 1: 'timeout': "):
        from_command_line(["-"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--port 7000", "--timeout 5"], Settings(port=7000, timeout=5)),
        (["--requirepass", "--secret", "--port", "1"], Settings(requirepass="--secret", port=1)),
        (["--requirepass", "a", "--port=", "1"], None),
        (["--save", "--port", "1"], Settings(port=1)),
        (["--save", "", "--port", "1"], Settings(port=1)),
        (["--save"], Settings()),
        (["--slowlog-log-slower-than", "-1"], Settings(slowlog_log_slower_than=-1)),
        (["--user", "a", "on", "--user", "b"], Settings(user=(("a", "on"), ("b",)))),
    ],
)
def test_words_of_the_command_line(words: list[str], expected: Settings | None) -> None:
    if expected is None:
        with pytest.raises(BadSetting):
            from_command_line(words)
    else:
        assert from_command_line(words) == expected


def test_a_file_may_be_included_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("port 7000\n")
    assert from_command_line(["--include", str(tmp_path / "a.conf")]).port == 7000
    (tmp_path / "a.conf").write_text("port x\n")
    with pytest.raises(BadSetting, match=r"a\.conf, line 1: 'port': "):
        from_command_line(["--include", str(tmp_path / "a.conf")])


def test_the_configuration_file_is_known_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert configuration_file(["redis.conf", "--port", "1"]) == tmp_path / "redis.conf"
    assert configuration_file(["/etc/redis.conf"]) == Path("/etc/redis.conf")
    assert configuration_file(["--port", "1"]) is None
    assert configuration_file(["-"]) is None
    assert configuration_file([]) is None


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
        (["--port", "x"], "the command line: 'port': argument couldn't be parsed into an integer"),
        (["--port", "--bind", "a"], "the command line: 'port': wrong number of arguments"),
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
    "wc-compaction-cron": ["", "*/5 1-3 * * mon"],
    "wc-compaction-checker-cron": ["", "0 4 1 * *"],
    "wc-write-queue-limit": [1, 1024, 2**30],
    "wc-row-cache-bytes": [0, 1024, 2**30],
    "bind": [(), ("*",), ("*", "-::*"), ("127.0.0.1", "-::1"), ("a b",)],
    "port": [0, 65535],
    "tcp-backlog": [0, 65535],
    "unixsocket": ["/run/colonnade.sock", "/with space/and'quote", "back\\slash"],
    "unixsocketperm": [0, 0o7, 0o777],
    "protected-mode": [False],
    "timeout": [1, 2**31 - 1],
    "tcp-keepalive": [0, 60],
    "maxclients": [1, 2**32 - 1],
    "client-output-buffer-limit": [
        OutputLimits(OutputLimit(1, 2, 3), OutputLimit(0, 0, 0), OutputLimit(1024, 10**6, 60)),
    ],
    "tls-port": [6380],
    "tls-cert-file": ["/a b.pem"],
    "tls-key-file": ["key.pem"],
    "tls-key-file-pass": ["#", " "],
    "tls-ca-cert-file": ["ca.pem"],
    "tls-ca-cert-dir": ["/etc/ssl/certs"],
    "tls-auth-clients": ["no", "optional"],
    "tls-protocols": ["TLSv1.3", "TLSv1.2 TLSv1.3"],
    "tls-ciphers": ["HIGH:!aNULL"],
    "tls-prefer-server-ciphers": [True],
    "log-format": ["json"],
    "pidfile": ["/run/colonnade.pid"],
    "supervised": ["auto", "systemd"],
    "aclfile": ["users.acl"],
    "acllog-max-len": [0, 2**63 - 1],
    "acl-pubsub-default": ["allchannels"],
    "enable-debug-command": ["yes", "local"],
    "slowlog-log-slower-than": [-1, 0, 2**63 - 1],
    "slowlog-max-len": [0, 2**63 - 1],
    "latency-monitor-threshold": [1],
    "latency-tracking": [False],
    "latency-tracking-info-percentiles": [(), (0.0, 100.0), (99.99, 50.0, 33.333333, 1e-7)],
    "metrics-port": [1, 9121, 65535],
    "metrics-bind": ["*", "::1", "localhost"],
    "notify-keyspace-events": [parse_flags("KA"), parse_flags("Ewx"), parse_flags("AKEmn")],
    "proto-max-bulk-len": [1024**2, 1024**2 + 1, 10**6 * 7, 1024**3, 5 * 1024**2 + 1024],
    "client-query-buffer-limit": [1024**2, 3 * 1024**3],
    "databases": [1, 2**31 - 1],
    "loglevel": ["debug", "verbose", "notice", "warning"],
    "logfile": ["/var/log/colonnade.log", "#file"],
    "requirepass": ['"', "'", "#", "\\", "a b", "ümlaut", "\t", "\\x41", "\udcff"],
    "dir": [".", "/", "/a b"],
    "wc-engine": ["rocksdb", "memory"],
    "appendfsync": ["always", "everysec", "no"],
    "backup-keep": [0, 10_000],
    "backup-cron": ["0 3 * * *", "*/5 0-6,22 * jan mon-fri"],
    "backup-url": ["s3://bucket/a folder", "/mnt/backups"],
    "backup-url-keep": [1, 10_000],
    "rocksdb-block-cache-size": [1024**2, 10**9],
    "rocksdb-block-size": [1024, 12345],
    "rocksdb-compression": ["none", "zstd"],
    "rocksdb-bottommost-compression": ["none", "zstd"],
    "rocksdb-write-buffer-size": [1024**2, 256 * 1024**2],
    "rocksdb-max-write-buffer-number": [2, 1_000],
    "rocksdb-db-write-buffer-size": [1024**2, 10**9],
    "rocksdb-max-total-wal-size": [1024**2, 10**9],
    "rocksdb-level0-file-num-compaction-trigger": [1, 100_000],
    "rocksdb-level0-slowdown-writes-trigger": [1, 100_000],
    "rocksdb-level0-stop-writes-trigger": [1, 100_000],
    "rocksdb-max-bytes-for-level-base": [1024**2, 10**12],
    "rocksdb-target-file-size-base": [1024**2, 10**9],
    "rocksdb-max-background-jobs": [1, 1_000],
    "rocksdb-rate-limiter-bytes-per-sec": [1024**2, 12345678],
    "rocksdb-max-open-files": [1000],
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
    assert directive.text.endswith(".")
    assert directive.section


def test_the_store_has_the_same_defaults() -> None:
    least = dataclasses.replace(
        Settings(), rocksdb_block_cache_size=64 * 1024**2
    )  # else it suits the machine
    assert rocks_settings(least) == RocksSettings()


ROCKS = [name for name in DIRECTIVES if name.startswith("rocksdb-")]


def test_each_directive_for_the_store_sets_something_else_there() -> None:
    changed: list[str] = []
    for name in ROCKS:
        value = OTHER_VALUES[name][0]
        before = dataclasses.asdict(rocks_settings(from_command_line([])))
        after = dataclasses.asdict(rocks_settings(from_command_line([f"--{name}", str(value)])))
        ((field, _),) = after.items() - before.items()
        assert after[field] == value
        changed.append(field)
    assert sorted(changed) == sorted(item.name for item in dataclasses.fields(RocksSettings))


def test_every_field_but_users_is_a_directive() -> None:
    assert [item.name for item in dataclasses.fields(Settings)] == [
        *(directive.attribute for directive in DIRECTIVES.values()),
        "user",
    ]


def test_a_name_is_in_one_table() -> None:
    tables = [set(DIRECTIVES), set(FIXED), set(MEANINGLESS), set(UNSUPPORTED)]
    assert sum(map(len, tables)) == len(set.union(*tables))


def test_secrets_are_hidden_from_the_slow_log_and_monitors() -> None:
    secrets = {name for name, directive in DIRECTIVES.items() if directive.sensitive}
    assert secrets == {"requirepass", "tls-key-file-pass"}
    for name in secrets:
        words = [b"CONFIG", b"SET", name.encode(), b"secret"]
        assert redacted("config|set", words) == [*words[:3], REDACTED]


# redis.conf.example


def test_the_example_is_what_the_table_says() -> None:
    """If this fails: `make docs`, or see CONTRIBUTING.md."""
    assert (ROOT / "redis.conf.example").read_text(encoding="utf-8") == example()


def test_the_example_says_the_defaults() -> None:
    assert from_command_line([str(ROOT / "redis.conf.example")]) == Settings()


def test_the_example_names_every_directive_once() -> None:
    names = [words[0] for words in map(split_line, example().splitlines()) if words]
    assert names == [*DIRECTIVES, *FIXED]


def test_the_example_shows_what_may_come_several_times() -> None:
    lines = [line.removeprefix("# ") for line in example().splitlines()]
    assert "include /path/to/local.conf" in lines
    (user,) = [line for line in lines if line.startswith("user ")]
    assert parsed(user).user == (tuple(user.split()[1:]),)
