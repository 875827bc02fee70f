"""DescribeTopicPartitions 0: partitions with their eligible leader replicas, page by page (KIP-966).

Topics are sorted by name. A response has at least one partition, at most the limits of the request and of
`max.request.partition.size.limit`, and a cursor to the start of the next page.
Kafka: `DescribeTopicPartitionsRequestHandler`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Set
from dataclasses import replace
from typing import cast

from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest
from kio.schema.describe_topic_partitions.v0.response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.topic_names import INTERNAL_TOPICS, invalid_topic_name
from ...quorum.metadata.image import MetadataImage, PartitionRegistration
from ..cluster.metadata_cache import MetadataCache
from ..cluster.rules.cluster_view import ClusterView
from ..cluster.suspected_peers import SuspectedPeers
from ..network.handlers import Handlers
from ..network.request import RequestContext

NOT_TOLD = -(2**31)


def register(handlers: Handlers, metadata: MetadataCache, partition_limit: int, suspected: SuspectedPeers) -> None:
    """`partition_limit`: `max.request.partition.size.limit`."""

    def handle(
        request: DescribeTopicPartitionsRequest, context: RequestContext
    ) -> DescribeTopicPartitionsResponse | Awaitable[DescribeTopicPartitionsResponse]:
        response = describe_topic_partitions(metadata.image, request, context, partition_limit)
        leaders = {partition.leader_id for topic in response.topics for partition in topic.partitions}
        return answer_later(request, context, leaders) if suspected.holds(leaders) else response

    async def answer_later(
        request: DescribeTopicPartitionsRequest, context: RequestContext, leaders: Set[int]
    ) -> DescribeTopicPartitionsResponse:
        await suspected.settled(leaders)
        return describe_topic_partitions(metadata.image, request, context, partition_limit)

    handlers.add_message(ApiKey.DESCRIBE_TOPIC_PARTITIONS, handle, answer_error=error_response)


def describe_topic_partitions(
    image: MetadataImage, request: DescribeTopicPartitionsRequest, context: RequestContext, partition_limit: int
) -> DescribeTopicPartitionsResponse:
    """Returns one page. Raises KafkaError(INVALID_REQUEST) for an invalid cursor."""
    by_name = image.topics.by_name
    cursor = request.cursor
    has_all_topics = not request.topics
    names: Iterable[str] = by_name if has_all_topics else {topic.name for topic in request.topics}
    first_name = "" if cursor is None else cursor.topic_name
    first_index = 0 if cursor is None else cursor.partition_index
    wanted = sorted(name for name in names if name >= first_name)
    if cursor is not None and not has_all_topics and first_name not in wanted:
        message = f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {first_name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if first_index < 0:
        message = f"DescribeTopicPartitionsRequest cursor partition must be valid: {first_name}-{first_index}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    view = ClusterView(image, context.listener_name)
    hidden: list[DescribeTopicPartitionsResponseTopic] = []
    if context.authorizer is not None:
        permitted = [name for name in wanted if _may_describe(context, name)]
        if not has_all_topics:
            hidden = [_hidden(name) for name in wanted if name not in set(permitted)]
        wanted = permitted
    remaining = max(1, min(partition_limit, request.response_partition_limit))
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
    for name in wanted:
        if remaining == 0:
            next_cursor = Cursor(topic_name=TopicName(name), partition_index=i32(0))
            break
        topic = by_name.get(name)
        if topic is None:
            # If all topics are requested, the cursor's topic may have been deleted meanwhile.
            if not has_all_topics:
                is_valid = invalid_topic_name(name) is None
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION
                topics.append(_missing(name, code, _operations(context, name)))
            continue
        start = first_index if name == first_name else 0
        end = min(len(topic.partitions), start + remaining)
        partitions = tuple(_partition(view, index, topic.partitions[index]) for index in range(start, end))
        topics.append(
            DescribeTopicPartitionsResponseTopic(
                error_code=kio_error(ErrorCode.NONE),
                name=TopicName(name),
                topic_id=topic.topic_id,
                is_internal=name in INTERNAL_TOPICS,
                partitions=partitions,
                topic_authorized_operations=i32(_operations(context, name)),
            )
        )
        if end < len(topic.partitions):
            next_cursor = Cursor(topic_name=TopicName(name), partition_index=i32(end))
            break
        remaining -= len(partitions)
    return DescribeTopicPartitionsResponse(
        throttle_time=NO_THROTTLE, topics=(*topics, *hidden), next_cursor=next_cursor
    )


def _may_describe(context: RequestContext, name: str) -> bool:
    return context.may(ApiKey.DESCRIBE_TOPIC_PARTITIONS, AclOperation.DESCRIBE, ResourceType.TOPIC, name)


def _operations(context: RequestContext, name: str) -> int:
    return context.operations_on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, ResourceType.TOPIC, name)


def error_response(request: DescribeTopicPartitionsRequest, error: KafkaError) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(_missing(topic.name, error.code, NOT_TOLD) for topic in request.topics),
    )


def _partition(
    view: ClusterView, index: int, partition: PartitionRegistration
) -> DescribeTopicPartitionsResponsePartition:
    seen = view.partition(partition)
    return DescribeTopicPartitionsResponsePartition(
        error_code=kio_error(ErrorCode.NONE),
        partition_index=i32(index),
        leader_id=BrokerId(seen.leader_id),
        leader_epoch=i32(partition.leader_epoch),
        replica_nodes=cast(tuple[BrokerId, ...], seen.replicas),
        isr_nodes=cast(tuple[BrokerId, ...], seen.isr),
        eligible_leader_replicas=cast(tuple[BrokerId, ...], partition.elr),
        last_known_elr=cast(tuple[BrokerId, ...], partition.last_known_elr),
        offline_replicas=cast(tuple[BrokerId, ...], seen.offline_replicas),
    )


def _missing(name: str, code: ErrorCode, operations: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=kio_error(code),
        name=TopicName(name),
        topic_id=None,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=i32(operations),
    )


def _hidden(name: str) -> DescribeTopicPartitionsResponseTopic:
    """Whether there is such a topic is not told."""
    return replace(_missing(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, NOT_TOLD), is_internal=False)
