"""The backups at one place: which there are, making one more, removing those that are too many.

Invariants, whatever is interrupted:
1. A manifest is written when all objects that it names are there, with their sizes.
2. An object is removed when no manifest names it, and none is if a manifest cannot be read.
3. What is there with the right name and size is not sent again. Its name is its hash; a byte that
   changed since is found by a verification, and mended by a backup with `full`.

Within one place only one process at a time may write: local places see to that themselves.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from storage.backup.failures import BackupFailure, DamagedBackup, NoSuchBackup
from storage.backup.manifest import Manifest, StoredFile, decode, encode, is_name, new_name
from storage.backup.places import LocalPlace, Place, linked
from storage.directory import FORMAT_FILE, STORE_FOLDER

OBJECTS, MANIFESTS = "objects", "manifests"
_SUFFIX = ".json"
_READ_AT_ONCE = 1024 * 1024
_WRITTEN_BY_READERS = ("LOCK", "LOG", "rocksdict-config.json")
"""Files of a checkpoint that say nothing of what it holds, by the beginning of the name."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many bytes of it are done, and of how many."""


def no_progress(_action: str, _done: int, _total: int) -> None:
    """For those who do not want to know."""


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that was just made."""

    manifest: Manifest
    sent_bytes: int
    """Of the files that were not there yet."""
    sent_files: int


@dataclass(frozen=True, slots=True)
class Origin:
    """What a manifest says of where a backup is from."""

    colonnade: str
    source: str
    created_ms: int


class Repository:
    """The backups at a place."""

    def __init__(self, place: Place) -> None:
        self.place = place

    # Which there are

    def names(self) -> list[str]:
        """In order of time, the damaged ones too."""
        found = [name.removesuffix(_SUFFIX) for name in self.place.sizes(MANIFESTS)]
        return sorted(name for name in found if is_name(name))

    def manifest(self, name: str) -> Manifest:
        """NoSuchBackup or DamagedBackup."""
        if not is_name(name) or name not in self.names():
            raise NoSuchBackup(f"there is no backup {name} in {self.place.shown}")
        return decode(name, self.place.read(f"{MANIFESTS}/{name}{_SUFFIX}"))

    def newest(self) -> Manifest:
        """NoSuchBackup where there is none; DamagedBackup if that one cannot be read."""
        names = self.names()
        if not names:
            raise NoSuchBackup(f"there is no backup in {self.place.shown}")
        return self.manifest(names[-1])

    def chosen(self, name: str | None) -> Manifest:
        return self.newest() if name is None else self.manifest(name)

    # Making

    def add(
        self,
        directory: Path,
        origin: Origin,
        *,
        full: bool = False,
        progress: Progress = no_progress,
    ) -> Made:
        """Make a backup of a checkpoint, or of another data directory that nobody writes to.

        `full` sends also what is there already.
        """
        with self.place.alone():
            present = {} if full else self.place.sizes(OBJECTS)
            files = list(_hashed(directory, self._known(present), progress))
            name = new_name(origin.created_ms)
            store_format = int((directory / FORMAT_FILE).read_text(encoding="ascii"))
            manifest = Manifest(
                name,
                origin.created_ms,
                origin.colonnade,
                store_format,
                origin.source,
                tuple(files),
            )
            sources = {file.sha256: directory / file.path for file in files}
            return self._send(manifest, sources, present, progress)

    def copy(
        self,
        name: str | None,
        source: LocalPlace,
        *,
        full: bool = False,
        progress: Progress = no_progress,
    ) -> Made:
        """Send a backup from another place, which is local; under the name that it has there."""
        manifest = Repository(source).chosen(name)
        with self.place.alone():
            present = {} if full else self.place.sizes(OBJECTS)
            sources = {each: source.local_file(f"{OBJECTS}/{each}") for each in manifest.hashes}
            new = {each: path for each, path in sources.items() if path and each not in present}
            _check_sources(manifest, new, progress)
            return self._send(manifest, new, present, progress)

    def _known(self, present: Mapping[str, int]) -> dict[tuple[int, int], str]:
        """Hashes of objects that a file of a checkpoint may be the same file as, by its inode."""
        known = {}
        for name in present:
            path = self.place.local_file(f"{OBJECTS}/{name}")
            if path is not None:
                status = path.stat()
                known[status.st_dev, status.st_ino] = name
        return known

    def _send(
        self,
        manifest: Manifest,
        sources: Mapping[str, Path],
        present: Mapping[str, int],
        progress: Progress,
    ) -> Made:
        new = {each: size for each, size in manifest.hashes.items() if present.get(each) != size}
        total, sent = sum(new.values()), 0
        for each, size in new.items():
            progress("sending", sent, total)
            self.place.put(f"{OBJECTS}/{each}", sources[each])
            sent += size
        progress("sending", sent, total)
        self._check_complete(manifest)
        self.place.write(f"{MANIFESTS}/{manifest.name}{_SUFFIX}", encode(manifest))
        return Made(manifest, sent, len(new))

    def _check_complete(self, manifest: Manifest) -> None:
        """Somebody else may have removed what was there, and not every place tells of losses."""
        there = self.place.sizes(OBJECTS)
        for file in manifest.files:
            if there.get(file.sha256) != file.bytes:
                raise BackupFailure(
                    f"{self.place.shown}: {file.path} did not arrive, or is gone again: try again"
                )

    # Removing

    def prune(self, keep: int, *, spared: str = "") -> list[str]:
        """Remove all backups but the newest `keep`, and what no backup needs; their names.

        `spared` stays in any case: it is not the newest by name if the clock was set back.
        DamagedBackup, with no object removed, if a manifest that stays cannot be read.
        """
        with self.place.alone():
            names = self.names()
            leaving = [name for name in names[: max(0, len(names) - keep)] if name != spared]
            self.place.remove(MANIFESTS, [name + _SUFFIX for name in leaving])
            needed: set[str] = set()
            for name in self.names():  # those there now, should somebody else have made one
                needed.update(self.manifest(name).hashes)
            self.place.remove(OBJECTS, self.place.sizes(OBJECTS).keys() - needed)
            return leaving

    # Reading

    def fetch(self, file: StoredFile, target: Path, told: Callable[[int], None]) -> None:
        """Copy an object to a file, and compare it on the way. DamagedBackup if it is another."""
        digest = hashlib.sha256()
        with self._opened(file) as chunks, _written(target) as write:
            for chunk in chunks:
                digest.update(chunk)
                write(chunk)
                told(len(chunk))
        if digest.hexdigest() != file.sha256:
            raise DamagedBackup(f"{file.path} (object {file.sha256}) is not what was written")

    def fetch_to_read(self, file: StoredFile, target: Path, told: Callable[[int], None]) -> None:
        """As fetch(), but a table may become a link to the object: nobody must write to it."""
        source = self.place.local_file(f"{OBJECTS}/{file.sha256}")
        if source is not None and target.suffix == ".sst" and linked(source, target):
            self.compare(file, told)
        else:
            self.fetch(file, target, told)

    def compare(self, file: StoredFile, told: Callable[[int], None]) -> None:
        """As fetch(), without keeping what is read."""
        digest = hashlib.sha256()
        with self._opened(file) as chunks:
            for chunk in chunks:
                digest.update(chunk)
                told(len(chunk))
        if digest.hexdigest() != file.sha256:
            raise DamagedBackup(f"{file.path} (object {file.sha256}) is not what was written")

    @contextlib.contextmanager
    def _opened(self, file: StoredFile) -> Iterator[Iterator[bytes]]:
        with self.place.reader(f"{OBJECTS}/{file.sha256}") as stream:
            yield iter(lambda: stream.read(_READ_AT_ONCE), b"")


@contextlib.contextmanager
def _written(target: Path) -> Iterator[Callable[[bytes], object]]:
    try:
        with target.open("wb") as stream:
            yield stream.write
    except OSError as error:
        raise BackupFailure(f"{target}: {error.strerror or error}") from error


def checkpoint_files(directory: Path) -> list[str]:
    """What of a data directory goes into a backup, FORMAT first."""
    inside = sorted(
        f"{STORE_FOLDER}/{path.name}"
        for path in (directory / STORE_FOLDER).iterdir()
        if path.is_file() and not path.name.startswith(_WRITTEN_BY_READERS)
    )
    return [FORMAT_FILE, *inside]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _hashed(
    directory: Path, known: Mapping[tuple[int, int], str], progress: Progress
) -> Iterator[StoredFile]:
    paths = {name: directory / name for name in checkpoint_files(directory)}
    sizes = {name: path.stat().st_size for name, path in paths.items()}
    done, total = 0, sum(sizes.values())
    for name, path in paths.items():
        progress("reading", done, total)
        status = path.stat()
        digest = known.get((status.st_dev, status.st_ino)) or _hash_of(path)
        yield StoredFile(name, sizes[name], digest)
        done += sizes[name]
    progress("reading", done, total)


def _hash_of(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise BackupFailure(f"{path}: {error.strerror or error}") from error


def _check_sources(manifest: Manifest, sources: Mapping[str, Path], progress: Progress) -> None:
    """What is sent on must be what it is said to be."""
    sizes = manifest.hashes
    done, total = 0, sum(sizes[each] for each in sources)
    for each, path in sources.items():
        progress("reading", done, total)
        if _hash_of(path) != each:
            raise DamagedBackup(f"backup {manifest.name}: {path} is not what was written")
        done += sizes[each]
    progress("reading", done, total)
