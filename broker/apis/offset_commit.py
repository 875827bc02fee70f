"""OffsetCommit 2 to 10: commits offsets of a group.

6 adds leader epochs (KIP-320), 7 static members (KIP-345), 9 member epochs and GROUP_ID_NOT_FOUND, 10 topic ids
(KIP-848). Some partitions of a request can be committed while others are refused. A client must be allowed to read the
group and the topics.

Of a large request everything is done in a thread but the event of its group, which is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence, Set
from functools import partial
from typing import Final

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.offset_commit import (
    FIRST_TOPIC_ID_VERSION,
    CommittedTopic,
    OffsetCommitRequest,
    decode_offset_commit,
    encode_offset_commit_response,
)
from ...quorum.metadata.image import TopicImage, TopicsImage
from ..cluster.metadata_cache import MetadataCache
from ..coordinators.group_coordinator import GroupCoordinator, GroupPartition
from ..groups.offset_protocol import Committer
from ..groups.offset_records import OffsetRecords, TopicOffsets, codes_by_topic, encode_offsets
from ..network.handlers import Handlers
from ..network.large_messages import LARGE_BODY_BYTES, in_thread
from ..network.request import Request
from ..network.rules.postponed import PostponedError
from .permissions import denied_names

KNOWS_GROUP_ERRORS_SINCE: Final = 9


def register(handlers: Handlers, groups: GroupCoordinator, metadata: MetadataCache) -> None:
    handlers.add(ApiKey.OFFSET_COMMIT, OffsetCommitHandler(groups, metadata).begin)


class OffsetCommitHandler:
    def __init__(self, groups: GroupCoordinator, metadata: MetadataCache) -> None:
        self._groups = groups
        self._metadata = metadata

    def begin(self, request: Request) -> Awaitable[None] | None:
        if len(request.body) - request.body_offset > LARGE_BODY_BYTES:
            # A thread reads it, and the buffer of the connection is used again when this returns.
            request.body = memoryview(bytes(request.body))
            return self._commit_large(request)
        message = decode_offset_commit(request.api_version, request.body, request.body_offset)
        groups = self._groups
        found = self._find_topics(request, message)
        records = _encode(message, found, groups.steady_now_ms(), groups.offset_metadata_bytes_max)
        respond = partial(_respond, request, message, found, records)
        try:
            coordinator = self._commit(request, message, records)
        except PostponedError:
            raise
        except KafkaError as error:
            respond(error.code)
        else:
            if coordinator is None:
                respond(ErrorCode.NONE)
            else:
                coordinator.reply_when_committed(respond, _same)(ErrorCode.NONE)
        return None

    async def _commit_large(self, request: Request) -> None:
        """No later request of the connection begins before its answer, so a client's commits stay in their order."""
        try:
            message = await in_thread(decode_offset_commit, request.api_version, request.body, request.body_offset)
        except CorruptData as error:
            request.close_connection(str(error))
            return
        groups = self._groups
        failure = ErrorCode.NONE
        while True:
            found = self._find_topics(request, message)
            records = await in_thread(_encode, message, found, groups.steady_now_ms(), groups.offset_metadata_bytes_max)
            # The offsets of a topic that was deleted meanwhile were forgotten: none may come after that.
            if self._are_known(records):
                break
        try:
            coordinator = self._commit(request, message, records)
        except PostponedError:
            raise
        except KafkaError as error:
            failure = error.code
        else:
            if coordinator is not None:
                committed: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
                coordinator.reply_when_committed(committed.set_result, _same)(ErrorCode.NONE)
                failure = await committed
        request.respond(await in_thread(_encode_response, request, message, found, records, failure))

    def _commit(self, request: Request, message: OffsetCommitRequest, records: OffsetRecords) -> GroupPartition | None:
        """Returns where it was committed, None if there is nothing that may be. Raises KafkaError."""
        if not records.topics:
            return None
        coordinator = self._groups.coordinators.get(message.group_id)
        committer = Committer(message.group_id, message.member_id, message.instance_id, message.generation)
        knows_group_errors = request.api_version >= KNOWS_GROUP_ERRORS_SINCE
        with coordinator.event() as shard:
            shard.offsets.commit(committer, records, knows_group_errors=knows_group_errors)
        return coordinator

    def _are_known(self, records: OffsetRecords) -> bool:
        by_id = self._metadata.image.topics.by_id
        return all(one.topic_id in by_id for one in records.topics)

    def _find_topics(self, request: Request, message: OffsetCommitRequest) -> Sequence[TopicImage | ErrorCode]:
        """Each topic of the request, or the error of all its partitions."""
        topics = self._metadata.image.topics
        context = request.context
        absence = (
            ErrorCode.UNKNOWN_TOPIC_ID
            if request.api_version >= FIRST_TOPIC_ID_VERSION
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        if context.authorizer is None:
            return [_topic(topics, wanted) or absence for wanted in message.topics]
        if not context.may(ApiKey.OFFSET_COMMIT, AclOperation.READ, ResourceType.GROUP, message.group_id):
            return [ErrorCode.GROUP_AUTHORIZATION_FAILED] * len(message.topics)
        found = [(wanted, _topic(topics, wanted)) for wanted in message.topics]
        names = [name for wanted, topic in found if (name := _name(wanted, topic)) is not None]
        denied: Set[str] = denied_names(context, ApiKey.OFFSET_COMMIT, AclOperation.READ, ResourceType.TOPIC, names)
        return [
            ErrorCode.TOPIC_AUTHORIZATION_FAILED if _name(wanted, topic) in denied else topic or absence
            for wanted, topic in found
        ]


def _name(wanted: CommittedTopic, topic: TopicImage | None) -> str | None:
    return wanted.name if topic is None else topic.name


def _topic(topics: TopicsImage, wanted: CommittedTopic) -> TopicImage | None:
    if wanted.name is not None:
        return topics.by_name.get(wanted.name)
    return None if wanted.topic_id is None else topics.by_id.get(wanted.topic_id)


def _same(failure: ErrorCode) -> ErrorCode:
    return failure


def _encode(
    message: OffsetCommitRequest, found: Sequence[TopicImage | ErrorCode], now_ms: int, metadata_bytes_max: int
) -> OffsetRecords:
    """Of the topics that were found."""
    offsets = [
        TopicOffsets(topic.name, topic.topic_id, len(topic.partitions), wanted.partitions)
        for wanted, topic in zip(message.topics, found, strict=True)
        if not isinstance(topic, ErrorCode)
    ]
    return encode_offsets(message.group_id, offsets, now_ms=now_ms, metadata_bytes_max=metadata_bytes_max)


def _respond(
    request: Request,
    message: OffsetCommitRequest,
    found: Sequence[TopicImage | ErrorCode],
    records: OffsetRecords,
    failure: ErrorCode,
) -> None:
    request.respond(_encode_response(request, message, found, records, failure))


def _encode_response(
    request: Request,
    message: OffsetCommitRequest,
    found: Sequence[TopicImage | ErrorCode],
    records: OffsetRecords,
    failure: ErrorCode,
) -> bytes:
    """`failure` is of those that were to be committed."""
    topics = message.topics
    errors = codes_by_topic(found, (len(topic.partitions) for topic in topics), records, failure)
    if not all(errors):
        # Topics without partitions are not answered.
        topics = tuple(topic for topic in topics if topic.partitions)
        errors = [of_topic for of_topic in errors if of_topic]
    return encode_offset_commit_response(request.api_version, request.correlation_id, topics, errors)
