"""docs/backup.md says what is true: the session prints what is there, but for N and NAME."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from resp_server.settings import Settings, apply_text
from tests.harness import ROOT, MakeServer, ServerProcess

PAGE = (ROOT / "docs/backup.md").read_text()
BLANKS = {
    "NAME": r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{6}",
    "TIME": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "HOST": r"\S+",
    "N": r"\d+",
}


def pattern(line: str) -> str:
    """What a printed line may be."""
    words = re.split(r"\b(NAME|TIME|HOST|N)\b", line)
    return "".join(BLANKS[word] if word in BLANKS else re.escape(word) for word in words)


def run(line: str) -> list[str]:
    program, *words = shlex.split(line)
    assert program == "colonnade"
    command = [sys.executable, "-m", "resp_server.cli", *words]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_the_session_prints_what_is_printed(make_server: MakeServer, tmp_path: Path) -> None:
    server = make_server()
    with server.client() as client:
        for number in range(50):
            client.execute_command("WCPUT", "events", f"user:{number}", "*", "seen", "1")
    (session,) = re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)
    session = session.replace("/tmp/", f"{tmp_path}/")
    session = session.replace("127.0.0.1:6379", f"127.0.0.1:{server.port}")
    for part in session.split("$ ")[1:]:
        line, *printed = part.splitlines()
        answered = run(line)
        assert len(answered) == len(printed), (line, answered)
        for expected, found in zip(printed, answered, strict=True):
            assert re.fullmatch(pattern(expected), found), (expected, found)
        if line.startswith("colonnade verify"):
            assert answered[0].startswith("dataset events: 50 cells")
            assert answered[-1].endswith(" 0 problems")


def test_what_is_looked_into_is_shown(make_server: MakeServer, tmp_path: Path) -> None:
    server = make_server()
    with server.client() as client:
        client.execute_command("WCPUT", "events", "user:7", 1, "seen", "1")
    run(f"colonnade backup {tmp_path}/elsewhere --server 127.0.0.1:{server.port}")
    (session,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    starting, asking = session.replace("/tmp/", f"{tmp_path}/").splitlines()
    program, *words = shlex.split(starting.removesuffix(" --port 7000"))
    assert program == "colonnade-server"
    reader = ServerProcess(tmp_path / "none", command=[sys.executable, "-m", "resp_server", *words])
    try:
        reader.start()
        command = asking.removeprefix("redis-cli -p 7000 ").split()
        with reader.client() as client:
            assert client.execute_command(*command) == [b"0", [[b"seen", [[1, b"1"]]]]]
            assert client.info("persistence")["wc_read_only"] == 1
    finally:
        reader.close()
    for field in ("wc_read_only:1", "wc_looks_into"):
        assert f"`{field}`" in PAGE


def test_the_directives_are_directives() -> None:
    (directives,) = re.findall(r"```\n(backup-cron.*?)```", PAGE, flags=re.DOTALL)
    settings = Settings()
    apply_text(settings, directives, "docs/backup.md")
    assert settings.backup_url_keep == 14


def test_the_fields_of_info_are_all_there(server: ServerProcess) -> None:
    with server.client() as client:
        told = {name for name in client.info("persistence") if name.startswith("wc_backup")}
    assert told == set(re.findall(r"`(wc_backup\w+)`", PAGE))


def test_errors_are_one_line_and_an_exit_code(tmp_path: Path) -> None:
    for words, code in (
        (["verify", str(tmp_path)], 1),
        (["restore", "nothing://x", str(tmp_path / "new")], 1),
        (["backup", str(tmp_path), "--server", "127.0.0.1:1"], 1),
        (["prune", str(tmp_path), "--keep", "0"], 2),
    ):
        command = [sys.executable, "-m", "resp_server.cli", *words]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == code
        assert ran.stderr.splitlines()[-1].startswith("colonnade ")
        assert "Traceback" not in ran.stderr
