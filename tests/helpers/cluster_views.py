"""What tests ask real nodes, one at a time and over the protocol."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, TypeVar
from uuid import UUID

from kio.schema.create_topics.v7.request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v18.response import FetchResponse
from kio.schema.metadata.v13.request import MetadataRequest
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32, i32Timedelta, i64
from produce_requests import produce_request

from penstock.client import clock
from penstock.client.connection import connect
from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import Request
from penstock.protocol.records import Record, read_records, write_batch

DEADLINE_S = 30.0
T = TypeVar("T")


class Leader(NamedTuple):
    """Of a partition; -1 while there is none."""

    broker_id: int
    epoch: int


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


def produce(address: str, name: str, partition: int, values: Sequence[bytes]) -> ErrorCode:
    """Give this node a batch with acks=all, whichever node leads the partition elsewhere, and return what it says."""
    batch = write_batch([Record(number, clock.now_ms(), None, value) for number, value in enumerate(values)])
    request = produce_request(_topic_id(address, name), partition, batch, timeout_ms=int(DEADLINE_S * 1000))
    return ErrorCode(int(ask(address, request, ProduceResponse).responses[0].partition_responses[0].error_code))


def read(address: str, name: str, partition: int) -> list[bytes | None]:
    """Return the values of all that this node lets consumers read, whichever node leads the partition elsewhere."""
    topic_id = _topic_id(address, name)
    values: list[bytes | None] = []
    offset = 0
    while True:
        wanted = FetchPartition(partition=i32(partition), fetch_offset=i64(offset), partition_max_bytes=i32(1 << 20))
        request = FetchRequest(
            max_wait=i32Timedelta.parse(timedelta(0)),
            min_bytes=i32(0),
            max_bytes=i32(1 << 20),
            topics=(FetchTopic(topic_id=topic_id, partitions=(wanted,)),),
            forgotten_topics_data=(),
        )
        answer = ask(address, request, FetchResponse).responses[0].partitions[0]
        assert not answer.error_code, answer.error_code
        found = memoryview(answer.records or b"")
        if not found:
            return values
        for position, header in iterate_headers(found):
            values += [record.value for record in read_records(found[position:], header)]
            offset = header.next_offset


def _topic_id(address: str, name: str) -> UUID:
    (found,) = [topic.topic_id for topic in metadata(address).topics if topic.name == name]
    assert found is not None
    return found
