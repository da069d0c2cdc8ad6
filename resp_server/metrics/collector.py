"""The metrics: each is named, typed and explained here, and read when somebody asks.

What is read is what the server counts anyway, for INFO and for itself; docs/metrics.md lists the
names, and a test compares. What takes one step per command or dataset rests in between. Changes
nothing. Knows nothing of HTTP.
"""

from __future__ import annotations

import contextlib
import math
import platform
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from prometheus_client import Metric, ProcessCollector
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

from resp_server.information import Sources
from resp_server.metrics.page import Pace
from resp_server.version import REDIS_VERSION, VERSION
from storage.distribution import Distribution
from storage.errors import StorageError
from storage.model import DatasetInfo

DURATION_BOUNDS_SECONDS = (
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5,
    0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0,
)  # fmt: skip
_ROCKSDB = {
    "background_errors": "Errors that RocksDB met on its own threads since the store was opened.",
    "block_cache_capacity_bytes": "The size of the cache of blocks read from disk.",
    "block_cache_pinned_bytes": "What of that cache cannot be given up now.",
    "block_cache_usage_bytes": "What that cache holds.",
    "delayed_write_bytes_per_second": "To what RocksDB slows writes down; 0: it does not.",
    "files_in_first_level": "Files that no compaction has taken up since a flush wrote them.",
    "immutable_memtables": "Memtables that wait to be written to a file.",
    "live_sst_bytes": "Files of cells that are in use.",
    "memtable_bytes": "Memtables of all datasets, with those that a reader still holds.",
    "pending_compaction_bytes": "RocksDB's estimate of what compactions have to rewrite.",
    "pending_compactions": "Datasets that wait for a compaction.",
    "pending_flushes": "Datasets that wait for a flush.",
    "running_compactions": "Compactions under way.",
    "running_flushes": "Flushes under way.",
    "snapshots": "Snapshots that keep old data.",
    "sst_bytes": "Files of cells, with those that a reader still holds.",
    "writes_stopped": "1 while RocksDB takes no writes, because flushes or compactions are behind.",
}
"""What an engine's figures() may tell -> what it is."""


class Collector:
    """Reads everything."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._process = ProcessCollector(registry=None)

    async def families(self, pace: Pace) -> AsyncIterator[Metric]:
        """All metrics, always in the same order, with rests."""
        for quick in (
            self._server,
            self._clients,
            self._writes,
            self._log,
            self._backups,
            self._rows,
            self._store,
        ):
            for metric in quick():
                yield metric
            await pace.rest()
        async for metric in self._commands(pace):
            yield metric
        async for metric in self._datasets(pace):
            yield metric
        for metric in self._process.collect():
            yield metric

    def _server(self) -> Iterator[Metric]:
        sources = self._sources
        yield _labelled(
            GaugeMetricFamily(
                "colonnade_build_info",
                "Always 1; the versions are its labels.",
                labels=("version", "redis_version", "python_version"),
            ),
            [((VERSION, REDIS_VERSION, platform.python_version()), 1)],
        )
        yield _histogram(
            "colonnade_event_loop_lag_seconds",
            "How much later than asked for the loop got to its housekeeping, ten times a second.",
            sources.counters.loop_lag,
        )
        yield GaugeMetricFamily(
            "colonnade_degraded",
            "1 if the store was opened although files of it are damaged.",
            int(sources.engine.degraded),
        )
        yield GaugeMetricFamily(
            "colonnade_problems", "What is known to be damaged.", len(sources.engine.problems)
        )

    def _clients(self) -> Iterator[Metric]:
        sources, counters = self._sources, self._sources.counters
        yield GaugeMetricFamily(
            "colonnade_connected_clients", "Connections of clients.", len(sources.clients)
        )
        yield GaugeMetricFamily(
            "colonnade_blocked_clients",
            "Clients that wait in a command, or are held back by CLIENT PAUSE.",
            sources.clients.blocked_count,
        )
        yield GaugeMetricFamily(
            "colonnade_max_clients", "The value of maxclients.", sources.settings.maxclients
        )
        yield CounterMetricFamily(
            "colonnade_connections_received", "Connections taken.", counters.connections_received
        )
        yield CounterMetricFamily(
            "colonnade_connections_rejected", "Connections refused.", counters.connections_rejected
        )
        yield CounterMetricFamily(
            "colonnade_net_input_bytes", "Bytes received from clients.", counters.input_bytes
        )
        yield CounterMetricFamily(
            "colonnade_net_output_bytes", "Bytes sent to clients.", counters.output_bytes
        )
        yield GaugeMetricFamily(
            "colonnade_pubsub_channels",
            "Channels that somebody listens to.",
            len(sources.broker.channels) + len(sources.broker.shard_channels),
        )
        yield GaugeMetricFamily(
            "colonnade_pubsub_patterns",
            "Patterns that somebody listens to.",
            len(sources.broker.patterns),
        )

    def _writes(self) -> Iterator[Metric]:
        commits = self._sources.engine.commits
        yield _histogram(
            "colonnade_commit_operations",
            "Puts and deletes in one group, the writes of all clients that were ready together.",
            commits.operations,
        )
        yield _histogram(
            "colonnade_commit_duration_seconds",
            "How long it took to bring a group to the log.",
            commits.seconds,
        )
        yield CounterMetricFamily(
            "colonnade_commit_stalls", "Commits that RocksDB put off.", commits.stalls
        )
        yield CounterMetricFamily(
            "colonnade_commit_failures", "Groups that were answered with IOERR.", commits.failures
        )
        yield GaugeMetricFamily(
            "colonnade_commit_failures_in_a_row",
            "Those since the last group that succeeded; 0: writing works.",
            commits.failed_in_a_row,
        )

    def _log(self) -> Iterator[Metric]:
        syncing = self._sources.syncing
        yield _histogram(
            "colonnade_fsync_duration_seconds",
            "How long it took to bring the log to the disk, failures among them.",
            syncing.seconds,
        )
        yield CounterMetricFamily(
            "colonnade_fsync_failures", "How often that failed.", syncing.failures
        )
        yield GaugeMetricFamily(
            "colonnade_fsync_last_success_timestamp_seconds",
            "When it last succeeded, or the server started.",
            syncing.last_success,
        )
        yield GaugeMetricFamily(
            "colonnade_unsynced",
            "1 if something is in the log that is not on the disk yet.",
            int(self._sources.engine.unsynced),
        )

    def _backups(self) -> Iterator[Metric]:
        saving, last = self._sources.saving, self._sources.saving.backup
        yield CounterMetricFamily("colonnade_backups_made", "Backups made.", saving.backups_made)
        yield CounterMetricFamily(
            "colonnade_backups_failed", "Backups that could not be made.", saving.backups_failed
        )
        gauges: dict[str, tuple[str, float]] = {
            "in_progress": ("1 while one is being made.", int(saving.in_progress)),
            "next_timestamp_seconds": (
                "When backup-cron makes the next; 0: never.",
                saving.schedule.next_time,
            ),
            "last_failed": (
                "1 if the last was not made, or older ones could not be removed after it.",
                int(bool(last.error)),
            ),
            "last_timestamp_seconds": (
                "When one was last made; 0: not since the server started.",
                last.time,
            ),
            "last_duration_seconds": (
                "How long the last took, made or not; 0: there was none.",
                max(0.0, last.seconds),
            ),
            "last_checkpoint_seconds": (
                "How long of that nobody was served.",
                last.checkpoint_seconds,
            ),
            "last_bytes": ("Files of the last that was made.", last.bytes),
            "last_sent_bytes": ("Those of them that no earlier backup had.", last.sent_bytes),
            "last_files": ("How many files they are.", last.files),
            "last_sent_files": ("How many of them no earlier backup had.", last.sent_files),
            "kept": ("How many there were after the last, itself among them.", last.kept),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"colonnade_backup_{name}", text, value)

    def _store(self) -> Iterator[Metric]:
        figures: dict[str, int] = {}
        # Monitoring has to be answered when the store does not: that is when it is needed.
        with contextlib.suppress(StorageError):
            figures = self._sources.engine.figures()
        for name, text in _ROCKSDB.items():
            family = GaugeMetricFamily(f"colonnade_rocksdb_{name}", text, labels=())
            if name in figures:
                family.add_metric((), figures[name])
            yield family

    def _rows(self) -> Iterator[Metric]:
        rows = self._sources.engine.rows
        yield CounterMetricFamily(
            "colonnade_row_cache_hits", "Replies given again as they were.", rows.hits
        )
        yield CounterMetricFamily(
            "colonnade_row_cache_misses", "Replies that had to be read.", rows.misses
        )
        yield GaugeMetricFamily(
            "colonnade_row_cache_rows", "Rows that replies are kept of.", len(rows)
        )
        yield GaugeMetricFamily(
            "colonnade_row_cache_bytes", "What the kept replies take, about.", rows.bytes
        )

    async def _commands(self, pace: Pace) -> AsyncIterator[Metric]:
        statistics, labels = self._sources.calls, ("command",)
        calls = CounterMetricFamily("colonnade_command_calls", "Calls that ran.", labels=labels)
        failed = CounterMetricFamily(
            "colonnade_command_failed_calls",
            "Calls that ran and were answered with an error.",
            labels=labels,
        )
        rejected = CounterMetricFamily(
            "colonnade_command_rejected_calls",
            "Calls that were refused before they ran.",
            labels=labels,
        )
        durations = Metric(
            "colonnade_command_duration_seconds",
            "How long calls took, without the commit; not counted where latency-tracking is no.",
            "histogram",
        )
        for name, counted in sorted(statistics.by_command.items()):
            calls.add_metric((name,), counted.count)
            failed.add_metric((name,), counted.failed)
            rejected.add_metric((name,), counted.rejected)
            histogram = counted.histogram
            within = [*histogram.within(DURATION_BOUNDS_SECONDS), histogram.total]
            bounds = (*DURATION_BOUNDS_SECONDS, math.inf)
            _add_histogram(
                durations,
                {"command": name},
                zip(bounds, within, strict=True),
                histogram.total,
                histogram.seconds,
            )
            await pace.rest()
        for metric in (calls, failed, rejected, durations):
            yield metric
        yield _labelled(
            CounterMetricFamily(
                "colonnade_error_replies",
                "Errors answered, by their first word.",
                labels=("code",),
            ),
            [((code,), count) for code, count in sorted(statistics.errors.items())],
        )

    async def _datasets(self, pace: Pace) -> AsyncIterator[Metric]:
        datasets: list[DatasetInfo] = []
        engine = self._sources.engine
        for name in engine.dataset_names():
            with contextlib.suppress(StorageError):  # dropped meanwhile, or unreadable
                datasets.append(await engine.dataset_info(name))
            await pace.rest()
        yield GaugeMetricFamily("colonnade_datasets", "Datasets.", len(engine.dataset_names()))
        of_each: dict[str, tuple[str, Sequence[float]]] = {
            "colonnade_dataset_cells": (
                "RocksDB's estimate of the cells, with those that no read shows any more.",
                [dataset.estimated_cells for dataset in datasets],
            ),
            "colonnade_dataset_disk_bytes": (
                "Files of cells.",
                [dataset.disk_bytes for dataset in datasets],
            ),
            "colonnade_dataset_memtable_bytes": (
                "Memory of cells that are not in a file yet.",
                [dataset.memtable_bytes for dataset in datasets],
            ),
            "colonnade_dataset_compacting": (
                "1 while a compaction is at it, or about to be.",
                [int(dataset.compaction != "idle") for dataset in datasets],
            ),
            "colonnade_dataset_last_compaction_timestamp_seconds": (
                "When the last compaction ended; 0: there was none.",
                [dataset.last_compaction_ms / 1000 for dataset in datasets],
            ),
            "colonnade_dataset_last_compaction_removed_cells": (
                "Cells that it removed.",
                [dataset.last_compaction_removed_cells for dataset in datasets],
            ),
        }
        names = [(dataset.name.decode(),) for dataset in datasets]
        for metric, (text, values) in of_each.items():
            family = GaugeMetricFamily(metric, text, labels=("dataset",))
            yield _labelled(family, zip(names, values, strict=True))
            await pace.rest()


def _labelled(
    family: GaugeMetricFamily | CounterMetricFamily,
    values: Iterable[tuple[Sequence[str], float]],
) -> Metric:
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def _histogram(name: str, text: str, counted: Distribution) -> Metric:
    metric = Metric(name, text, "histogram")
    _add_histogram(metric, {}, counted.within(), counted.total, counted.sum)
    return metric


def _add_histogram(
    metric: Metric,
    labels: dict[str, str],
    within: Iterable[tuple[float, int]],
    total: int,
    sum_of_all: float,
) -> None:
    for bound, count in within:
        bucket = {**labels, "le": _written(bound)}
        metric.add_sample(f"{metric.name}_bucket", bucket, count)
    metric.add_sample(f"{metric.name}_count", labels, total)
    metric.add_sample(f"{metric.name}_sum", labels, sum_of_all)


def _written(bound: float) -> str:
    return "+Inf" if bound == math.inf else repr(float(bound))
