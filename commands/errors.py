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
        self.command_name = name


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


class BadSubcommandUse(CommandError):
    """Where Redis does not tell a wrong subcommand from a wrong number of arguments."""

    def __init__(self, container: str, word: bytes) -> None:
        shown = readable(word[:SHOWN_BYTES])
        super().__init__(
            f"unknown subcommand or wrong number of arguments for '{shown}'. Try {container} HELP."
        )


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


# CLIENT


class BadClientIdentifier(CommandError):
    def __init__(self) -> None:
        super().__init__("Invalid client ID")


class UnknownClientType(CommandError):
    def __init__(self, name: bytes) -> None:
        super().__init__(f"Unknown client type '{readable(name[:SHOWN_BYTES])}'")


class NoSuchClient(CommandError):
    def __init__(self) -> None:
        super().__init__("No such client")


class BadKillIdentifier(CommandError):
    def __init__(self) -> None:
        super().__init__("client-id should be greater than 0")


class NoSuchUser(CommandError):
    def __init__(self, name: bytes) -> None:
        super().__init__(f"No such user '{readable(name[:SHOWN_BYTES])}'")


class BadPauseMode(CommandError):
    def __init__(self) -> None:
        super().__init__("CLIENT PAUSE mode must be WRITE or ALL")


class BadTimeout(CommandError):
    def __init__(self) -> None:
        super().__init__("timeout is not an integer or out of range")


class NegativeTimeout(CommandError):
    def __init__(self) -> None:
        super().__init__("timeout is negative")


class BadUnblockReason(CommandError):
    def __init__(self) -> None:
        super().__init__("CLIENT UNBLOCK reason should be TIMEOUT or ERROR")


class ClientUnblocked(CommandError):
    code = "UNBLOCKED"

    def __init__(self) -> None:
        super().__init__("client unblocked via CLIENT UNBLOCK")


class TrackingUnsupported(CommandError):
    def __init__(self) -> None:
        super().__init__("client side caching (CLIENT TRACKING) is not supported by this server")


class NotTracking(CommandError):
    def __init__(self) -> None:
        super().__init__(
            "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or"
            " OPTOUT mode enabled"
        )


# Transactions


class NestedMulti(CommandError):
    def __init__(self) -> None:
        super().__init__("MULTI calls can not be nested")


class ExecWithoutMulti(CommandError):
    def __init__(self) -> None:
        super().__init__("EXEC without MULTI")


class DiscardWithoutMulti(CommandError):
    def __init__(self) -> None:
        super().__init__("DISCARD without MULTI")


class WatchInsideMulti(CommandError):
    def __init__(self) -> None:
        super().__init__("WATCH inside MULTI is not allowed")


class NotInTransaction(CommandError):
    def __init__(self) -> None:
        super().__init__("Command not allowed inside a transaction")


class TransactionDiscarded(CommandError):
    """`reason` is why EXEC itself was refused; without one, an earlier command was."""

    code = "EXECABORT"

    def __init__(self, reason: CommandError | None = None) -> None:
        if reason is None:
            super().__init__("Transaction discarded because of previous errors.")
        else:
            code = "" if reason.code == "ERR" else f"{reason.code} "
            super().__init__(f"Transaction discarded because of: {code}{reason}")


# COMMAND


class NotACommand(CommandError):
    def __init__(self) -> None:
        super().__init__("Invalid command specified")


class BadArgumentCount(CommandError):
    def __init__(self) -> None:
        super().__init__("Invalid number of arguments specified for command")


class NoKeyArguments(CommandError):
    def __init__(self) -> None:
        super().__init__("The command has no key arguments")


# The server


class ClusterDisabled(CommandError):
    def __init__(self) -> None:
        super().__init__("This instance has cluster support disabled")


class ReplicationUnsupported(CommandError):
    def __init__(self) -> None:
        super().__init__("replication is not supported by this server")


class BadMasterPort(CommandError):
    def __init__(self) -> None:
        super().__init__("Invalid master port")


class NoShutdown(CommandError):
    def __init__(self) -> None:
        super().__init__("No shutdown in progress.")


class DebugDisabled(CommandError):
    def __init__(self) -> None:
        super().__init__(
            'DEBUG command not allowed. If the enable-debug-command option is set to "local", you'
            " can run it from a local connection, otherwise you need to set this option in the"
            " configuration file, and then restart the server."
        )


class NotWhileExecuting(CommandError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name} isn't allowed for DENY BLOCKING client")


class ShardSubscriptionWhileExecuting(CommandError):
    def __init__(self) -> None:
        super().__init__("SSUBSCRIBE isn't allowed for a DENY BLOCKING client")


class BadDatabaseIndex(CommandError):
    def __init__(self, which: str) -> None:
        super().__init__(f"invalid {which} DB index")


class NoLocalLog(CommandError):
    def __init__(self) -> None:
        super().__init__("WAITAOF cannot be used when numlocal is set but appendonly is disabled.")


class OutOfRange(CommandError):
    def __init__(self, bounds: str) -> None:
        super().__init__(f"value is out of range, {bounds}")


class InvalidCursor(CommandError):
    def __init__(self) -> None:
        super().__init__("invalid cursor")


# Conditions of the server and the connection


class OnlySubscribing(CommandError):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET"
            " are allowed in this context"
        )


class NoPermission(CommandError):
    code = "NOPERM"

    def __init__(self, reason: str, name: str) -> None:
        what = {
            "command": f"to run the '{name}' command",
            "key": "to access one of the keys used as arguments",
            "channel": "to access one of the channels used as arguments",
        }
        super().__init__(f"this user has no permissions {what[reason]}")


# Access control


class RuleProblem(CommandError):
    """Why a rule of the ACL language cannot be applied; who applies it says where it stands."""


class UnknownInRule(RuleProblem):
    def __init__(self) -> None:
        super().__init__("Unknown command or category name in ACL")


class RuleSyntax(RuleProblem):
    def __init__(self) -> None:
        super().__init__("Syntax error")


class AllKeysAlready(RuleProblem):
    def __init__(self) -> None:
        super().__init__(
            "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not"
            " have any effect. Try 'resetkeys' to start with an empty list of patterns"
        )


class AllChannelsAlready(RuleProblem):
    def __init__(self) -> None:
        super().__init__(
            "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does"
            " not have any effect. Try 'resetchannels' to start with an empty list of channels"
        )


class NoSuchPassword(RuleProblem):
    def __init__(self) -> None:
        super().__init__("The password you are trying to remove from the user does not exist")


class BadPasswordHash(RuleProblem):
    def __init__(self) -> None:
        super().__init__(
            "The password hash must be exactly 64 characters and contain only lowercase hexadecimal"
            " characters"
        )


class ArgumentOfSubcommand(RuleProblem):
    def __init__(self) -> None:
        super().__init__("Allowing first-arg of a subcommand is not supported")


class DuplicateUser(RuleProblem):
    def __init__(self) -> None:
        super().__init__("Duplicate user found. A user can only be defined once in config files")


class RefusedRule(CommandError):
    def __init__(self, rule: bytes, problem: RuleProblem) -> None:
        super().__init__(f"Error in ACL SETUSER modifier '{readable(rule)}': {problem}")


class UnmatchedParenthesis(CommandError):
    def __init__(self, rule: bytes) -> None:
        super().__init__(f"Unmatched parenthesis in acl selector starting at '{readable(rule)}'.")


class BadUserName(CommandError):
    def __init__(self) -> None:
        super().__init__("Usernames can't contain spaces or null characters")


class DefaultUserStays(CommandError):
    def __init__(self) -> None:
        super().__init__("The 'default' user cannot be removed")


class UserNotFound(CommandError):
    def __init__(self, name: bytes) -> None:
        super().__init__(f"User '{readable(name)}' not found")


class CommandNotFound(CommandError):
    def __init__(self, name: bytes) -> None:
        super().__init__(f"Command '{readable(name)}' not found")


class UnknownCategory(CommandError):
    def __init__(self, name: bytes) -> None:
        super().__init__(f"Unknown category '{readable(name[:SHOWN_BYTES])}'")


class BadPasswordBits(CommandError):
    def __init__(self, most: int) -> None:
        super().__init__(
            "ACL GENPASS argument must be the number of bits for the output password, a positive"
            f" number up to {most}"
        )


class BadAclSubcommand(CommandError):
    """One that the arity lets pass, but not its number of words."""

    def __init__(self, subcommand: bytes) -> None:
        super().__init__(
            f"unknown subcommand or wrong number of arguments for '{readable(subcommand)}'."
            " Try ACL HELP."
        )


class NoAclFile(CommandError):
    def __init__(self) -> None:
        super().__init__(
            "This Redis instance is not configured to use an ACL file. You may want to specify"
            " users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have"
            " a Redis configuration file set) in order to store users in the Redis configuration."
        )


class AclFileNotRead(CommandError):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"Error loading ACLs, opening file '{path}': {why}")


class AclFileRefused(CommandError):
    """`problems` is one line that names the file's lines."""

    def __init__(self, problems: str) -> None:
        super().__init__(
            f"{problems}WARNING: ACL errors detected, no change to the previously active ACL rules"
            " was performed"
        )


class AclFileNotWritten(CommandError):
    def __init__(self) -> None:
        super().__init__(
            "There was an error trying to save the ACLs. Please check the server logs for more"
            " information"
        )


class RefusedUserLine(CommandError):
    """A `user` line of the configuration; `words` is what of it is wrong."""

    def __init__(self, words: bytes, problem: CommandError) -> None:
        super().__init__(f"Error in user declaration '{readable(words)}': {problem}")


class UsersInTwoPlaces(CommandError):
    def __init__(self) -> None:
        super().__init__(
            "users are declared in the configuration and an ACL file is named too: declare them"
            " either there or here, not in both"
        )


# What the server tells of itself


class BadSlowLogCount(CommandError):
    def __init__(self) -> None:
        super().__init__("count should be greater than or equal to -1")


class SlowLogArity(CommandError):
    def __init__(self, subcommand: bytes) -> None:
        super().__init__(
            "unknown subcommand or wrong number of arguments for"
            f" '{readable(subcommand[:SHOWN_BYTES])}'. Try SLOWLOG HELP."
        )


class NoLatencySamples(CommandError):
    def __init__(self, event: bytes) -> None:
        shown = readable(event[:SHOWN_BYTES])
        super().__init__(f"No samples available for event '{shown}'")


# Configuration


class UnknownSetting(CommandError):
    def __init__(self, name: bytes) -> None:
        super().__init__(
            f"Unknown option or number of arguments for CONFIG SET - '{readable(name)}'"
        )


class SettingRefused(CommandError):
    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"CONFIG SET failed (possibly related to argument '{name}') - {why}")


class NoConfigurationFile(CommandError):
    def __init__(self) -> None:
        super().__init__("The server is running without a config file")


class CannotRewrite(CommandError):
    def __init__(self, why: str) -> None:
        super().__init__(f"Rewriting config file: {why}")


# Connections that are refused


class ProtectedModeDenial(CommandError):
    """Of a connection, not of a command: it is sent at once, and the connection ends."""

    code = "DENIED"

    def __init__(self) -> None:
        super().__init__(
            "Redis is running in protected mode because protected mode is enabled and no password"
            " is set for the default user. In this mode connections are only accepted from the"
            " loopback interface. If you want to connect from external computers to Redis you may"
            " adopt one of the following solutions: 1) Just disable protected mode sending the"
            " command 'CONFIG SET protected-mode no' from the loopback interface by connecting to"
            " Redis from the same host the server is running, however MAKE SURE Redis is not"
            " publicly accessible from internet if you do so. Use CONFIG REWRITE to make this"
            " change permanent. 2) Alternatively you can just disable the protected mode by editing"
            " the Redis configuration file, and setting the protected mode option to 'no', and then"
            " restarting the server. 3) If you started the server manually just for testing,"
            " restart it with the '--protected-mode no' option. 4) Setup a an authentication"
            " password for the default user. NOTE: You only need to do one of the above things in"
            " order for the server to start accepting connections from the outside."
        )


class NoPermissionAnyMore(CommandError):
    """A queued command that the user may not run by the time of EXEC."""

    code = "NOPERM"

    def __init__(self, reason: str) -> None:
        why = {
            "command": "no permission to execute the command or subcommand",
            "key": "no permission to touch the specified keys",
            "channel": "no permission to access one of the channels used as arguments to the"
            " command",
        }
        super().__init__(
            "ACLs rules changed between the moment the transaction was accumulated and the EXEC"
            " call. This command is no longer allowed for the following reason: " + why[reason]
        )


# Functions


class NoLibraryName(CommandError):
    def __init__(self) -> None:
        super().__init__("library name argument was not given")


class UnknownArgument(CommandError):
    def __init__(self, word: bytes) -> None:
        super().__init__(f"Unknown argument {readable(word[:SHOWN_BYTES])}")


class BadFunctionFlush(CommandError):
    def __init__(self) -> None:
        super().__init__("FUNCTION FLUSH only supports SYNC|ASYNC option")


# Saving


class ReadOnlyServer(CommandError):
    code = "READONLY"

    def __init__(self) -> None:
        super().__init__("You can't write against a read only replica.")


class SaveInProgress(CommandError):
    def __init__(self) -> None:
        super().__init__("Background save already in progress")


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
