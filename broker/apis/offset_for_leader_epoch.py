"""OffsetForLeaderEpoch, versions 2 to 4: the end offset of a leader epoch, for clients to detect log truncation.

2 adds the current leader epoch (KIP-320), 3 the replica id, 4 flexible encoding. The end offset is -1 for an epoch
above the leader's latest. Kafka: `Partition.lastOffsetForLeaderEpoch`.

A client must be allowed to describe the topic, or CLUSTER_ACTION.
"""

from __future__ import annotations

from collections.abc import Set

from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderEpochRequest, OffsetForLeaderPartition
from kio.schema.offset_for_leader_epoch.v4.response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kio.static.primitive import i32, i64

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NO_LEADER_EPOCH, LeaderEpoch
from ...protocol.messages import NO_THROTTLE, kio_error
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..replicas.replica_manager import ReplicaManager
from .permissions import denied_names

UNKNOWN = (-1, -1)


def register(handlers: Handlers, partitions: ReplicaManager) -> None:
    def handle(request: OffsetForLeaderEpochRequest, context: RequestContext) -> OffsetForLeaderEpochResponse:
        denied = frozenset() if context.authorizer is None else _denied_topics(request, context)
        return offset_for_leader_epoch(partitions, request, denied)

    handlers.add_message(ApiKey.OFFSET_FOR_LEADER_EPOCH, handle, answer_error=error_response)


def offset_for_leader_epoch(
    partitions: ReplicaManager, request: OffsetForLeaderEpochRequest, denied: Set[str] = frozenset()
) -> OffsetForLeaderEpochResponse:
    """`denied` are topics that the client may not describe."""

    def answer(topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        if topic in denied:
            return _answer(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED, UNKNOWN)
        try:
            partition = partitions.get_online(topic, wanted.partition)
        except KafkaError as error:
            return _answer(wanted, error.code, UNKNOWN)
        error_code = partition.state.check_leader(LeaderEpoch(wanted.current_leader_epoch))
        if wanted.current_leader_epoch < NO_LEADER_EPOCH:
            # Only this API treats an epoch below -1 as an epoch; all others ignore negative epochs.
            error_code = ErrorCode.FENCED_LEADER_EPOCH
        if error_code is not ErrorCode.NONE:
            return _answer(wanted, error_code, UNKNOWN)
        log = partition.log
        found = log.leader_epochs.end_offset_for(LeaderEpoch(wanted.leader_epoch), log.log_end_offset)
        return _answer(wanted, ErrorCode.NONE, UNKNOWN if found is None else found)

    return OffsetForLeaderEpochResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=tuple(answer(topic.topic, wanted) for wanted in topic.partitions)
            )
            for topic in request.topics
        ),
    )


def _denied_topics(request: OffsetForLeaderEpochRequest, context: RequestContext) -> Set[str]:
    api_key = ApiKey.OFFSET_FOR_LEADER_EPOCH
    if context.may_in_cluster(api_key, AclOperation.CLUSTER_ACTION, is_logged=False):
        return frozenset()
    names = [str(topic.topic) for topic in request.topics]
    return denied_names(context, api_key, AclOperation.DESCRIBE, ResourceType.TOPIC, names)


def error_response(request: OffsetForLeaderEpochRequest, error: KafkaError) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_answer(wanted, error.code, UNKNOWN) for wanted in topic.partitions),
            )
            for topic in request.topics
        ),
    )


def _answer(wanted: OffsetForLeaderPartition, error: ErrorCode, end: tuple[int, int]) -> EpochEndOffset:
    return EpochEndOffset(
        error_code=kio_error(error), partition=wanted.partition, leader_epoch=i32(end[0]), end_offset=i64(end[1])
    )
