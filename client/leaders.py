"""The leaders of a topic's partitions, by repeated Metadata requests over one connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.types import TopicName

from .connection import Connection

NO_LEADER = -1


class PartitionLeader(NamedTuple):
    """Compares by the epoch first. `leader_id` is NO_LEADER without a leader."""

    leader_epoch: int
    leader_id: int


class TopicLeaders(NamedTuple):
    """By partition."""

    topic_id: UUID | None
    partitions: Mapping[int, PartitionLeader]


async def topic_leaders(connection: Connection, topic: str) -> TopicLeaders:
    """Creates no topic: of one that the broker does not know there are no partitions. Raises as `Connection.call`."""
    question = MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    answer = await connection.call(question)
    assert isinstance(answer, MetadataResponse)
    (told,) = answer.topics
    return TopicLeaders(
        told.topic_id,
        {
            int(partition.partition_index): PartitionLeader(int(partition.leader_epoch), int(partition.leader_id))
            for partition in told.partitions
        },
    )
