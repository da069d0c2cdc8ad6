"""What one client listens to."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Subscriptions:
    """Channels, glob patterns of channels, and shard channels, in the order they were asked for."""

    channels: dict[bytes, None] = field(default_factory=dict)
    patterns: dict[bytes, None] = field(default_factory=dict)
    shard_channels: dict[bytes, None] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.channels) + len(self.patterns) + len(self.shard_channels)

    @property
    def plain_count(self) -> int:
        """What SUBSCRIBE and PSUBSCRIBE tell: channels and patterns."""
        return len(self.channels) + len(self.patterns)
