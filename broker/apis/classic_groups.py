"""JoinGroup 0 to 9, SyncGroup 0 to 5, Heartbeat 0 to 4 and LeaveGroup 0 to 5: members of classic groups.

`broker/groups/classic/join_phase.py` and `membership.py` have what the versions brought. A JoinGroup or SyncGroup is
answered when the group has reached that state; later requests on the connection wait meanwhile, as in Apache Kafka.
A client must be allowed to read the group.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse, JoinGroupResponseMember
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.leave_group.v5.response import LeaveGroupResponse, MemberResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.static.primitive import i32

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ..configuration.group_config import GroupConfig
from ..coordinators.coordinator_context import WaitingRequest
from ..coordinators.group_coordinator import GroupCoordinator
from ..groups.classic.join_phase import JoinContext
from ..groups.classic.results import UNKNOWN_MEMBER_ID, JoinResult, SyncResult, join_failure, sync_failure
from ..network.handlers import Handlers
from ..network.request import Request
from .permissions import require

REQUIRES_MEMBER_ID_SINCE: Final = 4
"""JoinGroup: KIP-394."""
SKIPS_ASSIGNMENT_SINCE: Final = 9
"""JoinGroup: KIP-814."""
NAMES_PROTOCOL_SINCE: Final = 5
"""SyncGroup: KIP-559."""
_WHATEVER_THE_GROUP: Final = frozenset({ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_SESSION_TIMEOUT})
"""Errors of a JoinGroup request that do not depend on the group."""
_MILLISECOND: Final = timedelta(milliseconds=1)


def register(handlers: Handlers, groups: GroupCoordinator, config: GroupConfig) -> None:
    classic = GroupMembershipHandlers(groups, config)
    handlers.add_replying(ApiKey.JOIN_GROUP, classic.join, answer_error=join_error)
    handlers.add_replying(ApiKey.SYNC_GROUP, classic.sync, answer_error=sync_error)
    handlers.add_replying(ApiKey.HEARTBEAT, classic.heartbeat, answer_error=heartbeat_error)
    handlers.add_replying(ApiKey.LEAVE_GROUP, classic.leave, answer_error=leave_error)


class GroupMembershipHandlers:
    def __init__(self, groups: GroupCoordinator, config: GroupConfig) -> None:
        self._groups = groups
        self._config = config

    def join(self, message: JoinGroupRequest, request: Request, reply: Callable[[JoinGroupResponse], None]) -> None:
        """Raises KafkaError."""
        if request.context.authorizer is not None:
            _require_read(request, ApiKey.JOIN_GROUP, message.group_id)
        partition = self._groups.get(message.group_id)
        session_timeout_ms = message.session_timeout // _MILLISECOND
        config = self._config
        if not config.group_min_session_timeout_ms <= session_timeout_ms <= config.group_max_session_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        context = JoinContext(
            client_id=request.client_id or "",
            client_host=f"/{request.context.peer_host}",
            requires_member_id=request.api_version >= REQUIRES_MEMBER_ID_SINCE,
            may_skip_assignment=request.api_version >= SKIPS_ASSIGNMENT_SINCE,
        )
        waiter = WaitingRequest(lambda result: reply(_join_response(result)), join_failure)
        with partition.event() as shard:
            shard.join(message, context, waiter)

    def sync(self, message: SyncGroupRequest, request: Request, reply: Callable[[SyncGroupResponse], None]) -> None:
        """Raises KafkaError."""
        if request.api_version >= NAMES_PROTOCOL_SINCE and None in (message.protocol_type, message.protocol_name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.context.authorizer is not None:
            _require_read(request, ApiKey.SYNC_GROUP, message.group_id)
        partition = self._groups.get(message.group_id)
        waiter = WaitingRequest(lambda result: reply(_sync_response(result)), sync_failure)
        with partition.event() as shard:
            shard.sync(message, waiter)

    def heartbeat(
        self, message: HeartbeatRequest, request: Request, reply: Callable[[HeartbeatResponse], None]
    ) -> None:
        """Raises KafkaError."""
        if request.context.authorizer is not None:
            _require_read(request, ApiKey.HEARTBEAT, message.group_id)
        partition = self._groups.get(message.group_id)
        with partition.event() as shard:
            error = shard.heartbeat(message)
        partition.reply_when_committed(reply, _heartbeat_response)(_heartbeat_response(error))

    def leave(self, message: LeaveGroupRequest, request: Request, reply: Callable[[LeaveGroupResponse], None]) -> None:
        """Raises KafkaError."""
        if request.context.authorizer is not None:
            _require_read(request, ApiKey.LEAVE_GROUP, message.group_id)
        partition = self._groups.get(message.group_id)
        with partition.event() as shard:
            errors = shard.leave(message)
        members = tuple(
            MemberResponse(
                # As requested: empty if a static member is named by its instance id alone.
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=kio_error(error),
            )
            for member, error in zip(message.members, errors, strict=True)
        )
        partition.reply_when_committed(reply, _leave_response)(_leave_response(ErrorCode.NONE, members))


def _require_read(request: Request, api_key: ApiKey, group_id: str) -> None:
    """Raises KafkaError."""
    require(request.context, api_key, AclOperation.READ, ResourceType.GROUP, group_id)


def join_error(request: JoinGroupRequest, error: KafkaError) -> JoinGroupResponse:
    """The response has the request's member id if the error does not depend on the group, else an empty one."""
    member_id = request.member_id if error.code in _WHATEVER_THE_GROUP else UNKNOWN_MEMBER_ID
    return _join_response(join_failure(error.code, member_id))


def sync_error(_request: SyncGroupRequest, error: KafkaError) -> SyncGroupResponse:
    """Consumers do not expect COORDINATOR_LOAD_IN_PROGRESS here: those of Java and aiokafka give up. Their rebalance
    was lost with the previous coordinator, so they must join again."""
    is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return _sync_response(sync_failure(ErrorCode.REBALANCE_IN_PROGRESS if is_loading else error.code))


def heartbeat_error(_request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    """Nor here. Member sessions start when the group is loaded."""
    is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return _heartbeat_response(ErrorCode.NONE if is_loading else error.code)


def leave_error(_request: LeaveGroupRequest, error: KafkaError) -> LeaveGroupResponse:
    return _leave_response(error.code)


def _heartbeat_response(error: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error))


def _leave_response(error: ErrorCode, members: tuple[MemberResponse, ...] = ()) -> LeaveGroupResponse:
    return LeaveGroupResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error), members=members)


def _join_response(result: JoinResult) -> JoinGroupResponse:
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(result.error_code),
        generation_id=i32(result.generation_id),
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=tuple(
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.group_instance_id, metadata=member.metadata
            )
            for member in result.members
        ),
    )


def _sync_response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(result.error_code),
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
