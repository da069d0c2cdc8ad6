"""How RocksDB is set up: sizes, compression, the shapes that suit cells in rows.

Built here and nowhere else, because every family must be opened with options of its own that share
one cache. What each default is and why, with figures: docs/performance.md. Knows no database.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
)

MEGABYTE = 1024 * 1024
NEVER = 1_000_000
"""Files in the first level at which a degraded database stalls. Damage keeps its family from being
compacted, and a stall for that would stop the writes to all others too."""
ARENA_BLOCK_BYTES = 64 * 1024
"""What a family takes before it holds anything, and there may be hundreds of them."""
RATE_REFILL_MICROSECONDS, RATE_FAIRNESS = 100_000, 10
"""RocksDB's own: how often a limit is given out, and how rarely the less urgent goes first."""
COMPRESSIONS = {
    "none": DBCompressionType.none,
    "lz4": DBCompressionType.lz4,
    "zstd": DBCompressionType.zstd,
}


@dataclass(frozen=True, slots=True)
class RocksSettings:
    """Sizes in bytes; numbers of files or buffers are those of one dataset, unless it says so."""

    block_cache_bytes: int = 64 * MEGABYTE
    """Of all datasets, with their index blocks."""
    block_bytes: int = 8 * 1024
    compression: str = "lz4"
    """A word of COMPRESSIONS, for all levels but the lowest."""
    bottommost_compression: str = "lz4"
    write_buffer_bytes: int = 8 * MEGABYTE
    write_buffers: int = 8
    """How many may be full, or be written to files, before writes stall."""
    all_write_buffers_bytes: int = 256 * MEGABYTE
    """Of all datasets."""
    log_bytes: int = 128 * MEGABYTE
    """Of all datasets."""
    level0_files_to_compact: int = 4
    level0_files_to_slow_down: int = 20
    level0_files_to_stop: int = 36
    level_base_bytes: int = 128 * MEGABYTE
    """The size of the first sorted level."""
    file_bytes: int = 64 * MEGABYTE
    background_jobs: int = 0
    """Flushes and compactions at a time, of all datasets. 0: one a processor, from 2 to 8."""
    rate_bytes_per_second: int = 0
    """What these may write, together. 0: as much as they can."""
    open_files: int = -1
    """Of all datasets. -1: all that there are."""

    @property
    def free_space_margin_bytes(self) -> int:
        """Room RocksDB needs to flush what it holds: below it writes are refused."""
        return 2 * self.write_buffer_bytes + 64 * MEGABYTE


def block_cache(settings: RocksSettings) -> Cache:
    """One for all families of a database.

    RocksDB's older cache is divided into parts of a megabyte or less. The index of a file could be
    too large for its part: it was read again for every read.
    """
    return Cache.new_hyper_clock_cache(settings.block_cache_bytes, 0)


def rocksdb_options(
    settings: RocksSettings, cache: Cache, *, strict: bool = False, degraded: bool = False
) -> Options:
    """For a database, or for one family of it. All of one database are given the same cache.

    `strict`: the opening fails if the log is not whole. `degraded`: it opens, and takes writes, in
    spite of damaged files.
    """
    options = Options(raw_mode=True)
    _set_memory(options, settings)
    _set_files(options, settings, cache)
    _set_background(options, settings)
    if strict:
        options.set_wal_recovery_mode(DBRecoveryMode.absolute_consistency())
    if degraded:
        options.set_paranoid_checks(False)
        options.set_level_zero_slowdown_writes_trigger(NEVER)
        options.set_level_zero_stop_writes_trigger(NEVER)
        options.set_soft_pending_compaction_bytes_limit(0)
        options.set_hard_pending_compaction_bytes_limit(0)
    return options


def _set_memory(options: Options, settings: RocksSettings) -> None:
    """What gathers in memory, and the log of it."""
    options.set_write_buffer_size(settings.write_buffer_bytes)
    options.set_max_write_buffer_number(settings.write_buffers)
    # RocksDB can merge several of them into a file, but waits for ever in a flush that finds fewer.
    options.set_arena_block_size(ARENA_BLOCK_BYTES)
    options.set_db_write_buffer_size(settings.all_write_buffers_bytes)
    options.set_max_total_wal_size(settings.log_bytes)


def _set_files(options: Options, settings: RocksSettings, cache: Cache) -> None:
    """Levels, the files in them, the blocks in those."""
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_block_size(settings.block_bytes)
    # An index is blocks as well, of which those in use are in the cache; what leads to them stays.
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_top_level_index_and_filter(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    options.set_block_based_table_factory(table)
    options.set_compression_type(COMPRESSIONS[settings.compression]())
    options.set_bottommost_compression_type(COMPRESSIONS[settings.bottommost_compression]())
    options.set_level_zero_file_num_compaction_trigger(settings.level0_files_to_compact)
    options.set_level_zero_slowdown_writes_trigger(settings.level0_files_to_slow_down)
    options.set_level_zero_stop_writes_trigger(settings.level0_files_to_stop)
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_max_bytes_for_level_base(settings.level_base_bytes)
    options.set_target_file_size_base(settings.file_bytes)
    options.set_max_open_files(settings.open_files)


def _set_background(options: Options, settings: RocksSettings) -> None:
    """Flushes and compactions, and what RocksDB tells of them."""
    options.set_max_background_jobs(settings.background_jobs or jobs_at_most())
    options.set_bytes_per_sync(MEGABYTE)
    if settings.rate_bytes_per_second:
        options.set_ratelimiter(
            settings.rate_bytes_per_second, RATE_REFILL_MICROSECONDS, RATE_FAIRNESS
        )
    # What RocksDB tells of itself would grow for as long as the server runs.
    options.set_max_log_file_size(16 * MEGABYTE)
    options.set_keep_log_file_num(4)


def jobs_at_most() -> int:
    """One a processor that this process may use; a flush and a compaction at least."""
    return min(max(2, processors()), 8)


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
