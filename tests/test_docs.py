"""The documents say what is true: sessions run as printed, generated pages are fresh."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commands.document import page
from commands.table import TABLE
from resp_server.settings import DIRECTIVES, Settings, apply_text, example
from tests.harness import ROOT, ServerProcess

README = (ROOT / "README.md").read_text()


def fenced(text: str, kind: str) -> list[str]:
    """The contents of a document's fenced blocks of one kind."""
    return re.findall(rf"```{kind}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not installed")
def test_readme_redis_cli_session_answers_as_printed(server: ServerProcess) -> None:
    sessions = fenced(README, "redis-cli")
    assert len(sessions) >= 2
    for session in sessions:
        lines = session.splitlines()
        commands = [line.removeprefix("> ") for line in lines if line.startswith("> ")]
        printed = [line for line in lines if not line.startswith("> ")]
        ran = subprocess.run(
            ["redis-cli", "-p", str(server.port), "--no-raw"],
            input="\n".join(commands) + "\n",
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.splitlines() == printed


def test_readme_redis_py_session_prints_as_printed(server: ServerProcess) -> None:
    (program,) = fenced(README, "python")
    (printed,) = fenced(README, "output")
    here = program.replace("redis.Redis()", f"redis.Redis(port={server.port})")
    assert here != program
    ran = subprocess.run(
        [sys.executable, "-c", here + "\nclient.close()"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == (printed, "")


def test_readme_begins_with_the_two_commands() -> None:
    commands = re.findall(r"^    make (\w+)", README, flags=re.MULTILINE)
    assert commands[:2] == ["run", "test"]


def test_generated_pages_are_fresh() -> None:
    assert (ROOT / "docs/commands.md").read_text() == page(), "run make docs"
    assert (ROOT / "redis.conf.example").read_text() == example(), "run make docs"


def test_example_configuration_holds_every_default() -> None:
    settings = Settings()
    for directive in DIRECTIVES.values():
        setattr(settings, directive.attribute, None)
    apply_text(settings, (ROOT / "redis.conf.example").read_text(), "redis.conf.example")
    assert settings == Settings()


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs/commands.md").read_text()
    for entry in TABLE.all().values():
        for command in (entry, *entry.subcommands.values()):
            assert f"### {command.name.replace('|', ' ').upper()}\n" in text


def test_changelog_names_this_version() -> None:
    from resp_server.version import VERSION

    assert f"## {VERSION} " in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("document", sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")]))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        assert "://" in target or (document.parent / target).exists(), target
