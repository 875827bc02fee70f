"""DeleteRecords, versions 0 to 2: nothing below an offset can be read any more (KIP-107).

Offset -1 is the high watermark. The low watermark in the answer is the least log start offset of the live replicas,
which is this one's. Segments that are wholly below it go with the next round of retention.
"""

from __future__ import annotations

from functools import partial

from kio.schema.delete_records.v2.request import DeleteRecordsRequest
from kio.schema.delete_records.v2.response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import kio_error
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..partitions.hosted_partition import HostedPartition
from ..partitions.partition_manager import PartitionManager
from .values import NO_THROTTLE

HIGH_WATERMARK = -1
UNKNOWN_LOW_WATERMARK = -1


def register(handlers: Handlers, partitions: PartitionManager) -> None:
    def handle(request: DeleteRecordsRequest, _context: RequestContext) -> DeleteRecordsResponse:
        return delete_records(partitions, request)

    handlers.add_message(ApiKey.DELETE_RECORDS, handle, answer_error=error_response)


def delete_records(partitions: PartitionManager, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    # As in Kafka: what is named twice is done and answered once, as it was named last; no partitions, no topic.
    offsets: dict[TopicName, dict[int, int]] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            offsets.setdefault(topic.name, {})[wanted.partition_index] = wanted.offset
    topics = []
    for name, wanted_offsets in offsets.items():
        results = []
        for index, offset in wanted_offsets.items():
            error, low_watermark = ErrorCode.NONE, UNKNOWN_LOW_WATERMARK
            try:
                hosted = partitions.get_online(name, index)
                low_watermark = delete_before(hosted, offset)
            except KafkaError as refusal:
                error = refusal.code
            else:
                partitions.complete_waiting(hosted)
            results.append(
                DeleteRecordsPartitionResult(
                    partition_index=i32(index), low_watermark=i64(low_watermark), error_code=kio_error(error)
                )
            )
        topics.append(DeleteRecordsTopicResult(name=name, partitions=tuple(results)))
    return DeleteRecordsResponse(throttle_time=NO_THROTTLE, topics=tuple(topics))


def delete_before(hosted: HostedPartition, offset: int) -> int:
    """Returns the low watermark after it; raises KafkaError."""
    if hosted.is_internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not hosted.partition.is_leader:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    log = hosted.log
    if log.config.is_compacted and not log.config.deletes_by_retention:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    high_watermark = hosted.partition.high_watermark
    start_offset = high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= start_offset <= high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    hosted.attempt(partial(log.increment_log_start_offset, start_offset))
    return log.log_start_offset


def error_response(request: DeleteRecordsRequest, error: KafkaError) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    DeleteRecordsPartitionResult(
                        partition_index=wanted.partition_index,
                        low_watermark=i64(UNKNOWN_LOW_WATERMARK),
                        error_code=kio_error(error.code),
                    )
                    for wanted in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
