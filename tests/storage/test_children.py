"""Programs of ours in processes of their own: found from anywhere, and at home where they began."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from storage.children import environment, program


def test_a_program_is_found_whatever_the_working_directory(tmp_path: Path) -> None:
    """And that stays, so that a relative path means the same to it."""
    code = "import pathlib, storage; print(pathlib.Path.cwd())"
    (tmp_path / "where.py").write_text(code)
    ended = subprocess.run(
        program("where"), cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert (ended.stderr, ended.stdout) == ("", f"{tmp_path}\n")


def test_a_backup_whose_server_ended_at_once_ends_without_a_word() -> None:
    """Killed before it said what to do: that is no defect for its log."""
    for said in (b"", b'{"checkpoint": "/half'):
        ended = subprocess.run(
            program("storage.backup.worker"), env=environment(), input=said, capture_output=True
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"", b"")


def test_a_backup_that_nobody_listens_to_any_more_ends_without_a_word() -> None:
    code = """
import os
from storage.backup.worker import _tell
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 1)
_tell({"done": 1})
"""
    ended = subprocess.run([sys.executable, "-c", code], env=environment(), stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (1, b"")
