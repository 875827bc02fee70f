"""`/v3/…/topics`."""

from __future__ import annotations

from typing import Final

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32

from ....protocol.acls import ResourceType
from ....protocol.apis import ApiKey
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.resources import PageQuery
from ....protocol.rest.topics import CreateTopic, Topic, TopicList, TopicQuery, UpdatePartitionCount
from ....quorum.decisions.topic_names import INTERNAL_TOPICS
from ....quorum.metadata.image import TopicImage
from ..operation import Answered, Call, Content, Operation
from ..rules.kafka_answers import check
from . import links, lookups, pages
from .answers import REQUEST_TIMEOUT

DEFAULT_COUNT: Final = -1
"""The cluster's own (KIP-464)."""
OPERATION_NAMES: Final = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
}
"""Kafka: `AclOperation`."""


async def _list(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    found = lookups.topics_after(call.node.image, pages.after(call, str))
    items = (
        (topic.name, _describe(call, cluster_id, topic) if lookups.is_visible(call, topic) else None) for topic in found
    )
    return await pages.page(call, "KafkaTopicList", items, cluster_id, "topics")


async def _get(call: Call) -> Topic:
    cluster_id = links.cluster_id(call)
    topic = _describe(call, cluster_id, lookups.topic(call, call.node.image))
    if call.query.include_authorized_operations:
        of_client = call.context.operations_on(ApiKey.METADATA, ResourceType.TOPIC, topic.topic_name)
        topic.authorized_operations = operation_names(of_client)
    return topic


async def _create(call: Call) -> Answered:
    cluster_id = links.cluster_id(call)
    body: CreateTopic = call.body
    assignments = _assignments(body)
    request = CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name=TopicName(body.topic_name),
                num_partitions=i32(DEFAULT_COUNT if body.partitions_count is None else body.partitions_count),
                replication_factor=i16(DEFAULT_COUNT if body.replication_factor is None else body.replication_factor),
                assignments=assignments,
                configs=tuple(CreatableTopicConfig(name=one.name, value=one.value) for one in body.configs),
            ),
        ),
        validate_only=body.validate_only,
    )
    answer = await call.node.ask(request, CreateTopicsResponse, call.context)
    (result,) = answer.topics
    check(result.error_code, result.error_message, answer.throttle_time)
    created = _resource(
        call,
        cluster_id,
        body.topic_name,
        topic_id=None if body.validate_only else result.topic_id,
        partitions_count=int(result.num_partitions),
        replication_factor=int(result.replication_factor),
    )
    if body.validate_only:
        return Answered(value=created, status=200)
    return Answered(value=created, headers={"Location": created.metadata.self_})


def _assignments(body: CreateTopic) -> tuple[CreatableReplicaAssignment, ...]:
    given = body.replicas_assignments or {}
    if isinstance(given, list):
        listed = given
        given = {one.partition_id: one.broker_ids for one in listed}
        if len(given) < len(listed):
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "replicas_assignments names a partition twice.")
    if given and (body.partitions_count is not None or body.replication_factor is not None):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "replicas_assignments says the counts too: give neither partitions_count nor replication_factor.",
        )
    return tuple(
        CreatableReplicaAssignment(partition_index=i32(index), broker_ids=tuple(map(BrokerId, brokers)))
        for index, brokers in given.items()
    )


async def _update_partition_count(call: Call) -> Topic:
    cluster_id = links.cluster_id(call)
    body: UpdatePartitionCount = call.body
    topic = lookups.topic(call, call.node.image)
    request = CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name=TopicName(topic.name), count=i32(body.partitions_count), assignments=None),),
        timeout=REQUEST_TIMEOUT,
        validate_only=False,
    )
    answer = await call.node.ask(request, CreatePartitionsResponse, call.context)
    (result,) = answer.results
    check(result.error_code, result.error_message, answer.throttle_time)
    return _describe(call, cluster_id, lookups.topic(call, call.node.image))


async def _delete(call: Call) -> None:
    links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    request = DeleteTopicsRequest(
        topics=(DeleteTopicState(name=TopicName(topic.name), topic_id=None),), timeout=REQUEST_TIMEOUT
    )
    answer = await call.node.ask(request, DeleteTopicsResponse, call.context)
    (result,) = answer.responses
    check(result.error_code, result.error_message, answer.throttle_time)


def operation_names(operations: int) -> list[str]:
    """Of a bit field of Kafka's `authorized_operations` (KIP-430)."""
    return [name for bit, name in OPERATION_NAMES.items() if operations >> bit & 1]


def _describe(call: Call, cluster_id: str, topic: TopicImage) -> Topic:
    return _resource(
        call,
        cluster_id,
        topic.name,
        topic_id=topic.topic_id,
        partitions_count=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas) if topic.partitions else 0,
    )


def _resource(
    call: Call, cluster_id: str, name: str, *, topic_id: object, partitions_count: int, replication_factor: int
) -> Topic:
    own = (cluster_id, "topics", name)
    return Topic(
        metadata=links.metadata(call, *own),
        cluster_id=cluster_id,
        topic_name=name,
        topic_id=None if topic_id is None else str(topic_id),
        is_internal=name in INTERNAL_TOPICS,
        replication_factor=replication_factor,
        partitions_count=partitions_count,
        partitions=links.related(call, *own, "partitions"),
        configs=links.related(call, *own, "configs"),
        partition_reassignments=links.related(call, *own, "partitions", "-", "reassignment"),
    )


OPERATIONS: Final = (
    Operation(
        name="listTopics",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics",
        tag="Topic",
        summary="The topics, internal ones too",
        run=_list,
        query=PageQuery,
        answer=TopicList,
    ),
    Operation(
        name="createTopic",
        method="POST",
        path="/v3/clusters/{cluster_id}/topics",
        tag="Topic",
        summary="Create a topic",
        description="`validate_only` answers 200 and what would be created.",
        run=_create,
        body=CreateTopic,
        answer=Topic,
        status=201,
        other_statuses={200: Topic},
    ),
    Operation(
        name="getTopic",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}",
        tag="Topic",
        summary="One topic",
        run=_get,
        query=TopicQuery,
        answer=Topic,
    ),
    Operation(
        name="updatePartitionCount",
        method="PATCH",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}",
        tag="Topic",
        summary="Add partitions to a topic",
        description="`partitions_count` is the count that the topic shall have.",
        run=_update_partition_count,
        body=UpdatePartitionCount,
        answer=Topic,
    ),
    Operation(
        name="deleteTopic",
        method="DELETE",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}",
        tag="Topic",
        summary="Delete a topic and its records",
        run=_delete,
        status=204,
    ),
)
