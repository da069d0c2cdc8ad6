"""What `*` stands for: later than all before, and never far from the wall clock."""

from __future__ import annotations

import os
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.against_model.ingredients import VALUES
from tests.against_model.steered import SteeredServer, execute
from tests.harness import ServerProcess


def test_more_stamps_than_a_millisecond_has_numbers_for(unhurried: SteeredServer) -> None:
    """The clock stands still, and still every `*` is a cell of its own, newer than the last."""
    total, a_call = 70_000, 10_000
    name, now = next(unhurried.names), unhurried.clock.start_of_example()
    with unhurried.running().client() as client:
        for first in range(0, total, a_call):
            words = [word for n in range(first, first + a_call) for word in ("*", "c", n)]
            assert execute(client, "WCPUT", name, "row", *words) == a_call
        found: list[Any] = []
        cursor = b"0"
        while cursor != b"0" or not found:
            page = execute(client, "WCGET", name, "row", "VERSIONS", "ALL", "CURSOR", cursor)
            cursor, [[_, cells]] = page
            found += cells
    assert [int(value) for _, value in found] == list(reversed(range(total)))
    assert {timestamp for timestamp, _ in found} == {now, now + 1}


@settings(max_examples=20, deadline=None)
@given(values=st.lists(st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=4))
def test_stamps_follow_the_wall_clock(server: ServerProcess, values: list[list[bytes]]) -> None:
    """`*` with default limits and a clock that runs: never back, later cells newer."""
    row = os.urandom(8)
    with server.client() as client:
        for command in values:
            words = [word for value in command for word in (b"*", b"c", value)]
            assert execute(client, "WCPUT", "stamps", row, *words) == len(command)
        reply = execute(client, "WCGET", "stamps", row, "VERSIONS", "ALL")
    cursor, [[column, cells]] = reply
    stamps = [timestamp for timestamp, _ in cells]
    assert (cursor, column) == (b"0", b"c")
    assert [value for _, value in cells] == [v for command in values for v in command][::-1]
    assert stamps == sorted(stamps, reverse=True)
    assert abs(stamps[0] - time.time() * 1000) < 60_000
