"""Real clients for tests of faults: one record without retries, topics, and waiting for a condition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from penstock.chaos.faults.node_faults import NodeFaults
from penstock.chaos.workloads.numbered_records import NumberedRecords
from penstock.client.cluster_metadata import ask_metadata
from penstock.local.cluster import LocalCluster

DEADLINE_S = 60.0
ACKNOWLEDGED = "acknowledged"


def faulty_cluster(folder: Path, properties: Mapping[str, str] | None = None) -> tuple[LocalCluster, NodeFaults]:
    """One node, not started yet, and what can be made to fail in it."""
    cluster = LocalCluster(folder, properties=properties)
    return cluster, NodeFaults(cluster.nodes[1])


def numbered(
    cluster: LocalCluster, topic: str, *, partitions: int = 2, seed: int = 1, value_bytes: int = 100
) -> NumberedRecords:
    return NumberedRecords(
        cluster.bootstrap, topic, partitions=partitions, random=Random(seed), value_bytes=value_bytes
    )


def create_topic(
    cluster: LocalCluster, topic: str, *, partitions: int = 2, config: Mapping[str, str] | None = None
) -> None:
    new = NewTopic(topic, partitions, 1, config=dict(config or {}))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([new])[topic].result(DEADLINE_S)


def delete_topic(cluster: LocalCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics([topic])[topic].result(DEADLINE_S)


def make_group_topic(cluster: LocalCluster, topic: str) -> None:
    """A consumer asks what its group has committed, and is answered: later ones find their coordinator."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "none"})
    consumer.committed([TopicPartition(topic, 0)], timeout=DEADLINE_S)
    consumer.close()


def end_offset(cluster: LocalCluster, topic: str, partition: int = 0) -> int:
    """By ListOffsets."""
    wanted = TopicPartition(topic, partition)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return int(admin.list_offsets({wanted: OffsetSpec.latest()})[wanted].result(DEADLINE_S).offset)


def produce_once(cluster: LocalCluster, topic: str, *, partition: int = 0, value: bytes = b"once" * 1000) -> str:
    """`ACKNOWLEDGED`, or the name of the error that one record without retries is answered with."""
    outcome: list[str] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        outcome.append(ACKNOWLEDGED if error is None else str(error.name()))

    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "retries": 0, "message.timeout.ms": 30_000, "log_level": 0}
    )
    producer.produce(topic, value, partition=partition, on_delivery=on_delivery)
    producer.flush(DEADLINE_S)
    return outcome[0]


def led_partitions(cluster: LocalCluster, topic: str) -> set[int]:
    """Those that have a leader, by Metadata."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    found = ask_metadata(admin, topic).topics[topic].partitions
    return {index for index, partition in found.items() if partition.leader >= 0}
