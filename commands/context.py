"""What a handler is given: the store, the client it serves, the settings it reads, the server's
facts. Small on purpose: a handler that needs the server itself belongs somewhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from storage.engine import Engine
from storage.model import DatasetSettings, PageLimits


@dataclass(slots=True)
class Client:
    """One client's state, as its commands see and change it."""

    identifier: int
    address: str
    local_address: str
    authenticated: bool
    protocol: int = 2
    database: int = 0
    name: bytes = b""
    library_name: bytes = b""
    library_version: bytes = b""
    closing: bool = False
    """Set by QUIT: the connection ends once its replies are sent."""

    def reset(self, *, authenticated: bool) -> None:
        """As RESET does: a fresh connection's state, apart from who it is."""
        self.authenticated = authenticated
        self.protocol = 2
        self.database = 0
        self.name = b""


@dataclass(slots=True)
class CommandSettings:
    """The directives that handlers read; the server fills them in and may change them."""

    password: bytes = b""
    databases: int = 16
    limits: PageLimits = field(default_factory=PageLimits)
    new_dataset: DatasetSettings = field(default_factory=DatasetSettings)
    """The settings of a new dataset where a command gives none."""
    auto_create: bool = True
    create_with: DatasetSettings | None = field(init=False)
    """What a write creates an unknown dataset with; None: it does not."""

    def __post_init__(self) -> None:
        self.create_with = self.new_dataset if self.auto_create else None


class ServerFacts(Protocol):
    """What INFO and HELLO tell of the server."""

    def version(self) -> str: ...

    def redis_version(self) -> str: ...

    def information(self) -> Mapping[str, Mapping[str, object]]:
        """Sections of INFO in their order: name -> field -> value."""
        ...


@dataclass(slots=True)
class Context:
    """Everything a handler may use."""

    store: Engine
    client: Client
    settings: CommandSettings
    facts: ServerFacts
