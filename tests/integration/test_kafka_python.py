"""kafka-python, unchanged, against one node."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, NewTopic, ResourcePattern, ResourceType
from kafka.errors import SecurityDisabledError

pytestmark = [
    pytest.mark.integration,
    # The client leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

DEADLINE_MS = 30_000


@pytest.fixture(autouse=True)
def collected_here() -> Iterator[None]:
    """What this client leaves open is closed within its own test, where the warning is expected."""
    yield
    gc.collect()


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([NewTopic(topic, partitions, 1)])
    finally:
        admin.close()


def read(bootstrap: str, partition: TopicPartition, count: int) -> list[Any]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, enable_auto_commit=False, consumer_timeout_ms=DEADLINE_MS, group_id=None
    )
    try:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        # The range first: the other way round the consumer is asked for one record more than there are.
        return [record for _, record in zip(range(count), consumer, strict=False)]
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_round_trip(bootstrap: str, topic: str, codec: str | None) -> None:
    create(bootstrap, topic)
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, acks="all", linger_ms=5)
    try:
        values = [f"value {i}".encode() for i in range(300)]
        sent = [producer.send(topic, value, key=b"k", headers=[("h", b"1")], partition=0) for value in values]
        assert [future.get(DEADLINE_MS / 1000).offset for future in sent] == list(range(300))
    finally:
        producer.close()
    records = read(bootstrap, TopicPartition(topic, 0), 300)
    assert [record.value for record in records] == values
    assert {record.key for record in records} == {b"k"}
    assert {tuple(record.headers) for record in records} == {(("h", b"1"),)}


def test_offsets_by_time_beginning_and_end(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    try:
        for i in range(10):
            producer.send(topic, b"v", partition=0, timestamp_ms=1_000_000 + i * 10).get(DEADLINE_MS / 1000)
    finally:
        producer.close()
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    try:
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 10}
        assert consumer.offsets_for_times({partition: 1_000_035})[partition].offset == 4
    finally:
        consumer.close()


def test_acls_are_answered_security_disabled(bootstrap: str) -> None:
    acl = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, "t"))
    every = ACLFilter(None, "*", ACLOperation.ANY, ACLPermissionType.ANY, ResourcePattern(ResourceType.TOPIC, "t"))
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        with pytest.raises(SecurityDisabledError, match="No Authorizer is configured on the broker"):
            admin.describe_acls(every)
        assert admin.create_acls([acl])["failed"] == [SecurityDisabledError]
        assert admin.delete_acls([every]) == [(every, [], SecurityDisabledError)]
    finally:
        admin.close()
