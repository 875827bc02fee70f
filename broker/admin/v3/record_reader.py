"""Records of one partition, read as a consumer reads them. It never waits for more to come. Kafka: `Fetcher`."""

from __future__ import annotations

from functools import partial
from typing import Final

from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v18.response import FetchResponse, PartitionData
from kio.static.primitive import i8, i32, i32Timedelta, i64
from msgspec import Struct

from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ....protocol.fetch import READ_COMMITTED
from ....protocol.messages import NO_THROTTLE
from ....protocol.records import Record
from ....quorum.metadata.image import TopicImage
from ..operation import Call
from ..rules.kafka_answers import check
from ..rules.visible_records import VisibleRecords, visible_records
from .lookups import NO_LEADER

FETCHES_MAX: Final = 16
"""Of one reading: where all is aborted, the client goes on from the next offset itself."""
NO_WAIT: Final[i32Timedelta] = NO_THROTTLE
_NO_SESSION: Final = 0
_FINAL_EPOCH: Final = -1
"""Of a fetch outside of a session (KIP-227)."""


class Reading(Struct, frozen=True, kw_only=True):
    """`next_offset` is where reading goes on; consumers read below `end_offset`."""

    records: tuple[Record, ...]
    next_offset: int
    log_start_offset: int
    end_offset: int


async def read(
    call: Call, topic: TopicImage, index: int, offset: int, *, limit: int, bytes_max: int, isolation: int
) -> Reading:
    """At most `limit` records from `offset` on, and after the first as many as fit into `bytes_max`.

    Raises KafkaError.
    """
    records: tuple[Record, ...] = ()
    bytes_left = bytes_max
    fetches_left = FETCHES_MAX
    while True:
        fetched = await _fetch(call, topic, index, offset, bytes_max=bytes_max, isolation=isolation)
        fetches_left -= 1
        end_offset = int(fetched.last_stable_offset if isolation == READ_COMMITTED else fetched.high_watermark)
        found = await _visible(call, fetched, offset, limit=limit - len(records), bytes_max=bytes_left)
        has_moved = found.next_offset > offset
        if not records or found.size_bytes <= bytes_left:
            records += found.records
            bytes_left -= found.size_bytes
            offset = found.next_offset
        else:
            # The first of them is larger than what is left.
            has_moved = False
        if not has_moved or not fetches_left or len(records) == limit or bytes_left <= 0 or offset >= end_offset:
            return Reading(
                records=records,
                next_offset=offset,
                log_start_offset=int(fetched.log_start_offset),
                end_offset=end_offset,
            )


async def _visible(call: Call, fetched: PartitionData, offset: int, *, limit: int, bytes_max: int) -> VisibleRecords:
    aborted = [(int(one.producer_id), int(one.first_offset)) for one in fetched.aborted_transactions or ()]
    job = partial(visible_records, fetched.records or b"", aborted, offset, limit=limit, bytes_max=bytes_max)
    try:
        # It may have to decompress megabytes.
        return await call.node.loop.run_in_executor(None, job)
    except CorruptData as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


async def _fetch(
    call: Call, topic: TopicImage, index: int, offset: int, *, bytes_max: int, isolation: int
) -> PartitionData:
    leader = topic.partitions[index].leader
    if leader == NO_LEADER:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"Partition {topic.name}-{index} has no leader.")
    request = FetchRequest(
        max_wait=NO_WAIT,
        min_bytes=i32(0),
        max_bytes=i32(bytes_max),
        isolation_level=i8(isolation),
        session_id=i32(_NO_SESSION),
        session_epoch=i32(_FINAL_EPOCH),
        topics=(
            FetchTopic(
                topic_id=topic.topic_id,
                partitions=(
                    FetchPartition(partition=i32(index), fetch_offset=i64(offset), partition_max_bytes=i32(bytes_max)),
                ),
            ),
        ),
        forgotten_topics_data=(),
    )
    answer = await call.node.ask_broker(leader, request, FetchResponse, call.context)
    check(answer.error_code, None)
    for told in answer.responses:
        for partition in told.partitions:
            check(partition.error_code, None)
            return partition
    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The leader's answer does not have the partition.")
