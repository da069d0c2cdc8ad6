"""timeout: which clients have been silent for too long.

Those that wait for something to come are silent by nature and stay: who listens to channels, who
monitors, who waits in a blocking command. As in Redis, a silence of exactly `timeout` is allowed.
"""

from __future__ import annotations

from commands.client import Client


def is_idle(client: Client, timeout_seconds: int, now: float) -> bool:
    """Whether it is to be disconnected; never for a timeout of 0. `now` is of the clock of
    last_active."""
    silence = now - client.last_active
    return 0 < timeout_seconds < silence and not _waits(client)


def _waits(client: Client) -> bool:
    return client.blocked or client.monitoring or client.subscriptions.count > 0
