"""`python -m tests.fuzz TARGET|all`: exit code 0, or 1 when an input has shown a defect."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

from tests.fuzz.searching import Search, has_atheris, search_plainly, search_with_atheris
from tests.fuzz.target import NAMES, target_of


def reading() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=[*NAMES, "all"], help="all: one after the other")
    parser.add_argument("--minutes", type=float, default=1, help="for each target")
    parser.add_argument("--file", type=Path, help="run this input, and nothing else")
    parser.add_argument("--seed", type=int, default=random.randrange(1, 10**9))
    parser.add_argument("--corpus", type=Path, help="keep inputs here that reach more")
    parser.add_argument("--saved-to", type=Path, default=Path(), help="for inputs with a defect")
    parser.add_argument("--plain", action="store_true", help="without atheris")
    return parser


def search(words: argparse.Namespace) -> int:
    words.saved_to.mkdir(parents=True, exist_ok=True)
    begun = Search(words.target, words.minutes * 60, words.seed, words.saved_to, words.corpus)

    def ended() -> None:
        print(begun.summary(), flush=True)
        sys.stderr.flush()
        os._exit(1 if begun.defects else 0)  # atheris has no way to end but the process's

    if has_atheris() and not words.plain:
        search_with_atheris(begun, ended)
    print("without atheris: blindly")
    search_plainly(begun)
    print(begun.summary())
    return 1 if begun.defects else 0


def search_all(minutes: float) -> int:
    program = [sys.executable, "-m", "tests.fuzz"]
    codes = [
        subprocess.run([*program, name, "--minutes", str(minutes)], check=False).returncode
        for name in NAMES
    ]
    return 1 if any(codes) else 0


def main() -> int:
    words = reading().parse_args()
    if words.target == "all":
        return search_all(words.minutes)
    if words.file is not None:
        target_of(words.target).run(words.file.read_bytes())
        print("nothing is wrong with it")
        return 0
    return search(words)


if __name__ == "__main__":
    sys.exit(main())
