"""The line that MONITOR shows of a command, in Redis's layout, without secrets."""

from __future__ import annotations

import re
import time

from commands.client import Client
from commands.command import Command
from commands.observing.redaction import redacted

_ESCAPES = {
    b"\\": b"\\\\", b'"': b'\\"', b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t", b"\a": b"\\a",
    b"\b": b"\\b",
}  # fmt: skip
_SHOWN = [
    _ESCAPES.get(bytes([byte])) or (bytes([byte]) if 32 <= byte < 127 else b"\\x%02x" % byte)
    for byte in range(256)
]
_UNPRINTABLE = re.compile(rb'[^ -~]|["\\]')


def monitor_line(client: Client, command: Command, words: list[bytes]) -> bytes:
    """`1700000000.123456 [0 127.0.0.1:50000] "wcget" "events"`, as of now."""
    microseconds = time.time_ns() // 1000
    address = client.address.encode()
    if client.by_socket_file:
        address = b"unix:" + address.removesuffix(b":0")
    shown = b" ".join(map(quoted, redacted(command.name, words)))
    seconds, rest = divmod(microseconds, 10**6)
    return b"%d.%06d [%d %b] %b" % (seconds, rest, client.database, address, shown)


def quoted(word: bytes) -> bytes:
    """In double quotes, printable, with the escapes that redis.conf and redis-cli read."""
    if _UNPRINTABLE.search(word) is not None:
        word = b"".join(map(_SHOWN.__getitem__, word))
    return b'"%b"' % word
