"""Sorted keys and overlays, against the same done plainly: a sorted list, a family written to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.embedded import sorted_keys
from storage.embedded.group import Group
from storage.embedded.ordered import Kind, Operation
from storage.embedded.overlay import HiddenRanges, Overlay
from storage.embedded.sorted_keys import SortedKeys
from storage.memory.database import MemoryFamily, MemoryScan

KEYS = st.text(alphabet="\x00ab\xff", max_size=3).map(lambda text: text.encode("latin-1"))
VALUES = st.sampled_from([b"", b"1", b"2"])
OPERATIONS = st.one_of(
    st.tuples(st.just(Kind.PUT), KEYS, VALUES),
    st.tuples(st.just(Kind.DELETE), KEYS, st.just(b"")),
    st.tuples(st.just(Kind.DELETE_RANGE), KEYS, KEYS),
)


@pytest.fixture(autouse=True, scope="module")
def _short_buckets() -> Iterator[None]:
    """So that a few keys make several."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sorted_keys, "MOST_IN_BUCKET", 4)
        yield


def family_of(cells: dict[bytes, bytes]) -> MemoryFamily:
    family = MemoryFamily("d:d")
    for key, value in cells.items():
        family.apply(Kind.PUT, key, value)
    return family


# Sorted keys


@given(st.sets(KEYS), KEYS, KEYS)
def test_keys_are_walked_in_order(keys: set[bytes], start: bytes, other: bytes) -> None:
    kept = SortedKeys()
    for key in keys:
        kept.add(key)
    assert list(kept.walk(start)) == sorted(key for key in keys if key >= start)
    assert kept.last_up_to(start) == max((key for key in keys if key <= start), default=None)
    inside = sorted(key for key in keys if start <= key < other)
    assert kept.remove_between(start, other) == inside
    assert list(kept.walk(b"")) == sorted(keys.difference(inside))


@given(st.lists(st.tuples(st.booleans(), KEYS, KEYS), max_size=30))
def test_keys_come_and_go(story: list[tuple[bool, bytes, bytes]]) -> None:
    kept, plain = SortedKeys(), set[bytes]()
    for adds, key, end in story:
        if not adds:
            kept.remove_between(key, end)
            plain = {other for other in plain if not key <= other < end}
        elif key not in plain:
            kept.add(key)
            plain.add(key)
        assert list(kept.walk(b"")) == sorted(plain)


def test_of_many_keys_few_are_moved_for_one() -> None:
    kept = SortedKeys()
    for number in range(10_000):
        kept.add(b"%08d" % (number * 7_919 % 10_000))
    assert list(kept.walk(b"")) == [b"%08d" % number for number in range(10_000)]
    assert max(map(len, kept._buckets)) <= sorted_keys.MOST_IN_BUCKET
    assert len(kept._buckets) <= 10_000 / (sorted_keys.MOST_IN_BUCKET / 2)


# Hidden ranges


@given(st.lists(st.tuples(KEYS, KEYS).filter(lambda ends: ends[0] < ends[1]), max_size=8), KEYS)
def test_hidden_ranges_are_joined(added: list[tuple[bytes, bytes]], key: bytes) -> None:
    hidden = HiddenRanges()
    for start, end in added:
        hidden.add(start, end)
    assert bool(hidden) == bool(added)
    inside = any(start <= key < end for start, end in added)
    found = hidden.end_at(key)
    assert (found is not None) == inside
    if found is not None:
        assert found in {end for _, end in added}
        assert not any(start <= found < end for start, end in added)
    begins = hidden.first_from(key)
    if begins is not None:
        assert begins >= key
        assert begins in {start for start, _ in added}
        assert not any(start < begins <= end for start, end in added)


# Overlays


@given(st.dictionaries(KEYS, VALUES), st.lists(OPERATIONS, max_size=12), KEYS, st.none() | KEYS)
@example({b"a": b""}, [(Kind.DELETE_RANGE, b"b", b"a")], b"", None)
@example({b"a": b"", b"b": b""}, [(Kind.DELETE_RANGE, b"a", b"b")], b"", None)
@example({b"a": b""}, [(Kind.DELETE, b"a", b""), (Kind.PUT, b"a", b"1")], b"a", b"b")
def test_a_family_under_an_overlay_reads_as_one_that_was_written_to(
    cells: dict[bytes, bytes],
    operations: list[tuple[Kind, bytes, bytes]],
    start: bytes,
    end: bytes | None,
) -> None:
    below, plain = family_of(cells), family_of(cells)
    overlay = Overlay(below)
    for operation in operations:
        overlay.apply(*operation)
        plain.apply(*operation)
        assert list(overlay.scan(end).walk(start)) == list(plain.scan(end).walk(start))
        for key in {*cells, *plain.keys, operation[1], operation[2]}:
            assert overlay.get(key) == plain.get(key)
    assert below.values == cells


def test_a_scan_may_be_walked_again() -> None:
    overlay = Overlay(family_of({b"a": b"", b"c": b""}))
    overlay.apply(Kind.PUT, b"b", b"")
    scan = overlay.scan(None)
    assert next(scan.walk(b"b")) == (b"b", b"")
    assert [key for key, _ in scan.walk(b"a")] == [b"a", b"b", b"c"]


class CountingFamily(MemoryFamily):
    """Counts the keys that its scans hand out, and their seeks."""

    keys_read = 0
    seeks = 0

    def scan(self, end: bytes | None) -> Any:
        return CountingScan(self, end)


class CountingScan(MemoryScan):
    def walk(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        assert isinstance(self._family, CountingFamily)
        self._family.seeks += 1
        for cell in super().walk(start):
            self._family.keys_read += 1
            yield cell


@pytest.mark.parametrize("start", [b"", b"0000", b"0001", b"0500"])
def test_a_hidden_range_is_passed_by_a_seek(start: bytes) -> None:
    below = CountingFamily("d:d")
    for number in range(1_000):
        below.apply(Kind.PUT, b"%04d" % number, b"")
    overlay = Overlay(below)
    for number in range(1, 998, 2):  # neighbours, in no one operation
        overlay.apply(Kind.DELETE_RANGE, b"%04d" % number, b"%04d" % (number + 2))
    shown = [key for key, _ in overlay.scan(None).walk(start)]
    assert shown == [b"0000"] * (start <= b"0000") + [b"0999"]
    assert below.keys_read <= 3
    assert below.seeks <= 2


# The group's views


def counted_applications(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The keys of the operations that overlays take from now on."""
    taken: list[bytes] = []
    apply = Overlay.apply

    def counted(overlay: Overlay, kind: Kind, first: bytes, second: bytes) -> None:
        taken.append(first)
        apply(overlay, kind, first, second)

    monkeypatch.setattr(Overlay, "apply", counted)
    return taken


def test_an_operation_is_taken_once_however_often_the_group_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken, group = counted_applications(monkeypatch), Group()
    one, other = MemoryFamily("d:1"), MemoryFamily("d:2")
    for number in range(100):
        operation: Operation = (Kind.PUT, (one, other)[number % 2], b"%02d" % number, b"")
        group.operations.append(operation)
        assert list(group.view(one).scan(None).walk(b"%02d" % number)) == (
            [] if number % 2 else [(b"%02d" % number, b"")]
        )
    assert taken == [b"%02d" % number for number in range(100)]
    assert len(list(group.view(other).scan(None).walk(b""))) == 50


def test_a_group_that_is_cleared_shows_what_lies_below() -> None:
    group, family = Group(), family_of({b"a": b""})
    assert group.view(family) is family
    group.operations.append((Kind.DELETE, family, b"a", b""))
    assert list(group.view(family).scan(None).walk(b"")) == []
    group.clear()
    assert group.view(family) is family
