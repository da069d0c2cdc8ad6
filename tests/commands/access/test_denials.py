"""What ACL LOG tells: refusals that are alike are one entry, the newest first."""

from __future__ import annotations

from commands.access.denials import GROUPING_SECONDS, Denial, DenialLog


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def log_of(most: int = 128) -> tuple[DenialLog, Clock]:
    clock = Clock()
    return DenialLog(most, clock), clock


def add(log: DenialLog, name: bytes = b"a", reason: str = "key", **more: bytes) -> None:
    user, client = more.get("user", b"x"), more.get("client", b"id=1")
    log.add(Denial(reason, name), user=user, in_transaction="multi" in more, client=client)


def shown(log: DenialLog) -> list[tuple[bytes, int]]:
    return [(entry.denial.name, entry.count) for entry in log.entries]


def test_like_refusals_are_one_entry_with_the_last_client_and_moment() -> None:
    log, clock = log_of()
    add(log)
    clock.now += 2
    add(log, client=b"id=2")
    clock.now += 0.5
    (entry,) = log.entries
    assert (entry.count, entry.client, log.age_seconds(entry)) == (2, b"id=2", 0.5)


def test_long_names_are_cut() -> None:
    log, _ = log_of()
    add(log, b"a" * 5_000_000, user=b"b" * 5_000_000)
    (entry,) = log.entries
    assert (entry.denial.name, entry.user) == (b"a" * 1024, b"b" * 1024)


def test_where_it_failed_in_the_command_makes_no_difference() -> None:
    log, _ = log_of()
    log.add(Denial("key", b"a", 1), user=b"x", in_transaction=False, client=b"")
    log.add(Denial("key", b"a", 2), user=b"x", in_transaction=False, client=b"")
    assert shown(log) == [(b"a", 2)]


def test_others_are_entries_of_their_own_the_newest_first() -> None:
    log, _ = log_of()
    add(log)
    add(log, b"b")
    add(log, reason="channel")
    add(log, user=b"y")
    add(log, multi=b"")
    add(log)
    names = [b"a", b"a", b"a", b"a", b"b"]
    assert shown(log) == list(zip(names, [2, 1, 1, 1, 1], strict=True))
    assert [entry.in_transaction for entry in log.entries] == [False, True, False, False, False]


def test_after_a_minute_it_is_a_new_entry() -> None:
    log, clock = log_of()
    add(log)
    clock.now += GROUPING_SECONDS
    add(log)
    clock.now += GROUPING_SECONDS + 0.001
    add(log)
    assert shown(log) == [(b"a", 1), (b"a", 2)]


def test_only_the_newest_ten_are_searched() -> None:
    log, _ = log_of()
    add(log, b"first")
    for number in range(9):
        add(log, b"%d" % number)
    add(log, b"first")
    assert shown(log)[0] == (b"first", 2)
    for number in range(10, 20):
        add(log, b"%d" % number)
    add(log, b"first")
    assert shown(log)[0] == (b"first", 1)


def test_the_oldest_are_forgotten() -> None:
    log, _ = log_of(most=2)
    for name in (b"a", b"b", b"c"):
        add(log, name)
    assert shown(log) == [(b"c", 1), (b"b", 1)]
    log.most = 0
    add(log, b"d")
    assert shown(log) == []


def test_it_can_be_emptied() -> None:
    log, _ = log_of()
    add(log)
    log.reset()
    assert shown(log) == []
