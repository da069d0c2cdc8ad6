"""The search: a target is run on ever new inputs, and what shows a defect is saved as a file.

With atheris, which sees what of the product an input reaches and keeps those that reach more; where
it cannot be had, a plain loop changes the kept inputs at random. Either way a defect does not end
the search: each is told once, by the exception and the line it came from.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.target import CORPUS, Target, kept_inputs, target_of

WATCHED = ["resp_server", "commands", "storage"]
TIMEOUT_SECONDS = 30
MOST_MEMORY_MB = 2048
_STEPS_BETWEEN_LOOKS = 100
_NEW_INPUT_SHARE = 0.5
"""How many of the changes are the target's own, if it has any."""


@dataclass
class Search:
    """One target's, for so long."""

    name: str
    seconds: float
    seed: int
    saved_to: Path
    """Where inputs go that show a defect."""
    corpus: Path | None = None
    """Where new inputs are kept that reach more; None: nowhere, after the search."""
    executions: int = 0
    started: float = field(default_factory=time.monotonic)
    defects: dict[str, Path] = field(default_factory=dict)

    def tried(self, target: Target, data: bytes) -> None:
        self.executions += 1
        try:
            target.run(data)
        except Exception as error:
            self._note(error, data)

    def _note(self, error: Exception, data: bytes) -> None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        signature = f"{type(error).__name__} {last.filename}:{last.lineno}"
        if signature in self.defects:
            return
        digest = hashlib.sha1(data, usedforsecurity=False).hexdigest()[:12]
        file = self.saved_to / f"{self.name}-{digest}"
        file.write_bytes(data)
        self.defects[signature] = file
        print("".join(traceback.format_exception(error)), flush=True)
        print(f"DEFECT: {signature}", flush=True)
        print(f"again: python -m tests.fuzz {self.name} --file {file}", flush=True)

    def summary(self) -> str:
        seconds = time.monotonic() - self.started
        return (
            f"{self.name}: {self.executions} executions in {seconds:.0f} s, "
            f"{self.executions / max(seconds, 0.001):.0f} a second, {len(self.defects)} defects, "
            f"--seed {self.seed}"
        )


def has_atheris() -> bool:
    return importlib.util.find_spec("atheris") is not None


def search_with_atheris(search: Search, ended: Callable[[], None]) -> None:
    """Does not return: atheris ends the process, and calls `ended` before."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=WATCHED):
        target = target_of(search.name)
    corpus = search.corpus or Path(tempfile.mkdtemp(prefix="colonnade-fuzz-"))
    corpus.mkdir(parents=True, exist_ok=True)
    words = corpus.with_name(corpus.name + ".words")
    words.write_text("".join(f'"{_escaped(token)}"\n' for token in target.tokens if token))

    def one(data: bytes) -> None:
        search.tried(target, data)
        if time.monotonic() - search.started > search.seconds:
            words.unlink()
            if search.corpus is None:
                shutil.rmtree(corpus)
            ended()

    def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
        chosen = random.Random(seed)
        if target.mutate is None or chosen.random() > _NEW_INPUT_SHARE:
            changed: bytes = atheris.Mutate(data, most_bytes)
            return changed
        return target.mutate(data, chosen)[:most_bytes]

    arguments = [
        search.name,
        f"-seed={search.seed % 2**32}",
        f"-max_len={target.max_bytes}",
        f"-timeout={TIMEOUT_SECONDS}",
        f"-rss_limit_mb={MOST_MEMORY_MB}",
        f"-artifact_prefix={search.saved_to}/{search.name}-",
        f"-dict={words}",
        "-report_slow_units=5",
        str(corpus),
        str(CORPUS / search.name),
    ]
    atheris.Setup(arguments, one, custom_mutator=mutated)
    search.started = time.monotonic()
    atheris.Fuzz()


def search_plainly(search: Search) -> None:
    target = target_of(search.name)
    inputs = [file.read_bytes() for file in kept_inputs(search.name)] or [b""]
    chosen = random.Random(search.seed)
    for data in inputs:
        search.tried(target, data)
    while time.monotonic() - search.started < search.seconds:
        for _ in range(_STEPS_BETWEEN_LOOKS):
            data = chosen.choice(inputs)
            for _ in range(chosen.choice((1, 1, 2, 5))):
                data = _changed(target, data, chosen)
            search.tried(target, data[: target.max_bytes])


def _changed(target: Target, data: bytes, chosen: random.Random) -> bytes:
    if target.mutate is not None and chosen.random() < _NEW_INPUT_SHARE:
        return target.mutate(data, chosen)
    start = chosen.randint(0, len(data))
    end = min(len(data), start + chosen.choice((0, 0, 1, 2, 8)))
    if chosen.random() < 0.5:
        piece = chosen.choice([*target.tokens, b""])
    else:
        piece = chosen.randbytes(chosen.choice((1, 1, 2, 4)))
    return data[:start] + piece + data[end:]


def _escaped(token: bytes) -> str:
    """As a word of a libFuzzer dictionary."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in token
    )
