"""The files of examples/sidecar fit the server and each other, and systemd takes the unit."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from resp_server.settings import DIRECTIVES
from tests.harness import ROOT

SIDECAR = ROOT / "examples/sidecar"
UNIT = (SIDECAR / "colonnade.service").read_text()
DOCKERFILE = (SIDECAR / "Dockerfile").read_text()
MANIFEST = (SIDECAR / "kubernetes.yaml").read_text()


def directives_given(text: str) -> set[str]:
    """Those that the server is started with: in the unit's line, in the lists of the others."""
    return set(re.findall(r'(?:"|colonnade-server .*? )--([a-z][a-z-]+)', text)) | set(
        re.findall(r" --([a-z-]+)", "".join(re.findall(r"^ExecStart=.*$", text, re.MULTILINE)))
    )


@pytest.mark.parametrize("text", [UNIT, DOCKERFILE, MANIFEST], ids=["unit", "docker", "kubernetes"])
def test_only_directives_that_there_are_are_given(text: str) -> None:
    given = directives_given(text)
    assert len(given) >= 2
    assert given <= set(DIRECTIVES)


def test_the_image_is_made_of_what_there_is() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    sources = {word for words in copied for word in words.split()}
    assert {"resp_server", "commands", "storage", "pyproject.toml"} <= sources
    assert [name for name in sources if not (ROOT / name).exists()] == []


def test_nothing_runs_as_root() -> None:
    assert re.search(r"^USER 10001:10001$", DOCKERFILE, re.MULTILINE)
    assert "runAsNonRoot: true" in MANIFEST
    assert "runAsUser: 10001" in MANIFEST
    assert re.search(r"^User=colonnade$", UNIT, re.MULTILINE)


def test_the_probes_ask_where_the_image_listens() -> None:
    (port,) = re.findall(r'"--metrics-port", "(\d+)"', DOCKERFILE)
    assert f"http://127.0.0.1:{port}/healthz" in DOCKERFILE
    assert f"containerPort: {port}" in MANIFEST
    assert set(re.findall(r"httpGet: \{path: (\S+), port: metrics\}", MANIFEST)) == {
        "/healthz",
        "/readyz",
    }


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze verifies it")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """The program and the user of the unit are only on a machine where it is installed."""
    unit = tmp_path / "colonnade.service"
    here = UNIT.replace("/opt/colonnade/bin/colonnade-server", "/bin/true")
    here = re.sub(r"^(User|Group)=.*$", r"\1=daemon", here, flags=re.MULTILINE)
    assert here != UNIT
    unit.write_text(here)
    verified = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")
