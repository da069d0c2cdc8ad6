"""The check of a whole store: every key and value is read and decoded, and nothing is changed.

It finds
1. a catalog whose clock or entries cannot be decoded, or with entries for invalid names;
2. an entry without a family. A family without an entry is not damage: a drop or a creation that a
   crash cut short leaves it, and the next start drops it. It is told as a note;
3. a key that is not greater than the one before it, or is no cell's key; a value of unknown flags;
4. what the store itself meets: checksums that do not fit, files that are missing or of another
   size, a log that is damaged before its end.

Where a dataset cannot be read on, the check goes on at the next file of cells, so that one damaged
place seldom hides another: of several files that cannot even be opened it may name the first alone,
and damage in a log may stay behind that in a file. Knows an ordered store and the encodings, no
file system.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from storage.catalog import (
    CLOCK_KEY,
    ENTRY_END,
    ENTRY_PREFIX,
    check_name,
    decode_clock,
    decode_entry,
    family_name,
    name_of_entry,
)
from storage.embedded.ordered import Family
from storage.encoding import split_key, split_value
from storage.errors import InvalidDatasetName, StorageError

CELLS_BETWEEN_PROGRESS = 50_000
MOST_PROBLEMS = 100
"""Of one dataset that are told one by one: a wholly wrong one has as many as it has cells."""

Progress = Callable[[str, int], None]
"""Told the dataset being read and how many of its cells were."""

_FILE = re.compile(r"\d{6,}\.\w+")


class CheckedStore(Protocol):
    """What a check asks of a store, beside what storage.embedded.ordered asks."""

    @property
    def problems(self) -> list[str]: ...

    def families(self) -> dict[str, Family]: ...

    def default_family(self) -> Family: ...

    def file_problems(self) -> list[str]:
        """Files that are missing or of a wrong size, a line each that names the file."""
        ...

    def boundaries(self) -> list[bytes]:
        """Keys, in order, at which reading may succeed again where it failed before them."""
        ...


@dataclass(slots=True)
class DatasetFindings:
    """What was read of one dataset, and how much of it is wrong."""

    name: str
    cells: int = 0
    bytes: int = 0
    """Of the keys and values, before compression."""
    problems: int = 0


@dataclass(slots=True)
class Findings:
    datasets: list[DatasetFindings] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """A line each; none if the store is whole."""
    notes: list[str] = field(default_factory=list)
    """What is unusual and does no harm."""


def check_store(store: CheckedStore, progress: Progress) -> Findings:
    """Read all of it. Nothing that is wrong with the store is raised."""
    findings = Findings()
    families = store.families()
    boundaries = store.boundaries()
    for name in _catalogued(store.default_family(), findings):
        shown = name.decode("ascii", "backslashreplace")
        family = families.pop(family_name(name), None)
        if family is None:
            findings.problems.append(f"dataset {shown}: its data files are lost")
        else:
            findings.datasets.append(DatasetFindings(shown))
            _check_dataset(family, boundaries, findings, progress)
    findings.notes += [
        f"family {name} belongs to no dataset: the next start drops it" for name in families
    ]
    for problem in (*store.file_problems(), *store.problems):
        named = _files_in(problem)
        if not any(named & _files_in(known) for known in findings.problems):
            findings.problems.append(problem)
    return findings


def _files_in(problem: str) -> set[str]:
    return set(_FILE.findall(problem))


def _catalogued(catalog: Family, findings: Findings) -> Iterator[bytes]:
    """The names that have an entry, in order, the damaged ones too."""
    names: list[bytes] = []
    try:
        decode_clock(catalog.get(CLOCK_KEY))
    except StorageError as error:
        findings.problems.append(f"the catalog: {error}")
    try:
        for key, value in catalog.scan(ENTRY_END).walk(ENTRY_PREFIX):
            name = name_of_entry(key)
            names.append(name)
            try:
                check_name(name)
                decode_entry(name, value)
            except InvalidDatasetName:
                findings.problems.append(f"the catalog: an entry of no valid name: {name!r}")
                names.pop()
            except StorageError as error:
                findings.problems.append(f"the catalog: {error}")
    except StorageError as error:
        findings.problems.append(f"the catalog: {error}")
    return iter(names)


def _check_dataset(
    family: Family, boundaries: Sequence[bytes], findings: Findings, progress: Progress
) -> None:
    found = findings.datasets[-1]
    damaged: set[str] = set()

    def tell(problem: str) -> None:
        found.problems += 1
        if found.problems <= MOST_PROBLEMS:
            findings.problems.append(f"dataset {found.name}: {problem}")

    def tell_once(error: StorageError) -> None:
        files = _files_in(str(error))
        if not files or not damaged.issuperset(files):
            damaged.update(files)
            tell(str(error))

    scan, start = family.scan(None), b""
    while True:
        last = start
        try:
            for last in _checked_keys(scan.walk(start), found, tell, progress):  # noqa: B007
                pass
            break
        except StorageError as error:
            tell_once(error)
        later = next((key for key in boundaries if key > last), None)
        if later is None:
            break
        start = later
    # A walk asks all files at once and tells of one; a get asks the file of its key.
    for key in boundaries if damaged else ():
        try:
            family.get(key)
        except StorageError as error:
            tell_once(error)
    if found.problems > MOST_PROBLEMS:
        left_out = found.problems - MOST_PROBLEMS
        findings.problems.append(f"dataset {found.name}: and {left_out} more problems")


def _checked_keys(
    walk: Iterator[tuple[bytes, bytes]],
    found: DatasetFindings,
    tell: Callable[[str], None],
    progress: Progress,
) -> Iterator[bytes]:
    """The keys of a walk, each checked together with its value."""
    before: bytes | None = None
    for key, value in walk:
        found.cells += 1
        found.bytes += len(key) + len(value)
        if before is not None and key <= before:
            tell(f"a key out of order: {key[:64].hex()}")
        before = key
        try:
            split_key(key)
            split_value(value)
        except StorageError as error:
            tell(str(error))
        if found.cells % CELLS_BETWEEN_PROGRESS == 0:
            progress(found.name, found.cells)
        yield key
