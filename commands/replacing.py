"""Replace a file whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from storage.files import bring_to_disk


def replace_file(file: Path, content: bytes) -> None:
    """Write it beside the file, bring that to the disk, and put it in the file's place. OSError.

    The file keeps its permissions, and its owner where that is allowed; a new one is its owner's
    alone. Behind a symbolic link, the file it leads to is replaced.
    """
    target = file.resolve()
    descriptor, name = tempfile.mkstemp(prefix=f"{target.name}.tmp-", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(content)
            written.flush()
            if target.exists():
                _take_after(written.fileno(), target)
            os.fsync(written.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    bring_to_disk(target.parent)  # so that the new name outlives a power cut


def _take_after(descriptor: int, file: Path) -> None:
    state = file.stat()
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, state.st_uid, state.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(state.st_mode))
