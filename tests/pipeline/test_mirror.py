"""A mirror copies each record once, as it is, and refuses what it could only do wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions
from copied_records import differences, records_of
from pipeline_topics import Sent, create_topics, drain, produce, produce_aborted
from soak import soak_only
from waiting import wait_for

from penstock.local.cluster import LocalCluster
from penstock.pipeline.job import JobError
from penstock.pipeline.jobs.mirror import JOB, MirrorConfig, copy_settings
from penstock.pipeline.mirroring.batch_copy import BatchCopy
from penstock.pipeline.mirroring.group_mover import move_group
from penstock.pipeline.running.runner import StopRequest, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE_S = 60.0
T0_MS = 1_700_000_000_000
COUNT = 900


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("sink"), node_count=3) as running:
        yield running


@pytest.fixture
def config(bootstrap: str, sink: LocalCluster, tmp_path: Path, request: pytest.FixtureRequest) -> MirrorConfig:
    """For a topic of the test's own."""
    topic = str(request.node.name).replace("_", "-")
    return MirrorConfig(
        bootstrap=bootstrap,
        sink_bootstrap=sink.bootstrap,
        checkpoint=str(tmp_path / "checkpoint"),
        name=topic,
        topics=(topic,),
        available_now=True,
        max_offsets_per_trigger=2 * COUNT // 3,
    )


def mirror(spark: SparkSession, config: MirrorConfig) -> None:
    assert run(spark, JOB, config, stop=StopRequest(), stop_timeout_s=DEADLINE_S) == 0


def peculiar(numbers: Sequence[int]) -> Iterator[Sent]:
    """Records with everything that a copy can get wrong."""
    for number in numbers:
        yield Sent(
            key=(None, b"", b"k%d" % (number % 20))[min(number % 9, 2)],
            value=(None, b"", b"v%d" % number)[min(number % 11, 2)],
            partition=number % 3,
            timestamp_ms=T0_MS + number,
            headers=((), (("h", b"%d" % number), ("none", None), ("h", b"")))[number % 2],
        )


def test_each_record_is_copied_once_as_it_is(spark: SparkSession, config: MirrorConfig, tmp_path: Path) -> None:
    """With aborted transactions between, and once more from the beginning when the checkpoint is lost."""
    (topic,) = config.topics
    create_topics(config.bootstrap, topic, configs={"segment.ms": "654321", "max.message.bytes": "123456"})
    for part in range(3):
        produce(config.bootstrap, topic, peculiar(range(part * COUNT // 3, (part + 1) * COUNT // 3)))
        aborted = [Sent(key=b"aborted", value=b"x", partition=number % 3) for number in range(10)]
        produce_aborted(config.bootstrap, topic, aborted, transactional_id=f"aborting-{part}")
    wanted = records_of(drain(config.bootstrap, topic, count=COUNT))
    mirror(spark, config)
    assert differences(wanted, records_of(drain(config.sink_bootstrap, topic, count=COUNT))) == []
    configs = topic_configs(config.sink_bootstrap, topic)
    assert (configs["segment.ms"], configs["max.message.bytes"], configs["retention.ms"]) == ("654321", "123456", "-1")
    more = produce(config.bootstrap, topic, peculiar(range(COUNT, COUNT + 50)))
    mirror(spark, msgspec.structs.replace(config, checkpoint=str(tmp_path / "new")))
    wanted = records_of(drain(config.bootstrap, topic, count=COUNT + more))
    assert differences(wanted, records_of(drain(config.sink_bootstrap, topic, count=COUNT + more))) == []


def test_two_sources_are_gathered_in_one_sink(spark: SparkSession, config: MirrorConfig, sink: LocalCluster) -> None:
    """By a pattern, which does not mean internal topics; the sink is one of the sources, too."""
    (topic,) = config.topics
    create_topics(config.bootstrap, topic)
    create_topics(sink.bootstrap, topic)
    produce(config.bootstrap, topic, peculiar(range(100)))
    produce(sink.bootstrap, topic, peculiar(range(500, 620)))
    mirror(
        spark,
        MirrorConfig(
            sources={"east": config.bootstrap, "west": sink.bootstrap},
            sink_bootstrap=sink.bootstrap,
            checkpoint=config.checkpoint,
            name=config.name,
            topic_pattern=f"{topic}|__.*|penstock-.*",
            available_now=True,
        ),
    )
    for name, brokers, count in (("east", config.bootstrap, 100), ("west", sink.bootstrap, 120)):
        wanted = records_of(drain(brokers, topic, count=count))
        assert differences(wanted, records_of(drain(sink.bootstrap, f"{name}.{topic}", count=count))) == []
    listed = AdminClient({"bootstrap.servers": sink.bootstrap}).list_topics(timeout=DEADLINE_S).topics
    made = {name for name in listed if name.startswith(("east.", "west."))}
    assert made == {f"east.{topic}", f"west.{topic}"}


def test_a_consumer_that_moves_over_misses_nothing(spark: SparkSession, config: MirrorConfig) -> None:
    (topic,) = config.topics
    create_topics(config.bootstrap, topic)
    produce(
        config.bootstrap, topic, (Sent(value=b"%d" % n, partition=n % 3, timestamp_ms=T0_MS + n) for n in range(COUNT))
    )
    before = consumed(config.bootstrap, topic, "movers", 500)
    mirror(spark, config)
    copy = BatchCopy(copy_settings(config))
    copy.map.follow(is_first_batch=False)
    sources, sink = copy.settings.sources, copy.settings.sink
    move = move_group("movers", sources, sink, copy.map.found)
    assert len(move.committed) == 3
    assert (move.not_copied, move.is_active) == ((), False)
    # It is not set back, neither by a second move nor by what it reads in between.
    assert move_group("movers", sources, sink, copy.map.found).committed == {}
    after = consumed(config.sink_bootstrap, topic, "movers", COUNT - 500)
    assert {*before} | {*after} == {b"%d" % number for number in range(COUNT)}
    assert len(after) == COUNT - 500
    assert move_group("movers", sources, sink, copy.map.found).committed == {}


@soak_only
def test_partitions_that_the_source_gets_are_followed(spark: SparkSession, config: MirrorConfig) -> None:
    (topic,) = config.topics
    create_topics(config.bootstrap, topic)
    produce(config.bootstrap, topic, peculiar(range(90)))
    mirror(spark, config)
    admin = AdminClient({"bootstrap.servers": config.bootstrap})
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(DEADLINE_S)
    wait_for(lambda: partition_count(config.bootstrap, topic) == 5, "there are five")
    produce(
        config.bootstrap, topic, (Sent(value=b"%d" % n, partition=n % 5, timestamp_ms=T0_MS + n) for n in range(60))
    )
    mirror(spark, config)
    assert partition_count(config.sink_bootstrap, topic) == 5
    wanted = records_of(drain(config.bootstrap, topic, count=150))
    assert differences(wanted, records_of(drain(config.sink_bootstrap, topic, count=150))) == []


def test_a_sink_topic_with_fewer_partitions_is_refused(spark: SparkSession, config: MirrorConfig) -> None:
    (topic,) = config.topics
    create_topics(config.bootstrap, topic)
    create_topics(config.sink_bootstrap, topic, partition_count=2)
    produce(config.bootstrap, topic, peculiar(range(30)))
    with pytest.raises(JobError, match=r"of the sink has 2 partitions, and .* of source has 3"):
        mirror(spark, config)
    assert drain(config.sink_bootstrap, topic) == []


def test_a_source_topic_that_is_made_again_is_refused(spark: SparkSession, config: MirrorConfig) -> None:
    """Its offsets mean other records; with more of them than before, Spark would not notice."""
    (topic,) = config.topics
    create_topics(config.bootstrap, topic)
    produce(config.bootstrap, topic, peculiar(range(90)))
    mirror(spark, config)
    admin = AdminClient({"bootstrap.servers": config.bootstrap})
    admin.delete_topics([topic])[topic].result(DEADLINE_S)
    wait_for(lambda: partition_count(config.bootstrap, topic) == 0, "it is gone")
    create_topics(config.bootstrap, topic)
    produce(config.bootstrap, topic, peculiar(range(200)))
    with pytest.raises(JobError, match=r"was deleted and made again: its id is"):
        mirror(spark, config)
    drain(config.sink_bootstrap, topic, count=90)


def test_a_topic_is_not_copied_into_itself(spark: SparkSession, config: MirrorConfig) -> None:
    (topic,) = config.topics
    create_topics(config.bootstrap, topic)
    produce(config.bootstrap, topic, peculiar(range(30)))
    with pytest.raises(JobError, match="would be copied into itself"):
        mirror(spark, msgspec.structs.replace(config, sink_bootstrap=config.bootstrap))
    drain(config.bootstrap, topic, count=30)


def consumed(bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
    """By a member of the group, which commits what it has got."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            # Where its offsets are unknown it would miss everything.
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }
    )
    try:
        committed = consumer.committed([TopicPartition(topic, number) for number in range(3)], DEADLINE_S)
        for place in committed:
            place.offset = max(place.offset, 0)
        consumer.commit(offsets=committed, asynchronous=False)
        consumer.subscribe([topic])
        found: list[bytes] = []
        while len(found) < count:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"{len(found)} of {count}"
            assert message.error() is None, message.error()
            value = message.value()
            assert isinstance(value, bytes)
            found.append(value)
        consumer.commit(asynchronous=False)
        return found
    finally:
        consumer.close()


def partition_count(bootstrap: str, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    listed = admin.list_topics(timeout=DEADLINE_S).topics
    return len(listed[topic].partitions) if topic in listed else 0


def topic_configs(bootstrap: str, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (future,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    return {name: str(entry.value) for name, entry in future.result(DEADLINE_S).items()}
