"""A connection to the server under asyncio, and reading a dataset through it page by page."""

from __future__ import annotations

import asyncio
import random
from typing import Any, Self

import hiredis

from tests.soak.calls import Row
from tests.wire import MEGABYTE, Word, encode

PATIENCE_SECONDS = 60.0
"""How long an answer may take on a machine that has much else to do."""


class Ended(Exception):
    """The server has closed the connection, or is gone."""


class Wrong(AssertionError):
    """The server's reply is not what it must be."""


class Link:
    """Bytes out, replies in. Replies are bytes, integers, lists and hiredis.ReplyError."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._replies = hiredis.Reader(notEnoughData=self)

    @classmethod
    async def open(cls, port: int) -> Self:
        try:
            return cls(*await asyncio.open_connection("127.0.0.1", port))
        except OSError as error:
            raise Ended(str(error)) from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        """What the socket does not take waits here: a server that waits for us to read goes on."""
        self._writer.write(data)

    async def reply(self) -> Any:
        while (found := self._replies.gets()) is self:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    data = await self._reader.read(MEGABYTE)
            except OSError as error:
                if isinstance(error, TimeoutError):
                    raise
                raise Ended(str(error)) from error
            if not data:
                raise Ended("the server closed the connection")
            self._replies.feed(data)
        return found

    async def replies(self, count: int) -> list[Any]:
        return [await self.reply() for _ in range(count)]

    async def call(self, *words: Word) -> Any:
        self.send(encode(*words))
        return await self.reply()

    async def must(self, *words: Word) -> Any:
        """A call that no error may answer."""
        reply = await self.call(*words)
        if isinstance(reply, hiredis.ReplyError):
            raise Wrong(f"{words!r} got {reply}")
        return reply

    def stop_reading(self) -> None:
        """Leave to the system what comes from here on."""
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        """End it with what is left unsent."""
        self._writer.transport.abort()


class Pages:
    """Reads rows in pages of random size and puts them together."""

    def __init__(self, link: Link, generator: random.Random, *, small: bool = False) -> None:
        """`small`: pages of a few columns and rows, so that nearly everything is cut."""
        self._link = link
        self._random = generator
        self._most = 5 if small else 1_000
        self.read = 0

    async def dataset(self, dataset: bytes, prefix: bytes = b"") -> dict[bytes, Row]:
        """All rows that begin with the prefix, each with all visible cells."""
        rows: dict[bytes, Row] = {}
        cursor = b"0"
        selection: tuple[Word, ...] = ("PREFIX", prefix, "VERSIONS", "ALL")
        while True:
            paging = ("LIMIT", self._size(), "COUNT", self._size())
            after: tuple[Word, ...] = () if cursor == b"0" else ("CURSOR", cursor)
            cursor, found = await self._page("WCSCAN", dataset, *selection, *paging, *after)
            for name, columns, rest in found:
                assert name not in rows, f"row {name!r} came twice"
                rows[name] = await self._whole_row(dataset, name, columns, rest)
            if cursor == b"0":
                return rows

    async def _whole_row(
        self, dataset: bytes, name: bytes, columns: list[Any], cursor: bytes
    ) -> Row:
        row: Row = {}
        add_columns(row, columns)
        while cursor != b"0":
            paging = ("COUNT", self._size(), "CURSOR", cursor)
            words = ("WCGET", dataset, name, "VERSIONS", "ALL", *paging)
            cursor, columns = await self._page(*words)
            add_columns(row, columns)
        return row

    async def _page(self, *words: Word) -> Any:
        self.read += 1
        return await self._link.must(*words)

    def _size(self) -> int:
        return self._random.randrange(1, self._most + 1)


def add_columns(row: Row, columns: list[Any]) -> None:
    """One that a page has cut comes again, first, with its remaining cells."""
    for name, cells in columns:
        row.setdefault(name, []).extend((timestamp, value) for timestamp, value in cells)
