"""What a handler is given: the store, the client it serves, the settings it reads, and what it may
ask of the server. Small on purpose: a handler that needs more belongs somewhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from commands.access.users import User, Users
from commands.client import Client
from commands.observing.calls import CallStatistics
from commands.observing.latency import LatencyMonitor
from commands.observing.memory import MemoryFigures
from commands.observing.slow_log import SlowLog
from commands.publishing.broker import Broker, Listener
from storage.engine import Engine
from storage.model import DatasetSettings, PageLimits

__all__ = ["Client", "CommandSettings", "Configuration", "Context", "Server", "User"]


@dataclass(slots=True)
class CommandSettings:
    """The directives that handlers read; the server fills them in and may change them."""

    databases: int = 16
    limits: PageLimits = field(default_factory=PageLimits)
    new_dataset: DatasetSettings = field(default_factory=DatasetSettings)
    """The settings of a new dataset where a command gives none."""
    create_with: DatasetSettings | None = field(default_factory=DatasetSettings)
    """What a write creates an unknown dataset with; None: it does not."""
    notifications: int = 0
    """Which changes are published: flags of commands.publishing.notifications."""


class Configuration(Protocol):
    """The directives, as CONFIG sees them."""

    def get(self, patterns: Sequence[bytes]) -> dict[bytes, bytes]:
        """Names and values of all directives that fit one of the glob patterns, in any case."""
        ...

    def set(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Set all or none. CommandError with Redis's text when one cannot be set."""
        ...

    def rewrite(self) -> None:
        """Write the file the server was started with anew. CommandError when that cannot be."""
        ...


class Clients(Protocol):
    """The connected clients."""

    def all(self) -> list[Client]:
        """In the order they came."""
        ...

    def describe(self, client: Client) -> bytes:
        """Its line in CLIENT LIST, without the line's end."""
        ...

    def listener(self, client: Client) -> Listener:
        """Its end for messages."""
        ...

    def kill(self, client: Client, *, by: Client | None = None) -> None:
        """End its connection; after its reply, if it does so itself."""
        ...

    def monitor(self, client: Client) -> None:
        """Show it all commands from here on."""
        ...

    def pause(self, milliseconds: int, *, writes_only: bool) -> None: ...

    def unpause(self) -> None: ...

    def unblock(self, client: Client, *, with_error: bool) -> bool:
        """Wake a client that waits in a blocking command; False when it waits in none."""
        ...


class Server(Protocol):
    """What handlers may ask of the server. It owns these; handlers read them or call them."""

    @property
    def users(self) -> Users: ...
    @property
    def broker(self) -> Broker: ...
    @property
    def calls(self) -> CallStatistics: ...
    @property
    def slow_log(self) -> SlowLog: ...
    @property
    def latency(self) -> LatencyMonitor: ...
    @property
    def configuration(self) -> Configuration: ...
    @property
    def clients(self) -> Clients: ...

    def version(self) -> str: ...

    def redis_version(self) -> str: ...

    def run_id(self) -> str: ...

    async def information(
        self, sections: frozenset[str], client: Client
    ) -> Mapping[str, Mapping[str, object]]:
        """Sections of INFO in their order, as those named in lower case, "default", "all" and
        "everything" select: name -> field -> value. Only what the client's user may see."""
        ...

    async def memory(self) -> MemoryFigures:
        """What the memory is used for at this moment."""
        ...

    def release_memory(self) -> None:
        """Give memory back to the system that the process does not use."""
        ...

    def reset_statistics(self) -> None: ...

    async def wait(self, client: Client, seconds: float | None) -> None:
        """Block the client: until the time is over (None: for ever) or it is unblocked.

        ClientUnblocked when CLIENT UNBLOCK asked for an error.
        """
        ...

    async def sync(self) -> None:
        """Bring all that was written to the disk. StoreFailure when that fails."""
        ...

    async def save(self) -> None:
        """Sync, and make a local backup. StoreFailure when that fails; SaveInProgress."""
        ...

    def save_in_background(self) -> None:
        """As save(), without waiting for it; a failure is logged and shown by INFO."""
        ...

    def last_save(self) -> int:
        """When that last ended well: Unix seconds."""
        ...

    def has_log(self) -> bool:
        """Whether data is kept on disk at all."""
        ...

    def allows_debugging(self, client: Client) -> bool: ...

    def shut_down(self) -> None:
        """Begin to end the server: it takes no further command on."""
        ...

    async def run(self, context: Context, words: list[bytes]) -> Any:
        """Run a command on behalf of EXEC: its value, or a replies.Failure. It is counted, timed
        and shown to monitors like any other."""
        ...


@dataclass(slots=True)
class Context:
    """Everything a handler may use."""

    store: Engine
    client: Client
    settings: CommandSettings
    server: Server
