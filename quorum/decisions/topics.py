"""Creating and deleting topics.

CreateTopics, versions 2-7 (KIP-4, KIP-464 defaults by -1, KIP-525 configs in the answer, KIP-516 topic ids) and
DeleteTopics, versions 1-6 (KIP-516 by id). Checks, their order, codes and sentences are those of Apache Kafka 4.3.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import TopicId
from ...protocol.messages import NO_THROTTLE
from ..configs.effective import BrokerConfigs, resolve_topic
from ..configs.validation import validate_topic_config
from ..metadata.image import ConfigResourceType, MetadataImage, TopicsImage
from ..metadata.records import ConfigRecord, MetadataRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from ..metadata.topics_delta import collision_key
from .answers import ZERO_ID, Refusal, plain_refusal, refusal, wire_code
from .assignments import automatic_assignment, batch_refusal, manual_assignment, new_partition
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest
from .mutation_quota import MutationBudget
from .topic_names import CLUSTER_METADATA_TOPIC, invalid_topic_name

if TYPE_CHECKING:
    from random import Random

NO_TOPIC_ID = TopicId(ZERO_ID)

T = TypeVar("T", bound=Hashable)

# Place of '-' among the 64 digits of URL-safe base 64.
_BASE64_MINUS = 62


def create_topics(
    image: MetadataImage, request: CreateTopicsRequest, context: DecisionContext
) -> ControllerResult[CreateTopicsResponse]:
    """Create those of the topics that can be; each has its own outcome."""
    counts = Counter(topic.name for topic in request.topics)
    topics = [topic for topic in request.topics if counts[topic.name] == 1 and topic.name != CLUSTER_METADATA_TOPIC]
    too_large = batch_refusal(_partition_count(topic, context.config.num_partitions) for topic in topics)
    budget = MutationBudget(context.allowance)
    records: list[MetadataRecord] = []
    results: list[CreatableTopicResult] = []
    for topic in topics:
        if too_large is not None:
            results.append(_refused_creation(topic.name, too_large))
            continue
        try:
            topic_records = _create_topic(image, topic, context, budget)
        except KafkaError as error:
            results.append(_refused_creation(topic.name, refusal(error)))
            continue
        records.extend(topic_records)
        results.append(_creation(image, topic, topic_records, context))
    for name, count in counts.items():
        if count > 1:
            duplicate = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            results.append(_refused_creation(name, duplicate))
        elif name == CLUSTER_METADATA_TOPIC:
            internal = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
            results.append(_refused_creation(name, Refusal(ErrorCode.INVALID_REQUEST, internal)))
    return ControllerResult(
        records=() if request.validate_only else tuple(records),
        response=CreateTopicsResponse(throttle_time=NO_THROTTLE, topics=tuple(results)),
        mutations=budget.mutations,
    )


def delete_topics(
    image: MetadataImage, request: DeleteTopicsRequest, context: DecisionContext
) -> ControllerResult[DeleteTopicsResponse]:
    """Delete those of the topics that exist, named by name or by id."""
    results: list[DeletableTopicResult] = []
    names: list[str] = []
    ids: list[TopicId] = []
    for topic in request.topics:
        topic_id = NO_TOPIC_ID if topic.topic_id is None else TopicId(topic.topic_id)
        if topic.name is not None and topic_id == NO_TOPIC_ID:
            names.append(topic.name)
        elif topic.name is None and topic_id != NO_TOPIC_ID:
            ids.append(topic_id)
        else:
            reason = (
                "Neither topic name nor id were specified."
                if topic.name is None
                else "You may not specify both topic name and topic id."
            )
            results.append(_deletion(topic.name, topic_id, Refusal(ErrorCode.INVALID_REQUEST, reason)))
    duplicate_name = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += [_deletion(name, NO_TOPIC_ID, duplicate_name) for name in _repeated(names)]
    duplicate_id = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    repeated_ids = _repeated(ids)
    results += [_deletion(None, topic_id, duplicate_id) for topic_id in repeated_ids]
    found = _find_topics(image.topics, _once(names), _once(ids), repeated_ids, results)
    budget = MutationBudget(context.allowance)
    deleted: list[TopicId] = []
    for topic_id, name in found.items():
        try:
            budget.take(len(image.topics.by_id[topic_id].partitions))
        except KafkaError as error:
            results.append(_deletion(name, topic_id, refusal(error)))
        else:
            deleted.append(topic_id)
            results.append(_deletion(name, topic_id, Refusal(ErrorCode.NONE, None)))
    return ControllerResult(
        records=tuple([RemoveTopicRecord(topic_id=topic_id, change=context.change) for topic_id in deleted]),
        response=DeleteTopicsResponse(throttle_time=NO_THROTTLE, responses=tuple(results)),
        mutations=budget.mutations,
    )


def new_topic_id(random: "Random") -> TopicId:
    """Return a random id that Kafka's tools read well: no reserved one, and none that starts with '-' in base 64."""
    while True:
        topic_id = TopicId(UUID(int=random.getrandbits(128), version=4))
        if topic_id.bytes[0] >> 2 != _BASE64_MINUS:
            return topic_id


def _create_topic(
    image: MetadataImage, topic: CreatableTopic, context: DecisionContext, budget: MutationBudget
) -> list[MetadataRecord]:
    invalid = invalid_topic_name(topic.name)
    if invalid is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
    if topic.name in image.topics.by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    key = collision_key(topic.name)
    colliding = None if key is None else image.topics.colliding.get(key)
    if colliding:
        message = f"Topic '{topic.name}' collides with existing topic: {min(colliding)}"
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    values = _topic_configs(topic, context.broker_configs(image))
    replicas = (
        manual_assignment(image, topic)
        if topic.assignments
        else automatic_assignment(image, topic.num_partitions, topic.replication_factor, context)
    )
    budget.take(len(replicas))
    topic_id = new_topic_id(context.random)
    return [
        TopicRecord(name=topic.name, topic_id=topic_id, change=context.change),
        *(
            ConfigRecord(resource_type=ConfigResourceType.TOPIC, resource_name=topic.name, name=name, value=value)
            for name, value in values.items()
        ),
        *(new_partition(image, topic_id, index, placed) for index, placed in enumerate(replicas)),
    ]


def _topic_configs(topic: CreatableTopic, broker: BrokerConfigs) -> dict[str, str]:
    missing = [config.name for config in topic.configs if config.value is None]
    if missing:
        message = f"Null value not supported for topic configs: {','.join(missing)}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    values = {config.name: config.value for config in topic.configs if config.value is not None}
    if values:
        validate_topic_config(values, in_effect=broker.overlaid())
    return values


def _partition_count(topic: CreatableTopic, default: int) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return default if topic.num_partitions == -1 else topic.num_partitions


def _creation(
    image: MetadataImage, topic: CreatableTopic, topic_records: Sequence[MetadataRecord], context: DecisionContext
) -> CreatableTopicResult:
    partitions = [record for record in topic_records if isinstance(record, PartitionRecord)]
    values = {record.name: record.value or "" for record in topic_records if isinstance(record, ConfigRecord)}
    return CreatableTopicResult(
        name=topic.name,
        topic_id=partitions[0].topic_id,
        error_code=wire_code(ErrorCode.NONE),
        error_message=None,
        num_partitions=i32(len(partitions)),
        replication_factor=i16(len(partitions[0].replicas)),
        configs=tuple(
            [
                CreatableTopicConfigs(
                    name=config.definition.name,
                    value=None if config.definition.is_sensitive else config.value,
                    read_only=False,
                    config_source=i8(config.source),
                    is_sensitive=config.definition.is_sensitive,
                )
                for config in resolve_topic(context.broker_configs(image), values)
            ]
        ),
    )


def _refused_creation(name: str, reason: Refusal) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=TopicName(name),
        topic_id=None,
        error_code=wire_code(reason.code),
        error_message=reason.message,
        configs=(),
    )


def _find_topics(
    topics: TopicsImage,
    names: Iterable[str],
    ids: Iterable[TopicId],
    repeated_ids: Iterable[TopicId],
    results: list[DeletableTopicResult],
) -> dict[TopicId, str]:
    """Return the topics to delete; what cannot be is added to the results."""
    found: dict[TopicId, str] = {}
    for topic_id in ids:
        topic = topics.by_id.get(topic_id)
        if topic is None:
            results.append(_deletion(None, topic_id, plain_refusal(ErrorCode.UNKNOWN_TOPIC_ID)))
        else:
            found[topic_id] = topic.name
    twice = set(repeated_ids)
    for name in names:
        topic = topics.by_name.get(name)
        if topic is None:
            results.append(_deletion(name, NO_TOPIC_ID, plain_refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
        elif topic.topic_id in found or topic.topic_id in twice:
            found.pop(topic.topic_id, None)
            message = "The provided topic name maps to an ID that was already supplied."
            results.append(_deletion(name, topic.topic_id, Refusal(ErrorCode.INVALID_REQUEST, message)))
        else:
            found[topic.topic_id] = name
    return found


def _deletion(name: str | None, topic_id: TopicId, reason: Refusal) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=None if name is None else TopicName(name),
        topic_id=None if topic_id == NO_TOPIC_ID else topic_id,
        error_code=wire_code(reason.code),
        error_message=reason.message,
    )


def _repeated(items: Iterable[T]) -> list[T]:
    return [item for item, count in Counter(items).items() if count > 1]


def _once(items: Iterable[T]) -> list[T]:
    return [item for item, count in Counter(items).items() if count == 1]


CREATE_TOPICS: Final = ControllerRequest(ApiKey.CREATE_TOPICS, create_topics, first_strict_version=6)
DELETE_TOPICS: Final = ControllerRequest(ApiKey.DELETE_TOPICS, delete_topics, first_strict_version=5)
