"""redis.conf: any text is refused with BadSetting, or gives settings that survive a rewriting.

CONFIG SET is asked for the same words. The users that the text declares go through the rewriting
too. Lines with `include` are left out: what they read is not the input's to say.
"""

from __future__ import annotations

import copy

from commands.access.users import Users
from commands.errors import CommandError
from resp_server.configuration import Configuration
from resp_server.rewriting import rewritten
from resp_server.settings import (
    DIRECTIVES,
    FIXED,
    BadSetting,
    Settings,
    apply_text,
    example,
    from_command_line,
    split_line,
)
from tests.fuzz.target import Target
from tests.fuzz.users import new_users


def run(data: bytes) -> None:
    text = without_includes(data.decode("utf-8", "surrogateescape"))
    set_each(text)
    start_with(text)
    settings = Settings()
    try:
        apply_text(settings, text, "redis.conf")
    except BadSetting as refusal:
        assert "redis.conf, line " in str(refusal)
        check_rewriting(text, Settings(), new_users())
        return
    check_rewriting(text, settings, users_of(settings) or new_users())


def without_includes(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if words_of(line)[:1] != ["include"])


def words_of(line: str) -> list[str]:
    """With the name in lower case; none of a line that cannot be read."""
    try:
        words = split_line(line)
    except BadSetting:
        return []
    return [words[0].lower(), *words[1:]] if words else []


def users_of(settings: Settings) -> Users | None:
    """None when they are refused."""
    users = new_users()
    users.set_default_password(_encoded(settings.requirepass))
    try:
        users.start([[_encoded(word) for word in words] for words in settings.user], "")
    except CommandError:
        return None
    return users


def check_rewriting(text: str, settings: Settings, users: Users) -> None:
    """Of the text as it is, and of none: what comes of it gives the same settings and users."""
    lines = [user.line() for user in users.all()]
    decoded = [line.decode("utf-8", "surrogateescape") for line in lines]
    for old in (text, ""):
        new = rewritten(old, settings, decoded, {line.split(" ")[1] for line in decoded})
        again = Settings()
        apply_text(again, new, "rewritten")
        for directive in DIRECTIVES.values():
            assert getattr(again, directive.attribute) == getattr(settings, directive.attribute), (
                directive.name
            )
        restarted = users_of(again)
        assert restarted is not None
        assert [user.line() for user in restarted.all()] == lines
        assert rewritten(new, again, decoded, set()) == new


def set_each(text: str) -> None:
    """CONFIG SET of each line, and CONFIG GET of all that came of it."""
    settings = Settings()
    configuration = Configuration(settings)
    for line in text.split("\n"):
        words = words_of(line)
        if len(words) < 2:
            continue
        name, value = _encoded(words[0]), _encoded(" ".join(words[1:]))
        before = copy.copy(settings)
        try:
            configuration.set([(name, value)])
        except CommandError:
            assert settings == before
        else:
            assert name in configuration.get([name])
        configuration.get([name, value])
    configuration.get([b"*"])


def start_with(text: str) -> None:
    """The first lines as words of a command line."""
    words = [word for line in text.split("\n")[:4] for word in line.split(" ")]
    if not words[0].startswith("-") or "-" in words or "include" in text.lower():
        return
    try:
        from_command_line(words)
    except BadSetting as refusal:
        assert str(refusal)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


_LINES = [line.encode() for line in example().splitlines() if line and not line.startswith("#")]
TARGET = Target(
    run,
    tokens=(
        *_LINES, *(name.encode() for name in (*DIRECTIVES, *FIXED)),
        b"\n", b'"', b"'", b'""', b"\\x00", b"\\n", b"\xff", b"\xc2\x85", b"\xe2\x80\xa8", b"#",
        b"user ",
        b"user alice on >pw ~a* &* +@all -@dangerous (+get ~x)", b"nopass", b"yes", b"no", b"1gb",
        b"-1",
        b"9223372036854775807", b"4294967295", b"1.5", b"1e3", b"::1", b"*", b"--port", b"KEA",
        b"normal 0 0 0", b"slave 1mb 1mb 1", b"pubsub 32mb 8mb 60", b"TLSv1.2 TLSv1.3", b"99.9",
    ),
    max_bytes=1000,
)  # fmt: skip
