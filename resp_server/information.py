"""What the server tells of itself: the sections of INFO, with the names Redis gives the fields.

Reads counters and settings; changes nothing and knows no client's commands.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from resp_server.settings import Settings
from resp_server.version import REDIS_VERSION, VERSION
from storage.engine import Engine

Section = dict[str, object]


@dataclass(slots=True)
class Counters:
    """Counted from the start of the process."""

    connections_received: int = 0
    connections_rejected: int = 0
    commands_processed: int = 0
    started: float = field(default_factory=time.monotonic)


class Information:
    """Answers commands.context.ServerFacts."""

    def __init__(
        self,
        settings: Settings,
        counters: Counters,
        engine: Engine,
        connected: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._counters = counters
        self._engine = engine
        self._connected = connected
        self._run_id = os.urandom(20).hex()

    def version(self) -> str:
        return VERSION

    def redis_version(self) -> str:
        return REDIS_VERSION

    def information(self) -> dict[str, Section]:
        return {
            "Server": self._server(),
            "Clients": {
                "connected_clients": self._connected(),
                "maxclients": self._settings.maxclients,
                "blocked_clients": 0,
            },
            "Memory": _memory(),
            "Persistence": self._persistence(),
            "Stats": {
                "total_connections_received": self._counters.connections_received,
                "total_commands_processed": self._counters.commands_processed,
                "rejected_connections": self._counters.connections_rejected,
            },
            "Replication": {"role": "master", "connected_slaves": 0},
            "CPU": _processor(),
            "Cluster": {"cluster_enabled": 0},
            "Keyspace": {},
            "Datasets": {"datasets": len(self._engine.dataset_names())},
        }

    def _server(self) -> Section:
        uptime = int(time.monotonic() - self._counters.started)
        return {
            "redis_version": REDIS_VERSION,
            "colonnade_version": VERSION,
            "redis_mode": "standalone",
            "os": f"{platform.system()} {platform.release()} {platform.machine()}",
            "arch_bits": 64 if sys.maxsize > 2**32 else 32,
            "python_version": platform.python_version(),
            "process_id": os.getpid(),
            "run_id": self._run_id,
            "tcp_port": self._settings.port,
            "server_time_usec": time.time_ns() // 1000,
            "uptime_in_seconds": uptime,
            "uptime_in_days": uptime // 86400,
        }

    def _persistence(self) -> Section:
        on_disk = self._settings.wc_engine == "rocksdb"
        return {
            "loading": 0,
            "aof_enabled": int(on_disk),
            "appendfsync": self._settings.appendfsync if on_disk else "no",
            "wc_engine": self._settings.wc_engine,
        }


def _memory() -> Section:
    resident = resident_bytes()
    return {
        "used_memory": resident,
        "used_memory_rss": resident,
        "used_memory_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "maxmemory": 0,
        "maxmemory_policy": "noeviction",
    }


def resident_bytes() -> int:
    """The process's resident memory; its peak where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _processor() -> Section:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "used_cpu_sys": f"{used.ru_stime:.6f}",
        "used_cpu_user": f"{used.ru_utime:.6f}",
    }
