"""How many files the process may hold open: every client takes one, and every file of RocksDB."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)

BESIDE_CLIENTS = 4096
"""Files RocksDB may hold open, and some to spare."""


def allow_clients(clients: int) -> None:
    """Raise the limit of the process as far as the system lets it; a warning if that is too low."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = clients + BESIDE_CLIENTS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
        if granted < wanted:
            log.warning("%d open files allowed, %d wanted for maxclients", granted, wanted)
