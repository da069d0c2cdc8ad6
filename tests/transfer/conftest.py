"""The command line as its users run it, for the tests of exports and imports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.harness import ROOT

Colonnade = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def colonnade() -> Colonnade:
    """Runs `colonnade` with these words, in a process of its own."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "resp_server.cli", *map(str, words)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run
