"""Which commands are allowed: everything or nothing, and the exceptions from it in their order.

    +@all -@dangerous +info      -@all +@read +select|0

The rules are kept, not only their outcome, so that a description says what was meant. A rule that a
later one overrules whole, or that changes nothing, is dropped: the description stays short.
(Redis 7.0 keeps the outcome and guesses the rules from it, as 7.2 no longer does.)
"""

from __future__ import annotations

from typing import NamedTuple

from commands.access.vocabulary import Names, Vocabulary


class Rule(NamedTuple):
    """`name` is one of the vocabulary's, in its own spelling."""

    allows: bool
    name: str

    def __str__(self) -> str:
        return f"{'+' if self.allows else '-'}{self.name}"


class CommandRules:
    """Changed while a user is described; not any more once it is in use."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._starts_with_all = False
        self._rules: list[Rule] = []
        self._allowed: Names = Names()
        self.first_arguments: dict[str, list[bytes]] = {}
        """Commands that are refused but for these first arguments, as they were spelled."""

    def copy(self) -> CommandRules:
        other = CommandRules(self._vocabulary)
        other._starts_with_all = self._starts_with_all
        other._rules = list(self._rules)
        other._allowed = self._allowed
        other.first_arguments = {name: list(words) for name, words in self.first_arguments.items()}
        return other

    @property
    def allow_everything(self) -> bool:
        return self._starts_with_all and not self._rules

    def allows(self, name: str) -> bool:
        """Whether a command or subcommand is allowed with any argument."""
        return name in self._allowed

    def start_again(self, *, with_all: bool) -> None:
        """`+@all` and `-@all`: forget all other rules."""
        self._starts_with_all = with_all
        self._rules, self._allowed = self._replayed([])
        self.first_arguments = {}

    def add(self, rule: Rule) -> None:
        members = self._vocabulary.members(rule.name)
        for name in members & self.first_arguments.keys():
            del self.first_arguments[name]
        left = [old for old in self._rules if not self._vocabulary.members(old.name) <= members]
        self._rules, self._allowed = self._replayed([*left, rule])

    def allow_argument(self, name: str, argument: bytes) -> None:
        """Allow a command with this first argument, in any case, if it is not allowed anyway."""
        words = self.first_arguments.setdefault(name, [])
        if argument.lower() not in [word.lower() for word in words]:
            words.append(argument)
        if self.allows(name):
            del self.first_arguments[name]

    def describe(self) -> bytes:
        """The rules that make the same again: categories before commands, as Redis has them."""
        by_kind = sorted(self._rules, key=lambda rule: not rule.name.startswith("@"))
        rules, allowed = self._replayed(by_kind)
        if allowed != self._allowed:
            rules = self._rules
        words = ["+@all" if self._starts_with_all else "-@all", *map(str, rules)]
        parts = [word.encode() for word in words]
        for name, arguments in self.first_arguments.items():
            parts += [b"+%b|%b" % (name.encode(), argument) for argument in arguments]
        return b" ".join(parts)

    def _replayed(self, rules: list[Rule]) -> tuple[list[Rule], Names]:
        """Those of the rules that change anything when they come, and what is allowed then."""
        allowed = self._vocabulary.everything() if self._starts_with_all else Names()
        effective = []
        for rule in rules:
            members = self._vocabulary.members(rule.name)
            changed = allowed | members if rule.allows else allowed - members
            if changed != allowed:
                effective.append(rule)
                allowed = changed
        return effective, allowed
