"""One client's state, as its commands see and change it. Knows no connection."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from commands.access.users import User
from commands.publishing.subscriptions import Subscriptions
from commands.queueing import Transaction


class Condition:
    """Why a command of a client cannot simply be run and answered. Plain bits, for the hot path."""

    LOGIN: Final = 1
    """It has to log in."""
    LIMITED: Final = 2
    """Its user may not do everything."""
    TRANSACTION: Final = 4
    """It is between MULTI and EXEC."""
    SUBSCRIBED: Final = 8
    """It speaks RESP2 and listens to channels."""
    QUIET: Final = 16
    """Replies to it are dropped."""
    READER: Final = 32
    """Its server only reads."""


@dataclass(slots=True, eq=False)
class Client:
    """State of one connection.

    After a change of `user`, `transaction`, `protocol`, `subscriptions` or of what is dropped, call
    update_conditions().
    """

    identifier: int
    address: str
    local_address: str
    user: User
    authenticated: bool
    """Whether it logged in, or need not."""
    by_socket_file: bool = False
    only_reads: bool = False
    """Whether its server refuses whatever writes."""
    descriptor: int = -1
    protocol: int = 2
    database: int = 0
    name: bytes = b""
    library_name: bytes = b""
    library_version: bytes = b""
    transaction: Transaction | None = None
    """What it queued since MULTI."""
    executing: bool = False
    """Whether it is in the midst of EXEC, where nothing may wait."""
    watched: dict[bytes, int] = field(default_factory=dict)
    """Datasets it watches, with the versions they had."""
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    monitoring: bool = False
    no_evict: bool = False
    no_touch: bool = False
    blocked: bool = False
    """Whether it waits in a blocking command."""
    silent: bool = False
    """Whether its replies are dropped (CLIENT REPLY OFF)."""
    skips: bool = False
    """Whether the reply to the command that runs is dropped."""
    skips_next: bool = False
    """Whether the reply to the next one will be (CLIENT REPLY SKIP)."""
    closing: bool = False
    """Whether the connection ends once its replies are sent."""
    conditions: int = 0
    created: float = field(default_factory=time.monotonic)
    last_active: float = field(default_factory=time.monotonic)
    last_command: str = ""

    def __post_init__(self) -> None:
        self.update_conditions()

    def update_conditions(self) -> None:
        listens = self.protocol == 2 and self.subscriptions.count > 0
        quiet = self.silent or self.skips or self.skips_next
        self.conditions = (
            (0 if self.is_admitted else Condition.LOGIN)
            | (0 if self.user.unrestricted else Condition.LIMITED)
            | (0 if self.transaction is None else Condition.TRANSACTION)
            | (Condition.SUBSCRIBED if listens else 0)
            | (Condition.QUIET if quiet else 0)
            | (Condition.READER if self.only_reads else 0)
        )

    @property
    def is_admitted(self) -> bool:
        """Whether it need not log in any more."""
        return self.authenticated or self.user.open_to_all

    def log_in(self, user: User) -> None:
        self.user, self.authenticated = user, True
        self.update_conditions()

    def end_transaction(self) -> None:
        """Out of MULTI, and nothing is watched any more."""
        self.transaction = None
        self.watched.clear()
        self.update_conditions()

    def reset(self, default_user: User) -> None:
        """As RESET does: a fresh connection's state, apart from who it is."""
        self.user = default_user
        self.authenticated = default_user.open_to_all
        self.protocol = 2
        self.database = 0
        self.name = b""
        self.monitoring = self.no_evict = self.no_touch = False
        self.silent = self.skips = self.skips_next = False
        self.end_transaction()

    def end_command(self) -> None:
        """A command was answered, or its reply dropped: on to the next one's."""
        if self.skips or self.skips_next:
            self.skips, self.skips_next = self.skips_next, False
            self.update_conditions()
