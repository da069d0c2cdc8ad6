"""The server as a whole: its time and role, saving, flushing, waiting, watching it, ending it."""

from __future__ import annotations

import time

from commands.arguments import Arguments, integer
from commands.context import Context
from commands.errors import (
    BadSubcommandUse,
    BadTimeout,
    DebugDisabled,
    NegativeTimeout,
    NoLocalLog,
    NoShutdown,
    NotAnInteger,
    NotWhileExecuting,
    OutOfRange,
    SyntaxProblem,
)
from commands.help import help_text
from commands.replies import NO_REPLY, OK, Reply, Status, Verbatim
from commands.table import command
from storage.integers import MIN_INTEGER, parse_integer

_SHUTDOWN_WORDS = {b"NOSAVE", b"SAVE", b"NOW", b"FORCE", b"ABORT"}
_COLUMNS = 7
LONGEST_SLEEP_SECONDS = 1e6


@command(
    "TIME",
    arity=1,
    flags="loading stale fast",
    group="server",
    since="2.6.0",
    complexity="O(1)",
    tips="nondeterministic_output",
)
async def time_(_context: Context, _words: list[bytes]) -> Reply:
    """Tells the time of the machine: Unix seconds, and microseconds of that second."""
    seconds, microseconds = divmod(time.time_ns() // 1000, 10**6)
    return [b"%d" % seconds, b"%d" % microseconds]


@command(
    "ROLE",
    arity=1,
    flags="noscript loading stale fast",
    group="server",
    categories="admin dangerous",
    since="2.8.12",
    complexity="O(1)",
)
async def role(_context: Context, _words: list[bytes]) -> Reply:
    """Tells that this is a master without replicas."""
    return [b"master", 0, []]


# Saving: every write is in the log before it is answered; these see to the disk


@command(
    "SAVE",
    arity=1,
    flags="admin noscript no_async_loading no_multi files",
    group="server",
    since="1.0.0",
    complexity="O(N) for N bytes written since the last backup",
)
async def save(context: Context, _words: list[bytes]) -> Reply:
    """Brings all that was written to the disk, makes a backup there, and answers when it is done.

    The backup goes to `backups` in the data directory; the directive backup-keep says how many
    stay, and 0 makes none. Other clients are served meanwhile.
    """
    await context.server.save()
    return OK


@command(
    "BGSAVE",
    arity=-1,
    flags="admin noscript no_async_loading files",
    group="server",
    since="1.0.0",
    complexity="O(1); the work itself as SAVE",
    syntax="[SCHEDULE]",
)
async def bgsave(context: Context, words: list[bytes]) -> Reply:
    """Does as SAVE, in the background. LASTSAVE tells when it was, INFO persistence how it went."""
    if len(words) > 2 or (len(words) == 2 and words[1].upper() != b"SCHEDULE"):
        raise SyntaxProblem
    context.server.save_in_background()
    return Status(b"Background saving started")


@command(
    "LASTSAVE",
    arity=1,
    flags="loading stale fast",
    group="server",
    categories="admin dangerous",
    since="1.0.0",
    complexity="O(1)",
    tips="nondeterministic_output",
)
async def lastsave(context: Context, _words: list[bytes]) -> Reply:
    """Tells when SAVE or BGSAVE last ended well, or the server began: Unix seconds."""
    return context.server.last_save()


@command(
    "BGREWRITEAOF",
    arity=1,
    flags="admin noscript no_async_loading files",
    group="server",
    since="1.0.0",
    complexity="O(N) for N cells, in the background",
)
async def bgrewriteaof(context: Context, _words: list[bytes]) -> Reply:
    """Starts to compact all datasets, as WCDATASET COMPACT does one."""
    for name in context.store.dataset_names():
        await context.store.compact_dataset(name)
    return Status(b"Background append only file rewriting started")


@command(
    "FLUSHALL",
    arity=-1,
    flags="write",
    group="server",
    categories="keyspace dangerous",
    since="1.0.0",
    complexity="O(N) for N datasets",
    syntax="[ASYNC | SYNC]",
    tips="request_policy:all_shards response_policy:all_succeeded",
)
async def flushall(context: Context, words: list[bytes]) -> Reply:
    """Drops everything: all databases and all datasets with their settings."""
    check_flush_mode(words)
    await context.store.drop_all()
    return OK


def check_flush_mode(words: list[bytes]) -> None:
    """Both modes do the same: dropping is quick."""
    if len(words) > 2 or (len(words) == 2 and words[1].upper() not in (b"ASYNC", b"SYNC")):
        raise SyntaxProblem


# Waiting


@command(
    "WAIT",
    arity=3,
    flags="noscript",
    group="generic",
    categories="connection",
    since="3.0.0",
    complexity="O(1)",
    syntax="numreplicas timeout-ms",
    tips="request_policy:all_shards response_policy:agg_min",
)
async def wait(context: Context, words: list[bytes]) -> Reply:
    """Waits for replicas, of which there are none: for the whole timeout, 0 for ever."""
    replicas = integer(words[1], MIN_INTEGER)
    seconds = _timeout(words[2])
    await _wait_for_replicas(context, replicas, seconds)
    return 0


@command(
    "WAITAOF",
    arity=4,
    flags="noscript",
    group="generic",
    categories="connection",
    since="7.2.0",
    complexity="O(N) for N bytes of the log that the disk has not got yet",
    syntax="numlocal numreplicas timeout-ms",
    tips="request_policy:all_shards response_policy:agg_min",
)
async def waitaof(context: Context, words: list[bytes]) -> Reply:
    """Waits until all that was written is on the disk here (numlocal 1), and on replicas.

    Replies with two counts: this server, and its replicas, of which there are none.
    """
    local, replicas = parse_integer(words[1]), parse_integer(words[2])
    if local is None:
        raise NotAnInteger
    if not 0 <= local <= 1:
        raise OutOfRange("value must between 0 and 1")
    if replicas is None or replicas < 0:
        raise OutOfRange("must be positive")
    seconds = _timeout(words[3])
    if local and not context.server.has_log():
        raise NoLocalLog
    if local and not context.client.executing:
        await context.server.sync()
    await _wait_for_replicas(context, replicas, seconds)
    return [int(not context.store.unsynced), 0]


async def _wait_for_replicas(context: Context, count: int, seconds: float | None) -> None:
    if count > 0 and not context.client.executing:
        await context.server.wait(context.client, seconds)


def _timeout(word: bytes) -> float | None:
    """Milliseconds -> seconds, None for ever."""
    milliseconds = parse_integer(word)
    if milliseconds is None:
        raise BadTimeout
    if milliseconds < 0:
        raise NegativeTimeout
    return milliseconds / 1000 if milliseconds else None


# Watching, ending


@command(
    "MONITOR",
    arity=1,
    flags="admin noscript loading stale",
    group="server",
    since="1.0.0",
    complexity="O(1)",
)
async def monitor(context: Context, _words: list[bytes]) -> Reply:
    """Shows from here on every command that any client runs, without passwords."""
    if context.client.executing:
        raise NotWhileExecuting("MONITOR")
    if context.client.monitoring:
        return NO_REPLY
    context.server.clients.monitor(context.client)
    return OK


@command(
    "SHUTDOWN",
    arity=-1,
    flags="admin noscript loading stale no_multi allow_busy",
    group="server",
    since="1.0.0",
    complexity="O(N) for N bytes of the log that the disk has not got yet",
    syntax="[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
)
async def shutdown(context: Context, words: list[bytes]) -> Reply:
    """Ends the server, with all that was written on the disk, whatever the options say.

    The connection closes without a reply. Ending is not waited with, so ABORT finds nothing.
    """
    options = {word.upper() for word in words[1:]}
    aborts = b"ABORT" in options and len(options) > 1
    if not options <= _SHUTDOWN_WORDS or {b"NOSAVE", b"SAVE"} <= options or aborts:
        raise SyntaxProblem
    if b"ABORT" in options:
        raise NoShutdown
    context.client.closing = True  # what stands behind it in a pipeline is not run
    context.server.shut_down()
    return NO_REPLY


@command(
    "DEBUG",
    arity=-2,
    flags="admin noscript loading stale",
    group="server",
    since="1.0.0",
    complexity="O(1)",
    syntax="subcommand [arg [arg ...]]",
)
async def debug(context: Context, words: list[bytes]) -> Reply:
    """Helps to test: SLEEP holds the whole server up. Off by default (enable-debug-command)."""
    if not context.server.allows_debugging(context.client):
        raise DebugDisabled
    subcommand = words[1].upper()
    if subcommand == b"SLEEP" and len(words) == 3:
        time.sleep(_seconds(words[2]))
        return OK
    if subcommand == b"HELP" and len(words) == 2:
        return help_text("DEBUG", {"SLEEP <seconds>": "Holds the whole server up for so long."})
    raise BadSubcommandUse("DEBUG", words[1])


def _seconds(word: bytes) -> float:
    """0 for what is no number, as Redis has it."""
    try:
        seconds = float(word)
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < LONGEST_SLEEP_SECONDS else 0.0


@command(
    "LOLWUT",
    arity=-1,
    flags="readonly fast",
    group="server",
    since="5.0.0",
    complexity="O(1)",
    syntax="[VERSION version [arg [arg ...]]]",
)
async def lolwut(context: Context, words: list[bytes]) -> Reply:
    """Shows a colonnade, and which version this is. VERSION n draws n columns, up to 20."""
    columns = _COLUMNS
    if len(words) > 2 and words[1].upper() == b"VERSION":
        columns = max(1, min(20, Arguments(words, 2).take_integer(MIN_INTEGER)))
    lines = [
        "_" * (6 * columns + 1),
        "|" + "_" * (6 * columns - 1) + "|",
        *(" (===)" * columns for _ in range(1)),
        *("  |||  "[:6] * columns for _ in range(4)),
        " [===]" * columns,
        "=" * (6 * columns + 1),
        "",
        f"Colonnade ver. {context.server.version()}",
        "",
    ]
    return Verbatim("\n".join(lines).encode())
