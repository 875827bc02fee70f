"""OffsetForLeaderEpoch, versions 2 to 4: the end offset of a leader epoch, for clients to detect log truncation.

2 adds the current leader epoch (KIP-320), 3 the replica id, 4 flexible encoding. The end offset is -1 for an epoch
above the leader's latest. Kafka: `Partition.lastOffsetForLeaderEpoch`.

A client must be allowed to describe the topic, or CLUSTER_ACTION.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Set
from itertools import islice
from typing import cast

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
from ..network.large_messages import answer_each
from ..network.request import RequestContext
from ..network.rules.large_response import LargeResponse
from ..replicas.replica_manager import ReplicaManager
from .permissions import denied_names

UNKNOWN = (-1, -1)


def register(handlers: Handlers, partitions: ReplicaManager) -> None:
    def handle(
        request: OffsetForLeaderEpochRequest, context: RequestContext
    ) -> OffsetForLeaderEpochResponse | Awaitable[LargeResponse[OffsetForLeaderEpochResponse]]:
        denied = frozenset() if context.authorizer is None else _denied_topics(request, context)
        asked = [(topic.topic, wanted) for topic in request.topics for wanted in topic.partitions]
        return answer_each(
            asked, lambda one: end_of_epoch(partitions, denied, *one), lambda answers: _response(request, answers)
        )

    handlers.add_message(ApiKey.OFFSET_FOR_LEADER_EPOCH, handle, answer_error=error_response)


def end_of_epoch(
    partitions: ReplicaManager, denied: Set[str], topic: str, wanted: OffsetForLeaderPartition
) -> EpochEndOffset:
    """`denied` are topics that the client may not describe."""
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


def _response(request: OffsetForLeaderEpochRequest, answers: Iterable[EpochEndOffset]) -> OffsetForLeaderEpochResponse:
    """`answers` are of all partitions, in the order of the request."""
    remaining = iter(answers)
    return OffsetForLeaderEpochResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(islice(remaining, len(topic.partitions))))
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
    return _response(
        request, (_answer(wanted, error.code, UNKNOWN) for topic in request.topics for wanted in topic.partitions)
    )


def _answer(wanted: OffsetForLeaderPartition, error: ErrorCode, end: tuple[int, int]) -> EpochEndOffset:
    # Casts, because the number classes cost a call each, and there may be ten thousand partitions.
    return EpochEndOffset(
        error_code=kio_error(error),
        partition=wanted.partition,
        leader_epoch=cast(i32, end[0]),
        end_offset=cast(i64, end[1]),
    )
