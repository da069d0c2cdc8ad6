"""What LATENCY DOCTOR, LATENCY GRAPH and MEMORY DOCTOR say: texts for people, from plain figures.

Each is a pure function. The words are our own; no program should read them.
"""

from __future__ import annotations

from collections.abc import Mapping

from commands.observing.latency import COMMAND, COMMIT, FAST_COMMAND, SYNC, Event
from commands.observing.memory import MemoryFigures

MEGABYTE = 1024 * 1024
LITTLE_BYTES = 5 * MEGABYTE
"""Below this there is nothing to say about the memory of datasets."""
MUCH_FOR_A_CLIENT = 200 * 1024
BARS = 40
"""Samples that a graph shows, and the length of its longest bar."""

_SLOW_LOG_HINT = "SLOWLOG GET shows the commands that took long, and their arguments."
_PAGES_HINT = (
    "Ask for less at a time: pages (COUNT, LIMIT), fewer columns, fewer keys in one call; every"
    " client waits while one command runs."
)
_DISK_HINT = (
    "The disk is slow to take writes. See what else uses it, and whether it is the right one for"
    " `dir`."
)
_POLICY_HINT = "`appendfsync everysec` commits without waiting for the disk; `always` waits."
_HINTS = {
    COMMAND: (_SLOW_LOG_HINT, _PAGES_HINT),
    FAST_COMMAND: (
        "A command that is always quick was slow: the machine lacks processor time or memory, or"
        " swaps. Look at its load before anything else.",
    ),
    COMMIT: (_DISK_HINT, _POLICY_HINT),
    SYNC: (_DISK_HINT,),
}


# Latency


def latency_report(
    events: Mapping[str, Event], *, threshold_ms: int, slow_log_limit_us: int
) -> str:
    """What the monitor saw, event by event, and what may be done about it."""
    if threshold_ms <= 0:
        return (
            "The latency monitor is off, so there is nothing to report. To switch it on:"
            " CONFIG SET latency-monitor-threshold <milliseconds>. A good threshold is the"
            " longest wait that your application does not mind.\n"
        )
    if not events:
        return f"No event has taken {threshold_ms} ms or longer. All is well.\n"
    lines = [f"Events that took {threshold_ms} ms or longer:", ""]
    lines += [f"- {_summary(name, event)}" for name, event in events.items()]
    lines += ["", "What may help:", ""]
    lines += [f"- {hint}" for hint in _hints(events, threshold_ms, slow_log_limit_us)]
    return "".join(f"{line}\n" for line in lines)


def _summary(name: str, event: Event) -> str:
    times = [moment for moment, _ in event.samples]
    spikes = [milliseconds for _, milliseconds in event.samples]
    average = sum(spikes) / len(spikes)
    deviation = sum(abs(spike - average) for spike in spikes) / len(spikes)
    every = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0
    often = f", one every {every:.0f} s" if every else ""
    return (
        f"{name}: {_seconds_with_spikes(event)}{often}; {average:.0f} ms on average, give or take"
        f" {deviation:.0f} ms; the worst ever took {event.worst_ms} ms."
    )


def _hints(events: Mapping[str, Event], threshold_ms: int, slow_log_limit_us: int) -> list[str]:
    hints = [hint for name in events for hint in _HINTS.get(name, ())]
    slow_log_sees = 0 <= slow_log_limit_us <= 1000 * threshold_ms
    if _SLOW_LOG_HINT in hints and not slow_log_sees:
        hints.append(
            "The slow log does not record all that was slow here:"
            f" CONFIG SET slowlog-log-slower-than {1000 * threshold_ms}."
        )
    if not hints:
        hints.append("Look at what the machine did when these events happened (LATENCY HISTORY).")
    return list(dict.fromkeys(hints))


def graph(name: str, event: Event, now_s: int) -> str:
    """The newest spikes as bars, the newest last; `now_s` is the time in Unix seconds."""
    samples = list(event.samples)[-BARS:]
    highest = max(milliseconds for _, milliseconds in event.samples)
    lines = [
        f"{name}: {_seconds_with_spikes(event)}, the worst {highest} ms, the worst ever"
        f" {event.worst_ms} ms"
    ]
    for moment, milliseconds in samples:
        bar = "#" * max(1, round(BARS * milliseconds / max(1, highest)))
        lines.append(f"{_ago(now_s - moment):>8} |{bar} {milliseconds}")
    return "".join(f"{line}\n" for line in lines)


def _seconds_with_spikes(event: Event) -> str:
    count = len(event.samples)
    return f"{count} second{'s' if count > 1 else ''} with a spike"


def _ago(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"-{seconds // size} {unit}"
    return f"-{max(0, seconds)} s"


# Memory


def memory_report(figures: MemoryFigures, clients: int) -> str:
    """What is odd about the use of memory, and what may be done about it."""
    if figures.datasets + figures.files < LITTLE_BYTES:
        return "The datasets hold next to nothing yet: there is nothing to say about memory.\n"
    found = _memory_findings(figures, clients)
    if not found:
        return "Nothing is odd about the use of memory.\n"
    return "".join(f"- {finding}\n" for finding in found)


def _memory_findings(figures: MemoryFigures, clients: int) -> list[str]:
    found = []
    if figures.peak > 1.5 * figures.used:
        found.append(
            f"Peak: {_megabytes(figures.peak)} were in use once, now {_megabytes(figures.used)}"
            " are. That is no harm; the machine has to bear such a peak again."
        )
    if figures.resident > 1.4 * figures.used and figures.resident - figures.used > 10 * MEGABYTE:
        found.append(
            f"Resident: the process has {_megabytes(figures.resident)} of memory and uses"
            f" {_megabytes(figures.used)}. MEMORY PURGE gives back what can be given back."
        )
    if clients and figures.clients > clients * MUCH_FOR_A_CLIENT:
        found.append(
            f"Clients: {_megabytes(figures.clients)} wait for {clients} clients. Some send faster"
            " than they are served, or do not read their replies: see CLIENT LIST (qbuf, omem)."
        )
    if figures.system and figures.resident > 0.8 * figures.system:
        found.append(
            f"Machine: the process has {_megabytes(figures.resident)} of the machine's"
            f" {_megabytes(figures.system)}. Give the store less (rocksdb-block-cache-size,"
            " rocksdb-write-buffer-size), or the machine more."
        )
    return found


def allocation_report(figures: MemoryFigures) -> str:
    """The figures one a line, for MEMORY MALLOC-STATS: there is no allocator to ask for more."""
    lines = [
        ("used by the process", figures.used),
        ("at most so far", figures.peak),
        ("when it was ready", figures.startup),
        ("resident", figures.resident),
        ("waiting for clients", figures.clients),
        ("writes not in files yet", figures.memtables),
        ("blocks of files kept", figures.cache),
    ]
    return "".join(f"{text:<24}{amount:>16}\n" for text, amount in lines)


def _megabytes(amount: int) -> str:
    return f"{amount / MEGABYTE:.1f} MB"
