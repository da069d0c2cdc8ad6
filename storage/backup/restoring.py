"""Reading a backup: into a new data directory, for a while, or to say whether it is whole.

A restored directory gets its FORMAT last. Until then no server opens it, because there is a store
without one; and the file RESTORING says that it is ours, so that the same can be begun again.
Nothing that was there before is ever touched.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from storage.backup.failures import BackupFailure, DamagedBackup
from storage.backup.manifest import Manifest, StoredFile
from storage.backup.repository import OBJECTS, Progress, Repository, no_progress
from storage.directory import FORMAT_FILE, STORE_FOLDER
from storage.encoding import FORMAT_VERSION
from storage.errors import CannotOpen
from storage.files import bring_to_disk
from storage.maintenance.checking import Findings
from storage.opening import check_files

MARK = "RESTORING"
"""Holds the name of the backup while it is being restored."""
_LATE_FORMAT = "FORMAT.draft"
"""FORMAT until all else is there; a draft means nothing to a server."""


@dataclass(slots=True)
class Verdict:
    """What a verification found."""

    manifest: Manifest
    problems: list[str] = field(default_factory=list)
    """A line each; none if the backup is whole."""
    findings: Findings | None = None
    """What the store in it holds, if it could be opened."""


# Restoring


def restore(
    repository: Repository,
    name: str | None,
    directory: Path,
    progress: Progress = no_progress,
) -> Manifest:
    """Make a data directory of a backup, None: the newest. It must be empty, or not there yet.

    Every byte is compared with the manifest. BackupFailure or DamagedBackup when it cannot be
    done: the directory then holds nothing that opens, and the same call may be made again.
    """
    manifest = repository.chosen(name)
    _check_format(manifest)
    try:
        _claim(directory, manifest)
        _fetch_all(repository, manifest, directory, progress)
        _finish(directory)
    except OSError as error:
        raise BackupFailure(f"{directory}: {error.strerror or error}") from error
    return manifest


def _check_format(manifest: Manifest) -> None:
    if manifest.format != FORMAT_VERSION:
        raise BackupFailure(
            f"backup {manifest.name} has format {manifest.format}, this release reads format"
            f" {FORMAT_VERSION}: use release {manifest.colonnade}, or a later one"
        )


def _claim(directory: Path, manifest: Manifest) -> None:
    """Take a directory that is empty, or that an interrupted restore of this backup left."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    store, mark = directory / STORE_FOLDER, directory / MARK
    entries = {path.name for path in directory.iterdir()}
    begun = mark.is_file() and FORMAT_FILE not in entries and mark.read_text() == manifest.name
    only_folder = entries == {STORE_FOLDER} and store.is_dir() and not any(store.iterdir())
    if entries and not begun and not only_folder:
        if MARK in entries and FORMAT_FILE not in entries:
            raise BackupFailure(
                f"{directory} holds the beginning of the restore of backup {mark.read_text()}:"
                " go on with that one, or remove the directory"
            )
        raise BackupFailure(f"{directory} is not empty: a backup goes to an empty directory only")
    # The folder first: a server would take a directory without one for a new one.
    store.mkdir(mode=0o700, exist_ok=True)
    mark.write_text(manifest.name)


def _fetch_all(
    repository: Repository, manifest: Manifest, directory: Path, progress: Progress
) -> None:
    for path in (directory / STORE_FOLDER).iterdir():
        path.unlink()
    tell = _counted("restoring", manifest.files, progress)
    for file in manifest.files:
        target = directory / (file.path if file.path != FORMAT_FILE else _LATE_FORMAT)
        repository.fetch(file, target, tell)
        bring_to_disk(target)
    bring_to_disk(directory / STORE_FOLDER)


def _finish(directory: Path) -> None:
    (directory / _LATE_FORMAT).rename(directory / FORMAT_FILE)
    (directory / MARK).unlink()
    bring_to_disk(directory)


# Looking into one


@contextlib.contextmanager
def laid_out(
    repository: Repository,
    name: str | None,
    progress: Progress = no_progress,
    *,
    within: Path | None = None,
) -> Iterator[tuple[Manifest, Path]]:
    """A backup, None: the newest, as a data directory that is only read, and removed in the end.

    It lies in a folder of its own in `within`, or in the system's place for temporary files. Its
    tables are links where the objects are on the same file system. Every byte is compared.
    """
    manifest = repository.chosen(name)
    _check_format(manifest)
    with tempfile.TemporaryDirectory(prefix="colonnade-", dir=within) as folder:
        directory = Path(folder)
        (directory / STORE_FOLDER).mkdir()
        tell = _counted("fetching", manifest.files, progress)
        for file in manifest.files:
            repository.fetch_to_read(file, directory / file.path, tell)
        yield manifest, directory


# Verifying


def verify(
    repository: Repository,
    name: str | None,
    progress: Progress = no_progress,
) -> Verdict:
    """Compare every file with the manifest, then open the store and read all of it.

    What is not on this machine is fetched into the system's place for temporary files. Damage is
    told in the verdict; DamagedBackup only where not even the manifest can be read.
    """
    manifest = repository.chosen(name)
    verdict = Verdict(manifest)
    with tempfile.TemporaryDirectory(prefix="colonnade-") as fetched:
        found = _compared(repository, verdict, Path(fetched), progress)
        if not verdict.problems:
            _check_store(verdict, found, progress)
    return verdict


def _compared(
    repository: Repository, verdict: Verdict, fetched: Path, progress: Progress
) -> dict[str, Path]:
    """The files of the store by name, each compared; a problem for each that is not what it was."""
    manifest, found = verdict.manifest, {}
    there = repository.place.sizes(OBJECTS)
    tell = _counted("comparing", manifest.files, progress)
    for file in manifest.files:
        try:
            _check_size(file, there)
            path = repository.place.local_file(f"{OBJECTS}/{file.sha256}")
            if path is None:
                path = fetched / file.sha256
                repository.fetch(file, path, tell)
            else:
                repository.compare(file, tell)
        except BackupFailure as problem:
            verdict.problems.append(str(problem))
        else:
            found[file.path] = path
    return found


def _check_size(file: StoredFile, there: dict[str, int]) -> None:
    if file.sha256 not in there:
        raise DamagedBackup(f"{file.path} (object {file.sha256}) is missing")
    if there[file.sha256] != file.bytes:
        raise DamagedBackup(
            f"{file.path} (object {file.sha256}) has {there[file.sha256]} bytes instead of"
            f" {file.bytes}"
        )


def _check_store(verdict: Verdict, found: dict[str, Path], progress: Progress) -> None:
    try:
        _check_format(verdict.manifest)
        files = {Path(path).name: place for path, place in found.items() if path != FORMAT_FILE}
        verdict.findings = check_files(
            files, lambda dataset, cells: progress(f"checking {dataset}", cells, 0)
        )
    except (BackupFailure, CannotOpen) as error:
        verdict.problems.append(str(error))
    else:
        verdict.problems += verdict.findings.problems


# Both


def _counted(action: str, files: Sequence[StoredFile], progress: Progress) -> Callable[[int], None]:
    """Turns "so many more bytes" into progress."""
    total, done = sum(file.bytes for file in files), 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        progress(action, done, total)

    progress(action, 0, total)
    return tell
