"""Where exported files go: a folder of this machine, or any place that fsspec knows by a URL.

A file is written under a temporary name. Only finish() gives the files their names, all of them
when all are whole; abandon() takes away what was written. Knows nothing of what is in the files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from storage.errors import CannotTransfer
from storage.files import local_path

_PARTIAL = ".partial"


class Destination(Protocol):
    """A folder to put files into."""

    def names(self) -> list[str]:
        """What is there already."""
        ...

    def open(self, name: str) -> Any:
        """A binary file to write, under a temporary name; its close() ends it."""
        ...

    def finish(self) -> None:
        """Give all that was written its name."""
        ...

    def abandon(self) -> None:
        """Take away all that was written."""
        ...


def destination(url: str) -> Destination:
    """CannotTransfer where nobody knows what the URL means."""
    folder = local_path(url)
    if folder is not None:
        return LocalDestination(folder)
    try:
        import fsspec
    except ImportError:
        raise CannotTransfer(
            f"{url}: install fsspec, and what it needs for {url.partition('://')[0]}"
        ) from None
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise CannotTransfer(f"{url}: {error}") from error
    return RemoteDestination(system, path)


class LocalDestination:
    """A folder, which is made if need be."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: list[Path] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotTransfer(f"{folder}: {error.strerror}") from error

    def names(self) -> list[str]:
        return sorted(path.name for path in self._folder.iterdir())

    def open(self, name: str) -> BinaryIO:
        path = self._folder / f".{name}{_PARTIAL}"
        self._written.append(path)
        return path.open("wb")

    def finish(self) -> None:
        for path in self._written:
            path.rename(path.with_name(_final(path.name)))
        self._written = []

    def abandon(self) -> None:
        for path in self._written:
            path.unlink(missing_ok=True)
        self._written = []


class RemoteDestination:
    """A place behind fsspec. A rename there may be a copy made by the service."""

    def __init__(self, system: Any, folder: str) -> None:
        self._system = system
        self._folder = folder.rstrip("/")
        self._written: list[str] = []
        system.makedirs(self._folder, exist_ok=True)

    def names(self) -> list[str]:
        found: Sequence[str] = self._system.ls(self._folder, detail=False)
        return sorted(path.rpartition("/")[2] for path in found)

    def open(self, name: str) -> Any:
        path = f"{self._folder}/.{name}{_PARTIAL}"
        self._written.append(path)
        return self._system.open(path, "wb")

    def finish(self) -> None:
        for path in self._written:
            folder, _, name = path.rpartition("/")
            self._system.mv(path, f"{folder}/{_final(name)}")
        self._written = []

    def abandon(self) -> None:
        for path in self._written:
            with contextlib.suppress(FileNotFoundError):
                self._system.rm(path)
        self._written = []


def _final(partial: str) -> str:
    return partial.removeprefix(".").removesuffix(_PARTIAL)
