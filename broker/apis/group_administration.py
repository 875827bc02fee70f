"""ListGroups 0 to 5, DescribeGroups 0 to 6 and DeleteGroups 0 to 2: administration of groups.

ListGroups 4 adds states (KIP-518), 5 types (KIP-848); DescribeGroups 6 returns GROUP_ID_NOT_FOUND for unknown groups
(KIP-1043). ListGroups lists groups that this node coordinates and that the client may describe: all of them if it may
describe the cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeletableGroupResult, DeleteGroupsResponse
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListedGroup, ListGroupsResponse
from kio.schema.types import GroupId
from kio.static.primitive import i32

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ..cluster.rules.cluster_view import OPERATIONS_NOT_ASKED_FOR
from ..coordinators.group_coordinator import GroupCoordinator, GroupPartition
from ..groups.classic.embedded_protocol import CONSUMER_PROTOCOL_TYPE
from ..groups.classic.group import ClassicGroup, ClassicState
from ..groups.classic.member import ClassicMember
from ..network.handlers import Handlers
from ..network.request import Request, RequestContext
from .listing import list_partitions
from .permissions import denied_names, require
from .response_collector import ResponseCollector

CLASSIC_TYPE: Final = "classic"
CONSUMER_TYPE: Final = "consumer"
DEAD: Final = "Dead"
TELLS_ABSENCE_SINCE: Final = 6


def register(handlers: Handlers, groups: GroupCoordinator) -> None:
    administration = GroupAdministration(groups)
    handlers.add_replying(ApiKey.LIST_GROUPS, administration.list_all, answer_error=list_error)
    handlers.add_replying(ApiKey.DESCRIBE_GROUPS, administration.describe, answer_error=describe_error)
    handlers.add_replying(ApiKey.DELETE_GROUPS, administration.delete, answer_error=delete_error)


class GroupAdministration:
    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def list_all(
        self, message: ListGroupsRequest, request: Request, reply: Callable[[ListGroupsResponse], None]
    ) -> None:
        """Omits the groups of partitions that this node does not coordinate any more, or cannot."""
        states = {state.strip().lower() for state in message.states_filter}
        types = {one.strip().lower() for one in message.types_filter}

        context = request.context
        sees_all = context.may_in_cluster(ApiKey.LIST_GROUPS, AclOperation.DESCRIBE, is_logged=False)

        def respond(error: ErrorCode, groups: list[ListedGroup]) -> None:
            reply(_listed(error, groups if sees_all else _visible(context, groups)))

        def groups_of(partition: GroupPartition) -> list[ListedGroup]:
            return [
                group
                for group in _groups_of(partition)
                if (not states or group.group_state.lower() in states) and (not types or group.group_type in types)
            ]

        list_partitions(self._groups.coordinators, groups_of, respond)

    def describe(
        self, message: DescribeGroupsRequest, request: Request, reply: Callable[[DescribeGroupsResponse], None]
    ) -> None:
        context = request.context
        tells_absence = request.api_version >= TELLS_ABSENCE_SINCE
        answers: ResponseCollector[DescribedGroup] = ResponseCollector(
            len(message.groups),
            lambda described: reply(DescribeGroupsResponse(throttle_time=NO_THROTTLE, groups=described)),
        )
        for number, group_id in enumerate(message.groups):

            def of_error(error: ErrorCode, group_id: str = group_id) -> DescribedGroup:
                return _not_described(group_id, error)

            place = answers.slot(number)
            try:
                require(context, ApiKey.DESCRIBE_GROUPS, AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
                partition = self._groups.coordinators.get(group_id)
                group = partition.shard.groups.find(group_id)
            except KafkaError as error:
                place(of_error(error.code))
                continue
            operations = OPERATIONS_NOT_ASKED_FOR
            if message.include_authorized_operations:
                operations = context.operations_on(ApiKey.DESCRIBE_GROUPS, ResourceType.GROUP, group_id)
            if group is not None:
                described = _described(group, operations)
            elif tells_absence:
                is_consumer_group = partition.shard.groups.find_consumer(group_id) is not None
                sentence = f"Group {group_id} {'is not a classic group' if is_consumer_group else 'not found'}."
                described = _not_described(group_id, ErrorCode.GROUP_ID_NOT_FOUND, sentence, DEAD)
            else:
                described = replace(
                    _not_described(group_id, ErrorCode.NONE, state=DEAD), authorized_operations=i32(operations)
                )
            partition.reply_when_committed(place, of_error)(described)

    def delete(
        self, message: DeleteGroupsRequest, request: Request, reply: Callable[[DeleteGroupsResponse], None]
    ) -> None:
        names = list(dict.fromkeys(message.groups_names))
        denied = denied_names(
            request.context, ApiKey.DELETE_GROUPS, AclOperation.DELETE, ResourceType.GROUP, map(str, names)
        )
        answers: ResponseCollector[DeletableGroupResult] = ResponseCollector(
            len(names), lambda results: reply(DeleteGroupsResponse(throttle_time=NO_THROTTLE, results=results))
        )
        by_partition: dict[GroupPartition, list[int]] = defaultdict(list)
        for number, name in enumerate(names):
            try:
                if name in denied:
                    raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
                partition = self._groups.coordinators.get(name)
                _ = partition.shard
                by_partition[partition].append(number)
            except KafkaError as error:
                answers.slot(number)(_deleted(name, error.code))
        for partition, numbers in by_partition.items():
            try:
                with partition.event() as shard:
                    errors = shard.offsets.delete_groups([names[number] for number in numbers])
            except KafkaError as error:
                errors = [error.code] * len(numbers)
            for number, error_code in zip(numbers, errors, strict=True):

                def of_error(error: ErrorCode, name: str = names[number]) -> DeletableGroupResult:
                    return _deleted(name, error)

                partition.reply_when_committed(answers.slot(number), of_error)(_deleted(names[number], error_code))


def _visible(context: RequestContext, groups: list[ListedGroup]) -> list[ListedGroup]:
    hidden = denied_names(
        context,
        ApiKey.LIST_GROUPS,
        AclOperation.DESCRIBE,
        ResourceType.GROUP,
        [str(group.group_id) for group in groups],
        is_logged=False,
    )
    return [group for group in groups if group.group_id not in hidden]


def _groups_of(partition: GroupPartition) -> Iterator[ListedGroup]:
    """Raises KafkaError."""
    groups = partition.shard.groups
    for group in groups:
        yield ListedGroup(
            group_id=GroupId(group.id),
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC_TYPE,
        )
    for consumer_group in groups.consumer_groups:
        yield ListedGroup(
            group_id=GroupId(consumer_group.id),
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            group_state=consumer_group.state.value,
            group_type=CONSUMER_TYPE,
        )


def list_error(_request: ListGroupsRequest, error: KafkaError) -> ListGroupsResponse:
    return _listed(error.code, [])


def _listed(error: ErrorCode, groups: list[ListedGroup]) -> ListGroupsResponse:
    return ListGroupsResponse(
        throttle_time=NO_THROTTLE, error_code=kio_error(error), groups=() if error else tuple(groups)
    )


def _described(group: ClassicGroup, operations: int) -> DescribedGroup:
    is_stable = group.state is ClassicState.STABLE
    protocol = group.protocol_name if is_stable else None
    return DescribedGroup(
        error_code=kio_error(ErrorCode.NONE),
        error_message=None,
        group_id=GroupId(group.id),
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=tuple(_described_member(member, protocol) for member in group.members.values()),
        authorized_operations=i32(operations),
    )


def _described_member(member: ClassicMember, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata_of(protocol),
        member_assignment=member.assignment,
    )


def _not_described(group_id: str, error: ErrorCode, message: str | None = None, state: str = "") -> DescribedGroup:
    return DescribedGroup(
        error_code=kio_error(error),
        error_message=message,
        group_id=GroupId(group_id),
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=(),
        authorized_operations=i32(OPERATIONS_NOT_ASKED_FOR),
    )


def describe_error(request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        throttle_time=NO_THROTTLE, groups=tuple(_not_described(group_id, error.code) for group_id in request.groups)
    )


def delete_error(request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        throttle_time=NO_THROTTLE, results=tuple(_deleted(name, error.code) for name in request.groups_names)
    )


def _deleted(name: str, error: ErrorCode) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=GroupId(name), error_code=kio_error(error))
