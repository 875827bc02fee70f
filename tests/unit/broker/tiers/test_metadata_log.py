"""Replaying `__remote_log_metadata` where a replica or a part of the topic cannot be read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast
from uuid import UUID

from kio.schema.fetch.v18.request import FetchRequest
from kio.schema.fetch.v18.response import FetchableTopicResponse, FetchResponse, PartitionData
from kio.schema.list_offsets.v11.request import ListOffsetsRequest
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.schema.types import TopicName
from kio.static.primitive import Records, i32, i64
from waiting import DEADLINE_S

from penstock.broker.cluster.rules.offset_questions import OffsetTime
from penstock.broker.replicas.replica_manager import ReplicaManager
from penstock.broker.tiers.metadata_log import MetadataLog
from penstock.broker.tiers.rules.metadata_records import METADATA_TOPIC, encode_event, metadata_partition
from penstock.broker.tiers.rules.remote_segment import RemoteSegment, SegmentState, TierPartition
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import LeaderEpoch, NodeId, TopicId
from penstock.protocol.messages import NO_THROTTLE, Response, kio_error
from penstock.protocol.messages import Request as Message
from penstock.protocol.records import Record, write_batch

TOPIC_ID = TopicId(UUID(int=9))
METADATA_TOPIC_ID = UUID(int=10)
LEADER = 2
START, END = 100, 101
"""Of the partition of the topic that the other node leads."""


def partition_told_in(metadata_index: int) -> int:
    return next(index for index in range(100) if metadata_partition(TOPIC_ID, index, 2) == metadata_index)


def event() -> RemoteSegment:
    return RemoteSegment(
        partition=TierPartition("t", TOPIC_ID, partition_told_in(1)),
        id=UUID(int=1),
        start_offset=0,
        end_offset=9,
        max_timestamp_ms=0,
        broker_id=NodeId(1),
        event_ms=0,
        size_bytes=100,
        leader_epochs=((LeaderEpoch(0), 0),),
        state=SegmentState.COPY_SEGMENT_STARTED,
        has_aborted_transactions=False,
    )


class Damaged:
    """The replica of partition 0, which this node leads."""

    def __init__(self) -> None:
        self.error = ErrorCode.NONE
        self.watchers: dict[object, object] = {}
        self.state = SimpleNamespace(is_leader=True, high_watermark=5)
        self.log = SimpleNamespace(log_start_offset=0)

    def read(self, *_args: object) -> None:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE)


class Leader:
    """Of partition 1, whose log starts at `START`."""

    async def request(self, broker_id: int, message: Message, *, timeout_ms: int = 0) -> Response:
        assert broker_id == LEADER
        assert timeout_ms > 0
        if isinstance(message, ListOffsetsRequest):
            is_start = int(message.topics[0].partitions[0].timestamp) == OffsetTime.EARLIEST.value
            found = ListOffsetsPartitionResponse(
                partition_index=i32(1), error_code=kio_error(ErrorCode.NONE), offset=i64(START if is_start else END)
            )
            told = ListOffsetsTopicResponse(name=TopicName(METADATA_TOPIC), partitions=(found,))
            return ListOffsetsResponse(throttle_time=NO_THROTTLE, topics=(told,))
        assert isinstance(message, FetchRequest)
        offset = message.topics[0].partitions[0].fetch_offset
        batch = write_batch([Record(offset=START, timestamp_ms=0, key=None, value=encode_event(event()))])
        data = PartitionData(
            partition_index=i32(1),
            error_code=kio_error(ErrorCode.NONE if offset >= START else ErrorCode.OFFSET_OUT_OF_RANGE),
            high_watermark=i64(END),
            records=Records(batch) if offset == START else None,
            aborted_transactions=None,
        )
        topic = FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(data,))
        return FetchResponse(throttle_time=NO_THROTTLE, error_code=kio_error(ErrorCode.NONE), responses=(topic,))


async def nothing() -> None:
    """The topic is there."""


def test_a_partition_that_cannot_be_read_holds_up_no_other_and_one_that_was_cut_goes_on_at_its_start() -> None:
    async def scenario() -> None:
        topic = SimpleNamespace(
            topic_id=METADATA_TOPIC_ID, partitions=[SimpleNamespace(leader=1), SimpleNamespace(leader=LEADER)]
        )
        index = partition_told_in(1)
        config = SimpleNamespace(remote_storage_enable=True)
        tiered = SimpleNamespace(topic_id=TOPIC_ID, index=index, log=SimpleNamespace(config=config))
        damaged = Damaged()
        replicas = SimpleNamespace(
            image=SimpleNamespace(topics=SimpleNamespace(by_name={METADATA_TOPIC: topic})),
            hosted=[tiered],
            find=lambda _topic, index: damaged if index == 0 else None,
        )
        log = MetadataLog(
            cast("ReplicaManager", replicas),
            Leader(),
            nothing,
            loop=asyncio.get_running_loop(),
            wall_clock_ms=lambda: 0,
        )
        replay = asyncio.create_task(log.run())
        try:
            async with asyncio.timeout(DEADLINE_S):
                await log.catch_up(TOPIC_ID, index)
            assert [one.id for one in log.segments_of(TOPIC_ID, index)] == [event().id]
            assert not replay.done()
        finally:
            replay.cancel()

    asyncio.run(scenario())
