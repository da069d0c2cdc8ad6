"""Requests as bytes: inline commands, hostile ones, pipelines, odd spellings of the protocol."""

from __future__ import annotations

from tests.compare.conversation import fenced, raw, talk

INLINE = [
    b"PING", b"ping\r", b"  ECHO\ta  ", b'ECHO "a b"', b"ECHO 'a b'", b'ECHO ""',
    b'ECHO "\\x41\\xff\\n\\r"', b'ECHO "\\t\\b\\a\\q\\\\\\""', b"ECHO 'a\\'b\\n'",
    b"ECHO a\\nb", b'ECHO "\\xg1"', b'"ECHO" a', b"\xff\xfe", b"$4", b"+ok", b":5 a",
    b"FOO bar", b"ECHO", b"CLIENT FOO", b'ECHO ab"cd"',
]  # fmt: skip
UNBALANCED = [b'ECHO "a', b"ECHO 'a", b'ECHO "a"b', b"ECHO 'a'b"]
HOSTILE = [
    b"*1\r\n:4\r\n", b"*1\r\nPING\r\n", b"*abc\r\n", b"*2147483648\r\n",
    b"*1\r\n$abc\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$-2\r\n", b"*1\r\n$536870913\r\n",
    b"*1\r\n$9223372036854775808\r\n", b"*1\r\n+PING\r\n",
    b"*1\r\n*1\r\n$4\r\nPING\r\n", b"*1.0\r\n", b"*01\r\n$4\r\nPING\r\n",
    b"POST / HTTP/1.1\r\n", b"Host: a\r\n",
    b"*1\r\n$4\r\nPINGxx", b"*1\r\n$04\r\nPING\r\n", b"*1\r\n$+4\r\nPING\r\n",
    b"*1\r\n$4 \r\nPING\r\n", b"*2\r\n$4\r\nPING\r\n$0\r\n\r\n",
    b"*1\r\n$4\r\nPING\r\n\r\n\r\n", b"*\r\n", b"*-\r\n", b"*1\r\n_\r\n",
    b"*1\r\n#t\r\n", b"*1\r\n=8\r\ntxt:PING\r\n", b"%1\r\n$4\r\nPING\r\n$1\r\na\r\n",
    b"~1\r\n$4\r\nPING\r\n", b">1\r\n$4\r\nPING\r\n", b"$4\r\nPING\r\n",
    b"*1\r\n$4\r\n\r\n\r\n\r\n", b"*1\r\n$\r\n", b"* 1\r\n", b"*1 \r\n", b"*+1\r\n",
]  # fmt: skip


def shown(data: bytes) -> str:
    return repr(data)[2:-1]


CONVERSATIONS = [
    talk("inline", *[raw(line + b"\r\n") for line in INLINE]),
    talk("inline with a bare newline", *[raw(line + b"\n") for line in INLINE]),
    *[talk(f"unbalanced {shown(line)}", fenced(line + b"\r\n")) for line in UNBALANCED],
    *[talk(f"hostile {shown(data)}", "PING", fenced(data)) for data in HOSTILE],
    talk("an inline command too long", raw(b"A" * 70_000, replies=0, ends=True)),
    talk(
        "proto-max-bulk-len",
        "CONFIG SET proto-max-bulk-len 1mb",
        raw(b"*2\r\n$4\r\nECHO\r\n$1048576\r\n" + b"x" * 1048576 + b"\r\n", label="1 MB"),
        fenced(b"*2\r\n$4\r\nECHO\r\n$1048577\r\n"),
    ),
    talk("a count too long", raw(b"*" + b"1" * 70_000, replies=0, ends=True)),
    talk("a length too long", raw(b"*1\r\n$" + b"1" * 70_000, replies=0, ends=True)),
    talk(
        "empty requests",
        raw(b"\r\n\r\n*0\r\n*-1\r\n*-5\r\nPING\r\n"),
        raw(b"*0\r\n\n\nPING\n"),
        raw(b"*1\r\n$0\r\n\r\n"),
        raw(b"   \r\nPING\r\n"),
    ),
    talk(
        "pipelines",
        raw(b"PING\r\n*1\r\n$4\r\nPING\r\nECHO a\r\n*2\r\n$4\r\nECHO\r\n$1\r\nb\r\n", replies=4),
        raw(b"*1\r\n$4\r\nPING\r\n" * 100, replies=100, label="100 PINGs in one packet"),
        raw(b"FOO\r\nPING\r\nSELECT x\r\nECHO a b\r\nPING\r\n", replies=5),
    ),
    talk("what follows QUIT is not run", raw(b"PING\r\nQUIT\r\nPING\r\n", replies=2, ends=True)),
    talk("a broken request after good ones", raw(b"PING\r\nPING\r\n*x\r\n", replies=2, ends=True)),
    talk(
        "a transaction in one packet",
        raw(b"MULTI\r\nPING\r\nECHO a\r\nEXEC\r\nPING\r\n", replies=5),
    ),
    talk(
        "hello in the middle of a packet",
        raw(b"CONFIG GET maxclients\r\nHELLO 3 FOO\r\nCONFIG GET maxclients\r\n", replies=3),
    ),
]
