"""Catalog entries: names, settings and the clock as bytes, and what is refused as damaged.

What is damaged is never guessed at: neither a member of another type nor a number out of place.
"""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.catalog import (
    ENTRY_END,
    ENTRY_PREFIX,
    Entry,
    check_name,
    decode_clock,
    decode_entry,
    encode_clock,
    encode_entry,
    entry_key,
    family_name,
    name_of_entry,
    name_of_family,
)
from storage.errors import CorruptData, InvalidDatasetName
from storage.model import MAX_TTL_SECONDS, MAX_VERSIONS_LIMIT, DatasetSettings

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:"
NAMES = st.text(ALPHABET, min_size=1, max_size=128).map(str.encode)
COUNTS = st.integers(0, 2**63 - 1)
ENTRIES = st.builds(
    Entry,
    st.builds(DatasetSettings, st.integers(0, MAX_VERSIONS_LIMIT), st.integers(0, MAX_TTL_SECONDS)),
    COUNTS,
    COUNTS,
    COUNTS,
)
ENTRY = Entry(DatasetSettings(1000, 60), 1_700_000_000_000, 5, 6)
MEMBERS = json.loads(encode_entry(ENTRY))


@pytest.mark.parametrize("name", [b"a", b"0", b".", b":", b"-_.:", b"x" * 128, ALPHABET.encode()])
def test_a_good_name_passes(name: bytes) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name",
    [b"", b"x" * 129, b"a b", b"a/b", b"a\x00", b"a\n", b"\n", b"%3A", b"~", b"*", b"\xc3\xa9"],
)
def test_a_bad_name_is_refused(name: bytes) -> None:
    with pytest.raises(InvalidDatasetName):
        check_name(name)


@settings(deadline=None)
@given(NAMES, NAMES)
def test_every_name_has_a_family_of_its_own(one: bytes, other: bytes) -> None:
    assert name_of_family(family_name(one)) == one
    assert re.fullmatch(r"d:[A-Za-z0-9_.%-]+", family_name(one))
    assert (family_name(one) == family_name(other)) == (one == other)


def test_names_that_a_colon_could_mix_up_have_families_of_their_own() -> None:
    assert family_name(b"a:b") == "d:a%3Ab"
    assert family_name(b"a-b") == "d:a-b"
    assert family_name(b"a.b") == "d:a.b"


@settings(deadline=None)
@given(NAMES)
def test_entries_lie_between_the_bounds_of_entries(name: bytes) -> None:
    assert ENTRY_PREFIX <= entry_key(name) < ENTRY_END
    assert name_of_entry(entry_key(name)) == name


@settings(deadline=None)
@given(ENTRIES)
def test_an_entry_comes_back(entry: Entry) -> None:
    assert decode_entry(b"d", encode_entry(entry)) == entry


def test_altered_and_compacted_change_nothing_else() -> None:
    altered = ENTRY.altered(DatasetSettings(2, 0))
    assert altered == Entry(DatasetSettings(2, 0), ENTRY.created_ms, 5, 6)
    assert altered.compacted(8, 9) == Entry(DatasetSettings(2, 0), ENTRY.created_ms, 8, 9)


def test_members_that_nobody_knows_are_passed_over() -> None:
    stored = json.dumps({**MEMBERS, "colour": "red"}).encode()
    assert decode_entry(b"d", stored) == ENTRY


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"maxversions"',
        b"{}",
        b"\xff",
        encode_entry(ENTRY)[:-1],
        encode_entry(ENTRY) + b"x",
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
def test_what_is_no_entry_is_corrupt(stored: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_entry(b"d", stored)


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize(
    "value", ["Infinity", "1e999", "NaN", "null", '"7"', "1.5", "-1", "true", "[]", "{}"]
)
def test_a_member_that_is_no_count_is_corrupt(member: str, value: str) -> None:
    stored = json.dumps({**MEMBERS, member: "here"}).replace('"here"', value)
    with pytest.raises(CorruptData):
        decode_entry(b"d", stored.encode())


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_an_entry_or_corrupt(stored: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_entry(b"d", stored)


def test_the_error_names_the_dataset() -> None:
    with pytest.raises(CorruptData, match="'app:events'"):
        decode_entry(b"app:events", b"{")


@pytest.mark.parametrize(
    ("milliseconds", "stored"),
    [
        (0, "0000000000000000"),
        (1_700_000_000_000, "0000018bcfe56800"),
        (2**63 - 1, "7fffffffffffffff"),
    ],
)
def test_the_clock_has_these_bytes(milliseconds: int, stored: str) -> None:
    assert encode_clock(milliseconds) == bytes.fromhex(stored)
    assert decode_clock(bytes.fromhex(stored)) == milliseconds


def test_a_store_without_a_clock_begins_at_0() -> None:
    assert decode_clock(None) == 0


@pytest.mark.parametrize("stored", [b"", b"\x00" * 7, b"\x00" * 9])
def test_a_clock_of_another_length_is_corrupt(stored: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_clock(stored)
