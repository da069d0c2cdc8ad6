"""Fixtures: a server of a module's own, and connections to it in RESP2 and RESP3.

For tests that change what all clients of a server see, or need directives: they would disturb each
other on the server that all modules share. A module overrides what it needs otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.compare import wire as typed
from tests.harness import PATIENCE_SECONDS, ServerProcess
from tests.wire import Wire

Connect = Callable[..., Wire]
"""The fixture connect: makes a connection, with a name if one is given."""


@pytest.fixture(scope="module")
def own_directives() -> dict[str, object]:
    """What the module's own server is started with: a module that needs some overrides this."""
    return {}


@pytest.fixture(scope="module")
def own(
    own_directives: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server of the module's own: nobody else is there, so all of it may be changed."""
    running = ServerProcess(tmp_path_factory.mktemp("own") / "data", **own_directives)  # type: ignore[arg-type]
    yield running.start()
    running.close()


@pytest.fixture
def connect(own: ServerProcess, protocol: int) -> Iterator[Connect]:
    """Makes connections that speak the protocol; all are gone when the test ends."""
    connected: list[Wire] = []

    def make(name: str = "") -> Wire:
        wire = Wire(own)
        connected.append(wire)
        wire.call("HELLO", protocol, *(["SETNAME", name] if name else []))
        return wire

    yield make
    for wire in connected:
        wire.close()


@pytest.fixture
def wire(connect: Connect) -> Wire:
    """A connection that speaks the protocol."""
    return connect()


@pytest.fixture
def other(own: ServerProcess) -> Iterator[Wire]:
    """Somebody else, who always speaks RESP2."""
    with Wire(own) as connected:
        yield connected


@pytest.fixture
def typed_wire(own: ServerProcess, protocol: int) -> Iterator[typed.Wire]:
    """A connection that speaks the protocol, and tells the types of replies apart."""
    with typed.Wire(own.port, PATIENCE_SECONDS) as connected:
        connected.call("HELLO", str(protocol))
        yield connected
