"""Words of a command without its passwords, for the slow log and for clients that monitor.

As Redis has it, a password is "(redacted)", and so is everything in a rule of ACL SETUSER. Words
that are refused, and may hold a password in the wrong place, are rather hidden once too often.
"""

from __future__ import annotations

from collections.abc import Callable

REDACTED = b"(redacted)"
SECRET_DIRECTIVES = frozenset(
    (
        b"requirepass",
        b"masterauth",
        b"masteruser",
        b"tls-key-file-pass",
        b"tls-client-key-file-pass",
    )
)
_CONTAINERS = frozenset((b"acl", b"config"))
"""Those with a subcommand that takes a password."""


def name_of(words: list[bytes]) -> str:
    """The command's name as far as redaction needs it: `auth`, `config|set`."""
    name = words[0].lower()
    if name in _CONTAINERS and len(words) > 1:
        name += b"|" + words[1].lower()
    return name.decode("latin-1")


def redacted(command_name: str, words: list[bytes]) -> list[bytes]:
    """The words with their secrets hidden; the same list when the command takes none.

    `command_name` is that of the command table: lower case, `container|subcommand`.
    """
    hide = _SECRETS.get(command_name)
    return words if hide is None else hide(words)


def _hidden_from(start: int) -> Callable[[list[bytes]], list[bytes]]:
    def hide(words: list[bytes]) -> list[bytes]:
        return words[:start] + [REDACTED] * len(words[start:])

    return hide


def _hello(words: list[bytes]) -> list[bytes]:
    shown = list(words)
    index = 1
    while index < len(shown):
        option = shown[index].upper()
        if option == b"AUTH":
            shown[index + 1 : index + 3] = [REDACTED] * len(shown[index + 1 : index + 3])
            index += 2
        elif option == b"SETNAME":
            index += 1
        index += 1
    return shown


def _config_set(words: list[bytes]) -> list[bytes]:
    shown = list(words)
    for index in range(2, len(words) - 1, 2):
        if words[index].lower() in SECRET_DIRECTIVES:
            shown[index + 1] = REDACTED
    return shown


def _acl_dryrun(words: list[bytes]) -> list[bytes]:
    """Its words from the fourth on are a command of their own."""
    inner = words[3:]
    return words[:3] + redacted(name_of(inner), inner) if inner else words


_SECRETS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "auth": _hidden_from(1),
    "hello": _hello,
    "config|set": _config_set,
    "acl|setuser": _hidden_from(2),
    "acl|dryrun": _acl_dryrun,
}
