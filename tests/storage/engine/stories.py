"""Random data, and what a read of it has to answer by the definition of a visible cell."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from storage.model import (
    ALL_NAMES,
    ALL_TIME,
    DatasetSettings,
    Deletion,
    NameRange,
    PageLimits,
    Selection,
    TimeRange,
)
from tests.storage.engine.store import DEFAULTS, NOW, Columns, Store


def random_stories(max_examples: int) -> settings:
    """Many examples share one engine, and so a fixture: each empties its datasets first."""
    return settings(
        max_examples=max_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


ROWS = st.sampled_from([b"", b"a", b"a\x00", b"\xff"])
COLUMNS = st.sampled_from([b"", b"a", b"a\x00", b"b", b"\xff"])
SETTINGS = st.builds(DatasetSettings, st.integers(0, 3), st.sampled_from([0, 1]))
NEAR = st.one_of(st.integers(NOW - 3, NOW + 3), st.integers(NOW - 1_003, NOW - 997))
EXPIRIES = st.one_of(st.none(), st.integers(NOW - 2, NOW + 4))
CONTENT = st.dictionaries(
    st.tuples(ROWS, COLUMNS, NEAR), st.tuples(st.binary(max_size=30), EXPIRIES), max_size=40
)
Content = dict[tuple[bytes, bytes, int], tuple[bytes, int | None]]
LIMITS = st.builds(
    PageLimits,
    columns=st.integers(1, 4),
    rows=st.integers(1, 3),
    cells=st.integers(1, 6),
    bytes=st.integers(1, 400),
    scan=st.integers(1, 8),
)
MAYBE_NAMES = st.one_of(st.none(), st.sampled_from([b"", b"a", b"a\x00", b"b", b"\xff"]))
RANGES = st.builds(NameRange, MAYBE_NAMES, MAYBE_NAMES, MAYBE_NAMES)
TIMES = st.one_of(st.just(ALL_TIME), st.builds(TimeRange, NEAR, NEAR))
VERSIONS = st.one_of(st.none(), st.integers(1, 3))
SELECTIONS = st.one_of(
    st.builds(Selection, st.none(), RANGES, VERSIONS, TIMES),
    st.builds(
        Selection,
        st.sets(COLUMNS).map(lambda names: tuple(sorted(names))),
        st.just(ALL_NAMES),
        VERSIONS,
        TIMES,
    ),
)


def wanted(name: bytes, names: NameRange) -> bool:
    return (
        (names.prefix is None or name.startswith(names.prefix))
        and (names.start is None or name >= names.start)
        and (names.stop is None or name < names.stop)
    )


def lives_until(timestamp: int, expires_at: int | None, ttl_seconds: int) -> int:
    own = 2**64 if expires_at is None else expires_at
    return min(own, timestamp + ttl_seconds * 1_000) if ttl_seconds else own


def expected_row(
    content: Content, row: bytes, selection: Selection, kept: DatasetSettings, now: int
) -> Columns:
    """What a read of a row has to answer, by the definition of a visible cell."""
    found: Columns = []
    for column in sorted({column for holder, column, _ in content if holder == row}):
        named = column in selection.columns if selection.columns is not None else True
        if not named or not wanted(column, selection.names):
            continue
        living = [
            (at, value)
            for (holder, name, at), (value, expires_at) in sorted(content.items(), reverse=True)
            if (holder, name) == (row, column)
            and lives_until(at, expires_at, kept.ttl_seconds) >= now
        ]
        visible = living[: kept.max_versions or None]
        oldest, newest = selection.times.oldest, selection.times.newest
        chosen = [cell for cell in visible if oldest <= cell[0] <= newest][: selection.versions]
        if chosen:
            found.append((column, chosen))
    return found


def emptied(store: Store, name: bytes, kept: DatasetSettings) -> None:
    """The dataset with these settings and no cells: much cheaper than a new one."""
    engine = store.engine
    store.run(engine.create_dataset(name, DEFAULTS, if_not_exists=True))
    rows = {row for row, _, _, _ in store.stored(name)}
    store.run(engine.delete(name, list(rows), Deletion()))
    given = {"max_versions": kept.max_versions, "ttl_seconds": kept.ttl_seconds}
    store.run(engine.alter_dataset(name, **given))
    assert store.stored(name) == []


def filled(store: Store, kept: DatasetSettings, content: Content) -> None:
    emptied(store, b"d", kept)
    for (row, column, timestamp), (value, expires_at) in content.items():
        store.put((row, timestamp, column, value), expires_at=expires_at)
