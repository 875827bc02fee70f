"""Adding partitions to topics.

CreatePartitions, versions 0-3 (KIP-195). Checks, codes and sentences are those of Apache Kafka 4.3.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from kio.schema.create_partitions.v3.request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kio.schema.types import TopicName

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.messages import NO_THROTTLE
from ...protocol.structs import replace
from ..metadata.image import MetadataImage
from ..metadata.records import MetadataRecord, PartitionRecord
from .answers import Refusal, refusal, wire_code
from .assignments import batch_refusal, check_active, check_replicas, new_partition
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest
from .mutation_quota import MutationBudget
from .placement import place


def create_partitions(
    image: MetadataImage, request: CreatePartitionsRequest, context: DecisionContext
) -> ControllerResult[CreatePartitionsResponse]:
    """Add partitions to those of the topics that can have them."""
    budget = MutationBudget(context.allowance)
    records: list[MetadataRecord] = []
    counts = Counter(topic.name for topic in request.topics)
    duplicate = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results = [_result(name, duplicate) for name, count in counts.items() if count > 1]
    topics = [topic for topic in request.topics if counts[topic.name] == 1]
    too_large = batch_refusal(_additional_count(image, topic) for topic in topics)
    for topic in topics:
        if too_large is not None:
            results.append(_result(topic.name, too_large))
            continue
        try:
            records.extend(_add_partitions(image, topic, context, budget))
        except KafkaError as error:
            results.append(_result(topic.name, refusal(error)))
        else:
            results.append(_result(topic.name, Refusal(ErrorCode.NONE, None)))
    return ControllerResult(
        records=() if request.validate_only else tuple(records),
        response=CreatePartitionsResponse(throttle_time=NO_THROTTLE, results=tuple(results)),
        mutations=budget.mutations,
    )


def _additional_count(image: MetadataImage, topic: CreatePartitionsTopic) -> int:
    existing = image.topics.by_name.get(topic.name)
    return 0 if existing is None else topic.count - len(existing.partitions)


def _add_partitions(
    image: MetadataImage, topic: CreatePartitionsTopic, context: DecisionContext, budget: MutationBudget
) -> list[PartitionRecord]:
    existing = image.topics.by_name.get(topic.name)
    if existing is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    count = len(existing.partitions)
    if topic.count == count:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if topic.count < count:
        message = f"The topic {topic.name} currently has {count} partition(s); {topic.count} would not be an increase."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    replication_factor = len(existing.partitions[0].replicas)
    additional = topic.count - count
    if topic.assignments is not None and len(topic.assignments) != additional:
        message = (
            f"Attempted to add {additional} additional partition(s), but only {len(topic.assignments)} assignment(s) "
            "were specified."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    budget.take(additional)
    if topic.assignments is None:
        placed = place(
            image,
            partition_count=additional,
            replication_factor=replication_factor,
            random=context.random,
        )
    else:
        placed = _manual(image, topic.assignments, count, replication_factor)
    return [
        # The first stands for all of them: they are committed together.
        replace(
            new_partition(image, existing.topic_id, index, replicas), change=context.change if index == count else ""
        )
        for index, replicas in enumerate(placed, start=count)
    ]


def _manual(
    image: MetadataImage, assignments: Iterable[CreatePartitionsAssignment], count: int, replication_factor: int
) -> list[tuple[NodeId, ...]]:
    placed = []
    for index, assignment in enumerate(assignments, start=count):
        replicas = tuple([NodeId(replica) for replica in assignment.broker_ids])
        check_replicas(image, replicas, replication_factor)
        check_active(image, replicas, index)
        placed.append(replicas)
    return placed


def _result(name: str, reason: Refusal) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=TopicName(name), error_code=wire_code(reason.code), error_message=reason.message
    )


CREATE_PARTITIONS: Final = ControllerRequest(ApiKey.CREATE_PARTITIONS, create_partitions, first_strict_version=3)
