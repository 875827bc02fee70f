"""OffsetForLeaderEpoch, DeleteRecords, DescribeProducers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64
from permission_cases import UNRESTRICTED

from penstock.broker.apis import delete_records, describe_producers, offset_for_leader_epoch
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.messages import NO_THROTTLE
from penstock.protocol.records import Record, write_batch

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode

NOW = 1_700_000_000_000


def batch(**options: int) -> bytes:
    return write_batch([Record(number, NOW, b"k", b"v") for number in range(4)], **options)  # type: ignore[arg-type]


def epoch_request(*wanted: tuple[int, int, int], topic: str = "a") -> OffsetForLeaderEpochRequest:
    """`wanted` has (partition, current leader epoch, asked leader epoch)."""
    partitions = tuple(
        OffsetForLeaderPartition(partition=i32(index), current_leader_epoch=i32(current), leader_epoch=i32(asked))
        for index, current, asked in wanted
    )
    return OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=TopicName(topic), partitions=partitions),))


def epoch_ends(node: DataNode, *wanted: tuple[int, int, int], topic: str = "a") -> list[tuple[int, int, int]]:
    """(error, leader epoch, end offset) each."""
    (asked,) = epoch_request(*wanted, topic=topic).topics
    answers = [offset_for_leader_epoch.end_of_epoch(node.partitions, set(), topic, one) for one in asked.partitions]
    return [(one.error_code, one.leader_epoch, one.end_offset) for one in answers]


def test_end_of_an_epoch_is_the_start_of_the_next_kip_101(node: DataNode) -> None:
    node.create_topic()
    node.produce(batch())
    node.elect("a", leader=1)
    node.elect("a", leader=1)
    node.produce(batch())
    assert epoch_ends(node, (0, -1, 0), (0, 2, 1), (0, -1, 2), (0, -1, 3)) == [
        (0, 0, 4),
        (0, 0, 4),
        (0, 2, 8),
        (0, -1, -1),
    ]


def test_epoch_of_the_client_is_compared_before_it_is_answered_kip_320(node: DataNode) -> None:
    node.create_topic()
    node.elect("a", leader=1)
    assert epoch_ends(node, (0, 0, 0), (0, 5, 0), (9, -1, 0)) == [
        (ErrorCode.FENCED_LEADER_EPOCH, -1, -1),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    ]
    # -1 is no epoch; below it the client has one that is older than ours.
    assert epoch_ends(node, (0, -2, 0)) == [(ErrorCode.FENCED_LEADER_EPOCH, -1, -1)]
    assert epoch_ends(node, (0, -1, 0), topic="none") == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]


def test_error_of_an_epoch_request_is_told_for_every_partition() -> None:
    response: Any = offset_for_leader_epoch.error_response(
        epoch_request((0, -1, 0), (1, -1, 0)), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    )
    assert [one.error_code for one in response.topics[0].partitions] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2


def deletion_request(*wanted: tuple[int, int], topic: str = "a") -> DeleteRecordsRequest:
    partitions = tuple(
        DeleteRecordsPartition(partition_index=i32(index), offset=i64(offset)) for index, offset in wanted
    )
    return DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=TopicName(topic), partitions=partitions),), timeout=NO_THROTTLE
    )


def delete(node: DataNode, *wanted: tuple[int, int], topic: str = "a") -> list[tuple[int, int]]:
    """`wanted` has (partition, offset); answers (error, low watermark) each."""
    deletion = delete_records.delete_records(node.partitions, deletion_request(*wanted, topic=topic))
    response: Any = node.loop.run_until_complete(deletion)
    return [(one.error_code, one.low_watermark) for topic in response.topics for one in topic.partitions]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (3, (ErrorCode.NONE, 3)),
        (1, (ErrorCode.NONE, 2)),
        (-1, (ErrorCode.NONE, 4)),
        (4, (ErrorCode.NONE, 4)),
        (5, (ErrorCode.OFFSET_OUT_OF_RANGE, -1)),
        (-2, (ErrorCode.OFFSET_OUT_OF_RANGE, -1)),
    ],
)
def test_records_below_the_offset_are_gone_kip_107(node: DataNode, offset: int, expected: tuple[int, int]) -> None:
    node.create_topic()
    node.produce(batch())
    delete(node, (0, 2))
    assert delete(node, (0, offset)) == [expected]


def test_deletion_named_twice_is_done_and_answered_once_as_it_was_named_last(node: DataNode) -> None:
    node.create_topic()
    node.produce(batch())
    assert delete(node, (0, 3), (0, 1)) == [(ErrorCode.NONE, 1)]
    assert delete(node) == []


def test_records_of_a_topic_without_a_cleanup_policy_may_be_deleted(node: DataNode) -> None:
    node.create_topic()
    node.produce(batch())
    node.configure("a", cleanup_policy=frozenset())
    assert delete(node, (0, 3)) == [(ErrorCode.NONE, 3)]


def test_nothing_above_the_high_watermark_is_deleted(node: DataNode) -> None:
    node.create_topic()
    node.configure("a", flush_messages=1)
    node.begin_produce(batch())
    assert delete(node, (0, 1)) == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1)]


def test_deletion_answers_fetches_that_wait_below_it(node: DataNode) -> None:
    node.create_topic()
    node.produce(batch())
    exchange = node.begin_fetch((0, 2), min_bytes=100_000)
    delete(node, (0, 4))
    assert exchange.answer.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_deletion_is_refused_where_it_may_not_be(node: DataNode) -> None:
    node.create_topic()
    node.create_topic("__consumer_offsets")
    node.create_topic("b", leader=2, replicas=(2, 1))
    assert delete(node, (0, 0), topic="__consumer_offsets") == [(ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]
    assert delete(node, (0, 0), topic="b") == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    assert delete(node, (0, 0), topic="none") == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    node.configure("a", cleanup_policy=frozenset({"compact"}))
    assert delete(node, (0, 0)) == [(ErrorCode.POLICY_VIOLATION, -1)]


def test_error_of_a_deletion_is_told_for_every_partition() -> None:
    response: Any = delete_records.error_response(
        deletion_request((0, 1), (1, 1)), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    )
    assert [one.error_code for one in response.topics[0].partitions] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2


def describe(node: DataNode, *indexes: int, topic: str = "a") -> Any:
    request = DescribeProducersRequest(
        topics=(TopicRequest(name=TopicName(topic), partition_indexes=tuple(i32(index) for index in indexes)),)
    )
    return describe_producers.describe_producers(node.partitions, request, UNRESTRICTED, NOW).topics[0].partitions


def test_producers_of_a_partition_kip_664(node: DataNode) -> None:
    node.create_topic()
    node.produce(batch())
    node.produce(batch(producer_id=7, producer_epoch=2, base_sequence=0))
    partition = describe(node, 0)[0]
    (producer,) = partition.active_producers
    assert (partition.error_code, partition.error_message) == (ErrorCode.NONE, None)
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 2, 3)
    assert (producer.last_timestamp, producer.coordinator_epoch, producer.current_txn_start_offset) == (NOW, -1, -1)


def test_producers_of_unknown_partitions(node: DataNode) -> None:
    node.create_topic()
    assert [one.error_code for one in describe(node, 9)] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    (unknown,) = describe(node, 0, topic="none")
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.error_message == "This server does not host this topic-partition."
    assert describe(node, 0, topic="b !")[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
