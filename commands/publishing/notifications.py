"""Which changes of data are published, and under which channels: notify-keyspace-events.

A change of a row is an event like `wcput`, told on two channels; a dataset's name has no slash, so
the first one ends the name and the row follows, whatever its bytes:

    __keyspace@0__:DATASET/ROW   with the event as the message         class K
    __keyevent@0__:EVENT         with DATASET/ROW as the message       class E

Datasets are in no database of SELECT; the channels say 0. A listener who may not read the dataset
is not told. The flags are Redis's, and `w` for wide columns.
"""

from __future__ import annotations

from collections.abc import Iterable

from commands.publishing.broker import Broker

_CLASSES = "g$lshzxetdwnKEm"
"""In the order in which Redis writes them, with w after the types; each is a bit."""
_BITS = {letter: 1 << place for place, letter in enumerate(_CLASSES)}
_ALL = sum(_BITS[letter] for letter in "g$lshzxetdw")
KEYSPACE, KEYEVENT, WIDE_COLUMN = _BITS["K"], _BITS["E"], _BITS["w"]


class UnknownEventClass(Exception):
    def __init__(self) -> None:
        super().__init__(f"Invalid event class character. Use 'A{_CLASSES}'.")


def parse_flags(text: str) -> int:
    """The bits of a value of the directive; UnknownEventClass for a letter it does not have."""
    flags = 0
    for letter in text:
        if letter != "A" and letter not in _BITS:
            raise UnknownEventClass
        flags |= _ALL if letter == "A" else _BITS[letter]
    return flags


def write_flags(flags: int) -> str:
    """As CONFIG GET shows them: A for all classes, else letter by letter."""
    letters = [letter for letter in _CLASSES if flags & _BITS[letter]]
    if flags & _ALL == _ALL:
        letters = ["A", *[letter for letter in letters if not _BITS[letter] & _ALL]]
    return "".join(letters)


def notify(broker: Broker, flags: int, event: bytes, dataset: bytes, rows: Iterable[bytes]) -> None:
    """Publish what happened to these rows of a dataset, as far as the flags want it told."""
    if broker.is_idle or not flags & WIDE_COLUMN:
        return
    for row in rows:
        name = b"%b/%b" % (dataset, row)
        if flags & KEYSPACE:
            broker.publish_change(b"__keyspace@0__:" + name, event, dataset)
        if flags & KEYEVENT:
            broker.publish_change(b"__keyevent@0__:" + event, name, dataset)
