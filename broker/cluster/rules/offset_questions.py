"""ListOffsets as a node asks other brokers, for many partitions at once, and what the answers say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v11.response import ListOffsetsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from ....protocol.errors import ErrorCode

CONSUMER: Final = -1
"""As which a leader answers up to its high watermark."""
DEBUGGER: Final = -2
"""As which any replica answers, and to its log end offset."""
READ_UNCOMMITTED: Final = 0

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""


class OffsetTime(IntEnum):
    """Sentinel timestamps of requests."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


class AnsweredOffset(NamedTuple):
    """`offset` is -1 where no record has one, or with an error."""

    place: Place
    error_code: ErrorCode
    offset: int


def offsets_question(
    places: Iterable[Place],
    timestamp_ms: int,
    *,
    timeout_ms: int,
    replica_id: int = CONSUMER,
    isolation: int = READ_UNCOMMITTED,
) -> ListOffsetsRequest:
    """Ask for the offset of each place at that timestamp, which may be an OffsetTime."""
    topics: defaultdict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for topic, index in places:
        topics[topic].append(ListOffsetsPartition(partition_index=i32(index), timestamp=i64(timestamp_ms)))
    return ListOffsetsRequest(
        replica_id=BrokerId(replica_id),
        isolation_level=i8(isolation),
        topics=tuple(
            ListOffsetsTopic(name=TopicName(topic), partitions=tuple(partitions))
            for topic, partitions in topics.items()
        ),
        timeout=i32Timedelta.parse(timedelta(milliseconds=timeout_ms)),
    )


def answered_offsets(answer: ListOffsetsResponse) -> Iterator[AnsweredOffset]:
    for topic in answer.topics:
        for one in topic.partitions:
            place = (str(topic.name), int(one.partition_index))
            yield AnsweredOffset(place, ErrorCode(int(one.error_code)), int(one.offset))


def known_offsets(answer: ListOffsetsResponse) -> Iterator[tuple[Place, int]]:
    """Leave out what the broker refused, and where there is no record."""
    return (
        (one.place, one.offset)
        for one in answered_offsets(answer)
        if one.error_code is ErrorCode.NONE and one.offset >= 0
    )
