"""What the checkpoint of Spark says of one batch."""

from __future__ import annotations

import json

import pytest

from penstock.pipeline.results.offset_log import (
    OffsetLogError,
    offsets_of,
    parse_initial_offsets,
    parse_logged_batch,
    range_of_batch,
)

METADATA = '{"batchWatermarkMs":1700000009000,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"2"}}'


def test_a_batch_has_a_watermark_and_offsets_of_its_sources() -> None:
    logged = parse_logged_batch(f'v1\n{METADATA}\n{{"a":{{"0":4,"1":5}}}}\n-\n{{"b":{{"0":6}}}}')
    assert logged.watermark_ms == 1_700_000_009_000
    assert logged.sources == ({"a": {"0": 4, "1": 5}}, None, {"b": {"0": 6}})
    assert offsets_of(logged.sources, ("b",)) == {"b": {"0": 6}}
    assert offsets_of(logged.sources, ()) == {"a": {"0": 4, "1": 5}, "b": {"0": 6}}


def test_initial_offsets_are_behind_a_zero_byte() -> None:
    assert parse_initial_offsets('\0v1\n{"a":{"0":17}}') == {"a": {"0": 17}}


@pytest.mark.parametrize("text", ["", "v2\n{}\n{}", f"v1\n{METADATA}", 'v1\n{}\n{"a":{}}', f"v1\n{METADATA}\nx"])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(OffsetLogError):
        parse_logged_batch(text)
    with pytest.raises(OffsetLogError):
        parse_initial_offsets(text)


def test_a_batch_reads_from_the_offsets_before_it_and_new_partitions_from_their_beginning() -> None:
    found = range_of_batch({"a": {"0": 4, "1": 7}}, {"a": {"0": 9, "1": 7, "2": 3}})
    assert found is not None
    starts, ends = map(json.loads, found)
    assert starts == {"a": {"0": 4, "2": -2}}
    assert ends == {"a": {"0": 9, "2": 3}}


def test_a_batch_without_records_reads_nothing() -> None:
    assert range_of_batch({"a": {"0": 4}}, {"a": {"0": 4}}) is None
    assert range_of_batch({}, {}) is None
