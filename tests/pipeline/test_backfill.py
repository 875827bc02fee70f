"""A backfill copies its range once, into the partitions that were asked for, and ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from copied_records import Copied, records_of
from kafka.partitioner.default import murmur2
from pipeline_topics import Sent, create_topics, drain, produce
from soak import soak_only

from penstock.pipeline.job import JobError
from penstock.pipeline.jobs.backfill import JOB, BackfillConfig
from penstock.pipeline.mirroring.batch_copy import BatchCopy
from penstock.pipeline.running.runner import StopRequest, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T0_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""
COUNT = 600
PARTITIONS = 3
NEW_PARTITIONS = 4


@pytest.fixture
def config(bootstrap: str, tmp_path: Path, request: pytest.FixtureRequest) -> BackfillConfig:
    topic = str(request.node.name).replace("_", "-")
    create_topics(bootstrap, topic, partition_count=PARTITIONS)
    produce(bootstrap, topic, map(sent, range(COUNT)))
    return BackfillConfig(
        bootstrap=bootstrap,
        checkpoint=str(tmp_path / "checkpoint"),
        name=topic,
        topics=(topic,),
        topic_format="{topic}.again",
        partitions=NEW_PARTITIONS,
        max_offsets_per_trigger=250,
    )


def sent(number: int) -> Sent:
    """One a second; each key is always in one partition."""
    return Sent(
        key=b"k%d" % (number % 30),
        value=None if number % 13 == 0 else b"%d" % number,
        partition=number % PARTITIONS,
        timestamp_ms=T0_MS + 1_000 * number,
        headers=(("number", b"%d" % number),),
    )


def backfill(spark: SparkSession, config: BackfillConfig) -> None:
    assert run(spark, JOB, config, stop=StopRequest(), stop_timeout_s=30) == 0


def again(config: BackfillConfig, numbers: range) -> list[Copied]:
    """What is in the target, which has these records, each once, and those of a key in order in each partition."""
    found = records_of(drain(config.bootstrap, f"{config.topics[0]}.again"))
    wanted = [sent(number) for number in numbers]
    assert wanted
    assert Counter((one.key, one.value, one.headers, one.timestamp_ms) for one in found) == Counter(
        (one.key, one.value, tuple(one.headers), one.timestamp_ms) for one in wanted
    )
    for place in {(one.partition, one.key) for one in found}:
        times = [one.timestamp_ms for one in found if (one.partition, one.key) == place]
        assert times == sorted(times)
    return found


def test_records_between_two_times_go_to_the_partition_of_their_key(
    spark: SparkSession, config: BackfillConfig
) -> None:
    """Once more, with and without the checkpoint, adds nothing."""
    config = msgspec.structs.replace(config, starting_time="2026-01-01T00:01:00Z", ending_time="2026-01-01T00:08:00Z")
    backfill(spark, config)
    found = again(config, range(60, 480))
    for one in found:
        assert one.key is not None
        assert one.partition == (murmur2(one.key) & 0x7FFFFFFF) % NEW_PARTITIONS
    produce(config.bootstrap, config.topics[0], map(sent, range(COUNT, COUNT + 5)))
    backfill(spark, config)
    backfill(spark, msgspec.structs.replace(config, checkpoint=f"{config.checkpoint}-lost"))
    assert again(config, range(60, 480)) == found


def test_offsets_and_round_robin_after_a_crash_on_the_way(
    spark: SparkSession, config: BackfillConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (topic,) = config.topics
    offsets = {topic: {str(number): 20 for number in range(PARTITIONS)}}
    ends = {topic: {str(number): 180 for number in range(PARTITIONS)}}
    config = msgspec.structs.replace(
        config,
        partitioning="round-robin",
        starting_offsets=msgspec.json.encode(offsets).decode(),
        ending_offsets=msgspec.json.encode(ends).decode(),
    )
    write: Callable[..., object] = BatchCopy.write

    def crash(copy: BatchCopy, records: object) -> object:
        reports = write(copy, records)
        raise RuntimeError(f"after {reports}")

    with monkeypatch.context() as crashing:
        crashing.setattr(BatchCopy, "write", crash)
        with pytest.raises(JobError):
            backfill(spark, config)
    part = len(drain(config.bootstrap, f"{topic}.again"))
    assert 0 < part < 480
    backfill(spark, config)
    found = again(config, range(60, 540))
    assert {*Counter(one.partition for one in found).values()} == {480 // NEW_PARTITIONS}


def test_records_keep_their_partition_and_their_order(spark: SparkSession, config: BackfillConfig) -> None:
    (topic,) = config.topics
    backfill(spark, msgspec.structs.replace(config, partitioning="keep", partitions=0))
    assert again(config, range(COUNT)) == records_of(drain(config.bootstrap, topic))


@soak_only
def test_another_range_of_the_same_name_is_refused(spark: SparkSession, config: BackfillConfig) -> None:
    backfill(spark, config)
    again(config, range(COUNT))
    other = msgspec.structs.replace(config, ending_time="2026-01-01", checkpoint=f"{config.checkpoint}-2")
    with pytest.raises(JobError, match="was begun for"):
        backfill(spark, other)
    again(config, range(COUNT))
