"""DescribeQuorum 0 to 2: voters and observers of the metadata log, with their log end offsets (KIP-595, KIP-836).

Without a leader the answer is Kafka's, NOT_LEADER_OR_FOLLOWER, with what this voter knows: its own log, and which
voters it reaches; without a quorum the message is the sentence of `protocol/no_quorum.py`.

A client must be allowed to describe the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.describe_quorum.v2.response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64, u16

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError, error_info
from ...protocol.ids import NO_NODE
from ...protocol.messages import kio_error
from ...protocol.no_quorum import no_quorum
from ...quorum.metadata.metadata_log import METADATA_TOPIC
from ...quorum.raft.consensus import QuorumStatus, VoterStatus
from ..cluster.rules.quorum_view import QuorumView
from ..network.handlers import Handlers
from ..network.request import RequestContext

DescribeQuorum: TypeAlias = Callable[
    [DescribeQuorumRequest, RequestContext], DescribeQuorumResponse | Awaitable[DescribeQuorumResponse]
]


def register(handlers: Handlers, describe: DescribeQuorum) -> None:
    """A controller describes the quorum itself, a broker forwards the request."""

    def handle(
        request: DescribeQuorumRequest, context: RequestContext
    ) -> DescribeQuorumResponse | Awaitable[DescribeQuorumResponse]:
        if not context.may_in_cluster(ApiKey.DESCRIBE_QUORUM, AclOperation.DESCRIBE):
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            raise KafkaError(code, error_info(code).sentence)
        return describe(request, context)

    handlers.add_message(ApiKey.DESCRIBE_QUORUM, handle, answer_error=error_response)


def describe(view: QuorumView, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """All of it if this voter leads; without a quorum what this voter knows."""
    status = view.status()
    topics = tuple(
        TopicData(
            topic_name=topic.topic_name,
            partitions=tuple(
                _partition(view, topic.topic_name, int(partition.partition_index), status)
                for partition in topic.partitions
            ),
        )
        for topic in request.topics
    )
    is_known = any(
        partition.error_code != kio_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for topic in topics
        for partition in topic.partitions
    )
    return DescribeQuorumResponse(
        error_code=kio_error(ErrorCode.NONE),
        error_message="",
        topics=topics,
        # As in Kafka, only if the response describes the metadata log.
        nodes=()
        if not is_known
        else tuple(
            Node(
                node_id=BrokerId(voter.id),
                # A single voter has no endpoint: no peer connects to it.
                listeners=(Listener(name=view.listener_name, host=voter.host, port=u16(voter.port)),)
                if voter.host
                else (),
            )
            for voter in view.voters.values()
        ),
    )


def _partition(view: QuorumView, topic: str, index: int, status: QuorumStatus) -> PartitionData:
    if topic != METADATA_TOPIC or index != 0:
        return _unknown(index)
    problem = no_quorum(tuple(view.voters), status.unreached_ids)
    if problem is not None or status.leader_id is None:
        return replace(
            _not_leader(status),
            error_message=problem or error_info(ErrorCode.NOT_LEADER_OR_FOLLOWER).sentence,
            leader_id=BrokerId(NO_NODE),
            high_watermark=i64(status.high_watermark),
            current_voters=_states(view, status.voters),
        )
    if status.leader_id != view.node_id:
        return _not_leader(status)
    return PartitionData(
        partition_index=i32(0),
        error_code=kio_error(ErrorCode.NONE),
        error_message=None,
        leader_id=BrokerId(view.node_id),
        leader_epoch=i32(status.epoch),
        high_watermark=i64(status.high_watermark),
        current_voters=_states(view, status.voters),
        observers=_states(view, view.observers()),
    )


def _states(view: QuorumView, replicas: Sequence[VoterStatus]) -> tuple[ReplicaState, ...]:
    return tuple(_state(view, replica) for replica in replicas)


def _state(view: QuorumView, replica: VoterStatus) -> ReplicaState:
    fetched_ms, caught_up_ms = replica.last_fetch_timestamp_ms, replica.last_caught_up_timestamp_ms
    if replica.replica_id == view.node_id:
        # As in Kafka: the leader itself is caught up now.
        fetched_ms = caught_up_ms = view.wall_clock_ms()
    return ReplicaState(
        replica_id=BrokerId(replica.replica_id),
        replica_directory_id=replica.directory_id,
        log_end_offset=i64(replica.log_end_offset),
        last_fetch_timestamp=i64(fetched_ms),
        last_caught_up_timestamp=i64(caught_up_ms),
    )


def _unknown(index: int) -> PartitionData:
    """As Kafka's default values: zero in all other fields."""
    return PartitionData(
        partition_index=i32(index),
        error_code=kio_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        error_message=error_info(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION).sentence,
        leader_id=BrokerId(0),
        leader_epoch=i32(0),
        high_watermark=i64(0),
        current_voters=(),
        observers=(),
    )


def _not_leader(status: QuorumStatus) -> PartitionData:
    return PartitionData(
        partition_index=i32(0),
        error_code=kio_error(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        error_message=error_info(ErrorCode.NOT_LEADER_OR_FOLLOWER).sentence,
        leader_id=BrokerId(NO_NODE if status.leader_id is None else status.leader_id),
        leader_epoch=i32(status.epoch),
        high_watermark=i64(-1),
        current_voters=(),
        observers=(),
    )


def error_response(_request: DescribeQuorumRequest, error: KafkaError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=kio_error(error.code), error_message=error.message, topics=(), nodes=())
