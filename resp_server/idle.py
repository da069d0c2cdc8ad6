"""timeout: which clients have been silent for too long.

Those that wait for something to come are silent by nature and stay: who listens to channels, who
monitors, who waits in a blocking command. As in Redis, a silence of exactly `timeout` is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable

from commands.client import Client


def idle_clients(clients: Iterable[Client], timeout_seconds: int, now: float) -> list[Client]:
    """Those to disconnect; none for a timeout of 0. `now` is of the clock of last_active."""
    if not timeout_seconds:
        return []
    last = now - timeout_seconds
    return [client for client in clients if client.last_active < last and not _waits(client)]


def _waits(client: Client) -> bool:
    return client.blocked or client.monitoring or client.subscriptions.count > 0
