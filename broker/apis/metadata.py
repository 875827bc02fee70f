"""Metadata 0 to 13: brokers, topics, partitions and their leaders, with endpoints of the connection's listener.

0: replicas that are not alive are omitted. 1: rack, controller, internal flag (KIP-4). 2: cluster id (KIP-78).
4: creation of topics can be declined (KIP-117). 5: offline replicas (KIP-112). 7: leader epochs (KIP-320).
8: authorized operations of topics and, until 10, of the cluster (KIP-430). 9: flexible. 10: topic ids in responses; 12:
in requests (KIP-516). 13: a top-level error, REBOOTSTRAP_REQUIRED (KIP-1102), which this node never returns.

Missing topics are created if the request and `auto.create.topics.enable` allow it. The response waits for the creation,
so that the client need not retry (Apache Kafka answers UNKNOWN_TOPIC_OR_PARTITION first). The error for a leader that
does not have this listener is LEADER_NOT_AVAILABLE up to version 5, LISTENER_NOT_FOUND from 6 on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from struct import Struct
from typing import TypeAlias, cast
from uuid import UUID

from kio.schema.metadata.v13.response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NO_NODE, NodeId
from ...protocol.messages import NO_THROTTLE, decode_request, encode_response, kio_error
from ...protocol.metadata import MetadataRequest, MetadataResponse
from ...quorum.decisions.topic_names import INTERNAL_TOPICS, invalid_topic_name
from ...quorum.metadata.image import EMPTY_IMAGE, MetadataImage, TopicImage
from ..cluster.metadata_cache import MetadataCache
from ..cluster.rules.cluster_view import (
    CLUSTER_AUTHORIZED_OPERATIONS,
    OPERATIONS_NOT_ASKED_FOR,
    TOPIC_AUTHORIZED_OPERATIONS,
    ClusterView,
)
from ..network.handlers import Handlers
from ..network.request import AnswerPart, Request

VERSION_OF_LISTENER_NOT_FOUND = 6
VERSION_OF_IDS_IN_REQUESTS = 12
CACHED_BYTES_MAX = 8 * 1024 * 1024
"""Bound of the cache of encoded responses; when it is exceeded, the cache is cleared."""
CORRELATION_ID = Struct(">i")

CreateTopics: TypeAlias = Callable[[tuple[str, ...], str], Awaitable[None]]
"""Creates topics of these names, requested by a client at this host, with the cluster's defaults. Topics that cannot be
created are still missing when it returns."""


def register(handlers: Handlers, metadata: MetadataCache, create_topics: CreateTopics | None) -> None:
    """Without `create_topics`, only CreateTopics creates topics."""
    handlers.add(ApiKey.METADATA, MetadataHandler(metadata, create_topics).begin)


class MetadataHandler:
    """Answers Metadata, and caches encoded responses until the image changes.

    A thousand clients that look for a new leader send the same request, and most bytes of a large response are equal.
    """

    def __init__(self, metadata: MetadataCache, create_topics: CreateTopics | None) -> None:
        self._metadata = metadata
        self._create_topics = create_topics
        self._cached: dict[tuple[int, str, bytes], bytes] = {}
        self._cached_bytes = 0
        self._cached_image: MetadataImage = EMPTY_IMAGE

    def begin(self, request: Request) -> Awaitable[None] | None:
        image = self._metadata.image
        if image is not self._cached_image:
            self._forget(image)
        key = (request.api_version, request.context.listener_name, bytes(request.body[request.body_offset :]))
        cached = self._cached.get(key)
        if cached is not None:
            request.respond(_with_correlation_id(cached, request.correlation_id))
            return None
        version, offset = request.api_version, request.body_offset
        message = decode_request(request.api_key, version, request.body, offset, MetadataRequest)
        assert isinstance(message, MetadataRequest)
        try:
            _check(message, version)
        except KafkaError as error:
            request.respond(_encode(request, error_response(message, error.code)))
            return None
        if self._create_topics is not None and message.allow_auto_topic_creation:
            creatable = _creatable_topics(message, image)
            if creatable:
                return self._create_and_answer(request, message, creatable, self._create_topics)
        frame = _encode(
            request, metadata_response(image, message, version, request.context.listener_name, self._metadata.node_id)
        )
        self._remember(key, frame)
        request.respond(frame)
        return None

    async def _create_and_answer(
        self, request: Request, message: MetadataRequest, names: tuple[str, ...], create_topics: CreateTopics
    ) -> None:
        await create_topics(names, request.context.peer_host)
        image = self._metadata.image
        listener_name = request.context.listener_name
        request.respond(
            _encode(
                request, metadata_response(image, message, request.api_version, listener_name, self._metadata.node_id)
            )
        )

    def _remember(self, key: tuple[int, str, bytes], frame: bytes) -> None:
        self._cached_bytes += len(frame) + len(key[2])
        if self._cached_bytes > CACHED_BYTES_MAX:
            self._forget(self._cached_image)
        else:
            self._cached[key] = frame

    def _forget(self, image: MetadataImage) -> None:
        self._cached.clear()
        self._cached_bytes = 0
        self._cached_image = image


def metadata_response(
    image: MetadataImage, request: MetadataRequest, version: int, listener_name: str, own_id: NodeId = NO_NODE
) -> MetadataResponse:
    """Returns the response of broker `own_id` to a request in `version` on that listener."""
    view = ClusterView(image, listener_name, own_id)
    operations = TOPIC_AUTHORIZED_OPERATIONS if request.include_topic_authorized_operations else None
    by_name = image.topics.by_name
    topics: list[MetadataResponseTopic] = []
    if request.topics is None:
        topics += [_topic(view, topic, version, operations) for topic in by_name.values()]
    elif ids := dict.fromkeys(topic.topic_id for topic in request.topics if topic.topic_id is not None):
        for topic_id in ids:
            found = image.topics.by_id.get(topic_id)
            if found is None:
                topics.append(_missing(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                topics.append(_topic(view, found, version, operations))
    else:
        for name in dict.fromkeys(topic.name or "" for topic in request.topics):
            found = by_name.get(name)
            if found is not None:
                topics.append(_topic(view, found, version, operations))
            elif invalid_topic_name(name) is not None:
                topics.append(_missing(name, None, ErrorCode.INVALID_TOPIC_EXCEPTION, operations))
            else:
                topics.append(_missing(name, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, operations))
    wants_operations = request.include_cluster_authorized_operations
    cluster_operations = CLUSTER_AUTHORIZED_OPERATIONS if wants_operations else OPERATIONS_NOT_ASKED_FOR
    return MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=tuple(
            MetadataResponseBroker(
                node_id=BrokerId(broker.id), host=broker.host, port=i32(broker.port), rack=broker.rack
            )
            for broker in view.brokers
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


def _check(request: MetadataRequest, version: int) -> None:
    if version >= VERSION_OF_IDS_IN_REQUESTS:
        return
    for topic in request.topics or ():
        if topic.name is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {version}")
        if topic.topic_id is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic IDs are not supported for version {version}")


def _creatable_topics(request: MetadataRequest, image: MetadataImage) -> tuple[str, ...]:
    """Returns the requested names without a topic that may be created. Coordinators create the internal topics."""
    if request.topics is None or any(topic.topic_id is not None for topic in request.topics):
        return ()
    names = dict.fromkeys(topic.name or "" for topic in request.topics)
    return tuple(
        name
        for name in names
        if name not in image.topics.by_name and name not in INTERNAL_TOPICS and invalid_topic_name(name) is None
    )


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


def _encode(request: Request, response: MetadataResponse) -> bytes:
    return encode_response(ApiKey.METADATA, request.api_version, request.correlation_id, response)


def _with_correlation_id(frame: bytes, correlation_id: int) -> tuple[AnswerPart, ...]:
    return frame[:4], CORRELATION_ID.pack(correlation_id), frame[8:]
