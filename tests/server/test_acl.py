"""Access control through the socket: ACL and its subcommands, NOPERM, the ACL file.

Where redis-server has the same, the same is said to both and the replies are compared, type and
text, in RESP2 and RESP3.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from tests.compare.servers import RedisProcess, redis_is_installed
from tests.compare.wire import END, Reply, Wire
from tests.harness import MakeServer, ServerProcess

PATIENCE_SECONDS = 10.0


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a redis-server."""
    if not redis_is_installed():
        pytest.skip("redis-server is not installed: nothing to compare with")
    running = RedisProcess(tmp_path_factory.mktemp("reference") / "redis", {}).start()
    yield running.port
    running.close()


@pytest.fixture(scope="module")
def own_directives() -> dict[str, object]:
    return {"wc_engine": "memory"}


def connect(port: int, protocol: int = 2) -> Wire:
    wire = Wire(port, PATIENCE_SECONDS)
    if protocol == 3:
        assert wire.call("HELLO", "3").kind == "map"
    return wire


def log_in(port: int, user: str, password: str = "p") -> Wire:
    wire = connect(port)
    assert wire.call("AUTH", user, password).text == b"OK"
    return wire


@pytest.fixture
def admin(own: ServerProcess) -> Iterator[Wire]:
    """The default user; the others are gone and the log is empty."""
    with connect(own.port) as wire:
        for name in wire.call("ACL", "USERS").elements:
            if name.text != b"default":
                wire.call("ACL", "DELUSER", name.text)
        wire.call("ACL", "LOG", "RESET")
        yield wire


def is_ok(reply: Reply) -> bool:
    return reply == Reply("status", b"OK")


# Compared with redis-server

SAME_LINE = [
    "",
    "on",
    "on nopass ~* &* +@all",
    "reset",
    "reset on",
    "skip-sanitize-payload",
    "sanitize-payload off",
    "ON NoPass AllKeys AllChannels AllCommands",
    "NOCOMMANDS",
    ">a",
    ">a >b >a",
    ">a <a",
    ">a nopass",
    "nopass >a",
    "nopass resetpass",
    "#" + "ab" * 32,
    "#" + "ab" * 32 + " !" + "ab" * 32,
    "~a ~b ~a",
    "%R~a %W~b %RW~c %wr~d",
    "%R~a %W~a",
    "~a allkeys",
    "~* ~*",
    "allkeys resetkeys ~a",
    "&a &b &a",
    "&a allchannels",
    "allchannels resetchannels &a",
    "+ping",
    "+PING",
    "+ping -ping",
    "-ping",
    "+@all",
    "+@all -@all",
    "+@all -ping",
    "+@all -ping +ping",
    "+@all -@dangerous",
    "+@ALL -@Admin",
    "-@all +@connection",
    "+@connection -ping",
    "+ping +@connection",
    "+@all -@pubsub +publish",
    "+@transaction",
    "+@read",
    "+client|id",
    "+Client|ID",
    "+client|id +client",
    "+client -client|kill",
    "+@all -client",
    "+acl|whoami",
    "+@all -acl|setuser",
    "+select|0",
    "+select|0 +SELECT|0 +select",
    "+@all -select +select|7",
    "()",
    "( )",
    "(~x +ping)",
    "(~x +ping )",
    "+ping (%R~y &c +echo) (+@all)",
    "(+ping) clearselectors",
]
SAME_WORDS = [
    "+ping +echo +select",
    "+client -client|kill -client|list",
    "+select|0 +select|1",
    "+@read +@write",
    "+@all -@admin -@pubsub",
    "+@connection +@transaction -ping -multi",
]
SAME_ERROR = [
    "wat",
    ")",
    "(on)",
    "(reset)",
    "((+ping))",
    "(+ping))",
    "(+ping",
    "~a (~b +ping",
    "(",
    "(~* ~a)",
    "(+nosuch)",
    "+ping (~x +nosuch)",
    "%Rx~a",
    "%RR~a",
    "allkeys ~a",
    "allchannels &a",
    "+nosuch",
    "-nosuch",
    "+@nosuch",
    "-@nosuch",
    "+nosuch|x",
    "+",
    "-",
    "+@",
    "+select|",
    "-select|0",
    "+client|",
    "+client|nosuch",
    "-client|nosuch",
    "+client|id|x",
    "<a",
    "!abc",
    "#abc",
    "!" + "ab" * 32,
    "#" + "AB" * 32,
    "on ~a +ping wat",
]


def set_anew(wire: Wire, rules: list[bytes]) -> tuple[Reply, list[bytes]]:
    """What ACL SETUSER says of a new user, and the lines of ACL LIST then."""
    wire.call("ACL", "DELUSER", "x")
    reply = wire.call("ACL", "SETUSER", "x", *rules)
    lines = [line.text for line in wire.call("ACL", "LIST").elements]
    return reply, [line for line in lines if line.startswith(b"user x ")]


@pytest.mark.parametrize("rules", SAME_LINE)
def test_the_same_line(reference: int, own: ServerProcess, rules: str) -> None:
    with connect(reference) as theirs, connect(own.port) as ours:
        given = rules.encode().split(b" ")
        expected = set_anew(theirs, given)
        assert set_anew(ours, given) == expected
        assert is_ok(expected[0])
        assert len(expected[1]) == 1


@pytest.mark.parametrize("rules", SAME_WORDS)
def test_the_same_words_where_redis_has_no_order(
    reference: int, own: ServerProcess, rules: str
) -> None:
    with connect(reference) as theirs, connect(own.port) as ours:
        given = rules.encode().split(b" ")
        (_, [expected]), (_, [line]) = set_anew(theirs, given), set_anew(ours, given)
        assert sorted(line.split()) == sorted(expected.split())


@pytest.mark.parametrize("rules", SAME_ERROR)
def test_the_same_error(reference: int, own: ServerProcess, rules: str) -> None:
    with connect(reference) as theirs, connect(own.port) as ours:
        given = rules.encode().split(b" ")
        expected = set_anew(theirs, given)
        assert set_anew(ours, given) == expected
        assert expected[0].kind == "error"
        assert expected[1] == []


@pytest.mark.parametrize("rule", [b"~a b", b"&a b", b"~a\tb", b"+ping ", b"+ ping", b"", b"~\x00"])
def test_the_same_for_words_with_spaces(reference: int, own: ServerProcess, rule: bytes) -> None:
    with connect(reference) as theirs, connect(own.port) as ours:
        assert set_anew(ours, [rule]) == set_anew(theirs, [rule])


CALLS = [
    "ACL",
    "ACL NOSUCH",
    "ACL SETUSER",
    "ACL GETUSER",
    "ACL GETUSER nosuch",
    "ACL GETUSER default",
    "ACL GETUSER x",
    "ACL GETUSER x y",
    "ACL DELUSER",
    "ACL DELUSER nosuch nosuch",
    "ACL DELUSER default",
    "ACL DELUSER x default",
    "ACL LIST x",
    "ACL USERS",
    "ACL USERS x",
    "ACL WHOAMI",
    "ACL WHOAMI x",
    "ACL CAT nosuch",
    "ACL CAT a b",
    "ACL GENPASS 0",
    "ACL GENPASS -1",
    "ACL GENPASS 4097",
    "ACL GENPASS x",
    "ACL GENPASS 5 5",
    "ACL LOG",
    "ACL LOG 5",
    "ACL LOG -1",
    "ACL LOG x",
    "ACL LOG reset",
    "ACL LOG RESET x",
    "ACL LOAD",
    "ACL SAVE",
    "ACL LOAD x",
    "ACL HELP x",
    "ACL DRYRUN",
    "ACL DRYRUN x",
    "ACL DRYRUN default",
    "ACL DRYRUN nosuch ping",
    "ACL DRYRUN default nosuch",
    "ACL DRYRUN default echo",
    "ACL DRYRUN default client",
    "ACL DRYRUN default client nosuch",
    "ACL DRYRUN default client id x",
    "ACL DRYRUN default ping",
    "ACL DRYRUN x ping",
    "ACL DRYRUN x ECHO a",
    "ACL DRYRUN x CLIENT ID",
    "ACL DRYRUN x client kill a:1",
    "ACL DRYRUN x auth p",
    "ACL DRYRUN x hello",
    "ACL DRYRUN x watch a",
    "ACL DRYRUN x watch r b",
    "ACL DRYRUN x select 0",
    "ACL DRYRUN x select 1",
    "ACL DRYRUN x publish c m",
    "ACL DRYRUN x publish d m",
    "ACL DRYRUN x subscribe c d",
    "ACL DRYRUN x psubscribe c",
    "ACL DRYRUN x psubscribe c*",
]


@pytest.mark.parametrize("call", CALLS)
def test_the_same_reply(reference: int, own: ServerProcess, call: str, protocol: int) -> None:
    commands = ["+ping", "+client|id", "+watch", "+select|0"]
    rules = [*commands, "+publish", "+subscribe", "+psubscribe", "~a", "%R~r", "&c"]
    replies = []
    for port in (reference, own.port):
        with connect(port, protocol) as wire:
            for name in wire.call("ACL", "USERS").elements:
                if name.text not in (b"default", b"x"):
                    wire.call("ACL", "DELUSER", name.text)
            wire.call("ACL", "SETUSER", "x", "reset", *rules, "(+@connection)")
            wire.call("ACL", "LOG", "RESET")
            replies.append(_in_order(wire.call(*call.split())))
    assert replies[1] == replies[0]


def _in_order(reply: Reply) -> Reply:
    """With the commands of a description sorted: Redis has no order there."""
    if reply.text.startswith((b"-@all ", b"+@all ")):
        return Reply(reply.kind, b" ".join(sorted(reply.text.split())))
    return Reply(reply.kind, tuple(map(_in_order, reply.elements)) or reply.text)


def test_a_log_entry_has_the_same_shape(reference: int, own: ServerProcess, protocol: int) -> None:
    shapes = []
    for port in (reference, own.port):
        with connect(port, protocol) as wire, connect(port) as other:
            wire.call("ACL", "LOG", "RESET")
            wire.call("ACL", "SETUSER", "x", "reset", "on", ">p", "+acl|whoami")
            other.call("AUTH", "x", "p")
            assert other.call("ACL", "WHOAMI").text == b"x"
            other.call("ACL", "USERS")
            (entry,) = wire.call("ACL", "LOG").elements
            names = [name for name, _ in entry.pairs]
            values = dict(entry.pairs)
            steady = [
                value
                for name, value in entry.pairs
                if name.text not in (b"age-seconds", b"client-info")
            ]
            age = values[Reply("bulk", b"age-seconds")]
            assert re.fullmatch(rb"\d+(\.\d{1,17})?", age.text)
            info = values[Reply("bulk", b"client-info")]
            assert b" cmd=acl|users user=x " in info.text
            shapes.append((entry.kind, names, steady, age.kind, info.kind))
    assert shapes[0] == shapes[1]


def test_categories_are_those_of_redis_and_our_own(reference: int, own: ServerProcess) -> None:
    with connect(reference) as theirs, connect(own.port) as ours:
        expected = theirs.call("ACL", "CAT")
        assert ours.call("ACL", "CAT") == Reply(
            "array", (*expected.elements, Reply("bulk", b"widecolumn"))
        )


def test_the_commands_of_a_category_are_in_it_in_redis_too(
    reference: int, own: ServerProcess
) -> None:
    def commands(wire: Wire, category: bytes) -> set[bytes]:
        return {name.text for name in wire.call("ACL", "CAT", category).elements}

    with connect(reference) as theirs, connect(own.port) as ours:
        categories = [category.text for category in theirs.call("ACL", "CAT").elements]
        known = {category: commands(theirs, category) for category in categories}
        shared = set[bytes]().union(*known.values())
        differing = {
            category: commands(ours, category) & shared - known[category]
            for category in categories
            if not commands(ours, category) & shared <= known[category]
        }
        assert differing == {}
        assert b"wcget" in commands(ours, b"WideColumn")
        assert b"wcdataset|drop" in commands(ours, b"widecolumn")


# What is ours


@pytest.mark.parametrize(("bits", "digits"), [("1", 1), ("4", 1), ("5", 2), ("4096", 1024)])
def test_a_password_is_made_up(admin: Wire, bits: str, digits: int) -> None:
    made = admin.call("ACL", "GENPASS", bits)
    assert re.fullmatch(rb"[0-9a-f]{%d}" % digits, made.text)
    made = admin.call("ACL", "GENPASS")
    assert re.fullmatch(rb"[0-9a-f]{64}", made.text)
    assert admin.call("ACL", "GENPASS") != made


@pytest.mark.parametrize(
    ("call", "denied"),
    [
        ("WCGET r row", None),
        ("WCGET w row", "key"),
        ("WCPUT r row * c v", "key"),
        ("WCPUT w row * c v", None),
        ("WCMPUT w row * c v", None),
        ("WCDEL w row", None),
        ("WCDEL r row", "key"),
        ("WCMDEL w ROWS 1 row", None),
        ("WCINCRBY w row c 1", "key"),
        ("WCINCRBY r row c 1", "key"),
        ("WCINCRBY rw row c 1", None),
        ("WCCAS w row c IFABSENT * v", "key"),
        ("WCCAS rw row c IFABSENT * v", None),
        ("WCDATASET INFO r", None),
        ("WCDATASET INFO w", "key"),
        ("WCDATASET CREATE w", None),
        ("WCDATASET CREATE r", "key"),
        ("WCDATASET DROP other", "key"),
        ("WCDATASET LIST", None),
        ("WCSCAN other", "key"),
        ("FLUSHALL", "command"),
        ("CONFIG GET a", "command"),
    ],
)
def test_datasets_are_the_keys(admin: Wire, call: str, denied: str | None) -> None:
    rules = ["reset", "+@widecolumn", "%R~r", "%W~w", "~rw"]
    assert is_ok(admin.call("ACL", "SETUSER", "x", *rules))
    reply = admin.call("ACL", "DRYRUN", "x", *call.split())
    if denied is None:
        assert is_ok(reply)
    else:
        assert reply.kind == "bulk"
        assert re.fullmatch(rb"This user has no permissions to .*", reply.text)
        assert reply.text.endswith(denied.encode())


def test_what_is_denied_is_answered_with_noperm(own: ServerProcess, admin: Wire) -> None:
    admin.call("ACL", "SETUSER", "x", "on", ">p", "+@widecolumn", "+publish", "~mine*", "&c")
    with log_in(own.port, "x") as wire:
        assert wire.call("WCPUT", "mine1", "row", "1", "c", "v") == Reply("integer", b"1")
        refused = [
            (("WCPUT", "other", "row", "1", "c", "v"), "one of the keys used as arguments"),
            (("WCGET", "other", "row"), "one of the keys used as arguments"),
            (("PUBLISH", "d", "m"), "one of the channels used as arguments"),
        ]
        for call, what in refused:
            text = f"NOPERM this user has no permissions to access {what}"
            assert wire.call(*call) == Reply("error", text.encode())
        text = "NOPERM this user has no permissions to run the 'acl|whoami' command"
        assert wire.call("ACL", "WHOAMI") == Reply("error", text.encode())
        assert wire.call("NOSUCH").text.startswith(b"ERR unknown command 'NOSUCH'")
    assert admin.call("WCGET", "other", "row").text.startswith(b"NODATASET")


def test_a_change_is_felt_by_those_logged_in(own: ServerProcess, admin: Wire) -> None:
    admin.call("ACL", "SETUSER", "x", "on", ">p", "+@all", "~*", "&*")
    with log_in(own.port, "x") as wire:
        assert wire.call("ACL", "WHOAMI").text == b"x"
        admin.call("ACL", "SETUSER", "x", "-acl")
        assert wire.call("ACL", "WHOAMI").text.startswith(b"NOPERM")
        admin.call("ACL", "SETUSER", "x", "+acl|whoami", "off")
        assert wire.call("ACL", "WHOAMI").text == b"x"
        assert wire.call("AUTH", "x", "p").text.startswith(b"WRONGPASS")
        assert wire.call("ACL", "WHOAMI").text == b"x"


def test_who_takes_rights_from_itself_feels_it_too(own: ServerProcess, admin: Wire) -> None:
    admin.call("ACL", "SETUSER", "x", "on", ">p", "+@all", "~*", "&*")
    with log_in(own.port, "x") as wire:
        assert is_ok(wire.call("ACL", "SETUSER", "x", "-acl|users"))
        assert wire.call("ACL", "USERS").text.startswith(b"NOPERM")


def test_a_deleted_user_is_disconnected(own: ServerProcess, admin: Wire) -> None:
    for name in ("x", "y"):
        admin.call("ACL", "SETUSER", name, "on", ">p", "+@all", "~*", "&*")
    with (
        log_in(own.port, "x") as one,
        log_in(own.port, "x") as another,
        log_in(own.port, "y") as stays,
    ):
        assert admin.call("ACL", "DELUSER", "x", "nosuch") == Reply("integer", b"1")
        assert one.read() == END
        assert another.read() == END
        assert stays.call("ACL", "WHOAMI").text == b"y"
        assert stays.call("ACL", "DELUSER", "y") == Reply("integer", b"1")
        assert stays.read() == END
    assert admin.call("ACL", "USERS").elements == (Reply("bulk", b"default"),)


def test_who_may_not_listen_any_more_is_disconnected(own: ServerProcess, admin: Wire) -> None:
    admin.call("ACL", "SETUSER", "x", "on", ">p", "+@all", "~*", "&c", "&d*")
    with (
        log_in(own.port, "x") as one,
        log_in(own.port, "x") as another,
        log_in(own.port, "x") as third,
        log_in(own.port, "x") as silent,
    ):
        assert one.call("SUBSCRIBE", "c").kind == "array"
        assert another.call("PSUBSCRIBE", "d*").kind == "array"
        assert third.call("SUBSCRIBE", "d1").kind == "array"
        assert is_ok(admin.call("ACL", "SETUSER", "x", "resetchannels", "&d*"))
        assert one.read() == END
        assert another.call("PING").kind == "array"
        assert is_ok(admin.call("ACL", "SETUSER", "x", "resetchannels", "&d1"))
        assert another.read() == END
        assert third.call("PING").kind == "array"
        assert silent.call("ACL", "WHOAMI").text == b"x"


def test_the_log_tells_what_was_refused(own: ServerProcess, admin: Wire) -> None:
    admin.call("ACL", "SETUSER", "x", "on", ">p", "+@all", "-@admin", "~mine", "&c")
    with log_in(own.port, "x") as wire:
        for _ in range(3):
            wire.call("WCGET", "other", "row")
        wire.call("ACL", "LIST")
        wire.call("PUBLISH", "d", "m")
        assert is_ok(wire.call("MULTI"))
        assert wire.call("WCGET", "other", "row").text.startswith(b"NOPERM")
        assert wire.call("EXEC").text.startswith(b"EXECABORT")
        wire.call("AUTH", "nobody", "p")
        wire.call("HELLO", "3", "AUTH", "x", "wrong")
    told = [
        tuple(
            value.text
            for name, value in entry.pairs
            if name.text not in (b"age-seconds", b"client-info")
        )
        for entry in admin.call("ACL", "LOG").elements
    ]
    assert told == [
        (b"1", b"auth", b"toplevel", b"HELLO", b"x"),
        (b"1", b"auth", b"toplevel", b"AUTH", b"nobody"),
        (b"1", b"key", b"multi", b"other", b"x"),
        (b"1", b"channel", b"toplevel", b"d", b"x"),
        (b"1", b"command", b"toplevel", b"acl|list", b"x"),
        (b"3", b"key", b"toplevel", b"other", b"x"),
    ]
    assert len(admin.call("ACL", "LOG", "2").elements) == 2
    assert is_ok(admin.call("ACL", "LOG", "RESET"))
    assert admin.call("ACL", "LOG").elements == ()


def test_rights_lost_after_queueing_are_lost_in_exec(own: ServerProcess, admin: Wire) -> None:
    admin.call("ACL", "SETUSER", "x", "on", ">p", "+@all", "~*")
    with log_in(own.port, "x") as wire:
        assert is_ok(wire.call("MULTI"))
        assert wire.call("WCGET", "other", "row").text == b"QUEUED"
        admin.call("ACL", "SETUSER", "x", "resetkeys")
        (reply,) = wire.call("EXEC").elements
        assert reply.text.startswith(b"NOPERM ACLs rules changed between the moment")
        assert reply.text.endswith(b"no permission to touch the specified keys")


def test_reset_makes_a_client_the_default_user(own: ServerProcess, admin: Wire) -> None:
    admin.call("ACL", "SETUSER", "x", "on", ">p")
    with log_in(own.port, "x") as wire:
        assert wire.call("ACL", "WHOAMI").kind == "error"
        assert wire.call("RESET").text == b"RESET"
        assert wire.call("ACL", "WHOAMI").text == b"default"


def test_who_waits_for_a_password_is_let_in_when_none_is_needed(
    make_server: MakeServer,
) -> None:
    server = make_server(wc_engine="memory", requirepass="p")
    with log_in(server.port, "default") as admin, connect(server.port) as waiting:
        assert waiting.call("PING").text == b"NOAUTH Authentication required."
        admin.call("ACL", "SETUSER", "default", "off", "nopass")
        assert waiting.call("PING").text == b"NOAUTH Authentication required."
        admin.call("ACL", "SETUSER", "default", "on")
        assert waiting.call("PING").text == b"PONG"
        with connect(server.port) as new:
            assert new.call("PING").text == b"PONG"


def test_a_stock_client_manages_users(own: ServerProcess, admin: Wire) -> None:
    with redis.Redis(port=own.port) as client:
        assert client.acl_setuser(
            "x", enabled=True, passwords=["+p"], categories=["+@widecolumn"], keys=["mine*"]
        )
        found = client.acl_getuser("x")
        assert found["flags"] == ["on"]
        assert found["categories"] == ["-@all", "+@widecolumn"]
        assert client.acl_users() == ["default", "x"]
        with redis.Redis(port=own.port, username="x", password="p") as other:
            assert other.execute_command("WCPUT", "mine", "row", "1", "c", "v") == 1
            with pytest.raises(redis.exceptions.NoPermissionError):
                other.execute_command("WCGET", "other", "row")
        assert client.acl_log()[0]["object"] == "other"
        assert client.acl_deluser("x") == 1


# The ACL file and the configuration


def test_users_come_from_the_file_and_go_there(make_server: MakeServer, tmp_path: Path) -> None:
    path = tmp_path / "users.acl"
    path.write_text("user x on >p +@all ~* &*\n\nuser y on nopass (+ping)\n")
    server = make_server(wc_engine="memory", aclfile=path)
    with connect(server.port) as admin, log_in(server.port, "x") as wire:
        listed = [line.text for line in admin.call("ACL", "LIST").elements]
        assert [line.split()[1] for line in listed] == [b"default", b"x", b"y"]
        assert is_ok(admin.call("ACL", "SETUSER", "z", "on", "%R~z"))
        assert is_ok(admin.call("ACL", "SAVE"))
        saved = [line.text for line in admin.call("ACL", "LIST").elements]
        assert path.read_bytes().splitlines() == saved
        path.write_text("user y on nopass +@all wat\nuser z +nosuch\n")
        refused = (
            f"ERR {path}:1: Syntax error. {path}:2: Error in applying operation '+nosuch':"
            " Unknown command or category name in ACL. WARNING: ACL errors detected, no change"
            " to the previously active ACL rules was performed"
        )
        assert admin.call("ACL", "LOAD").text == refused.encode()
        assert [line.text for line in admin.call("ACL", "LIST").elements] == saved
        assert wire.call("PING").text == b"PONG"
        path.write_text("user x on >other +@all ~* &*\n")
        assert is_ok(admin.call("ACL", "LOAD"))
        assert wire.read() == END
        assert [name.text for name in admin.call("ACL", "USERS").elements] == [b"default", b"x"]
        path.unlink()
        missing = f"ERR Error loading ACLs, opening file '{path}': No such file or directory"
        assert admin.call("ACL", "LOAD").text == missing.encode()


def test_a_broken_file_stops_the_start(make_server: MakeServer, tmp_path: Path) -> None:
    path = tmp_path / "users.acl"
    path.write_text("user x wat\n")
    with pytest.raises(RuntimeError, match=r"users\.acl:1: Syntax error"):
        make_server(wc_engine="memory", aclfile=path)


@pytest.fixture
def with_configuration(tmp_path: Path) -> Iterator[Callable[[str], ServerProcess]]:
    """Starts a server with lines of redis.conf."""
    started: list[ServerProcess] = []

    def start(text: str) -> ServerProcess:
        path = tmp_path / "redis.conf"
        path.write_text(text)
        command = (sys.executable, "-m", "resp_server", str(path))
        running = ServerProcess(tmp_path / "data", command=command, wc_engine="memory")
        started.append(running)
        return running.start()

    yield start
    for running in started:
        running.close()


def test_users_of_the_configuration(
    with_configuration: Callable[[str], ServerProcess],
) -> None:
    server = with_configuration("user x on >p ~a (+ping &c)\nuser default off +@all ~*\n")
    with log_in(server.port, "x") as wire, connect(server.port) as unknown:
        assert wire.call("PING").text == b"PONG"
        assert wire.call("ECHO", "a").text.startswith(b"NOPERM")
        assert unknown.call("PING").text == b"NOAUTH Authentication required."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("port 1\nuser x on wat\n", r"line 2.*\n?.*Error in user declaration 'wat': Syntax error"),
        ("user x on\nuser x off\n", "Duplicate user found"),
        ("user x +nosuch\n", "Unknown command or category name in ACL"),
    ],
)
def test_a_wrong_user_in_the_configuration_stops_the_start(
    with_configuration: Callable[[str], ServerProcess], text: str, problem: str
) -> None:
    with pytest.raises(RuntimeError) as failed:
        with_configuration(text)
    assert re.search(problem, str(failed.value), re.DOTALL)


def test_new_users_may_begin_with_all_channels(make_server: MakeServer) -> None:
    server = make_server(wc_engine="memory", acl_pubsub_default="allchannels")
    with connect(server.port) as admin:
        _, [line] = set_anew(admin, [b"on"])
        assert line == b"user x on &* -@all"
        assert is_ok(admin.call("CONFIG", "SET", "acl-pubsub-default", "resetchannels"))
        _, [line] = set_anew(admin, [b"on"])
        assert line == b"user x on resetchannels -@all"


def test_the_length_of_the_log_may_be_set(make_server: MakeServer) -> None:
    server = make_server(wc_engine="memory", acllog_max_len=2)
    with connect(server.port) as admin:
        for name in ("a", "b", "c"):
            admin.call("AUTH", name, "p")
        assert len(admin.call("ACL", "LOG").elements) == 2
        assert is_ok(admin.call("CONFIG", "SET", "acllog-max-len", "1"))
        admin.call("AUTH", "d", "p")
        assert len(admin.call("ACL", "LOG").elements) == 1
