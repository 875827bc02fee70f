"""DeleteRecords, versions 0 to 2: advances the log start offset of partitions (KIP-107).

Offset -1 is the high watermark. The low watermark in the response is the least log start offset of the live replicas:
the response is sent when all of them have deleted, or at the deadline. The next round of retention deletes segments
that are wholly below the log start offset. A client must be allowed to delete the topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set
from datetime import timedelta
from functools import partial
from typing import Final

from kio.schema.delete_records.v2.request import DeleteRecordsRequest
from kio.schema.delete_records.v2.response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..replicas.delayed_delete import UNKNOWN_LOW_WATERMARK, DelayedDelete, DeleteOutcome, OpenDelete
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from .permissions import denied_names

HIGH_WATERMARK: Final = -1


def register(handlers: Handlers, partitions: ReplicaManager) -> None:
    async def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
        names = [str(topic.name) for topic in request.topics]
        denied = denied_names(context, ApiKey.DELETE_RECORDS, AclOperation.DELETE, ResourceType.TOPIC, names)
        return await delete_records(partitions, request, denied)

    handlers.add_message(ApiKey.DELETE_RECORDS, handle, answer_error=error_response)


async def delete_records(
    partitions: ReplicaManager, request: DeleteRecordsRequest, denied: Set[str] = frozenset()
) -> DeleteRecordsResponse:
    """`denied` are topics that the client may not delete."""
    # As in Kafka: of duplicate partitions the last counts, with one result; a topic without partitions has none.
    offsets: dict[TopicName, dict[int, int]] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            offsets.setdefault(topic.name, {})[wanted.partition_index] = wanted.offset
    outcomes: dict[tuple[str, int], DeleteOutcome] = {}
    opened: dict[tuple[str, int], OpenDelete] = {}
    for name, wanted_offsets in offsets.items():
        for index, offset in wanted_offsets.items():
            try:
                if name in denied:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                opened[name, index] = delete_before(partitions.get_online(name, index), offset)
            except KafkaError as refusal:
                outcomes[name, index] = DeleteOutcome(refusal.code, UNKNOWN_LOW_WATERMARK)
    # Completes followers' parked fetches: their responses carry the new log start offset.
    for delete in opened.values():
        partitions.complete_waiting(delete.partition)
    waited = await _all_replicas(partitions, list(opened.values()), request.timeout // timedelta(milliseconds=1))
    outcomes.update(zip(opened, waited, strict=True))
    return DeleteRecordsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            DeleteRecordsTopicResult(
                name=name,
                partitions=tuple(
                    DeleteRecordsPartitionResult(
                        partition_index=i32(index),
                        low_watermark=i64(outcomes[name, index].low_watermark),
                        error_code=kio_error(outcomes[name, index].error),
                    )
                    for index in wanted_offsets
                ),
            )
            for name, wanted_offsets in offsets.items()
        ),
    )


async def _all_replicas(partitions: ReplicaManager, opened: list[OpenDelete], timeout_ms: int) -> list[DeleteOutcome]:
    done: asyncio.Future[list[DeleteOutcome]] = asyncio.get_running_loop().create_future()
    operation = DelayedDelete(opened, lambda outcomes: None if done.done() else done.set_result(outcomes))
    try:
        partitions.deletes.watch(operation, {delete.partition for delete in opened}, timeout_ms)
        return await done
    finally:
        partitions.deletes.cancel(operation)


def delete_before(partition: Partition, offset: int) -> OpenDelete:
    """Advances this replica's log start offset; raises KafkaError. Kafka: `Partition.deleteRecordsOnLeader`."""
    if partition.is_internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not partition.state.is_leader:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    log = partition.log
    if log.config.is_compacted and not log.config.deletes_by_retention:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    high_watermark = partition.state.high_watermark
    start_offset = high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= start_offset <= high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    partition.with_storage_errors(partial(log.increment_log_start_offset, start_offset))
    return OpenDelete(partition, start_offset, partition.state.leader_epoch)


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
