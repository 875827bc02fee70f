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

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias, cast
from uuid import UUID

from kio.schema.metadata.v13.response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NO_NODE, NodeId
from ...protocol.messages import NO_THROTTLE, decode_request, encode_response, kio_error, with_correlation_id
from ...protocol.metadata import MetadataRequest, MetadataResponse
from ...quorum.decisions.topic_names import INTERNAL_TOPICS, invalid_topic_name
from ...quorum.metadata.image import EMPTY_IMAGE, MetadataImage, TopicImage
from ..cluster.metadata_cache import MetadataCache
from ..cluster.rules.cluster_view import OPERATIONS_NOT_ASKED_FOR, ClusterView
from ..cluster.rules.recent_departures import NO_DEPARTURES, RecentDepartures
from ..cluster.suspected_peers import SuspectedPeers
from ..network.handlers import Handlers
from ..network.request import Request, RequestContext

VERSION_OF_LISTENER_NOT_FOUND = 6
VERSION_OF_IDS_IN_REQUESTS = 12
CACHED_BYTES_MAX = 8 * 1024 * 1024
"""Bound of the cache of encoded responses; when it is exceeded, the cache is cleared."""

CreateTopics: TypeAlias = Callable[[tuple[str, ...], RequestContext], Awaitable[None]]
"""Creates topics of these names, requested by this client, with the cluster's defaults. Topics that cannot be
created are still missing when it returns."""


_CacheKey: TypeAlias = tuple[int, str, tuple[str, str] | None, bytes]


class Denied(NamedTuple):
    """Names of topics that a client may not know of, and of those that it may not have created."""

    hidden: frozenset[str] = frozenset()
    uncreatable: frozenset[str] = frozenset()


NOTHING_DENIED: Final = Denied()


NO_LEADERS: Final[frozenset[int]] = frozenset()


class _Answer(NamedTuple):
    frame: bytes
    leaders: frozenset[int]
    """Those that it names."""


def register(
    handlers: Handlers,
    metadata: MetadataCache,
    create_topics: CreateTopics | None,
    suspected: SuspectedPeers,
    departures: RecentDepartures,
) -> None:
    """Without `create_topics`, only CreateTopics creates topics."""
    handlers.add(ApiKey.METADATA, MetadataHandler(metadata, create_topics, suspected, departures).begin)


class MetadataHandler:
    """Answers Metadata, and caches encoded responses until the image changes.

    A thousand clients that look for a new leader send the same request, and most bytes of a large response are equal.
    A response that names a leader which may be gone waits until that is known.
    """

    def __init__(
        self,
        metadata: MetadataCache,
        create_topics: CreateTopics | None,
        suspected: SuspectedPeers,
        departures: RecentDepartures,
    ) -> None:
        self._metadata = metadata
        self._departures = departures
        self._create_topics = create_topics
        self._suspected = suspected
        self._cached: dict[_CacheKey, _Answer] = {}
        self._cached_bytes = 0
        # What they were made of.
        self._cached_image: MetadataImage = EMPTY_IMAGE
        self._cached_departed = NO_DEPARTURES

    def begin(self, request: Request) -> Awaitable[None] | None:
        body = bytes(request.body[request.body_offset :])
        found = self._find(request, body)
        if not isinstance(found, _Answer):
            return self._answer_later(request, body, found)
        if self._suspected.holds(found.leaders):
            return self._answer_later(request, body, self._suspected.settled(found.leaders))
        request.respond(with_correlation_id(found.frame, request.correlation_id))
        return None

    async def _answer_later(self, request: Request, body: bytes, change: Awaitable[None]) -> None:
        """After a change of the metadata, or of who may be gone. It is waited for each of them once."""
        await change
        found = self._find(request, body, creates=False)
        assert isinstance(found, _Answer), "nothing is created"
        if self._suspected.holds(found.leaders):
            await self._suspected.settled(found.leaders)
            found = self._find(request, body, creates=False)
            assert isinstance(found, _Answer), "nothing is created"
        request.respond(with_correlation_id(found.frame, request.correlation_id))

    def _find(self, request: Request, body: bytes, *, creates: bool = True) -> _Answer | Awaitable[None]:
        """The answer by the metadata of this moment, or, with `creates`, the creation that comes before it."""
        image, departed = self._metadata.image, self._departures.broker_ids
        if image is not self._cached_image or departed != self._cached_departed:
            self._forget(image, departed)
        context = request.context
        # Answers of an authorizer are each client's own.
        client = None if context.authorizer is None else (context.principal, context.peer_host)
        version = request.api_version
        key = (version, context.listener_name, client, body)
        cached = self._cached.get(key)
        if cached is not None:
            return cached
        message = decode_request(request.api_key, version, memoryview(body), 0, MetadataRequest)
        assert isinstance(message, MetadataRequest)
        try:
            _check(message, version)
        except KafkaError as error:
            return _Answer(_encode(request, error_response(message, error.code)), NO_LEADERS)
        create_topics = self._create_topics if message.allow_auto_topic_creation else None
        denied = NOTHING_DENIED
        if context.authorizer is not None:
            denied = _denied(message, image, context, creates=create_topics is not None, is_logged=creates)
        creatable: tuple[str, ...] = ()
        if create_topics is not None:
            creatable = _creatable_topics(message, image, denied)
            if creatable and creates:
                return create_topics(creatable, context)
        response = metadata_response(image, message, version, context, self._metadata.node_id, denied, departed)
        found = _Answer(_encode(request, response), _leaders(response))
        # A denial is logged each time, and what could not be created is tried again.
        if denied is NOTHING_DENIED and not creatable:
            self._remember(key, found)
        return found

    def _remember(self, key: _CacheKey, answer: _Answer) -> None:
        self._cached_bytes += len(answer.frame) + len(key[3])
        if self._cached_bytes > CACHED_BYTES_MAX:
            self._forget(self._cached_image, self._cached_departed)
        else:
            self._cached[key] = answer

    def _forget(self, image: MetadataImage, departed: frozenset[int]) -> None:
        self._cached.clear()
        self._cached_bytes = 0
        self._cached_image, self._cached_departed = image, departed


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


def _leaders(response: MetadataResponse) -> frozenset[int]:
    return frozenset(partition.leader_id for topic in response.topics for partition in topic.partitions)


def _check(request: MetadataRequest, version: int) -> None:
    if version >= VERSION_OF_IDS_IN_REQUESTS:
        return
    for topic in request.topics or ():
        if topic.name is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {version}")
        if topic.topic_id is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic IDs are not supported for version {version}")


def _denied(
    request: MetadataRequest, image: MetadataImage, context: RequestContext, *, creates: bool, is_logged: bool
) -> Denied:
    """Asks the authorizer; `creates`: whether missing topics are created."""
    has_all_topics = request.topics is None
    ids = [topic.topic_id for topic in request.topics or () if topic.topic_id is not None]
    names: Iterable[str]
    if has_all_topics:
        names = image.topics.by_name
    elif ids:
        names = [found.name for topic_id in ids if (found := image.topics.by_id.get(topic_id)) is not None]
    else:
        names = dict.fromkeys(topic.name or "" for topic in request.topics or ())
    hidden = frozenset(
        name
        for name in names
        if not context.may(
            ApiKey.METADATA, AclOperation.DESCRIBE, ResourceType.TOPIC, name, is_logged=is_logged and not has_all_topics
        )
    )
    uncreatable: frozenset[str] = frozenset()
    missing = [name for name in names if creates and name not in hidden and name not in image.topics.by_name]
    if missing and not context.may_in_cluster(ApiKey.METADATA, AclOperation.CREATE, is_logged=False):
        uncreatable = frozenset(
            name
            for name in missing
            if not context.may(ApiKey.METADATA, AclOperation.CREATE, ResourceType.TOPIC, name, is_logged=is_logged)
        )
    return Denied(hidden, uncreatable) if hidden or uncreatable else NOTHING_DENIED


def _creatable_topics(request: MetadataRequest, image: MetadataImage, denied: Denied) -> tuple[str, ...]:
    """Returns the requested names without a topic that may be created. Coordinators create the internal topics."""
    if request.topics is None or any(topic.topic_id is not None for topic in request.topics):
        return ()
    names = dict.fromkeys(topic.name or "" for topic in request.topics)
    return tuple(
        name
        for name in names
        if name not in image.topics.by_name
        and name not in INTERNAL_TOPICS
        and name not in denied.hidden
        and name not in denied.uncreatable
        and invalid_topic_name(name) is None
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
