"""Publish and subscribe, and notifications of changes: who hears what, in which order, and when.

What single replies and messages look like is compared with redis-server elsewhere (tests/compare);
client libraries are tried in tests/clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hiredis
import pytest
import redis
import redis.asyncio

import commands.families  # noqa: F401 - fills the command table
from commands.publishing.notifications import parse_flags
from commands.table import TABLE
from tests.harness import MakeServer, ServerProcess, until
from tests.server.conftest import Connect
from tests.server.test_tick import IOERR, Host, Transport, run, until_written
from tests.wire import Wire, encode

END = b"end of what is heard"
EVENTS_ON = "notify-keyspace-events"
PUBLISHERS, SUBSCRIBERS, MESSAGES_EACH = 4, 6, 150


@pytest.fixture
def other(other: Wire) -> Iterator[Wire]:
    """Changes are told of no more when the test ends."""
    yield other
    other.call("CONFIG", "SET", EVENTS_ON, "")


def join(wire: Wire, command: str, *names: object) -> None:
    """Subscribe; all of it is confirmed when this returns."""
    words = [name if isinstance(name, bytes) else str(name) for name in names]
    wire.send(encode(command, *words))
    wire.read(len(words))


def listen(wire: Wire, *patterns: str) -> None:
    """Subscribe to patterns, and to the channel that ends what is heard."""
    if patterns:
        join(wire, "PSUBSCRIBE", *patterns)
    join(wire, "SUBSCRIBE", END)


def heard(wire: Wire, speaker: Wire) -> list[list[bytes]]:
    """What a listener got by now: everything before the message that this sends."""
    assert speaker.call("PUBLISH", END, "") > 0
    found: list[list[bytes]] = []
    while (message := wire.read(1)[0])[:2] != [b"message", END]:
        found.append(list(message))
    return found


def changes(wire: Wire, speaker: Wire) -> list[list[bytes]]:
    """Channel and payload of what a listener to patterns got by now."""
    return [message[2:] for message in heard(wire, speaker)]


def audience(wire: Wire, channel: str) -> int:
    count: int = wire.call("PUBSUB", "NUMSUB", channel)[1]
    return count


# Many at once


def test_everybody_hears_everybody_in_order(connect: Connect) -> None:
    """Each publisher's messages in its order, and all subscribers the same ones in the same."""
    subscribers = [connect() for _ in range(SUBSCRIBERS)]
    publishers = [connect() for _ in range(PUBLISHERS)]
    for subscriber in subscribers:
        join(subscriber, "SUBSCRIBE", "first", "second")

    def publish(place: int) -> list[Any]:
        calls = [
            encode("PUBLISH", ("first", "second")[number % 2], f"{place} {number}")
            for number in range(MESSAGES_EACH)
        ]
        return publishers[place].exchange(b"".join(calls), len(calls))

    def hear(subscriber: Wire) -> list[Any]:
        return subscriber.read(PUBLISHERS * MESSAGES_EACH)

    with ThreadPoolExecutor(PUBLISHERS + SUBSCRIBERS) as pool:
        hearing = [pool.submit(hear, subscriber) for subscriber in subscribers]
        for counts in pool.map(publish, range(PUBLISHERS)):
            assert counts == [SUBSCRIBERS] * MESSAGES_EACH
        stories = [list(map(list, each.result())) for each in hearing]
    assert stories == [stories[0]] * SUBSCRIBERS
    for place in range(PUBLISHERS):
        said = [
            [channel, payload]
            for _, channel, payload in stories[0]
            if payload.startswith(b"%d " % place)
        ]
        assert said == [
            [(b"first", b"second")[number % 2], b"%d %d" % (place, number)]
            for number in range(MESSAGES_EACH)
        ]


def test_a_thousand_channels_of_one_client(wire: Wire, other: Wire) -> None:
    names = [b"channel %d" % number for number in range(1000)]
    wire.send(encode("SUBSCRIBE", *names))
    assert wire.read(1000) == [[b"subscribe", name, place] for place, name in enumerate(names, 1)]
    assert other.call("PUBSUB", "NUMSUB", *names)[1::2] == [1] * 1000
    assert sorted(other.call("PUBSUB", "CHANNELS", "channel *")) == sorted(names)
    other.send(*(encode("PUBLISH", name, name) for name in reversed(names)))
    assert other.read(1000) == [1] * 1000
    assert wire.read(1000) == [[b"message", name, name] for name in reversed(names)]
    wire.send(encode("UNSUBSCRIBE"))
    left = wire.read(1000)
    assert [count for _, _, count in left] == list(range(999, -1, -1))
    assert {name for _, name, _ in left} == set(names)
    assert other.call("PUBSUB", "CHANNELS", "channel *") == []
    assert wire.call("ECHO", "free again") == b"free again"


def test_each_pattern_that_fits_brings_the_message_once_more(wire: Wire, other: Wire) -> None:
    patterns = ["news.*", "*.eu", "news.[a-e]u", r"news.\*", "news.??", "old.*"]
    listen(wire, *patterns)
    assert other.call("PUBLISH", "news.eu", "hello") == 4
    fitting = [b"news.*", b"*.eu", b"news.[a-e]u", b"news.??"]
    expected = [[b"pmessage", pattern, b"news.eu", b"hello"] for pattern in fitting]
    assert sorted(heard(wire, other)) == sorted(expected)
    assert other.call("PUBLISH", "news.*", "star") == 2
    assert sorted(message[1] for message in heard(wire, other)) == [b"news.*", rb"news.\*"]
    wire.call("PUNSUBSCRIBE", "news.*")
    assert other.call("PUBLISH", "news.eu", "hello") == 3
    assert b"news.*" not in [message[1] for message in heard(wire, other)]


def test_messages_come_between_whole_replies(own: ServerProcess) -> None:
    """A RESP3 listener that pipelines while others publish: both in order, none torn."""
    echoes, messages = 3000, 600
    with Wire(own) as wire, Wire(own) as publisher, ThreadPoolExecutor(1) as pool:
        wire.call("HELLO", 3)
        join(wire, "SUBSCRIBE", "busy")
        calls = b"".join(encode("PUBLISH", "busy", f"m{n} " + "x" * 500) for n in range(messages))
        counts = pool.submit(publisher.exchange, calls, messages)
        data = b"".join(encode("ECHO", f"e{number}") for number in range(echoes))
        got = wire.exchange(data, echoes + messages)
        assert counts.result() == [1] * messages
    told = [reply for reply in got if isinstance(reply, list)]
    replies = [reply for reply in got if not isinstance(reply, list)]
    assert replies == [b"e%d" % number for number in range(echoes)]
    assert [payload for _, _, payload in told] == [
        b"m%d " % number + b"x" * 500 for number in range(messages)
    ]
    assert all(isinstance(message, hiredis.PushNotification) for message in told)


# Listening, and its end


def test_who_listens_in_the_older_protocol_can_do_nothing_else(
    own: ServerProcess, other: Wire, dataset: str
) -> None:
    """What is refused is not done, and what follows it in the packet is."""
    with Wire(own) as wire:
        join(wire, "SUBSCRIBE", "a")
        put = encode("WCPUT", dataset, "r", 1, "c", "v")
        wire.send(put, encode("PING"), encode("UNSUBSCRIBE"), encode("WCEXISTS", dataset, "r"))
        refused, pong, left, missing = wire.read(4)
        assert isinstance(refused, hiredis.ReplyError)
        assert (pong, left) == ([b"pong", b""], [b"unsubscribe", b"a", 0])
        assert str(missing).startswith("NODATASET")
        assert wire.call("WCPUT", dataset, "r", 1, "c", "v") == 1


def test_a_listener_in_the_newer_protocol_can_do_anything(own: ServerProcess, dataset: str) -> None:
    with Wire(own) as wire:
        wire.call("HELLO", 3)
        join(wire, "SUBSCRIBE", "a")
        assert wire.call("WCPUT", dataset, "r", 1, "c", "v") == 1
        wire.send(encode("MULTI"), encode("WCEXISTS", dataset, "r"), encode("EXEC"))
        assert wire.read(3) == [b"OK", b"QUEUED", [1]]


def close(wire: Wire, _other: Wire, _identifier: int) -> None:
    wire.close()


def cut(wire: Wire, _other: Wire, _identifier: int) -> None:
    wire.reset()


def quit_(wire: Wire, _other: Wire, _identifier: int) -> None:
    wire.send(encode("QUIT"))


def reset(wire: Wire, _other: Wire, _identifier: int) -> None:
    assert wire.call("RESET") == b"RESET"


def kill(_wire: Wire, other: Wire, identifier: int) -> None:
    assert other.call("CLIENT", "KILL", "ID", identifier) == 1


@pytest.mark.parametrize("end", [close, cut, quit_, reset, kill])
def test_who_is_gone_is_forgotten(
    wire: Wire, other: Wire, end: Callable[[Wire, Wire, int], None]
) -> None:
    identifier = wire.call("CLIENT", "ID")
    join(wire, "SUBSCRIBE", "a", "b")
    join(wire, "PSUBSCRIBE", "p*")
    join(wire, "SSUBSCRIBE", "s")
    assert audience(other, "a") == audience(other, "b") == other.call("PUBSUB", "NUMPAT") == 1
    end(wire, other, identifier)
    until(lambda: audience(other, "a") == 0)
    assert other.call("PUBSUB", "NUMSUB", "b") == [b"b", 0]
    assert other.call("PUBSUB", "NUMPAT") == 0
    assert other.call("PUBSUB", "SHARDNUMSUB", "s") == [b"s", 0]
    assert other.call("PUBSUB", "CHANNELS") == other.call("PUBSUB", "SHARDCHANNELS") == []
    assert [other.call("PUBLISH", name, "x") for name in ("a", "b", "pp")] == [0, 0, 0]
    assert other.call("SPUBLISH", "s", "x") == 0


def test_after_reset_nothing_is_heard(wire: Wire, other: Wire) -> None:
    join(wire, "SUBSCRIBE", "a")
    join(wire, "PSUBSCRIBE", "*")
    join(wire, "SSUBSCRIBE", "a")
    other.send(encode("PUBLISH", "a", "before"))
    assert other.read(1) == [2]
    assert len(wire.read(2)) == 2
    assert wire.call("RESET") == b"RESET"
    assert (other.call("PUBLISH", "a", "x"), other.call("SPUBLISH", "a", "x")) == (0, 0)
    assert wire.call("ECHO", "free again") == b"free again"


def test_a_killed_listener_is_gone_for_the_next_command(wire: Wire, other: Wire) -> None:
    """Even in the same packet: it is not counted, listed, told or killed again."""
    identifier = wire.call("CLIENT", "ID")
    join(wire, "SUBSCRIBE", "a")
    killing = encode("CLIENT", "KILL", "ID", identifier)
    other.send(killing, killing, encode("PUBSUB", "NUMSUB", "a"), encode("PUBLISH", "a", "x"))
    other.send(encode("CLIENT", "LIST", "ID", identifier))
    assert other.read(5) == [1, 0, [b"a", 0], 0, b""]


# Notifications. `d` has the rows r, with the columns c, a word, and n, a number, and s

TOLD = {
    "WCPUT d r 5 c v": ["wcput r"],
    "WCPUT d r 5 c v 6 c w 6 e w": ["wcput r"],
    "WCPUT d r 1 c word": ["wcput r"],
    "WCPUT d new EX 60 * c v": ["wcput new"],
    "WCMPUT d s 5 c v r 5 c v s 6 c w": ["wcput s", "wcput r"],
    "WCMPUT d PX 60000 s 5 c v": ["wcput s"],
    "WCINCRBY d r n 1": ["wcincrby r"],
    "WCINCRBY d new n -1": ["wcincrby new"],
    "WCCAS d r c IFEQ word 5 v": ["wcput r"],
    "WCCAS d r new IFABSENT 5 v": ["wcput r"],
    "WCDEL d r": ["wcdel r"],
    "WCDEL d r COLUMNS 2 c n": ["wcdel r"],
    "WCDEL d r RANGE - +": ["wcdel r"],
    "WCDEL d r TIMESTAMPS 1 1": ["wcdel r"],
    "WCMDEL d ROWS 3 s gone r": ["wcdel s", "wcdel r"],
    "WCMDEL d ROWS 2 r r": ["wcdel r"],
}
UNTOLD = [
    "WCPUT d r x c v",
    "WCPUT d r 5 c",
    "WCMPUT d r 5 c v s x c v",
    "WCINCRBY d r c 1",
    "WCINCRBY d r n 9223372036854775807",
    "WCCAS d r c IFEQ another 5 v",
    "WCCAS d r c IFABSENT 5 v",
    "WCCAS d r c IFEQ word 0 v",
    "WCDEL d gone",
    "WCDEL d r COLUMNS 1 gone",
    "WCDEL d r RANGE 7 9",
    "WCMDEL d ROWS 2 gone away",
    "WCDEL nosuchdataset r",
    "WCDATASET ALTER d TTL 1000000",
    "WCDATASET COMPACT d",
    "WCDATASET DROP d",
    "WCDATASET CREATE other",
    "FLUSHALL",
    "WCGET d r",
    "WCSCAN d",
]


def prepare(wire: Wire) -> None:
    wire.send(encode("FLUSHALL"), encode("WCPUT", "d", "r", 1, "c", "word", 1, "n", "1"))
    wire.send(encode("WCPUT", "d", "s", 1, "c", "v"))
    assert wire.read(3) == [b"OK", 2, 1]


@pytest.fixture
def told(wire: Wire, other: Wire) -> Wire:
    """A listener to all changes, on a server where all of them are told."""
    prepare(other)
    assert other.call("CONFIG", "SET", EVENTS_ON, "KEA") == b"OK"
    listen(wire, "__key*")
    return wire


def notes(event: str) -> list[list[bytes]]:
    """`wcput r` as both channels tell it."""
    name, row = event.encode().split()
    return [
        [b"__keyspace@0__:d/" + row, name],
        [b"__keyevent@0__:" + name, b"d/" + row],
    ]


@pytest.mark.parametrize("call", TOLD)
def test_a_change_is_told_on_both_channels(told: Wire, other: Wire, call: str) -> None:
    assert not isinstance(other.call(*call.split()), hiredis.ReplyError)
    expected = [note for event in TOLD[call] for note in notes(event)]
    assert changes(told, other) == expected


@pytest.mark.parametrize("call", UNTOLD)
def test_what_changes_no_row_is_not_told(told: Wire, other: Wire, call: str) -> None:
    other.call(*call.split())
    assert changes(told, other) == []


def test_every_command_that_writes_rows_is_tried_above() -> None:
    tried = {call.split()[0].lower() for call in TOLD}
    writing = {
        name
        for name, command in TABLE.all().items()
        if command.group == "widecolumn" and "write" in command.flags and "|" not in name
    }
    assert writing == tried


def test_nothing_is_told_by_default(make_server: MakeServer) -> None:
    with Wire(make_server()) as wire, Wire(make_server(notify_keyspace_events="Kw")) as chosen:
        for each in (wire, chosen):
            each.call("HELLO", 3)
            join(each, "PSUBSCRIBE", "__key*")
        assert wire.call("CONFIG", "GET", EVENTS_ON) == {EVENTS_ON.encode(): b""}
        assert wire.call("WCPUT", "d", "r", 1, "c", "v") == 1
        assert wire.call("PING") == b"PONG"
        chosen.send(encode("WCPUT", "d", "r", 1, "c", "v"))
        channels = [reply[2] for reply in chosen.read(2) if isinstance(reply, list)]
        assert channels == [b"__keyspace@0__:d/r"]


@pytest.mark.parametrize(
    ("flags", "channels"),
    [
        ("", ""), ("K", ""), ("E", ""), ("KE", ""), ("w", ""), ("A", ""), ("KEg$lshzxetdnm", ""),
        ("Kw", "keyspace"), ("wE", "keyevent"), ("KEw", "keyspace keyevent"),
        ("KA", "keyspace"), ("AE", "keyevent"), ("AKE", "keyspace keyevent"),
    ],
)  # fmt: skip
def test_flags_choose_the_channels_at_run_time(
    told: Wire, other: Wire, flags: str, channels: str
) -> None:
    assert other.call("CONFIG", "SET", EVENTS_ON, flags) == b"OK"
    assert other.call("WCPUT", "d", "r", 5, "c", "v") == 1
    found = [channel.split(b"@")[0] for channel, _ in changes(told, other)]
    assert found == [b"__" + name.encode() for name in channels.split()]
    assert other.call("CONFIG", "SET", EVENTS_ON, "KEA") == b"OK"
    assert isinstance(other.call("CONFIG", "SET", EVENTS_ON, "K?"), hiredis.ReplyError)
    other.call("WCDEL", "d", "r")
    assert changes(told, other) == notes("wcdel r"), "a refused value changes nothing"


def test_a_row_of_any_bytes_and_a_listener_to_one_row(wire: Wire, other: Wire) -> None:
    row = b"a/b \x00\xff\r\n*[x]"
    prepare(other)
    other.call("CONFIG", "SET", EVENTS_ON, "KEw")
    listen(wire)
    join(wire, "SUBSCRIBE", b"__keyspace@0__:d/" + row, "__keyevent@0__:wcincrby")
    assert other.call("SELECT", 3) == b"OK"  # datasets are in no database
    for each in (b"a", row, b"", b"a/b"):
        assert other.call("WCPUT", "d", each, 1, "c", "v") == 1
    other.call("WCINCRBY", "d", "", "n", 1)
    assert heard(wire, other) == [
        [b"message", b"__keyspace@0__:d/" + row, b"wcput"],
        [b"message", b"__keyevent@0__:wcincrby", b"d/"],
    ]


def test_messages_and_notifications_keep_their_order(told: Wire, other: Wire) -> None:
    join(told, "PSUBSCRIBE", "said")
    calls = []
    for number in range(200):
        calls.append(encode("WCPUT", "d", f"r{number}", 1, "c", "v"))
        calls.append(encode("PUBLISH", "said", number))
    replies = other.exchange(b"".join(calls), 400)
    assert replies == [1] * 400
    expected = []
    for number in range(200):
        expected += [*notes(f"wcput r{number}"), [b"said", b"%d" % number]]
    assert changes(told, other) == expected


def test_a_writer_hears_of_its_own_writes(own: ServerProcess, other: Wire, dataset: str) -> None:
    other.call("CONFIG", "SET", EVENTS_ON, "Kw")
    with Wire(own) as wire:
        wire.call("HELLO", 3)
        join(wire, "PSUBSCRIBE", "__key*")
        wire.send(encode("WCPUT", dataset, "r", 1, "c", "v"), encode("PING"))
        *first_two, pong = wire.read(3)
        pattern, channel = b"__key*", b"__keyspace@0__:%b/r" % dataset.encode()
        assert [b"pmessage", pattern, channel, b"wcput"] in first_two
        assert 1 in first_two
        assert pong == b"PONG"


# Notifications of transactions


def test_a_transaction_is_told_once_it_runs(told: Wire, other: Wire) -> None:
    join(told, "PSUBSCRIBE", "said")
    lines = [
        "MULTI", "WCPUT d r 5 c v", "PUBLISH said first", "WCINCRBY d r c 1", "WCDEL d s",
        "WCDEL d s", "PUBLISH said last",
    ]  # fmt: skip
    other.send(*(encode(*line.split()) for line in lines))
    assert other.read(len(lines)) == [b"OK", *[b"QUEUED"] * 6]
    with_another = other.call("EXEC")
    assert [with_another[place] for place in (0, 1, 3, 4, 5)] == [1, 1, 1, 0, 1]
    assert changes(told, other) == [
        *notes("wcput r"), [b"said", b"first"], *notes("wcdel s"), [b"said", b"last"],
    ]  # fmt: skip


def test_nothing_is_told_while_it_is_queued(own: ServerProcess, told: Wire, other: Wire) -> None:
    with Wire(own) as writer:
        writer.send(encode("MULTI"), encode("WCPUT", "d", "r", 5, "c", "v"))
        assert writer.read(2) == [b"OK", b"QUEUED"]
        assert changes(told, other) == []
        assert writer.call("EXEC") == [1]
        assert changes(told, other) == notes("wcput r")


@pytest.mark.parametrize("how", ["DISCARD", "NOSUCH + EXEC", "RESET"])
def test_a_transaction_that_does_not_run_is_not_told(told: Wire, other: Wire, how: str) -> None:
    lines = ["MULTI", "WCPUT d r 5 c v", "PUBLISH __keyx said", *how.split(" + ")]
    other.send(*(encode(*line.split()) for line in lines))
    other.read(len(lines))
    assert changes(told, other) == []


def test_a_transaction_that_watched_in_vain_is_not_told(
    own: ServerProcess, told: Wire, other: Wire
) -> None:
    with Wire(own) as watcher:
        watcher.send(encode("WATCH", "d"), encode("MULTI"), encode("WCDEL", "d", "r"))
        assert watcher.read(3) == [b"OK", b"OK", b"QUEUED"]
        assert other.call("WCPUT", "d", "s", 5, "c", "v") == 1
        assert watcher.call("EXEC") is None
    assert changes(told, other) == notes("wcput s")


# Who may hear of what


def test_a_dataset_one_may_not_read_is_not_heard_of(wire: Wire, other: Wire) -> None:
    rules = "on nopass &* +@all ~seen* %R~readable %W~writable (%R~selected +wcget)"
    assert other.call("ACL", "SETUSER", "fox", *_rules(rules)) == b"OK"
    other.call("CONFIG", "SET", EVENTS_ON, "KEw")
    assert wire.call("AUTH", "fox", "any") == b"OK"
    listen(wire, "__key*")

    def seen() -> list[bytes]:
        names = ("seen1", "hidden", "readable", "writable", "selected", "seen2")
        other.send(*(encode("WCPUT", name, "r", "*", "c", "v") for name in names))
        assert other.read(len(names)) == [1] * len(names)
        found = changes(wire, other)
        spaces, events = found[::2], found[1::2]
        datasets = [channel.split(b":")[1].split(b"/")[0] for channel, _ in spaces]
        assert [payload.split(b"/")[0] for _, payload in events] == datasets
        return datasets

    try:
        assert seen() == [b"seen1", b"readable", b"selected", b"seen2"]
        other.call("ACL", "SETUSER", "fox", "resetkeys", "clearselectors", "~hidden")
        assert seen() == [b"hidden"], "a change is felt at once"
        other.call("ACL", "SETUSER", "fox", "allkeys")
        assert len(seen()) == 6
    finally:
        other.call("ACL", "DELUSER", "fox")


def _rules(text: str) -> list[str]:
    """Words, with what stands in parentheses as one."""
    words, _, selector = text.partition(" (")
    return [*words.split(), *([f"({selector}"] if selector else [])]


def test_a_hidden_change_is_told_to_others_all_the_same(
    own: ServerProcess, told: Wire, other: Wire
) -> None:
    other.call("ACL", "SETUSER", "fox", "on", "nopass", "&*", "+@all", "~other")
    with Wire(own) as restricted:
        restricted.call("AUTH", "fox", "any")
        listen(restricted, "__key*")
        assert other.call("WCPUT", "d", "r", 5, "c", "v") == 1
        assert changes(told, other) == notes("wcput r")
        # The one that ended what `told` heard came here too.
        assert restricted.read(1) == [[b"message", END, b""]]
    other.call("ACL", "DELUSER", "fox")


# When: only once what is told is in the log. Without sockets, over a store that fails when told

PUT, GET, PING = encode("WCPUT", "d", "r", 1, "c", "v"), encode("WCGET", "d", "r"), encode("PING")
MULTI, EXEC = encode("MULTI"), encode("EXEC")


def pushed(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%b\r\n" % (len(word), word) for word in words
    )


def noted(row: bytes = b"r") -> bytes:
    return pushed(b"message", b"__keyevent@0__:wcput", b"d/" + row)


async def new_listener(host: Host, *channels: bytes) -> Transport:
    """Somebody who hears of writes; they are told from now on."""
    listener, transport = host.connect()
    host.command_settings.notifications = parse_flags("Ew")
    names = (b"__keyevent@0__:wcput", *channels)
    listener.data_received(encode("SUBSCRIBE", *names))
    await until_written(transport)
    return transport


async def settled(host: Host) -> None:
    """Once all that happens in a tick has happened."""
    bystander, transport = host.connect()
    for _ in range(3):
        bystander.data_received(PING)
        assert await until_written(transport) == b"+PONG\r\n"


def test_a_message_waits_for_the_log() -> None:
    async def scenario(host: Host) -> None:
        heard_by = await new_listener(host)
        writer, transport = host.connect()
        host.database.stalls = 3
        writer.data_received(PUT)
        while host.database.stalls:
            assert heard_by.written == b"", "told of what is not in the log"
            await asyncio.sleep(0)
        assert await until_written(transport) == b":1\r\n"
        assert await until_written(heard_by) == noted()

    run(scenario)


def test_what_a_listener_asks_while_its_message_waits_comes_after_it() -> None:
    async def scenario(host: Host) -> None:
        host.command_settings.notifications = parse_flags("Ew")
        listener, heard_by = host.connect()
        listener.data_received(encode("SUBSCRIBE", "__keyevent@0__:wcput"))
        await until_written(heard_by)
        writer, _ = host.connect()
        host.database.stalls = 3
        writer.data_received(PUT)
        await settled(host)
        listener.data_received(PING)
        pong = b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"
        assert await until_written(heard_by, len(noted() + pong)) == noted() + pong

    run(scenario)


def test_a_failed_commit_is_not_told() -> None:
    async def scenario(host: Host) -> None:
        heard_by = await new_listener(host, b"said")
        writer, transport = host.connect()
        host.database.failures = 1
        writer.data_received(PUT + encode("PUBLISH", "said", "all the same") + PUT)
        assert await until_written(transport) == IOERR + b":1\r\n" + IOERR
        assert await until_written(heard_by) == pushed(b"message", b"said", b"all the same")
        writer.data_received(encode("WCPUT", "d", "next", 1, "c", "v"))
        assert await until_written(transport) == b":1\r\n"
        assert await until_written(heard_by) == noted(b"next")

    run(scenario)


def test_what_was_committed_before_a_failure_is_told() -> None:
    async def scenario(host: Host) -> None:
        heard_by = await new_listener(host)
        writer, transport = host.connect()
        writer.data_received(PUT + GET)  # the read commits
        host.database.failures = 1
        writer.data_received(encode("WCPUT", "d", "lost", 1, "c", "v"))
        assert (await until_written(transport)).endswith(IOERR)
        assert await until_written(heard_by) == noted()
        await settled(host)
        assert heard_by.written == b""

    run(scenario)


def test_a_failed_transaction_is_not_told() -> None:
    async def scenario(host: Host) -> None:
        heard_by = await new_listener(host)
        writer, transport = host.connect()
        host.database.failures = 1
        writer.data_received(MULTI + PUT + GET + PUT + EXEC)
        assert (await until_written(transport)).endswith(b"+QUEUED\r\n" + IOERR)
        await settled(host)
        assert heard_by.written == b""
        writer.data_received(MULTI + PUT + EXEC)
        assert (await until_written(transport)).endswith(b"*1\r\n:1\r\n")
        assert await until_written(heard_by) == noted()

    run(scenario)


def test_a_writer_that_listens_to_itself_is_told_the_truth() -> None:
    async def scenario(host: Host) -> None:
        writer, transport = host.connect()
        host.command_settings.notifications = parse_flags("Ew")
        writer.data_received(encode("HELLO", 3))
        await until_written(transport)
        writer.data_received(encode("SUBSCRIBE", "__keyevent@0__:wcput"))
        await until_written(transport)
        host.database.failures = 1
        writer.data_received(PING + PUT + PING)
        assert await until_written(transport) == b"+PONG\r\n" + IOERR + b"+PONG\r\n"
        writer.data_received(PUT + PING)
        replies = await until_written(transport)
        told = noted().replace(b"*", b">")
        assert replies in (told + b":1\r\n+PONG\r\n", b":1\r\n" + told + b"+PONG\r\n")

    run(scenario)


# A slow listener


def test_a_listener_that_reads_no_notifications_is_cut_off(own: ServerProcess, other: Wire) -> None:
    """It costs those who write nothing but its share; they are answered as ever."""
    limit = "client-output-buffer-limit"
    other.call("CONFIG", "SET", EVENTS_ON, "Kw")
    assert other.call("CONFIG", "SET", limit, "pubsub 1mb 0 0") == b"OK"
    with Wire(own) as deaf, Wire(own) as attentive:
        listen(deaf, "__key*")
        join(attentive, "PSUBSCRIBE", "__key*")
        written = 0
        while other.call("PUBSUB", "NUMSUB", END)[1]:
            rows = [b"%060000d" % number for number in range(written, written + 5)]
            other.send(*(encode("WCPUT", "slow", row, 1, "c", "v") for row in rows))
            assert other.read(5) == [1] * 5
            assert [message[2][-9:] for message in attentive.read(5)] == [row[-9:] for row in rows]
            written += 5
            assert written < 600, "it was not cut off"
        assert other.call("WCPUT", "slow", "last", 1, "c", "v") == 1
        assert attentive.read(1)[0][2] == b"__keyspace@0__:slow/last"
    other.call("CONFIG", "SET", limit, "pubsub 32mb 8mb 60")


# redis-py, over a restart


def test_stock_clients_hear_of_changes_again_after_a_restart(make_server: MakeServer) -> None:
    """Both of redis-py's clients subscribe anew by themselves."""
    server = make_server(notify_keyspace_events="KEw")

    def next_of(listener: Any) -> Any:
        message = listener.get_message(timeout=20)
        assert message is not None
        return message

    async def scenario() -> None:
        waiting = redis.asyncio.Redis(port=server.port, protocol=3)
        async with waiting, waiting.pubsub() as listener:
            await listener.psubscribe("__keyspace@0__:d/*")
            assert (await listener.get_message(timeout=20))["type"] == "psubscribe"
            await asyncio.to_thread(restarted_with_a_listener)
            again = await listener.get_message(timeout=20)
            assert (again["type"], again["data"]) == ("psubscribe", 1)
            await waiting.execute_command("WCPUT", "d", "r", 2, "c", "v")
            message = await listener.get_message(timeout=20)
            assert (message["channel"], message["data"]) == (b"__keyspace@0__:d/r", b"wcput")

    def restarted_with_a_listener() -> None:
        with server.client(protocol=2) as client, client.pubsub() as listener:
            listener.subscribe("__keyevent@0__:wcput")
            assert next_of(listener)["type"] == "subscribe"
            server.restart()
            assert next_of(listener)["type"] == "subscribe"
            client.execute_command("WCPUT", "e", "r", 1, "c", "v")
            assert next_of(listener)["data"] == b"e/r"

    asyncio.run(scenario())
