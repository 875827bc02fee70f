"""Moving partitions to other replicas.

AlterPartitionReassignments, versions 0-1 (KIP-455; KIP-860: a move that must keep the number of replicas). Checks,
codes and sentences are those of Apache Kafka 4.3.
"""

from typing import Final

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from kio.schema.alter_partition_reassignments.v1.response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.messages import NO_THROTTLE
from ...protocol.structs import replace
from ..metadata.image import MetadataImage, PartitionRegistration, TopicImage
from ..metadata.records import MetadataRecord, PartitionChangeRecord
from ..metadata.topics_delta import changed_partition
from .answers import Refusal, refusal, wire_code
from .assignment_moves import Assignment, assignment_of, move, revert
from .assignments import check_replicas
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest
from .partition_changes import PartitionTarget, acceptable_leader, election_rules, partition_change
from .placement import default_directory


def alter_reassignments(
    image: MetadataImage, request: AlterPartitionReassignmentsRequest, context: DecisionContext
) -> ControllerResult[AlterPartitionReassignmentsResponse]:
    """Begin, change or, without replicas, cancel the moves of the partitions, each by itself."""
    records: list[MetadataRecord] = []
    # A partition that is named twice moves on from what its first mention made of it.
    changed: dict[tuple[str, int], PartitionRegistration] = {}
    responses = []
    for asked in request.topics:
        partitions = []
        for partition in asked.partitions:
            try:
                topic, before = _find(image, asked.name, int(partition.partition_index), changed)
                record = _alter(image, topic, before, partition, request.allow_replication_factor_change, context)
            except KafkaError as error:
                partitions.append(_result(partition, refusal(error)))
                continue
            if record is not None:
                records.append(record)
                changed[asked.name, record.partition_id] = changed_partition(before, record)
            partitions.append(_result(partition, Refusal(ErrorCode.NONE, None)))
        responses.append(ReassignableTopicResponse(name=asked.name, partitions=tuple(partitions)))
    return ControllerResult(
        records=tuple(records),
        response=AlterPartitionReassignmentsResponse(
            throttle_time=NO_THROTTLE,
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_code=wire_code(ErrorCode.NONE),
            # As Apache Kafka, which takes a way of its own when there is nothing to do.
            error_message=None if request.topics else "",
            responses=tuple(responses),
        ),
    )


def _find(
    image: MetadataImage, name: str, index: int, changed: dict[tuple[str, int], PartitionRegistration]
) -> tuple[TopicImage, PartitionRegistration]:
    topic = image.topics.by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    return topic, changed.get((name, index), topic.partitions[index])


def _alter(
    image: MetadataImage,
    topic: TopicImage,
    partition: PartitionRegistration,
    asked: ReassignablePartition,
    may_resize: bool,
    context: DecisionContext,
) -> PartitionChangeRecord | None:
    index = int(asked.partition_index)
    rules = election_rules(image, topic, context.config)
    target = PartitionTarget.of(partition)
    if asked.replicas is None:
        if not assignment_of(partition).is_moving:
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        reverted = revert(partition)
        if reverted.is_unclean and not rules.allows_unclean:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
                "leader election.",
            )
        target = replace(target, assignment=reverted.assignment, isr=reverted.isr)
    else:
        replicas = tuple([NodeId(replica) for replica in asked.replicas])
        check_replicas(image, replicas, None)
        if not may_resize:
            _check_same_size(assignment_of(partition), replicas)
        assignment = move(assignment_of(partition), replicas)
        added = {replica: default_directory(image, replica) for replica in assignment.adding}
        target = replace(target, assignment=assignment, directories={**added, **target.directories})
    return partition_change(
        topic.topic_id,
        index,
        partition,
        target,
        rules=rules,
        may_lead=acceptable_leader(image, partition),
    )


def _check_same_size(assignment: Assignment, replicas: tuple[NodeId, ...]) -> None:
    before = len(assignment.remaining)
    if len(replicas) != before:
        message = f"The replication factor is changed from {before} to {len(replicas)}"
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def _result(asked: ReassignablePartition, reason: Refusal) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=asked.partition_index, error_code=wire_code(reason.code), error_message=reason.message
    )


ALTER_PARTITION_REASSIGNMENTS: Final = ControllerRequest(ApiKey.ALTER_PARTITION_REASSIGNMENTS, alter_reassignments)
