"""What this machine is, for those who read the figures elsewhere."""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path

GIBIBYTE = 2**30


def processors() -> int:
    """Those that this process may use: servers and load share them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def described() -> str:
    """Processors, memory, system, and how busy it was when this was asked for."""
    model, files = _model(), _file_system(Path(tempfile.gettempdir()))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIBIBYTE
    load = os.getloadavg()[0]
    parts = [
        f"{processors()} processors{f' ({model})' if model else ''}",
        f"{memory:.0f} GB",
        f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        *([f"data on {files}"] if files else []),
        f"load {load:.1f} at the start",
    ]
    return ", ".join(parts)


def _model() -> str:
    """Of the first processor; empty where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    models = [line.partition(":")[2] for line in lines if line.startswith("model name")]
    return " ".join(models[0].split()) if models else ""


def _file_system(folder: Path) -> str:
    """The kind of the one that this is on; empty where the system does not tell."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    here = folder.resolve()
    above = [(place, kind) for _, place, kind, *_ in mounts if here.is_relative_to(place)]
    return max(above, key=lambda mount: len(mount[0]))[1] if above else ""
