"""ioredis, node-redis, go-redis, Jedis and Lettuce feel at home; programs.py tells how they run."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

import pytest

from tests.clients.conftest import Servers
from tests.clients.programs import (
    PROGRAMS,
    SCENARIOS,
    MissingToolchain,
    NotInstalled,
    Outcome,
    Toolchain,
    run_program,
)

Run = Callable[[str], Outcome]


@pytest.fixture(scope="module")
def run(servers: Servers) -> Run:
    """Runs a program when one of its scenarios is asked for first; its outcome answers them all."""
    environment = {
        "PORT": str(servers.open.port),
        "TLS_PORT": str(servers.tls_port),
        "CA_FILE": str(servers.certificates.ca),
        "GUARDED_PORT": str(servers.guarded.port),
        "PASSWORD": servers.password,
    }

    @functools.cache
    def outcome(name: str) -> Outcome:
        given = {**environment, "DATASET": name}
        return run_program(PROGRAMS[name], given, servers.open.restart)

    return outcome


@pytest.fixture(scope="module")
def install() -> Callable[[str], None]:
    """Makes a program ready, once, or ends the test with the reason why it cannot be.

    A machine without the toolchain, or without a network, is a reason to skip. CI has a network:
    there what cannot be installed is a failure, or nobody would notice that these tests are gone.
    """

    @functools.cache
    def problem(toolchain: Toolchain) -> MissingToolchain | NotInstalled | None:
        try:
            toolchain.install()
        except (MissingToolchain, NotInstalled) as error:
            return error
        return None

    def made_ready(name: str) -> None:
        found = problem(PROGRAMS[name].toolchain)
        if isinstance(found, NotInstalled) and os.environ.get("CI"):
            pytest.fail(str(found))
        if found is not None:
            pytest.skip(str(found))

    return made_ready


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(install: Callable[[str], None], run: Run, name: str, scenario: str) -> None:
    install(name)
    problem = run(name).problem(scenario)
    assert problem is None, problem
