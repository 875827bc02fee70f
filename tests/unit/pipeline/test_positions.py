"""A table's positions never go back, and tell rows that it has from rows that are new."""

from penstock.pipeline.tables.positions import (
    OffsetRange,
    advanced,
    decoded,
    encoded,
    overlapping,
    position,
)


def held(topic: str, partition: int, first: int, last: int) -> OffsetRange:
    return OffsetRange(topic=topic, partition=partition, first_offset=first, last_offset=last, row_count=1)


def test_a_batch_moves_the_positions_behind_its_last_rows() -> None:
    after = advanced({"a": {0: 5}}, [held("a", 0, 5, 9), held("a", 1, 0, 0), held("b", 0, 7, 7)])
    assert after == {"a": {0: 10, 1: 1}, "b": {0: 8}}


def test_a_replayed_batch_leaves_the_positions_where_they_are() -> None:
    before = {"a": {0: 10, 1: 3}}
    assert advanced(before, [held("a", 0, 2, 6)]) == before


def test_positions_given_to_a_rule_are_not_changed() -> None:
    before = {"a": {0: 1}}
    advanced(before, [held("a", 0, 1, 8)])
    assert before == {"a": {0: 1}}


def test_only_partitions_with_rows_below_the_position_overlap() -> None:
    positions = {"a": {0: 10, 1: 10}, "b": {0: 10}}
    found = overlapping(positions, [held("a", 0, 9, 12), held("a", 1, 10, 12), held("c", 0, 0, 3)])
    assert found == {"a": {0: 10}}


def test_a_partition_that_the_table_has_never_seen_is_at_0() -> None:
    assert position({"a": {0: 4}}, "a", 0) == 4
    assert position({"a": {0: 4}}, "a", 1) == 0
    assert position({}, "b", 0) == 0


def test_positions_are_written_as_spark_writes_offsets_and_read_back() -> None:
    positions = {"a": {0: 10, 11: 3}, "b": {}}
    assert encoded(positions) == '{"a":{"0":10,"11":3},"b":{}}'
    assert decoded(encoded(positions)) == positions
