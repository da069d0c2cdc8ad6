"""What the server has told all writers, over all of its lives, held against what it holds."""

from __future__ import annotations

import random
from typing import Any

from tests.soak.calls import Dataset, Row, Store
from tests.soak.fate import Stamps, as_expected, fate
from tests.soak.link import Link, Pages
from tests.soak.maker import SHARED
from tests.soak.writer import Progress, Writer, share_of

CLOCK = b"clock"
"""The dataset in which each life of the server stamps its first cell."""

RowsByDataset = dict[bytes, dict[bytes, Row]]


class Witness:
    """The writers of one data directory, and what they know."""

    def __init__(self, seed: int, writers: int, *, longest_pipeline: int = 120) -> None:
        self.progress = Progress()
        self.unanswered = 0
        """Calls that had no answer when the server was killed."""
        self.survived = 0
        """Those among them that happened all the same."""
        self.life = 0
        self.writers = [
            Writer(
                b"w%02d:" % number,
                random.Random(f"{seed} {number}"),
                self.progress,
                longest_pipeline=longest_pipeline,
                restless=number == 0,
            )
            for number in range(writers)
        ]
        self._random = random.Random(seed)
        self._stamps = Stamps()

    async def begin(self, port: int) -> None:
        """The server was started: compare, and let the writers go on from what it holds."""
        async with await Link.open(port) as link:
            rows = await everything(link, self._random)
            whole = await as_store(link, rows)
            if self.life:
                self._compare(whole)
            self._stamps.begin(await self._first_stamp(link), rows)
            for name, max_versions in SHARED.items():
                given = ("MAXVERSIONS", max_versions, "IFNOTEXISTS")
                await link.must("WCDATASET", "CREATE", name, *given)
                whole.setdefault(name, Dataset(max_versions))
        for writer in self.writers:
            writer.begin(self.life, share_of(writer.name, whole))
        self.life += 1

    async def compare(self, link: Link) -> None:
        """The server holds what the writers were told, and nothing of theirs beside it: or Lost."""
        self._compare(await as_store(link, await everything(link, self._random)))

    def _compare(self, whole: Store) -> None:
        for writer in self.writers:
            unanswered = list(writer.unanswered)
            self.unanswered += len(unanswered)
            self.survived += fate(writer.store, unanswered, share_of(writer.name, whole))

    async def _first_stamp(self, link: Link) -> int:
        await link.must("WCPUT", CLOCK, "r", "*", "c", f"life {self.life}, ")
        [[_, [[stamp, _]]]] = (await link.must("WCGET", CLOCK, "r"))[1]
        assert isinstance(stamp, int)
        return stamp


async def everything(link: Link, generator: random.Random) -> RowsByDataset:
    """All rows of all datasets, as the server gives them."""
    pages = Pages(link, generator)
    return {name: await pages.dataset(name) for name in await link.must("WCDATASET", "LIST")}


async def as_store(link: Link, rows: RowsByDataset) -> Store:
    store: Store = {}
    for name, found in rows.items():
        fields: list[Any] = await link.must("WCDATASET", "INFO", name)
        information = dict(zip(fields[::2], fields[1::2], strict=True))
        store[name] = Dataset(information[b"maxversions"], as_expected(found))
    return store
