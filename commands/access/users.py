"""All users by name: logging in, changing them, and the file they may be kept in."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterable, Sequence

from commands.access import user_file
from commands.access.denials import Denial, DenialLog
from commands.access.rules import RuleLanguage, digest_of, has_space, joined_selectors
from commands.access.user import User
from commands.command import Table
from commands.errors import (
    AclFileNotWritten,
    BadUserName,
    DefaultUserStays,
    DuplicateUser,
    NoAclFile,
    RefusedRule,
    RefusedUserLine,
    RuleProblem,
    UnmatchedParenthesis,
    UsersInTwoPlaces,
)

__all__ = ["Denial", "DenialLog", "User", "Users"]

log = logging.getLogger(__name__)

_DEFAULT = b"default"
_DEFAULT_RULES = (b"+@all", b"~*", b"&*", b"on", b"nopass")
_NO_DIGEST = "0" * 64
"""Compared with when a user has no password, to take the same time."""


class Users:
    """There is always the user "default", whom clients are until they log in.

    `on_change(user, removed)` is called after each change of what a user may do: removed, its
    clients have to go; else they may have become restricted, or may listen to channels they may
    not hear any more, or need not log in any more (the default user's).
    """

    def __init__(self, table: Table) -> None:
        self._language = RuleLanguage(table)
        self.default = self._new_default()
        self._by_name = {_DEFAULT: self.default}
        self.on_change: Callable[[User, bool], None] = lambda _user, _removed: None
        self.denials = DenialLog()
        self.file = ""
        """The path of the ACL file; "" for none."""

    @property
    def all_channels_at_first(self) -> bool:
        """The directive acl-pubsub-default: whether new users begin with all channels."""
        return self._language.all_channels_at_first

    @all_channels_at_first.setter
    def all_channels_at_first(self, value: bool) -> None:
        self._language.all_channels_at_first = value

    def _new_default(self) -> User:
        user = self._language.new_user(_DEFAULT)
        for rule in _DEFAULT_RULES:
            self._language.apply(user, rule)
        return user

    # Asking

    @property
    def login_needed(self) -> bool:
        """Whether new clients have to log in."""
        return not self.default.open_to_all

    def find(self, name: bytes) -> User | None:
        return self._by_name.get(name)

    def all(self) -> list[User]:
        """In the order of their names."""
        return [user for _, user in sorted(self._by_name.items())]

    def category(self, name: bytes) -> list[str]:
        """The commands of a category. UnknownInRule when there is none of that name."""
        vocabulary = self._language.vocabulary
        return vocabulary.commands_of(vocabulary.category(name.decode("latin-1")))

    def authenticate(self, name: bytes, password: bytes) -> User | None:
        """The user of that name, if enabled and the password is one of its own.

        How long it takes tells nothing of the passwords, nor whether there is such a user.
        """
        user = self._by_name.get(name)
        digest = digest_of(password)
        digests = user.password_digests if user is not None else []
        fits = [hmac.compare_digest(digest, known) for known in digests or [_NO_DIGEST]]
        if user is None or not user.enabled:
            return None
        return user if user.without_password or (digests and any(fits)) else None

    # Changing

    def set_default_password(self, password: bytes) -> None:
        """As requirepass does; an empty one takes the need for a password away."""
        self.default.without_password = not password
        self.default.password_digests = [digest_of(password)] if password else []
        self.on_change(self.default, False)

    def change(self, name: bytes, words: Sequence[bytes]) -> None:
        """Create a user or change it by rules: by all of them, or by none and a CommandError."""
        if has_space(name):
            raise BadUserName
        existing = self.find(name)
        draft = self._language.new_user(name) if existing is None else existing.copy()
        for rule in joined_selectors(list(words)):
            try:
                self._language.apply(draft, rule)
            except RuleProblem as problem:
                raise RefusedRule(rule, problem) from None
        if existing is None:
            self._by_name[name] = draft
        else:
            existing.become(draft)
            self.on_change(existing, False)

    def delete(self, names: Iterable[bytes]) -> int:
        """How many there were; none is deleted if the default user is among them."""
        wanted = set(names)
        if _DEFAULT in wanted:
            raise DefaultUserStays
        removed = [self._by_name.pop(name) for name in wanted & self._by_name.keys()]
        for user in removed:
            self.on_change(user, True)
        return len(removed)

    # Keeping

    def start(self, declarations: Sequence[Sequence[bytes]], file: str) -> None:
        """The users of the configuration: of its `user` lines, each as its words after the first,
        or of an ACL file, if its path is not "". CommandError tells what is wrong."""
        if declarations and file:
            raise UsersInTwoPlaces
        declared: set[bytes] = set()
        for name, *words in declarations:
            if name in declared:
                raise RefusedUserLine(name, DuplicateUser())
            declared.add(name)
            self._declare(name, words)
        self.file = file
        if file:
            self.load()

    def _declare(self, name: bytes, words: list[bytes]) -> None:
        if has_space(name):
            raise RefusedUserLine(name, BadUserName())
        user = self._language.new_user(name)
        try:
            rules = joined_selectors(words)
        except UnmatchedParenthesis as problem:
            raise RefusedUserLine(name, problem) from None
        for rule in rules:
            try:
                self._language.apply(user, rule)
            except RuleProblem as problem:
                raise RefusedUserLine(rule, problem) from None
        self._by_name.setdefault(name, user).become(user)

    def load(self) -> None:
        """Replace all users by those of the ACL file, or none if anything is wrong with it.

        The default user stays the same object; clients of all others have to go, as in Redis.
        """
        if not self.file:
            raise NoAclFile
        loaded = user_file.read(self.file, self._language)
        removed = [user for user in self._by_name.values() if user is not self.default]
        self.default.become(loaded.get(_DEFAULT) or self._new_default())
        self._by_name = loaded | {_DEFAULT: self.default}
        for user in removed:
            self.on_change(user, True)
        self.on_change(self.default, False)

    def save(self) -> None:
        """Write all users to the ACL file."""
        if not self.file:
            raise NoAclFile
        try:
            user_file.write(self.file, self.all())
        except OSError as error:
            log.warning("cannot write the ACL file %s: %s", self.file, error.strerror)
            raise AclFileNotWritten from None
