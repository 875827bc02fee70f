"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups: who may say what, and what is answered at once.

Kafka: `GroupMetadataManager`.

API        version  KIP
JoinGroup  4        394  a member is told its id first, so that one that never comes back leaves no ghost
           5        345  static members
           9        814  a static leader that comes back need not assign again
LeaveGroup 3        345  several members
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.sync_group.v5.request import SyncGroupRequest

from ....protocol.errors import ErrorCode, KafkaError
from ...coordination.effects import Effects, Waiter
from ..group_table import GroupTable
from .group import ClassicGroup, ClassicState
from .member import ClassicMember, MemberProtocol
from .rebalance import Rebalance, joined, synced
from .records import record_of
from .results import UNKNOWN_MEMBER_ID, JoinResult, SyncResult, join_failure, sync_failure

logger = logging.getLogger(__name__)

NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60_000
"""How long a member may wait for its first answer: it cannot send heartbeats, and may be gone."""
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinContext:
    """What a JoinGroup does not say itself."""

    client_id: str
    client_host: str
    requires_member_id: bool
    """KIP-394: a dynamic member is told its id, and joins with it."""
    may_skip_assignment: bool
    """KIP-814: the client knows `skip_assignment`."""


class MembershipRequests:
    def __init__(
        self,
        groups: GroupTable,
        rebalance: Rebalance,
        effects: Effects,
        *,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        max_size: int,
    ) -> None:
        """`now_ms` is the steady wall clock's; `new_id` makes the end of a member's id, never the same twice;
        `max_size` is `group.max.size`."""
        self._groups = groups
        self._rebalance = rebalance
        self._effects = effects
        self._now_ms = now_ms
        self._new_id = new_id
        self._max_size = max_size

    # Joining.

    def join(self, request: JoinGroupRequest, context: JoinContext, waiter: Waiter[JoinResult]) -> None:
        """The reply may come much later. Raises KafkaError when a new group could not be written."""
        member_id = request.member_id
        group = self._groups.find(request.group_id)
        if group is None:
            if member_id != UNKNOWN_MEMBER_ID:
                self._effects.reply(waiter, join_failure(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
                return
            group = self._create(request.group_id)
        if not self._has_room(group, member_id):
            group.remove(member_id)
            self._effects.reply(waiter, join_failure(ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not group.supports_protocols(request.protocol_type, _protocols_of(request)):
            self._effects.reply(waiter, join_failure(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
        elif member_id == UNKNOWN_MEMBER_ID:
            self._join_new(group, request, context, waiter)
        elif member_id in group.pending_join:
            if request.group_instance_id is not None:
                # Such an id is given to dynamic members only.
                self._effects.reply(waiter, join_failure(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
            else:
                self._add(group, member_id, request, context, waiter)
        else:
            self._join_again(group, request, waiter)

    def _create(self, group_id: str) -> ClassicGroup:
        assert self._groups.find_consumer(group_id) is None, "a name is one group"
        group = ClassicGroup(group_id, now_ms=self._now_ms())
        self._groups.put(group)
        try:
            self._groups.append([record_of(group)])
        except KafkaError:
            self._groups.forget(group_id)
            raise
        return group

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        if group.state is ClassicState.EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE:
            # Those who have joined count, so that a group that is too large sheds those who come last.
            return (member is not None and member.is_awaiting_join) or group.awaiting_join_count < self._max_size
        return member is not None or len(group.members) < self._max_size

    def _join_new(
        self, group: ClassicGroup, request: JoinGroupRequest, context: JoinContext, waiter: Waiter[JoinResult]
    ) -> None:
        instance_id = request.group_instance_id
        member_id = f"{context.client_id if instance_id is None else instance_id}-{self._new_id()}"
        if instance_id is not None:
            known_id = group.static_member_id(instance_id)
            if known_id is None:
                self._add(group, member_id, request, context, waiter)
            else:
                self._replace(group, group.members[known_id], member_id, request, context, waiter)
        elif context.requires_member_id:
            group.pending_join.add(member_id)
            self._rebalance.expect(group, member_id, request.session_timeout // _MILLISECOND)
            self._effects.reply(waiter, join_failure(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(group, member_id, request, context, waiter)

    def _add(
        self,
        group: ClassicGroup,
        member_id: str,
        request: JoinGroupRequest,
        context: JoinContext,
        waiter: Waiter[JoinResult],
    ) -> None:
        member = ClassicMember(
            id=member_id,
            instance_id=request.group_instance_id,
            client_id=context.client_id,
            client_host=context.client_host,
            rebalance_timeout_ms=request.rebalance_timeout // _MILLISECOND,
            session_timeout_ms=request.session_timeout // _MILLISECOND,
            protocols=_protocols_of(request),
        )
        member.is_new = True
        if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
            group.has_new_members = True
        group.add(member, request.protocol_type, waiter)
        self._rebalance.expect(group, member_id, NEW_MEMBER_TIMEOUT_MS)
        self._rebalance.prepare_or_complete(group, f"member {member_id} joins: {request.reason or 'no reason given'}")

    def _join_again(self, group: ClassicGroup, request: JoinGroupRequest, waiter: Waiter[JoinResult]) -> None:
        try:
            member = group.check_member(request.member_id, request.group_instance_id)
        except KafkaError as error:
            self._effects.reply(waiter, join_failure(error.code, request.member_id))
            return
        has_changed = member.protocols != _protocols_of(request)
        # A leader that joins again asks for a rebalance: what it assigns may have changed, if not what it knows.
        is_leader_again = group.state is ClassicState.STABLE and group.leader == member.id
        if group.state is ClassicState.PREPARING_REBALANCE or has_changed or is_leader_again:
            self._update(group, member, request, waiter)
            reason = f"member {member.id} joins again: {request.reason or 'no reason given'}"
            self._rebalance.prepare_or_complete(group, reason)
        else:
            # The member does not know the generation.
            self._effects.reply(waiter, joined(group, member))

    def _update(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        request: JoinGroupRequest,
        waiter: Waiter[JoinResult] | None,
    ) -> None:
        # A client has one JoinGroup under way: it does not wait for the earlier one any more.
        self._rebalance.answer_join(group, member, join_failure(ErrorCode.REBALANCE_IN_PROGRESS, member.id))
        group.update(
            member,
            _protocols_of(request),
            rebalance_timeout_ms=request.rebalance_timeout // _MILLISECOND,
            session_timeout_ms=request.session_timeout // _MILLISECOND,
            waiter=waiter,
        )

    def _replace(
        self,
        group: ClassicGroup,
        old: ClassicMember,
        new_id: str,
        request: JoinGroupRequest,
        context: JoinContext,
        waiter: Waiter[JoinResult],
    ) -> None:
        """A static member was started anew, and takes its place again with a new id."""
        logger.info("Static member rejoins with a new member id: group=%s old=%s new=%s", group.id, old.id, new_id)
        old_leader = group.leader
        self._rebalance.answer_join(group, old, join_failure(ErrorCode.FENCED_INSTANCE_ID, old.id))
        self._rebalance.answer_sync(old, sync_failure(ErrorCode.FENCED_INSTANCE_ID))
        new = group.replace_static(old, new_id)
        self._rebalance.forget_session(group, old.id)
        self._rebalance.expect_heartbeat(group, new)
        self._update(group, new, request, waiter)
        if group.state is ClassicState.STABLE and group.select_protocol() == group.protocol_name:
            self._resume(group, old, new, old_leader, context, waiter)
        elif group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            # A leader that is assigning knows the old id.
            self._rebalance.prepare(group, f"static member {new_id} was started anew")
        else:
            self._rebalance.prepare_or_complete(group, f"static member {new_id} was started anew")

    def _resume(
        self,
        group: ClassicGroup,
        old: ClassicMember,
        new: ClassicMember,
        old_leader: str | None,
        context: JoinContext,
        waiter: Waiter[JoinResult],
    ) -> None:
        """It gets what it had, without a rebalance."""
        try:
            self._groups.append([record_of(group)])
        except KafkaError as error:
            logger.warning("Failed to persist metadata: group=%s member=%s error=%s", group.id, new.id, error)
            group.update(
                new,
                old.protocols,
                rebalance_timeout_ms=old.rebalance_timeout_ms,
                session_timeout_ms=old.session_timeout_ms,
                waiter=None,
            )
            self._rebalance.forget_session(group, new.id)
            self._rebalance.expect_heartbeat(group, group.replace_static(new, old.id))
            self._effects.reply(waiter, join_failure(error.code))
            return
        # As a coordinator will that finds the record.
        group.refresh_subscribed_topics()
        if context.may_skip_assignment:
            self._rebalance.answer_join(group, new, joined(group, new, skip_assignment=group.leader == new.id))
        else:
            # The response names another leader, so that this member does not assign.
            self._rebalance.answer_join(group, new, joined(group, new, leader=old_leader))

    # What members say of themselves.

    def sync(self, request: SyncGroupRequest, waiter: Waiter[SyncResult]) -> None:
        """The reply may come later. Raises KafkaError."""
        group = self._groups.get(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        if group.state is ClassicState.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol_name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is ClassicState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._rebalance.on_sync(group, member)
        if group.state is ClassicState.STABLE:
            self._effects.reply(waiter, synced(group, member))
            return
        # As for a join that is asked again.
        self._rebalance.answer_sync(member, sync_failure(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_waiter = waiter
        if group.leader == member.id:
            self._rebalance.assign(group, {part.member_id: part.assignment for part in request.assignments})

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Returns REBALANCE_IN_PROGRESS or NONE. Raises KafkaError."""
        group = self._groups.get(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        self._rebalance.expect_heartbeat(group, member)
        is_rebalancing = group.state is ClassicState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE

    def leave(self, request: LeaveGroupRequest) -> list[ErrorCode]:
        """Returns an error for each of the request's members, in their order."""
        group = self._groups.find(request.group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID for _ in request.members]
        errors = [self._leave_one(group, member) for member in request.members]
        left = [
            member.member_id or str(member.group_instance_id)
            for member, error in zip(request.members, errors, strict=True)
            if not error
        ]
        if left:
            self._rebalance.after_removal(group, f"{', '.join(left)} left")
        return errors

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if member_id in group.pending_join:
            group.remove(member_id)
            self._rebalance.forget_session(group, member_id)
            return ErrorCode.NONE
        if member_id == UNKNOWN_MEMBER_ID:
            # An administrator removes a static member (KIP-345).
            member_id = (instance_id is not None and group.static_member_id(instance_id)) or UNKNOWN_MEMBER_ID
        try:
            member = group.check_member(member_id, instance_id)
        except KafkaError as error:
            return error.code
        logger.info("Member has left group: group=%s member=%s reason=%s", group.id, member.id, identity.reason)
        self._rebalance.forget_session(group, member.id)
        self._rebalance.remove_member(group, member)
        return ErrorCode.NONE


def _protocols_of(request: JoinGroupRequest) -> tuple[MemberProtocol, ...]:
    return tuple(MemberProtocol(protocol.name, protocol.metadata) for protocol in request.protocols)


def _differ(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known
