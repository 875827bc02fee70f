"""Groups as their coordinators describe them, those of both protocols alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import ConsumerGroupDescribeResponse
from kio.schema.consumer_group_describe.v1.response import DescribedGroup as ConsumerDescription
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import DescribedGroup as ClassicDescription
from kio.schema.describe_groups.v6.response import DescribeGroupsResponse
from kio.schema.types import GroupId
from msgspec import Struct

from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ....quorum.metadata.image import MetadataImage
from ...coordination.key_partitions import partition_of_key
from ...coordinators.group_coordinator import OFFSETS_TOPIC
from ...groups.classic.embedded_protocol import CONSUMER_PROTOCOL_TYPE, read_assignment
from ..operation import Call
from ..rules.kafka_answers import check
from .lookups import NO_LEADER

CLASSIC: Final = "CLASSIC"
CONSUMER: Final = "CONSUMER"
GROUPS_ASKED_MAX: Final = 50
"""Of one request: their members and what these say are answered in one turn."""
_CLASSIC_MEMBER: Final = 0
"""In a consumer group, a member of the classic protocol."""
_WORD_START: Final = re.compile(r"(?<!^)(?=[A-Z])")


class GroupMember(Struct, frozen=True, kw_only=True):
    """`partitions` are those assigned to it, by topic and index."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]


class GroupDescription(Struct, frozen=True, kw_only=True):
    """`state` and `type` are Confluent's names; `is_mixed` has members of both protocols."""

    id: str
    coordinator_id: int
    type: str
    state: str
    assignor: str
    is_simple: bool
    is_mixed: bool
    members: tuple[GroupMember, ...]


def coordinator_of(image: MetadataImage, group_id: str) -> int:
    """Raises KafkaError: there are no groups before their topic is there, and no coordinator without a leader."""
    topic = image.topics.by_name.get(OFFSETS_TOPIC)
    if topic is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    index = partition_of_key(group_id, len(topic.partitions))
    leader = topic.partitions[index].leader
    if leader == NO_LEADER:
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"Group {group_id} has no coordinator: partition {OFFSETS_TOPIC}-{index} has no leader.",
        )
    return leader


async def describe(call: Call, group_id: str) -> GroupDescription:
    """Raises KafkaError, GROUP_ID_NOT_FOUND for a group that does not exist."""
    coordinator_id = coordinator_of(call.node.image, group_id)
    (found,) = await describe_some(call, coordinator_id, consumer_ids=[group_id], classic_ids=[])
    if isinstance(found, KafkaError) and found.code is ErrorCode.GROUP_ID_NOT_FOUND:
        (found,) = await describe_some(call, coordinator_id, consumer_ids=[], classic_ids=[group_id])
    if isinstance(found, KafkaError):
        raise found
    return found


async def describe_some(
    call: Call, coordinator_id: int, *, consumer_ids: Sequence[str], classic_ids: Sequence[str]
) -> list[GroupDescription | KafkaError]:
    """First the groups of the consumer protocol, then the classic ones. Raises KafkaError where there is no answer."""
    found: list[GroupDescription | KafkaError] = []
    for start in range(0, len(consumer_ids), GROUPS_ASKED_MAX):
        some = consumer_ids[start : start + GROUPS_ASKED_MAX]
        request = ConsumerGroupDescribeRequest(group_ids=tuple(map(GroupId, some)), include_authorized_operations=False)
        answer = await call.node.ask_broker(coordinator_id, request, ConsumerGroupDescribeResponse, call.context)
        found += [_of_consumer(coordinator_id, one) for one in answer.groups]
    for start in range(0, len(classic_ids), GROUPS_ASKED_MAX):
        some = classic_ids[start : start + GROUPS_ASKED_MAX]
        classic_request = DescribeGroupsRequest(groups=tuple(map(GroupId, some)), include_authorized_operations=False)
        classic = await call.node.ask_broker(coordinator_id, classic_request, DescribeGroupsResponse, call.context)
        found += [_of_classic(coordinator_id, one) for one in classic.groups]
    return found


def state_name(state: str) -> str:
    """`PreparingRebalance` as Confluent has it: `PREPARING_REBALANCE`."""
    return _WORD_START.sub("_", state).upper()


def _of_consumer(coordinator_id: int, group: ConsumerDescription) -> GroupDescription | KafkaError:
    try:
        check(group.error_code, group.error_message)
    except KafkaError as error:
        return error
    return GroupDescription(
        id=group.group_id,
        coordinator_id=coordinator_id,
        type=CONSUMER,
        state=state_name(group.group_state),
        assignor=group.assignor_name,
        is_simple=False,
        is_mixed=any(member.member_type == _CLASSIC_MEMBER for member in group.members),
        members=tuple(
            GroupMember(
                id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.client_host,
                partitions=tuple(
                    sorted(
                        (str(topic.topic_name), int(index))
                        for topic in member.assignment.topic_partitions
                        for index in topic.partitions
                    )
                ),
            )
            for member in group.members
        ),
    )


def _of_classic(coordinator_id: int, group: ClassicDescription) -> GroupDescription | KafkaError:
    try:
        check(group.error_code, group.error_message)
    except KafkaError as error:
        return error
    is_of_consumers = group.protocol_type == CONSUMER_PROTOCOL_TYPE
    return GroupDescription(
        id=group.group_id,
        coordinator_id=coordinator_id,
        type=CLASSIC,
        state=state_name(group.group_state),
        assignor=group.protocol_data,
        is_simple=not group.protocol_type,
        is_mixed=False,
        members=tuple(
            GroupMember(
                id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                host=member.client_host,
                partitions=_assigned(member.member_assignment) if is_of_consumers else (),
            )
            for member in group.members
        ),
    )


def _assigned(assignment: bytes) -> tuple[tuple[str, int], ...]:
    try:
        partitions = read_assignment(assignment).partitions
    except CorruptData:
        # It is the members' own, and only shown here.
        return ()
    return tuple(sorted((topic, index) for topic, indexes in partitions.items() for index in indexes))
