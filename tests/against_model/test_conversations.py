"""Random conversations with the server: commands, expiries and restarts in any order.

Servers take turns: one whose pages also end after a few cells examined or a few hundred bytes,
one whose pages end only at columns, rows and cells, where a page must be full and a cursor mean
more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.against_model.conversation import Conversation
from tests.against_model.ingredients import STATEFUL
from tests.against_model.steered import Limits, SteeredServer


@pytest.fixture(
    scope="module",
    params=[
        Limits(bytes=400, scan=7),
        Limits(),
        # An answer may take an eighth of the cache: this holds two or three rows.
        Limits(row_cache_bytes=3_600),
    ],
    ids=["cut-anywhere", "cut-where-counted", "with-a-tiny-row-cache"],
)
def steered(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SteeredServer]:
    server = SteeredServer(tmp_path_factory.mktemp("steered"), request.param)
    yield server
    server.process.close()


def test_conversations(steered: SteeredServer) -> None:
    steered.running()
    conversation: Any = lambda: Conversation(steered)  # noqa: E731 (typed narrower than it is)
    run_state_machine_as_test(conversation, settings=STATEFUL)
