"""Fixtures: a redis-server, another one, and Colonnade, for the whole session.

The comparison is skipped where there is no redis-server 7.0 (apt install redis-server; CI does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compare.servers import RedisProcess, Side, redis_is_installed
from tests.harness import ServerProcess

Directives = tuple[tuple[str, str], ...]
Sides = Callable[[Directives], Side]
"""Gives the server that was started with these directives, and starts it where it was not yet."""


def _kept(directory: Path, start: Callable[[Path, dict[str, str]], Side]) -> Iterator[Sides]:
    """`{home}` in a directive is the server's own directory, which has an empty users.acl."""
    running: dict[Directives, Side] = {}

    def side(directives: Directives = ()) -> Side:
        if directives not in running:
            home = directory / str(len(running))
            home.mkdir()
            (home / "users.acl").touch()
            filled = {name: value.replace("{home}", str(home)) for name, value in directives}
            running[directives] = start(home, filled)
        return running[directives]

    yield side
    for each in running.values():
        each.close()


def _start_redis(home: Path, directives: dict[str, str]) -> Side:
    if not redis_is_installed():
        pytest.skip("redis-server 7.0 is not installed: nothing to compare with")
    return Side(RedisProcess(home, directives).start())


def _start_colonnade(home: Path, directives: dict[str, str]) -> Side:
    given = {word.replace("-", "_"): value for word, value in directives.items()}
    return Side(ServerProcess(home / "data", **given).start())


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    yield from _kept(tmp_path_factory.mktemp("reference"), _start_redis)


@pytest.fixture(scope="session")
def second_reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    yield from _kept(tmp_path_factory.mktemp("second_reference"), _start_redis)


@pytest.fixture(scope="session")
def colonnade(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    yield from _kept(tmp_path_factory.mktemp("colonnade"), _start_colonnade)
