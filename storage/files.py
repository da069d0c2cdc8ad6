"""Files of this machine: bringing them to the disk, and the paths that URLs mean.

Knows nothing of what is in them.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit


def bring_to_disk(path: Path) -> None:
    """What a file holds, or the names in a folder: a power cut takes it no more. OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def local_path(url: str) -> Path | None:
    """The path that a path or a file:// URL means; None for a URL of any other kind."""
    if "://" not in url:
        return Path(url)
    parts = urlsplit(url)
    return Path(unquote(parts.netloc + parts.path)) if parts.scheme == "file" else None
