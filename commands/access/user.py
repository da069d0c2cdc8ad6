"""One user: how it logs in, and what it may do.

It is changed in place and as a whole (`become`), so that clients logged in feel it at once, and
never half of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from commands.access.denials import Denial
from commands.access.permissions import Permissions
from commands.command import Command


@dataclass(slots=True, eq=False)
class User:
    """`permissions` are its own, then those of its selectors: each command needs one of them."""

    name: bytes
    permissions: list[Permissions]
    enabled: bool = False
    without_password: bool = False
    password_digests: list[str] = field(default_factory=list)
    """SHA-256, in hexadecimal."""
    sanitizes_payload: bool | None = None
    """Whether RESTORE would look at what it is given closely; kept for those who set it."""

    def copy(self) -> User:
        """One to try changes on."""
        return User(
            self.name,
            [each.copy() for each in self.permissions],
            self.enabled,
            self.without_password,
            list(self.password_digests),
            self.sanitizes_payload,
        )

    def become(self, other: User) -> None:
        """Take over all of the other's but its name. The other is not to be used any more."""
        self.permissions = other.permissions
        self.enabled = other.enabled
        self.without_password = other.without_password
        self.password_digests = other.password_digests
        self.sanitizes_payload = other.sanitizes_payload

    @property
    def open_to_all(self) -> bool:
        """Whether nobody need log in to be this user."""
        return self.enabled and self.without_password

    @property
    def unrestricted(self) -> bool:
        """Whether it may do anything, so that denial() need not be asked."""
        return any(each.unrestricted for each in self.permissions)

    def denial(self, command: Command, words: list[bytes]) -> Denial | None:
        """Why it may not run this, or None."""
        told: Denial | None = None
        for each in self.permissions:
            denial = each.denial(command, words)
            if denial is None:
                return None
            if told is None or denial.weight > told.weight:
                told = denial
        return told

    def may_read(self, dataset: bytes) -> bool:
        """Whether some command may show it what a dataset holds."""
        return any(each.show(dataset) for each in self.permissions)

    def may_hear(self, channel: bytes) -> bool:
        """Whether it may listen to a channel and publish to it."""
        return any(each.hear(channel) for each in self.permissions)

    def may_hear_pattern(self, pattern: bytes) -> bool:
        """Whether it may listen to all channels of a glob pattern."""
        return any(each.hear_pattern(pattern) for each in self.permissions)

    def flags(self) -> list[bytes]:
        """Words for its states, as ACL GETUSER has them."""
        sanitizing = {None: [], True: [b"sanitize-payload"], False: [b"skip-sanitize-payload"]}
        return [
            b"on" if self.enabled else b"off",
            *[b"nopass"] * self.without_password,
            *sanitizing[self.sanitizes_payload],
        ]

    def describe(self) -> bytes:
        """The rules that make the same user again, as ACL LIST and the ACL file have them."""
        own, *selectors = self.permissions
        words = [
            *self.flags(),
            *(b"#" + digest.encode() for digest in self.password_digests),
            own.describe(),
            *(b"(%b)" % each.describe() for each in selectors),
        ]
        return b" ".join(words)

    def line(self) -> bytes:
        return b"user %b %b" % (self.name, self.describe())
