"""The text of redis.conf.example, made from the tables."""

from __future__ import annotations

from resp_server.settings.directives import DIRECTIVES, Change
from resp_server.settings.fixed import FIXED

_HEAD = """\
# Colonnade's configuration: every directive with its default. Made from the tables in
# resp_server/settings by `make docs`; a test compares them.
#
#     colonnade-server /path/to/redis.conf --port 7000
#
# Sizes may be written 1k (1000 bytes), 1kb (1024), 1m, 1mb, 1g, 1gb. CONFIG SET changes what is
# not marked with "at start"; CONFIG REWRITE writes it to the file the server was started with.

# Other files are read where they are included, and may be given as *.conf; a path is taken from
# the directory the server was started in. What comes later goes over what came before.
# include /path/to/local.conf
"""
_USERS = """\
# Users, one a line, with the rules of ACL SETUSER. Either here or in aclfile.
# user alice on >password ~events* +@widecolumn
"""


def example() -> str:
    lines = _HEAD.splitlines()
    section = ""
    for directive in DIRECTIVES.values():
        if directive.section != section:
            if section == "security":
                lines += ["", *_USERS.splitlines()]
            section = directive.section
            lines += ["", _title(section)]
        text = directive.text + (" (at start)" if directive.change is not Change.LIVE else "")
        value = directive.kind.write(directive.default)
        lines += ["", *_wrapped(text), f"{directive.name} {value}"]
    lines += ["", _title("fixed"), "", *_wrapped("Directives of Redis that have one value here.")]
    reason = ""
    for fixed in FIXED.values():
        if fixed.text != reason:
            reason = fixed.text
            lines += ["", *_wrapped(reason)]
        lines.append(f"{fixed.name} {fixed.kind.write(fixed.value)}")
    return "\n".join(lines) + "\n"


def _title(section: str) -> str:
    return f"{'#' * 20} {section.upper()} {'#' * 20}"


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > 90:
            lines.append("")
        lines[-1] += f" {word}"
    return [f"#{line}" for line in lines]
