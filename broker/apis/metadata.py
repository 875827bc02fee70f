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

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import TopicId
from ...protocol.messages import decode_request, encode_response, with_correlation_id
from ...protocol.metadata import MetadataRequest, MetadataResponse
from ...quorum.decisions.topic_names import INTERNAL_TOPICS, invalid_topic_name
from ...quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from ..cluster.metadata_cache import MetadataCache
from ..cluster.rules.recent_departures import NO_DEPARTURES, RecentDepartures
from ..cluster.suspected_peers import SuspectedPeers
from ..network.handlers import Handlers
from ..network.large_messages import ITEMS_A_TURN
from ..network.request import Request, RequestContext
from .metadata_response import NOTHING_DENIED, Denied, error_response, metadata_response, named_leaders

VERSION_OF_IDS_IN_REQUESTS = 12
CACHED_BYTES_MAX = 8 * 1024 * 1024
"""Bound of the cache of encoded responses; when it is exceeded, the cache is cleared."""

CreateTopics: TypeAlias = Callable[[tuple[str, ...], RequestContext], Awaitable[None]]
"""Creates topics of these names, requested by this client, with the cluster's defaults. Topics that cannot be
created are still missing when it returns."""


_CacheKey: TypeAlias = tuple[int, str, tuple[str, str] | None, bytes]


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
        self._begun: dict[_CacheKey, asyncio.Future[_Answer]] = {}
        """Those that a thread makes. A thousand clients that ask for the same wait for one."""
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

    async def _answer_later(self, request: Request, body: bytes, waiting: Awaitable[_Answer | None]) -> None:
        """With what is waited for, or, where that is a change of the metadata or of who may be gone, after it. It is
        waited for each of them once."""
        found = await waiting or await self._find_after(request, body)
        if self._suspected.holds(found.leaders):
            await self._suspected.settled(found.leaders)
            found = await self._find_after(request, body)
        request.respond(with_correlation_id(found.frame, request.correlation_id))

    async def _find_after(self, request: Request, body: bytes) -> _Answer:
        """The answer by the metadata of this moment, without a creation."""
        found = self._find(request, body, creates=False)
        if not isinstance(found, _Answer):
            made = await found
            assert made is not None, "nothing is created"
            return made
        return found

    def _find(self, request: Request, body: bytes, *, creates: bool = True) -> _Answer | Awaitable[_Answer | None]:
        """The answer by the metadata of this moment, which is made in a thread where it is large. With `creates` the
        creation that comes before it, which has no answer."""
        image, departed = self._metadata.image, self._departures.broker_ids
        if image is not self._cached_image or departed != self._cached_departed:
            self._forget(image, departed)
        context = request.context
        # Answers of an authorizer are each client's own.
        client = None if context.authorizer is None else (context.principal, context.peer_host)
        version = request.api_version
        key = (version, context.listener_name, client, body)
        cached = self._cached.get(key) or self._begun.get(key)
        if cached is not None:
            return cached
        message = decode_request(request.api_key, version, memoryview(body), 0, MetadataRequest)
        assert isinstance(message, MetadataRequest)
        try:
            _check(message, version)
        except KafkaError as error:
            return _Answer(_encode(version, error_response(message, error.code)), NO_LEADERS)
        create_topics = self._create_topics if message.allow_auto_topic_creation else None
        denied = NOTHING_DENIED
        if context.authorizer is not None:
            denied = _denied(message, image, context, creates=create_topics is not None, is_logged=creates)
        creatable: tuple[str, ...] = ()
        if create_topics is not None:
            creatable = _creatable_topics(message, image, denied)
            if creatable and creates:
                return create_topics(creatable, context)
        own_id = self._metadata.node_id

        def make() -> _Answer:
            response = metadata_response(image, message, version, context, own_id, denied, departed)
            return _Answer(_encode(version, response), named_leaders(response))

        # A denial is logged each time, and what could not be created is tried again.
        is_kept = denied is NOTHING_DENIED and not creatable
        # What an authorizer is asked for each topic is asked in the event loop.
        asks_authorizer = message.include_topic_authorized_operations and context.authorizer is not None
        if _is_large(message, image) and not asks_authorizer:
            making = asyncio.get_running_loop().run_in_executor(None, make)
            if is_kept:
                self._begun[key] = making
                making.add_done_callback(lambda made: self._on_made(key, image, departed, made))
            return making
        found = make()
        if is_kept:
            self._remember(key, found)
        return found

    def _on_made(
        self, key: _CacheKey, image: MetadataImage, departed: frozenset[int], made: asyncio.Future[_Answer]
    ) -> None:
        # Else the metadata have changed, and the answer is only for those that wait for it.
        if self._begun.get(key) is made:
            del self._begun[key]
            if not made.cancelled() and made.exception() is None:
                assert image is self._cached_image, "what was begun is forgotten with its metadata"
                assert departed == self._cached_departed, "what was begun is forgotten with its metadata"
                self._remember(key, made.result())

    def _remember(self, key: _CacheKey, answer: _Answer) -> None:
        self._cached_bytes += len(answer.frame) + len(key[3])
        if self._cached_bytes > CACHED_BYTES_MAX:
            self._forget(self._cached_image, self._cached_departed)
        else:
            self._cached[key] = answer

    def _forget(self, image: MetadataImage, departed: frozenset[int]) -> None:
        self._cached.clear()
        self._begun.clear()
        self._cached_bytes = 0
        self._cached_image, self._cached_departed = image, departed


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


def _is_large(request: MetadataRequest, image: MetadataImage) -> bool:
    topics = image.topics
    if topics.partition_count <= ITEMS_A_TURN or request.topics is None:
        return topics.partition_count > ITEMS_A_TURN
    named = (
        topics.by_name.get(topic.name or "") if topic.topic_id is None else topics.by_id.get(TopicId(topic.topic_id))
        for topic in request.topics
    )
    return sum(len(topic.partitions) for topic in named if topic is not None) > ITEMS_A_TURN


def _encode(version: int, response: MetadataResponse) -> bytes:
    """Whose correlation id is set when it is sent."""
    return encode_response(ApiKey.METADATA, version, 0, response)
