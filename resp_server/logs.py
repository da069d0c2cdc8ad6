"""How the log is written: one line a record in Redis's format, or one JSON object a line.

    20837:M 21 Nov 2026 16:03:45.123 INFO ready to accept connections
    {"ts": "2026-11-21T16:03:45.123Z", "level": "info", "pid": 20837, "msg": "ready to ...", ...}

Where it goes and from which level on is said by the directives `logfile` and `loglevel`.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from resp_server.live import LOG_LEVELS
from resp_server.settings import Settings


class TextLines(logging.Formatter):
    """As Redis's log; a traceback takes lines of its own."""

    def __init__(self) -> None:
        super().__init__(
            "%(process)d:M %(asctime)s.%(msecs)03d %(levelname)s %(message)s", "%d %b %Y %H:%M:%S"
        )


class JsonLines(logging.Formatter):
    """An object a line, whatever is in the message."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
        told = {
            "ts": moment.isoformat(timespec="milliseconds") + "Z",
            "level": record.levelname.lower(),
            "pid": record.process,
            "msg": record.getMessage(),
            "logger": record.name,
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told)


_FORMATS: dict[str, type[logging.Formatter]] = {"text": TextLines, "json": JsonLines}


def start_logging(settings: Settings) -> None:
    """Send what is logged where the settings say. OSError if there is no writing there."""
    handler: logging.Handler = logging.StreamHandler(sys.stdout)
    if settings.logfile:
        handler = logging.FileHandler(settings.logfile)
    handler.setFormatter(_FORMATS[settings.log_format]())
    logging.basicConfig(level=LOG_LEVELS[settings.loglevel], handlers=[handler])
