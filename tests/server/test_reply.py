"""Replies, byte for byte: each type of value in RESP2 and in RESP3, errors, and what has no form.

What a stock parser (hiredis) makes of nested replies is compared with the values, so that the
counts in the headers are right at every depth.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.replies import OK, PONG, RESET, Flags, Status, Verbatim
from resp_server.reply import ENCODERS, Encoder, encode_error
from storage.model import Packed
from storage.packed import CELL, COLUMN, NO_VALUE, unpacked

FORMS = [
    (0, b":0\r\n", b":0\r\n"),
    (1, b":1\r\n", b":1\r\n"),
    (-1, b":-1\r\n", b":-1\r\n"),
    (1023, b":1023\r\n", b":1023\r\n"),
    (1024, b":1024\r\n", b":1024\r\n"),
    (2**63 - 1, b":9223372036854775807\r\n", b":9223372036854775807\r\n"),
    (-(2**63), b":-9223372036854775808\r\n", b":-9223372036854775808\r\n"),
    (b"", b"$0\r\n\r\n", b"$0\r\n\r\n"),
    (b"abc", b"$3\r\nabc\r\n", b"$3\r\nabc\r\n"),
    (b"\x00\r\n\xff", b"$4\r\n\x00\r\n\xff\r\n", b"$4\r\n\x00\r\n\xff\r\n"),
    (b"%d\r\n", b"$4\r\n%d\r\n\r\n", b"$4\r\n%d\r\n\r\n"),
    (Status(b"OK"), b"+OK\r\n", b"+OK\r\n"),
    (OK, b"+OK\r\n", b"+OK\r\n"),
    (PONG, b"+PONG\r\n", b"+PONG\r\n"),
    (RESET, b"+RESET\r\n", b"+RESET\r\n"),
    (None, b"$-1\r\n", b"_\r\n"),
    ([], b"*0\r\n", b"*0\r\n"),
    ((), b"*0\r\n", b"*0\r\n"),
    ([1, b"a", None], b"*3\r\n:1\r\n$1\r\na\r\n$-1\r\n", b"*3\r\n:1\r\n$1\r\na\r\n_\r\n"),
    ((b"0", []), b"*2\r\n$1\r\n0\r\n*0\r\n", b"*2\r\n$1\r\n0\r\n*0\r\n"),
    ([[], [[]]], b"*2\r\n*0\r\n*1\r\n*0\r\n", b"*2\r\n*0\r\n*1\r\n*0\r\n"),
    ({}, b"*0\r\n", b"%0\r\n"),
    (
        {b"a": 1, b"b": [b"c"]},
        b"*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n$1\r\nc\r\n",
        b"%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n$1\r\nc\r\n",
    ),
    ({b"a": {b"b": {}}}, b"*2\r\n$1\r\na\r\n*2\r\n$1\r\nb\r\n*0\r\n",
     b"%1\r\n$1\r\na\r\n%1\r\n$1\r\nb\r\n%0\r\n"),
    (Flags([]), b"*0\r\n", b"~0\r\n"),
    (Flags([Status(b"write"), b"x"]), b"*2\r\n+write\r\n$1\r\nx\r\n",
     b"~2\r\n+write\r\n$1\r\nx\r\n"),
    (Verbatim(b""), b"$0\r\n\r\n", b"=4\r\ntxt:\r\n"),
    (Verbatim(b"# A\r\nb:1\r\n"), b"$10\r\n# A\r\nb:1\r\n\r\n", b"=14\r\ntxt:# A\r\nb:1\r\n\r\n"),
    ([Verbatim(b"v"), Flags([b"f"]), {b"m": None}],
     b"*3\r\n$1\r\nv\r\n*1\r\n$1\r\nf\r\n*2\r\n$1\r\nm\r\n$-1\r\n",
     b"*3\r\n=5\r\ntxt:v\r\n~1\r\n$1\r\nf\r\n%1\r\n$1\r\nm\r\n_\r\n"),
]  # fmt: skip


class OtherBytes(bytes):
    """A type the table does not know, though it is bytes."""


WITHOUT_FORM = [
    True, "text", bytearray(b"x"), memoryview(b"x"), Decimal(1), {1, 2}, frozenset(), object(),
    OtherBytes(b"x"), range(3), NotImplemented,
]  # fmt: skip


@pytest.mark.parametrize(("value", "resp2", "resp3"), FORMS, ids=[repr(form[0]) for form in FORMS])
def test_each_type_has_its_form(value: Any, resp2: bytes, resp3: bytes) -> None:
    assert ENCODERS[2].encode(value) == resp2
    assert ENCODERS[3].encode(value) == resp3


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("value", WITHOUT_FORM, ids=lambda value: type(value).__name__)
def test_a_type_without_form_is_refused_at_any_depth(protocol: int, value: object) -> None:
    encoder = ENCODERS[protocol]
    for shape in (value, [value], [[b"a"], (value,)], {b"a": value}, Flags([value])):
        with pytest.raises(KeyError):
            encoder.encode(shape)
    assert encoder.encode([b"a"]) == b"*1\r\n$1\r\na\r\n"


@pytest.mark.parametrize(
    ("code", "text", "line"),
    [
        ("ERR", "syntax error", b"-ERR syntax error\r\n"),
        ("ERR", "", b"-ERR \r\n"),
        ("NODATASET", "no such dataset 'x'", b"-NODATASET no such dataset 'x'\r\n"),
        ("ERR", "a\r\n+OK\r\nb", b"-ERR a  +OK  b\r\n"),
        ("IOERR", "two\nlines\r", b"-IOERR two lines \r\n"),
        ("E\nRR", "x", b"-E RR x\r\n"),
        ("ERR", "é", "-ERR é\r\n".encode()),
        ("ERR", "a\udcffb", b"-ERR a\xffb\r\n"),
        ("ERR", "a\x00b", b"-ERR a\x00b\r\n"),
    ],
)
def test_an_error_is_one_line(code: str, text: str, line: bytes) -> None:
    assert encode_error(code, text) == line


@given(st.text())
def test_no_text_makes_an_error_more_than_one_line(text: str) -> None:
    line = encode_error("ERR", text)
    assert line.startswith(b"-ERR ")
    assert line.endswith(b"\r\n")
    assert b"\r" not in line[:-2]
    assert b"\n" not in line[:-2]


scalars = st.none() | st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=20)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.binary(max_size=5), inner, max_size=3)
        | st.lists(st.binary(max_size=5), max_size=3, unique=True).map(Flags)
        | st.binary(max_size=9).map(Verbatim)
        | st.sampled_from([OK, PONG])
    ),
    max_leaves=12,
)


def as_read(value: Any, protocol: int) -> Any:
    """What hiredis makes of a value's reply; it gives sets as lists."""
    if isinstance(value, dict):
        pairs = [(key, as_read(item, protocol)) for key, item in value.items()]
        return dict(pairs) if protocol == 3 else [part for pair in pairs for part in pair]
    if isinstance(value, list | tuple):
        return [as_read(item, protocol) for item in value]
    return bytes(value) if isinstance(value, bytes) else value


@pytest.mark.parametrize("protocol", [2, 3])
@given(value=values)
def test_a_stock_parser_reads_back_what_was_said(protocol: int, value: Any) -> None:
    reader = hiredis.Reader()
    encoded = ENCODERS[protocol].encode(value)
    reader.feed(encoded)
    assert reader.gets() == as_read(value, protocol)
    assert not reader.has_data()


CELLS = st.one_of(
    st.lists(st.tuples(st.integers(0, 2**63 - 1), st.binary(max_size=40)), min_size=1, max_size=5),
    st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5),
)


def packed(columns: list[tuple[bytes, Any]]) -> Packed:
    data = []
    for name, cells in columns:
        data += [COLUMN.pack(len(name), len(cells)), name]
        for cell in cells:
            timestamp, value = cell if isinstance(cell, tuple) else (cell, None)
            length = NO_VALUE if value is None else len(value)
            data += [CELL.pack(timestamp, length), value or b""]
    return Packed(len(columns), b"".join(data))


@pytest.mark.parametrize("protocol", [2, 3])
@given(columns=st.lists(st.tuples(st.binary(max_size=20), CELLS), max_size=8))
def test_packed_columns_are_written_as_the_same_in_objects(
    protocol: int, columns: list[tuple[bytes, Any]]
) -> None:
    assert unpacked(packed(columns)) == columns
    page = (b"0", packed(columns))
    assert ENCODERS[protocol].encode(page) == ENCODERS[protocol].encode((b"0", columns))
    assert Encoder(protocol).encode(page) == Encoder(protocol).encode((b"0", columns))
