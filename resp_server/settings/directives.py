"""Every directive of the configuration, once: name, type, default, when it may change, and what it
does.

Reading redis.conf and the command line, CONFIG GET, SET and REWRITE, error messages with file and
line, and redis.conf.example derive from this table. Values are what their kind makes of the words
after the name: a number of bytes for `64mb`, True for `yes`. Knows nothing of who uses them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from resp_server.settings.kinds import (
    ADDRESSES,
    CRON,
    EVENTS,
    OCTAL,
    OUTPUT_LIMITS,
    PATH,
    PERCENTILES,
    SWITCH,
    TEXT,
    TLS_PROTOCOLS,
    Kind,
    OutputLimit,
    OutputLimits,
    choice,
    integer,
    size,
)
from storage.model import MAX_TTL_SECONDS, MAX_VERSIONS_LIMIT


class Change(Enum):
    """Whether CONFIG SET takes a directive."""

    LIVE = "at any time"
    AT_START = "only in redis.conf and on the command line"
    PROTECTED = "only where enable-protected-configs says so, and it never does"


LIVE, AT_START, PROTECTED = Change.LIVE, Change.AT_START, Change.PROTECTED

_NETWORK, _TLS, _GENERAL, _SECURITY = "network", "tls", "general", "security"
_OBSERVING, _EVENTS = "slow log and latency", "notifications"
_MONITORING = "monitoring"
_DATA, _WIDE = "data on disk", "wide columns"
_KILOBYTE, _MEGABYTE = 1024, 1024 * 1024
_MOST_INTEGER = 2**31 - 1
_MOST_UNSIGNED = 2**32 - 1
_MOST_MEMORY = 2**62
"""For sizes that are handed to RocksDB."""
_COMPRESSION = choice("none", "lz4", "zstd")


_OUTPUT_LIMITS = OutputLimits(
    normal=OutputLimit(0, 0, 0),
    replica=OutputLimit(256 * _MEGABYTE, 64 * _MEGABYTE, 60),
    pubsub=OutputLimit(32 * _MEGABYTE, 8 * _MEGABYTE, 60),
)


@dataclass(frozen=True, slots=True)
class Directive:
    """One line of the table, for those who go through it."""

    name: str
    attribute: str
    section: str
    kind: Kind
    default: Any
    change: Change
    text: str
    sensitive: bool
    """Whether its value is a secret: not in the slow log, not shown to monitors."""
    volatile: bool
    """Whether it names what may change behind it, so that setting it anew is a change."""


def _directive(
    section: str,
    default: Any,
    kind: Kind,
    change: Change,
    text: str,
    *,
    sensitive: bool = False,
    volatile: bool = False,
) -> Any:
    """A field that carries its directive; its name has `_` where the directive has `-`."""
    marks = {"sensitive": sensitive, "volatile": volatile}
    metadata = {"section": section, "kind": kind, "change": change, "text": text, **marks}
    return field(default=default, metadata=metadata)


@dataclass(slots=True)
class Settings:
    """All directives with their values. Defaults are those of redis.conf.example."""

    bind: tuple[str, ...] = _directive(
        _NETWORK,
        ("127.0.0.1",),
        ADDRESSES,
        LIVE,
        "The addresses to listen on; * for all of IPv4, ::* for all of IPv6. One with - before it "
        "may be missing on this machine.",
    )
    port: int = _directive(
        _NETWORK, 6379, integer(0, 65535), LIVE, "The TCP port; 0 listens on no TCP port."
    )
    tcp_backlog: int = _directive(
        _NETWORK,
        511,
        integer(0, _MOST_INTEGER),
        AT_START,
        "Connections the system may hold before they are taken.",
    )
    unixsocket: str = _directive(
        _NETWORK, "", TEXT, AT_START, 'The path of a unix socket to listen on; "" for none.'
    )
    unixsocketperm: int = _directive(
        _NETWORK, 0o700, OCTAL, AT_START, "The permissions of that socket."
    )
    protected_mode: bool = _directive(
        _NETWORK,
        True,
        SWITCH,
        LIVE,
        "Whether clients of other machines are refused while the default user has no password.",
    )
    timeout: int = _directive(
        _NETWORK,
        0,
        integer(0, _MOST_INTEGER),
        LIVE,
        "Seconds after which an idle client is disconnected; 0: never.",
    )
    tcp_keepalive: int = _directive(
        _NETWORK,
        300,
        integer(0, _MOST_INTEGER),
        LIVE,
        "Seconds of silence after which the system asks whether a client is still there; 0: never.",
    )
    maxclients: int = _directive(
        _NETWORK,
        10_000,
        integer(1, _MOST_UNSIGNED),
        LIVE,
        "Connections over this number are refused.",
    )
    proto_max_bulk_len: int = _directive(
        _NETWORK, 512 * _MEGABYTE, size(_MEGABYTE), LIVE, "The longest single argument."
    )
    client_query_buffer_limit: int = _directive(
        _NETWORK, 1024 * _MEGABYTE, size(_MEGABYTE), LIVE, "The longest single command."
    )
    client_output_buffer_limit: OutputLimits = _directive(  # noqa: RUF009 - it makes a field
        _NETWORK,
        _OUTPUT_LIMITS,
        OUTPUT_LIMITS,
        LIVE,
        "How much may wait for a client that does not read, by class of clients (normal, replica, "
        "pubsub): it is disconnected at the first size at once, or when it is over the second for "
        "so many seconds. 0 switches a limit off.",
    )
    tls_port: int = _directive(
        _TLS, 0, integer(0, 65535), LIVE, "The TCP port for TLS; 0 listens on none."
    )
    tls_cert_file: str = _directive(
        _TLS, "", TEXT, LIVE, "The server's certificate, and its chain, in PEM.", volatile=True
    )
    tls_key_file: str = _directive(
        _TLS, "", TEXT, LIVE, "The key of that certificate.", volatile=True
    )
    tls_key_file_pass: str = _directive(
        _TLS, "", TEXT, LIVE, 'The password of that key; "" for none.', sensitive=True
    )
    tls_ca_cert_file: str = _directive(
        _TLS, "", TEXT, LIVE, "Authorities that clients' certificates are from.", volatile=True
    )
    tls_ca_cert_dir: str = _directive(
        _TLS, "", TEXT, LIVE, "The same, as a directory of OpenSSL's.", volatile=True
    )
    tls_auth_clients: str = _directive(
        _TLS,
        "yes",
        choice("no", "yes", "optional"),
        LIVE,
        "Whether clients must, may or need not show a certificate.",
    )
    tls_protocols: str = _directive(
        _TLS,
        "",
        TLS_PROTOCOLS,
        LIVE,
        'The versions of TLS in one pair of quotes, as in "TLSv1.2 TLSv1.3"; "" for those two.',
    )
    tls_ciphers: str = _directive(
        _TLS, "", TEXT, LIVE, "Ciphers up to TLS 1.2, in OpenSSL's notation."
    )
    tls_prefer_server_ciphers: bool = _directive(
        _TLS, False, SWITCH, LIVE, "Whether the server's order of ciphers goes before the client's."
    )
    databases: int = _directive(
        _GENERAL,
        16,
        integer(1, _MOST_INTEGER),
        AT_START,
        "SELECT takes 0 to one less. Datasets are in all.",
    )
    loglevel: str = _directive(
        _GENERAL,
        "notice",
        choice("debug", "verbose", "notice", "warning"),
        LIVE,
        "How much is logged.",
    )
    logfile: str = _directive(
        _GENERAL, "", TEXT, AT_START, 'The file to log to; "" logs to the standard output.'
    )
    log_format: str = _directive(
        _GENERAL,
        "text",
        choice("text", "json"),
        AT_START,
        "How the log is written: in lines like Redis's, or as one JSON object a line.",
    )
    pidfile: str = _directive(
        _GENERAL,
        "",
        TEXT,
        AT_START,
        'A file that holds the number of the process while it runs; "" for none.',
    )
    supervised: str = _directive(
        _GENERAL,
        "no",
        choice("systemd", "auto", "no"),
        AT_START,
        "Whether systemd is told when the server is ready; auto asks the environment.",
    )
    requirepass: str = _directive(
        _SECURITY, "", TEXT, LIVE, 'The password of the default user; "" for none.', sensitive=True
    )
    aclfile: str = _directive(
        _SECURITY,
        "",
        TEXT,
        AT_START,
        'A file of users, which ACL LOAD and ACL SAVE read and write; "" for none.',
    )
    acllog_max_len: int = _directive(
        _SECURITY, 128, integer(0), LIVE, "How many refusals ACL LOG remembers."
    )
    acl_pubsub_default: str = _directive(
        _SECURITY,
        "resetchannels",
        choice("allchannels", "resetchannels"),
        LIVE,
        "The channels a new user may use: all, or none.",
    )
    enable_debug_command: str = _directive(
        _SECURITY,
        "no",
        choice("no", "yes", "local"),
        AT_START,
        "Who may use DEBUG: nobody, anybody, or clients of this machine.",
    )
    slowlog_log_slower_than: int = _directive(
        _OBSERVING,
        10_000,
        integer(-1),
        LIVE,
        "Microseconds over which a command goes to the slow log; 0 logs all, -1 none.",
    )
    slowlog_max_len: int = _directive(
        _OBSERVING, 128, integer(0), LIVE, "How many commands the slow log remembers."
    )
    latency_monitor_threshold: int = _directive(
        _OBSERVING,
        0,
        integer(0),
        LIVE,
        "Milliseconds from which on LATENCY remembers an event; 0 remembers none.",
    )
    latency_tracking: bool = _directive(
        _OBSERVING,
        True,
        SWITCH,
        LIVE,
        "Whether latencies are counted by command, for INFO latencystats and LATENCY HISTOGRAM.",
    )
    latency_tracking_info_percentiles: tuple[float, ...] = _directive(
        _OBSERVING, (50.0, 99.0, 99.9), PERCENTILES, LIVE, "Which percentiles INFO tells of them."
    )
    metrics_port: int = _directive(
        _MONITORING,
        0,
        integer(0, 65535),
        AT_START,
        "The TCP port that answers HTTP for /metrics, /healthz and /readyz; 0 listens on none. "
        "Needs prometheus_client: pip install 'colonnade[metrics]'.",
    )
    metrics_bind: str = _directive(
        _MONITORING,
        "127.0.0.1",
        TEXT,
        AT_START,
        "The address for that port; * for all of IPv4. Whoever reaches it sees the names of "
        "commands and datasets, without a password.",
    )
    notify_keyspace_events: int = _directive(
        _EVENTS,
        0,
        EVENTS,
        LIVE,
        "Which changes are published: K and E choose the channels, w the writes to datasets, A all "
        'of Redis\'s classes of events and w; "" publishes none.',
    )
    dir: str = _directive(
        _DATA,
        "./data",
        PATH,
        PROTECTED,
        "The directory of the data. It is created if need be.",
    )
    wc_engine: str = _directive(
        _DATA,
        "rocksdb",
        choice("rocksdb", "memory"),
        AT_START,
        "Where data lives: on disk, or in memory and gone with the process.",
    )
    appendfsync: str = _directive(
        _DATA,
        "everysec",
        choice("everysec", "always", "no"),
        LIVE,
        "When the log goes from the system to the disk. Every write is in the system's hands "
        "before it is answered; a power cut may lose what was not on the disk.",
    )
    wc_compaction_cron: str = _directive(
        _DATA,
        "0 3 * * *",
        CRON,
        LIVE,
        "When expired and surplus cells of all datasets are removed, as WCDATASET COMPACT does: "
        "minute, hour, day, month and weekday, in the time of this machine. No answer depends on "
        'it. "" for never.',
    )
    wc_compaction_checker_cron: str = _directive(
        _DATA,
        "*/30 0-6 * * *",
        CRON,
        LIVE,
        "When files are looked at for traces of many deletions, which make reads slow, and "
        'compacted if they hold them: best in quiet hours. "" for never.',
    )
    backup_keep: int = _directive(
        _DATA,
        3,
        integer(0, 10_000),
        LIVE,
        "How many backups SAVE, BGSAVE and backup-cron leave in the data directory, below backups. "
        "They share files with the data, and keep what has since been removed from it. 0: none "
        "are made, and SAVE only sees to the log.",
    )
    backup_cron: str = _directive(
        _DATA,
        "",
        CRON,
        LIVE,
        'When a backup is made by itself: minute, hour, day, month and weekday, as "0 3 * * *" for '
        'three at night, in the time of this machine; "" for never.',
    )
    backup_url: str = _directive(
        _DATA,
        "",
        TEXT,
        AT_START,
        "Where those backups go: a path, or a URL such as s3://bucket/folder, which needs pip "
        "install 'colonnade[s3]'. One store, one URL; passwords are better left to the "
        'environment. "" for the data directory.',
    )
    backup_url_keep: int = _directive(
        _DATA,
        0,
        integer(0, 10_000),
        LIVE,
        "How many backups are left there; 0: all.",
    )
    rocksdb_block_cache_size: int = _directive(
        _DATA,
        0,
        size(_MEGABYTE, _MOST_MEMORY, or_zero=True),
        AT_START,
        "Memory for blocks read from disk, of all datasets. 0: an eighth of the machine's or the "
        "container's, from 64mb to 1gb. It fills as data is read.",
    )
    rocksdb_block_size: int = _directive(
        _DATA,
        8 * _KILOBYTE,
        size(_KILOBYTE, 64 * _MEGABYTE),
        AT_START,
        "What is read of a file, and unpacked, at a time: more for long pages, less for single "
        "cells. It holds for files written from then on, as all of this does.",
    )
    rocksdb_compression: str = _directive(
        _DATA, "lz4", _COMPRESSION, AT_START, "How files are packed, but those of the lowest level."
    )
    rocksdb_bottommost_compression: str = _directive(
        _DATA,
        "lz4",
        _COMPRESSION,
        AT_START,
        "How files of the lowest level are packed, where most of the data is: zstd takes a third "
        "less room, and more time to read.",
    )
    rocksdb_write_buffer_size: int = _directive(
        _DATA,
        8 * _MEGABYTE,
        size(_MEGABYTE, _MOST_MEMORY),
        AT_START,
        "Memory in which a dataset's writes gather. The smaller, the faster they are put in order. "
        "Writes are refused when the disk has less free than twice as much and 64mb.",
    )
    rocksdb_max_write_buffer_number: int = _directive(
        _DATA,
        8,
        integer(2, 1_000),
        AT_START,
        "So many of these a dataset may have, with those on their way to files. Then writes wait.",
    )
    rocksdb_db_write_buffer_size: int = _directive(
        _DATA,
        256 * _MEGABYTE,
        size(_MEGABYTE, _MOST_MEMORY),
        AT_START,
        "Memory for all of these, of all datasets together: beyond it the oldest go to files.",
    )
    rocksdb_max_total_wal_size: int = _directive(
        _DATA,
        128 * _MEGABYTE,
        size(_MEGABYTE, _MOST_MEMORY),
        AT_START,
        "The log, of all datasets together: beyond it the oldest write buffers go to files. After "
        "a crash it is read again.",
    )
    rocksdb_level0_file_num_compaction_trigger: int = _directive(
        _DATA,
        4,
        integer(1, 100_000),
        AT_START,
        "A dataset's newest files are merged into its sorted ones from this number on. Every one "
        "of them makes reads slower.",
    )
    rocksdb_level0_slowdown_writes_trigger: int = _directive(
        _DATA,
        20,
        integer(1, 100_000),
        AT_START,
        "From this number on of those files writes are held back, if merging does not keep up.",
    )
    rocksdb_level0_stop_writes_trigger: int = _directive(
        _DATA, 36, integer(1, 100_000), AT_START, "And from this number on they wait."
    )
    rocksdb_max_bytes_for_level_base: int = _directive(
        _DATA,
        128 * _MEGABYTE,
        size(_MEGABYTE, _MOST_MEMORY),
        AT_START,
        "How much of a dataset is in the first level of sorted files; each further one holds ten "
        "times as much.",
    )
    rocksdb_target_file_size_base: int = _directive(
        _DATA,
        64 * _MEGABYTE,
        size(_MEGABYTE, _MOST_MEMORY),
        AT_START,
        "The size of a sorted file.",
    )
    rocksdb_max_background_jobs: int = _directive(
        _DATA,
        0,
        integer(0, 1_000),
        AT_START,
        "How many files are written and merged at a time; 0: as many as there are processors, from "
        "2 to 8.",
    )
    rocksdb_rate_limiter_bytes_per_sec: int = _directive(
        _DATA,
        0,
        size(0, _MOST_MEMORY),
        AT_START,
        "How much that may write in a second, for the sake of others on the same disk; 0: as much "
        "as it can.",
    )
    rocksdb_max_open_files: int = _directive(
        _DATA,
        -1,
        integer(-1, _MOST_INTEGER),
        AT_START,
        "How many files are kept open; -1: all of them.",
    )
    wc_auto_create: bool = _directive(
        _WIDE, True, SWITCH, LIVE, "Whether a write creates the dataset it names."
    )
    wc_default_maxversions: int = _directive(
        _WIDE,
        0,
        integer(0, MAX_VERSIONS_LIMIT),
        LIVE,
        "Cells a column keeps, in datasets created without MAXVERSIONS; 0 keeps all.",
    )
    wc_default_ttl: int = _directive(
        _WIDE,
        0,
        integer(0, MAX_TTL_SECONDS),
        LIVE,
        "Seconds from its timestamp that a cell lives, in datasets created without TTL; 0: ever.",
    )
    wc_page_columns: int = _directive(
        _WIDE, 100, integer(1, _MOST_INTEGER), LIVE, "Columns a page, where COUNT is not given."
    )
    wc_page_rows: int = _directive(
        _WIDE,
        10,
        integer(1, _MOST_INTEGER),
        LIVE,
        "Rows a page of WCSCAN, where LIMIT is not given.",
    )
    wc_page_cells: int = _directive(
        _WIDE, 10_000, integer(1, _MOST_INTEGER), LIVE, "The most cells in one reply."
    )
    wc_page_bytes: int = _directive(
        _WIDE,
        8 * _MEGABYTE,
        size(1, _MOST_MEMORY),
        LIVE,
        "The most bytes in one reply, but for its first cell.",
    )
    wc_page_scan: int = _directive(
        _WIDE, 50_000, integer(1, _MOST_INTEGER), LIVE, "The most cells examined for one reply."
    )
    wc_write_queue_limit: int = _directive(
        _WIDE,
        64 * _MEGABYTE,
        size(1, _MOST_MEMORY),
        LIVE,
        "While the disk does not keep up, writes wait, and clients with them; when more than this "
        "waits, further writes are answered with BUSY.",
    )
    wc_row_cache_bytes: int = _directive(
        _WIDE,
        64 * _MEGABYTE,
        size(0, _MOST_MEMORY),
        LIVE,
        "Memory for replies to WCGET that are given again while their row is unchanged; 0: none.",
    )
    user: tuple[tuple[str, ...], ...] = ()
    """The words after each `user` of redis.conf, in order, unread. No directive like the others:
    there may be several, and CONFIG knows nothing of them."""


DIRECTIVES: dict[str, Directive] = {
    item.name.replace("_", "-"): Directive(
        name=item.name.replace("_", "-"),
        attribute=item.name,
        default=item.default,
        **item.metadata,
    )
    for item in fields(Settings)
    if item.metadata
}
