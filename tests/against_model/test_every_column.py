"""What a change leaves of every column of four cells, compacted or not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.against_model.conversation import Conversation
from tests.against_model.every_column import ACTS, DELETES, REWRITES, EveryColumn, perform
from tests.against_model.ingredients import STATEFUL
from tests.against_model.steered import SteeredServer
from tests.model import Selection, Settings, Span


@pytest.mark.parametrize("max_versions", [1, 2])
@pytest.mark.parametrize("act", [*DELETES, *REWRITES])
def test_every_column_after_one_change(
    unhurried: SteeredServer, max_versions: int, act: str
) -> None:
    perform(unhurried, Settings(max_versions), [act])
    perform(unhurried, Settings(max_versions), ["compact", act, "compact"])


@settings(STATEFUL)
@given(
    chosen=st.builds(Settings, st.sampled_from([0, 1, 2, 3]), st.sampled_from([0, 3600])),
    acts=st.lists(st.sampled_from(sorted(ACTS)), min_size=2, max_size=5),
)
def test_every_column_after_several_changes(
    unhurried: SteeredServer, chosen: Settings, acts: list[str]
) -> None:
    perform(unhurried, chosen, acts)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize(
    ("narrow", "wide"),
    [(Settings(1), (0, None)), (Settings(2), (3, None)), (Settings(0, 600), (None, 0))],
)
def test_wider_settings_show_what_was_visible_and_nothing_unwritten(
    unhurried: SteeredServer,
    narrow: Settings,
    wide: tuple[int | None, int | None],
    compacted: bool,
) -> None:
    every = EveryColumn(unhurried, narrow)
    talk = every.talk
    try:
        every.fill()
        if compacted:
            talk.compact(awaited=True)
        before = timestamps_of(talk)
        option, number = [("MAXVERSIONS", wide[0]), ("TTL", wide[1])][wide[0] is None]
        talk.send("WCDATASET", "ALTER", talk.dataset, option, number or 0)
        after = timestamps_of(talk)
        # What was lost between two cells moves up older ones: any that lives may show.
        talk.model.alter(talk.dataset, max_versions=0, ttl_seconds=wide[1])
        most = timestamps_of_model(talk)
    finally:
        talk.model.datasets.clear()
        talk.teardown()
    for row in talk.rows:
        assert before.get(row, set()) <= after.get(row, set()) <= most.get(row, set())


def timestamps_of(talk: Conversation) -> dict[bytes, set[int]]:
    _, rows = talk.send("WCSCAN", talk.dataset, "VERSIONS", "ALL", "NOVALUES")
    return {row: set(timestamps) for row, [[_, timestamps]], _ in rows}


def timestamps_of_model(talk: Conversation) -> dict[bytes, set[int]]:
    rows = talk.model.scan(talk.dataset, Span(), Selection(versions=None), talk.now)
    return {row: {cell.timestamp for cell in cells} for row, [(_, cells)] in rows}
