"""docs/export.md says what is true: its commands and queries are run as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb

from tests.harness import ROOT, ServerProcess

PAGE = (ROOT / "docs/export.md").read_text()


def blocks(*kinds: str) -> list[tuple[str, str]]:
    """The fenced blocks of these kinds, in their order: (kind, text)."""
    return re.findall(rf"```({'|'.join(kinds)})\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_page_does_what_it_prints(server: ServerProcess, tmp_path: Path) -> None:
    ((_, records),) = blocks("csv")
    (tmp_path / "events.csv").write_text(records)
    with server.client() as client:
        client.execute_command("WCDATASET", "DROP", "events", "IFEXISTS")
    for _, line in blocks("console"):
        words = line.strip().removeprefix("$ colonnade ").replace("...", "").split()
        program = [sys.executable, "-m", "resp_server.cli", *words]
        address = ["--server", f"127.0.0.1:{server.port}"]
        subprocess.run(
            [*program, *address],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        )
    with duckdb.connect() as database:
        database.execute(f"SET file_search_path = '{tmp_path}'")
        shown: list[tuple[object, ...]] = []
        for kind, text in blocks("sql", "output"):
            if kind == "output":
                assert text.splitlines() == [" | ".join(map(str, row)) for row in shown]
            else:
                shown = database.execute(text).fetchall()
    with server.client() as client:  # the name is used by other pages too
        client.execute_command("WCDATASET", "DROP", "events")


def test_the_page_names_every_option() -> None:
    for command in ("export", "import"):
        told = subprocess.run(
            [sys.executable, "-m", "resp_server.cli", command, "--help"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for option in re.findall(r"^  (--[a-z-]+)", told, flags=re.MULTILINE):
            assert f"`{option}" in PAGE, option
