"""The response to Metadata by an image of the metadata: what `metadata.py` sends."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple, cast
from uuid import UUID

from kio.schema.metadata.v13.response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from ...protocol.acls import ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode
from ...protocol.ids import NO_NODE, NodeId
from ...protocol.messages import NO_THROTTLE, kio_error
from ...protocol.metadata import MetadataRequest, MetadataResponse
from ...quorum.decisions.topic_names import INTERNAL_TOPICS, invalid_topic_name
from ...quorum.metadata.image import MetadataImage, TopicImage
from ..cluster.rules.cluster_view import OPERATIONS_NOT_ASKED_FOR, ClusterView
from ..cluster.rules.recent_departures import NO_DEPARTURES
from ..network.request import RequestContext

VERSION_OF_LISTENER_NOT_FOUND: Final = 6


class Denied(NamedTuple):
    """Names of topics that a client may not know of, and of those that it may not have created."""

    hidden: frozenset[str] = frozenset()
    uncreatable: frozenset[str] = frozenset()


NOTHING_DENIED: Final = Denied()


def metadata_response(
    image: MetadataImage,
    request: MetadataRequest,
    version: int,
    context: RequestContext,
    own_id: NodeId = NO_NODE,
    denied: Denied = NOTHING_DENIED,
    departed: frozenset[int] = NO_DEPARTURES,
) -> MetadataResponse:
    """Returns the response of broker `own_id` to a request in `version`; `departed` brokers are listed, too."""
    view = ClusterView(image, context.listener_name, own_id, departed)
    hidden, uncreatable = denied

    def operations(name: str) -> int | None:
        if not request.include_topic_authorized_operations:
            return None
        return context.operations_on(ApiKey.METADATA, ResourceType.TOPIC, name)

    by_name = image.topics.by_name
    topics: list[MetadataResponseTopic] = []
    if request.topics is None:
        topics += [
            _topic(view, topic, version, operations(topic.name))
            for topic in by_name.values()
            if topic.name not in hidden
        ]
    elif ids := dict.fromkeys(topic.topic_id for topic in request.topics if topic.topic_id is not None):
        for topic_id in ids:
            found = image.topics.by_id.get(topic_id)
            if found is None:
                topics.append(_missing(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
            elif found.name in hidden:
                topics.append(_missing(None, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            else:
                topics.append(_topic(view, found, version, operations(found.name)))
    else:
        for name in dict.fromkeys(topic.name or "" for topic in request.topics):
            found = by_name.get(name)
            if name in hidden:
                # Not even whether it would be an internal topic.
                topics.append(replace(_missing(name, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED), is_internal=False))
            elif found is not None:
                topics.append(_topic(view, found, version, operations(name)))
            elif name in uncreatable:
                topics.append(_missing(name, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif invalid_topic_name(name) is not None:
                topics.append(_missing(name, None, ErrorCode.INVALID_TOPIC_EXCEPTION, operations(name)))
            else:
                topics.append(_missing(name, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, operations(name)))
    cluster_operations = OPERATIONS_NOT_ASKED_FOR
    if request.include_cluster_authorized_operations:
        cluster_operations = context.operations_in_cluster(ApiKey.METADATA)
    return MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=tuple(
            MetadataResponseBroker(
                node_id=BrokerId(broker.id), host=broker.host, port=i32(broker.port), rack=broker.rack
            )
            for broker in view.brokers_or_own
        ),
        cluster_id=image.cluster_id,
        controller_id=BrokerId(view.controller_id),
        topics=tuple(topics),
        error_code=kio_error(ErrorCode.NONE),
        cluster_authorized_operations=i32(cluster_operations),
    )


def error_response(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    """Returns the same error for every requested topic."""
    return MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=(),
        topics=tuple(_missing(topic.name or "", topic.topic_id, code) for topic in request.topics or ()),
        error_code=kio_error(ErrorCode.NONE),
    )


def named_leaders(response: MetadataResponse) -> frozenset[int]:
    return frozenset(partition.leader_id for topic in response.topics for partition in topic.partitions)


def _topic(view: ClusterView, topic: TopicImage, version: int, operations: int | None) -> MetadataResponseTopic:
    partitions = []
    for index, partition in enumerate(topic.partitions):
        seen = view.partition(partition, is_version_0=version == 0)
        code = seen.error_code
        if code == ErrorCode.LISTENER_NOT_FOUND and version < VERSION_OF_LISTENER_NOT_FOUND:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        # Casts, because the number classes cost a call each, and there may be ten thousand partitions.
        partitions.append(
            MetadataResponsePartition(
                error_code=kio_error(code),
                partition_index=cast(i32, index),
                leader_id=cast(BrokerId, seen.leader_id),
                leader_epoch=cast(i32, partition.leader_epoch),
                replica_nodes=cast(tuple[BrokerId, ...], seen.replicas),
                isr_nodes=cast(tuple[BrokerId, ...], seen.isr),
                offline_replicas=cast(tuple[BrokerId, ...], seen.offline_replicas),
            )
        )
    return MetadataResponseTopic(
        error_code=kio_error(ErrorCode.NONE),
        name=TopicName(topic.name),
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(partitions),
        **_operations(operations),
    )


def _missing(
    name: str | None, topic_id: UUID | None, code: ErrorCode, operations: int | None = None
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=kio_error(code),
        name=None if name is None else TopicName(name),
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        **_operations(operations),
    )


def _operations(operations: int | None) -> dict[str, i32]:
    """Without operations the field keeps its default, which means: not requested."""
    return {} if operations is None else {"topic_authorized_operations": i32(operations)}
