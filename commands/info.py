"""INFO: what the server tells of itself, in sections."""

from __future__ import annotations

from collections.abc import Mapping

from commands.context import Context
from commands.replies import Reply, Verbatim
from commands.table import command


@command(
    "INFO",
    arity=-1,
    flags="loading stale",
    group="server",
    categories="dangerous",
    since="1.0.0",
    complexity="O(1)",
    syntax="[section [section ...]]",
    tips="nondeterministic_output request_policy:all_shards response_policy:special",
)
async def info(context: Context, words: list[bytes]) -> Reply:
    """Tells about the server, in sections."""
    wanted = {word.lower() for word in words[1:]} or {b"default"}
    found = await context.server.information(
        frozenset(word.decode("latin-1") for word in wanted), context.client
    )
    sections = [_section(title, fields) for title, fields in found.items()]
    return Verbatim("\r\n".join(sections).encode())


def _section(title: str, fields: Mapping[str, object]) -> str:
    lines = [f"# {title}", *(f"{name}:{value}" for name, value in fields.items())]
    return "".join(f"{line}\r\n" for line in lines)
