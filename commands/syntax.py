"""A command's syntax line, parsed: what COMMAND DOCS describes and redis-cli hints from.

    dataset row [COLUMNS n column [column ...]] [VERSIONS n | VERSIONS ALL] [NOVALUES]

Upper-case words are tokens, `*` too; lower-case words are arguments; [x] is optional; (x | y) is a
choice; `[x ...]` repeats what stands just before it. The shapes follow the `arguments` field of
Redis's COMMAND DOCS. Knows nothing of any command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

_WORDS = re.compile(r"[\[\]()|]|[^\s\[\]()|]+")
_INTEGERS = {
    "n", "bits", "count", "rows", "seconds", "ms", "unix-s", "unix-ms", "increment", "protover",
    "index",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, or a block or choice of several."""

    name: str
    type: str
    token: str = ""
    optional: bool = False
    multiple: bool = False
    arguments: tuple[Argument, ...] = field(default=())

    def least(self) -> int:
        """The smallest number of words it takes."""
        if self.optional:
            return 0
        words = 1 if self.token else 0
        if self.type == "block":
            return words + sum(argument.least() for argument in self.arguments)
        if self.type == "oneof":
            return words + min(argument.least() for argument in self.arguments)
        return words if self.type == "pure-token" else words + 1

    def holds_type(self, kind: str) -> bool:
        """Whether it, or one inside it, is of that type."""
        return self.type == kind or any(inner.holds_type(kind) for inner in self.arguments)

    def variable(self) -> bool:
        """Whether it may take more words than that."""
        if self.optional or self.multiple:
            return True
        sizes = {argument.least() for argument in self.arguments}
        return (self.type == "oneof" and len(sizes) > 1) or any(
            argument.variable() for argument in self.arguments
        )


def parse(syntax: str) -> tuple[Argument, ...]:
    """The arguments of a syntax line (without the command's name)."""
    words = _WORDS.findall(syntax)
    if words.count("[") != words.count("]") or words.count("(") != words.count(")"):
        raise ValueError(f"unbalanced syntax: {syntax}")
    arguments, rest = _sequence(words)
    if rest:
        raise ValueError(f"unbalanced syntax: {syntax}")
    if any(argument.holds_type("repeat") for argument in arguments):
        raise ValueError(f"what repeats must stand just before it: {syntax}")
    return tuple(arguments)


def arity(syntax: str, name_words: int) -> int:
    """Redis's arity: the number of words, name included; negative when that is the least."""
    arguments = parse(syntax)
    least = name_words + sum(argument.least() for argument in arguments)
    return -least if any(argument.variable() for argument in arguments) else least


def _sequence(words: list[str]) -> tuple[list[Argument], list[str]]:
    """Arguments up to a closing bracket or the end, choices of sequences included."""
    choices: list[list[Argument]] = [[]]
    while words and words[0] not in "])":
        word, words = words[0], words[1:]
        current = choices[-1]
        if word == "|":
            choices.append([])
        elif word in "[(":
            inner, words = _sequence(words)
            if words[:1] != [{"[": "]", "(": ")"}[word]]:
                raise ValueError(f"'{word}' is closed by the wrong bracket or by none")
            words = words[1:]
            _add_group(current, inner, optional=word == "[")
        else:
            _add_word(current, word)
    sequences = [_joined(choice) for choice in choices]
    if len(sequences) == 1:
        return sequences[0], words
    members = tuple(_one(sequence) for sequence in sequences)
    return [Argument("-or-".join(_unique(members)), "oneof", arguments=members)], words


def _add_word(current: list[Argument], word: str) -> None:
    if word == "...":
        current.append(Argument("...", "repeat"))
    elif word.isupper() or word == "*":
        current.append(Argument(word.lower(), "pure-token", token=word))
    else:
        kind = "integer" if word in _INTEGERS else "string"
        current.append(Argument(word, kind))


def _add_group(current: list[Argument], inner: list[Argument], *, optional: bool) -> None:
    if inner and inner[-1].type == "repeat":
        repeated = inner[:-1]
        count = len(repeated)
        if current[-count:] != repeated:
            raise ValueError(f"what repeats must stand just before it: {inner}")
        del current[-count:]
        current.append(replace(_one(repeated), multiple=True))
    else:
        current.append(replace(_one(_joined(inner)), optional=optional))


def _joined(sequence: list[Argument]) -> list[Argument]:
    """Tie each token to the one argument that follows it: `COUNT n` is one argument."""
    if len(sequence) < 2 or sequence[0].type != "pure-token" or sequence[0].optional:
        return sequence
    token, following = sequence[0], sequence[1]
    if following.type == "pure-token" or following.token or following.optional:
        return sequence
    if len(sequence) == 2:
        return [replace(following, token=token.token)]
    block = Argument(token.name, "block", token=token.token, arguments=tuple(sequence[1:]))
    return [block]


def _one(sequence: list[Argument]) -> Argument:
    if len(sequence) == 1:
        return sequence[0]
    name = "-".join(argument.name for argument in sequence)
    return Argument(name, "block", arguments=tuple(sequence))


def _unique(members: tuple[Argument, ...]) -> list[str]:
    return list(dict.fromkeys(member.token.lower() or member.name for member in members))
