"""The program that surveys a dataset in a process of its own, and what its parent hears of it.

    python -m storage.maintenance.surveyor DIRECTORY DATASET MAXVERSIONS TTL NOW

DIRECTORY is a checkpoint that nobody writes to. Standard output is a sequence of frames: a letter,
two lengths, and as many bytes. The loop of the parent is free meanwhile, and so is its interpreter.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import astuple
from pathlib import Path

from storage.children import environment, program
from storage.errors import StorageError, StoreFailure
from storage.maintenance.survey import Span, Survey, Totals
from storage.model import DatasetSettings

_HEADER = struct.Struct(">cII")
_PROGRESS = struct.Struct(">Q")
_TOTALS = struct.Struct(">6Q")
_NICENESS = 10
"""Added to the parent's: clients come first."""


async def surveyed(
    directory: Path, dataset: bytes, settings: DatasetSettings, now: int
) -> AsyncGenerator[Span | int | Totals, None]:
    """Survey a checkpoint: its spans in order, counts of cells seen in between, totals at last.

    StoreFailure when the other process fails. It is ended when this is given up.
    """
    process = await asyncio.create_subprocess_exec(
        *program("storage.maintenance.surveyor"),
        str(directory),
        dataset.decode("ascii"),
        str(settings.max_versions),
        str(settings.ttl_seconds),
        str(now),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        finding: Span | int | Totals = 0
        while not isinstance(finding, Totals):
            try:
                finding = await _next(process.stdout)
            except asyncio.IncompleteReadError:
                said = (await process.stderr.read()).decode(errors="replace").strip()
                reason = said.splitlines()[-1] if said else "it ended early"
                raise StoreFailure(f"the survey failed: {reason}") from None
            yield finding
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _next(stream: asyncio.StreamReader) -> Span | int | Totals:
    kind, first, second = _HEADER.unpack(await stream.readexactly(_HEADER.size))
    body = await stream.readexactly(first + second)
    if kind == b"s":
        return Span(body[:first], body[first:])
    if kind == b"p":
        return int(_PROGRESS.unpack(body)[0])
    return Totals(*_TOTALS.unpack(body))


# The other process


def main(arguments: Sequence[str]) -> int:
    from storage.opening import (
        open_reader,  # of the whole store, which the parent's side is part of
    )

    directory, dataset, max_versions, ttl, now = arguments
    os.nice(_NICENESS)
    out = sys.stdout.buffer

    def write(kind: bytes, first: bytes, second: bytes = b"") -> None:
        out.write(_HEADER.pack(kind, len(first), len(second)) + first + second)

    def tell(span: Span) -> None:
        assert span.last is not None
        write(b"s", span.start, span.last)

    def progress(cells: int) -> None:
        write(b"p", _PROGRESS.pack(cells))
        out.flush()

    engine = open_reader(Path(directory))
    survey = Survey(DatasetSettings(int(max_versions), int(ttl)), int(now), tell, progress)
    found = engine.open_dataset(dataset.encode())
    try:
        totals = Totals() if found is None else survey.walk(found.family)
    except StorageError as error:
        print(error, file=sys.stderr)
        return 1
    write(b"t", _TOTALS.pack(*astuple(totals)))
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
