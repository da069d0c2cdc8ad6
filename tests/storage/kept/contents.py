"""What a kept store must hold, as the JSON beside it says: bytes are text in Latin-1 there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.wire import Word

KEPT = Path(__file__).parent
STORE, CONTENTS = "store.tar.gz", "contents.json"

Cells = list[tuple[int, bytes]]
Columns = list[tuple[bytes, Cells]]
Rows = list[tuple[bytes, Columns]]
Call = Callable[..., Any]
"""Sends the words of a command, returns the reply."""


@dataclass(frozen=True, slots=True)
class Page:
    """A read that the release had begun: the words of the call, its cursor, and what is left."""

    words: list[Word]
    cursor: bytes
    rest: Any


@dataclass(frozen=True, slots=True)
class Contents:
    information: dict[bytes, dict[bytes, Any]]
    """WCDATASET INFO of each dataset, but for what is estimated."""
    rows: dict[bytes, Rows]
    pages: list[Page]
    last_stamp: int
    """The latest timestamp that the server made, in ms."""


LASTING = (
    b"name",
    b"maxversions",
    b"ttl",
    b"created-ms",
    b"last-compaction-ms",
    b"last-compaction-removed-cells",
)


def information_of(call: Call, dataset: bytes) -> dict[bytes, Any]:
    fields = call("WCDATASET", "INFO", dataset)
    told = dict(zip(fields[::2], fields[1::2], strict=True))
    return {name: told[name] for name in LASTING}


def rows_of(call: Call, dataset: bytes, count: int = 1_000) -> Rows:
    """All visible cells of a dataset, in pages of so many columns and rows."""
    rows: Rows = []
    cursor = b"0"
    while True:
        selection = ("VERSIONS", "ALL", "LIMIT", count, "COUNT", count)
        after: tuple[Word, ...] = () if cursor == b"0" else ("CURSOR", cursor)
        cursor, found = call("WCSCAN", dataset, *selection, *after)
        for row, columns, rest in found:
            rows.append((row, []))
            append(rows[-1][1], columns)
            while rest != b"0":
                rest, more = call(
                    "WCGET", dataset, row, "VERSIONS", "ALL", "COUNT", count, "CURSOR", rest
                )
                append(rows[-1][1], more)
        if cursor == b"0":
            return rows


def append(columns: Columns, page: list[Any]) -> None:
    """A column that a page has cut comes again first on the next one."""
    for name, cells in page:
        if not columns or columns[-1][0] != name:
            columns.append((name, []))
        columns[-1][1].extend((time, value) for time, value in cells)


# JSON


def written(contents: Contents) -> str:
    names = Contents.__slots__
    fields = {name: getattr(contents, name) for name in names}
    fields["pages"] = [[page.words, page.cursor, page.rest] for page in contents.pages]
    return json.dumps(_as_text(fields), separators=(",", ":")) + "\n"


def read(path: Path) -> Contents:
    fields: dict[str, Any] = json.loads(path.read_text("ascii"))
    return Contents(
        _as_bytes(fields["information"]),
        {
            name.encode("latin-1"): [
                (row, [(column, [(time, value) for time, value in cells]) for column, cells in own])
                for row, own in _as_bytes(rows)
            ]
            for name, rows in fields["rows"].items()
        },
        [Page(*_as_bytes(page)) for page in fields["pages"]],
        fields["last_stamp"],
    )


def _as_text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, dict):
        return {_as_text(name): _as_text(kept) for name, kept in value.items()}
    return [_as_text(part) for part in value] if isinstance(value, list | tuple) else value


def _as_bytes(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("latin-1")
    if isinstance(value, dict):
        return {_as_bytes(name): _as_bytes(kept) for name, kept in value.items()}
    return [_as_bytes(part) for part in value] if isinstance(value, list) else value
