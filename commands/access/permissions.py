"""A set of permissions that hold together: which commands, on which datasets, on which channels.

A user has one set of its own and may have more ("selectors"); a command must be allowed by one of
them whole. What has been decided once is remembered, so that a command of a restricted user costs
little more than that of another; so a set must not be changed any more once it has been asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from commands.access.command_rules import CommandRules
from commands.access.denials import Denial
from commands.access.vocabulary import Vocabulary
from commands.command import NO_KEYS, Access, Channels, Command, Keys
from commands.patterns import matches

_MOST_REMEMBERED = 1024
_LONGEST_REMEMBERED_BYTES = 128
"""Names are the clients' own: neither many nor long ones may fill the memory."""
_ACCESS_SIGNS = {
    Access.READ | Access.WRITE: b"~",
    Access.READ: b"%R~",
    Access.WRITE: b"%W~",
}


@dataclass(frozen=True, slots=True)
class _Check:
    """What is left to look at when a command comes."""

    first_arguments: frozenset[bytes] | None
    """In lower case; None: any, or none at all."""
    one_key: int
    """Where the key of a command of one key stands, 0 for others: spares most the general way."""
    keys: Keys
    access: int
    channels: Channels | None


class Permissions:
    """Nothing is allowed at first."""

    def __init__(self, vocabulary: Vocabulary, *, all_channels: bool = False) -> None:
        self._vocabulary = vocabulary
        self.commands = CommandRules(vocabulary)
        self.all_keys = False
        self.key_patterns: dict[bytes, int] = {}
        """Glob patterns of datasets with what is allowed on them: bits of Access."""
        self.all_channels = all_channels
        self.channel_patterns: dict[bytes, None] = {}
        self._checks: dict[str, _Check | None] = {}
        self._reached: tuple[dict[bytes, bool], ...] = ({}, {}, {}, {})
        """By the access that was asked for."""
        self._heard: dict[bytes, bool] = {}

    def copy(self) -> Permissions:
        other = Permissions(self._vocabulary, all_channels=self.all_channels)
        other.commands = self.commands.copy()
        other.all_keys = self.all_keys
        other.key_patterns = dict(self.key_patterns)
        other.channel_patterns = dict(self.channel_patterns)
        return other

    @property
    def unrestricted(self) -> bool:
        return self.all_keys and self.all_channels and self.commands.allow_everything

    # Asking

    def denial(self, command: Command, words: list[bytes]) -> Denial | None:
        """Why a command may not be run, or None if it may."""
        try:
            check = self._checks[command.name]
        except KeyError:
            check = self._checks[command.name] = self._check_for(command)
        if check is None:
            return None
        allowed = check.first_arguments
        if allowed is not None and not (len(words) > 1 and words[1].lower() in allowed):
            return Denial("command", command.name.encode())
        place = check.one_key
        if 0 < place < len(words):
            reached = self.reach(words[place], check.access)
            return None if reached else Denial("key", words[place], place)
        for place in check.keys.places(len(words)):
            if not self.reach(words[place], check.access):
                return Denial("key", words[place], place)
        return None if check.channels is None else self._channel_denial(check.channels, words)

    def _channel_denial(self, channels: Channels, words: list[bytes]) -> Denial | None:
        hears = self.hear_pattern if channels.are_patterns else self.hear
        for place in channels.places(len(words)):
            if not hears(words[place]):
                return Denial("channel", words[place], place)
        return None

    def reach(self, dataset: bytes, access: int) -> bool:
        """Whether one pattern allows all this access to it; for NONE, whether one names it."""
        if self.all_keys:
            return True
        known = self._reached[access]
        found = known.get(dataset)
        if found is None:
            found = any(
                bits & access == access and matches(pattern, dataset)
                for pattern, bits in self.key_patterns.items()
            )
            _remember(known, dataset, found)
        return found

    def show(self, dataset: bytes) -> bool:
        """Whether there is a command that may show what it holds."""
        return any(map(self.commands.allows, self._vocabulary.showing())) and self.reach(
            dataset, Access.READ
        )

    def hear(self, channel: bytes) -> bool:
        """Whether it may be listened to and published to."""
        if self.all_channels:
            return True
        found = self._heard.get(channel)
        if found is None:
            found = any(matches(pattern, channel) for pattern in self.channel_patterns)
            _remember(self._heard, channel, found)
        return found

    def hear_pattern(self, pattern: bytes) -> bool:
        """Whether all channels of a pattern may be listened to: only a pattern that was given."""
        return self.all_channels or pattern in self.channel_patterns

    def _check_for(self, command: Command) -> _Check | None:
        """None when nothing is left to look at."""
        first_arguments = None
        if not (self.commands.allows(command.name) or command.before_login):
            given = self.commands.first_arguments.get(command.name, [])
            first_arguments = frozenset(word.lower() for word in given)
        # Shard channels are declared as keys, for clients that route by them; they are none.
        has_keys = not self.all_keys and command.group != "pubsub"
        keys = command.keys if has_keys else NO_KEYS
        channels = None if self.all_channels else command.channels
        if first_arguments is None and not keys.first and channels is None:
            return None
        one_key = keys.first if keys.first == keys.last and channels is None else 0
        return _Check(first_arguments, one_key, keys, command.key_access, channels)

    # Describing

    def describe_keys(self) -> bytes:
        if self.all_keys:
            return b"~*"
        patterns = self.key_patterns.items()
        return b" ".join(_ACCESS_SIGNS[access] + pattern for pattern, access in patterns)

    def describe_channels(self) -> bytes:
        if self.all_channels:
            return b"&*"
        return b" ".join(b"&" + pattern for pattern in self.channel_patterns)

    def describe(self) -> bytes:
        """The rules that make the same again."""
        channels = self.describe_channels()
        if not self.all_channels:
            channels = b" ".join(filter(None, (b"resetchannels", channels)))
        return b" ".join(filter(None, (self.describe_keys(), channels, self.commands.describe())))


def _remember(memory: dict[bytes, bool], name: bytes, answer: bool) -> None:
    if len(name) <= _LONGEST_REMEMBERED_BYTES:
        if len(memory) >= _MOST_REMEMBERED:
            memory.clear()
        memory[name] = answer
