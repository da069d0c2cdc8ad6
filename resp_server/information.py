"""What the server tells of itself: the sections of INFO, by Redis 7.0's names and in its order.

A field is true, or has the value it has in a Redis that never used what it tells of: there is no
replication, no eviction, no fork here. Each section is a function that is called when it is asked
for. Reads counters, settings, the store; changes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from commands.access.users import User
from commands.client import Client
from commands.observing.calls import Calls, CallStatistics
from commands.observing.memory import MemoryFigures
from commands.publishing.broker import Broker
from resp_server import process
from resp_server.counters import Counters, Sampler
from resp_server.saving import Saving
from resp_server.settings import Settings
from resp_server.settings.kinds import shown_number
from resp_server.syncing import Syncing
from resp_server.version import REDIS_VERSION, VERSION
from storage import compiled
from storage.engine import Engine
from storage.errors import StorageError
from storage.model import DatasetInfo

HERTZ = 10
"""How often a second the server looks after itself: Sampler.sample() is part of that."""
NO_REPLICA = "0" * 40
_UNITS = "KMGTP"

Fields = Mapping[str, object]


class Buffered(Protocol):
    """A connection, as far as INFO looks at it."""

    def buffers(self) -> dict[str, int]:
        """Sizes of its buffers, by Redis's names in CLIENT LIST."""
        ...


class Connected(Protocol):
    """The connections."""

    def __len__(self) -> int: ...

    @property
    def blocked_count(self) -> int: ...

    def ends(self) -> Sequence[Buffered]: ...


@dataclass(frozen=True, slots=True)
class Sources:
    """What INFO reads."""

    settings: Settings
    counters: Counters
    sampler: Sampler
    engine: Engine
    calls: CallStatistics
    broker: Broker
    clients: Connected
    saving: Saving
    syncing: Syncing
    run_id: str
    config_file: str = ""
    """The path of the configuration file, if there is one."""
    looks_into: str = ""
    """What a server shows that only reads."""


class _Inquiry:
    """One INFO: what several sections need is looked up once, when the first of them needs it."""

    def __init__(self, sources: Sources, user: User | None = None) -> None:
        self.user = user
        """Who asks, and is shown the datasets it may read; None: nobody."""
        self._sources = sources
        self._datasets: list[DatasetInfo] | None = None
        self._buffers: list[dict[str, int]] | None = None

    async def datasets(self) -> list[DatasetInfo]:
        """All of them; without those dropped, or unreadable, meanwhile."""
        if self._datasets is None:
            self._datasets = []
            engine = self._sources.engine
            for name in engine.dataset_names():
                # INFO has to answer when the store does not: that is when it is needed.
                with contextlib.suppress(StorageError):
                    self._datasets.append(await engine.dataset_info(name))
        return self._datasets

    def buffers(self) -> list[dict[str, int]]:
        """Sizes of each connection's buffers."""
        if self._buffers is None:
            self._buffers = [end.buffers() for end in self._sources.clients.ends()]
        return self._buffers


_Section = Callable[[_Inquiry], Awaitable[Fields]]


class Information:
    """Answers INFO, and the memory figures of MEMORY."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._machine_memory = process.machine_memory_bytes()
        self._replication_id = hashlib.sha1(sources.run_id.encode()).hexdigest()
        self._sections: dict[str, _Section] = {
            "Server": self._server,
            "Clients": self._clients,
            "Memory": self._memory,
            "Persistence": self._persistence,
            "Stats": self._stats,
            "Replication": self._replication,
            "CPU": self._processor,
            "Modules": self._nothing,
            "Commandstats": self._command_statistics,
            "Errorstats": self._error_statistics,
            "Latencystats": self._latency_statistics,
            "Cluster": self._cluster,
            "Keyspace": self._nothing,
            "Rocksdb": self._store,
            "Datasets": self._datasets,
        }

    async def sections(self, names: frozenset[str], client: Client) -> dict[str, Fields]:
        """As commands.context.Server.information()."""
        inquiry = _Inquiry(self._sources, client.user)
        return {
            title: await section(inquiry)
            for title, section in self._sections.items()
            if _is_wanted(title.lower(), names)
        }

    async def memory(self) -> MemoryFigures:
        """As commands.context.Server.memory()."""
        return await self._figures(_Inquiry(self._sources))

    # The sections, in their order

    async def _server(self, _inquiry: _Inquiry) -> Fields:
        sources = self._sources
        uptime = int(time.monotonic() - sources.counters.started)
        return {
            "redis_version": REDIS_VERSION,
            "colonnade_version": VERSION,
            "redis_git_sha1": "00000000",
            "redis_git_dirty": 0,
            "redis_build_id": _build_identifier(),
            "redis_mode": "standalone",
            "os": f"{platform.system()} {platform.release()} {platform.machine()}",
            "arch_bits": 64 if sys.maxsize > 2**32 else 32,
            "monotonic_clock": "POSIX clock_gettime",
            "multiplexing_api": "kqueue" if sys.platform == "darwin" else "epoll",
            "atomicvar_api": "none",
            "gcc_version": _compiler_version(),
            "python_version": platform.python_version(),
            "process_id": os.getpid(),
            "process_supervised": "no",
            "run_id": sources.run_id,
            "tcp_port": sources.settings.port,
            "server_time_usec": time.time_ns() // 1000,
            "uptime_in_seconds": uptime,
            "uptime_in_days": uptime // 86_400,
            "hz": HERTZ,
            "configured_hz": HERTZ,
            "lru_clock": int(time.time()) & 0xFFFFFF,
            "executable": Path(sys.argv[0]).absolute(),
            "config_file": sources.config_file,
            "io_threads_active": 0,
            "wc_compiled": ",".join(sorted(compiled.IN_USE)),
        }

    async def _clients(self, inquiry: _Inquiry) -> Fields:
        sources, buffers = self._sources, inquiry.buffers()
        return {
            "connected_clients": len(sources.clients),
            "cluster_connections": 0,
            "maxclients": sources.settings.maxclients,
            "client_recent_max_input_buffer": max((held["qbuf"] for held in buffers), default=0),
            "client_recent_max_output_buffer": max((held["omem"] for held in buffers), default=0),
            "blocked_clients": sources.clients.blocked_count,
            "tracking_clients": 0,
            "clients_in_timeout_table": 0,
        }

    async def _memory(self, inquiry: _Inquiry) -> Fields:
        figures = await self._figures(inquiry)
        return {
            "used_memory": figures.used,
            "used_memory_human": _human(figures.used),
            "used_memory_rss": figures.resident,
            "used_memory_rss_human": _human(figures.resident),
            "used_memory_peak": figures.peak,
            "used_memory_peak_human": _human(figures.peak),
            "used_memory_peak_perc": f"{figures.peak_percent:.2f}%",
            "used_memory_overhead": figures.overhead,
            "used_memory_startup": figures.startup,
            "used_memory_dataset": figures.datasets,
            "used_memory_dataset_perc": f"{figures.datasets_percent:.2f}%",
            "allocator_allocated": figures.used,
            "allocator_active": figures.used,
            "allocator_resident": figures.used,
            "total_system_memory": figures.system,
            "total_system_memory_human": _human(figures.system),
            **_no_scripts(),
            "maxmemory": 0,
            "maxmemory_human": _human(0),
            "maxmemory_policy": "noeviction",
            "allocator_frag_ratio": "1.00",
            "allocator_frag_bytes": 0,
            "allocator_rss_ratio": "1.00",
            "allocator_rss_bytes": 0,
            "rss_overhead_ratio": f"{figures.resident_ratio:.2f}",
            "rss_overhead_bytes": figures.resident - figures.used,
            "mem_fragmentation_ratio": f"{figures.resident_ratio:.2f}",
            "mem_fragmentation_bytes": figures.resident - figures.used,
            "mem_not_counted_for_evict": 0,
            "mem_replication_backlog": 0,
            "mem_total_replication_buffers": 0,
            "mem_clients_slaves": 0,
            "mem_clients_normal": figures.clients,
            "mem_cluster_links": 0,
            "mem_aof_buffer": 0,
            "mem_allocator": "libc",
            "active_defrag_running": 0,
            "lazyfree_pending_objects": 0,
            "lazyfreed_objects": 0,
        }

    async def _persistence(self, _inquiry: _Inquiry) -> Fields:
        """The log is to us what the append-only file is to Redis, and it is always written."""
        sources = self._sources
        on_disk = sources.settings.wc_engine == "rocksdb"
        return {
            "loading": 0,
            "async_loading": 0,
            "current_cow_peak": 0,
            "current_cow_size": 0,
            "current_cow_size_age": 0,
            "current_fork_perc": "0.00",
            "current_save_keys_processed": 0,
            "current_save_keys_total": 0,
            "rdb_changes_since_last_save": 0,
            "rdb_bgsave_in_progress": int(sources.saving.in_background),
            "rdb_last_save_time": sources.saving.last_save(),
            "rdb_last_bgsave_status": _outcome(failed=sources.saving.save_failed),
            "rdb_last_bgsave_time_sec": sources.saving.background_seconds,
            "rdb_current_bgsave_time_sec": sources.saving.current_seconds,
            "rdb_saves": sources.saving.saves,
            "rdb_last_cow_size": 0,
            "rdb_last_load_keys_expired": 0,
            "rdb_last_load_keys_loaded": 0,
            "aof_enabled": int(on_disk),
            "aof_rewrite_in_progress": 0,
            "aof_rewrite_scheduled": 0,
            "aof_last_rewrite_time_sec": -1,
            "aof_current_rewrite_time_sec": -1,
            "aof_last_bgrewrite_status": "ok",
            "aof_rewrites": 0,
            "aof_rewrites_consecutive_failures": 0,
            "aof_last_write_status": _outcome(failed=sources.engine.commits.failed_in_a_row > 0),
            "aof_last_cow_size": 0,
            "module_fork_in_progress": 0,
            "module_fork_last_cow_size": 0,
            **(self._log() if on_disk else {}),
            **(self._backups() if on_disk else {}),
            **self._reader(),
            **self._damage(),
        }

    def _reader(self) -> Fields:
        """Whether it only reads, and then what."""
        sources = self._sources
        shown = {"wc_looks_into": sources.looks_into} if sources.engine.read_only else {}
        return {"wc_read_only": int(sources.engine.read_only), **shown}

    def _damage(self) -> Fields:
        """What is wrong with the files, if anything is."""
        engine = self._sources.engine
        texts = {f"wc_problem_{place}": text for place, text in enumerate(engine.problems)}
        return {"wc_degraded": int(engine.degraded), "wc_problems": len(texts), **texts}

    def _backups(self) -> Fields:
        saving, last = self._sources.saving, self._sources.saving.backup
        done, total = saving.progress
        return {
            "wc_backup_in_progress": int(saving.in_progress),
            "wc_backup_progress_bytes": done,
            "wc_backup_progress_total_bytes": total,
            "wc_backups_made": saving.backups_made,
            "wc_backups_failed": saving.backups_failed,
            "wc_backup_next_time": saving.schedule.next_time,
            "wc_backup_last_time": last.time,
            "wc_backup_last_name": last.name,
            "wc_backup_last_to": last.to,
            "wc_backup_last_bytes": last.bytes,
            "wc_backup_last_sent_bytes": last.sent_bytes,
            "wc_backup_last_time_sec": round(last.seconds),
            "wc_backup_last_checkpoint_usec": round(last.checkpoint_seconds * 1e6),
            "wc_backup_last_status": _outcome(failed=bool(last.error)),
            "wc_backup_last_error": last.error,
        }

    def _log(self) -> Fields:
        syncing = self._sources.syncing
        waits = self._sources.settings.appendfsync == "everysec" and self._sources.engine.unsynced
        return {
            "aof_current_size": 0,
            "aof_base_size": 0,
            "aof_pending_rewrite": 0,
            "aof_buffer_length": 0,
            "aof_pending_bio_fsync": int(waits),
            "aof_delayed_fsync": 0,
            "wc_fsyncs": syncing.seconds.total,
            "wc_fsync_on": "thread" if syncing.on_thread else "loop",
            "wc_last_fsync_time": syncing.last_success,
            "wc_last_fsync_usec": round(syncing.last_seconds * 1e6),
            "wc_last_fsync_status": _outcome(failed=bool(syncing.last_error)),
            "wc_last_fsync_error": syncing.last_error,
        }

    async def _stats(self, _inquiry: _Inquiry) -> Fields:
        rows = self._sources.engine.rows
        counters, sampler, broker = (
            self._sources.counters,
            self._sources.sampler,
            self._sources.broker,
        )
        return {
            "total_connections_received": counters.connections_received,
            "total_commands_processed": counters.commands_processed,
            "instantaneous_ops_per_sec": round(sampler.commands.per_second),
            "total_net_input_bytes": counters.input_bytes,
            "total_net_output_bytes": counters.output_bytes,
            "total_net_repl_input_bytes": 0,
            "total_net_repl_output_bytes": 0,
            "instantaneous_input_kbps": f"{sampler.input_bytes.per_second / 1024:.2f}",
            "instantaneous_output_kbps": f"{sampler.output_bytes.per_second / 1024:.2f}",
            "instantaneous_input_repl_kbps": "0.00",
            "instantaneous_output_repl_kbps": "0.00",
            "rejected_connections": counters.connections_rejected,
            "sync_full": 0,
            "sync_partial_ok": 0,
            "sync_partial_err": 0,
            **_no_eviction(),
            "keyspace_hits": 0,
            "keyspace_misses": 0,
            "wc_row_cache_hits": rows.hits,
            "wc_row_cache_misses": rows.misses,
            "wc_row_cache_rows": len(rows),
            "wc_row_cache_bytes": rows.bytes,
            "pubsub_channels": len(broker.channels),
            "pubsub_patterns": len(broker.patterns),
            "pubsubshard_channels": len(broker.shard_channels),
            "latest_fork_usec": 0,
            "total_forks": 0,
            "migrate_cached_sockets": 0,
            "slave_expires_tracked_keys": 0,
            **_no_defragmentation(),
            **_no_tracking(),
            "unexpected_error_replies": 0,
            "total_error_replies": self._sources.calls.errors.total(),
            "dump_payload_sanitizations": 0,
            "total_reads_processed": counters.reads,
            "total_writes_processed": counters.writes,
            "io_threaded_reads_processed": 0,
            "io_threaded_writes_processed": 0,
            "reply_buffer_shrinks": 0,
            "reply_buffer_expands": 0,
        }

    async def _replication(self, _inquiry: _Inquiry) -> Fields:
        return {
            "role": "master",
            "connected_slaves": 0,
            "master_failover_state": "no-failover",
            "master_replid": self._replication_id,
            "master_replid2": NO_REPLICA,
            "master_repl_offset": 0,
            "second_repl_offset": -1,
            "repl_backlog_active": 0,
            "repl_backlog_size": 1_048_576,
            "repl_backlog_first_byte_offset": 0,
            "repl_backlog_histlen": 0,
        }

    async def _processor(self, _inquiry: _Inquiry) -> Fields:
        own, children = process.processor_time(), process.processor_time_of_children()
        # INFO runs on the loop's thread, which is the one that started the program.
        main = process.processor_time_of_thread()
        return {
            "used_cpu_sys": f"{own.system:.6f}",
            "used_cpu_user": f"{own.user:.6f}",
            "used_cpu_sys_children": f"{children.system:.6f}",
            "used_cpu_user_children": f"{children.user:.6f}",
            "used_cpu_sys_main_thread": f"{main.system:.6f}",
            "used_cpu_user_main_thread": f"{main.user:.6f}",
        }

    async def _nothing(self, _inquiry: _Inquiry) -> Fields:
        return {}

    async def _command_statistics(self, _inquiry: _Inquiry) -> Fields:
        return {
            f"cmdstat_{name}": _call_statistics(calls)
            for name, calls in self._sources.calls.by_command.items()
        }

    async def _error_statistics(self, _inquiry: _Inquiry) -> Fields:
        errors = self._sources.calls.errors
        return {f"errorstat_{code}": f"count={errors[code]}" for code in sorted(errors)}

    async def _latency_statistics(self, _inquiry: _Inquiry) -> Fields:
        statistics = self._sources.calls
        if not statistics.tracking:
            return {}
        return {
            f"latency_percentiles_usec_{name}": _percentiles(calls, statistics.percentiles)
            for name, calls in statistics.by_command.items()
            if calls.histogram.total
        }

    async def _cluster(self, _inquiry: _Inquiry) -> Fields:
        return {"cluster_enabled": 0}

    async def _store(self, inquiry: _Inquiry) -> Fields:
        settings, datasets = self._sources.settings, await inquiry.datasets()
        on_disk = settings.wc_engine == "rocksdb"
        return {
            "engine": settings.wc_engine,
            "datasets": len(datasets),
            "estimated_cells": sum([dataset.estimated_cells for dataset in datasets]),
            "sst_bytes": sum([dataset.disk_bytes for dataset in datasets]),
            "memtable_bytes": sum([dataset.memtable_bytes for dataset in datasets]),
            "block_cache_size": self._sources.engine.figures().get("block_cache_capacity_bytes", 0),
            "write_buffer_size": settings.rocksdb_write_buffer_size if on_disk else 0,
            "unsynced": int(self._sources.engine.unsynced),
        }

    async def _datasets(self, inquiry: _Inquiry) -> Fields:
        return {
            dataset.name.decode(): _held(dataset)
            for dataset in await inquiry.datasets()
            if inquiry.user is not None and inquiry.user.may_read(dataset.name)
        }

    # What they are made of

    async def _figures(self, inquiry: _Inquiry) -> MemoryFigures:
        sampler, datasets, taken = (
            self._sources.sampler,
            await inquiry.datasets(),
            process.memory(),
        )
        sampler.see(taken.own)
        return MemoryFigures(
            used=taken.own,
            resident=taken.resident,
            peak=sampler.peak_bytes,
            startup=sampler.startup_bytes,
            system=self._machine_memory,
            clients=sum([held["tot-mem"] for held in inquiry.buffers()]),
            memtables=sum([dataset.memtable_bytes for dataset in datasets]),
            cache=self._sources.engine.cache_bytes(),
            files=sum([dataset.disk_bytes for dataset in datasets]),
        )


def _is_wanted(section: str, names: frozenset[str]) -> bool:
    if section in names or not names.isdisjoint(("all", "everything")):
        return True
    return "default" in names and section not in ("commandstats", "latencystats")


def _no_scripts() -> Fields:
    return {
        "used_memory_lua": 0,
        "used_memory_vm_eval": 0,
        "used_memory_lua_human": _human(0),
        "used_memory_scripts_eval": 0,
        "number_of_cached_scripts": 0,
        "number_of_functions": 0,
        "number_of_libraries": 0,
        "used_memory_vm_functions": 0,
        "used_memory_vm_total": 0,
        "used_memory_vm_total_human": _human(0),
        "used_memory_functions": 0,
        "used_memory_scripts": 0,
        "used_memory_scripts_human": _human(0),
    }


def _no_eviction() -> Fields:
    return {
        "expired_keys": 0,
        "expired_stale_perc": "0.00",
        "expired_time_cap_reached_count": 0,
        "expire_cycle_cpu_milliseconds": 0,
        "evicted_keys": 0,
        "evicted_clients": 0,
        "total_eviction_exceeded_time": 0,
        "current_eviction_exceeded_time": 0,
    }


def _no_defragmentation() -> Fields:
    return {
        "active_defrag_hits": 0,
        "active_defrag_misses": 0,
        "active_defrag_key_hits": 0,
        "active_defrag_key_misses": 0,
        "total_active_defrag_time": 0,
        "current_active_defrag_time": 0,
    }


def _no_tracking() -> Fields:
    return {
        "tracking_total_keys": 0,
        "tracking_total_items": 0,
        "tracking_total_prefixes": 0,
    }


def _call_statistics(calls: Calls) -> str:
    microseconds = int(calls.seconds * 1e6)
    average = microseconds / calls.count if calls.count else 0.0
    return (
        f"calls={calls.count},usec={microseconds},usec_per_call={average:.2f}"
        f",rejected_calls={calls.rejected},failed_calls={calls.failed}"
    )


def _percentiles(calls: Calls, percentiles: Sequence[float]) -> str:
    histogram = calls.histogram
    return ",".join(
        f"p{shown_number(percent)}={histogram.percentile_us(percent):.3f}"
        for percent in percentiles
    )


def _held(dataset: DatasetInfo) -> str:
    return (
        f"cells={dataset.estimated_cells},disk_bytes={dataset.disk_bytes}"
        f",memtable_bytes={dataset.memtable_bytes},maxversions={dataset.settings.max_versions}"
        f",ttl={dataset.settings.ttl_seconds}"
    )


def _human(amount: int) -> str:
    """As Redis writes sizes for people: 1.11M."""
    if amount < 1024:
        return f"{amount}B"
    power = min((amount.bit_length() - 1) // 10, len(_UNITS))
    return f"{amount / 1024**power:.2f}{_UNITS[power - 1]}"


def _outcome(*, failed: bool) -> str:
    return "err" if failed else "ok"


def _build_identifier() -> str:
    """The same for the same release, as Redis's is for the same build."""
    return hashlib.sha1(f"{REDIS_VERSION} {VERSION}".encode()).hexdigest()[:16]


def _compiler_version() -> str:
    """Of the compiler that built Python."""
    found = re.search(r"GCC (\d+\.\d+\.\d+)", platform.python_compiler())
    return found[1] if found else "0.0.0"
