"""The model against cases worked out by hand, so that two opinions are two.

One column is enough for most: `column` writes its cells newest first as timestamp, expiry. No
server runs here.
"""

from __future__ import annotations

import pytest

from tests.model import (
    Cell,
    Doomed,
    Model,
    Refused,
    Selection,
    Settings,
    Span,
    Unsettled,
    Write,
)

NOW = 10_000_000
SOON, LATER = NOW + 1_000, NOW + 2_000
EVERYTHING = Selection(versions=None)


def model_of(
    settings: Settings, *cells: tuple[int, int | None], row: bytes = b"r", column: bytes = b"c"
) -> Model:
    """A model whose dataset `d` has these cells, timestamp and expiry, in one column."""
    model = Model()
    model.create("d", settings)
    for timestamp, expires_at in cells:
        model.put("d", [Write(row, timestamp, column, b"%d" % timestamp)], NOW, expires_at)
    return model


def shown(model: Model, now: int = NOW, selection: Selection = EVERYTHING) -> list[int]:
    return [cell.timestamp for _, cells in model.get("d", b"r", selection, now) for cell in cells]


def delete_at(model: Model, *timestamps: int, now: int = NOW) -> int:
    return model.delete("d", b"r", Doomed(None, lambda at: at in timestamps), now)


def test_a_cell_lives_through_the_millisecond_of_its_expiry() -> None:
    model = model_of(Settings(), (5, SOON))
    assert shown(model, SOON) == [5]
    assert shown(model, SOON + 1) == []


def test_the_earlier_of_own_expiry_and_ttl_counts() -> None:
    model = model_of(Settings(ttl_seconds=1), (NOW, LATER), (NOW + 1, NOW + 10))
    assert shown(model, NOW + 10) == [NOW + 1, NOW]
    assert shown(model, NOW + 11) == [NOW]
    assert shown(model, NOW + 1_000) == [NOW]
    assert shown(model, NOW + 1_001) == []


def test_only_the_newest_unexpired_versions_are_visible() -> None:
    model = model_of(Settings(max_versions=2), (5, None), (4, SOON), (3, None), (2, None))
    assert shown(model) == [5, 4]
    assert shown(model, SOON + 1) == [5, 3]


def test_a_range_picks_among_the_visible_and_versions_counts_inside_it() -> None:
    model = model_of(Settings(max_versions=3), (5, None), (4, None), (3, None), (2, None))
    assert shown(model, selection=Selection(versions=1, first=0, last=4)) == [4]
    assert shown(model, selection=Selection(versions=None, first=0, last=4)) == [4, 3]
    assert shown(model, selection=Selection(versions=None, first=4, last=3)) == []


def test_a_write_in_the_past_replaces_and_never_shows() -> None:
    model = model_of(Settings(), (5, None), (4, None))
    assert model.put("d", [Write(b"r", 5, b"c", b"x")], NOW, NOW - 1) == 1
    assert shown(model) == [4]


def test_stamps_are_newer_than_an_explicit_cell_of_their_millisecond() -> None:
    model = model_of(Settings())
    writes = [Write(b"r", stamp, b"c", value) for stamp, value in ((None, b"1"), (None, b"2"))]
    model.put("d", [*writes, Write(b"r", NOW, b"c", b"0")], NOW)
    (_, cells), *_ = model.get("d", b"r", EVERYTHING, NOW)
    assert [cell.value for cell in cells] == [b"2", b"1", b"0"]
    assert delete_at(model, NOW) == 1
    assert shown(model) == []


def test_deleting_a_visible_version_drops_what_it_hid() -> None:
    model = model_of(Settings(max_versions=1), (5, None), (4, None), (3, None))
    assert delete_at(model, 5) == 1
    assert shown(model) == []


def test_deleting_a_visible_version_keeps_the_other_visible_ones() -> None:
    model = model_of(Settings(max_versions=2), (5, None), (4, None), (3, None))
    assert delete_at(model, 5) == 1
    assert shown(model) == [4]


def test_deleting_a_hidden_version_that_expiry_could_show_drops_what_lies_below() -> None:
    model = model_of(Settings(max_versions=1), (5, SOON), (4, None), (3, None))
    assert delete_at(model, 4) == 0
    assert shown(model) == [5]
    assert shown(model, SOON + 1) == []


def test_deleting_a_version_hidden_for_good_drops_nothing_else() -> None:
    model = model_of(Settings(max_versions=1), (5, LATER), (4, SOON), (3, None))
    assert delete_at(model, 4) == 0
    assert shown(model, LATER + 1) == [3]


def test_deleting_an_expired_version_drops_nothing_else() -> None:
    model = model_of(Settings(max_versions=1), (5, NOW - 1), (4, SOON), (3, None))
    assert delete_at(model, 5) == 0
    assert shown(model) == [4]
    assert shown(model, SOON + 1) == [3]


def test_rewriting_with_an_earlier_expiry_drops_what_hides_below() -> None:
    model = model_of(Settings(max_versions=1), (5, LATER), (4, None))
    model.put("d", [Write(b"r", 5, b"c", b"x")], NOW, SOON)
    assert shown(model) == [5]
    assert shown(model, SOON + 1) == []


def test_rewriting_with_the_same_or_a_later_expiry_drops_nothing() -> None:
    model = model_of(Settings(max_versions=1), (5, SOON), (4, None))
    model.put("d", [Write(b"r", 5, b"c", b"x")], NOW, SOON)
    model.put("d", [Write(b"r", 5, b"c", b"y")], NOW, LATER)
    assert shown(model, LATER + 1) == [4]


def test_rewriting_without_max_versions_drops_nothing() -> None:
    model = model_of(Settings(), (5, LATER), (4, None))
    model.put("d", [Write(b"r", 5, b"c", b"x")], NOW, SOON)
    assert shown(model, SOON + 1) == [4]


def test_a_rewrite_beside_a_newer_cell_of_the_same_command_is_unsettled() -> None:
    model = model_of(Settings(max_versions=2), (5, None), (4, None), (3, None))
    with pytest.raises(Unsettled):
        model.put("d", [Write(b"r", 9, b"c", b""), Write(b"r", 5, b"c", b"")], NOW, SOON)
    assert shown(model) == [5, 4]


def test_a_whole_column_goes_with_all_it_hid() -> None:
    model = model_of(Settings(max_versions=1), (5, SOON), (4, None))
    assert model.delete("d", b"r", Doomed(frozenset([b"c", b"absent"])), NOW) == 1
    assert shown(model, SOON + 1) == []
    assert model.in_doubt("d", NOW) == []


def test_a_hidden_cell_makes_its_column_doubtful_until_it_is_deleted() -> None:
    model = model_of(Settings(max_versions=1), (5, None), (4, None))
    assert model.in_doubt("d", NOW) == [(b"r", b"c")]
    delete_at(model, 5)
    assert model.in_doubt("d", NOW) == [(b"r", b"c")]
    model.delete("d", b"r", Doomed(), NOW)
    assert model.in_doubt("d", NOW) == []


def test_wider_settings_are_told_from_narrower_ones() -> None:
    assert Settings(0, 0).shows_more_than(Settings(2, 0))
    assert Settings(3, 5).shows_more_than(Settings(2, 5))
    assert Settings(1, 6).shows_more_than(Settings(2, 5))
    assert not Settings(2, 5).shows_more_than(Settings(0, 0))
    assert not Settings(2, 5).shows_more_than(Settings(2, 5))


def test_counts_of_a_delete() -> None:
    model = model_of(Settings(), (5, None))
    model.put("d", [Write(b"r", 7, b"e", b""), Write(b"s", 7, b"e", b"")], NOW)
    between = Doomed(frozenset([b"c", b"e", b"f"]), lambda at: at <= 5)
    assert model.delete("d", b"r", between, NOW) == 1
    assert model.delete_rows("d", [b"r", b"s", b"r"], Doomed(), NOW) == 2


def test_names_combine() -> None:
    span = Span(prefix=b"a", start=b"ab", stop=b"b")
    assert [name for name in (b"", b"a", b"ab", b"a\xff", b"b") if name in span] == [
        b"ab",
        b"a\xff",
    ]
    assert b"" not in Span(stop=b"")


def test_scan_leaves_out_rows_that_show_nothing() -> None:
    model = model_of(Settings(), (5, None))
    model.put("d", [Write(b"s", 5, b"c", b"")], NOW, NOW - 1)
    rows = model.scan("d", Span(), EVERYTHING, NOW)
    assert rows == [(b"r", [(b"c", [Cell(5, 0, b"5")])])]
    assert model.exists("d", [b"r", b"s", b"r"], NOW) == 2


def test_increment_keeps_the_expiry_and_refuses_the_future() -> None:
    model = model_of(Settings(), (5, SOON))
    assert model.increment("d", b"r", b"c", -7, NOW) == -2
    assert shown(model, SOON) == [NOW, 5]
    assert shown(model, SOON + 1) == []
    model.put("d", [Write(b"r", NOW + 1, b"c", b"1")], NOW)
    with pytest.raises(Refused, match="in the future"):
        model.increment("d", b"r", b"c", 1, NOW)


@pytest.mark.parametrize("value", [b"", b"a", b"+1", b"01", b" 1", b"-0", b"1_0", b"%d" % 2**63])
def test_increment_takes_only_integers(value: bytes) -> None:
    model = model_of(Settings())
    model.put("d", [Write(b"r", 1, b"c", value)], NOW)
    with pytest.raises(Refused, match="not an integer"):
        model.increment("d", b"r", b"c", 1, NOW)


def test_compare_and_set() -> None:
    model = model_of(Settings(), (5, None))
    again, later = Write(b"r", 5, b"c", b"x"), Write(b"r", 6, b"c", b"x")
    [refused] = model.compare_and_set("d", b"5", again, NOW)
    assert isinstance(refused, Refused)
    [refused] = model.compare_and_set("d", b"5", later, NOW, NOW - 1)
    assert isinstance(refused, Refused)
    assert model.compare_and_set("d", b"4", later, NOW) == [0]
    assert model.compare_and_set("d", None, later, NOW) == [0]
    assert model.compare_and_set("d", b"5", later, NOW) == [1]
    assert shown(model) == [6, 5]


def test_a_stamp_may_follow_another_cell_of_its_millisecond() -> None:
    model = model_of(Settings(), (NOW, None))
    assert model.compare_and_set("d", b"%d" % NOW, Write(b"r", None, b"c", b"x"), NOW) == [1]
    assert shown(model) == [NOW, NOW]


def test_what_is_refused_creates_nothing() -> None:
    model = Model()
    with pytest.raises(Refused, match="NODATASET"):
        model.get("d", b"r", EVERYTHING, NOW)
    assert model.compare_and_set("d", b"x", Write(b"r", 5, b"c", b""), NOW)[0] == 0
    assert model.datasets == {}
    with pytest.raises(Refused, match="NODATASET"):
        Model(auto_create=False).put("d", [Write(b"r", 5, b"c", b"")], NOW)
