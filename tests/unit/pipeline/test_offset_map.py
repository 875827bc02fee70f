"""The offset map is what its records say, in their order, and forgets what the sink has lost."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.pipeline.mirroring.rules.offset_map import (
    OffsetMap,
    Pair,
    Position,
    Range,
    fence_record,
    map_partition,
    position_of,
    position_record,
    range_record,
    request_record,
    run_records,
    tombstone,
)
from penstock.pipeline.mirroring.rules.offset_runs import Run
from penstock.pipeline.mirroring.rules.source_partition import SourcePartition

ONE = SourcePartition(cluster="east", topic="orders", partition=0)
OTHER = SourcePartition(cluster="east", topic="orders", partition=1)


def position(next_offset: int, target_next_offset: int | None = None) -> Position:
    return Position(
        next_offset=next_offset,
        source_topic_id="source",
        target_topic="east.orders",
        target_topic_id="target",
        target_partition=0,
        target_next_offset=target_next_offset,
    )


def run(first_offset: int, first_target_offset: int, count: int) -> Run:
    return Run(first_offset=first_offset, first_target_offset=first_target_offset, count=count)


def offset_map(*records: Iterable[Pair]) -> OffsetMap:
    found = OffsetMap()
    for some in records:
        for key, value in some:
            found.apply(key, value)
    return found


def test_the_last_position_counts_and_others_are_left_alone() -> None:
    records = [position_record(ONE, position(10)), position_record(OTHER, position(3)), fence_record(ONE)]
    records.append(position_record(ONE, position(25)))
    assert offset_map(records).positions == {ONE: position(25), OTHER: position(3)}
    assert position_of(ONE, records, None) == position(25)
    assert position_of(OTHER, records, position(1)) == position(3)


def test_a_position_that_is_read_late_does_not_go_back() -> None:
    """Records of one key are in two partitions when the topic has got more of them."""
    records = [position_record(ONE, position(25)), position_record(ONE, position(10))]
    assert offset_map(records).positions == {ONE: position(25)}


def test_a_position_that_is_not_written_again_stays() -> None:
    assert position_of(ONE, [position_record(OTHER, position(3))], position(7)) == position(7)
    assert position_of(ONE, [], None) is None


def test_runs_are_sorted_and_tombstones_remove_them() -> None:
    found = offset_map(run_records(ONE, [run(100, 101, 5), run(0, 0, 100)]))
    assert found.sorted_runs(ONE) == [run(0, 0, 100), run(100, 101, 5)]
    key, value = tombstone(ONE, run(0, 0, 100))
    found.apply(key, value)
    assert found.sorted_runs(ONE) == [run(100, 101, 5)]


def test_runs_below_the_log_start_are_lost_and_the_last_one_stays() -> None:
    found = offset_map(
        run_records(ONE, [run(0, 0, 100), run(100, 101, 50), run(200, 300, 10)]), [position_record(ONE, position(210))]
    )
    assert found.lost_runs({("east.orders", 0): 100}) == [(ONE, run(0, 0, 100))]
    assert found.lost_runs({("east.orders", 0): 1_000}) == [(ONE, run(0, 0, 100)), (ONE, run(100, 101, 50))]
    assert found.lost_runs({}) == []


def test_a_backfill_keeps_what_was_asked_for() -> None:
    wanted = Range(start_offset=3, end_offset=9, source_topic_id="source")
    found = offset_map([request_record("all of orders"), range_record("orders", 2, wanted)])
    assert (found.request, found.ranges) == ("all of orders", {("orders", 2): wanted})


def test_partitions_of_the_map_are_used_evenly() -> None:
    places = [SourcePartition(cluster="east", topic="orders", partition=number) for number in range(160)]
    used = [sum(map_partition(place, 16) == number for place in places) for number in range(16)]
    assert sum(used) == 160
    assert min(used) > 0
    assert max(used) < 40
