"""The log: lines as Redis writes them, or one JSON object a line, whatever is in them."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from resp_server.logs import JsonLines, TextLines
from resp_server.settings import BadSetting, from_command_line
from tests.harness import MakeServer

MOMENT = datetime(2026, 11, 21, 16, 3, 45, 123_000, UTC)


def record(message: str, *arguments: object, error: Any = None) -> logging.LogRecord:
    made = logging.LogRecord("some.module", logging.WARNING, "", 0, message, arguments, error)
    made.created, made.msecs, made.process = MOMENT.timestamp(), 123.0, 42
    return made


def test_a_json_line_says_when_who_and_what() -> None:
    assert json.loads(JsonLines().format(record("took %d s", 7))) == {
        "ts": "2026-11-21T16:03:45.123Z",
        "level": "warning",
        "pid": 42,
        "msg": "took 7 s",
        "logger": "some.module",
    }


def test_the_time_in_a_json_line_is_iso_8601() -> None:
    found = json.loads(JsonLines().format(record("x")))["ts"]
    assert datetime.fromisoformat(found) == MOMENT


@pytest.mark.parametrize("text", ['"', "two\nlines", "\x00", "ümlaut", "\udcff", "\u2028", "{}"])
def test_a_json_line_is_one_line_whatever_it_says(text: str) -> None:
    line = JsonLines().format(record("%s", text))
    assert len(line.splitlines()) == 1
    assert json.loads(line)["msg"] == text
    line.encode("ascii")


def test_a_traceback_is_in_the_same_line() -> None:
    try:
        raise ZeroDivisionError("of something")
    except ZeroDivisionError:
        line = JsonLines().format(record("failed", error=sys.exc_info()))
    told = json.loads(line)
    assert "\n" not in line
    assert told["msg"] == "failed"
    assert told["exception"].splitlines()[0] == "Traceback (most recent call last):"
    assert told["exception"].splitlines()[-1] == "ZeroDivisionError: of something"


def test_a_text_line_is_like_those_of_redis() -> None:
    line = TextLines().format(record("took %d s", 7))
    assert re.fullmatch(r"42:M \d\d Nov 2026 \d\d:\d\d:45\.123 WARNING took 7 s", line)


def test_a_server_logs_json_from_beginning_to_end(make_server: MakeServer) -> None:
    server = make_server(log_format="json", wc_engine="memory")
    pid = server.pid
    assert server.stop() == 0
    told = [json.loads(line) for line in server.log.splitlines()]
    assert {line["pid"] for line in told} == {pid}
    messages = [line["msg"] for line in told]
    assert "ready to accept connections" in messages
    assert messages[-1] == "the store is closed, bye"


def test_text_is_the_default(make_server: MakeServer) -> None:
    server = make_server(wc_engine="memory")
    assert re.search(r"^\d+:M \d\d \w{3} \d{4} .* INFO ready to accept", server.log, re.M)


def test_other_formats_are_refused() -> None:
    with pytest.raises(BadSetting, match="must be one of the following"):
        from_command_line(["--log-format", "xml"])
