"""Values -> RESP bytes: with its twin _reply.pyx the one module that writes the protocol.

A table of exact types for RESP2 and one for RESP3; a type that is in neither is a defect. See
commands.replies for what handlers return. Knows nothing of commands or sockets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from commands.replies import (
    Failure,
    Flags,
    Kept,
    Messages,
    NullArray,
    Push,
    Status,
    Verbatim,
    Written,
)
from storage.compiled import twin
from storage.model import Packed
from storage.packed import unpacked

Parts = list[bytes]
Writer = Callable[[Any, Parts], None]
Encode = Callable[[Any], bytes]

_SMALL_INTEGERS = tuple(b":%d\r\n" % number for number in range(1024))


def encode_error(code: str, text: str) -> bytes:
    """An error line. Line ends in the text would put every later reply out of step."""
    line = f"-{code} {text}".replace("\r", " ").replace("\n", " ")
    return line.encode("utf-8", "surrogateescape") + b"\r\n"


class Encoder:
    """Writes values in one version of the protocol."""

    __slots__ = ("_writers",)

    def __init__(self, protocol: int) -> None:
        self._writers: dict[type, Writer] = {
            int: _write_integer,
            bytes: _write_bulk,
            Status: _write_status,
            list: self._write_array,
            tuple: self._write_array,
            float: _write_double if protocol == 3 else _write_double_as_bulk,
            Messages: self._write_messages,
            Failure: _write_failure,
            Packed: self._write_packed,
            Kept: self._write_kept,
            Written: _write_written,
        }
        if protocol == 2:
            self._writers |= {
                type(None): _write_null_bulk,
                Verbatim: _write_bulk,
                Flags: self._write_array,
                dict: self._write_map_as_array,
                Push: self._write_array,
                NullArray: _write_null_array,
            }
        else:
            self._writers |= {
                type(None): _write_null,
                Verbatim: _write_verbatim,
                Flags: self._write_set,
                dict: self._write_map,
                Push: self._write_push,
                NullArray: _write_null,
            }

    def encode(self, value: Any) -> bytes:
        if type(value) is int and 0 <= value < 1024:
            return _SMALL_INTEGERS[value]
        parts: Parts = []
        self._writers[type(value)](value, parts)
        return b"".join(parts)

    def _write_all(self, values: Any, parts: Parts) -> None:
        writers = self._writers
        for value in values:
            writers[type(value)](value, parts)

    def _write_array(self, values: Any, parts: Parts) -> None:
        parts.append(b"*%d\r\n" % len(values))
        self._write_all(values, parts)

    def _write_set(self, values: Any, parts: Parts) -> None:
        parts.append(b"~%d\r\n" % len(values))
        self._write_all(values, parts)

    def _write_push(self, values: Any, parts: Parts) -> None:
        parts.append(b">%d\r\n" % len(values))
        self._write_all(values, parts)

    def _write_messages(self, messages: Any, parts: Parts) -> None:
        self._write_all(messages, parts)

    def _write_packed(self, columns: Packed, parts: Parts) -> None:
        self._write_array(unpacked(columns), parts)

    def _write_kept(self, reply: Kept, parts: Parts) -> None:
        encoded = self.encode(reply.value)
        reply.keep(encoded)
        parts.append(encoded)

    def _write_map(self, values: Any, parts: Parts) -> None:
        parts.append(b"%%%d\r\n" % len(values))
        for pair in values.items():
            self._write_all(pair, parts)

    def _write_map_as_array(self, values: Any, parts: Parts) -> None:
        parts.append(b"*%d\r\n" % (2 * len(values)))
        for pair in values.items():
            self._write_all(pair, parts)


def _write_integer(value: int, parts: Parts) -> None:
    parts.append(b":%d\r\n" % value)


def _write_bulk(value: bytes, parts: Parts) -> None:
    parts.append(b"$%d\r\n%b\r\n" % (len(value), value))


def _write_status(value: bytes, parts: Parts) -> None:
    parts.append(b"+%b\r\n" % value)


def _write_verbatim(value: bytes, parts: Parts) -> None:
    parts.append(b"=%d\r\ntxt:%b\r\n" % (len(value) + 4, value))


def _write_failure(value: Failure, parts: Parts) -> None:
    parts.append(encode_error(value.code, value.text))


def _write_double(value: float, parts: Parts) -> None:
    parts.append(b",%b\r\n" % _written_double(value))


def _write_double_as_bulk(value: float, parts: Parts) -> None:
    _write_bulk(_written_double(value), parts)


def _written_double(value: float) -> bytes:
    return (repr(int(value)) if value.is_integer() else f"{value:.17g}").encode()


def _write_written(value: Written, parts: Parts) -> None:
    parts.append(value.encoded)


def _write_null(_value: None, parts: Parts) -> None:
    parts.append(b"_\r\n")


def _write_null_array(_value: NullArray, parts: Parts) -> None:
    parts.append(b"*-1\r\n")


def _write_null_bulk(_value: None, parts: Parts) -> None:
    parts.append(b"$-1\r\n")


class Encodes(Protocol):
    """An encoder, in Python or compiled."""

    def encode(self, value: Any) -> bytes: ...


_compiled: Callable[[int, Encode], Encodes] | None = twin("resp_server._reply", "Encoder", None)


def _encoder(protocol: int) -> Encodes:
    # The compiled one knows what is frequent, and asks the one in Python for all else.
    python = Encoder(protocol)
    return python if _compiled is None else _compiled(protocol, python.encode)


ENCODERS = {2: _encoder(2), 3: _encoder(3)}
