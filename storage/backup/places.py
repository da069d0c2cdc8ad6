"""Where backups lie: files by name in a local directory, or behind a URL of fsspec's.

A name is `folder/file`. What was put is there whole or not at all, and on the disk, when put()
returns; that holds for local directories and object stores. Knows nothing of what the files mean.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from storage.backup.failures import BackupFailure
from storage.files import bring_to_disk, local_path

DRAFT = ".draft-"
"""How the name of what is not finished begins, beside the folders."""
LOCK_FILE = "LOCK"


class Place(Protocol):
    """Files by name. Every call may raise BackupFailure."""

    @property
    def shown(self) -> str:
        """Its address for people, without passwords."""
        ...

    def sizes(self, folder: str) -> dict[str, int]:
        """What is in a folder: file -> bytes. Empty if there is no such folder."""
        ...

    def put(self, name: str, file: Path) -> None:
        """Send a file; what had this name is replaced."""
        ...

    def write(self, name: str, data: bytes) -> None: ...

    def read(self, name: str) -> bytes: ...

    def reader(self, name: str) -> contextlib.AbstractContextManager[BinaryIO]: ...

    def local_file(self, name: str) -> Path | None:
        """The file itself, where it is on this machine."""
        ...

    def remove(self, folder: str, files: Iterable[str]) -> None: ...

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Keep other processes from writing or removing meanwhile, where that can be done."""
        ...


def place_at(url: str) -> Place:
    """The place of a URL or path: a path and file:// need nothing installed, all others fsspec."""
    directory = local_path(url)
    if directory is not None:
        return LocalPlace(directory)
    from storage.backup.remote import RemotePlace

    return RemotePlace(url)


class LocalPlace:
    """A directory of this machine."""

    def __init__(self, directory: Path, *, sharing: bool = False) -> None:
        """`sharing`: a table file that is put here is linked where that can be. It takes no room
        twice then, and whoever changes it here changes it there."""
        self._directory = directory.absolute()
        self._sharing = sharing

    @property
    def shown(self) -> str:
        return str(self._directory)

    def sizes(self, folder: str) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._told(folder), contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self._directory / folder):
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file() and not entry.name.startswith("."):
                        found[entry.name] = entry.stat().st_size
        return found

    def put(self, name: str, file: Path) -> None:
        """Copy it. Only a table file may be linked: no store ever writes to one again."""
        with self._told(name), self._draft(name) as draft:
            if self._sharing and file.suffix == ".sst" and linked(file, draft):
                return
            shutil.copyfile(file, draft)
            bring_to_disk(draft)

    def write(self, name: str, data: bytes) -> None:
        with self._told(name), self._draft(name) as draft:
            draft.write_bytes(data)
            bring_to_disk(draft)

    def read(self, name: str) -> bytes:
        with self._told(name):
            return (self._directory / name).read_bytes()

    @contextlib.contextmanager
    def reader(self, name: str) -> Iterator[BinaryIO]:
        with self._told(name):
            file = (self._directory / name).open("rb")
        with file:
            yield file

    def local_file(self, name: str) -> Path | None:
        return self._directory / name

    def remove(self, folder: str, files: Iterable[str]) -> None:
        with self._told(folder):
            for file in files:
                (self._directory / folder / file).unlink(missing_ok=True)
            if (self._directory / folder).is_dir():
                bring_to_disk(self._directory / folder)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with self._told(LOCK_FILE):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BackupFailure(f"another process makes a backup in {self.shown}") from None
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _draft(self, name: str) -> Iterator[Path]:
        """Where to write what shall have this name once it is complete and on the disk."""
        target = self._directory / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = target.with_name(f"{DRAFT}{target.name}")
        draft.unlink(missing_ok=True)
        yield draft
        draft.replace(target)
        draft.unlink(missing_ok=True)  # it stays if both were links to one file already
        bring_to_disk(target.parent)

    @contextlib.contextmanager
    def _told(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BackupFailure(f"{self._directory / name}: {error.strerror or error}") from error


def linked(file: Path, target: Path) -> bool:
    """Whether it could be linked: not on another file system, nor where there are no links."""
    try:
        os.link(file, target)
    except OSError:
        return False
    return True
