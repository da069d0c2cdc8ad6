"""Syntax lines: what COMMAND DOCS says of them, and the arity that follows.

`outline` shows a parsed line as nested tuples: a word by its name (`TOKEN name` where a token goes
before it), a choice as ("|", ...), a block as a tuple; "?" marks what is optional, "+" what
repeats.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.syntax import Argument, arity, parse


def outline(argument: Argument) -> Any:
    marks = "?" * argument.optional + "+" * argument.multiple
    if argument.type in ("block", "oneof"):
        head = ("|",) if argument.type == "oneof" else ()
        token = (argument.token,) if argument.token else ()
        inner = tuple(outline(member) for member in argument.arguments)
        return (*head, *token, *inner, marks) if marks else (*head, *token, *inner)
    if argument.type == "pure-token":
        return argument.token + marks
    return f"{argument.token} {argument.name}".strip() + marks


@pytest.mark.parametrize(
    ("syntax", "expected", "words"),
    [
        ("", [], 1),
        ("row", ["row"], 2),
        ("row column", ["row", "column"], 3),
        ("[message]", ["message?"], -1),
        ("row [row ...]", ["row+"], -2),
        ("[name [name ...]]", ["name?+"], -1),
        ("NOVALUES", ["NOVALUES"], 2),
        ("[NOVALUES]", ["NOVALUES?"], -1),
        ("[COUNT n]", ["COUNT n?"], -1),
        ("COUNT n", ["COUNT n"], 3),
        ("[ALL] row", ["ALL?", "row"], -2),
        ("[RANGE start end]", [("RANGE", "start", "end", "?")], -1),
        ("ROWS n row [row ...]", [("ROWS", "n", "row+")], -4),
        ("[ROWS n row [row ...]]", [("ROWS", "n", "row+", "?")], -1),
        ("(IFEQ expected | IFABSENT)", [("|", "IFEQ expected", "IFABSENT")], -2),
        ("(A x | B y)", [("|", "A x", "B y")], 3),
        ("[EX s | PX ms]", [("|", "EX s", "PX ms", "?")], -1),
        ("[VERSIONS n | VERSIONS ALL]", [("|", "VERSIONS n", ("VERSIONS", "ALL"), "?")], -1),
        ("t c v [t c v ...]", [("t", "c", "v", "+")], -4),
        ("v [A [B b] [C c]]", ["v", ("A", "B b?", "C c?", "?")], -2),
        ("[username] password", ["username?", "password"], -2),
    ],
)
def test_a_line_is_parsed(syntax: str, expected: list[Any], words: int) -> None:
    assert [outline(argument) for argument in parse(syntax)] == expected
    assert arity(syntax, 1) == words


def test_the_words_of_the_name_count() -> None:
    assert arity("name", 2) == 3
    assert arity("name [IFEXISTS]", 2) == -3


def test_numbers_are_integers_and_other_words_are_strings() -> None:
    types = {argument.name: argument.type for argument in parse("dataset n seconds NOVALUES")}
    assert types == {
        "dataset": "string",
        "n": "integer",
        "seconds": "integer",
        "novalues": "pure-token",
    }


def test_a_star_is_a_token() -> None:
    (argument,) = parse("*")
    assert (argument.type, argument.token) == ("pure-token", "*")


@pytest.mark.parametrize("syntax", ["a ]", "a )", "a [b", "(a | b", "[a (b ]", "[a )", "(a ]"])
def test_what_is_not_balanced_is_refused(syntax: str) -> None:
    with pytest.raises(ValueError, match="unbalanced"):
        parse(syntax)


@pytest.mark.parametrize("syntax", ["[a ...]", "b [a ...]", "b [a b ...]", "a [a a ...]"])
def test_what_repeats_has_to_stand_before(syntax: str) -> None:
    with pytest.raises(ValueError, match="repeats"):
        parse(syntax)


Line = tuple[str, int, bool]
"""A syntax line, the least number of its words, and whether it may take more."""


def sequence(parts: list[Line]) -> Line:
    texts, least, variable = zip(*parts, strict=True)
    return " ".join(texts), sum(least), any(variable)


def choice(parts: list[Line]) -> Line:
    texts, least, variable = zip(*parts, strict=True)
    return f"({' | '.join(texts)})", min(least), any(variable) or len(set(least)) > 1


def larger(lines: st.SearchStrategy[Line]) -> st.SearchStrategy[Line]:
    several = st.lists(lines, min_size=1, max_size=3)
    return st.one_of(
        several.map(sequence),
        lines.map(lambda line: (f"[{line[0]}]", 0, True)),
        st.lists(lines, min_size=2, max_size=3).map(choice),
    )


WORDS = st.sampled_from(
    [("row", 1, False), ("n", 1, False), ("ALL", 1, False), ("COUNT n", 2, False)]
)
REPEATS = st.sampled_from([("row [row ...]", 1, True), ("n ms [n ms ...]", 2, True)])
LINES = st.recursive(st.one_of(WORDS, REPEATS), larger, max_leaves=8)


@settings(deadline=None)
@given(LINES)
def test_the_arity_is_the_least_number_of_words_and_its_sign(line: Line) -> None:
    syntax, least, variable = line
    assert arity(syntax, 1) == (-(least + 1) if variable else least + 1)
