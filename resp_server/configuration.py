"""CONFIG GET, SET and REWRITE: the settings read, changed and written back while the server runs.

A change reaches the parts of the server through listeners, which are told the names of the
directives that changed and may refuse; then nothing has changed. Knows no command and no client.
Answers commands.context.Configuration.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from commands.errors import CannotRewrite, NoConfigurationFile, SettingRefused, UnknownSetting
from commands.patterns import Pattern
from commands.replacing import replace_file
from resp_server.rewriting import IncludedUser, rewritten
from resp_server.settings import DIRECTIVES, FIXED, BadSetting, Change, Settings
from resp_server.settings.reading import read_text

log = logging.getLogger(__name__)

Listener = Callable[[frozenset[str]], None]
"""Told the names of the directives that have changed. BadSetting refuses the change: who refuses
must have changed nothing; those told before are told the same names again, with the old values."""
UserLines = Callable[[], Sequence[bytes]]
"""`user name rule ...` of each user, as ACL LIST has them."""

_PATTERN_LETTERS = b"*?["
_REFUSALS = {
    Change.AT_START: "can't set immutable config",
    Change.PROTECTED: "can't set protected config",
}


class Configuration:
    """The directives of one server. Create it once its users are read."""

    def __init__(
        self, settings: Settings, file: Path | None = None, user_lines: UserLines = list
    ) -> None:
        """`file` is what the server was started with; `settings` are changed in place."""
        self._settings = settings
        self._file = file
        self._all_users = user_lines
        self._users = self._user_lines()
        """As they were when the configuration was read or written last."""
        self._listeners: list[Listener] = []

    def add_listener(self, listener: Listener) -> None:
        """They are told in the order they came."""
        self._listeners.append(listener)

    # CONFIG GET

    def get(self, patterns: Sequence[bytes]) -> dict[bytes, bytes]:
        """Names and values of all directives that fit one of the glob patterns, in any case.

        A name that is no pattern is answered in the client's spelling, as by Redis.
        """
        found: dict[str, bytes] = {}
        for pattern in patterns:
            for name in _fitting(pattern.lower()):
                is_spelling = not any(letter in _PATTERN_LETTERS for letter in pattern)
                found.setdefault(name, pattern if is_spelling else name.encode())
        return {spelling: self._shown(name) for name, spelling in found.items()}

    def _shown(self, name: str) -> bytes:
        if name in FIXED:
            return _encoded(FIXED[name].kind.show(FIXED[name].value))
        directive = DIRECTIVES[name]
        return _encoded(directive.kind.show(getattr(self._settings, directive.attribute)))

    # CONFIG SET

    def set(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Set all or none. UnknownSetting or SettingRefused when one cannot be set."""
        given = [(_decoded(name), _decoded(value)) for name, value in pairs]
        _check_names([name for name, _ in given])
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        for spelling, value in given:
            name = spelling.lower()
            before[name], after[name] = self._read(name, value)
        self._change(
            {
                name: value
                for name, value in after.items()
                if name in DIRECTIVES and (value != before[name] or DIRECTIVES[name].volatile)
            }
        )

    def _read(self, name: str, value: str) -> tuple[Any, Any]:
        """The value a directive has, and the one it is to have."""
        try:
            if name in FIXED:
                FIXED[name].check(value.split(" ") if FIXED[name].kind.takes_words else [value])
                return None, None
            directive = DIRECTIVES[name]
            current = getattr(self._settings, directive.attribute)
            read = directive.kind.read(value.split(" ") if directive.kind.takes_words else [value])
        except BadSetting as error:
            raise SettingRefused(name, str(error)) from None
        merge = directive.kind.merge
        return current, read if merge is None else merge(current, read)

    def _change(self, values: dict[str, Any]) -> None:
        """Give directives their values and tell the listeners; take all back if one refuses."""
        before = {name: getattr(self._settings, DIRECTIVES[name].attribute) for name in values}
        self._assign(values)
        names = frozenset(values)
        told: list[Listener] = []
        try:
            for listener in self._listeners if names else []:
                listener(names)
                told.append(listener)
        except BadSetting as error:
            self._assign(before)
            for listener in reversed(told):
                self._tell_again(listener, names)
            raise SettingRefused(error.directive or next(iter(values)), str(error)) from None

    def _assign(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self._settings, DIRECTIVES[name].attribute, value)

    @staticmethod
    def _tell_again(listener: Listener, names: frozenset[str]) -> None:
        try:
            listener(names)
        except BadSetting as error:
            log.error("%s could not be taken back: %s", ", ".join(sorted(names)), error)

    # CONFIG REWRITE

    def rewrite(self) -> None:
        """Write the file the server was started with anew. NoConfigurationFile or CannotRewrite.

        It is replaced whole or not at all.
        """
        if self._file is None:
            raise NoConfigurationFile
        try:
            self._rewrite(self._file)
        except OSError as error:
            log.warning("CONFIG REWRITE failed: %s", error)
            raise CannotRewrite(error.strerror or str(error)) from None

    def _rewrite(self, file: Path) -> None:
        old = read_text(file) if file.exists() else ""
        users = self._user_lines()
        changed = {line.split(" ")[1] for line in set(users) ^ set(self._users)}
        try:
            new = rewritten(old, self._settings, users, changed)
        except IncludedUser as error:
            raise CannotRewrite(
                f"user '{error}' has changed, and is defined in an included file"
            ) from None
        if new != old:
            replace_file(file, _encoded(new))
        self._users = users
        log.info("CONFIG REWRITE wrote %s", file)

    def _user_lines(self) -> list[str]:
        """Of the users that the file has to name: none if they are in a file of their own, and not
        the default user if it is what requirepass makes it."""
        if self._settings.aclfile:
            return []
        plain = _plain_default_user(self._settings.requirepass)
        return [_decoded(line) for line in self._all_users() if line != plain]


def _fitting(pattern: bytes) -> list[str]:
    """All directives whose name fits a pattern in lower case, in the order of the tables."""
    if not any(letter in _PATTERN_LETTERS for letter in pattern):
        name = _decoded(pattern)
        return [name] if name in DIRECTIVES or name in FIXED else []
    fits = Pattern(pattern).fits
    return [name for name in (*DIRECTIVES, *FIXED) if fits(name.encode())]


def _plain_default_user(password: str) -> bytes:
    digest = hashlib.sha256(_encoded(password)).hexdigest().encode()
    return b"user default on %b ~* &* +@all" % (b"#" + digest if password else b"nopass")


def _check_names(spellings: Sequence[str]) -> None:
    """Redis's checks before it looks at any value."""
    seen: set[str] = set()
    for spelling in spellings:
        name = spelling.lower()
        if name not in DIRECTIVES and name not in FIXED:
            raise UnknownSetting(_encoded(spelling))
        change = DIRECTIVES[name].change if name in DIRECTIVES else FIXED[name].change
        if change in _REFUSALS:
            raise SettingRefused(spelling, _REFUSALS[change])
        if name in seen:
            raise SettingRefused(spelling, "duplicate parameter")
        seen.add(name)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
