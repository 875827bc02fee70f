"""Progress as Spark tells it becomes values: rates, phases, offsets, watermark and state."""

from __future__ import annotations

import pytest
from spark_progress import QUERY, RUN, progress_json

from penstock.pipeline.progress.progress_values import OTHER_PHASE, PartitionProgress, StateProgress, progress_of


def test_a_batch_of_a_windowed_count() -> None:
    progress = progress_of(progress_json())
    assert (progress.query_id, progress.run_id, progress.name, progress.batch_id) == (QUERY, RUN, "counts", 1)
    assert (progress.input_rows, round(progress.input_rows_per_second), round(progress.processed_rows_per_second)) == (
        1000, 301, 1585,
    )  # fmt: skip
    assert progress.partitions == (
        PartitionProgress(topic="t", partition=0, offset=856, latest_offset=1284),
        PartitionProgress(topic="t", partition=1, offset=1144, latest_offset=1716),
    )
    assert [one.lag for one in progress.partitions] == [428, 572]
    assert progress.lag == 1000
    assert progress.watermark_ms == 1795855673364
    assert progress.ended_ms - progress.began_ms == 630
    assert progress.phases_s["addBatch"] == 0.479
    assert progress.states == (StateProgress(operator="0 stateStoreSave", rows=7, memory_bytes=3360, late_rows=3),)
    assert progress.is_committed


def test_a_trigger_without_a_batch_is_not_committed() -> None:
    assert not progress_of(progress_json(durationMs={"latestOffset": 3, "triggerExecution": 4})).is_committed


def test_spark_4_1_names_the_commit_of_a_batch_otherwise() -> None:
    assert progress_of(progress_json(durationMs={"commitBatch": 3, "triggerExecution": 4})).is_committed


def test_before_the_first_watermark_there_is_none() -> None:
    assert progress_of(progress_json(eventTime={"watermark": "1970-01-01T00:00:00.000Z"})).watermark_ms is None
    assert progress_of(progress_json(eventTime={})).watermark_ms is None


def test_a_query_without_a_name_goes_by_its_id() -> None:
    assert progress_of(progress_json(name=None)).name == QUERY


def test_phases_that_are_not_known_are_one() -> None:
    phases = progress_of(progress_json(durationMs={"addBatch": 1000, "new": 500, "newer": 250})).phases_s
    assert phases == {"addBatch": 1.0, OTHER_PHASE: 0.75}


def test_of_two_sources_that_read_a_partition_the_one_behind_counts() -> None:
    sources = [
        {"endOffset": {"t": {"0": 5}}, "latestOffset": {"t": {"0": 9}}},
        {"endOffset": {"t": {"0": 3}, "u": {"0": 1}}, "latestOffset": None},
    ]
    assert progress_of(progress_json(sources=sources)).partitions == (
        PartitionProgress(topic="t", partition=0, offset=3, latest_offset=None),
        PartitionProgress(topic="u", partition=0, offset=1, latest_offset=None),
    )


@pytest.mark.parametrize("offset", [7, None, {"logOffset": 3}, {"a": {"b": 3}}, "not JSON", {"t": {"0": "3"}}])
def test_sources_that_are_not_of_kafka_have_no_partitions(offset: object) -> None:
    assert progress_of(progress_json(sources=[{"endOffset": offset}])).partitions == ()


def test_a_source_may_tell_its_offsets_as_text() -> None:
    sources = [{"endOffset": '{"t":{"0":5}}', "latestOffset": '{"t":{"0":7}}'}]
    assert progress_of(progress_json(sources=sources)).lag == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"id": 1}', progress_json(timestamp="yesterday")])
def test_another_form_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="expected the JSON of a StreamingQueryProgress"):
        progress_of(text)
