"""The program: `python -m resp_server [redis.conf] [--directive value ...]`, or colonnade-server.

Exit codes: 0 after a clean stop, 1 when the server cannot begin, 2 for a bad configuration.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from resp_server.listening import CannotListen
from resp_server.live import LOG_LEVELS
from resp_server.server import Server
from resp_server.settings import BadSetting, Settings, configuration_file, from_command_line
from resp_server.version import REDIS_VERSION, VERSION
from storage.errors import CannotOpen

EXIT_CANNOT_BEGIN = 1
EXIT_BAD_CONFIGURATION = 2
GC_THRESHOLD = 20_000

_USAGE = """\
Usage: colonnade-server [/path/to/redis.conf] [--directive value ...]
       colonnade-server -v | --version
       colonnade-server -h | --help

Examples:
       colonnade-server
       colonnade-server /etc/colonnade/redis.conf
       colonnade-server --port 7000 --dir /var/lib/colonnade
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
    try:
        settings = from_command_line(words)
    except BadSetting as error:
        print(f"*** FATAL CONFIG FILE ERROR (Colonnade {VERSION}) ***\n{error}", file=sys.stderr)
        return EXIT_BAD_CONFIGURATION
    try:
        _start_logging(settings)
        _run(settings, configuration_file(words))
    except (CannotOpen, CannotListen, OSError) as error:
        print(f"colonnade-server cannot start: {error}", file=sys.stderr)
        return EXIT_CANNOT_BEGIN
    return 0


def _start_logging(settings: Settings) -> None:
    logging.basicConfig(
        level=LOG_LEVELS[settings.loglevel],
        format="%(process)d:M %(asctime)s.%(msecs)03d %(levelname)s %(message)s",
        datefmt="%d %b %Y %H:%M:%S",
        **({"filename": settings.logfile} if settings.logfile else {"stream": sys.stdout}),
    )


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
