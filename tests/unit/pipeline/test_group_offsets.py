"""A consumer that moves to the translated offset misses nothing that it has not read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.mirroring.rules.group_offsets import Translation, advances, translate_group, translated
from penstock.pipeline.mirroring.rules.offset_map import OffsetMap, Position, position_record, run_records
from penstock.pipeline.mirroring.rules.offset_runs import STEP, Run, marks, runs, sections
from penstock.pipeline.mirroring.rules.source_partition import SourcePartition

ONE = SourcePartition(cluster="east", topic="orders", partition=0)
OTHER = SourcePartition(cluster="west", topic="orders", partition=0)
TARGET = ("orders", 0)


def add(
    offset_map: OffsetMap, place: SourcePartition, found: list[Run], next_offset: int, target_next: int | None
) -> None:
    position = Position(
        next_offset=next_offset,
        source_topic_id="source",
        target_topic="orders",
        target_topic_id="target",
        target_partition=None if target_next is None else 0,
        target_next_offset=target_next,
    )
    for key, value in [*run_records(place, found), position_record(place, position)]:
        offset_map.apply(key, value)


def run(first_offset: int, first_target_offset: int, count: int) -> Run:
    return Run(first_offset=first_offset, first_target_offset=first_target_offset, count=count)


def example() -> OffsetMap:
    offset_map = OffsetMap()
    add(offset_map, ONE, [run(10, 0, 5), run(100, 6, 50)], 150, 56)
    return offset_map


def test_inside_a_run_the_offset_is_exact() -> None:
    assert translated(example(), ONE, 100) == 6
    assert translated(example(), ONE, 149) == 55
    assert translated(example(), ONE, 12) == 2


def test_between_runs_it_is_the_end_of_the_one_below() -> None:
    assert translated(example(), ONE, 15) == 5
    assert translated(example(), ONE, 99) == 5


def test_it_is_never_past_what_is_copied() -> None:
    assert translated(example(), ONE, 150) == 56
    assert translated(example(), ONE, 1_000) == 56


def test_what_is_older_than_the_copy_begins_at_its_beginning() -> None:
    assert translated(example(), ONE, 3) == 0
    assert translate_group(example(), {ONE: 3}, {TARGET: 2}).offsets == {TARGET: 2}


def test_what_is_not_copied_has_no_offset() -> None:
    assert translated(example(), OTHER, 5) is None
    found = translate_group(example(), {ONE: 100, OTHER: 5}, {})
    assert found == Translation(offsets={TARGET: 6}, not_copied=(OTHER,))


def test_records_that_are_spread_have_no_offset() -> None:
    offset_map = OffsetMap()
    add(offset_map, ONE, [], 150, None)
    assert translate_group(offset_map, {ONE: 100}, {}).not_copied == (ONE,)


def test_of_two_sources_in_one_partition_the_lower_counts() -> None:
    offset_map = example()
    add(offset_map, OTHER, [run(0, 20, 10)], 10, 70)
    assert translate_group(offset_map, {ONE: 140, OTHER: 3}, {}).offsets == {TARGET: 23}


def test_a_group_is_never_set_back() -> None:
    translation = Translation(offsets={("a", 0): 5, ("a", 1): 5, ("a", 2): 5}, not_copied=())
    assert advances(translation, {("a", 0): 9, ("a", 1): 5}) == {("a", 2): 5}


@pytest.mark.thorough
@given(st.data())
def test_no_record_is_missed_and_few_are_read_again(data: st.DataObject) -> None:
    """Transactions of any size, with gaps in the source, markers in the target and another producer between."""
    offset_map, target_of = OffsetMap(), dict[int, int]()
    next_offset, target = None, 0
    source = data.draw(st.integers(0, 250))
    for count in data.draw(st.lists(st.integers(1, 120), min_size=1, max_size=12)):
        offsets, targets = [], []
        gaps = data.draw(st.sets(st.integers(0, count - 1), max_size=3))
        others = data.draw(st.sets(st.integers(0, count - 1), max_size=2))
        for index in range(count):
            source += 1 + 2 * (index in gaps)
            target += index in others
            offsets.append(source)
            targets.append(target)
            target += 1
        target += 1
        found = sections(offsets, next_offset)
        next_offset = offsets[-1] + 1
        target_of |= zip(offsets, targets, strict=True)
        some = runs(offsets, found, {index: targets[index] for index in marks(found)})
        add(offset_map, ONE, some, next_offset, targets[-1] + 1)
    assert target_of
    for committed in range(max(target_of) + 5):
        offset = translated(offset_map, ONE, committed)
        assert offset is not None
        wanted = [one for source_offset, one in target_of.items() if source_offset >= committed]
        assert not wanted or offset <= min(wanted)
        again = [one for source_offset, one in target_of.items() if source_offset < committed and one >= offset]
        assert len(again) <= 2 * STEP
