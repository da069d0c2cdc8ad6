"""Commands: whatever is said, one answer each, no defect, and a store that is whole afterwards.

A script (script.py) is played to a server in this process. Who may not read a dataset hears
neither what is in it nor its name.
"""

from __future__ import annotations

import asyncio
import logging

import commands.families  # noqa: F401 - fills the command table
from storage import catalog
from storage.embedded.engine import EmbeddedEngine
from storage.encoding import split_key, split_value
from storage.memory.database import MemoryDatabase, MemoryFamily
from storage.model import ALL_NAMES, EVERYTHING, PageLimits, PageRequest
from tests.fuzz.hosting import Defects, FuzzedHost, Talk
from tests.fuzz.script import Line, expanded, keywords, leaves, lines_of, mutate
from tests.fuzz.target import Target

PASSWORD = b"secret"
UNSEEN, SECRET = b"unseen", b"topsecret"
RULES = (b"on", b">" + PASSWORD, b"~hos*", b"%R~other", b"&a*", b"+@all", b"-@dangerous", b"-acl")
BEFORE = (
    [b"WCPUT", b"hostile", b"row", b"1", b"column", b"v", b"2", b"column", b"7", b"3", b"a", b""],
    [b"WCPUT", b"other", b"row", b"EX", b"1000", b"*", b"\x00", b"\xff"],
    [b"WCPUT", UNSEEN, b"row", b"1", SECRET, SECRET],
)  # fmt: skip
CONNECTIONS = 3
RESTRICTED_CONNECTION = 2


def run(data: bytes) -> None:
    defects = Defects()
    root = logging.getLogger()
    root.addHandler(defects)
    try:
        asyncio.run(_play(lines_of(data), defects))
    finally:
        root.removeHandler(defects)
    defects.check()


async def _play(lines: list[Line], defects: Defects) -> None:
    asyncio.get_running_loop().set_exception_handler(defects.note)
    host = FuzzedHost()
    try:
        is_restricted = bool(lines) and lines[0] == [b"@restricted"]
        stage = Stage(host, all_restricted=is_restricted)
        await stage.prepare()
        for words in lines:
            await stage.play([expanded(word) for word in words])
            defects.check()
        await stage.check()
    finally:
        await host.end()
    while host.engine._datasets.parting:
        host.engine.tidy()
    check_store(host.database)


class Stage:
    """The connections a script speaks on."""

    def __init__(self, host: FuzzedHost, *, all_restricted: bool) -> None:
        self._host = host
        self._all_restricted = all_restricted
        self._talks: dict[int, Talk] = {}
        self._speaker = 0
        self._knows_name = False
        """Whether the script has said the name it should not know."""

    async def prepare(self) -> None:
        talk = Talk(self._host)
        for words in BEFORE:
            await talk.say(words)
        users = self._host.server.users
        users.change(b"restricted", RULES)
        if self._all_restricted:
            users.change(b"default", [b"resetpass", b">" + SECRET])

    async def play(self, words: Line) -> None:
        match words[0]:
            case b"@":
                self._speaker = int(words[1:2] in ([b"1"],)) + 2 * int(words[1:2] in ([b"2"],))
            case b"@fail":
                self._host.database.failures = 1
            case b"@stall":
                self._host.database.stalls = 2
            case b"@restricted":
                pass
            case _:
                self._knows_name |= any(UNSEEN in word.lower() for word in words)
                talk = await self._talk()
                await talk.say(words)
                self._check_secrecy(talk)

    async def _talk(self) -> Talk:
        talk = self._talks.get(self._speaker)
        if talk is None or talk.closed:
            talk = self._talks[self._speaker] = Talk(self._host)
            if self._all_restricted or self._speaker == RESTRICTED_CONNECTION:
                await talk.say([b"AUTH", b"restricted", PASSWORD])
        return talk

    def _check_secrecy(self, talk: Talk) -> None:
        if self._all_restricted:
            assert SECRET not in talk.heard
            assert self._knows_name or UNSEEN not in talk.heard.lower()

    async def check(self) -> None:
        """It answers a new client, and every dataset can be read to its end."""
        database, engine = self._host.database, self._host.engine
        database.failures = database.stalls = 0
        self._host.clients.unpause()
        users = self._host.server.users
        (answer,) = await Talk(self._host).say([b"PING"])
        default = users.default
        if default.open_to_all and default.unrestricted:
            assert answer == b"PONG"
        await read_all(engine)


async def read_all(engine: EmbeddedEngine) -> None:
    for name in engine.dataset_names():
        await engine.dataset_info(name)
        cursor = b"0"
        while True:
            request = PageRequest(PageLimits(rows=1000), cursor=cursor)
            cursor = (await engine.scan(name, ALL_NAMES, EVERYTHING, request)).cursor
            if cursor == b"0":
                break


def check_store(database: MemoryDatabase) -> None:
    """Every key and value decodes, and the catalog names the families there are."""
    catalogued = database.default_family()
    assert isinstance(catalogued, MemoryFamily)
    names = set()
    for key, value in catalogued.values.items():
        if key == catalog.CLOCK_KEY:
            catalog.decode_clock(value)
        else:
            name = catalog.name_of_entry(key)
            catalog.check_name(name)
            catalog.decode_entry(name, value)
            names.add(catalog.family_name(name))
    assert names == database.families().keys()
    for family in database.families().values():
        assert isinstance(family, MemoryFamily)
        assert family.keys == sorted(family.values)
        for key, value in family.values.items():
            split_key(key)
            split_value(value)


TARGET = Target(
    run,
    tokens=(*(leaf.name.replace("|", " ").encode() for leaf in leaves()), *keywords(), b"\n", b" "),
    mutate=mutate,
    max_bytes=3000,
)
