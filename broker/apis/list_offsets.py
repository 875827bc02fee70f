"""ListOffsets, versions 1 to 11: offsets by position or by timestamp.

    timestamp  from version  requested offset
    -1         1             latest: the high watermark, or the last stable offset for read_committed (KIP-98)
    -2         1             earliest: the log start offset
    -3         7             the record with the largest timestamp (KIP-734)
    -4         8             earliest on this node's disk (KIP-405): the earliest, as there is no tier
    -5         9             last in the tier (KIP-1005): none
    -6         11            earliest that is not in the tier yet (KIP-1023): none, as for topics without a tier
    ≥ 0        1             the first record with that timestamp or a larger one

Only records that the client may read are found. While the high watermark is below the start offset of the leader epoch,
the latest offset is unknown: OFFSET_NOT_AVAILABLE (KIP-207), up to version 4 LEADER_NOT_AVAILABLE. Requests of replicas
and of debuggers read the whole log. Kafka: `Partition.fetchOffsetForTimestamp`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from ...protocol.apis import ApiKey
from ...protocol.batches import NO_TIMESTAMP
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.fetch import READ_COMMITTED
from ...protocol.ids import NO_LEADER_EPOCH, LeaderEpoch, NodeId
from ...protocol.messages import NO_THROTTLE, decode_request, encode_response, kio_error
from ...storage.log.timestamp_lookup import TimestampOffset
from ..cluster.rules.offset_questions import OffsetTime
from ..network.handlers import Handlers
from ..network.request import Request
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager

FIRST_VERSIONS: Final[Mapping[int, int]] = {
    OffsetTime.LATEST: 1,
    OffsetTime.EARLIEST: 1,
    OffsetTime.MAX_TIMESTAMP: 7,
    OffsetTime.EARLIEST_LOCAL: 8,
    OffsetTime.LATEST_TIERED: 9,
    OffsetTime.EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_OFFSET_NOT_AVAILABLE_VERSION: Final = 5
CONSUMER_REPLICA_ID: Final = -1
DEBUGGING_REPLICA_ID: Final = -2


class FoundOffset(NamedTuple):
    offset: int = -1
    timestamp_ms: int = NO_TIMESTAMP
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH


NOT_FOUND: Final = FoundOffset()


def register(handlers: Handlers, partitions: ReplicaManager) -> None:
    def begin(request: Request) -> None:
        version = request.api_version
        message = decode_request(request.api_key, version, request.body, request.body_offset)
        assert isinstance(message, ListOffsetsRequest), "the class of every version"
        response = list_offsets(partitions, message, version)
        request.respond(encode_response(request.api_key, version, request.correlation_id, response))

    handlers.add(ApiKey.LIST_OFFSETS, begin)


def list_offsets(partitions: ReplicaManager, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
    names = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    topics: dict[TopicName, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            index = wanted.partition_index
            error, found = ErrorCode.NONE, NOT_FOUND
            try:
                if names[topic.name, index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                if wanted.timestamp < 0 and version < FIRST_VERSIONS.get(wanted.timestamp, version + 1):
                    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
                partition = partitions.get_online(topic.name, index)
                found = find_offset(partition, wanted, NodeId(request.replica_id), request.isolation_level)
            except KafkaError as refusal:
                error = refusal.code
                if error is ErrorCode.OFFSET_NOT_AVAILABLE and version < FIRST_OFFSET_NOT_AVAILABLE_VERSION:
                    error = ErrorCode.LEADER_NOT_AVAILABLE
            # A duplicate topic is answered once; a topic without partitions is not answered.
            topics.setdefault(topic.name, {})[index] = ListOffsetsPartitionResponse(
                partition_index=wanted.partition_index,
                error_code=kio_error(error),
                timestamp=i64(found.timestamp_ms),
                offset=i64(found.offset),
                leader_epoch=i32(found.leader_epoch),
            )
    return ListOffsetsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            ListOffsetsTopicResponse(name=name, partitions=tuple(answers.values())) for name, answers in topics.items()
        ),
    )


def find_offset(
    partition: Partition, wanted: ListOffsetsPartition, replica_id: NodeId, isolation_level: int
) -> FoundOffset:
    """Raises KafkaError."""
    state = partition.state
    current_leader_epoch = LeaderEpoch(wanted.current_leader_epoch)
    error = (
        state.compare_epoch(current_leader_epoch)
        if replica_id == DEBUGGING_REPLICA_ID
        else state.check_leader(current_leader_epoch)
    )
    if error is not ErrorCode.NONE:
        raise KafkaError(error)
    log = partition.log
    is_client = replica_id == CONSUMER_REPLICA_ID
    if not is_client:
        end_offset = log.log_end_offset
    elif isolation_level == READ_COMMITTED:
        end_offset = log.last_stable_offset(state.high_watermark)
    else:
        end_offset = state.high_watermark
    is_latest_unknown = is_client and not state.is_latest_offset_known
    found: TimestampOffset | None = None
    match wanted.timestamp:
        case OffsetTime.LATEST:
            if is_latest_unknown:
                raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
            return FoundOffset(end_offset, NO_TIMESTAMP, state.leader_epoch)
        case OffsetTime.EARLIEST | OffsetTime.EARLIEST_LOCAL:
            return _earliest(partition)
        case OffsetTime.LATEST_TIERED | OffsetTime.EARLIEST_PENDING_UPLOAD:
            return NOT_FOUND
        case OffsetTime.MAX_TIMESTAMP:
            found = partition.with_storage_errors(log.max_timestamp_offset)
        case timestamp_ms:
            found = partition.with_storage_errors(partial(log.offset_for_timestamp, timestamp_ms, end_offset))
    if found is None or found.offset >= end_offset:
        if is_latest_unknown:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return NOT_FOUND
    return FoundOffset(found.offset, found.timestamp, found.leader_epoch)


def _earliest(partition: Partition) -> FoundOffset:
    start_offset = partition.log.log_start_offset
    earliest = partition.log.leader_epochs.earliest_epoch()
    # An epoch that starts above the log start offset is not the first record's.
    is_known = earliest is not None and earliest[1] <= start_offset
    return FoundOffset(
        start_offset, NO_TIMESTAMP, earliest[0] if earliest is not None and is_known else NO_LEADER_EPOCH
    )
