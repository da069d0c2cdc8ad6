"""Configuration: directives asked for, set all or none, and written back to the file.

Without a server: listeners and users are the test's own. Texts are those of redis-server 7.0.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.errors import CannotRewrite, CommandError, NoConfigurationFile
from resp_server.configuration import Configuration
from resp_server.rewriting import MARKER, rewritten
from resp_server.settings import DIRECTIVES, FIXED, BadSetting, Change, Settings, from_command_line
from resp_server.settings.reading import Reader

Names = frozenset[str]
LIVE = [name for name, directive in DIRECTIVES.items() if directive.change is Change.LIVE]


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
def configuration(settings: Settings) -> Configuration:
    return Configuration(settings)


def words(text: str) -> list[tuple[bytes, bytes]]:
    """`port=1 bind=a,b` as pairs; a comma stands for a space."""
    pairs = [word.partition("=") for word in text.split()]
    return [(name.encode(), value.replace(",", " ").encode()) for name, _, value in pairs]


def refusal(configuration: Configuration, text: str) -> str:
    with pytest.raises(CommandError) as caught:
        configuration.set(words(text))
    return str(caught.value)


# CONFIG GET


def test_a_name_is_answered_in_the_clients_spelling(configuration: Configuration) -> None:
    assert configuration.get([b"PORT"]) == {b"PORT": b"6379"}
    assert configuration.get([b"PORT", b"port"]) == {b"PORT": b"6379"}
    assert configuration.get([b"nothing", b""]) == {}


def test_patterns_are_answered_in_the_tables_spelling(configuration: Configuration) -> None:
    assert configuration.get([b"P[O]rt", b"SLOWLOG-*", b"port"]) == {
        b"port": b"6379",
        b"slowlog-log-slower-than": b"10000",
        b"slowlog-max-len": b"128",
    }


def test_everything_is_there_once(configuration: Configuration) -> None:
    everything = configuration.get([b"*", b"port", b"p*"])
    assert list(everything) == [name.encode() for name in (*DIRECTIVES, *FIXED)]
    assert b"user" not in everything


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("bind", "127.0.0.1"),
        ("proto-max-bulk-len", "536870912"),
        ("unixsocketperm", "700"),
        ("protected-mode", "yes"),
        ("requirepass", ""),
        ("latency-tracking-info-percentiles", "50 99 99.9"),
        ("notify-keyspace-events", ""),
        (
            "client-output-buffer-limit",
            "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        ),
        ("save", ""),
        ("appendonly", "yes"),
        ("maxmemory", "0"),
        ("replicaof", ""),
        ("daemonize", "no"),
    ],
)
def test_values_are_shown_as_redis_shows_them(
    configuration: Configuration, name: str, shown: str
) -> None:
    assert configuration.get([name.encode()]) == {name.encode(): shown.encode()}


def test_the_directory_is_shown_from_the_root(
    configuration: Configuration,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert configuration.get([b"dir"]) == {b"dir": os.fsencode(tmp_path / "data")}
    settings.dir = "/somewhere"
    assert configuration.get([b"dir"]) == {b"dir": b"/somewhere"}


def test_values_need_not_be_text(configuration: Configuration, settings: Settings) -> None:
    configuration.set([(b"requirepass", b"\xff \x00")])
    assert settings.requirepass.encode("utf-8", "surrogateescape") == b"\xff \x00"
    assert configuration.get([b"requirepass"]) == {b"requirepass": b"\xff \x00"}


# CONFIG SET


@pytest.mark.parametrize("name", LIVE)
def test_a_live_directive_takes_what_is_shown_of_it(
    configuration: Configuration, settings: Settings, name: str
) -> None:
    ((spelling, shown),) = configuration.get([name.encode()]).items()
    configuration.set([(spelling, shown)])
    assert settings == Settings()


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_directive_takes_what_is_shown_of_it_if_redis_lets_it(
    configuration: Configuration, name: str
) -> None:
    ((_, shown),) = configuration.get([name.encode()]).items()
    pair = (name.encode(), shown)
    if FIXED[name].change is Change.LIVE:
        configuration.set([pair])
    else:
        with pytest.raises(CommandError, match="can't set immutable config"):
            configuration.set([pair])


@pytest.mark.parametrize("name", sorted(set(DIRECTIVES) - set(LIVE)))
def test_other_directives_are_immutable(configuration: Configuration, name: str) -> None:
    why = "protected" if name == "dir" else "immutable"
    expected = f"CONFIG SET failed (possibly related to argument '{name}') - can't set {why} config"
    assert refusal(configuration, f"{name}=16") == expected


def test_several_are_set_at_once(configuration: Configuration, settings: Settings) -> None:
    configuration.set(
        words("MAXCLIENTS=7 bind=*,-::1 timeout=5 notify-keyspace-events=KEA requirepass=a,b")
    )
    assert (settings.maxclients, settings.timeout) == (7, 5)
    assert settings.bind == ("*", "-::1")
    assert settings.requirepass == "a b"
    assert configuration.get([b"notify*"]) == {b"notify-keyspace-events": b"AKE"}


def test_an_empty_bind_is_no_address(configuration: Configuration, settings: Settings) -> None:
    configuration.set([(b"bind", b"")])
    assert settings.bind == ()
    assert configuration.get([b"bind"]) == {b"bind": b""}


def test_limits_of_client_classes_add_up(configuration: Configuration) -> None:
    configuration.set(words("client-output-buffer-limit=normal,1mb,2kb,3,pubsub,4,5,6"))
    configuration.set(words("client-output-buffer-limit=REPLICA,7,8,9"))
    configuration.set(words("client-output-buffer-limit="))
    shown = b"normal 1048576 2048 3 slave 7 8 9 pubsub 4 5 6"
    assert configuration.get([b"client-output-*"]) == {b"client-output-buffer-limit": shown}


REFUSED = [
    ("nosuch=1", "Unknown option or number of arguments for CONFIG SET - 'nosuch'"),
    ("user=x", "Unknown option or number of arguments for CONFIG SET - 'user'"),
    ("include=x", "Unknown option or number of arguments for CONFIG SET - 'include'"),
    ("port=x nosuch=1", "Unknown option or number of arguments for CONFIG SET - 'nosuch'"),
    ("databases=3 nosuch=1", "databases: can't set immutable config"),
    ("nosuch=1 databases=3", "Unknown option or number of arguments for CONFIG SET - 'nosuch'"),
    ("DATABASES=3", "DATABASES: can't set immutable config"),
    ("timeout=1 TIMEOUT=1", "TIMEOUT: duplicate parameter"),
    ("PORT=x", "port: argument couldn't be parsed into an integer"),
    ("port=", "port: argument couldn't be parsed into an integer"),
    ("port=,1", "port: argument couldn't be parsed into an integer"),
    ("port=65536", "port: argument must be between 0 and 65535 inclusive"),
    ("maxclients=-1", "maxclients: argument must be between 1 and 4294967295 inclusive"),
    ("proto-max-bulk-len=1.5mb", "proto-max-bulk-len: argument must be a memory value"),
    ("proto-max-bulk-len=-5", "proto-max-bulk-len: argument must be a memory value"),
    (
        "client-query-buffer-limit=1",
        "client-query-buffer-limit: argument must be between 1048576 and 9223372036854775807"
        " inclusive",
    ),
    ("protected-mode=", "protected-mode: argument must be 'yes' or 'no'"),
    (
        "loglevel=loud",
        "loglevel: argument(s) must be one of the following: debug, verbose, notice, warning",
    ),
    (
        "tls-auth-clients=foo",
        "tls-auth-clients: argument(s) must be one of the following: no, yes, optional",
    ),
    (
        "latency-tracking-info-percentiles=50,,99",
        "latency-tracking-info-percentiles: Invalid latency-tracking-info-percentiles parameters",
    ),
    (
        "latency-tracking-info-percentiles=-1",
        "latency-tracking-info-percentiles: latency-tracking-info-percentiles parameters should sit"
        " between [0.0,100.0]",
    ),
    (
        "notify-keyspace-events=Q",
        "notify-keyspace-events: Invalid event class character. Use 'Ag$lshzxetdwnKEm'.",
    ),
    (
        "client-output-buffer-limit=normal,,1,2,3",
        "client-output-buffer-limit: Wrong number of arguments in buffer limit configuration.",
    ),
    (
        "client-output-buffer-limit=master,1,2,3",
        "client-output-buffer-limit: Invalid client class specified in buffer limit configuration.",
    ),
    (
        "client-output-buffer-limit=normal,1,2,x",
        "client-output-buffer-limit: Error in hard, soft or soft_seconds setting in buffer limit"
        " configuration.",
    ),
    ("bind=127.0.0.1,,::1", "bind: Failed to bind to specified addresses."),
    ("bind=" + ",".join("a" * 17), "bind: Too many bind addresses specified."),
    ("maxmemory=1gb", f"maxmemory: it can only be 0 here. {FIXED['maxmemory'].text}"),
    ("maxmemory=1x", "maxmemory: argument must be a memory value"),
    ("save=60,1", f'save: it can only be "" here. {FIXED["save"].text}'),
    ("save=60", "save: Invalid save parameters"),
    ("save=60,x", "save: Invalid save parameters"),
]


@pytest.mark.parametrize(("given", "text"), REFUSED)
def test_refusals_have_redis_texts(
    configuration: Configuration, settings: Settings, given: str, text: str
) -> None:
    name, colon, why = text.partition(": ")
    if colon:
        text = f"CONFIG SET failed (possibly related to argument '{name}') - {why}"
    assert refusal(configuration, f"slowlog-max-len=5 {given}") == text
    assert settings == Settings()


# Listeners


class Recorder:
    """A listener that notes what it is told, and the value of `timeout` at that moment."""

    def __init__(self, settings: Settings, refuses: str = "", directive: str = "") -> None:
        self._settings = settings
        self._refusal = BadSetting(refuses, directive) if refuses else None
        self.told: list[tuple[list[str], int]] = []

    def __call__(self, names: Names) -> None:
        self.told.append((sorted(names), self._settings.timeout))
        if self._refusal is not None:
            raise self._refusal


def test_listeners_are_told_what_changed(configuration: Configuration, settings: Settings) -> None:
    recorder = Recorder(settings)
    configuration.add_listener(recorder)
    configuration.set(words("maxclients=10000 timeout=5 slowlog-max-len=7 save="))
    configuration.set(words("maxclients=10000 timeout=5"))
    assert recorder.told == [(["slowlog-max-len", "timeout"], 5)]


def test_a_certificate_set_anew_is_a_change(
    configuration: Configuration, settings: Settings
) -> None:
    recorder = Recorder(settings)
    configuration.add_listener(recorder)
    configuration.set([(b"tls-cert-file", b""), (b"tls-ciphers", b"")])
    assert recorder.told == [(["tls-cert-file"], 0)]


def test_a_listener_that_refuses_takes_all_back(
    configuration: Configuration, settings: Settings
) -> None:
    before, after = Recorder(settings), Recorder(settings)
    refusing = Recorder(settings, "the port is taken", "port")
    for listener in (before, refusing, after):
        configuration.add_listener(listener)
    assert refusal(configuration, "timeout=5 port=7000") == (
        "CONFIG SET failed (possibly related to argument 'port') - the port is taken"
    )
    assert settings == Settings()
    assert before.told == [(["port", "timeout"], 5), (["port", "timeout"], 0)]
    assert refusing.told == [(["port", "timeout"], 5)]
    assert after.told == []


def test_a_refusal_without_a_name_is_related_to_the_first_change(
    configuration: Configuration, settings: Settings
) -> None:
    configuration.add_listener(Recorder(settings, "no"))
    assert "(possibly related to argument 'timeout') - no" in refusal(
        configuration, "maxclients=10000 timeout=5 port=7000"
    )


def test_a_listener_that_refuses_to_go_back_is_logged(
    configuration: Configuration, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    def refuses_to_go_back(_names: Names) -> None:
        if settings.timeout == 0:
            raise BadSetting("never")

    configuration.add_listener(refuses_to_go_back)
    configuration.add_listener(Recorder(settings, "no"))
    assert "timeout" in refusal(configuration, "timeout=5")
    assert settings == Settings()
    assert "timeout could not be taken back: never" in caplog.text


# CONFIG REWRITE

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Starts with a file, sets directives, rewrites the file, and checks that reading it again
    gives the settings. Returns what the file says then."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "redis.conf"

    def rewrite(text: str, changes: str = "", arguments: Sequence[str] = ()) -> str:
        file.write_text(text)
        settings = from_command_line([str(file), *arguments])
        configuration = Configuration(settings, file)
        if changes:
            configuration.set(words(changes))
        configuration.rewrite()
        assert from_command_line([str(file)]) == settings
        configuration.rewrite()
        return file.read_text()

    return rewrite


FILE = """\
# the head
PORT 7000

  # indented
maxclients   50
requirepass "a b"  \n\
proto-max-bulk-len 1024kb
save ""
# the tail
"""


def appended(*lines: str) -> str:
    return "".join(f"{line}\n" for line in ["", MARKER, *lines])


def test_what_is_right_stays_byte_for_byte(run: Run) -> None:
    assert run(FILE) == FILE
    assert run(FILE, "maxclients=50 timeout=0") == FILE


def test_a_changed_line_is_replaced_where_it_stands(run: Run) -> None:
    assert run(FILE, "maxclients=70 requirepass=#c,d proto-max-bulk-len=3mb port=0") == (
        FILE.replace("maxclients   50", "maxclients 70")
        .replace('requirepass "a b"  \n', 'requirepass "#c d"\n')
        .replace("1024kb", "3mb")
        .replace("PORT 7000", "port 0")
    )


def test_what_is_new_is_appended_below_a_marker(run: Run) -> None:
    expected = FILE + appended("bind 127.0.0.1 -::1", "timeout 5", "notify-keyspace-events AKE")
    assert run(FILE, "timeout=5 notify-keyspace-events=KEA bind=127.0.0.1,-::1") == expected
    assert run(expected, "slowlog-max-len=7") == expected + "slowlog-max-len 7\n"


def test_a_default_is_written_where_a_line_said_otherwise(run: Run) -> None:
    assert run(FILE, "maxclients=10000 timeout=0") == FILE.replace("  50", "10000")
    assert run("requirepass a\n", "requirepass=") == 'requirepass ""\n'


def test_the_command_line_gets_into_the_file(run: Run) -> None:
    assert run("port 7000\n", arguments=["--port", "7001", "--timeout", "5"]) == (
        "port 7001\n" + appended("timeout 5")
    )


def test_of_several_lines_the_first_is_kept(run: Run) -> None:
    assert run("port 1\ntimeout 1\nport 2\n") == "port 1\ntimeout 1\nport 2\n"
    assert run("port 1\ntimeout 1\nport 2\n", "port=3") == "port 3\ntimeout 1\n"


def test_limits_of_client_classes_become_one_line(run: Run) -> None:
    text = "".join(
        f"client-output-buffer-limit {limit}\nport {number}\n"
        for number, limit in enumerate(["normal 0 0 0", "replica 1 2 3"])
    )
    assert run(text) == text
    assert run(text, "client-output-buffer-limit=pubsub,1mb,2,3") == (
        "client-output-buffer-limit normal 0 0 0 replica 1 2 3 pubsub 1mb 2 3\nport 0\nport 1\n"
    )


def test_an_empty_or_missing_file_is_written(run: Run, tmp_path: Path) -> None:
    assert run("", "timeout=5") == f"{MARKER}\ntimeout 5\n"
    file = tmp_path / "missing.conf"
    Configuration(Settings(timeout=5), file).rewrite()
    assert file.read_text() == f"{MARKER}\ntimeout 5\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_without_an_end_of_line(run: Run) -> None:
    assert run("port 7000", "timeout=5") == "port 7000\n" + appended("timeout 5")


def test_included_files_stay_as_they_are(run: Run, tmp_path: Path) -> None:
    included = tmp_path / "more.conf"
    included.write_text("timeout 1\nmaxclients 7\n")
    text = "timeout 9\ninclude more.conf\nport 7000\n"
    assert run(text) == text
    assert run(text, "port=1") == text.replace("7000", "1")
    assert run(text, "maxclients=8") == text + appended("maxclients 8")
    assert included.read_text() == "timeout 1\nmaxclients 7\n"


def test_an_included_file_does_not_win_over_a_change(run: Run, tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("timeout 1\n")
    text = "timeout 9\ninclude more.conf\n"
    assert run(text, "timeout=2") == "include more.conf\n" + appended("timeout 2")


def test_a_line_that_cannot_be_read_becomes_a_comment(tmp_path: Path) -> None:
    """It came after the server was started, and would keep it from starting again."""
    file = tmp_path / "redis.conf"
    file.write_text('port 7000\nprot 7001\nrequirepass "a\ninclude missing.conf\n')
    Configuration(Settings(port=7000), file).rewrite()
    assert file.read_text() == (
        'port 7000\n# ??? prot 7001\n# ??? requirepass "a\ninclude missing.conf\n'
    )


def test_bytes_that_are_no_text_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_bytes(b"# caf\xe9\r\nport 7000\r\n")
    Configuration(Settings(port=7000, requirepass="\udcff"), file).rewrite()
    assert file.read_bytes() == b"# caf\xe9\r\nport 7000\r\n\n%b\nrequirepass \xff\n" % (
        MARKER.encode()
    )


def test_a_server_without_a_file(configuration: Configuration) -> None:
    with pytest.raises(NoConfigurationFile, match="The server is running without a config file"):
        configuration.rewrite()


def test_the_file_keeps_its_mode_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("")
    file.chmod(0o640)
    link = tmp_path / "link.conf"
    link.symlink_to(file)
    Configuration(Settings(timeout=5), link).rewrite()
    assert "timeout 5" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, file]


def test_a_file_that_cannot_be_written_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("port 7000\n")

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(CannotRewrite) as caught:
        Configuration(Settings(timeout=5), file).rewrite()
    assert str(caught.value) == "Rewriting config file: No space left on device"
    assert file.read_text() == "port 7000\n"
    assert list(tmp_path.iterdir()) == [file]


LINES = [
    "port 1",
    "  PORT 2 ",
    "timeout 5",
    "client-output-buffer-limit pubsub 1 2 3",
    "include INCLUDED",
    "prot 1",
    'port "1',
    "",
    "# a comment",
    "#port 7",
    MARKER,
]
CHANGES = ["port=0", "port=1", "timeout=0", "client-output-buffer-limit=pubsub,0,0,0"]


@given(
    before=st.lists(st.sampled_from(LINES)),
    included=st.lists(st.sampled_from(LINES[:4])),
    changes=st.lists(st.sampled_from(CHANGES)),
)
def test_a_rewritten_file_gives_the_settings_and_keeps_its_comments(
    before: list[str], included: list[str], changes: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        other = Path(directory) / "included.conf"
        other.write_text("\n".join(included))
        text = "\n".join(before).replace("INCLUDED", str(other))
        settings = read(text)
        configuration = Configuration(settings)
        for change in changes:
            configuration.set(words(change))
        after = rewritten(text, settings, [], ())
        assert read(after) == settings
        assert rewritten(after, settings, [], ()) == after
        kept = iter(after.splitlines())
        assert all(line in kept for line in text.splitlines() if line.startswith("#"))


def read(text: str) -> Settings:
    """The settings of the lines that can be read."""
    reader = Reader(Settings())
    reader.read(text, "")
    return reader.settings


# Users


class Users:
    """The users of a server, as their lines."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def __call__(self) -> list[bytes]:
        return [line.encode() for line in self.lines]


DEFAULT = "user default on nopass ~* &* +@all"
ALICE = "user alice on #00 ~* resetchannels -@all +get"
BOB = 'user bob off ~"a resetchannels -@all (~x* +wcget -@all)'


def test_user_lines_are_those_of_the_users(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("user alice on >secret\n# between\nuser carol on\nport 7000\n")
    settings = from_command_line([str(file)])
    users = Users(DEFAULT, ALICE, BOB)
    configuration = Configuration(settings, file, users)
    configuration.rewrite()
    bob = 'user bob off "~\\"a" resetchannels -@all (~x* +wcget -@all)'
    expected = f"{ALICE}\n# between\nport 7000\n" + appended(bob)
    assert file.read_text() == expected
    assert from_command_line([str(file)]).user[1] == tuple(BOB.split(" ")[1:])
    users.lines = [DEFAULT, BOB]
    configuration.rewrite()
    assert file.read_text() == expected.replace(f"{ALICE}\n", "")


def test_the_default_user_is_written_unless_requirepass_says_it(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("")
    digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"  # of "secret"
    users = Users(DEFAULT)
    configuration = Configuration(settings := Settings(), file, users)
    configuration.rewrite()
    assert file.read_text() == ""
    settings.requirepass, users.lines = "secret", [f"user default on #{digest} ~* &* +@all"]
    configuration.rewrite()
    assert file.read_text() == f"{MARKER}\nrequirepass secret\n"
    users.lines = [f"user default on #{digest} ~* &* +@all -flushall"]
    configuration.rewrite()
    assert file.read_text() == f"{MARKER}\nrequirepass secret\n{users.lines[0]}\n"


def test_users_of_an_acl_file_are_not_written(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("aclfile users.acl\n")
    Configuration(Settings(aclfile="users.acl"), file, Users(DEFAULT, ALICE)).rewrite()
    assert file.read_text() == "aclfile users.acl\n"


def test_users_of_an_included_file_stay_there_unless_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "redis.conf"
    file.write_text("include users.conf\n")
    (tmp_path / "users.conf").write_text("user alice on\n")
    users = Users(DEFAULT, ALICE)
    configuration = Configuration(Settings(), file, users)
    users.lines += [BOB]
    configuration.rewrite()
    assert "user bob" in file.read_text()
    assert "user alice" not in file.read_text()
    users.lines[1] += " +set"
    before = file.read_text()
    with pytest.raises(CannotRewrite) as caught:
        configuration.rewrite()
    assert str(caught.value) == (
        "Rewriting config file: user 'alice' has changed, and is defined in an included file"
    )
    assert file.read_text() == before
