"""OffsetFetch 1 to 10 and OffsetDelete 0: committed offsets of groups.

API           version  KIP
OffsetFetch   7        447  `require_stable`
              8        709  many groups
              9        848  member epochs
              10       848  topic ids

A client fetches offsets of groups and topics that it may describe, and deletes offsets of groups that it may delete and
of topics that it may read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar, cast
from uuid import UUID

from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
from kio.schema.offset_delete.v0.response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kio.schema.offset_fetch.v9 import request as fetch_by_name
from kio.schema.offset_fetch.v9 import response as fetched_by_name
from kio.schema.offset_fetch.v10 import request as fetch_by_id
from kio.schema.offset_fetch.v10 import response as fetched_by_id
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ..cluster.metadata_cache import MetadataCache
from ..coordinators.group_coordinator import GroupCoordinator
from ..groups.offset_protocol import FetchedOffset, OffsetProtocol
from ..network.handlers import Handlers
from ..network.large_messages import ITEMS_A_TURN
from ..network.request import Request, RequestContext
from ..network.rules.large_response import LargeResponse
from ..network.rules.postponed import PostponedError
from .permissions import denied_names, require
from .response_collector import ResponseCollector

MANY_GROUPS_SINCE: Final = 8
"""OffsetFetch: before, every partition has the group's error, and since version 2 the top level too. aiokafka reads the
partitions alone, and treats a response without any as a group without committed offsets."""
FETCH_ERRORS: Final = {ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_COORDINATOR}
"""Consumers before Kafka 3.9 do not expect the first; the second makes them look up their coordinator again."""

_HIDDEN: Final = FetchedOffset(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

T = TypeVar("T")

OffsetFetch: TypeAlias = fetch_by_name.OffsetFetchRequest | fetch_by_id.OffsetFetchRequest
OffsetFetched: TypeAlias = fetched_by_name.OffsetFetchResponse | fetched_by_id.OffsetFetchResponse
NamedGroup: TypeAlias = fetched_by_name.OffsetFetchResponseGroup
IdentifiedGroup: TypeAlias = fetched_by_id.OffsetFetchResponseGroup
ReplyFetched: TypeAlias = "Callable[[OffsetFetched | LargeResponse[OffsetFetched]], None]"


class _Found(NamedTuple, Generic[T]):
    """What was found of one group, as of one moment."""

    group: Callable[[], T]
    """Makes the group's part of the response."""
    partition_count: int = 0


def _respond(
    found: Sequence[_Found[T]], reply: ReplyFetched, response_of: Callable[[tuple[T, ...]], OffsetFetched]
) -> None:
    def make() -> OffsetFetched:
        return response_of(tuple(one.group() for one in found))

    is_large = sum(one.partition_count for one in found) > ITEMS_A_TURN
    reply(LargeResponse(make) if is_large else make())


def register(handlers: Handlers, groups: GroupCoordinator, metadata: MetadataCache) -> None:
    offsets = GroupOffsets(groups, metadata)
    handlers.add_replying(ApiKey.OFFSET_FETCH, offsets.fetch, answer_error=fetch_error)
    handlers.add_replying(ApiKey.OFFSET_DELETE, offsets.delete, answer_error=delete_error)


class GroupOffsets:
    def __init__(self, groups: GroupCoordinator, metadata: MetadataCache) -> None:
        self._groups = groups
        self._metadata = metadata

    def fetch(self, message: OffsetFetch, request: Request, reply: ReplyFetched) -> None:
        if isinstance(message, fetch_by_id.OffsetFetchRequest):
            self._fetch_by_id(message, request.context, reply)
        else:
            is_error_of_partitions = request.api_version < MANY_GROUPS_SINCE
            self._fetch_by_name(message, request.context, reply, is_error_of_partitions=is_error_of_partitions)

    def _fetch_by_name(
        self,
        message: fetch_by_name.OffsetFetchRequest,
        context: RequestContext,
        reply: ReplyFetched,
        *,
        is_error_of_partitions: bool,
    ) -> None:
        def response_of(groups: tuple[NamedGroup, ...]) -> OffsetFetched:
            return fetched_by_name.OffsetFetchResponse(throttle_time=NO_THROTTLE, groups=groups)

        answers: ResponseCollector[_Found[NamedGroup]] = ResponseCollector(
            len(message.groups), lambda found: _respond(found, reply, response_of)
        )
        for number, group in enumerate(message.groups):

            def of_error(error: ErrorCode, group: fetch_by_name.OffsetFetchRequestGroup = group) -> NamedGroup:
                return _named_error(group, error, is_error_of_partitions=is_error_of_partitions)

            def of_offsets(
                offsets: OffsetProtocol, group: fetch_by_name.OffsetFetchRequestGroup = group
            ) -> _Found[NamedGroup]:
                return self._named_group(offsets, group, context, require_stable=message.require_stable)

            is_only = len(message.groups) == 1
            self._fetch_group(group, context, of_offsets, of_error, answers.slot(number), may_wait=is_only)

    def _fetch_by_id(
        self,
        message: fetch_by_id.OffsetFetchRequest,
        context: RequestContext,
        reply: ReplyFetched,
    ) -> None:
        def response_of(groups: tuple[IdentifiedGroup, ...]) -> OffsetFetched:
            return fetched_by_id.OffsetFetchResponse(throttle_time=NO_THROTTLE, groups=groups)

        answers: ResponseCollector[_Found[IdentifiedGroup]] = ResponseCollector(
            len(message.groups), lambda found: _respond(found, reply, response_of)
        )
        for number, group in enumerate(message.groups):

            def of_error(error: ErrorCode, group: fetch_by_id.OffsetFetchRequestGroup = group) -> IdentifiedGroup:
                return fetched_by_id.OffsetFetchResponseGroup(
                    group_id=group.group_id, topics=(), error_code=kio_error(error)
                )

            def of_offsets(
                offsets: OffsetProtocol, group: fetch_by_id.OffsetFetchRequestGroup = group
            ) -> _Found[IdentifiedGroup]:
                return self._identified_group(offsets, group, context, require_stable=message.require_stable)

            is_only = len(message.groups) == 1
            self._fetch_group(group, context, of_offsets, of_error, answers.slot(number), may_wait=is_only)

    def _fetch_group(
        self,
        group: fetch_by_name.OffsetFetchRequestGroup | fetch_by_id.OffsetFetchRequestGroup,
        context: RequestContext,
        of_offsets: Callable[[OffsetProtocol], _Found[T]],
        of_error: Callable[[ErrorCode], T],
        reply: Callable[[_Found[T]], None],
        *,
        may_wait: bool,
    ) -> None:
        """Raises PostponedError if it `may_wait`: of several groups those that are here are not to wait for another."""
        try:
            if context.authorizer is not None:
                require(context, ApiKey.OFFSET_FETCH, AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id)
            partition = self._groups.coordinators.get(group.group_id)
            offsets = partition.shard.offsets
            offsets.check_fetcher(group.group_id, group.member_id, group.member_epoch)
            found = of_offsets(offsets)
        except KafkaError as error:
            if may_wait and isinstance(error, PostponedError):
                raise
            refused = error.code
            reply(_Found(lambda: of_error(refused)))
        else:
            partition.reply_when_committed(
                reply, lambda failure: _Found(lambda: of_error(FETCH_ERRORS.get(failure, failure)))
            )(found)

    def _named_group(
        self,
        offsets: OffsetProtocol,
        group: fetch_by_name.OffsetFetchRequestGroup,
        context: RequestContext,
        *,
        require_stable: bool,
    ) -> _Found[NamedGroup]:
        by_name = self._metadata.image.topics.by_name
        if group.topics is None:
            fetched = offsets.fetch_all(group.group_id, by_name, require_stable=require_stable)
            if context.authorizer is not None:
                denied = _hidden_topics(context, fetched)
                fetched = {name: partitions for name, partitions in fetched.items() if name not in denied}
        else:
            denied = frozenset()
            if context.authorizer is not None:
                denied = _hidden_topics(context, [wanted.name for wanted in group.topics])
            fetched = {
                wanted.name: {
                    index: offsets.fetch(
                        group.group_id,
                        wanted.name,
                        topic.topic_id if (topic := by_name.get(wanted.name)) is not None else None,
                        index,
                        require_stable=require_stable,
                    )
                    for index in wanted.partition_indexes
                }
                for wanted in group.topics
                if not denied or wanted.name not in denied
            }
            if denied:
                fetched |= {
                    wanted.name: dict.fromkeys(wanted.partition_indexes, _HIDDEN)
                    for wanted in group.topics
                    if wanted.name in denied
                }
        return _Found(lambda: _named_group(group.group_id, fetched), sum(map(len, fetched.values())))

    def _identified_group(
        self,
        offsets: OffsetProtocol,
        group: fetch_by_id.OffsetFetchRequestGroup,
        context: RequestContext,
        *,
        require_stable: bool,
    ) -> _Found[IdentifiedGroup]:
        topics = self._metadata.image.topics
        fetched: dict[UUID | None, Mapping[int, FetchedOffset]] = {}
        if group.topics is None:
            of_group = offsets.fetch_all(group.group_id, topics.by_name, require_stable=require_stable)
            denied = frozenset() if context.authorizer is None else _hidden_topics(context, of_group)
            for name, partitions in of_group.items():
                known = topics.by_name.get(name)
                if known is not None and name not in denied:
                    fetched[known.topic_id] = partitions
        else:
            denied = frozenset()
            if context.authorizer is not None:
                present = (topics.by_id.get(wanted.topic_id) for wanted in group.topics if wanted.topic_id is not None)
                denied = _hidden_topics(context, [topic.name for topic in present if topic is not None])
            # As in Apache Kafka, unknown topics come last.
            for wanted in sorted(group.topics, key=lambda topic: topic.topic_id not in topics.by_id):
                topic = None if wanted.topic_id is None else topics.by_id.get(wanted.topic_id)
                fetched[wanted.topic_id] = {
                    index: FetchedOffset(ErrorCode.UNKNOWN_TOPIC_ID)
                    if topic is None
                    else _HIDDEN
                    if denied and topic.name in denied
                    else offsets.fetch(group.group_id, topic.name, topic.topic_id, index, require_stable=require_stable)
                    for index in wanted.partition_indexes
                }
        return _Found(lambda: _identified_group(group.group_id, fetched), sum(map(len, fetched.values())))

    def delete(
        self, message: OffsetDeleteRequest, request: Request, reply: Callable[[OffsetDeleteResponse], None]
    ) -> None:
        """Raises KafkaError."""
        context = request.context
        require(context, ApiKey.OFFSET_DELETE, AclOperation.DELETE, ResourceType.GROUP, message.group_id)
        denied = denied_names(
            context,
            ApiKey.OFFSET_DELETE,
            AclOperation.READ,
            ResourceType.TOPIC,
            [str(topic.name) for topic in message.topics],
        )
        topics = self._metadata.image.topics
        partition = self._groups.get(message.group_id)
        wanted = [(str(topic.name), int(one.partition_index)) for topic in message.topics for one in topic.partitions]
        known = [one for one in wanted if one[0] not in denied and topics.partition(*one) is not None]
        with partition.event() as shard:
            errors = dict(zip(known, shard.offsets.delete(message.group_id, known), strict=True))
        errors |= {one: ErrorCode.TOPIC_AUTHORIZATION_FAILED for one in wanted if one[0] in denied}
        partition.reply_when_committed(reply, _delete_failure)(
            OffsetDeleteResponse(
                error_code=kio_error(ErrorCode.NONE),
                throttle_time=NO_THROTTLE,
                topics=tuple(
                    OffsetDeleteResponseTopic(
                        name=topic.name,
                        partitions=tuple(
                            OffsetDeleteResponsePartition(
                                partition_index=one.partition_index,
                                error_code=kio_error(
                                    errors.get((topic.name, one.partition_index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                                ),
                            )
                            for one in topic.partitions
                        ),
                    )
                    for topic in message.topics
                ),
            )
        )


def _hidden_topics(context: RequestContext, names: Iterable[str]) -> Set[str]:
    """Return the topics whose offsets the client may not see."""
    return denied_names(context, ApiKey.OFFSET_FETCH, AclOperation.DESCRIBE, ResourceType.TOPIC, names)


def _named_group(group_id: GroupId, fetched: Mapping[str, Mapping[int, FetchedOffset]]) -> NamedGroup:
    return fetched_by_name.OffsetFetchResponseGroup(
        group_id=group_id,
        topics=tuple(_named_topic(name, partitions) for name, partitions in fetched.items()),
        error_code=kio_error(ErrorCode.NONE),
    )


def _identified_group(group_id: GroupId, fetched: Mapping[UUID | None, Mapping[int, FetchedOffset]]) -> IdentifiedGroup:
    return fetched_by_id.OffsetFetchResponseGroup(
        group_id=group_id,
        topics=tuple(_identified_topic(topic_id, partitions) for topic_id, partitions in fetched.items()),
        error_code=kio_error(ErrorCode.NONE),
    )


def _named_topic(name: str, partitions: Mapping[int, FetchedOffset]) -> fetched_by_name.OffsetFetchResponseTopics:
    return fetched_by_name.OffsetFetchResponseTopics(
        name=TopicName(name),
        partitions=tuple(
            fetched_by_name.OffsetFetchResponsePartitions(
                partition_index=cast(i32, index),
                committed_offset=cast(i64, fetched.offset),
                committed_leader_epoch=cast(i32, fetched.leader_epoch),
                metadata=fetched.metadata,
                error_code=kio_error(fetched.error),
            )
            for index, fetched in partitions.items()
        ),
    )


def _identified_topic(
    topic_id: UUID | None, partitions: Mapping[int, FetchedOffset]
) -> fetched_by_id.OffsetFetchResponseTopics:
    return fetched_by_id.OffsetFetchResponseTopics(
        topic_id=topic_id,
        partitions=tuple(
            fetched_by_id.OffsetFetchResponsePartitions(
                partition_index=cast(i32, index),
                committed_offset=cast(i64, fetched.offset),
                committed_leader_epoch=cast(i32, fetched.leader_epoch),
                metadata=fetched.metadata,
                error_code=kio_error(fetched.error),
            )
            for index, fetched in partitions.items()
        ),
    )


def _named_error(
    group: fetch_by_name.OffsetFetchRequestGroup, error: ErrorCode, *, is_error_of_partitions: bool
) -> NamedGroup:
    topics: Iterable[fetched_by_name.OffsetFetchResponseTopics] = ()
    if is_error_of_partitions:
        topics = (
            _named_topic(topic.name, {index: FetchedOffset(error) for index in topic.partition_indexes})
            for topic in group.topics or ()
        )
    return fetched_by_name.OffsetFetchResponseGroup(
        group_id=group.group_id, topics=tuple(topics), error_code=kio_error(error)
    )


def fetch_error(request: OffsetFetch, error: KafkaError) -> OffsetFetched:
    if isinstance(request, fetch_by_id.OffsetFetchRequest):
        return fetched_by_id.OffsetFetchResponse(
            throttle_time=NO_THROTTLE,
            groups=tuple(
                fetched_by_id.OffsetFetchResponseGroup(
                    group_id=group.group_id, topics=(), error_code=kio_error(error.code)
                )
                for group in request.groups
            ),
        )
    # A request for one group may have a version below 8.
    is_of_partitions = len(request.groups) == 1
    return fetched_by_name.OffsetFetchResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(
            _named_error(group, error.code, is_error_of_partitions=is_of_partitions) for group in request.groups
        ),
    )


def delete_error(_request: OffsetDeleteRequest, error: KafkaError) -> OffsetDeleteResponse:
    return _delete_failure(error.code)


def _delete_failure(error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=kio_error(error), throttle_time=NO_THROTTLE, topics=())
