"""How the words of a directive become its value, and how the value is written again.

A `Kind` is a pair of pure functions and what belongs to them; the numbers, sizes and choices here
refuse with Redis's texts. Knows no directive. Text is str; bytes that are no UTF-8 are surrogates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from cronsim import CronSim, CronSimError

from commands.publishing.notifications import UnknownEventClass, parse_flags, write_flags
from storage.integers import MAX_INTEGER, parse_integer

_UNITS = {
    "": 1, "b": 1, "k": 1000, "kb": 1024, "m": 1000**2, "mb": 1024**2, "g": 1000**3, "gb": 1024**3,
}  # fmt: skip
_AMOUNT = re.compile(r"([0-9]{1,19})([a-z]*)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_UNSAFE = re.compile(r"[\s\"'\\\x00-\x1f]")
MAX_ADDRESSES = 16
"""As in Redis."""
WRONG_NUMBER = "wrong number of arguments"


class BadSetting(Exception):
    """A directive that cannot be taken; the text says why.

    `directive` is its name where the text does not say it and the caller cannot know.
    """

    def __init__(self, text: str, directive: str = "") -> None:
        super().__init__(text)
        self.directive = directive


@dataclass(frozen=True, slots=True)
class Kind:
    """A pair of functions; `read` raises BadSetting, `write` gives words of redis.conf."""

    read: Callable[[Sequence[str]], Any]
    write: Callable[[Any], str]
    show: Callable[[Any], str]
    """As CONFIG GET answers."""
    takes_words: bool = False
    """Whether CONFIG SET's one argument is split into words at each space."""
    merge: Callable[[Any, Any], Any] | None = None
    """The new value from the one there was and the one read; None: the one read."""


def _single(read: Callable[[str], Any]) -> Callable[[Sequence[str]], Any]:
    def read_one(words: Sequence[str]) -> Any:
        if len(words) != 1:
            raise BadSetting(WRONG_NUMBER)
        return read(words[0])

    return read_one


# Numbers


def _within(value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise BadSetting(f"argument must be between {least} and {most} inclusive")
    return value


def integer(least: int, most: int = MAX_INTEGER) -> Kind:
    def read(word: str) -> int:
        value = parse_integer(word.encode("utf-8", "surrogateescape"))
        if value is None:
            raise BadSetting("argument couldn't be parsed into an integer")
        return _within(value, least, most)

    return Kind(_single(read), str, str)


def size(least: int, most: int = MAX_INTEGER, *, or_zero: bool = False) -> Kind:
    """Bytes: `64mb`. `or_zero`: or 0, which then means something of its own."""

    def read(word: str) -> int:
        value = _bytes(word)
        if value is None:
            raise BadSetting("argument must be a memory value")
        return value if or_zero and value == 0 else _within(value, least, most)

    return Kind(_single(read), _written_bytes, str)


def _bytes(word: str) -> int | None:
    amount = _AMOUNT.fullmatch(word.lower()) if word.isascii() else None
    unit = _UNITS.get(amount[2]) if amount else None
    return None if amount is None or unit is None else int(amount[1]) * unit


def _written_bytes(value: int) -> str:
    for unit in ("gb", "mb", "kb"):
        if value and value % _UNITS[unit] == 0:
            return f"{value // _UNITS[unit]}{unit}"
    return str(value)


def _octal(word: str) -> int:
    if not re.fullmatch(r"[0-7]{1,10}", word):
        raise BadSetting("argument couldn't be parsed as an octal number")
    if int(word, 8) > 0o777:
        raise BadSetting("argument must be between 0 and 777 inclusive")
    return int(word, 8)


OCTAL = Kind(_single(_octal), lambda value: f"{value:o}", lambda value: f"{value:o}")


# Words


def choice(*words: str) -> Kind:
    """One of some words, in any case."""

    def read(word: str) -> str:
        if word.lower() not in words:
            raise BadSetting(f"argument(s) must be one of the following: {', '.join(words)}")
        return word.lower()

    return Kind(_single(read), str, str)


def _switch(word: str) -> bool:
    if word.lower() not in ("yes", "no"):
        raise BadSetting("argument must be 'yes' or 'no'")
    return word.lower() == "yes"


def _written_switch(value: bool) -> str:
    return "yes" if value else "no"


SWITCH = Kind(_single(_switch), _written_switch, _written_switch)


def quoted(text: str) -> str:
    """As a word of redis.conf: in double quotes, with escapes, where it needs them."""
    if text and not _UNSAFE.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f]", lambda found: f"\\x{ord(found[0]):02x}", escaped) + '"'


def _words(words: Sequence[str]) -> tuple[str, ...]:
    """The words; none for the one empty word that stands for none."""
    return () if list(words) == [""] else tuple(words)


def _addresses(words: Sequence[str]) -> tuple[str, ...]:
    if not words:
        raise BadSetting(WRONG_NUMBER)
    addresses = _words(words)
    if "" in addresses:
        raise BadSetting("Failed to bind to specified addresses.")
    if len(addresses) > MAX_ADDRESSES:
        raise BadSetting("Too many bind addresses specified.")
    return addresses


def _written_words(values: Sequence[str]) -> str:
    return " ".join(map(quoted, values)) or '""'


TEXT = Kind(_single(str), quoted, str)
PATH = Kind(_single(str), quoted, lambda path: str(Path(path).absolute()) if path else "")
"""A path, which CONFIG GET shows from the root."""
WORDS = Kind(_words, _written_words, " ".join, takes_words=True)
ADDRESSES = Kind(_addresses, _written_words, " ".join, takes_words=True)
"""What stands after bind; `""` for none, and at least that in a file."""


# What single directives have


@dataclass(frozen=True, slots=True)
class OutputLimit:
    """When a client that does not read its replies is disconnected; 0 switches a limit off."""

    hard_bytes: int
    """At once, from this many bytes on."""
    soft_bytes: int
    soft_seconds: int
    """When it has been over `soft_bytes` for longer than this."""

    def words(self, written: Callable[[int], str]) -> str:
        return f"{written(self.hard_bytes)} {written(self.soft_bytes)} {self.soft_seconds}"


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """The limits of each class of clients."""

    normal: OutputLimit
    replica: OutputLimit
    pubsub: OutputLimit


_CLASSES = {"normal": "normal", "replica": "replica", "slave": "replica", "pubsub": "pubsub"}


def _output_limits(words: Sequence[str]) -> dict[str, OutputLimit]:
    """The classes that `class hard soft seconds [class ...]` names."""
    words = _words(words)
    if len(words) % 4:
        raise BadSetting("Wrong number of arguments in buffer limit configuration.")
    found = {}
    for start in range(0, len(words), 4):
        name, hard, soft, seconds = words[start : start + 4]
        if name.lower() not in _CLASSES:
            raise BadSetting("Invalid client class specified in buffer limit configuration.")
        found[_CLASSES[name.lower()]] = _output_limit(hard, soft, seconds)
    return found


def _output_limit(hard: str, soft: str, seconds: str) -> OutputLimit:
    sizes = _bytes(hard), _bytes(soft)
    time = parse_integer(seconds.encode("utf-8", "surrogateescape"))
    if sizes[0] is None or sizes[1] is None or time is None or time < 0:
        raise BadSetting(
            "Error in hard, soft or soft_seconds setting in buffer limit configuration."
        )
    return OutputLimit(sizes[0], sizes[1], time)


def _merged_limits(current: OutputLimits, given: dict[str, OutputLimit]) -> OutputLimits:
    """Classes that are not given keep theirs."""
    return OutputLimits(**given) if len(given) == 3 else replace(current, **given)


def _written_limits(limits: OutputLimits) -> str:
    return " ".join(
        f"{name} {getattr(limits, name).words(_written_bytes)}"
        for name in ("normal", "replica", "pubsub")
    )


def _shown_limits(limits: OutputLimits) -> str:
    """With Redis 7's old word for replicas."""
    classes = (("normal", limits.normal), ("slave", limits.replica), ("pubsub", limits.pubsub))
    return " ".join(f"{name} {limit.words(str)}" for name, limit in classes)


OUTPUT_LIMITS = Kind(
    _output_limits, _written_limits, _shown_limits, takes_words=True, merge=_merged_limits
)


def _percentiles(words: Sequence[str]) -> tuple[float, ...]:
    words = _words(words)
    if any(not _NUMBER.fullmatch(word) for word in words):
        raise BadSetting("Invalid latency-tracking-info-percentiles parameters")
    values = tuple(map(float, words))
    if any(not 0 <= value <= 100 for value in values):
        raise BadSetting(
            "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
        )
    return values


def shown_number(value: float) -> str:
    """As Redis prints percentiles: up to six places after the point, no zeros at the end."""
    return f"{value:f}".rstrip("0").rstrip(".")


PERCENTILES = Kind(
    _percentiles,
    lambda values: " ".join(repr(value).removesuffix(".0") for value in values) or '""',
    lambda values: " ".join(map(shown_number, values)),
    takes_words=True,
)


def _events(word: str) -> int:
    try:
        return parse_flags(word)
    except UnknownEventClass as error:
        raise BadSetting(str(error)) from None


def _cron(word: str) -> str:
    if not word:
        return word
    try:
        CronSim(word, datetime.min)
    except CronSimError:
        fields = 0
    else:
        fields = len(word.split())
    if fields != 5:
        raise BadSetting("argument must be five fields of cron: minute hour day month weekday")
    return word


CRON = Kind(_single(_cron), quoted, str)
"""A cron expression, or nothing."""


EVENTS = Kind(_single(_events), lambda flags: quoted(write_flags(flags)), write_flags)


_PROTOCOLS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")


def _tls_protocols(word: str) -> str:
    known = {name.lower() for name in _PROTOCOLS}
    if not {name.lower() for name in word.split()} <= known:
        raise BadSetting(f"argument must be some of: {', '.join(_PROTOCOLS)}")
    return word


TLS_PROTOCOLS = Kind(_single(_tls_protocols), quoted, str)
