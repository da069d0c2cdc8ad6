"""The errors of commands: their first word and their text, as Redis words them where it has them.

Storage has errors of its own (storage.errors); both are sent as `-CODE text`. Nothing else is
raised on purpose: any other exception is a defect.
"""

from __future__ import annotations

SHOWN_BYTES = 128
"""How much of a client's own words an error repeats, as in Redis."""


class CommandError(Exception):
    """A command that is refused. Nothing of it was done."""

    code = "ERR"


class WrongArity(CommandError):
    def __init__(self, name: str) -> None:
        super().__init__(f"wrong number of arguments for '{name}' command")


class SyntaxProblem(CommandError):
    def __init__(self) -> None:
        super().__init__("syntax error")


class NotAnInteger(CommandError):
    def __init__(self) -> None:
        super().__init__("value is not an integer or out of range")


class InvalidTimestamp(CommandError):
    def __init__(self) -> None:
        super().__init__("invalid timestamp")


class InvalidExpireTime(CommandError):
    def __init__(self, name: str) -> None:
        super().__init__(f"invalid expire time in '{name}' command")


class UnknownCommand(CommandError):
    def __init__(self, arguments: list[bytes]) -> None:
        shown = ""
        for argument in arguments[1:]:
            if len(shown) >= SHOWN_BYTES:
                break
            shown += f"'{readable(argument[: SHOWN_BYTES - len(shown)])}' "
        name = readable(arguments[0][:SHOWN_BYTES])
        super().__init__(f"unknown command '{name}', with args beginning with: {shown}")


class UnknownSubcommand(CommandError):
    def __init__(self, container: str, subcommand: bytes) -> None:
        shown = readable(subcommand[:SHOWN_BYTES])
        super().__init__(f"unknown subcommand '{shown}'. Try {container.upper()} HELP.")


class AuthenticationRequired(CommandError):
    code = "NOAUTH"

    def __init__(self) -> None:
        super().__init__("Authentication required.")


class AuthenticationRequiredForHello(CommandError):
    code = "NOAUTH"

    def __init__(self) -> None:
        super().__init__(
            "HELLO must be called with the client already authenticated, otherwise the HELLO"
            " <proto> AUTH <user> <pass> option can be used to authenticate the client and select"
            " the RESP protocol version at the same time"
        )


class WrongPassword(CommandError):
    code = "WRONGPASS"

    def __init__(self) -> None:
        super().__init__("invalid username-password pair or user is disabled.")


class NoPasswordSet(CommandError):
    def __init__(self) -> None:
        super().__init__(
            "AUTH <password> called without any password configured for the default user."
            " Are you sure your configuration is correct?"
        )


class UnsupportedProtocol(CommandError):
    code = "NOPROTO"

    def __init__(self) -> None:
        super().__init__("unsupported protocol version")


class BadProtocolNumber(CommandError):
    def __init__(self) -> None:
        super().__init__("Protocol version is not an integer or out of range")


class HelloSyntax(CommandError):
    def __init__(self, option: bytes) -> None:
        super().__init__(f"Syntax error in HELLO option '{readable(option[:SHOWN_BYTES])}'")


class BadClientName(CommandError):
    def __init__(self) -> None:
        super().__init__("Client names cannot contain spaces, newlines or special characters.")


class BadClientInfo(CommandError):
    def __init__(self, attribute: str) -> None:
        super().__init__(f"{attribute} cannot contain spaces, newlines or special characters.")


class UnknownClientInfo(CommandError):
    def __init__(self, attribute: bytes) -> None:
        super().__init__(f"Unrecognized option '{readable(attribute[:SHOWN_BYTES])}'")


class NotAnIndex(CommandError):
    def __init__(self) -> None:
        super().__init__("value is out of range, value must between -2147483648 and 2147483647")


class DatabaseOutOfRange(CommandError):
    def __init__(self) -> None:
        super().__init__("DB index is out of range")


class InternalError(CommandError):
    """Stands for an exception nobody expected: the log has its traceback."""

    def __init__(self) -> None:
        super().__init__("internal error")


def readable(raw: bytes) -> str:
    """A client's bytes as text for an error line: one line, up to a NUL as Redis has it.

    What is not UTF-8 becomes surrogates, which the encoder of error lines turns back.
    """
    shown = raw.partition(b"\x00")[0].decode("utf-8", "surrogateescape")
    return shown.replace("\r", " ").replace("\n", " ")
