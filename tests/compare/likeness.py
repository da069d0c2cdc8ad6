"""What of a reply is compared, where not all of it: each function is named for what it lets differ.

All keep the reply's type. What depends on the moment, the machine or the build (numbers of clients,
times, sizes) is put as `#`; what has no order is sorted. Knows no particular command but CLIENT
LIST, whose lines need names.
"""

from __future__ import annotations

import re

from tests.compare.conversation import Likeness
from tests.compare.wire import Reply

MASK = b"#"


def type_alone(reply: Reply) -> Reply:
    """The type, and of a list its length and the types in it; no texts."""
    if isinstance(reply.value, tuple):
        return Reply(reply.kind, tuple(type_alone(element) for element in reply.value))
    return Reply(reply.kind, MASK)


def outermost_type(reply: Reply) -> Reply:
    """The type alone, whatever is in it."""
    return Reply(reply.kind, MASK)


def number(reply: Reply) -> Reply:
    """Any number is as good as another; anything else is compared, in lists too."""
    if isinstance(reply.value, tuple):
        return Reply(reply.kind, tuple(number(element) for element in reply.value))
    return Reply(reply.kind, MASK) if reply.kind in ("integer", "double") else reply


def any_order(reply: Reply) -> Reply:
    """The elements in any order, for which Redis promises none."""
    if not isinstance(reply.value, tuple):
        return reply
    return Reply(reply.kind, tuple(sorted(reply.value, key=str)))


def words_in_any_order(reply: Reply) -> Reply:
    """In any order what lists hold where they hold words alone, however deep; names come first."""
    if not isinstance(reply.value, tuple):
        return reply
    elements = [words_in_any_order(element) for element in reply.value]
    if all(element.kind in ("status", "bulk") for element in elements):
        elements.sort(key=str)
    return Reply(reply.kind, tuple(elements))


def subcommands_in_any_order(reply: Reply) -> Reply:
    """COMMAND INFO: the subcommands of each entry in any order."""
    return each(within(-1, any_order))(reply)


def pairs_in_any_order(reply: Reply) -> Reply:
    """The pairs of a map, or of RESP2's array for it, in any order."""
    pairs = sorted(reply.pairs, key=str)
    return Reply(reply.kind, tuple(element for pair in pairs for element in pair))


def masking(*patterns: str) -> Likeness:
    """What these patterns match, in any text of the reply; with a group, what the group matches."""
    compiled = [re.compile(pattern.encode()) for pattern in patterns]

    def mask(found: re.Match[bytes]) -> bytes:
        if not found.re.groups:
            return MASK
        start, end = (at - found.start() for at in found.span(1))
        return found[0][:start] + MASK + found[0][end:]

    def likeness(reply: Reply) -> Reply:
        if isinstance(reply.value, tuple):
            return Reply(reply.kind, tuple(likeness(element) for element in reply.value))
        text = reply.value
        for pattern in compiled:
            text = pattern.sub(mask, text)
        return Reply(reply.kind, text)

    return likeness


def values_of(*names: str) -> Likeness:
    """The values of these names of a map; their types are compared."""

    def likeness(reply: Reply) -> Reply:
        elements: list[Reply] = []
        for name, value in reply.pairs:
            elements += [name, type_alone(value) if name.text.decode() in names else value]
        return Reply(reply.kind, tuple(elements))

    return likeness


def rules_in_any_order(reply: Reply) -> Reply:
    """The words of ACL rules in any order: Redis lists a container's subcommands in none."""
    if isinstance(reply.value, tuple):
        return Reply(reply.kind, tuple(rules_in_any_order(element) for element in reply.value))
    return Reply(reply.kind, b" ".join(sorted(reply.value.split(b" "))))


def names_and_types(reply: Reply) -> Reply:
    """The names of a map, in any order, and the types of their values."""
    elements: list[Reply] = []
    for name, value in sorted(reply.pairs, key=str):
        elements += [name, type_alone(value)]
    return Reply(reply.kind, tuple(elements))


def histogram(reply: Reply) -> Reply:
    """LATENCY HISTOGRAM: how often each command was called; not how long it took."""
    return Reply(
        reply.kind,
        tuple(
            element
            for name, described in reply.pairs
            for element in (name, _with_values_masked(described, b"histogram_usec"))
        ),
    )


def _with_values_masked(described: Reply, masked: bytes) -> Reply:
    elements: list[Reply] = []
    for name, value in described.pairs:
        elements += [name, outermost_type(value) if name.text == masked else value]
    return Reply(described.kind, tuple(elements))


def fields(*names: str) -> Likeness:
    """Of INFO's lines only those with these names, in any order."""

    def likeness(reply: Reply) -> Reply:
        lines = reply.text.split(b"\r\n")
        kept = [line for line in lines if line.split(b":")[0].decode("latin-1") in names]
        return Reply(reply.kind, b"\r\n".join(sorted(kept)))

    return likeness


def lines_in_any_order(reply: Reply) -> Reply:
    """The lines of a text in any order."""
    return Reply(reply.kind, b"\r\n".join(sorted(reply.text.split(b"\r\n"))))


def within(position: int, inner: Likeness) -> Likeness:
    """Another likeness, for one element of a list."""

    def likeness(reply: Reply) -> Reply:
        elements = list(reply.elements)
        if -len(elements) <= position < len(elements):
            elements[position] = inner(elements[position])
        return Reply(reply.kind, tuple(elements))

    return likeness


def each(inner: Likeness) -> Likeness:
    """Another likeness, for every element of a list."""

    def likeness(reply: Reply) -> Reply:
        return Reply(reply.kind, tuple(inner(element) for element in reply.elements))

    return likeness


_OF_THE_MOMENT = (
    "id|addr|laddr|fd|age|idle|qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|oll|omem|tot-mem"
)
_CLIENT_FIELD = re.compile(rf"(?<=\b)({_OF_THE_MOMENT})=\S*".encode())
_NEWER_FIELD = re.compile(rb" (lib-name|lib-ver)=\S*")


def client_line(reply: Reply) -> Reply:
    """Lines of CLIENT LIST: the values of the moment, and the two fields that came in 7.2."""
    if isinstance(reply.value, tuple):
        return Reply(reply.kind, tuple(client_line(element) for element in reply.value))
    text = _NEWER_FIELD.sub(b"", reply.text)
    return Reply(reply.kind, _CLIENT_FIELD.sub(rb"\1=#", text))


def help_text(reply: Reply) -> Reply:
    """HELP: the types, the headline and the last entry, which is HELP itself; not the prose."""
    kinds = sorted({Reply(line.kind) for line in reply.elements}, key=str)
    ends = (*reply.elements[:1], *reply.elements[-2:])
    return Reply(reply.kind, (*kinds, *ends))
