"""The slow log: what is worth an entry, what an entry keeps, how many there are."""

from __future__ import annotations

import pytest

from commands.observing.slow_log import SlowLog


def filled(log: SlowLog, *seconds: float) -> SlowLog:
    for duration in seconds:
        log.add([b"GET", b"k"], duration, 1_700_000_000, "127.0.0.1:1", b"me")
    return log


@pytest.mark.parametrize(
    ("slower_than_us", "durations"),
    [(10_000, [0.01, 0.5]), (0, [0.0, 0.009, 0.01, 0.5]), (500_001, []), (-1, [])],
)
def test_calls_from_the_limit_on_are_logged(slower_than_us: int, durations: list[float]) -> None:
    log = filled(SlowLog(slower_than_us), 0.0, 0.009, 0.01, 0.5)
    assert [entry.microseconds / 1e6 for entry in log.entries] == durations[::-1]


def test_the_limit_is_felt_at_once() -> None:
    log = filled(SlowLog(-1), 1.0)
    log.slower_than_us = 1000
    assert (log.slower_than_us, log.limit_seconds) == (1000, 0.001)
    assert len(filled(log, 0.0009, 0.001).entries) == 1


def test_an_entry_says_who_what_and_when() -> None:
    (entry,) = filled(SlowLog(0), 0.0123456).entries
    assert (entry.identifier, entry.unix_seconds, entry.microseconds) == (0, 1_700_000_000, 12_345)
    assert (entry.words, entry.address, entry.client_name) == ([b"GET", b"k"], "127.0.0.1:1", b"me")


def test_the_newest_come_first_and_the_oldest_go() -> None:
    log = filled(SlowLog(0, most=3), *[0.001] * 5)
    assert [entry.identifier for entry in log.entries] == [4, 3, 2]
    log.most = 1
    assert len(log.entries) == 3
    assert [entry.identifier for entry in filled(log, 0.001).entries] == [5]
    log.most = 0
    assert not filled(log, 0.001).entries


def test_numbers_go_on_after_a_reset() -> None:
    log = filled(SlowLog(0), 0.001, 0.001)
    log.reset()
    assert not log.entries
    assert [entry.identifier for entry in filled(log, 0.001).entries] == [2]


def words_of(*words: bytes) -> list[bytes]:
    log = SlowLog(0)
    log.add(list(words), 0.0, 0, "", b"")
    return log.entries[0].words


def test_long_words_are_cut() -> None:
    assert words_of(b"k" * 128, b"v" * 129) == [b"k" * 128, b"v" * 128 + b"... (1 more bytes)"]


def test_many_words_are_cut() -> None:
    assert len(words_of(*[b"k"] * 32)) == 32
    assert words_of(*[b"k"] * 33) == [*[b"k"] * 31, b"... (2 more arguments)"]


def test_a_password_is_hidden_before_words_are_cut() -> None:
    assert words_of(b"AUTH", b"p" * 500) == [b"AUTH", b"(redacted)"]
