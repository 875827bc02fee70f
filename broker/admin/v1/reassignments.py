"""`/v1/reassignments`: replicas that move to other brokers (KIP-455), planned, begun, watched and cancelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from kio.schema.alter_partition_reassignments.v1.request import AlterPartitionReassignmentsRequest
from kio.schema.alter_partition_reassignments.v1.response import AlterPartitionReassignmentsResponse

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.ids import NodeId
from ....protocol.rest.elections import PartitionOutcome
from ....protocol.rest.moves import (
    Assignment,
    CancelRequest,
    CancelResult,
    MovingReplica,
    Reassignment,
    ReassignmentList,
    ReassignmentPlan,
    ReassignmentRequest,
)
from ....protocol.rest.moves import Move as MoveBody
from ....quorum.decisions.assignment_moves import assignment_of
from ....quorum.metadata.image import MetadataImage, PartitionRegistration
from ....quorum.metadata.records import NO_LEADER
from ....quorum.planning.moves import Move, Place, cancel_request, move_request, moved_bytes
from ....quorum.planning.reassignment import plan_reassignment
from ..broker_answers import ask_log_dirs, sizes_in
from ..operation import Call, HttpError, Operation
from ..rules.kafka_answers import check
from ..turns import Turns
from .elections import listed, outcome

LISTED_MAX: Final = 1_000
MOVING_MAX: Final = 1_000
"""The most that one request begins: the decision is one transaction of the metadata."""


async def alter(call: Call, request: AlterPartitionReassignmentsRequest) -> list[PartitionOutcome]:
    """Begins or cancels; the outcome of each partition. Raises KafkaError for the request as a whole."""
    if not request.topics:
        return []
    answer = await call.node.ask(request, AlterPartitionReassignmentsResponse, call.context)
    check(answer.error_code, answer.error_message)
    return [
        outcome(str(topic.name), int(one.partition_index), one.error_code, one.error_message)
        for topic in answer.responses
        for one in topic.partitions
    ]


async def _begin(call: Call) -> ReassignmentPlan:
    body: ReassignmentRequest = call.body
    if not 1 <= body.moving_max <= MOVING_MAX:
        raise HttpError(400, "Bad Request", f"moving_max is from 1 to {MOVING_MAX}, not {body.moving_max}.")
    image = call.node.image
    if body.plan is not None:
        if body.topics is not None or body.brokers is not None:
            raise HttpError(400, "Bad Request", "A plan stands alone, without topics and brokers.")
        moves = _given(image, body.plan)
    else:
        brokers = None if body.brokers is None else [NodeId(one) for one in body.brokers]
        planning = partial(plan_reassignment, image, topics=body.topics, brokers=brokers)
        moves = await call.node.loop.run_in_executor(None, planning)
    results: list[PartitionOutcome] = []
    if not body.validate_only:
        planned = {move.place for move in moves}
        others = sum(place not in planned for place, _ in await _moving(image))
        results = await alter(call, move_request(moves[: max(0, body.moving_max - others)]))
    return ReassignmentPlan(
        move_count=len(moves),
        moves=[_move(move) for move in moves[:LISTED_MAX]],
        bytes_to_copy=await _bytes_to_copy(call, moves),
        begun_count=sum(one.error_code == 0 for one in results),
        results=[one for one in listed(results) if one.error_code],
    )


def _given(image: MetadataImage, plan: Sequence[Assignment]) -> tuple[Move, ...]:
    """The moves of a plan. One that changes nothing is left out. Raises KafkaError."""
    moves: dict[Place, Move] = {}
    for one in plan:
        found = image.topics.partition(one.topic, one.partition)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Partition {one.topic}-{one.partition} does not exist."
            )
        before = assignment_of(found).remaining
        move = Move(
            topic=one.topic,
            partition=one.partition,
            leader=found.leader,
            before=before,
            after=tuple(map(NodeId, one.replicas)),
        )
        if move.place in moves:
            raise HttpError(400, "Bad Request", f"The plan has partition {one.topic}-{one.partition} twice.")
        if move.after != before:
            moves[move.place] = move
    return tuple(moves.values())


async def _moving(image: MetadataImage) -> list[tuple[Place, PartitionRegistration]]:
    found = []
    turns = Turns()
    async for topic in turns.over(sorted(image.topics.by_id.values(), key=lambda one: one.name)):
        for index, one in enumerate(topic.partitions):
            if one.adding_replicas or one.removing_replicas:
                found.append(((topic.name, index), one))
    return found


def _move(move: Move) -> MoveBody:
    return MoveBody(
        topic=move.topic,
        partition=move.partition,
        before=list(move.before),
        after=list(move.after),
        adding=list(move.adding),
        removing=list(move.removing),
    )


async def _bytes_to_copy(call: Call, moves: Sequence[Move]) -> int | None:
    copied = [move for move in moves if move.adding]
    answers, _ = await ask_log_dirs(
        call, {move.leader for move in copied if move.leader != NO_LEADER}, _indexes(move.place for move in copied)
    )
    sizes: dict[Place, int] = {}
    for leader, answer in answers.items():
        known = sizes_in(answer)
        sizes.update(
            {move.place: known[move.place] for move in copied if move.leader == leader and move.place in known}
        )
    return moved_bytes(copied, sizes) if len(sizes) == len({move.place for move in copied}) else None


def _indexes(places: Iterable[Place]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = {}
    for topic, index in places:
        indexes.setdefault(topic, []).append(index)
    return indexes


async def _list(call: Call) -> ReassignmentList:
    moving = await _moving(call.node.image)
    shown = moving[:LISTED_MAX]
    asked = {one.leader for _, one in shown if one.leader != NO_LEADER}
    asked.update(replica for _, one in shown for replica in one.adding_replicas)
    answers, failures = await ask_log_dirs(call, asked, _indexes(place for place, _ in shown))
    sizes = {broker_id: sizes_in(answer) for broker_id, answer in answers.items()}
    reassignments = [
        _reassignment(place, one, {broker_id: known.get(place) for broker_id, known in sizes.items()})
        for place, one in shown
    ]
    return ReassignmentList(
        count=len(moving),
        bytes_left=sum(replica.bytes_left or 0 for one in reassignments for replica in one.adding),
        reassignments=reassignments,
        unanswered=[f"Broker {broker_id}: {reason}" for broker_id, reason in sorted(failures.items())],
    )


def _reassignment(place: Place, one: PartitionRegistration, sizes: dict[int, int | None]) -> Reassignment:
    whole = sizes.get(one.leader)

    def replica(broker_id: NodeId) -> MovingReplica:
        has = sizes.get(broker_id)
        is_in_sync = broker_id in one.isr
        left = None if whole is None or has is None else max(0, whole - has)
        return MovingReplica(
            broker_id=broker_id, is_in_sync=is_in_sync, bytes=has, bytes_left=0 if is_in_sync else left
        )

    return Reassignment(
        topic=place[0],
        partition=place[1],
        leader=None if one.leader == NO_LEADER else int(one.leader),
        replicas=list(one.replicas),
        isr=list(one.isr),
        adding=list(map(replica, one.adding_replicas)),
        removing=list(one.removing_replicas),
        bytes=whole,
    )


async def _cancel(call: Call) -> CancelResult:
    body: CancelRequest = CancelRequest() if call.body is None else call.body
    if body.partitions is None:
        places = [place for place, _ in await _moving(call.node.image)]
    else:
        places = [(one.topic, one.partition) for one in body.partitions]
    results = await alter(call, cancel_request(places))
    return CancelResult(
        cancelled_count=sum(one.error_code == 0 for one in results),
        results=[one for one in listed(results) if one.error_code],
    )


OPERATIONS: Final = (
    Operation(
        name="listReassignments",
        method="GET",
        path="/v1/reassignments",
        tag="Partitions",
        summary="The partitions whose replicas move, with the bytes that are left",
        run=_list,
        answer=ReassignmentList,
    ),
    Operation(
        name="reassign",
        method="POST",
        path="/v1/reassignments",
        tag="Partitions",
        summary="Move replicas by a plan, or by one that is made for topics and brokers",
        run=_begin,
        body=ReassignmentRequest,
        answer=ReassignmentPlan,
    ),
    Operation(
        name="cancelReassignments",
        method="DELETE",
        path="/v1/reassignments",
        tag="Partitions",
        summary="Cancel moves that are under way",
        run=_cancel,
        body=CancelRequest,
        is_body_optional=True,
        answer=CancelResult,
    ),
)
