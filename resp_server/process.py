"""What the system tells of this process: memory and processor time, and giving memory back.

Where a system does not tell something, it is 0 or what comes nearest; nothing here raises. Knows
nothing of the server.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/statm")
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Of the container, as both versions of control groups tell; seen from inside it is the root."""


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """In bytes."""

    resident: int
    own: int
    """Of that, what is not a file's: what the process took for itself."""


def memory() -> ProcessMemory:
    try:
        _, resident, shared, *_ = map(int, _STATUS.read_text().split())
    except (OSError, ValueError):
        return ProcessMemory(peak_resident_bytes(), peak_resident_bytes())
    size = resource.getpagesize()
    return ProcessMemory(resident * size, (resident - shared) * size)


def peak_resident_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def machine_memory_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def allowed_memory_bytes() -> int:
    """What the process may use: the machine's memory, or its container's if that is less."""
    machine = machine_memory_bytes()
    limits = [limit for file in _LIMITS if (limit := _number_in(file)) is not None]
    return min([machine, *limits] if machine else limits, default=0)


def _number_in(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # ValueError: "max", no limit
        return None


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """In seconds."""

    system: float
    user: float


def processor_time() -> ProcessorTime:
    """Of all threads of the process."""
    return _processor_time(resource.RUSAGE_SELF)


def processor_time_of_children() -> ProcessorTime:
    return _processor_time(resource.RUSAGE_CHILDREN)


def processor_time_of_thread() -> ProcessorTime:
    """Of the calling thread; of the process where the system does not tell threads apart."""
    return _processor_time(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF))


def _processor_time(whose: int) -> ProcessorTime:
    used = resource.getrusage(whose)
    return ProcessorTime(used.ru_stime, used.ru_utime)


def release_memory() -> None:
    """Collect garbage, and have the C library give free pages back, where it is glibc."""
    gc.collect()
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)
