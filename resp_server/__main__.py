"""The program: `python -m resp_server [redis.conf] [--directive value ...]`, or colonnade-server.

`--check DIR` reads a whole store instead, and says what is in it and what is wrong with it.
`--read-only URL-or-DIR` serves what is there without changing it: a backup, or a data directory.

Exit codes: 0 after a clean stop or a check that found nothing, 1 when the server cannot begin or
there is nothing that can be checked, 2 for a bad configuration or command line, 3 when a check
found damage. Whatever the process creates is its user's alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from resp_server.listening import CannotListen
from resp_server.logs import start_logging
from resp_server.server import Server, rocks_settings
from resp_server.settings import BadSetting, Settings, configuration_file, from_command_line
from resp_server.version import REDIS_VERSION, VERSION
from storage.backup.failures import BackupFailure
from storage.backup.looking import Look, look_into
from storage.errors import CannotOpen
from storage.opening import check_directory, reading

log = logging.getLogger(__name__)

EXIT_CANNOT_BEGIN = 1
EXIT_BAD_CONFIGURATION = 2
EXIT_DAMAGED = 3
OWNER_ONLY = 0o077
GC_THRESHOLD = 20_000

_USAGE = """\
Usage: colonnade-server [/path/to/redis.conf] [--directive value ...]
       colonnade-server --read-only /path/or/URL [--backup NAME] [redis.conf] [--directive ...]
       colonnade-server --check /path/to/dir
       colonnade-server -v | --version
       colonnade-server -h | --help

Examples:
       colonnade-server
       colonnade-server /etc/colonnade/redis.conf
       colonnade-server --port 7000 --dir /var/lib/colonnade
       colonnade-server --read-only s3://bucket/folder --port 7000
       colonnade-server --check /var/lib/colonnade

--read-only answers reads from a backup, the newest if none is named, or from the data directory of
a server that is stopped, and changes nothing in either. A backup is brought to the place for
temporary files (TMPDIR) until the server ends.

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
        source = _taken(words, "--read-only")
        backup = None if source is None else _taken(words, "--backup")
        settings = from_command_line(words)
        if source is not None and settings.wc_engine == "memory":
            raise BadSetting("--read-only reads what is on disk: take 'wc-engine memory' away")
    except BadSetting as error:
        print(f"*** FATAL CONFIG FILE ERROR (Colonnade {VERSION}) ***\n{error}", file=sys.stderr)
        return EXIT_BAD_CONFIGURATION
    try:
        start_logging(settings)
        if source is None:
            _run(settings, configuration_file(words))
        else:
            with _looking(source, backup, settings) as look:
                _run(settings, configuration_file(words), look)
    except (BackupFailure, CannotOpen, CannotListen, OSError) as error:
        print(f"colonnade-server cannot start: {error}", file=sys.stderr)
        return EXIT_CANNOT_BEGIN
    except KeyboardInterrupt:
        print("colonnade-server: interrupted before it began", file=sys.stderr)
        return EXIT_CANNOT_BEGIN
    return 0


# Looking into what nobody serves


def _taken(words: list[str], option: str) -> str | None:
    """The word after an option, which both go; None if it is not among them."""
    if option not in words:
        return None
    place = words.index(option)
    if place + 1 == len(words):
        raise BadSetting(f"the command line: {option} says what to read")
    value = words[place + 1]
    del words[place : place + 2]
    return value


@contextlib.contextmanager
def _looking(url: str, backup: str | None, settings: Settings) -> Iterator[Look]:
    # A server that serves does without the command line's modules.
    from resp_server.cli.progress import shown

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing is left behind
    opener = partial(reading, settings=rocks_settings(settings))
    with contextlib.ExitStack() as until_the_end:
        with shown() as progress:
            look = until_the_end.enter_context(look_into(url, backup, progress, opener))
        log.info("reading %s, and changing nothing there", look.source)
        yield look


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


def _run(settings: Settings, file: Path | None, look: Look | None = None) -> None:
    # What lives as long as the process is not looked at again by the garbage collector, and it
    # comes less often: cycles are rare here, and every command makes containers.
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 50)

    async def serve() -> None:
        await Server(settings, file, look).run()

    if sys.platform == "win32":
        asyncio.run(serve())
    else:
        import uvloop

        uvloop.run(serve())


if __name__ == "__main__":
    sys.exit(main())
