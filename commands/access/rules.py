"""The rule language, read: words like `on`, `>secret`, `~events*`, `+@read` or `(+get ~x)`.

    on off nopass resetpass reset   >pw <pw #hash !hash   sanitize-payload skip-sanitize-payload
    (rules) clearselectors          the user itself; a selector is a set of permissions of its own
    ~pat %R~pat %W~pat %RW~pat allkeys resetkeys     &pat allchannels resetchannels
    +cmd -cmd +cmd|sub -cmd|sub +@cat -@cat +cmd|arg allcommands nocommands

Words are understood in any case. A rule that cannot be applied raises a RuleProblem; rules before
it have been applied by then, so work on a copy. User.describe() writes rules that this reads.
"""

from __future__ import annotations

import hashlib
import re

from commands.access.command_rules import Rule
from commands.access.permissions import Permissions
from commands.access.user import User
from commands.access.vocabulary import Vocabulary
from commands.command import Access, Table
from commands.errors import (
    AllChannelsAlready,
    AllKeysAlready,
    ArgumentOfSubcommand,
    BadPasswordHash,
    NoSuchPassword,
    RuleSyntax,
    UnmatchedParenthesis,
)

_SPACE = re.compile(rb"[ \t\n\v\f\r\x00]")
_DIGEST = re.compile(rb"[0-9a-f]{64}")
_KEYS_RULE = re.compile(rb"(?:~|%(r|w|rw|wr)(?:~|\Z))(.*)", re.IGNORECASE | re.DOTALL)
_ACCESS = {
    None: Access.READ | Access.WRITE,
    b"r": Access.READ,
    b"w": Access.WRITE,
    b"rw": Access.READ | Access.WRITE,
    b"wr": Access.READ | Access.WRITE,
}


def has_space(word: bytes) -> bool:
    """Whether it could not stand as one word in an ACL file."""
    return _SPACE.search(word) is not None


def digest_of(password: bytes) -> str:
    return hashlib.sha256(password).hexdigest()


def joined_selectors(words: list[bytes]) -> list[bytes]:
    """`(+get`, `~x)` are one rule. UnmatchedParenthesis when one is not closed."""
    rules: list[bytes] = []
    opened: list[bytes] = []
    for word in words:
        if opened or (word.startswith(b"(") and not word.endswith(b")")):
            opened.append(word)
            if word.endswith(b")"):
                rules.append(b" ".join(opened))
                opened = []
        else:
            rules.append(word)
    if opened:
        raise UnmatchedParenthesis(opened[0])
    return rules


class RuleLanguage:
    """Knows the commands and categories that rules may name, and what new users start with."""

    def __init__(self, table: Table) -> None:
        self.vocabulary = Vocabulary(table)
        self.all_channels_at_first = False
        """The directive acl-pubsub-default: whether users begin with all channels."""

    def new_user(self, name: bytes) -> User:
        """One that is off and may do nothing."""
        return User(name, [self._new_permissions()])

    def _new_permissions(self) -> Permissions:
        return Permissions(self.vocabulary, all_channels=self.all_channels_at_first)

    def apply(self, user: User, rule: bytes) -> None:
        """Change a user by one rule (joined_selectors). RuleProblem when it cannot be applied."""
        if not rule or self._apply_word(user, rule.lower()):
            return
        sign, rest = rule[:1], rule[1:]
        if sign in b">#":
            _add_digest(user, digest_of(rest) if sign == b">" else _checked_digest(rest))
        elif sign in b"<!":
            _remove_digest(user, digest_of(rest) if sign == b"<" else _checked_digest(rest))
        elif sign == b"(" and rule.endswith(b")"):
            user.permissions.append(self._selector(rule[1:-1].split()))
        else:
            self._apply_permission(user.permissions[0], rule)

    def _selector(self, words: list[bytes]) -> Permissions:
        permissions = self._new_permissions()
        for word in words:
            self._apply_permission(permissions, word)
            if word.endswith(b")"):  # in a file it would end the selector
                raise RuleSyntax
        return permissions

    def _apply_word(self, user: User, word: bytes) -> bool:
        """A rule of a single word about the user itself; False when it is none of them."""
        match word:
            case b"on":
                user.enabled = True
            case b"off":
                user.enabled = False
            case b"nopass":
                user.without_password, user.password_digests = True, []
            case b"resetpass":
                user.without_password, user.password_digests = False, []
            case b"sanitize-payload":
                user.sanitizes_payload = True
            case b"skip-sanitize-payload":
                user.sanitizes_payload = False
            case b"clearselectors":
                del user.permissions[1:]
            case b"reset":
                user.become(self.new_user(user.name))
                user.sanitizes_payload = True
            case _:
                return False
        return True

    def _apply_permission(self, permissions: Permissions, rule: bytes) -> None:
        if _apply_permission_word(permissions, rule.lower()):
            return
        sign = rule[:1]
        if sign in b"~%":
            _add_key_pattern(permissions, rule)
        elif sign == b"&":
            _add_channel_pattern(permissions, rule[1:])
        elif sign in b"+-":
            self._add_command_rule(permissions, sign == b"+", rule[1:].decode("latin-1"))
        else:
            raise RuleSyntax

    def _add_command_rule(self, permissions: Permissions, allows: bool, name: str) -> None:
        vocabulary = self.vocabulary
        if name.startswith("@"):
            permissions.commands.add(Rule(allows, "@" + vocabulary.category(name[1:])))
        elif allows and "|" in name and not self._names_subcommand(name):
            container, _, argument = name.rpartition("|")
            known = vocabulary.command(container).name
            if has_space(given := argument.encode("latin-1")):
                raise RuleSyntax
            permissions.commands.allow_argument(known, given)
        else:
            permissions.commands.add(Rule(allows, vocabulary.command(name).name))

    def _names_subcommand(self, name: str) -> bool:
        """Whether `a|b` is a subcommand, which must exist then, and not a first argument."""
        container, _, argument = name.rpartition("|")
        command = self.vocabulary.command(container)
        if "|" in command.name:
            raise ArgumentOfSubcommand
        if not argument:
            raise RuleSyntax
        return bool(command.subcommands)


def _apply_permission_word(permissions: Permissions, word: bytes) -> bool:
    match word:
        case b"allkeys" | b"~*":
            permissions.all_keys = True
            permissions.key_patterns.clear()
        case b"resetkeys":
            permissions.all_keys = False
            permissions.key_patterns.clear()
        case b"allchannels" | b"&*":
            permissions.all_channels = True
            permissions.channel_patterns.clear()
        case b"resetchannels":
            permissions.all_channels = False
            permissions.channel_patterns.clear()
        case b"allcommands" | b"+@all":
            permissions.commands.start_again(with_all=True)
        case b"nocommands" | b"-@all":
            permissions.commands.start_again(with_all=False)
        case _:
            return False
    return True


def _add_key_pattern(permissions: Permissions, rule: bytes) -> None:
    """The same pattern again adds to what is allowed on it."""
    if permissions.all_keys:
        raise AllKeysAlready
    parts = _KEYS_RULE.fullmatch(rule)
    if parts is None or has_space(parts[2]):
        raise RuleSyntax
    access = _ACCESS[parts[1] and parts[1].lower()]
    pattern = parts[2]
    permissions.key_patterns[pattern] = permissions.key_patterns.get(pattern, 0) | access


def _add_channel_pattern(permissions: Permissions, pattern: bytes) -> None:
    if permissions.all_channels:
        raise AllChannelsAlready
    if has_space(pattern):
        raise RuleSyntax
    permissions.channel_patterns[pattern] = None


def _checked_digest(digest: bytes) -> str:
    if not _DIGEST.fullmatch(digest):
        raise BadPasswordHash
    return digest.decode()


def _add_digest(user: User, digest: str) -> None:
    if digest not in user.password_digests:
        user.password_digests.append(digest)
    user.without_password = False


def _remove_digest(user: User, digest: str) -> None:
    if digest not in user.password_digests:
        raise NoSuchPassword
    user.password_digests.remove(digest)
