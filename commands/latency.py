"""LATENCY: spikes of events over a threshold, and how long each command takes."""

from __future__ import annotations

import time

from commands.context import Context
from commands.errors import NoLatencySamples
from commands.help import help_lines
from commands.observing import advice
from commands.observing.calls import Calls
from commands.replies import Reply, Verbatim
from commands.table import command, container

container("LATENCY", group="server", since="2.8.13", summary="A container for latency commands.")

_TIPS = "nondeterministic_output request_policy:all_nodes response_policy:special"


@command(
    "LATENCY|LATEST",
    arity=2,
    flags="admin noscript loading stale",
    group="server",
    since="2.8.13",
    complexity="O(N) for N events",
    tips=_TIPS,
)
async def latest(context: Context, _words: list[bytes]) -> Reply:
    """Tells the newest spike of each event.

    An entry is the event, when its newest spike was (Unix time in seconds), how long that took and
    how long the worst of all took, in milliseconds.
    """
    return [
        [name.encode(), *event.samples[-1], event.worst_ms]
        for name, event in context.server.latency.events.items()
    ]


@command(
    "LATENCY|HISTORY",
    arity=3,
    flags="admin noscript loading stale",
    group="server",
    since="2.8.13",
    complexity="O(N) for N spikes, 160 at most",
    syntax="event",
    tips=_TIPS,
)
async def history(context: Context, words: list[bytes]) -> Reply:
    """Tells the spikes of an event: Unix time in seconds, and milliseconds."""
    event = context.server.latency.events.get(_text(words[2]))
    return [] if event is None else [list(sample) for sample in event.samples]


@command(
    "LATENCY|RESET",
    arity=-2,
    flags="admin noscript loading stale",
    group="server",
    since="2.8.13",
    complexity="O(N) for N events",
    syntax="[event [event ...]]",
    tips="request_policy:all_nodes response_policy:all_succeeded",
)
async def reset(context: Context, words: list[bytes]) -> Reply:
    """Forgets the spikes of some events, or of all; tells how many events that were."""
    names = [_text(word) for word in words[2:]]
    return context.server.latency.reset(names or None)


@command(
    "LATENCY|HISTOGRAM",
    arity=-2,
    flags="admin noscript loading stale",
    group="server",
    since="7.0.0",
    complexity="O(N) for N commands",
    syntax="[command [command ...]]",
    tips=_TIPS,
)
async def histogram(context: Context, words: list[bytes]) -> Reply:
    """Tells how long the calls of some commands took, or of all that ran.

    For each command, the number of calls, and how many of them took no longer than so many
    microseconds.
    """
    statistics = context.server.calls
    found: dict[str, Calls] = {} if len(words) > 2 else statistics.by_command
    for word in words[2:]:
        found |= statistics.named(_text(word))
    return {
        name.encode(): _distribution(calls)
        for name, calls in found.items()
        if calls.histogram.total
    }


def _distribution(calls: Calls) -> dict[bytes, object]:
    return {b"calls": calls.histogram.total, b"histogram_usec": calls.histogram.cumulative()}


@command(
    "LATENCY|DOCTOR",
    arity=2,
    flags="admin noscript loading stale",
    group="server",
    since="2.8.13",
    complexity="O(N) for N spikes",
    tips=_TIPS,
)
async def doctor(context: Context, _words: list[bytes]) -> Reply:
    """Reports the spikes of all events, with advice, for people to read."""
    monitor = context.server.latency
    report = advice.latency_report(
        monitor.events,
        threshold_ms=monitor.threshold_ms,
        slow_log_limit_us=context.server.slow_log.slower_than_us,
    )
    return Verbatim(report.encode())


@command(
    "LATENCY|GRAPH",
    arity=3,
    flags="admin noscript loading stale",
    group="server",
    since="2.8.13",
    complexity="O(N) for N spikes, 160 at most",
    syntax="event",
    tips=_TIPS,
)
async def graph(context: Context, words: list[bytes]) -> Reply:
    """Draws the newest spikes of an event as bars, for people to read."""
    name = _text(words[2])
    event = context.server.latency.events.get(name)
    if event is None:
        raise NoLatencySamples(words[2])
    return Verbatim(advice.graph(name, event, int(time.time())).encode())


@command(
    "LATENCY|HELP",
    arity=2,
    flags="loading stale",
    group="server",
    since="2.8.13",
    complexity="O(1)",
)
async def help_(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of LATENCY."""
    return help_lines("LATENCY")


def _text(word: bytes) -> str:
    """Names of events and commands are the server's own, so any byte stands for itself."""
    return word.decode("latin-1")
