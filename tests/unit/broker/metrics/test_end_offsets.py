"""High watermarks are asked in messages of a bounded size, and what a leader does not answer is left out."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from kio.schema.errors import ErrorCode as WireError
from kio.schema.list_offsets.v11.request import ListOffsetsRequest
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.static.primitive import i32, i64

from penstock.broker.cluster.peer_channel import PeerChannel
from penstock.broker.metrics.end_offsets import PARTITIONS_PER_REQUEST, ask_end_offsets
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.messages import NO_THROTTLE

REFUSED = 7


class Leaders:
    """Node 1 answers, but for one partition; node 2 is away."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def request(self, broker_id: int, message: Any, *, timeout_ms: int) -> ListOffsetsResponse:
        assert isinstance(message, ListOffsetsRequest)
        assert timeout_ms > 0
        if broker_id == 2:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "away")
        self.sizes.append(sum(len(topic.partitions) for topic in message.topics))
        return ListOffsetsResponse(
            throttle_time=NO_THROTTLE,
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        ListOffsetsPartitionResponse(
                            partition_index=one.partition_index,
                            error_code=WireError(
                                ErrorCode.NOT_LEADER_OR_FOLLOWER if one.partition_index == REFUSED else 0
                            ),
                            timestamp=i64(-1),
                            offset=i64(10 * one.partition_index),
                            leader_epoch=i32(0),
                        )
                        for one in topic.partitions
                    ),
                )
                for topic in message.topics
            ),
        )


def test_leaders_are_asked_in_bounded_messages_and_refusals_are_left_out() -> None:
    leaders = Leaders()
    count = PARTITIONS_PER_REQUEST + 1
    wanted = {1: [("t", index) for index in range(count)], 2: [("u", 0)]}
    found = asyncio.run(ask_end_offsets(cast("PeerChannel", leaders), wanted))
    assert found == {("t", index): 10 * index for index in range(count) if index != REFUSED}
    assert leaders.sizes == [PARTITIONS_PER_REQUEST, 1]
