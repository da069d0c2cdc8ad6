"""redis.conf and the command line -> settings, as redis-server reads them.

Errors name the file, the line and, for an unknown directive, one of a similar name; all bad lines
are told at once. Files named by `include` are looked for from the working directory, as Redis does.
"""

from __future__ import annotations

import difflib
import glob
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from resp_server.careful import ProtocolError, split_inline
from resp_server.settings.directives import DIRECTIVES, Settings
from resp_server.settings.fixed import FIXED, MEANINGLESS, UNSUPPORTED
from resp_server.settings.kinds import WRONG_NUMBER, BadSetting

_STANDARD_INPUT = "-"
_WILDCARDS = "*?["


def apply(settings: Settings, words: Sequence[str]) -> None:
    """Set one directive from its words, the name first. BadSetting if that cannot be."""
    name = words[0].lower()
    if name not in DIRECTIVES and name not in FIXED and name != "user":
        raise BadSetting(_unknown(words[0]))
    try:
        if len(words) < 2 and name != "save":
            raise BadSetting(WRONG_NUMBER)
        if name == "user":
            settings.user += (tuple(words[1:]),)
        elif name in FIXED:
            FIXED[name].check(words[1:])
        else:
            _set(settings, name, words[1:])
    except BadSetting as error:
        raise BadSetting(f"'{name}': {error}") from None


def _set(settings: Settings, name: str, words: Sequence[str]) -> None:
    directive = DIRECTIVES[name]
    value = directive.kind.read(words)
    if directive.kind.merge is not None:
        value = directive.kind.merge(getattr(settings, directive.attribute), value)
    setattr(settings, directive.attribute, value)


def _unknown(written: str) -> str:
    name = written.lower()
    if name in UNSUPPORTED:
        return f"'{name}' is not supported: {UNSUPPORTED[name]}"
    if name in MEANINGLESS:
        return f"'{name}' is a directive of Redis that changes nothing here; take the line out"
    near = difflib.get_close_matches(name, [*DIRECTIVES, *FIXED, "include", "user"], 1)
    hint = f". Did you mean '{near[0]}'?" if near else ""
    return f"unknown directive '{written}'{hint}"


def split_line(line: str) -> list[str]:
    """The words of a line of redis.conf; none for an empty line or a comment."""
    stripped = line.strip()
    if not stripped or stripped.startswith("#"):
        return []
    try:
        words = split_inline(stripped.encode("utf-8", "surrogateescape"))
    except ProtocolError:
        raise BadSetting("unbalanced quotes") from None
    return [word.decode("utf-8", "surrogateescape") for word in words]


class Reader:
    """Fills settings from texts and files, and gathers what is wrong with them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.problems: list[str] = []
        """With their place, one for each bad line."""
        self._open: list[Path] = []
        """The files being read, each included by the one before it."""

    def read_file(self, path: str) -> None:
        """BadSetting when it cannot be read; its bad lines are only gathered."""
        try:
            text = read_text(Path(path))
        except OSError as error:
            raise BadSetting(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:  # a NUL in the path
            raise BadSetting(f"cannot read it: {error}") from None
        file = Path(path).resolve()
        if file in self._open:
            raise BadSetting(f"{path} includes itself")
        self._open.append(file)
        self.read(text, path)
        self._open.pop()

    def read(self, text: str, source: str) -> None:
        """All lines of a text; `source` is what errors call it."""
        for number, line in enumerate(text.split("\n"), start=1):
            try:
                words = split_line(line)
                if words:
                    self.take(words)
            except BadSetting as error:
                self.problems.append(f"{source}, line {number}: {error}\n>>> '{line.strip()}'")

    def take(self, words: Sequence[str]) -> None:
        """One directive, or what `include` names."""
        if words[0].lower() == "include":
            self._include(words[1:])
        else:
            apply(self.settings, words)

    def _include(self, words: Sequence[str]) -> None:
        if len(words) != 1:
            raise BadSetting(f"'include': {WRONG_NUMBER}")
        (pattern,) = words
        is_pattern = any(letter in pattern for letter in _WILDCARDS)
        for path in sorted(glob.glob(pattern)) if is_pattern else [pattern]:  # noqa: PTH207 - no Path
            self.read_file(path)

    def finish(self) -> None:
        """BadSetting with all problems, if there were any."""
        if self.problems:
            raise BadSetting("\n".join(self.problems))


def read_text(file: Path) -> str:
    """Bytes that are no UTF-8 become surrogates; line ends stay as they are."""
    return _decoded(file.read_bytes())


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def apply_text(settings: Settings, text: str, source: str) -> None:
    """Set all directives of a configuration text; BadSetting names the source and the line."""
    reader = Reader(settings)
    reader.read(text, source)
    reader.finish()


# The command line


def from_command_line(arguments: Iterable[str]) -> Settings:
    """The settings of `[redis.conf] [-] [--directive value ...] [-]`, as redis-server takes them.

    `-` is the standard input. It goes over the file, and the directives over both.
    """
    words = list(arguments)
    reader = Reader(Settings())
    file = _file_argument(words)
    if file is not None:
        reader.read_file(words.pop(0))
    takes_input = words[-1:] == [_STANDARD_INPUT]
    if takes_input:
        words.pop()
    elif file is None and words[:1] == [_STANDARD_INPUT]:
        takes_input = True
        words.pop(0)
    if takes_input:
        reader.read(_decoded(sys.stdin.buffer.read()), "the standard input")
    reader.finish()
    for group in _directive_groups(words):
        try:
            reader.take(group)
        except BadSetting as error:
            raise BadSetting(f"the command line: {error}") from None
    reader.finish()
    return reader.settings


def configuration_file(arguments: Sequence[str]) -> Path | None:
    """The file that from_command_line() reads, from the root; None if there is none."""
    file = _file_argument(arguments)
    return None if file is None else Path(file).absolute()


def _file_argument(arguments: Sequence[str]) -> str | None:
    return arguments[0] if arguments and not arguments[0].startswith("-") else None


def _directive_groups(words: Sequence[str]) -> list[list[str]]:
    """`--port 7000 --bind a b "--timeout 5"` -> [[port, 7000], [bind, a, b], [timeout, 5]]

    What follows a name is its value, even if it begins with "--"; save alone needs none.
    """
    groups: list[list[str]] = []
    for word in words:
        complete = not groups or len(groups[-1]) > 1 or groups[-1] == ["save"]
        names_one = word.startswith("--") and complete
        named = split_line(word[2:]) if names_one else []
        if named:
            groups.append(named)
        elif groups and not names_one:
            groups[-1].append(word)
        else:
            raise BadSetting(f"expected --directive, got '{word}'")
    return groups
