"""Files that are deleted and yet open: they take room on the disk, and no listing shows them."""

from __future__ import annotations

import contextlib
from pathlib import Path


def deleted_files(folder: Path) -> list[str]:
    """Those of this process, in this folder or below. Reads /proc, which Linux alone has."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # it may have been closed meanwhile
            target = str(descriptor.readlink())
            if target.startswith(str(folder)) and target.endswith("(deleted)"):
                found.append(target)
    return found
