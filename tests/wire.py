"""Connections that send and read bytes as they are, to ours and to a real redis-server."""

from __future__ import annotations

import re
import selectors
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any, Protocol, Self

import hiredis

from tests.harness import ServerProcess, free_port, until

Word = bytes | str | int
MEGABYTE = 1024 * 1024
MEMORY_LIMIT = 300 * MEGABYTE
"""What a server may take while it is mistreated."""
PATIENCE_SECONDS = 15.0


def encode(*words: Word) -> bytes:
    """A command as an array of bulk strings."""
    raw = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in raw)


class Listening(Protocol):
    """Something one can connect to."""

    def raw(self, timeout: float = ...) -> socket.socket: ...


class Wire:
    """A raw connection: bytes as they are, or replies as hiredis reads them."""

    def __init__(self, server: Listening) -> None:
        self.socket = server.raw(timeout=PATIENCE_SECONDS)
        self._reader = hiredis.Reader(notEnoughData=self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """End the connection with a RST, as a client that is killed may."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, *data: bytes) -> None:
        self.socket.sendall(b"".join(data))

    def read(self, count: int) -> list[Any]:
        """The next replies. An error among them is a hiredis.ReplyError."""
        replies: list[Any] = []
        while len(replies) < count:
            reply = self._reader.gets()
            if reply is self:
                data = self.socket.recv(MEGABYTE)
                assert data, f"the connection ended after {len(replies)} of {count} replies"
                self._reader.feed(data)
            else:
                replies.append(reply)
        return replies

    def call(self, *words: Word) -> Any:
        self.send(encode(*words))
        (reply,) = self.read(1)
        return reply

    def exchange(self, data: bytes, count: int) -> list[Any]:
        """Send while reading, so that neither side waits for the other; all replies."""
        replies: list[Any] = []
        left = memoryview(data)
        self.socket.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while len(replies) < count:
                ready = selector.select(PATIENCE_SECONDS)
                assert ready, f"silence after {len(replies)} of {count} replies"
                if ready[0][1] & selectors.EVENT_WRITE:
                    left = left[self.socket.send(left) :]
                    if not left:
                        selector.modify(self.socket, selectors.EVENT_READ)
                if ready[0][1] & selectors.EVENT_READ:
                    self._reader.feed(self.socket.recv(MEGABYTE))
                    while (reply := self._reader.gets()) is not self:
                        replies.append(reply)
        self.socket.settimeout(PATIENCE_SECONDS)
        return replies

    def read_to_end(self) -> bytes:
        """All bytes until the server closes. What was read as replies is not among them."""
        return b"".join(iter(self._receive, b""))

    def read_until(self, end: bytes) -> bytes:
        """All bytes up to these, or to the server's close."""
        data = b""
        while not data.endswith(end) and (piece := self._receive()):
            data += piece
        return data

    def _receive(self) -> bytes:
        """Some bytes; none at the end. A server that closes before it read all sends a RST."""
        try:
            return self.socket.recv(MEGABYTE)
        except ConnectionResetError:
            return b""

    def has_something_to_read(self) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            return bool(selector.select(0))


class RealRedis:
    """A redis-server on loopback."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.port = free_port()
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", ""]
        self.process = subprocess.Popen(
            [*command, "--dir", str(directory), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        until(self._answers)

    def _answers(self) -> bool:
        try:
            with self.raw() as probe:
                probe.sendall(b"PING\r\n")
                return bool(probe.recv(1))
        except OSError:
            return False

    def raw(self, timeout: float = PATIENCE_SECONDS) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=60)


def resident_bytes(server: ServerProcess, line: str = "VmHWM") -> int:
    """The server's resident memory: VmRSS now, VmHWM its peak."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    (kilobytes,) = re.findall(rf"{line}:\s+(\d+) kB", status)
    return int(kilobytes) * 1024
