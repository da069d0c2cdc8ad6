"""What a target is, and which there are.

A target's module is imported by name when it is wanted: the product's modules that it imports have
to be watched by the fuzzer from their import on. So nothing here knows any of them.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"
NAMES = ("parser", "commands", "cursors", "configuration", "rules", "patterns", "encodings")
Mutate = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """`run` raises for an input that shows a defect, and for nothing else."""

    run: Callable[[bytes], None]
    tokens: tuple[bytes, ...] = ()
    """Words that inputs are made of, for the mutations of bytes."""
    mutate: Mutate | None = None
    """A change that keeps the form of an input, where changes of bytes hardly ever do."""
    max_bytes: int = 4096


def target_of(name: str) -> Target:
    found: Target = importlib.import_module(f"tests.fuzz.{name}").TARGET
    return found


def kept_inputs(name: str) -> list[Path]:
    """The files of its corpus."""
    return sorted((CORPUS / name).iterdir())
