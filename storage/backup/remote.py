"""A place behind a URL of fsspec's: the one importer of fsspec, which is an optional part.

Object stores make what is put visible once it is complete. Where a file grows in sight of all, as
over SFTP, a manifest that was cut short fails its checksum, and an object its size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit, urlunsplit

from storage.backup.failures import BackupFailure

_OBJECT_STORES = {"s3", "gs", "abfs"}
_EXTRAS = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs"}


class RemotePlace:
    """Answers storage.backup.places.Place."""

    def __init__(self, url: str) -> None:
        """BackupFailure when what the URL needs is not installed, or there is no such kind."""
        self._url = _without_password(url)
        try:
            import fsspec
        except ImportError as error:
            raise BackupFailure(
                f"{self._url} needs fsspec: pip install 'colonnade[backup]', or 'colonnade[s3]'"
            ) from error
        try:
            filesystem, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            package = _EXTRAS.get(urlsplit(url).scheme, "another package")
            raise BackupFailure(f"{self._url} needs {package}: {error}") from error
        except Exception as error:
            raise BackupFailure(f"{self._url}: {error}") from error
        self._files: Any = filesystem
        self._path = path.rstrip("/")

    @property
    def shown(self) -> str:
        return self._url

    def sizes(self, folder: str) -> dict[str, int]:
        with self._told(folder):
            self._files.invalidate_cache()
            try:
                entries = self._files.ls(f"{self._path}/{folder}", detail=True)
            except FileNotFoundError:
                return {}
            return {
                entry["name"].rpartition("/")[2]: entry["size"]
                for entry in entries
                if entry["type"] == "file"
            }

    def put(self, name: str, file: Path) -> None:
        with self._told(name):
            self._make_folder(name)
            self._files.put_file(str(file), f"{self._path}/{name}")

    def write(self, name: str, data: bytes) -> None:
        with self._told(name):
            self._make_folder(name)
            self._files.pipe_file(f"{self._path}/{name}", data)

    def _make_folder(self, name: str) -> None:
        """Where there are folders; an object store would make a bucket, or ask for it."""
        if not _OBJECT_STORES.intersection(_protocols(self._files)):
            self._files.makedirs(f"{self._path}/{name.rpartition('/')[0]}", exist_ok=True)

    def read(self, name: str) -> bytes:
        with self._told(name):
            return cast(bytes, self._files.cat_file(f"{self._path}/{name}"))

    @contextlib.contextmanager
    def reader(self, name: str) -> Iterator[BinaryIO]:
        with self._told(name), self._files.open(f"{self._path}/{name}", "rb") as file:
            yield file

    def local_file(self, name: str) -> Path | None:
        return None

    def remove(self, folder: str, files: Iterable[str]) -> None:
        paths = [f"{self._path}/{folder}/{file}" for file in files]
        with self._told(folder):
            if paths:
                self._files.rm(paths)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        yield  # there are no locks out there: one store, one URL

    @contextlib.contextmanager
    def _told(self, name: str) -> Iterator[None]:
        try:
            yield
        except BackupFailure:
            raise
        except FileNotFoundError as error:
            raise BackupFailure(f"{self._url}/{name}: there is no such file") from error
        except Exception as error:  # each kind of place has exceptions of its own
            text = " ".join(str(error).split()) or type(error).__name__
            raise BackupFailure(f"{self._url}/{name}: {text}") from error


def _protocols(files: Any) -> tuple[str, ...]:
    protocol = files.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
