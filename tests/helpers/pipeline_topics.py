"""Topics of a test of the pipeline: made, filled and read to the end by an independent client, librdkafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from waiting import wait_for

_TIMEOUT_S: Final = 60.0
_AT_ONCE: Final = 5_000
_PATIENCE_S: Final = 0.1
"""A call for records waits that long for all that it may return: at the end of a topic they are fewer."""
KEPT: Final = {"retention.ms": "-1"}
"""Records of tests carry times long past, which the default retention would delete under the test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A record to produce; `timestamp_ms` 0 is now."""

    key: bytes | str | None = None
    value: bytes | str | None
    partition: int = -1
    timestamp_ms: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()


def create_topics(
    bootstrap: str,
    *names: str,
    partition_count: int = 3,
    replica_count: int = 3,
    configs: Mapping[str, str] | None = None,
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic(name, partition_count, replica_count, config={**KEPT, "min.insync.replicas": "1", **(configs or {})})
        for name in names
    ]
    for future in admin.create_topics(topics, operation_timeout=_TIMEOUT_S).values():
        future.result(_TIMEOUT_S)


def recreate_topic(bootstrap: str, topic: str, *, partition_count: int) -> tuple[str, str]:
    """Deletes a topic and makes it anew; returns its ids before and after."""
    before = topic_id(bootstrap, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic], operation_timeout=_TIMEOUT_S)[topic].result(_TIMEOUT_S)
    wait_for(lambda: topic not in admin.list_topics(timeout=_TIMEOUT_S).topics, f"{topic} is gone")
    create_topics(bootstrap, topic, partition_count=partition_count)
    after = wait_for(lambda: topic_id(bootstrap, topic), f"{topic} is there again")
    return before, after


def topic_id(bootstrap: str, topic: str) -> str:
    """As Kafka prints it; empty when there is no such topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        found = admin.describe_topics(TopicCollection([topic]))[topic].result(_TIMEOUT_S)
        return str(found.topic_id).replace("+", "-").replace("/", "_")
    except KafkaException:
        return ""


def produce(bootstrap: str, topic: str, records: Iterable[Sent], **properties: Any) -> int:
    """Sends all, waits for every acknowledgement, and returns how many there are: at least one, or the test would be of
    an empty topic."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True, "acks": "all", **properties}
    )
    refused: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            refused.append(error)

    count = 0
    for record in records:
        send(producer, topic, record, on_delivery=on_delivery)
        count += 1
    left = producer.flush(_TIMEOUT_S)
    assert not left, f"{left} records unacknowledged"
    assert not refused, refused[:3]
    assert count, "nothing was produced"
    return count


def produce_aborted(bootstrap: str, topic: str, records: Sequence[Sent], *, transactional_id: str) -> None:
    """Records of a transaction that is aborted: no reader of committed records may see them."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(_TIMEOUT_S)
    producer.begin_transaction()
    for record in records:
        send(producer, topic, record)
    assert not producer.flush(_TIMEOUT_S)
    producer.abort_transaction(_TIMEOUT_S)


def send(producer: Producer, topic: str, record: Sent, **arguments: Any) -> None:
    """Waits where the producer's queue is full."""
    while True:
        try:
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                **arguments,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def drain(bootstrap: str, topic: str, *, count: int | None = None, **properties: Any) -> list[Message]:
    """All committed records of a topic up to the ends that it has now, by partition and offset. `count` is how many
    there have to be."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "tests-drain",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            **properties,
        }
    )
    try:
        partitions = [*consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions]
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        ended: set[int] = set()
        found: list[Message] = []
        while len(ended) < len(partitions):
            for message in consumer.consume(_AT_ONCE, timeout=_PATIENCE_S):
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(cast("int", message.partition()))
                else:
                    raise AssertionError(error)
    finally:
        consumer.close()
    assert count is None or len(found) == count, (topic, len(found), count)
    return sorted(found, key=lambda message: (message.partition(), message.offset()))
