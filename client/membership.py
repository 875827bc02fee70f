"""Which brokers have the replicas of a topic, moving them, and taking a broker out: asked of any node of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_partition_reassignments.v1.response import AlterPartitionReassignmentsResponse
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
from kio.static.primitive import i32

from ..protocol.errors import ErrorCode, KafkaError
from .connection import Connection

Assignment: TypeAlias = Mapping[int, tuple[int, ...]]
"""The replicas by partition, the preferred leader first."""


async def replicas_of(connection: Connection, topic: str) -> Assignment:
    """Raises as `Connection.call`, like everything here."""
    question = MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    answer = await connection.call(question)
    assert isinstance(answer, MetadataResponse)
    return {
        int(partition.partition_index): tuple(map(int, partition.replica_nodes))
        for told in answer.topics
        for partition in told.partitions
    }


async def move_replicas(connection: Connection, topic: str, moves: Assignment) -> None:
    """Begin to move these partitions. Raises KafkaError for the first that is refused; the others are moved."""
    partitions = tuple(
        ReassignablePartition(partition_index=i32(index), replicas=tuple(map(BrokerId, replicas)))
        for index, replicas in moves.items()
    )
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name=TopicName(topic), partitions=partitions),)
    )
    answer = await connection.call(request)
    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    _check(int(answer.error_code), answer.error_message)
    for told in answer.responses:
        for partition in told.partitions:
            _check(int(partition.error_code), partition.error_message)


async def moving_partitions(connection: Connection) -> Sequence[tuple[str, int]]:
    """Topic and partition of all that are being moved. Raises KafkaError."""
    answer = await connection.call(ListPartitionReassignmentsRequest(topics=None))
    assert isinstance(answer, ListPartitionReassignmentsResponse)
    _check(int(answer.error_code), answer.error_message)
    return [
        (str(topic.name), int(partition.partition_index)) for topic in answer.topics for partition in topic.partitions
    ]


async def unregister_broker(connection: Connection, broker_id: int) -> None:
    """Take a broker out of the cluster. Raises KafkaError."""
    answer = await connection.call(UnregisterBrokerRequest(broker_id=BrokerId(broker_id)))
    assert isinstance(answer, UnregisterBrokerResponse)
    _check(int(answer.error_code), answer.error_message)


def _check(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(ErrorCode(code), message)
