"""Looking into data that nobody serves: a backup, or a data directory, neither of which is changed.

Knows no server. What it gives is an engine that reads, and where its data is from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from storage.backup.failures import NoSuchBackup
from storage.backup.places import Place, place_at
from storage.backup.repository import Progress, Repository, no_progress
from storage.backup.restoring import laid_out
from storage.directory import FORMAT_FILE, STORE_FOLDER
from storage.embedded.engine import EmbeddedEngine
from storage.errors import CannotOpen
from storage.opening import reading

Opener = Callable[[Path], contextlib.AbstractContextManager[EmbeddedEngine]]
"""Opens a data directory for reading, as storage.opening.reading does."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked into."""

    engine: EmbeddedEngine
    source: str
    """For people, without passwords."""


@contextlib.contextmanager
def look_into(
    url: str, backup: str | None, progress: Progress = no_progress, opener: Opener = reading
) -> Iterator[Look]:
    """The data directory that a path names, or a backup at a path or URL, None: the newest.

    A directory in which a server has run is kept from servers meanwhile. A backup is laid out in
    the system's place for temporary files. CannotOpen, or a BackupFailure, when it cannot be read.
    """
    place = place_at(url)
    directory = _data_directory(place)
    if directory is None:
        repository = _repository(place)
        with (
            laid_out(repository, backup, progress) as (manifest, folder),
            opener(folder) as engine,
        ):
            yield Look(engine, f"backup {manifest.name} of {place.shown}")
    elif backup is not None:
        raise CannotOpen(f"{directory} is a data directory, and not a place of backups")
    else:
        with opener(directory) as engine:
            yield Look(engine, str(directory))


def _data_directory(place: Place) -> Path | None:
    file = place.local_file(FORMAT_FILE)
    if file is not None and (file.exists() or file.with_name(STORE_FOLDER).exists()):
        return file.parent
    return None


def _repository(place: Place) -> Repository:
    repository = Repository(place)
    if place.local_file(FORMAT_FILE) is not None and not repository.names():
        raise NoSuchBackup(f"there is neither a backup nor a store in {place.shown}")
    return repository
