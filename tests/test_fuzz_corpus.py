"""Inputs that the fuzzer has found, or that were made for it: each is run through its target.

Looking for new ones is `make fuzz`; an input that showed a defect is kept here from then on.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.target import NAMES, kept_inputs, target_of

FILES = [(name, file) for name in NAMES for file in kept_inputs(name)]
MOST_BYTES = 100_000


@pytest.mark.parametrize(
    ("name", "file"), FILES, ids=[f"{name}-{file.name}" for name, file in FILES]
)
def test_an_input_that_was_kept(name: str, file: Path) -> None:
    target_of(name).run(file.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_a_target_takes_any_bytes(name: str) -> None:
    target = target_of(name)
    chosen = random.Random(name)
    for size in (0, 1, 2, 10, 100):
        data = chosen.randbytes(size)
        target.run(data)
        if target.mutate is not None:
            target.run(target.mutate(data, chosen))


def test_the_corpus_is_small() -> None:
    assert sum(file.stat().st_size for _, file in FILES) < MOST_BYTES
    assert {name for name, _ in FILES} == set(NAMES)
