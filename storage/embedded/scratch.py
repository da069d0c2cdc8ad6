"""Folders in the data directory for background work, and for tools of the same machine.

Each has a name of its own, made up here, so that no caller ever names a path. Opening a store takes
away what a crash has left of them. Knows nothing of what is in them.
"""

from __future__ import annotations

import re
import secrets
import shutil
from pathlib import Path

from storage.errors import NoSuchFolder, StoreFailure

_NAME = re.compile(rb"(?:export|import)-[0-9a-f]{16}")


class Scratch:
    """The place for them; without one every call is a StoreFailure."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder.absolute()

    @property
    def exists(self) -> bool:
        return self._folder is not None

    def free(self, kind: str) -> Path:
        """A path that nothing has yet, for a `survey`, an `export` or an `import`."""
        if self._folder is None:
            raise StoreFailure("data in memory has no files")
        return self._folder / f"{kind}-{secrets.token_hex(8)}"

    def make(self, kind: str) -> Path:
        """A new, empty folder."""
        path = self.free(kind)
        try:
            path.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise StoreFailure(f"cannot make {path.name}: {error.strerror}") from error
        return path

    def find(self, name: bytes) -> Path:
        """A tool's folder; NoSuchFolder for all that was not named here for one."""
        if self._folder is None or _NAME.fullmatch(name) is None:
            raise NoSuchFolder(name)
        path = self._folder / name.decode("ascii")
        if path.is_symlink() or not path.is_dir():
            raise NoSuchFolder(name)
        return path

    def remove(self, name: bytes) -> None:
        shutil.rmtree(self.find(name), ignore_errors=True)
