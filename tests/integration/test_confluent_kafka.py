"""confluent-kafka (librdkafka), unchanged, against one node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
)
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0
NOTHING: Mapping[str, object] = MappingProxyType({})


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[Consumer]:
    # librdkafka wants a group id even where partitions are assigned by hand; it commits nothing here.
    client = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "receive.message.max.bytes": 200_000_000,
        }
    )
    yield client
    client.close()


def create(admin: AdminClient, topic: str, partitions: int = 1, **config: str) -> str:
    new = NewTopic(
        topic, num_partitions=partitions, config={key.replace("_", "."): value for key, value in config.items()}
    )
    admin.create_topics([new])[topic].result(DEADLINE_S)
    return topic


def produce(
    bootstrap: str, topic: str, values: Sequence[bytes | None], settings: Mapping[str, object] = NOTHING
) -> list[int]:
    """Send all; the offsets in the order of `values`. Raises the first delivery error."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **settings})
    offsets: list[int] = []
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(error)
        else:
            offsets.append(message.offset() or 0)

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    if errors:
        raise KafkaException(errors[0])
    return offsets


def read_to_end(consumer: Consumer, topic: str, offset: int = OFFSET_BEGINNING) -> list[Message]:
    consumer.assign([TopicPartition(topic, 0, offset)])
    messages: list[Message] = []
    while True:
        message = consumer.poll(DEADLINE_S)
        assert message is not None, f"nothing came within {DEADLINE_S} s"
        error = message.error()
        if error is None:
            messages.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            return messages
        else:
            raise KafkaException(error)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_come_back_in_order_with_contiguous_offsets(
    bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str, acks: str
) -> None:
    create(admin, topic)
    values = [f"value {i}".encode() for i in range(1000)]
    offsets = produce(bootstrap, topic, values, {"acks": acks, "enable.idempotence": acks == "all"})
    messages = read_to_end(consumer, topic)
    assert [message.value() for message in messages] == values
    assert [message.offset() for message in messages] == list(range(1000))
    if acks != "0":
        assert offsets == list(range(1000))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_type_comes_back(
    bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str, codec: str
) -> None:
    create(admin, topic)
    values = [f"{codec} {i} ".encode() * 20 for i in range(500)]
    produce(bootstrap, topic, values, {"compression.type": codec, "linger.ms": 20})
    assert [message.value() for message in read_to_end(consumer, topic)] == values


def test_headers_null_keys_null_values_and_timestamps_survive(
    bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str
) -> None:
    create(admin, topic)
    producer = Producer({"bootstrap.servers": bootstrap})
    headers: list[tuple[str, str | bytes | None]] = [("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None)]
    producer.produce(topic, b"v", key=None, headers=headers, timestamp=1_000_000)
    producer.produce(topic, None, key=b"k", timestamp=2_000_000)
    producer.produce(topic, b"", key=b"")
    assert producer.flush(DEADLINE_S) == 0
    first, second, third = read_to_end(consumer, topic)
    assert (first.key(), first.value(), first.headers()) == (None, b"v", headers)
    assert first.timestamp() == (TIMESTAMP_CREATE_TIME, 1_000_000)
    assert (second.key(), second.value(), second.timestamp()[1]) == (b"k", None, 2_000_000)
    assert (third.key(), third.value()) == (b"", b"")


def test_sizes_from_nothing_to_the_limit(bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str) -> None:
    create(admin, topic)
    # 1,048,588 bytes is Kafka's default message.max.bytes; a batch of one record adds 61 bytes, 12 of its own.
    values = [b"x" * size for size in (0, 1, 16_383, 16_384, 65_536, 1_000_000, 1_048_588 - 61 - 12)]
    produce(bootstrap, topic, values, {"message.max.bytes": 2_000_000, "linger.ms": 0})
    assert [message.value() for message in read_to_end(consumer, topic)] == values


def test_a_record_over_the_limit_is_refused_and_the_next_one_is_taken(
    bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str
) -> None:
    create(admin, topic)
    with pytest.raises(KafkaException) as refused:
        produce(bootstrap, topic, [b"x" * 1_100_000], {"message.max.bytes": 2_000_000})
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    produce(bootstrap, topic, [b"small"])
    assert [message.value() for message in read_to_end(consumer, topic)] == [b"small"]


def test_seek_by_offset_and_by_time(bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str) -> None:
    create(admin, topic)
    producer = Producer({"bootstrap.servers": bootstrap})
    for i in range(100):
        producer.produce(topic, str(i).encode(), timestamp=1_600_000_000_000 + i * 1000)
        if i % 10 == 9:
            producer.flush(DEADLINE_S)
    assert [message.value() for message in read_to_end(consumer, topic, offset=95)] == [
        b"95",
        b"96",
        b"97",
        b"98",
        b"99",
    ]
    (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, 1_600_000_000_000 + 41_500)], DEADLINE_S)
    assert found.offset == 42
    (past,) = consumer.offsets_for_times([TopicPartition(topic, 0, 1_700_000_000_000)], DEADLINE_S)
    assert past.offset == OFFSET_END
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S) == (0, 100)


def test_an_offset_out_of_range_is_an_error_where_no_reset_is_wanted(
    bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str
) -> None:
    create(admin, topic)
    produce(bootstrap, topic, [b"only"])
    with pytest.raises(KafkaException) as error:
        read_to_end(consumer, topic, offset=77)
    assert error.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


def test_a_waiting_consumer_gets_a_record_as_soon_as_it_is_there(
    bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str
) -> None:
    create(admin, topic)
    assert read_to_end(consumer, topic) == []
    produce(bootstrap, topic, [b"news"])
    message = consumer.poll(DEADLINE_S)
    assert message is not None
    assert message.value() == b"news"


def test_produce_to_a_missing_topic_creates_it(bootstrap: str, admin: AdminClient, topic: str) -> None:
    produce(bootstrap, topic, [b"first"])
    assert topic in admin.list_topics(timeout=DEADLINE_S).topics


def test_topics_partitions_and_deletion(admin: AdminClient, topic: str) -> None:
    create(admin, topic, 3)
    with pytest.raises(KafkaException) as exists:
        create(admin, topic)
    assert exists.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    admin.create_partitions([NewPartitions(topic, 7)])[topic].result(DEADLINE_S)
    metadata = admin.list_topics(topic, timeout=DEADLINE_S).topics[topic]
    assert sorted(metadata.partitions) == list(range(7))
    with pytest.raises(KafkaException) as fewer:
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(DEADLINE_S)
    assert fewer.value.args[0].code() == KafkaError.INVALID_PARTITIONS
    admin.delete_topics([topic])[topic].result(DEADLINE_S)
    assert topic not in admin.list_topics(timeout=DEADLINE_S).topics


def test_topic_configs_are_described_and_altered_live(bootstrap: str, admin: AdminClient, topic: str) -> None:
    create(admin, topic, retention_ms="86400000")
    resource = ConfigResource(ResourceType.TOPIC, topic)
    described = admin.describe_configs([resource])[resource].result(DEADLINE_S)
    assert described["retention.ms"].value == "86400000"
    assert described["segment.bytes"].is_default
    change = ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
    admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])])[
        resource
    ].result(DEADLINE_S)
    with pytest.raises(KafkaException) as refused:
        produce(bootstrap, topic, [b"x" * 3000])
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert admin.describe_configs([resource])[resource].result(DEADLINE_S)["retention.ms"].value == "86400000"


def test_records_are_deleted_up_to_an_offset(
    bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str
) -> None:
    create(admin, topic)
    produce(bootstrap, topic, [str(i).encode() for i in range(10)])
    target = TopicPartition(topic, 0, 6)
    assert admin.delete_records([target])[target].result(DEADLINE_S).low_watermark == 6
    assert [message.offset() for message in read_to_end(consumer, topic)] == [6, 7, 8, 9]


def test_offsets_are_listed_by_spec(bootstrap: str, admin: AdminClient, topic: str) -> None:
    create(admin, topic)
    producer = Producer({"bootstrap.servers": bootstrap})
    for timestamp in (5_000, 9_000, 7_000):
        producer.produce(topic, b"v", timestamp=timestamp)
        producer.flush(DEADLINE_S)
    partition = TopicPartition(topic, 0)
    for spec, offset in (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 3),
        (OffsetSpec.max_timestamp(), 1),
        (OffsetSpec.for_timestamp(6_000), 1),
    ):
        assert admin.list_offsets({partition: spec})[partition].result(DEADLINE_S).offset == offset


def test_acls_are_answered_security_disabled(admin: AdminClient) -> None:
    acl = AclBinding(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    every = AclBindingFilter(
        ResourceType.TOPIC, "t", ResourcePatternType.ANY, "User:alice", "*", AclOperation.ANY, AclPermissionType.ANY
    )
    # Of a description this client shows no error.
    assert admin.describe_acls(every).result(DEADLINE_S) == []
    for answer in (admin.create_acls([acl])[acl], admin.delete_acls([every])[every]):
        with pytest.raises(KafkaException) as refused:
            answer.result(DEADLINE_S)
        error = refused.value.args[0]
        assert (error.code(), error.str()) == (KafkaError.SECURITY_DISABLED, "No Authorizer is configured.")
