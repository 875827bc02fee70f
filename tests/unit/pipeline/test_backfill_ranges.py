"""A backfill has bounds, and pieces that go through all of it once."""

from __future__ import annotations

import pytest

from penstock.pipeline.mirroring.errors import MirrorError
from penstock.pipeline.mirroring.rules.backfill_ranges import bound, next_piece, resolve
from penstock.pipeline.mirroring.rules.offset_map import Range

A, B = ("orders", 0), ("orders", 1)
IDS = {A: "id", B: "id"}
LOGS = {A: (5, 100), B: (0, 40)}


def test_bounds_are_offsets_or_times() -> None:
    assert bound("earliest", "") == "earliest"
    assert bound('{"orders": {"0": 7, "1": -1}}', "") == {A: 7, B: -1}
    assert bound("latest", "2026-11-28T06:00:00Z") == 1795845600000
    assert bound("latest", "2026-11-28T06:00:00") == 1795845600000
    assert bound("latest", "2026-11-28T07:00:00+01:00") == 1795845600000


@pytest.mark.parametrize(
    ("offsets", "time", "sentence"),
    [
        ('{"orders": {"0": 7}}', "2026-11-28", "not both"),
        ("latest", "yesterday", "no time in ISO 8601"),
        ("newest", "", "neither earliest nor latest"),
        ('{"orders": {"x": 7}}', "", "neither earliest nor latest"),
    ],
)
def test_what_is_no_bound_is_refused(offsets: str, time: str, sentence: str) -> None:
    with pytest.raises(MirrorError, match=sentence):
        bound(offsets, time)


def test_ranges_lie_within_the_log() -> None:
    found = resolve(IDS, {A: 10}, {A: 500, B: 30}, LOGS)
    assert found == {
        A: Range(start_offset=10, end_offset=100, source_topic_id="id"),
        B: Range(start_offset=0, end_offset=30, source_topic_id="id"),
    }


def test_a_time_after_all_records_is_the_end() -> None:
    found = resolve(IDS, {A: None, B: 3}, {A: None, B: None}, LOGS)
    assert found[A] == Range(start_offset=100, end_offset=100, source_topic_id="id")
    assert found[B] == Range(start_offset=3, end_offset=40, source_topic_id="id")


def test_deleted_records_are_not_passed_over() -> None:
    with pytest.raises(MirrorError, match="orders-0 begins at offset 5, and a start of 2 was asked for"):
        resolve(IDS, {A: 2}, {}, LOGS)


@pytest.mark.parametrize("place", [("order", 0), ("orders", 7)])
def test_offsets_of_a_partition_that_is_not_there_are_refused(place: tuple[str, int]) -> None:
    """They would be left out, and the whole log copied in their place."""
    with pytest.raises(MirrorError, match=f"an offset of {place[0]}-{place[1]} was given, and no such partition"):
        resolve(IDS, {place: 2}, {}, LOGS)
    with pytest.raises(MirrorError, match="no such partition"):
        resolve(IDS, {}, {A: 10, place: 2}, LOGS)


@pytest.mark.parametrize("limit", [1, 7, 50, 1_000])
def test_pieces_go_through_all_once(limit: int) -> None:
    ranges = resolve(IDS, {}, {}, LOGS)
    done = {place: one.start_offset for place, one in ranges.items()}
    copied: list[tuple[str, int, int]] = []
    while piece := next_piece(ranges, done, limit):
        assert sum(end - start for start, end in piece.values()) <= max(limit, len(piece))
        for place, (start, end) in piece.items():
            assert start == done[place]
            copied += [(*place, offset) for offset in range(start, end)]
            done[place] = end
    assert len(copied) == len(set(copied)) == 95 + 40
