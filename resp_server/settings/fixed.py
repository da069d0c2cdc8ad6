"""Directives of Redis that are no choice here: those with one value, and those that mean nothing.

Clients and tools ask CONFIG GET for some of them, and a redis.conf may state them; any other value
is refused with the reason, so that nobody believes in a limit or a promise that is not kept. The
names are Redis 7.0's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resp_server.settings.directives import AT_START, LIVE, Change
from resp_server.settings.kinds import SWITCH, TEXT, WORDS, BadSetting, Kind, integer, size
from storage.integers import parse_integer


@dataclass(frozen=True, slots=True)
class Fixed:
    """One that has one value."""

    name: str
    kind: Kind
    value: Any
    change: Change
    text: str
    """Why."""

    def check(self, words: Sequence[str]) -> None:
        """BadSetting if these words say anything but its value."""
        if self.kind.read(words) != self.value:
            raise BadSetting(f"it can only be {self.kind.write(self.value)} here. {self.text}")


def _replica_of(words: Sequence[str]) -> str:
    return "" if [word.lower() for word in words] in (["no", "one"], [""]) else " ".join(words)


def _snapshots(words: Sequence[str]) -> tuple[str, ...]:
    """Pairs of seconds and changes; none for `""`."""
    periods = WORDS.read(words)
    numbers = [parse_integer(word.encode("utf-8", "surrogateescape")) for word in periods]
    if len(numbers) % 2 or any(number is None or number < 0 for number in numbers):
        raise BadSetting("Invalid save parameters")
    return tuple(periods)


_SAVE = Kind(_snapshots, WORDS.write, WORDS.show, takes_words=True)
_REPLICA_OF = Kind(_replica_of, lambda _: "no one", str)
_SNAPSHOTS = "There are no snapshots to schedule: every write is in the log before it is answered."
_LOG = "Every write is in a log before it is answered; appendfsync says when that is on the disk."
_DISK = "Data is on disk and nothing is evicted."
_STANDALONE = "A server is on its own: there is neither replication nor cluster."
_SCRIPTS = "There are no scripts that it could bound."
_LOOP = "One thread runs the commands, without a timer's rhythm."
_SERVICE = (
    "The server stays in the foreground: let a service manager like systemd, or nohup and &, put "
    "it in the background."
)

FIXED: dict[str, Fixed] = {
    fixed.name: fixed
    for fixed in (
        Fixed("daemonize", SWITCH, False, AT_START, _SERVICE),
        Fixed("always-show-logo", SWITCH, False, AT_START, "There is no logo."),
        Fixed("syslog-enabled", SWITCH, False, AT_START, "The log goes to logfile."),
        Fixed("save", _SAVE, (), LIVE, _SNAPSHOTS),
        Fixed("appendonly", SWITCH, True, LIVE, _LOG),
        Fixed("maxmemory", size(0), 0, LIVE, _DISK),
        Fixed("maxmemory-policy", TEXT, "noeviction", LIVE, _DISK),
        Fixed("maxmemory-clients", size(0), 0, LIVE, "client-output-buffer-limit bounds clients."),
        Fixed("replicaof", _REPLICA_OF, "", AT_START, _STANDALONE),
        Fixed("slaveof", _REPLICA_OF, "", AT_START, _STANDALONE),
        Fixed("cluster-enabled", SWITCH, False, AT_START, _STANDALONE),
        Fixed("lua-time-limit", integer(0), 5000, LIVE, _SCRIPTS),
        Fixed("busy-reply-threshold", integer(0), 5000, LIVE, _SCRIPTS),
        Fixed("hz", integer(0, 2**31 - 1), 10, LIVE, _LOOP),
        Fixed("io-threads", integer(1, 128), 1, AT_START, _LOOP),
        Fixed("io-threads-do-reads", SWITCH, False, AT_START, _LOOP),
        Fixed(
            "enable-protected-configs",
            SWITCH,
            False,
            AT_START,
            "Of the directives it protects there is only dir, and the data cannot move meanwhile.",
        ),
        Fixed("enable-module-command", SWITCH, False, AT_START, "There are no modules to load."),
        Fixed(
            "tls-ciphersuites",
            TEXT,
            "",
            LIVE,
            "The ciphers of TLS 1.3 are OpenSSL's default; tls-ciphers chooses those before it.",
        ),
    )
}

UNSUPPORTED = {
    "rename-command": "use ACL rules to take commands away from users",
    "loadmodule": "modules of Redis cannot be loaded",
    "sentinel": "there is no Sentinel",
}
"""What redis.conf may hold besides directives, and what to do instead."""

_MEANINGLESS = """
    active-defrag-cycle-max active-defrag-cycle-min active-defrag-ignore-bytes
    active-defrag-max-scan-fields active-defrag-threshold-lower active-defrag-threshold-upper
    active-expire-effort activedefrag activerehashing aof-disable-auto-gc aof-load-truncated
    aof-rewrite-incremental-fsync aof-timestamp-enabled aof-use-rdb-preamble aof_rewrite_cpulist
    appenddirname appendfilename auto-aof-rewrite-min-size auto-aof-rewrite-percentage
    bgsave_cpulist bind-source-addr bio_cpulist cluster-allow-pubsubshard-when-down
    cluster-allow-reads-when-down cluster-allow-replica-migration cluster-announce-bus-port
    cluster-announce-hostname cluster-announce-ip cluster-announce-port cluster-announce-tls-port
    cluster-config-file cluster-link-sendbuf-limit cluster-migration-barrier cluster-node-timeout
    cluster-port cluster-preferred-endpoint-type cluster-replica-no-failover
    cluster-replica-validity-factor cluster-require-full-coverage cluster-slave-no-failover
    cluster-slave-validity-factor crash-log-enabled crash-memcheck-enabled dbfilename disable-thp
    dynamic-hz hash-max-listpack-entries hash-max-listpack-value hash-max-ziplist-entries
    hash-max-ziplist-value hll-sparse-max-bytes ignore-warnings jemalloc-bg-thread
    lazyfree-lazy-eviction lazyfree-lazy-expire lazyfree-lazy-server-del
    lazyfree-lazy-user-del lazyfree-lazy-user-flush lfu-decay-time lfu-log-factor
    list-compress-depth list-max-listpack-size list-max-ziplist-size masterauth masteruser
    maxmemory-eviction-tenacity maxmemory-samples min-replicas-max-lag min-replicas-to-write
    min-slaves-max-lag min-slaves-to-write no-appendfsync-on-rewrite oom-score-adj
    oom-score-adj-values proc-title-template propagation-error-behavior rdb-del-sync-files
    rdb-save-incremental-fsync rdbchecksum rdbcompression repl-backlog-size repl-backlog-ttl
    repl-disable-tcp-nodelay repl-diskless-load repl-diskless-sync repl-diskless-sync-delay
    repl-diskless-sync-max-replicas repl-ping-replica-period repl-ping-slave-period repl-timeout
    replica-announce-ip replica-announce-port replica-announced replica-ignore-disk-write-errors
    replica-ignore-maxmemory replica-lazy-flush replica-priority replica-read-only
    replica-serve-stale-data sanitize-dump-payload server_cpulist set-max-intset-entries
    set-proc-title shutdown-on-sigint shutdown-on-sigterm shutdown-timeout slave-announce-ip
    slave-announce-port slave-ignore-maxmemory slave-lazy-flush slave-priority slave-read-only
    slave-serve-stale-data socket-mark-id stop-writes-on-bgsave-error stream-node-max-bytes
    stream-node-max-entries syslog-facility syslog-ident tls-client-cert-file tls-client-key-file
    tls-client-key-file-pass tls-cluster tls-dh-params-file tls-replication
    tls-session-cache-size tls-session-cache-timeout tls-session-caching
    tracking-table-max-keys zset-max-listpack-entries zset-max-listpack-value
    zset-max-ziplist-entries zset-max-ziplist-value
"""
MEANINGLESS = frozenset(_MEANINGLESS.split())
"""Redis's directives about what is not here or is done otherwise."""
