"""How far a command is: the words, and what is put on a terminal."""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stderr
from types import SimpleNamespace

import pytest

from resp_server.cli import progress
from resp_server.cli.progress import counted, in_words, shown


@pytest.mark.parametrize(
    ("done", "total", "rate", "unit", "words"),
    [
        (0, 0, 0.0, "cells", "0 cells"),
        (0, 4500, 0.0, "cells", "0 of 4,500 cells"),
        (1500, 4500, 500.0, "cells", "1,500 of 4,500 cells, 500/s, 0:00:06 left"),
        (1500, 0, 500.0, "records", "1,500 records, 500/s"),
        (4500, 4500, 1500.0, "rows", "4,500 of 4,500 rows, 1,500/s, 0:00:00 left"),
        (999, 10_000, 0.0, "bytes", "999 bytes of 10.0 kB"),
        (10**6, 90 * 10**9, 1e6, "bytes", "1.0 MB of 90.0 GB, 1.0 MB/s, 1 day, 0:59:59 left"),
        (25 * 10**14, 0, 0.5, "bytes", "2,500.0 TB, 0 bytes/s"),
    ],
)
def test_what_is_known_in_words(done: int, total: int, rate: float, unit: str, words: str) -> None:
    assert in_words(done, total, rate, unit) == words


class Terminal(io.StringIO):
    """What is written to it, without colours and movements."""

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


@pytest.fixture(params=["bar", "line"])
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    if request.param == "line":
        monkeypatch.setitem(sys.modules, "rich", None)  # as if it were not installed
    return Terminal()


def test_each_action_is_shown_from_its_beginning(terminal: Terminal) -> None:
    with redirect_stderr(terminal), shown() as tell:
        tell("reading", 0, 2000)
        tell("sending [red]", 500, 3000)
        tell("sending [red]", 501, 3000)  # too soon
    assert "500 bytes of 3.0 kB" in terminal.text
    assert "sending [red]" in terminal.text
    assert "501" not in terminal.text


def test_an_estimate_may_be_passed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PACE_SECONDS", 0.0)
    with redirect_stderr(terminal), counted("export", "cells") as tell:
        tell(0, 0)
        tell(5, 10)
        tell(12, 10)
    assert "export" in terminal.text
    assert "12 of 12 cells" in terminal.text


def test_what_has_no_end_is_counted_in_its_own_unit(terminal: Terminal) -> None:
    with redirect_stderr(terminal), shown(endless="cells") as tell:
        tell("checking d", 2000, 0)
    assert "2,000 cells" in terminal.text


def test_a_long_line_stays_one(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    with redirect_stderr(terminal), shown("cells") as tell:
        tell("checking " + "x" * 100, 1, 0)
    assert 10 < max(map(len, re.split(r"[\r\n]", terminal.text))) <= 30


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with counted("export", "cells") as tell:
        tell(5, 10)
    assert capsys.readouterr() == ("", "")


def test_the_rate_is_that_since_the_beginning_of_the_action(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter([100.0, 102.0, 104.0, 108.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    drawn: list[str] = []
    tell = progress._Teller(lambda *words: drawn.append(words[3]), "cells", "cells")
    tell("a", 1000, 5000)
    tell("a", 3000, 5000)
    tell("b", 0, 80)
    tell("b", 40, 80)
    assert drawn == [
        "1,000 of 5,000 cells",
        "3,000 of 5,000 cells, 1,000/s, 0:00:02 left",
        "0 of 80 cells",
        "40 of 80 cells, 10/s, 0:00:04 left",
    ]
