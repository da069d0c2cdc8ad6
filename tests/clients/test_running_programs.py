"""programs.py itself: what it makes of a program's lines, and when it installs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.clients import programs
from tests.clients.programs import (
    MissingToolchain,
    NotInstalled,
    Outcome,
    Program,
    Toolchain,
    run_program,
)

Steps = Sequence[Sequence[str]]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sources are in `toy`, and what is installed in `installed`."""
    monkeypatch.setattr(programs, "HERE", tmp_path)
    monkeypatch.setattr(programs, "INSTALLED", tmp_path / "installed")
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "source").write_text("first")
    (tmp_path / "installed" / "toy").mkdir(parents=True)
    return tmp_path


def toy(script: str = "", *, needs: str = sys.executable) -> Toolchain:
    """A toolchain whose one step is a line of Python, run where the sources are."""

    def steps(_: Path) -> Steps:
        return [(sys.executable, "-c", script)]

    return Toolchain("toy", (needs,), steps)


def outcome(script: str, restarts: list[str] | None = None) -> Outcome:
    program = Program(toy(), (sys.executable, "-c", script))
    asked = [] if restarts is None else restarts
    return run_program(program, {"DATASET": "d"}, lambda: asked.append("restarted"))


def test_lines_are_outcomes(directory: Path) -> None:
    found = outcome("import os; print('chatter\\nok a\\nfailed b: in: ' + os.environ['DATASET'])")
    assert found.messages == {"a": None, "b": "in: d"}
    assert found.problem("a") is None
    assert found.problem("b") == "in: d"


def test_restart_is_asked_for_and_answered(directory: Path) -> None:
    restarts: list[str] = []
    found = outcome("print('restart', flush=True); print('ok ' + input())", restarts)
    assert restarts == ["restarted"]
    assert found.messages == {"restarted": None}


def test_program_that_dies_passes_nothing_more(directory: Path) -> None:
    found = outcome("print('ok a'); raise SystemExit('no server')")
    assert found.problem("a") is None
    assert "no server" in str(found.problem("b"))


def test_program_that_hangs_is_ended(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "RUN_TIMEOUT_SECONDS", 0.2)
    assert outcome("input()").messages == {}


def test_toolchain_is_installed_again_when_a_source_changes(directory: Path) -> None:
    toolchain = toy("open('../log', 'a').write('x')")
    log, source = directory / "log", directory / "toy" / "source"
    toolchain.install()
    toolchain.install()
    assert log.read_text() == "x"
    source.write_text("second")
    toolchain.install()
    assert log.read_text() == "xx"


def test_step_that_fails_is_told_and_tried_again(directory: Path) -> None:
    for _ in range(2):
        with pytest.raises(NotInstalled, match="no network"):
            toy("raise SystemExit('no network')").install()


def test_missing_program_is_named(directory: Path) -> None:
    with pytest.raises(MissingToolchain, match="no-such-program is not on the PATH"):
        toy(needs="no-such-program").install()
