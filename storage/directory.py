"""The data directory: what lies in it, who holds it, what is checked before RocksDB is let near.

    <dir>/FORMAT    a text file, the format's number      <dir>/store/    one RocksDB database
    <dir>/HOLDER    locked by the process that serves the directory, and holds its number

Every opening of a RocksDB database writes to its directory, so a store of a newer format is
recognised by FORMAT alone and stays as it is. Knows nothing of what the store holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path

from storage.encoding import FORMAT_VERSION
from storage.errors import CannotOpen
from storage.files import bring_to_disk

FORMAT_FILE = "FORMAT"
HOLDER_FILE = "HOLDER"
STORE_FOLDER = "store"
MAX_FORMAT_DIGITS = 18


def prepare(directory: Path) -> Path:
    """Create or check the directory; return where the database goes. CannotOpen if unusable."""
    with _reported(directory):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_owner(directory)
        _check_links(directory)
        if not _check_format(directory):
            _write_format(directory / FORMAT_FILE)
    return directory / STORE_FOLDER


def make(directory: Path) -> Path:
    """Make a new directory for a copy of a store; return where the database goes. OSError."""
    directory.mkdir(mode=0o700, parents=True)
    try:
        _write_format(directory / FORMAT_FILE)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return directory / STORE_FOLDER


@contextlib.contextmanager
def _reported(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotOpen(f"cannot use the data directory {directory}: {error.strerror}") from error


def _check_owner(directory: Path) -> None:
    """Files that this process made there would be none that the owner's processes may use."""
    owner = directory.stat().st_uid
    if owner != os.geteuid():
        raise CannotOpen(
            f"the data directory {directory} belongs to {_user(owner)}, and this process runs as"
            f" {_user(os.geteuid())}"
        )


def _user(number: int) -> str:
    try:
        return f"user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"user {number}"


def _check_links(directory: Path) -> None:
    """No file may be somewhere else: nothing outside of the directory is to be written or read."""
    top = directory.resolve()
    for folder in (directory, directory / STORE_FOLDER):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_symlink() and not path.resolve().is_relative_to(top):
                raise CannotOpen(
                    f"{path} is a symbolic link that leads out of the data directory: put what it"
                    " leads to in its place"
                )


def _check_format(directory: Path) -> bool:
    """Whether there is a store, or the beginning of one, of this format."""
    file = directory / FORMAT_FILE
    if not file.exists():
        if (directory / STORE_FOLDER).exists():
            raise CannotOpen(f"{directory} holds a store but no {FORMAT_FILE} file: restore it")
        return False
    text = file.read_text(encoding="ascii", errors="replace").strip()
    if not text.isdecimal() or len(text) > MAX_FORMAT_DIGITS:
        raise CannotOpen(f"{file} does not hold a number: this is no Colonnade data directory")
    if int(text) != FORMAT_VERSION:
        raise CannotOpen(
            f"the store in {directory} has format {text}, this release reads format"
            f" {FORMAT_VERSION}: use the release that wrote it, or a later one"
        )
    return True


def _write_format(file: Path) -> None:
    """Write it whole or not at all, and to the disk: everything else relies on it."""
    draft = file.with_suffix(".draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="ascii") as handle:  # noqa: PTH123 - a descriptor
        handle.write(f"{FORMAT_VERSION}\n")
        handle.flush()
        os.fsync(handle.fileno())
    draft.rename(file)
    bring_to_disk(file.parent)


# Who holds it


class Holder:
    """The right to use a directory. It ends with the process, whatever happens to that."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others have the directory. It may be called again."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):  # a full disk, or one that is gone
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


def hold(directory: Path) -> Holder:
    """Hold a prepared directory until released. CannotOpen tells who holds it already.

    The lock is not passed on to programs that this process starts, but would be to a mere fork.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    with _reported(directory):
        descriptor = os.open(directory / HOLDER_FILE, flags, 0o600)
    try:
        with _reported(directory):
            _lock(directory, descriptor, fcntl.LOCK_EX)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return Holder(descriptor)


@contextlib.contextmanager
def hold_for_reading(directory: Path) -> Iterator[None]:
    """Keep servers out of a directory with a store, and change nothing in it.

    CannotOpen where there is none that this release reads, or somebody holds it.
    """
    with _reported(directory):
        _check_links(directory)
        if not _check_format(directory) or not (directory / STORE_FOLDER).is_dir():
            raise CannotOpen(f"there is no store in {directory}")
        holder = directory / HOLDER_FILE
        # A store that was never opened where this file is made has none, and nobody to hold it.
        descriptor = os.open(holder, os.O_RDONLY) if holder.exists() else -1
    try:
        if descriptor >= 0:
            with _reported(directory):
                _lock(directory, descriptor, fcntl.LOCK_SH)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _lock(directory: Path, descriptor: int, kind: int) -> None:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        number = os.pread(descriptor, 20, 0).strip()
        if number.isdigit():
            who = f"another running server, process {int(number)}"
        else:  # who reads writes nothing, and a server that has just begun has yet to
            who = "another process: a check, or a server that only reads, begins or ends"
        raise CannotOpen(f"{directory} is in use by {who}") from None
