"""JoinGroup of classic groups: from a member that comes, goes or changes to a generation.

Kafka: `GroupMetadataManager`.

what happens                       in the state         follows
a member joins, leaves, fails      Empty                PreparingRebalance, and a wait for others who start now
                                   Completing, Stable   PreparingRebalance; waiting SyncGroups are answered
all members have joined again,     PreparingRebalance   those who have not are removed; CompletingRebalance: every
or the rebalance timeout is over                        member receives the generation, the leader the members

JoinGroup  KIP
4          394  a member is told its id first, so that one that never comes back leaves no ghost
5          345  static members
9          814  a static leader that comes back need not assign again
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from kio.schema.join_group.v9.request import JoinGroupRequest
from msgspec import Struct

from ....protocol.errors import ErrorCode, KafkaError
from ...coordination.effects import Effects, Waiter
from ..group_counters import GroupCounters
from .group import ClassicGroup, ClassicState, InitialDelay
from .group_table import ClassicGroupTable
from .member import ClassicMember, MemberProtocol
from .records import record_of
from .results import UNKNOWN_MEMBER_ID, JoinResult, join_failure
from .timers import JoinDeadline

logger = logging.getLogger(__name__)

NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60_000
"""How long a member may wait for its first answer: it cannot send heartbeats, and may be gone."""
_MILLISECOND: Final = timedelta(milliseconds=1)


class JoinContext(Struct, frozen=True, kw_only=True):
    """What a JoinGroup does not say itself."""

    client_id: str
    client_host: str
    requires_member_id: bool
    """KIP-394: a dynamic member is told its id, and joins with it."""
    may_skip_assignment: bool
    """KIP-814: the client knows `skip_assignment`."""


class JoinPhase:
    def __init__(
        self,
        groups: ClassicGroupTable,
        effects: Effects,
        *,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        max_size: int,
        initial_delay_ms: int,
        counters: GroupCounters,
    ) -> None:
        """`now_ms` is the steady wall clock's; `new_id` makes the end of a member's id, never the same twice;
        `max_size` is `group.max.size`, `initial_delay_ms` is `group.initial.rebalance.delay.ms`."""
        self._groups = groups
        self._effects = effects
        self._now_ms = now_ms
        self._new_id = new_id
        self._max_size = max_size
        self._initial_delay_ms = initial_delay_ms
        self._counters = counters

    # A request: who may join, and as which member.

    def join(self, request: JoinGroupRequest, context: JoinContext, waiter: Waiter[JoinResult]) -> None:
        """The reply may come much later. Raises KafkaError when a new group could not be written."""
        group = self._groups.find(request.group_id)
        if group is None and request.member_id == UNKNOWN_MEMBER_ID:
            group = self._create(request.group_id)
        joining = _described(request, context)
        if group is None:
            self._effects.reply(waiter, join_failure(ErrorCode.UNKNOWN_MEMBER_ID, joining.id))
        elif not self._has_room(group, joining.id):
            group.remove(joining.id)
            self._effects.reply(waiter, join_failure(ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not group.supports_protocols(request.protocol_type, joining.protocols):
            self._effects.reply(waiter, join_failure(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, joining.id))
        elif joining.id == UNKNOWN_MEMBER_ID:
            joining.id = f"{context.client_id if joining.instance_id is None else joining.instance_id}-{self._new_id()}"
            self._join_new(group, joining, request, context, waiter)
        elif joining.id not in group.pending_join:
            self._join_again(group, joining, request, waiter)
        elif joining.instance_id is None:
            self._add(group, joining, request, waiter)
        else:
            # Such an id is given to dynamic members only.
            self._effects.reply(waiter, join_failure(ErrorCode.UNKNOWN_MEMBER_ID, joining.id))

    def _create(self, group_id: str) -> ClassicGroup:
        group = ClassicGroup(group_id, self._effects, now_ms=self._now_ms())
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
        if group.state is ClassicState.PREPARING_REBALANCE:
            # Those who have joined count, so that a group that is too large sheds those who come last.
            return member_id in group.join_waiters or len(group.join_waiters) < self._max_size
        return member_id in group.members or len(group.members) < self._max_size

    def _join_new(
        self,
        group: ClassicGroup,
        joining: ClassicMember,
        request: JoinGroupRequest,
        context: JoinContext,
        waiter: Waiter[JoinResult],
    ) -> None:
        known_id = None if joining.instance_id is None else group.static_member_id(joining.instance_id)
        if known_id is not None:
            self._replace(group, group.members[known_id], joining, context, waiter)
        elif joining.instance_id is None and context.requires_member_id:
            group.pending_join.add(joining.id)
            group.expect(joining.id, joining.session_timeout_ms)
            self._effects.reply(waiter, join_failure(ErrorCode.MEMBER_ID_REQUIRED, joining.id))
        else:
            self._add(group, joining, request, waiter)

    def _add(
        self, group: ClassicGroup, joining: ClassicMember, request: JoinGroupRequest, waiter: Waiter[JoinResult]
    ) -> None:
        joining.is_new = True
        if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
            group.has_new_members = True
        group.add(joining, request.protocol_type)
        group.join_waiters[joining.id] = waiter
        group.expect(joining.id, NEW_MEMBER_TIMEOUT_MS)
        self.on_change(group, f"member {joining.id} joins: {request.reason or 'no reason given'}")

    def _join_again(
        self, group: ClassicGroup, joining: ClassicMember, request: JoinGroupRequest, waiter: Waiter[JoinResult]
    ) -> None:
        try:
            member = group.check_member(joining.id, joining.instance_id)
        except KafkaError as error:
            self._effects.reply(waiter, join_failure(error.code, joining.id))
            return
        has_changed = member.protocols != joining.protocols
        # A leader that joins again asks for a rebalance: what it assigns may have changed, if not what it knows.
        is_leader_again = group.state is ClassicState.STABLE and group.leader == member.id
        if group.state is ClassicState.PREPARING_REBALANCE or has_changed or is_leader_again:
            # A client has one JoinGroup under way: it does not wait for the earlier one any more.
            group.answer_join(member, join_failure(ErrorCode.REBALANCE_IN_PROGRESS, member.id))
            group.update(member, joining)
            group.join_waiters[member.id] = waiter
            self.on_change(group, f"member {member.id} joins again: {request.reason or 'no reason given'}")
        else:
            # The member does not know the generation.
            self._effects.reply(waiter, group.joined(member))

    def _replace(
        self,
        group: ClassicGroup,
        old: ClassicMember,
        joining: ClassicMember,
        context: JoinContext,
        waiter: Waiter[JoinResult],
    ) -> None:
        """A static member was started anew, and takes its place again with a new id."""
        logger.info("Static member rejoins with a new member id: group=%s old=%s new=%s", group.id, old.id, joining.id)
        old_leader = group.leader
        new = group.replace_static(old, joining.id)
        group.update(new, joining)
        group.join_waiters[new.id] = waiter
        if group.state is not ClassicState.STABLE or group.select_protocol() != group.protocol_name:
            # A leader that is assigning knows the old id.
            self.on_change(group, f"static member {new.id} was started anew")
            return
        # It gets what it had, without a rebalance.
        try:
            self._groups.append([record_of(group)])
        except KafkaError as error:
            logger.warning("Failed to persist metadata: group=%s member=%s error=%s", group.id, new.id, error)
            group.answer_join(new, join_failure(error.code))
            group.update(new, old)
            group.replace_static(new, old.id)
            return
        # As a coordinator will that finds the record.
        group.find_subscribed_topics()
        if context.may_skip_assignment:
            group.answer_join(new, group.joined(new, skip_assignment=group.leader == new.id))
        else:
            # The response names another leader, so that this member does not assign.
            group.answer_join(new, group.joined(new, leader=old_leader))

    # A rebalance: until all members have joined again, or had the time to.

    def on_change(self, group: ClassicGroup, reason: str) -> None:
        """Members have come, changed or gone: a rebalance begins, or the one under way may go on."""
        if group.state is ClassicState.PREPARING_REBALANCE:
            self.complete_if_all_joined(group)
        elif group.members or group.state is not ClassicState.EMPTY:
            self.prepare(group, reason)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """The group must not be in PreparingRebalance."""
        is_initial = group.state is ClassicState.EMPTY
        group.begin_rebalance(self._now_ms())
        logger.info(
            "Preparing to rebalance group: group=%s generation=%d members=%d reason=%s",
            group.id,
            group.generation,
            len(group.members),
            reason,
        )
        if is_initial:
            remaining_ms = max(group.rebalance_timeout_ms - self._initial_delay_ms, 0)
            self._wait_for_others(group, self._initial_delay_ms, remaining_ms)
        elif group.have_all_joined:
            self._complete(group)
        else:
            self._set_deadline(group, group.rebalance_timeout_ms)

    def complete_if_all_joined(self, group: ClassicGroup) -> None:
        if group.state is not ClassicState.PREPARING_REBALANCE or not group.have_all_joined:
            return
        # The first rebalance waits its time, unless the group is empty.
        if group.previous_state is not ClassicState.EMPTY or not group.members:
            self._complete(group)

    def on_deadline(self, deadline: JoinDeadline) -> None:
        group = self._groups.find_incarnation(deadline.group_id, deadline.incarnation)
        if group is None:
            return
        initial = group.initial_delay
        if initial is not None and initial.remaining_ms and group.has_new_members:
            delay_ms = min(self._initial_delay_ms, initial.remaining_ms)
            self._wait_for_others(group, delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
        else:
            self._complete(group)

    def _wait_for_others(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """A group's consumers are mostly started together: wait for the others, again when one has come (KIP-134)."""
        group.has_new_members = False
        group.initial_delay = InitialDelay(delay_ms, remaining_ms)
        self._set_deadline(group, delay_ms)

    def _set_deadline(self, group: ClassicGroup, delay_ms: int) -> None:
        self._effects.schedule_timer(JoinDeadline(group.id, group.incarnation), delay_ms)

    # A generation.

    def _complete(self, group: ClassicGroup) -> None:
        group.initial_delay = None
        self._effects.cancel_timer(JoinDeadline(group.id, group.incarnation))
        for member in list(group.members.values()):
            # A static member may take as long as its session (KIP-345).
            if member.id not in group.join_waiters and member.instance_id is None:
                logger.info("Group removed dynamic member that hasn't joined: group=%s member=%s", group.id, member.id)
                group.remove(member.id)
        if group.members and not group.elect_joined_leader():
            # Only static members are left, and none has joined: until their sessions are over.
            self._set_deadline(group, group.rebalance_timeout_ms)
            return
        group.begin_generation(self._now_ms())
        self._counters.classic_rebalances += 1
        logger.info(
            "Stabilized group: group=%s generation=%d members=%d", group.id, group.generation, len(group.members)
        )
        if not group.members:
            self._write_empty(group)

    def _write_empty(self, group: ClassicGroup) -> None:
        try:
            self._groups.append([record_of(group)])
        except KafkaError as error:
            # The next coordinator of the group loads the members of before, who are gone by then.
            logger.warning("Failed to write empty metadata for group: group=%s error=%s", group.id, error)


def _described(request: JoinGroupRequest, context: JoinContext) -> ClassicMember:
    """The member as the request has it, which may have no id yet."""
    return ClassicMember(
        id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.client_id,
        client_host=context.client_host,
        rebalance_timeout_ms=request.rebalance_timeout // _MILLISECOND,
        session_timeout_ms=request.session_timeout // _MILLISECOND,
        protocols=tuple(MemberProtocol(protocol.name, protocol.metadata) for protocol in request.protocols),
    )
