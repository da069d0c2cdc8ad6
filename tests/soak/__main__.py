"""`python -m tests.soak crash|mixed`: exit code 0, or 1 with what was found."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.soak.crash import MODES, CrashTest
from tests.soak.mixed import MixedLoad


def tell(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, flush=True)


def crash(words: argparse.Namespace, directory: Path) -> None:
    for mode in MODES if words.mode == "all" else [words.mode]:
        test = CrashTest(directory / mode, mode, words.seed)
        started = time.monotonic()
        tell(f"kill -9, appendfsync {mode}, {words.rounds} rounds, --seed {words.seed}")
        test.run(words.rounds, tell)
        witness = test.witness
        tell(
            f"appendfsync {mode}: {words.rounds} rounds, {test.answered} calls answered, none lost;"
            f" of {witness.unanswered} unanswered ones {witness.survived} happened, none in part;"
            f" {time.monotonic() - started:.0f} s"
        )


def mixed(words: argparse.Namespace, directory: Path) -> None:
    tell(f"mixed load for {words.minutes:g} minutes, --seed {words.seed}")
    MixedLoad(directory / "data", words.seed, tell).run(words.minutes * 60)


def reading() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    programs = parser.add_subparsers(required=True)
    crashing = programs.add_parser("crash", help="kill -9 at random moments, and look for losses")
    crashing.add_argument("--rounds", type=int, default=200)
    crashing.add_argument("--mode", choices=[*MODES, "all"], default="all", help="appendfsync")
    crashing.set_defaults(program=crash)
    mixing = programs.add_parser("mixed", help="every kind of load, and look for leaks and losses")
    mixing.add_argument("--minutes", type=float, default=30)
    mixing.set_defaults(program=mixed)
    for program in (crashing, mixing):
        program.add_argument("--seed", type=int, default=random.randrange(10**6))
        program.add_argument("--directory", type=Path, help="for the data; it is kept")
    return parser


def main() -> int:
    words = reading().parse_args()
    program: Callable[[argparse.Namespace, Path], None] = words.program
    directory = words.directory or Path(tempfile.mkdtemp(prefix="colonnade-soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        program(words, directory)
    except Exception as error:
        tell(f"FAILED: {type(error).__name__}: {error}")
        tell(f"data and log are kept in {directory}; the same calls again with --seed {words.seed}")
        if not isinstance(error, AssertionError | RuntimeError):
            raise
        return 1
    if words.directory is None:
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
