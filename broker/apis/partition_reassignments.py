"""ListPartitionReassignments 0: the partitions with an ongoing reassignment (KIP-455).

Other partitions and unknown ones are omitted. A client must be allowed to describe the cluster; an error of the request
names its partitions, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from ..cluster.metadata_cache import MetadataCache
from ..network.handlers import Handlers
from ..network.request import RequestContext


def register(handlers: Handlers, metadata: MetadataCache) -> None:
    def handle(
        request: ListPartitionReassignmentsRequest, context: RequestContext
    ) -> ListPartitionReassignmentsResponse:
        context.require_in_cluster(ApiKey.LIST_PARTITION_REASSIGNMENTS, AclOperation.DESCRIBE)
        return list_reassignments(metadata.image, request)

    handlers.add_message(ApiKey.LIST_PARTITION_REASSIGNMENTS, handle, answer_error=error_response)


def list_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    topics = []
    for topic, indexes in _asked(image, request):
        ongoing = tuple(
            _ongoing(index, topic.partitions[index])
            for index in indexes
            if 0 <= index < len(topic.partitions) and _is_moving(topic.partitions[index])
        )
        if ongoing:
            topics.append(OngoingTopicReassignment(name=TopicName(topic.name), partitions=ongoing))
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE, error_code=kio_error(ErrorCode.NONE), error_message=None, topics=tuple(topics)
    )


def error_response(request: ListPartitionReassignmentsRequest, error: KafkaError) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error.code),
        error_message=error.message,
        topics=tuple(
            OngoingTopicReassignment(
                name=topic.name,
                partitions=tuple(
                    OngoingPartitionReassignment(
                        partition_index=index, replicas=(), adding_replicas=(), removing_replicas=()
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        ),
    )


def _asked(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> Iterator[tuple[TopicImage, range | tuple[i32, ...]]]:
    if request.topics is None:
        for topic in image.topics.by_id.values():
            yield topic, range(len(topic.partitions))
        return
    for asked in request.topics:
        known = image.topics.by_name.get(asked.name)
        if known is not None:
            yield known, asked.partition_indexes


def _is_moving(partition: PartitionRegistration) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _ongoing(index: int, partition: PartitionRegistration) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=i32(index),
        replicas=tuple(map(BrokerId, partition.replicas)),
        adding_replicas=tuple(map(BrokerId, partition.adding_replicas)),
        removing_replicas=tuple(map(BrokerId, partition.removing_replicas)),
    )
