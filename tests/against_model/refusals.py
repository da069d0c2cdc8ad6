"""Commands with one thing wrong, and what each must be answered."""

from __future__ import annotations

from tests.against_model.steered import Word
from tests.model import LAST_MOMENT

SYNTAX = "ERR syntax error"
INTEGER = "ERR value is not an integer or out of range"
TIMESTAMP = "ERR invalid timestamp"
CURSOR = "ERR invalid cursor"
LONG = b"n" * 65_536


def refusals(dataset: str, row: bytes, column: bytes) -> list[tuple[str, list[Word]]]:
    """Commands with one thing wrong, each with the error it must answer."""
    return [
        *wrong_writes(dataset, row, column),
        *wrong_reads(dataset, row, column),
        *wrong_deletes(dataset, row, column),
        *wrong_others(dataset, row, column),
    ]


def wrong_writes(dataset: str, row: bytes, column: bytes) -> list[tuple[str, list[Word]]]:
    put: list[Word] = ["WCPUT", dataset, row]
    many: list[Word] = ["WCMPUT", dataset]
    cell: list[Word] = [5, column, b"refused"]
    arity = "ERR wrong number of arguments for '{}' command".format
    expire = "ERR invalid expire time in '{}' command".format
    wrong: list[tuple[str, list[Word]]] = [
        (arity("wcput"), put),
        (arity("wcput"), [*put, 5, column]),
        (arity("wcput"), [*put, *cell, 5]),
        (arity("wcput"), [*put, *cell, 5, column]),
        (arity("wcmput"), [*many, row, 5, column]),
        (arity("wcmput"), [*many, row, *cell, row]),
        (TIMESTAMP, [*put, *cell, 5, column, b"", "5.0", column, b""]),
        (TIMESTAMP, [*many, row, *cell, row, "x", column, b""]),
        ("ERR row key is longer than 65535 bytes", ["WCPUT", dataset, LONG, *cell]),
        ("ERR row key is longer than 65535 bytes", [*many, row, *cell, LONG, *cell]),
        ("ERR column name is longer than 65535 bytes", [*put, *cell, 5, LONG, b""]),
    ]
    for bad in (-1, LAST_MOMENT + 1, "", "-", "+", " 5", "**"):
        wrong += [(TIMESTAMP, [*put, *cell, bad, column, b""])]
    for bad in (0, -1, LAST_MOMENT):
        wrong += [(expire("wcput"), [*put, "EX", bad, *cell])]
        wrong += [(expire("wcmput"), [*many, "EXAT", bad, row, *cell])]
    for option in ("EX", "PX", "EXAT", "PXAT"):
        wrong += [(INTEGER, [*put, option, "soon", *cell])]
        wrong += [(INTEGER, [*many, option, LAST_MOMENT + 1, row, *cell])]
    wrong += [(expire("wcput"), [*put, "PX", LAST_MOMENT, *cell])]
    wrong += [(expire("wcput"), [*put, "PXAT", 0, *cell])]
    return wrong


def wrong_reads(dataset: str, row: bytes, column: bytes) -> list[tuple[str, list[Word]]]:
    get: list[Word] = ["WCGET", dataset, row]
    scan: list[Word] = ["WCSCAN", dataset]
    wrong: list[tuple[str, list[Word]]] = [
        (SYNTAX, [*get, "COLUMNS", 2, column]),
        (SYNTAX, [*get, "COLUMNS", 1, column, "PREFIX", column]),
        (SYNTAX, [*get, "FROM", column, "COLUMNS", 1, column]),
        (SYNTAX, [*get, "VERSIONS", 1, "VERSIONS", "ALL"]),
        (SYNTAX, [*get, "NOVALUES", "NOVALUES"]),
        (SYNTAX, [*get, "COUNT"]),
        (SYNTAX, [*get, "LIMIT", 1]),
        (SYNTAX, [*get, "EVERYTHING"]),
        (SYNTAX, [*get, "RANGE", 1]),
        (TIMESTAMP, [*get, "RANGE", "*", "+"]),
        (TIMESTAMP, [*get, "RANGE", 0, -1]),
        (CURSOR, [*get, "CURSOR", "nonsense"]),
        (CURSOR, [*get, "CURSOR", b""]),
        (CURSOR, [*get, "CURSOR", b"\xff\0"]),
        (CURSOR, [*scan, "CURSOR", "nonsense"]),
        (INTEGER, [*scan, "LIMIT", 0]),
        (SYNTAX, [*scan, "LIMIT", 1, "LIMIT", 1]),
        (SYNTAX, [*scan, "ROWS", 1, row]),
        (INTEGER, ["WCMGET", dataset, "ROWS", 0, row]),
        (SYNTAX, ["WCMGET", dataset, "ROWS", 2, row]),
        (SYNTAX, ["WCMGET", dataset, "ROWS", 1, row, "CURSOR", 0]),
        (SYNTAX, ["WCCOLS", dataset, row, "NOVALUES"]),
        (SYNTAX, ["WCCOLS", dataset, row, "COLUMNS", 1, column]),
        (INTEGER, ["WCCOLS", dataset, row, "COUNT", 0]),
        (CURSOR, ["WCCOLS", dataset, row, "CURSOR", "nonsense"]),
    ]
    for option in ("VERSIONS", "COUNT", "COLUMNS"):
        wrong += [(INTEGER, [*get, option, bad, column]) for bad in (0, -1, "many")]
    return wrong


def wrong_deletes(dataset: str, row: bytes, column: bytes) -> list[tuple[str, list[Word]]]:
    delete: list[Word] = ["WCDEL", dataset, row]
    return [
        (SYNTAX, [*delete, "RANGE", "-", "+", "TIMESTAMPS", 1, 5]),
        (SYNTAX, [*delete, "RANGE", "-", "+", "RANGE", "-", "+"]),
        (SYNTAX, [*delete, "PREFIX", column]),
        (SYNTAX, [*delete, "TIMESTAMPS", 2, 5]),
        (SYNTAX, [*delete, "COLUMNS", 3, column, column]),
        (INTEGER, [*delete, "TIMESTAMPS", 0]),
        (TIMESTAMP, [*delete, "TIMESTAMPS", 2, 5, "*"]),
        (TIMESTAMP, [*delete, "RANGE", "-", "later"]),
        (SYNTAX, ["WCMDEL", dataset, "ROWS", 2, row]),
        (SYNTAX, ["WCMDEL", dataset, "ROWS", 1, row, "EVERYTHING"]),
        (TIMESTAMP, ["WCMDEL", dataset, "ROWS", 1, row, "TIMESTAMPS", 1, "+"]),
    ]


def wrong_others(dataset: str, row: bytes, column: bytes) -> list[tuple[str, list[Word]]]:
    cas: list[Word] = ["WCCAS", dataset, row, column]
    alter: list[Word] = ["WCDATASET", "ALTER", dataset]
    name = "ERR invalid dataset name"
    return [
        (SYNTAX, [*cas, "IFMAYBE", 5, b""]),
        (TIMESTAMP, [*cas, "IFABSENT", "never", b""]),
        (INTEGER, [*cas, "IFABSENT", "EX", "soon", 5, b""]),
        ("ERR invalid expire time in 'wccas' command", [*cas, "IFABSENT", "EX", 0, 5, b""]),
        (INTEGER, ["WCINCRBY", dataset, row, column, "1.5"]),
        (INTEGER, ["WCINCRBY", dataset, row, column, LAST_MOMENT + 1]),
        ("ERR wrong number of arguments for 'wcincrby' command", ["WCINCRBY", dataset, row]),
        ("ERR wrong number of arguments for 'wcexists' command", ["WCEXISTS", dataset]),
        (SYNTAX, alter),
        (SYNTAX, [*alter, "TTL", 5, "TTL", 5]),
        ("ERR ", [*alter, "MAXVERSIONS", 100_001]),
        ("ERR ", [*alter, "MAXVERSIONS", -1]),
        ("ERR ", [*alter, "TTL", LAST_MOMENT // 1000 + 1]),
        (name, ["WCGET", "no name", row]),
        (name, ["WCPUT", b"", row, 5, column, b""]),
        (name, ["WCSCAN", "n" * 129]),
    ]
