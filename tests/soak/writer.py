"""A client that writes in pipelines, knows what the server must answer, and compares.

Its rows are its own, so what the server holds of them follows from its calls alone.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import hiredis

from tests.soak.calls import REFUSED, Dataset, Reply, Row, Store, Unit
from tests.soak.fate import Lost, as_expected, explained
from tests.soak.link import Ended, Link, Pages, Wrong
from tests.soak.maker import SHARED, Maker


def as_reply(reply: Any) -> Reply:
    """Any error is REFUSED; what a reply of one contains, in a list."""
    if isinstance(reply, hiredis.ReplyError):
        return REFUSED
    return [as_reply(part) for part in reply] if isinstance(reply, list) else reply


class Progress:
    """What all writers together have done."""

    def __init__(self) -> None:
        self.answered = 0
        self.pages = 0
        self._awaited: tuple[int, Callable[[], object]] | None = None

    def call_at(self, answered: int, callback: Callable[[], object]) -> None:
        """Call this in the very moment when so many calls have been answered."""
        self._awaited = answered, callback

    def count(self) -> None:
        """One more call was answered."""
        self.answered += 1
        if self._awaited is not None and self.answered >= self._awaited[0]:
            _, callback = self._awaited
            self._awaited = None
            callback()


class Writer:
    """One writer over all lives of the server."""

    def __init__(
        self,
        name: bytes,
        generator: random.Random,
        progress: Progress,
        *,
        longest_pipeline: int = 120,
        restless: bool = False,
    ) -> None:
        self.name = name
        self.store: Store = {}
        """What the server must hold of this writer, by the answers so far."""
        self.unanswered: deque[Unit] = deque()
        self.maker = Maker(name, generator, restless=restless)
        self.ended = False
        """Set from outside: make no further calls."""
        self._random = generator
        self._progress = progress
        self._longest_pipeline = longest_pipeline

    def begin(self, life: int, found: Store) -> None:
        """The server has begun a new life, in which it holds `found` of this writer."""
        self.store = found
        self.unanswered.clear()
        self.maker.life = life
        self.ended = False

    async def run(self, port: int, *, walks: bool = False) -> None:
        """Write until `ended` or until the server is gone.

        `walks`: now and then read in small pages all that is its own, and compare.
        """
        try:
            async with await Link.open(port) as link:
                while not self.ended:
                    await self._pipeline(link)
                    if walks and self._random.random() < 0.03:
                        await self._walk(link)
        except Ended:
            if self.ended:
                raise

    async def _pipeline(self, link: Link) -> None:
        length = self._random.randrange(1, self._longest_pipeline)
        units = [self.maker.unit(self.store) for _ in range(length)]
        self.unanswered.extend(units)
        link.send(b"".join(unit.encoded() for unit in units))
        for unit in units:
            replies = await link.replies(unit.reply_count)
            expected = unit.apply(self.store)
            self.unanswered.popleft()
            if as_reply(replies) != expected:
                raise Wrong(f"{self.name!r}: {unit} got {replies!r} and not {expected!r}")
            self._progress.count()

    async def _walk(self, link: Link) -> None:
        """Read all that is this writer's, in small pages; nothing of it changes meanwhile."""
        pages = Pages(link, self._random, small=True)
        for name in self.store:
            rows = await pages.dataset(name, self.name)
            self._compare(name, as_expected(rows))
        self._progress.pages += pages.read

    def _compare(self, name: bytes, rows: dict[bytes, Row]) -> None:
        mine = self.store[name]
        differences = list(explained({name: mine}, {name: replace(mine, rows=rows)}))
        if differences:
            raise Lost(f"{self.name!r} reads other than it wrote:\n" + "\n".join(differences[:9]))


def share_of(writer: bytes, whole: Store) -> Store:
    """What of everything that the server holds is this writer's."""
    share: Store = {}
    for name, dataset in whole.items():
        if name in SHARED:
            rows = {row: kept for row, kept in dataset.rows.items() if row.startswith(writer)}
            share[name] = Dataset(dataset.max_versions, rows)
        elif name == writer:
            share[name] = dataset
    return share
