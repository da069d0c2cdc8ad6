"""Every directive of the configuration, once: name, type, default, and what it does.

Reading redis.conf and the command line, error messages with file and line, and redis.conf.example
derive from this table. Values are what their kind makes of the words after the name: a number of
bytes for `64mb`, True for `yes`. Knows nothing of who uses them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from dataclasses import field as _field
from pathlib import Path
from typing import Any

from resp_server.careful import ProtocolError, split_inline
from storage.model import MAX_TTL_SECONDS, MAX_VERSIONS_LIMIT

_UNITS = {
    "": 1, "b": 1, "k": 1000, "kb": 1024, "m": 1000**2, "mb": 1024**2, "g": 1000**3, "gb": 1024**3,
}  # fmt: skip
_AMOUNT = re.compile(r"(\d{1,18})([a-z]*)")


class BadSetting(Exception):
    """A directive that cannot be taken; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How a directive's words become its value, and how the value is written again."""

    read: Callable[[Sequence[str]], Any]
    write: Callable[[Any], str]


def _single(read: Callable[[str], Any]) -> Callable[[Sequence[str]], Any]:
    def read_one(words: Sequence[str]) -> Any:
        if len(words) != 1:
            raise BadSetting("wrong number of arguments")
        return read(words[0])

    return read_one


def _integer(least: int, most: int) -> Kind:
    def read(word: str) -> int:
        if not re.fullmatch(r"-?\d{1,19}", word) or not least <= int(word) <= most:
            raise BadSetting(f"argument must be between {least} and {most} inclusive")
        return int(word)

    return Kind(_single(read), str)


def _bytes(least: int, most: int = 2**62) -> Kind:
    def read(word: str) -> int:
        amount = _AMOUNT.fullmatch(word.lower())
        unit = _UNITS.get(amount.group(2)) if amount else None
        if amount is None or unit is None:
            raise BadSetting("argument must be a memory value, like 64mb")
        if not least <= int(amount.group(1)) * unit <= most:
            raise BadSetting(f"argument must be at least {_written_bytes(least)}")
        return int(amount.group(1)) * unit

    return Kind(_single(read), _written_bytes)


def _written_bytes(value: int) -> str:
    for unit in ("gb", "mb", "kb"):
        if value and value % _UNITS[unit] == 0:
            return f"{value // _UNITS[unit]}{unit}"
    return str(value)


def _choice(*words: str) -> Kind:
    def read(word: str) -> str:
        if word.lower() not in words:
            raise BadSetting(f"argument must be one of: {', '.join(words)}")
        return word.lower()

    return Kind(_single(read), str)


def _octal(word: str) -> int:
    if not re.fullmatch(r"[0-7]{1,4}", word) or int(word, 8) > 0o777:
        raise BadSetting("argument must be an octal number up to 777")
    return int(word, 8)


def _quoted(text: str) -> str:
    """As a word of redis.conf: in double quotes, with escapes, where it needs them."""
    if text and not re.search(r"[\s\"'\\#\x00-\x1f]", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f]", lambda found: f"\\x{ord(found[0]):02x}", escaped) + '"'


TEXT = Kind(_single(str), _quoted)
TEXTS = Kind(tuple, lambda values: " ".join(map(_quoted, values)))
SWITCH = Kind(
    lambda words: _choice("yes", "no").read(words) == "yes", lambda value: "yes" if value else "no"
)
OCTAL = Kind(_single(_octal), lambda value: f"{value:o}")


def _directive(section: str, default: Any, kind: Kind, text: str) -> Any:
    """A field that carries its directive; its name has `_` where the directive has `-`."""
    return _field(default=default, metadata={"section": section, "kind": kind, "text": text})


_NETWORK, _GENERAL, _SECURITY, _DATA = "network", "general", "security", "data on disk"
_WIDE = "wide columns"
_MEGABYTE = 1024 * 1024


@dataclass(slots=True)
class Settings:
    """All directives with their values. Defaults are those of redis.conf.example."""

    bind: tuple[str, ...] = _directive(
        _NETWORK, ("127.0.0.1",), TEXTS, "The addresses to listen on."
    )
    port: int = _directive(
        _NETWORK, 6379, _integer(0, 65535), "The TCP port; 0 listens on no TCP port."
    )
    tcp_backlog: int = _directive(
        _NETWORK, 511, _integer(1, 65535), "Connections the system may hold before they are taken."
    )
    unixsocket: str = _directive(
        _NETWORK, "", TEXT, 'The path of a unix socket to listen on; "" for none.'
    )
    unixsocketperm: int = _directive(_NETWORK, 0o700, OCTAL, "The permissions of that socket.")
    maxclients: int = _directive(
        _NETWORK, 10_000, _integer(1, 10**6), "Connections over this number are refused."
    )
    proto_max_bulk_len: int = _directive(
        _NETWORK, 512 * _MEGABYTE, _bytes(_MEGABYTE), "The longest single argument."
    )
    client_query_buffer_limit: int = _directive(
        _NETWORK, 1024 * _MEGABYTE, _bytes(_MEGABYTE), "The longest single command."
    )
    databases: int = _directive(
        _GENERAL, 16, _integer(1, 2**31 - 1), "SELECT takes 0 to one less. Datasets are in all."
    )
    loglevel: str = _directive(
        _GENERAL,
        "notice",
        _choice("debug", "verbose", "notice", "warning"),
        "How much is logged.",
    )
    logfile: str = _directive(
        _GENERAL, "", TEXT, 'The file to log to; "" logs to the standard output.'
    )
    requirepass: str = _directive(
        _SECURITY, "", TEXT, 'The password of the default user; "" for none.'
    )
    dir: str = _directive(
        _DATA, "./data", TEXT, "The directory of the data. It is created if need be."
    )
    wc_engine: str = _directive(
        _DATA,
        "rocksdb",
        _choice("rocksdb", "memory"),
        "Where data lives: on disk, or in memory and gone with the process.",
    )
    appendfsync: str = _directive(
        _DATA,
        "everysec",
        _choice("always", "everysec", "no"),
        "When the log goes from the system to the disk. Every write is in the system's hands "
        "before it is answered; a power cut may lose what was not on the disk.",
    )
    rocksdb_block_cache_size: int = _directive(
        _DATA, 64 * _MEGABYTE, _bytes(_MEGABYTE), "Memory for blocks read from disk."
    )
    rocksdb_write_buffer_size: int = _directive(
        _DATA,
        16 * _MEGABYTE,
        _bytes(_MEGABYTE),
        "Memory in which a dataset's writes gather before they go to a file; up to four of these "
        "while files are written. Writes are refused when the disk has less free than two of them "
        "and 64mb.",
    )
    wc_auto_create: bool = _directive(
        _WIDE, True, SWITCH, "Whether a write creates the dataset it names."
    )
    wc_default_maxversions: int = _directive(
        _WIDE,
        0,
        _integer(0, MAX_VERSIONS_LIMIT),
        "Cells a column keeps, in datasets created without MAXVERSIONS; 0 keeps all.",
    )
    wc_default_ttl: int = _directive(
        _WIDE,
        0,
        _integer(0, MAX_TTL_SECONDS),
        "Seconds from its timestamp that a cell lives, in datasets created without TTL; 0: ever.",
    )
    wc_page_columns: int = _directive(
        _WIDE, 100, _integer(1, 2**31 - 1), "Columns a page, where COUNT is not given."
    )
    wc_page_rows: int = _directive(
        _WIDE, 10, _integer(1, 2**31 - 1), "Rows a page of WCSCAN, where LIMIT is not given."
    )
    wc_page_cells: int = _directive(
        _WIDE, 10_000, _integer(1, 2**31 - 1), "The most cells in one reply."
    )
    wc_page_bytes: int = _directive(
        _WIDE, 8 * _MEGABYTE, _bytes(1), "The most bytes in one reply, but for its first cell."
    )
    wc_page_scan: int = _directive(
        _WIDE, 50_000, _integer(1, 2**31 - 1), "The most cells examined for one reply."
    )


@dataclass(frozen=True, slots=True)
class Directive:
    """One line of the table, for those who go through it."""

    name: str
    attribute: str
    section: str
    kind: Kind
    default: Any
    text: str


DIRECTIVES: dict[str, Directive] = {
    item.name.replace("_", "-"): Directive(
        item.name.replace("_", "-"),
        item.name,
        item.metadata["section"],
        item.metadata["kind"],
        item.default,
        item.metadata["text"],
    )
    for item in fields(Settings)
}


def apply(settings: Settings, words: Sequence[str]) -> None:
    """Set one directive from its words, the name first. BadSetting if that cannot be."""
    name = words[0].lower()
    directive = DIRECTIVES.get(name)
    if directive is None:
        near = difflib.get_close_matches(name, DIRECTIVES, 1)
        hint = f". Did you mean '{near[0]}'?" if near else ""
        raise BadSetting(f"unknown directive '{words[0]}'{hint}")
    if len(words) < 2:
        raise BadSetting(f"'{name}': wrong number of arguments")
    try:
        value = directive.kind.read(words[1:])
    except BadSetting as error:
        raise BadSetting(f"'{name}': {error}") from None
    setattr(settings, directive.attribute, value)


def split_line(line: str) -> list[str]:
    """The words of a line of redis.conf; none for an empty line or a comment."""
    stripped = line.strip()
    if not stripped or stripped.startswith("#"):
        return []
    try:
        words = split_inline(stripped.encode("utf-8", "surrogateescape"))
    except ProtocolError:
        raise BadSetting("unbalanced quotes") from None
    return [word.decode("utf-8", "surrogateescape") for word in words]


def apply_text(settings: Settings, text: str, source: str) -> None:
    """Set all directives of a configuration text; BadSetting names the source and the line."""
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            words = split_line(line)
            if words:
                apply(settings, words)
        except BadSetting as error:
            raise BadSetting(f"{source}, line {number}: {error}\n>>> '{line.strip()}'") from None


def from_command_line(arguments: Iterable[str]) -> Settings:
    """The settings of `[redis.conf] [--directive value ...]`, as redis-server takes them."""
    settings = Settings()
    words = list(arguments)
    if words and not words[0].startswith("--"):
        path = words.pop(0)
        try:
            text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise BadSetting(f"cannot read {path}: {error.strerror}") from None
        apply_text(settings, text, path)
    for group in _directive_groups(words):
        try:
            apply(settings, group)
        except BadSetting as error:
            raise BadSetting(f"the command line: {error}") from None
    return settings


def _directive_groups(words: Sequence[str]) -> list[list[str]]:
    """`--port 7000 --bind a b` -> [[port, 7000], [bind, a, b]]"""
    groups: list[list[str]] = []
    for word in words:
        if word.startswith("--") and len(word) > 2:
            groups.append([word[2:]])
        elif groups:
            groups[-1].append(word)
        else:
            raise BadSetting(f"expected --directive, got '{word}'")
    return groups


def example() -> str:
    """The text of redis.conf.example."""
    lines = [
        "# Colonnade's configuration: every directive with its default. Made from the table in",
        "# resp_server/settings.py by `make docs`; a test compares them.",
        "#",
        "#     colonnade-server /path/to/redis.conf --port 7000",
        "#",
        "# Sizes may be written 1k (1000 bytes), 1kb (1024), 1m, 1mb, 1g, 1gb.",
    ]
    section = ""
    for directive in DIRECTIVES.values():
        if directive.section != section:
            section = directive.section
            lines += ["", f"{'#' * 20} {section.upper()} {'#' * 20}"]
        value = directive.kind.write(directive.default)
        lines += ["", *_wrapped(directive.text), f"{directive.name} {value}"]
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > 90:
            lines.append("")
        lines[-1] += f" {word}"
    return [f"#{line}" for line in lines]
