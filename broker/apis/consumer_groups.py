"""ConsumerGroupHeartbeat 0 and 1, ConsumerGroupDescribe 0 and 1: groups of the consumer protocol (KIP-848).

ConsumerGroupHeartbeat 1 brings regular expressions and ids that members make themselves (KIP-1082), and
ConsumerGroupDescribe 1 says which protocol a member speaks. Both answer UNSUPPORTED_VERSION below group.version 1, and
where `group.coordinator.rebalance.protocols` leaves `consumer` out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError, error_info
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.metadata.features import GROUP_VERSION
from ..cluster.metadata_cache import MetadataCache
from ..configuration.consumer_config import ConsumerGroupConfig
from ..coordinators.group_coordinator import GroupCoordinator
from ..groups.consumer.consumer_protocol import HeartbeatContext, check_heartbeat, heartbeat_failure
from ..groups.consumer.group import ConsumerGroup
from ..groups.consumer.member import NO_PARTITIONS, ConsumerMember, merged
from ..network.handlers import Handlers
from ..network.request import Request
from .group_administration import GROUP_AUTHORIZED_OPERATIONS, OPERATIONS_NOT_ASKED_FOR
from .response_collector import ResponseCollector

CONSUMER_GROUPS_SINCE: Final = 1
"""Level of group.version."""
CLASSIC_MEMBER: Final = i8(0)
CONSUMER_MEMBER: Final = i8(1)


def register(
    handlers: Handlers, groups: GroupCoordinator, metadata: MetadataCache, config: ConsumerGroupConfig
) -> None:
    consumers = ConsumerGroupRequests(groups, metadata, config)
    handlers.add_replying(ApiKey.CONSUMER_GROUP_HEARTBEAT, consumers.heartbeat, answer_error=heartbeat_error)
    handlers.add_replying(ApiKey.CONSUMER_GROUP_DESCRIBE, consumers.describe, answer_error=describe_error)


class ConsumerGroupRequests:
    def __init__(self, groups: GroupCoordinator, metadata: MetadataCache, config: ConsumerGroupConfig) -> None:
        self._groups = groups
        self._metadata = metadata
        self._config = config

    def heartbeat(
        self,
        message: ConsumerGroupHeartbeatRequest,
        request: Request,
        reply: Callable[[ConsumerGroupHeartbeatResponse], None],
    ) -> None:
        """Raises KafkaError."""
        if not self._is_enabled():
            reply(heartbeat_failure(ErrorCode.UNSUPPORTED_VERSION))
            return
        check_heartbeat(message, request.api_version, self._config.assignors)
        partition = self._groups.coordinators.get(message.group_id)
        context = HeartbeatContext(
            client_id=request.client_id or "",
            client_host=f"/{request.context.peer_host}",
        )
        answer = partition.shard.consumer.protocol.heartbeat(message, context)
        partition.reply_when_committed(reply, heartbeat_failure)(answer)

    def describe(
        self,
        message: ConsumerGroupDescribeRequest,
        _request: Request,
        reply: Callable[[ConsumerGroupDescribeResponse], None],
    ) -> None:
        """Raises KafkaError."""
        if not self._is_enabled():
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        operations = GROUP_AUTHORIZED_OPERATIONS if message.include_authorized_operations else OPERATIONS_NOT_ASKED_FOR
        answers: ResponseCollector[DescribedGroup] = ResponseCollector(
            len(message.group_ids),
            lambda groups: reply(ConsumerGroupDescribeResponse(throttle_time=NO_THROTTLE, groups=groups)),
        )
        for number, group_id in enumerate(message.group_ids):

            def of_error(error: ErrorCode, group_id: str = group_id) -> DescribedGroup:
                return _not_described(group_id, error)

            place = answers.slot(number)
            try:
                partition = self._groups.get(group_id)
                shard = partition.shard
            except KafkaError as error:
                place(of_error(error.code))
                continue
            group = shard.groups.find_consumer(group_id)
            if group is not None:
                described = self._described(group, shard.consumer.default_assignor, operations)
            else:
                is_classic = shard.groups.find(group_id) is not None
                sentence = f"Group {group_id} {'is not a consumer group' if is_classic else 'not found'}."
                described = _not_described(group_id, ErrorCode.GROUP_ID_NOT_FOUND, sentence)
            partition.reply_when_committed(place, of_error)(described)

    def _is_enabled(self) -> bool:
        level = self._metadata.image.features.get(GROUP_VERSION, 0)
        return self._config.is_enabled and level >= CONSUMER_GROUPS_SINCE

    def _described(self, group: ConsumerGroup, default_assignor: str, operations: int) -> DescribedGroup:
        return DescribedGroup(
            error_code=kio_error(ErrorCode.NONE),
            error_message=None,
            group_id=GroupId(group.id),
            group_state=group.state.value,
            group_epoch=i32(group.epoch),
            assignment_epoch=i32(group.target_epoch),
            assignor_name=group.preferred_assignor(None, None) or default_assignor,
            members=tuple(self._described_member(group, member) for member in group.members.values()),
            authorized_operations=i32(operations),
        )

    def _described_member(self, group: ConsumerGroup, member: ConsumerMember) -> Member:
        subscription = member.subscription
        # What the member is giving up it has until it says otherwise.
        has = merged(member.current.assigned, member.current.pending_revocation)
        return Member(
            member_id=member.id,
            instance_id=subscription.instance_id,
            rack_id=subscription.rack_id,
            member_epoch=i32(member.current.epoch),
            client_id=subscription.client_id,
            client_host=subscription.client_host,
            subscribed_topic_names=tuple(map(TopicName, subscription.topics)),
            subscribed_topic_regex=subscription.regular_expression,
            assignment=self._assignment(has.items()),
            target_assignment=self._assignment(group.targets.get(member.id, NO_PARTITIONS).items()),
            member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
        )

    def _assignment(self, partitions: Iterable[tuple[UUID, Iterable[int]]]) -> Assignment:
        """Without topics that are gone."""
        by_id = self._metadata.image.topics.by_id
        return Assignment(
            topic_partitions=tuple(
                TopicPartitions(
                    topic_id=topic_id,
                    topic_name=TopicName(topic.name),
                    partitions=tuple(map(i32, sorted(of_topic))),
                )
                for topic_id, of_topic in partitions
                if (topic := by_id.get(topic_id)) is not None
            )
        )


def heartbeat_error(_request: ConsumerGroupHeartbeatRequest, error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return heartbeat_failure(error.code, error.message or error_info(error.code).sentence)


def describe_error(request: ConsumerGroupDescribeRequest, error: KafkaError) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(_not_described(group_id, error.code, error.message) for group_id in request.group_ids),
    )


def _not_described(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=kio_error(error),
        error_message=message,
        group_id=GroupId(group_id),
        group_state="",
        group_epoch=i32(0),
        assignment_epoch=i32(0),
        assignor_name="",
        members=(),
        authorized_operations=i32(OPERATIONS_NOT_ASKED_FOR),
    )
