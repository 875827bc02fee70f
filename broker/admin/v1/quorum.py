"""`/v1/quorum`: the metadata quorum, at any node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse, ReplicaState
from kio.schema.describe_quorum.v2.response import PartitionData as QuorumState
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ....protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.ids import NodeId
from ....protocol.rest.quorum import (
    Quorum,
    QuorumReplica,
    SnapshotFile,
    SnapshotList,
    SnapshotRequest,
    Transferred,
    TransferRequest,
    Unanswered,
)
from ....quorum.metadata.metadata_log import METADATA_TOPIC
from ....quorum.permissions.requester import Permission, Requester
from ....quorum.raft import operations
from ...security.client_changes import requester_of
from ..node_ports import NodePorts
from ..operation import Call, HttpError, Operation
from ..rules.health import quorum_sentence
from ..rules.kafka_answers import check

LEADER_TIMEOUT_S: Final = 1.5
"""For the leader's answer; then the answer is what this node knows. An operator is not to wait longer than 2 s."""
_WITHOUT_LEADER: Final = frozenset(
    {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER}
)
"""What DescribeQuorum is answered with where there is no leader, or this node does not reach it."""
_NOT_HEARD_MS: Final = -1
_LEADERS_ASKED_MAX: Final = 3


async def quorum_of(call: Call) -> Quorum:
    """By its leader, or else by this node. Raises KafkaError."""
    node = call.node
    try:
        async with asyncio.timeout(LEADER_TIMEOUT_S):
            state = await _ask_leader(call)
    except TimeoutError:
        return await _known_here(node)
    except KafkaError as error:
        if error.code not in _WITHOUT_LEADER:
            raise
        return await _known_here(node)
    return _described(state, node.wall_clock_ms())


async def _ask_leader(call: Call) -> QuorumState:
    """Raises KafkaError."""
    question = DescribeQuorumRequest(
        topics=(TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),)),)
    )
    answer = await call.node.ask(question, DescribeQuorumResponse, call.context)
    check(answer.error_code, answer.error_message)
    (topic,) = answer.topics
    (state,) = topic.partitions
    check(state.error_code, state.error_message)
    return state


def _described(state: QuorumState, now_ms: int) -> Quorum:
    end_offset = max((int(one.log_end_offset) for one in state.current_voters), default=0)
    leader_id = int(state.leader_id)

    def replicas(of: Iterable[ReplicaState]) -> list[QuorumReplica]:
        return [_replica(one, leader_id, end_offset, now_ms) for one in of]

    return Quorum(
        is_known_by_leader=True,
        reason=None,
        leader_id=leader_id,
        epoch=int(state.leader_epoch),
        high_watermark=int(state.high_watermark),
        voters=replicas(state.current_voters),
        observers=replicas(state.observers),
    )


def _replica(replica: ReplicaState, leader_id: int, end_offset: int, now_ms: int) -> QuorumReplica:
    fetched_ms, caught_up_ms = int(replica.last_fetch_timestamp), int(replica.last_caught_up_timestamp)
    is_heard = fetched_ms != _NOT_HEARD_MS
    offset = int(replica.log_end_offset)
    return QuorumReplica(
        node_id=int(replica.replica_id),
        log_end_offset=offset if is_heard and offset >= 0 else None,
        lag=max(0, end_offset - offset) if is_heard and offset >= 0 else None,
        last_fetch_age_ms=max(0, now_ms - fetched_ms) if is_heard else None,
        last_caught_up_age_ms=max(0, now_ms - caught_up_ms) if caught_up_ms != _NOT_HEARD_MS else None,
        is_leader=int(replica.replica_id) == leader_id,
    )


async def _known_here(node: NodePorts) -> Quorum:
    leader_id, image = node.quorum_leader(), node.image
    silent = await node.silent_voters()
    if leader_id is not None:
        reason = f"Node {leader_id} leads by what node {node.node_id} knows, but did not answer"
    else:
        sentence = quorum_sentence(sorted(node.config.voters), silent)
        reason = f"{sentence[:1].upper()}{sentence[1:]}"
    details = "; ".join(f"node {voter_id}: {why}" for voter_id, why in sorted(silent.items()))
    return Quorum(
        is_known_by_leader=False,
        reason=f"{reason}." if not details else f"{reason} ({details}).",
        leader_id=leader_id,
        epoch=int(image.epoch),
        high_watermark=image.offset + 1 if image.offset >= 0 else None,
        voters=[
            QuorumReplica(
                node_id=voter_id,
                log_end_offset=None,
                lag=None,
                last_fetch_age_ms=None,
                last_caught_up_age_ms=None,
                is_leader=voter_id == leader_id,
            )
            for voter_id in sorted(node.config.voters)
        ],
        observers=[],
    )


async def _list_snapshots(call: Call) -> SnapshotList:
    asking = _in_name_of(call, AclOperation.DESCRIBE)
    return await _ask_voters(call, operations.ListSnapshots(), sorted(call.node.config.voters), asking)


async def _take_snapshots(call: Call) -> SnapshotList:
    wanted = None if call.body is None else call.body.node_ids
    voters = sorted(call.node.config.voters) if wanted is None else sorted(set(wanted))
    unknown = [one for one in voters if one not in call.node.config.voters]
    if unknown:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node {unknown[0]} is not a voter of the metadata quorum.")
    asking = _in_name_of(call, AclOperation.ALTER)
    return await _ask_voters(call, operations.TakeSnapshot(), [NodeId(one) for one in voters], asking)


def _in_name_of(call: Call, operation: AclOperation) -> Requester | None:
    """The client, by the permission that its request has needed here: voters check it once more, by their ACLs."""
    if call.context.authorizer is None:
        return None
    return requester_of(call.context, (Permission(operation, ResourceType.CLUSTER, CLUSTER_NAME),))


async def _ask_voters(
    call: Call, operation: operations.Operation, voters: list[NodeId], asking: Requester | None
) -> SnapshotList:
    access = call.node.parts().voter_access

    async def ask(voter_id: NodeId) -> list[SnapshotFile] | Unanswered:
        try:
            outcome = await access.operate(voter_id, operation, asking)
        except KafkaError as error:
            return Unanswered(node_id=voter_id, reason=error.message or str(error))
        match outcome:
            case operations.SnapshotTaken():
                return [_file(voter_id, outcome.file, outcome.end_offset, outcome.epoch, None)]
            case operations.SnapshotsListed():
                return [_file(voter_id, *one) for one in outcome.snapshots]
            case operations.Refused():
                return Unanswered(node_id=voter_id, reason=outcome.sentence)
            case _:
                return Unanswered(node_id=voter_id, reason="It answered something else than it was asked.")

    answers = await asyncio.gather(*map(ask, voters))
    return SnapshotList(
        snapshots=[one for answer in answers if isinstance(answer, list) for one in answer],
        unanswered=[answer for answer in answers if isinstance(answer, Unanswered)],
    )


def _file(node_id: int, file: str, end_offset: int, epoch: int, size_bytes: int | None) -> SnapshotFile:
    return SnapshotFile(node_id=node_id, file=file, end_offset=end_offset, epoch=epoch, size_bytes=size_bytes)


async def _transfer(call: Call) -> Transferred:
    """Asks the leader that this node knows, then the one that a voter names."""
    node, target_id = call.node, None if call.body is None else call.body.to
    access, asking = node.parts().voter_access, _in_name_of(call, AclOperation.ALTER)
    leader_id = node.quorum_leader()
    for _ in range(_LEADERS_ASKED_MAX):
        if leader_id is None:
            break
        outcome = await access.operate(leader_id, operations.Transfer(target_id), asking)
        match outcome:
            case operations.Transferred():
                return Transferred(leader_id=outcome.leader_id)
            case operations.Refused(ErrorCode.NOT_CONTROLLER):
                leader_id = None if outcome.leader_id is None else NodeId(outcome.leader_id)
            case operations.Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
                raise KafkaError(outcome.code, outcome.sentence)
            case operations.Refused():
                raise HttpError(409, "Conflict", outcome.sentence)
            case _:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The leader answered something else than asked.")
    sentence = quorum_sentence(sorted(node.config.voters), await node.silent_voters())
    raise KafkaError(ErrorCode.NOT_CONTROLLER, f"{sentence[:1].upper()}{sentence[1:]}.")


OPERATIONS: Final = (
    Operation(
        name="getQuorum",
        method="GET",
        path="/v1/quorum",
        tag="Quorum",
        summary="Leader, voters and observers of the metadata quorum, with how far each has come",
        description="Within 2 s, without a quorum too: then it is what the asked node knows, with the reason.",
        run=quorum_of,
        answer=Quorum,
        is_urgent=True,
    ),
    Operation(
        name="listQuorumSnapshots",
        method="GET",
        path="/v1/quorum/snapshots",
        tag="Quorum",
        summary="The snapshots of the metadata on the disks of the voters",
        run=_list_snapshots,
        answer=SnapshotList,
    ),
    Operation(
        name="takeQuorumSnapshots",
        method="POST",
        path="/v1/quorum/snapshots",
        tag="Quorum",
        summary="Let voters write a snapshot of the metadata now",
        run=_take_snapshots,
        body=SnapshotRequest,
        is_body_optional=True,
        answer=SnapshotList,
    ),
    Operation(
        name="transferQuorum",
        method="POST",
        path="/v1/quorum/transfer",
        tag="Quorum",
        summary="Let another voter lead the metadata quorum",
        run=_transfer,
        body=TransferRequest,
        is_body_optional=True,
        answer=Transferred,
    ),
)
