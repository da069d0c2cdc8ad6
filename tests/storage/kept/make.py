"""Writes the store that is kept for this release: `python -m tests.storage.kept.make`.

Once a release is out, its store is never written again: later releases have to open it as it is.
What it must hold comes from the model in tests/model.py, not from the server, which is compared
with it here. The server runs on a clock that stands still between the steps, in the past of whoever
reads this, so that what has expired now has expired ever after, and the rest lives until 2100.

The store was written in two lives. The first ended cleanly, with a compaction behind it; the second
was killed, so that opening the store means to recover its log.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from resp_server.version import VERSION
from tests.against_model.steered import STEERED, Clock
from tests.harness import ServerProcess, until
from tests.model import Doomed, Model, Selection, Settings, Span, Write
from tests.storage.kept.contents import (
    CONTENTS,
    KEPT,
    STORE,
    Contents,
    Page,
    Rows,
    information_of,
    rows_of,
    written,
)
from tests.wire import Wire, Word

BEGUN_MS = 1_750_000_000_000
DAY_MS = 86_400_000
FAR_MS = 4_102_444_800_000
"""The year 2100: what expires then has not expired while anybody tests this."""
EVERY_BYTE = bytes(range(256))
NAMES = [b"", b"\0", b"\0\0", b"\0\1", b"\1", b"a", b"a\0", b"a\0b", b"ab", b"\r\n", b"\xff" * 3]


class Author:
    """Writes into the server and into the model alike."""

    def __init__(self, directory: Path) -> None:
        self.clock = Clock(directory / "clock")
        self.clock.now = BEGUN_MS
        self.model = Model()
        self.server = ServerProcess(
            directory / "data", command=(sys.executable, "-c", STEERED, str(directory / "clock"))
        )

    def call(self, *words: Word) -> Any:
        reply = self.wire.call(*words)
        assert not isinstance(reply, Exception), f"{words!r}: {reply}"
        return reply

    def start(self) -> None:
        self.server.start()
        self.wire = Wire(self.server)

    def pass_ms(self, milliseconds: int = 1) -> None:
        self.clock.now += milliseconds

    def create(self, name: str, max_versions: int = 0, ttl_seconds: int = 0) -> None:
        given = ("MAXVERSIONS", max_versions, "TTL", ttl_seconds)
        self.call("WCDATASET", "CREATE", name, *given)
        self.model.create(name, Settings(max_versions, ttl_seconds))

    def put(self, name: str, *writes: Write, expires_at: int | None = None) -> None:
        expiry = () if expires_at is None else ("PXAT", expires_at)
        words: list[Word] = []
        for write in writes:
            given = "*" if write.timestamp is None else write.timestamp
            words += [write.row, given, write.column, write.value]
        self.call("WCMPUT", name, *expiry, *words)
        self.model.put(name, writes, self.clock.now, expires_at)

    def column(self, name: str, row: bytes, column: bytes, *timestamps: int) -> None:
        """A cell at each of these times, whose value tells when and where."""
        self.put(name, *(Write(row, at, column, b"%b at %d" % (column, at)) for at in timestamps))

    def delete(self, name: str, row: bytes, doomed: Doomed, *words: Word) -> None:
        assert self.call("WCDEL", name, row, *words) == self.model.delete(
            name, row, doomed, self.clock.now
        )

    def increment(self, name: str, row: bytes, column: bytes, by: int) -> None:
        found = self.call("WCINCRBY", name, row, column, by)
        assert found == self.model.increment(name, row, column, by, self.clock.now)

    def compact(self, name: str) -> None:
        self.call("WCDATASET", "COMPACT", name)
        until(lambda: information_of(self.call, name.encode())[b"last-compaction-ms"] > 0)

    # What must be there

    def expected(self, name: str) -> Rows:
        selection = Selection(versions=None)
        return [
            (
                row,
                [(column, [(cell.timestamp, cell.value) for cell in cells]) for column, cells in c],
            )
            for row, c in self.model.scan(name, Span(), selection, self.clock.now)
        ]

    def contents(self, pages: list[Page]) -> Contents:
        names = sorted(name.encode() for name in self.model.datasets)
        assert self.call("WCDATASET", "LIST") == names
        rows = {name: self.expected(name.decode()) for name in names}
        for name in names:
            assert rows_of(self.call, name) == rows[name], name
        information = {name: information_of(self.call, name) for name in names}
        return Contents(information, rows, pages, self.clock.now)

    def page(
        self, words: tuple[Word, ...], most: tuple[Word, ...], first: tuple[Word, ...]
    ) -> Page:
        """A read begun with a page as `first` says; `most` is a size that has room for all."""
        cursor, begun = self.call(*words, *first)
        end, rest = self.call(*words, *most, "CURSOR", cursor)
        whole_end, whole = self.call(*words, *most)
        assert cursor != end == whole_end == b"0"
        assert [*begun, *rest] == whole
        return Page([*words, *most], cursor, rest)

    def pages(self) -> list[Page]:
        everything, columns, rows = ("VERSIONS", "ALL"), ("COUNT", 5_000), ("LIMIT", 500)
        scan: tuple[Word, ...] = ("WCSCAN", "wide", "PREFIX", "s", *everything)
        cut = ("CONFIG", "SET", "wc-page-cells")
        pages = [
            self.page(("WCGET", "wide", "r", *everything), columns, ("COUNT", 120)),
            self.page(("WCGET", "wide", "r", "FROM", "c05"), columns, ("COUNT", 10)),
            self.page(("WCGET", "bytes", b"\0\0"), columns, ("COUNT", 3)),
            self.page(("WCCOLS", "wide", "r"), columns, ("COUNT", 33)),
            self.page(scan, rows, ("LIMIT", 11)),
        ]
        self.call(*cut, 130)
        cursor, begun = self.call("WCGET", "wide", "r", *everything, *columns)
        self.call(*cut, 10_000)
        assert begun[-1][0] == b"c100"
        _, rest = self.call("WCGET", "wide", "r", *everything, *columns, "CURSOR", cursor)
        assert rest[0][0] == b"c100", "the page ended inside of the column"
        return [*pages, Page(["WCGET", "wide", "r", *everything, *columns], cursor, rest)]


def write_first_life(author: Author) -> None:
    """All of this ends up in RocksDB's files."""
    author.put("bytes", Write(EVERY_BYTE, 1, EVERY_BYTE, EVERY_BYTE))
    for row in NAMES:
        author.put("bytes", *(Write(row, 7, name, row + b"/" + name) for name in NAMES))
    author.put("bytes", Write(b"n" * 2_000, 2**63 - 1, b"c", b""), Write(b"long", 0, b"c", b"0"))

    author.create("versions", max_versions=3)
    for row in (b"r", b"s"):
        author.column("versions", row, b"c", 10, 60, 20, 50, 30, 40)
        author.column("versions", row, b"few", 2, 1)

    author.create("settings:ttl", ttl_seconds=86_400)
    author.column("settings:ttl", b"gone", b"c", 1, BEGUN_MS - DAY_MS - 1)
    author.column("settings:ttl", b"mixed", b"c", BEGUN_MS - DAY_MS - 5, FAR_MS)
    author.column("settings:ttl", b"stays", b"c", FAR_MS, FAR_MS + 1)

    author.create("expiries", max_versions=2)
    author.column("expiries", b"r", b"c", 1, 2)
    author.put("expiries", Write(b"r", 3, b"c", b"long gone"), expires_at=BEGUN_MS - 1)
    author.put("expiries", Write(b"r", 4, b"c", b"until 2100"), expires_at=FAR_MS)
    author.put("expiries", Write(b"s", 9, b"c", b"never seen"), expires_at=1)

    author.create("both", max_versions=2, ttl_seconds=86_400)
    author.column("both", b"r", b"c", 1, FAR_MS, FAR_MS + 1, FAR_MS + 2)
    author.put("both", Write(b"r", FAR_MS, b"d", b"v"), expires_at=FAR_MS)

    author.create("deletes")
    for row in (b"early", b"whole", b"columns", b"times", b"again"):
        for column in range(40):
            author.column("deletes", row, b"%02d" % column, *range(1, 6))
    author.delete("deletes", b"early", Doomed())
    author.create("dropped")
    author.column("dropped", b"r", b"c", 1)

    author.create("wide")
    author.put("wide", *(Write(b"r", 5, b"c%03d" % n, b"%d" % n) for n in range(250)))
    author.column("wide", b"r", b"c100", *range(6, 60))
    author.put("wide", *(Write(b"s%02d" % n, 5, b"c", b"%d" % n) for n in range(30)))
    author.pass_ms()
    for name in ("versions", "expiries", "settings:ttl"):
        author.compact(name)


def write_second_life(author: Author) -> None:
    """All of this is in the log alone, and some of it lies over what the first life wrote."""
    author.pass_ms(60_000)
    author.delete("deletes", b"whole", Doomed())
    some = frozenset([b"00", b"01", b"17"])
    author.delete("deletes", b"columns", Doomed(some), "COLUMNS", 3, *sorted(some))
    in_range = Doomed(hits=lambda at: 2 <= at <= 3)
    author.delete("deletes", b"times", in_range, "RANGE", 2, 3)
    chosen = Doomed(frozenset([b"05"]), lambda at: at in (1, 5))
    author.delete("deletes", b"times", chosen, "COLUMNS", 1, b"05", "TIMESTAMPS", 2, 1, 5)
    author.delete("deletes", b"again", Doomed())
    author.column("deletes", b"again", b"00", 3, 1)

    author.column("versions", b"r", b"c", 45, 70)
    author.column("versions", b"r", b"late", 1, 2, 3, 4, 5)
    author.call("WCDATASET", "ALTER", "both", "MAXVERSIONS", 1)
    author.model.alter("both", max_versions=1)
    author.call("WCDATASET", "DROP", "dropped")
    author.model.drop("dropped")
    author.call("WCDATASET", "CREATE", "empty")
    author.model.create("empty", Settings())

    for number in range(4):
        author.put("stamps", *(Write(b"r", None, b"c", b"%d %d" % (number, n)) for n in range(3)))
        author.pass_ms(number % 2)
    for by in (5, -7, 2**40):
        author.increment("stamps", b"r", b"count", by)
    author.put("stamps", Write(b"r", author.clock.now, b"c", b"given, of the same millisecond"))


def packed(directory: Path) -> bytes:
    """The directory without notes on who used it when: some name paths of this machine."""
    buffer = io.BytesIO()
    # No times and no owners: the same store makes the same archive.
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(directory.rglob("*")):
            if path.is_file() and not path.name.startswith(("LOG", "LOCK", "HOLDER")):
                about = tarfile.TarInfo(str(path.relative_to(directory)))
                about.size, about.mode = path.stat().st_size, 0o600
                archive.addfile(about, io.BytesIO(path.read_bytes()))
    return buffer.getvalue()


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        author = Author(Path(scratch))
        try:
            author.start()
            write_first_life(author)
            assert author.server.stop() == 0
            author.start()
            write_second_life(author)
            contents = author.contents(author.pages())
            author.server.kill()
        finally:
            author.server.close()
        folder = KEPT / VERSION
        folder.mkdir(exist_ok=True)
        (folder / STORE).write_bytes(packed(author.server.directory))
        (folder / CONTENTS).write_text(written(contents), "ascii")
        sizes = [(folder / name).stat().st_size for name in (STORE, CONTENTS)]
        print(f"{folder.name}: {sizes[0]} bytes of store, {sizes[1]} bytes of contents")


if __name__ == "__main__":
    main()
