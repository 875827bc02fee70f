"""OffsetCommit 2 to 10: commits offsets of a group.

6 adds leader epochs (KIP-320), 7 static members (KIP-345), 9 member epochs and GROUP_ID_NOT_FOUND, 10 topic ids
(KIP-848). Some partitions of a request can be committed while others are refused. A client must be allowed to read the
group and the topics.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.offset_commit import (
    FIRST_TOPIC_ID_VERSION,
    CommittedTopic,
    OffsetCommitRequest,
    decode_offset_commit,
    encode_offset_commit_response,
)
from ...quorum.metadata.image import TopicImage, TopicsImage
from ..cluster.metadata_cache import MetadataCache
from ..coordinators.group_coordinator import GroupCoordinator
from ..groups.offset_protocol import Committer, OffsetToCommit
from ..network.handlers import Handlers
from ..network.request import Request
from .permissions import denied_names

KNOWS_GROUP_ERRORS_SINCE: Final = 9


def register(handlers: Handlers, groups: GroupCoordinator, metadata: MetadataCache) -> None:
    handlers.add(ApiKey.OFFSET_COMMIT, OffsetCommitHandler(groups, metadata).begin)


class OffsetCommitHandler:
    def __init__(self, groups: GroupCoordinator, metadata: MetadataCache) -> None:
        self._groups = groups
        self._metadata = metadata

    def begin(self, request: Request) -> None:
        message = decode_offset_commit(request.api_version, request.body, request.body_offset)
        # By topic and partition; NONE for those that may be committed, which are in `offsets` in the same order.
        errors: list[list[ErrorCode]] = []
        offsets: list[OffsetToCommit] = []
        if request.context.authorizer is None:
            for wanted in message.topics:
                topic = _topic(self._metadata.image.topics, wanted)
                errors.append(_check(request.api_version, wanted, topic, offsets))
        else:
            errors += self._check_permitted(request, message, offsets)
        if not offsets:
            _respond(request, message, errors)
            return
        try:
            partition = self._groups.coordinators.get(message.group_id)
            committer = Committer(message.group_id, message.member_id, message.instance_id, message.generation)
            knows_group_errors = request.api_version >= KNOWS_GROUP_ERRORS_SINCE
            with partition.event() as shard:
                outcomes = shard.offsets.commit(committer, offsets, knows_group_errors=knows_group_errors)
        except KafkaError as error:
            _respond(request, message, _filled(errors, [error.code] * len(offsets)))
            return

        def respond(failure: ErrorCode) -> None:
            _respond(request, message, _filled(errors, [failure or outcome for outcome in outcomes]))

        partition.reply_when_committed(respond, lambda failure: failure)(ErrorCode.NONE)

    def _check_permitted(
        self, request: Request, message: OffsetCommitRequest, offsets: list[OffsetToCommit]
    ) -> list[list[ErrorCode]]:
        """As `_check`, for all topics, by what the client may do."""
        context = request.context
        if not context.may(ApiKey.OFFSET_COMMIT, AclOperation.READ, ResourceType.GROUP, message.group_id):
            return [[ErrorCode.GROUP_AUTHORIZATION_FAILED] * len(wanted.partitions) for wanted in message.topics]
        found = [(wanted, _topic(self._metadata.image.topics, wanted)) for wanted in message.topics]
        names = [name for wanted, topic in found if (name := _name(wanted, topic)) is not None]
        denied: Set[str] = denied_names(context, ApiKey.OFFSET_COMMIT, AclOperation.READ, ResourceType.TOPIC, names)
        return [
            [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(wanted.partitions)
            if _name(wanted, topic) in denied
            else _check(request.api_version, wanted, topic, offsets)
            for wanted, topic in found
        ]


def _name(wanted: CommittedTopic, topic: TopicImage | None) -> str | None:
    return wanted.name if topic is None else topic.name


def _topic(topics: TopicsImage, wanted: CommittedTopic) -> TopicImage | None:
    if wanted.name is not None:
        return topics.by_name.get(wanted.name)
    return None if wanted.topic_id is None else topics.by_id.get(wanted.topic_id)


def _check(
    version: int, wanted: CommittedTopic, topic: TopicImage | None, offsets: list[OffsetToCommit]
) -> list[ErrorCode]:
    """Returns an error for each partition; adds those that may be committed to `offsets`."""
    if topic is None:
        has_ids = version >= FIRST_TOPIC_ID_VERSION
        absence = ErrorCode.UNKNOWN_TOPIC_ID if has_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return [absence] * len(wanted.partitions)
    errors = []
    for index, offset, leader_epoch, metadata in wanted.partitions:
        if not 0 <= index < len(topic.partitions):
            errors.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        errors.append(ErrorCode.NONE)
        offsets.append(OffsetToCommit(topic.name, topic.topic_id, index, offset, leader_epoch, metadata))
    return errors


def _filled(errors: list[list[ErrorCode]], outcomes: list[ErrorCode]) -> list[list[ErrorCode]]:
    """Returns `errors` with each NONE replaced by the next of the outcomes."""
    left = iter(outcomes)
    return [[error or next(left) for error in of_topic] for of_topic in errors]


def _respond(request: Request, message: OffsetCommitRequest, errors: list[list[ErrorCode]]) -> None:
    told = [(topic, of_topic) for topic, of_topic in zip(message.topics, errors, strict=True) if of_topic]
    request.respond(
        encode_offset_commit_response(
            request.api_version, request.correlation_id, [topic for topic, _ in told], [codes for _, codes in told]
        )
    )
