"""CONFIG: the directives asked for and changed while the server runs, and the counts set back."""

from __future__ import annotations

from commands.context import Context
from commands.errors import SyntaxProblem
from commands.help import help_lines
from commands.replies import OK, Reply
from commands.table import command, container

container(
    "CONFIG", group="server", since="2.0.0", summary="A container for configuration commands."
)

_FLAGS = "admin noscript loading stale"


@command(
    "CONFIG|GET",
    arity=-3,
    flags=_FLAGS,
    group="server",
    since="2.0.0",
    complexity="O(N) for N patterns",
    syntax="parameter [parameter ...]",
)
async def get(context: Context, words: list[bytes]) -> Reply:
    """Tells the values of all directives whose name is given or fits a glob pattern."""
    return context.server.configuration.get(words[2:])


@command(
    "CONFIG|SET",
    arity=-4,
    flags=_FLAGS,
    group="server",
    since="2.0.0",
    complexity="O(N) for N directives",
    syntax="parameter value [parameter value ...]",
    tips="request_policy:all_nodes response_policy:all_succeeded",
)
async def set_(context: Context, words: list[bytes]) -> Reply:
    """Sets directives from now on: all of them, or none if one is refused."""
    if len(words) % 2:
        raise SyntaxProblem
    context.server.configuration.set(list(zip(words[2::2], words[3::2], strict=True)))
    return OK


@command(
    "CONFIG|REWRITE",
    arity=2,
    flags=_FLAGS,
    group="server",
    since="2.8.0",
    complexity="O(N) for N lines of the file",
)
async def rewrite(context: Context, _words: list[bytes]) -> Reply:
    """Writes the settings to the file the server was started with.

    Comments, order and included files stay as they are; what the file does not say goes to its end.
    """
    context.server.configuration.rewrite()
    return OK


@command(
    "CONFIG|RESETSTAT",
    arity=2,
    flags=_FLAGS,
    group="server",
    since="2.0.0",
    complexity="O(1)",
)
async def resetstat(context: Context, _words: list[bytes]) -> Reply:
    """Sets the counts that INFO tells back to zero."""
    context.server.reset_statistics()
    return OK


@command(
    "CONFIG|HELP",
    arity=2,
    flags="loading stale",
    group="server",
    since="5.0.0",
    complexity="O(1)",
)
async def help_(_context: Context, _words: list[bytes]) -> Reply:
    """Lists the subcommands of CONFIG."""
    return help_lines("CONFIG")
