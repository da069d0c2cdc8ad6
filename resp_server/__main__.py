"""The program: `python -m resp_server [redis.conf] [--directive value ...]`, or colonnade-server.

`--check DIR` reads a whole store instead, and says what is in it and what is wrong with it.

Exit codes: 0 after a clean stop or a check that found nothing, 1 when the server cannot begin or
there is nothing that can be checked, 2 for a bad configuration or command line, 3 when a check
found damage. Whatever the process creates is its user's alone.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from resp_server.listening import CannotListen
from resp_server.logs import start_logging
from resp_server.server import Server
from resp_server.settings import BadSetting, Settings, configuration_file, from_command_line
from resp_server.version import REDIS_VERSION, VERSION
from storage.errors import CannotOpen
from storage.opening import check_directory

EXIT_CANNOT_BEGIN = 1
EXIT_BAD_CONFIGURATION = 2
EXIT_DAMAGED = 3
OWNER_ONLY = 0o077
GC_THRESHOLD = 20_000

_USAGE = """\
Usage: colonnade-server [/path/to/redis.conf] [--directive value ...]
       colonnade-server --check /path/to/dir
       colonnade-server -v | --version
       colonnade-server -h | --help

Examples:
       colonnade-server
       colonnade-server /etc/colonnade/redis.conf
       colonnade-server --port 7000 --dir /var/lib/colonnade
       colonnade-server --check /var/lib/colonnade

--check reads all of a store that no server is using, and changes nothing in it.

Exit codes:
       0  a clean stop, or a check that found nothing wrong
       1  the server cannot begin, or there is nothing that can be checked
       2  a bad configuration or command line
       3  a check found damage
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until it is told to stop; return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["-v"], ["--version"]):
        print(f"Colonnade server v={VERSION} redis={REDIS_VERSION}")
        return 0
    if words in (["-h"], ["--help"]):
        print(_USAGE, end="")
        return 0
    os.umask(OWNER_ONLY)
    if words[:1] == ["--check"]:
        return _check(words[1:])
    try:
        settings = from_command_line(words)
    except BadSetting as error:
        print(f"*** FATAL CONFIG FILE ERROR (Colonnade {VERSION}) ***\n{error}", file=sys.stderr)
        return EXIT_BAD_CONFIGURATION
    try:
        start_logging(settings)
        _run(settings, configuration_file(words))
    except (CannotOpen, CannotListen, OSError) as error:
        print(f"colonnade-server cannot start: {error}", file=sys.stderr)
        return EXIT_CANNOT_BEGIN
    return 0


# The check of a store


def _check(words: Sequence[str]) -> int:
    if len(words) != 1:
        print("colonnade-server: --check takes one directory", file=sys.stderr)
        return EXIT_BAD_CONFIGURATION
    try:
        findings = check_directory(Path(words[0]), _show_progress)
    except (CannotOpen, OSError) as error:
        print(f"colonnade-server cannot check: {error}", file=sys.stderr)
        return EXIT_CANNOT_BEGIN
    if sys.stderr.isatty():
        print(end="\r\033[K", file=sys.stderr)
    for found in findings.datasets:
        outcome = f", {found.problems} problems" if found.problems else ""
        print(f"dataset {found.name}: {found.cells} cells, {found.bytes} bytes{outcome}")
    for note in findings.notes:
        print(f"note: {note}")
    for problem in findings.problems:
        print(f"DAMAGE: {problem}")
    print(f"{len(findings.datasets)} datasets, {len(findings.problems)} problems")
    return EXIT_DAMAGED if findings.problems else 0


def _show_progress(dataset: str, cells: int) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{dataset}: {cells} cells", end="", file=sys.stderr, flush=True)


def _run(settings: Settings, file: Path | None) -> None:
    # What lives as long as the process is not looked at again by the garbage collector, and it
    # comes less often: cycles are rare here, and every command makes containers.
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 50)

    async def serve() -> None:
        await Server(settings, file).run()

    if sys.platform == "win32":
        asyncio.run(serve())
    else:
        import uvloop

        uvloop.run(serve())


if __name__ == "__main__":
    sys.exit(main())
