"""Heartbeat and LeaveGroup of classic groups: members that are there, leave or fail."""

from __future__ import annotations

import logging

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity

from ....protocol.errors import ErrorCode, KafkaError
from .group import ClassicGroup, ClassicState
from .group_table import ClassicGroupTable
from .join_phase import JoinPhase
from .results import UNKNOWN_MEMBER_ID
from .timers import MemberSession

logger = logging.getLogger(__name__)


class Membership:
    def __init__(self, groups: ClassicGroupTable, join_phase: JoinPhase) -> None:
        self._groups = groups
        self._join_phase = join_phase

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Returns REBALANCE_IN_PROGRESS or NONE. Raises KafkaError."""
        group = self._groups.get(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        group.expect_heartbeat(member)
        is_rebalancing = group.state is ClassicState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE

    def on_session_over(self, session: MemberSession) -> None:
        group = self._groups.find_incarnation(session.group_id, session.incarnation)
        if group is None:
            return
        member = group.members.get(session.member_id)
        if session.member_id in group.pending_join:
            logger.info("member never came back with its id: group=%s member=%s", group.id, session.member_id)
            group.remove(session.member_id)
            self._join_phase.complete_if_all_joined(group)
        elif member is not None and not group.has_waiting_request(member):
            logger.info("member failed: group=%s member=%s", group.id, member.id)
            group.remove(member.id)
            self._join_phase.on_change(group, f"member {member.id} sent no heartbeat")

    def leave(self, request: LeaveGroupRequest) -> list[ErrorCode]:
        """Returns an error for each of the request's members, in their order. LeaveGroup 3 has several (KIP-345)."""
        group = self._groups.find(request.group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID for _ in request.members]
        errors = [_leave_one(group, member) for member in request.members]
        left = [
            member.member_id or str(member.group_instance_id)
            for member, error in zip(request.members, errors, strict=True)
            if not error
        ]
        if left:
            self._join_phase.on_change(group, f"{', '.join(left)} left")
        return errors


def _leave_one(group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id in group.pending_join:
        group.remove(member_id)
        return ErrorCode.NONE
    if member_id == UNKNOWN_MEMBER_ID:
        # An administrator removes a static member (KIP-345).
        member_id = (instance_id is not None and group.static_member_id(instance_id)) or UNKNOWN_MEMBER_ID
    try:
        member = group.check_member(member_id, instance_id)
    except KafkaError as error:
        return error.code
    logger.info("member left: group=%s member=%s reason=%s", group.id, member.id, identity.reason)
    group.remove(member.id)
    return ErrorCode.NONE
