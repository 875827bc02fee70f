"""What tests ask real nodes, one at a time and over the protocol."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple, TypeVar

from kio.schema.create_topics.v7.request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.metadata.v13.request import MetadataRequest
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from penstock.client import clock
from penstock.client.connection import connect
from penstock.protocol.messages import Request

DEADLINE_S = 30.0
T = TypeVar("T")


class Leader(NamedTuple):
    """Of a partition; -1 while there is none."""

    broker_id: int
    epoch: int


def until(condition: Callable[[], bool]) -> None:
    assert clock.wait_until(condition, timeout_s=DEADLINE_S, interval_s=0.02), f"not so within {DEADLINE_S:g} s"


def ask(address: str, request: Request, kind: type[T]) -> T:
    """Return what the node at this address answers."""

    async def main() -> object:
        host, _, port = address.rpartition(":")
        async with await connect(host, int(port)) as connection:
            return await connection.call(request, timeout_ms=int(DEADLINE_S * 1000))

    answer = asyncio.run(main())
    assert isinstance(answer, kind)
    return answer


def create_topic(
    address: str, name: str, assignment: Mapping[int, tuple[int, ...]], *, timeout_s: float = DEADLINE_S
) -> CreatableTopicResult:
    """Create a topic with these replicas by partition, and return the answer."""
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(-1),
        replication_factor=i16(-1),
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=i32(index), broker_ids=tuple(map(BrokerId, replicas)))
            for index, replicas in assignment.items()
        ),
        configs=(),
    )
    timeout = i32Timedelta.parse(timedelta(seconds=timeout_s))
    return ask(address, CreateTopicsRequest(topics=(topic,), timeout=timeout), CreateTopicsResponse).topics[0]


def metadata(address: str) -> MetadataResponse:
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    return ask(address, request, MetadataResponse)


def leaders(address: str, name: str) -> list[Leader]:
    """Return the leaders of a topic's partitions; empty when the node does not know the topic."""
    return [
        Leader(int(partition.leader_id), int(partition.leader_epoch))
        for topic in metadata(address).topics
        if topic.name == name
        for partition in sorted(topic.partitions, key=lambda one: one.partition_index)
    ]


def brokers(address: str) -> set[int]:
    """Return the brokers that are in."""
    return {int(broker.node_id) for broker in metadata(address).brokers}
