"""Requests to the leaders of the topic `__remote_log_metadata`: Produce, Fetch and ListOffsets, as a client would ask.

Kafka: `ProducerManager`, and the consumer of `ConsumerTask`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v18.response import FetchResponse
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v11.response import ListOffsetsResponse
from kio.schema.produce.v13.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, Response
from ...protocol.messages import Request as Message
from ...protocol.records import Record, write_batch
from ...quorum.metadata.image import TopicImage
from ...quorum.metadata.records import NO_LEADER
from ..cluster.rules.offset_questions import OffsetTime
from ..replicas.partition import ALL
from .rules.metadata_records import METADATA_TOPIC

READ_BYTES: Final = 1024 * 1024
WRITE_TIMEOUT_MS: Final = 30_000
READ_TIMEOUT_MS: Final = 5_000
_NO_SESSION: Final = 0
_FINAL_EPOCH: Final = -1


class Peers(Protocol):
    """`cluster/peer_channel.py`."""

    async def request(self, broker_id: int, message: Message, *, timeout_ms: int = ...) -> Response:
        """Raises KafkaError."""


class FetchedMetadata(NamedTuple):
    partition: int
    """Of the partition of the topic."""
    error: ErrorCode
    records: bytes
    """Batches, the last of them perhaps cut off."""


class MetadataLeaders:
    """Every call raises KafkaError: without a leader, when that does not answer, and what it answers for all."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    async def produce(self, topic: TopicImage, index: int, records: Sequence[Record]) -> int:
        """The offset of the first of them. They may have been written after an error, too."""
        data = PartitionProduceData(index=i32(index), records=Records(write_batch(records)))
        answer = await self._ask(
            topic,
            index,
            ProduceRequest(
                transactional_id=None,
                acks=i16(ALL),
                timeout=i32Timedelta.parse(timedelta(milliseconds=WRITE_TIMEOUT_MS)),
                topic_data=(TopicProduceData(topic_id=topic.topic_id, partition_data=(data,)),),
            ),
        )
        assert isinstance(answer, ProduceResponse)
        for told in answer.responses:
            for partition in told.partition_responses:
                _check(partition.error_code)
                return int(partition.base_offset)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The leader's answer does not have the partition.")

    async def offset_of(self, topic: TopicImage, index: int, time: OffsetTime) -> int:
        """As the leader has it."""
        wanted = ListOffsetsPartition(partition_index=i32(index), current_leader_epoch=i32(-1), timestamp=i64(time))
        answer = await self._ask(
            topic,
            index,
            ListOffsetsRequest(
                replica_id=BrokerId(-1),
                isolation_level=i8(0),
                topics=(ListOffsetsTopic(name=TopicName(METADATA_TOPIC), partitions=(wanted,)),),
                timeout=NO_THROTTLE,
            ),
        )
        assert isinstance(answer, ListOffsetsResponse)
        (found,) = answer.topics[0].partitions
        _check(found.error_code)
        return int(found.offset)

    async def fetch(self, topic: TopicImage, leader: int, positions: Mapping[int, int]) -> list[FetchedMetadata]:
        """What is committed from these offsets on, by partition of the topic, of those that `leader` leads; nothing is
        waited for."""
        wanted = tuple(
            FetchPartition(partition=i32(index), fetch_offset=i64(offset), partition_max_bytes=i32(READ_BYTES))
            for index, offset in positions.items()
        )
        request = FetchRequest(
            max_wait=NO_THROTTLE,
            min_bytes=i32(0),
            max_bytes=i32(READ_BYTES),
            isolation_level=i8(0),
            session_id=i32(_NO_SESSION),
            session_epoch=i32(_FINAL_EPOCH),
            topics=(FetchTopic(topic_id=topic.topic_id, partitions=wanted),),
            forgotten_topics_data=(),
        )
        answer = await self._peers.request(leader, request, timeout_ms=READ_TIMEOUT_MS)
        assert isinstance(answer, FetchResponse)
        _check(answer.error_code)
        return [
            FetchedMetadata(
                int(partition.partition_index), ErrorCode(int(partition.error_code)), bytes(partition.records or b"")
            )
            for told in answer.responses
            for partition in told.partitions
        ]

    async def _ask(self, topic: TopicImage, index: int, message: Message) -> Response:
        leader = topic.partitions[index].leader
        if leader == NO_LEADER:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{METADATA_TOPIC}-{index} has no leader")
        return await self._peers.request(leader, message, timeout_ms=WRITE_TIMEOUT_MS)


def _check(code: object) -> None:
    if code:
        raise KafkaError(ErrorCode(int(code)))  # type: ignore[call-overload]
