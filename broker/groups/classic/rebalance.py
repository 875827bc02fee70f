"""The rebalance of a classic group: from a member that comes, goes or changes to an assignment for every member.

Kafka: `GroupMetadataManager`.

what happens                       in the state         follows
a member joins, leaves, fails      Empty                PreparingRebalance, and a wait for others who start now
                                   Completing, Stable   PreparingRebalance; waiting SyncGroups are answered
all members have joined again,     PreparingRebalance   those who have not are removed; CompletingRebalance: every
or the rebalance timeout is over                        member receives the generation, the leader the members
the leader has assigned            Completing           it is written; Stable: every member receives its part
a member did not request its       Completing, Stable   it is removed, and PreparingRebalance
part within the rebalance timeout
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from ....protocol.errors import ErrorCode, KafkaError
from ...coordination.effects import Effects
from ..group_table import GroupTable
from .group import ClassicGroup, ClassicState, InitialDelay
from .member import ClassicMember
from .records import record_of
from .results import NO_ASSIGNMENT, JoinedMember, JoinResult, SyncResult, join_failure, sync_failure

logger = logging.getLogger(__name__)


# Timers of one incarnation of a group: a later group of the same name does not receive them. Named tuples are equal to
# any tuple of the same values, so `kind` keeps timers apart.


class MemberSession(NamedTuple):
    """Kafka: `DelayedHeartbeat`. The member, or one that only knows its id, sent nothing within its session."""

    group_id: str
    incarnation: int
    member_id: str
    kind: Literal["session"] = "session"


class JoinDeadline(NamedTuple):
    """Kafka: `DelayedJoin`, `InitialDelayedJoin`. A rebalance waits no longer for members to join."""

    group_id: str
    incarnation: int
    kind: Literal["join"] = "join"


class SyncDeadline(NamedTuple):
    """Kafka: `DelayedSync`. Every member of the generation must have sent its SyncGroup by then."""

    group_id: str
    incarnation: int
    generation: int
    kind: Literal["sync"] = "sync"


GroupTimer: TypeAlias = MemberSession | JoinDeadline | SyncDeadline


class Rebalance:
    def __init__(self, groups: GroupTable, effects: Effects, now_ms: Callable[[], int], initial_delay_ms: int) -> None:
        """`now_ms` is the steady wall clock's; `initial_delay_ms` is `group.initial.rebalance.delay.ms`."""
        self._groups = groups
        self._effects = effects
        self._now_ms = now_ms
        self._initial_delay_ms = initial_delay_ms

    # Members that are there, or are not.

    def expect_heartbeat(self, group: ClassicGroup, member: ClassicMember) -> None:
        """It has been heard: its session begins anew."""
        self.expect(group, member.id, member.session_timeout_ms)

    def expect(self, group: ClassicGroup, member_id: str, within_ms: int) -> None:
        self._effects.schedule_timer(MemberSession(group.id, group.incarnation, member_id), within_ms)

    def forget_session(self, group: ClassicGroup, member_id: str) -> None:
        self._effects.cancel_timer(MemberSession(group.id, group.incarnation, member_id))

    def on_timer(self, timer: GroupTimer) -> None:
        group = self._groups.find(timer.group_id)
        if group is None or group.incarnation != timer.incarnation:
            return
        if isinstance(timer, MemberSession):
            self._on_session_over(group, timer.member_id)
        elif isinstance(timer, JoinDeadline):
            self._on_join_over(group)
        else:
            self._on_sync_over(group, timer.generation)

    def _on_session_over(self, group: ClassicGroup, member_id: str) -> None:
        if member_id in group.pending_join:
            logger.info("Pending member removed after session timeout: group=%s member=%s", group.id, member_id)
            group.remove(member_id)
            self.complete_join_if_all_joined(group)
            return
        member = group.members.get(member_id)
        if member is not None and not member.has_satisfied_heartbeat:
            logger.info("Member has failed, removing it from the group: group=%s member=%s", group.id, member_id)
            self.remove_member(group, member)
            self.after_removal(group, f"member {member_id} sent no heartbeat")

    def remove_member(self, group: ClassicGroup, member: ClassicMember) -> None:
        """What follows for the others is `after_removal`'s."""
        # A member that is still alive joins again.
        self.answer_join(group, member, join_failure(ErrorCode.UNKNOWN_MEMBER_ID))
        self.answer_sync(member, sync_failure(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.id)

    def after_removal(self, group: ClassicGroup, reason: str) -> None:
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            self.prepare(group, reason)
        else:
            self.complete_join_if_all_joined(group)

    # Requests that wait.

    def answer_join(self, group: ClassicGroup, member: ClassicMember, result: JoinResult) -> None:
        """No error if it does not wait."""
        waiter = group.take_join(member)
        if waiter is not None:
            self._effects.reply(waiter, result)

    def answer_sync(self, member: ClassicMember, result: SyncResult) -> bool:
        """Whether it waited."""
        waiter = member.take_sync()
        if waiter is None:
            return False
        self._effects.reply(waiter, result)
        return True

    # Joining.

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> None:
        """After a member has joined: a rebalance begins, or the one under way may go on."""
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.complete_join_if_all_joined(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """The group must be one that can rebalance."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self._refuse_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._forget_syncs(group)
        is_initial = group.state is ClassicState.EMPTY
        group.transition(ClassicState.PREPARING_REBALANCE, self._now_ms())
        logger.info(
            "Preparing to rebalance group: group=%s generation=%d members=%d reason=%s",
            group.id,
            group.generation,
            len(group.members),
            reason,
        )
        if is_initial:
            group.has_new_members = False
            remaining_ms = max(group.rebalance_timeout_ms - self._initial_delay_ms, 0)
            self._wait_for_others(group, self._initial_delay_ms, remaining_ms)
        elif group.have_all_joined:
            self._complete_join(group)
        else:
            self._schedule_join_deadline(group, group.rebalance_timeout_ms)

    def complete_join_if_all_joined(self, group: ClassicGroup) -> None:
        if group.state is not ClassicState.PREPARING_REBALANCE or not group.have_all_joined:
            return
        # The first rebalance waits its time, unless the group is empty.
        if group.previous_state is not ClassicState.EMPTY or not group.members:
            self._complete_join(group)

    def _wait_for_others(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """A group's consumers are mostly started together: wait for the others, again when one has come (KIP-134)."""
        group.initial_delay = InitialDelay(delay_ms, remaining_ms)
        self._schedule_join_deadline(group, delay_ms)

    def _schedule_join_deadline(self, group: ClassicGroup, delay_ms: int) -> None:
        self._effects.schedule_timer(JoinDeadline(group.id, group.incarnation), delay_ms)

    def _on_join_over(self, group: ClassicGroup) -> None:
        initial = group.initial_delay
        if initial is not None and initial.remaining_ms and group.has_new_members:
            group.has_new_members = False
            delay_ms = min(self._initial_delay_ms, initial.remaining_ms)
            self._wait_for_others(group, delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
        else:
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        group.initial_delay = None
        self._effects.cancel_timer(JoinDeadline(group.id, group.incarnation))
        for member in list(group.members.values()):
            # A static member may take as long as its session (KIP-345).
            if not member.is_awaiting_join and member.instance_id is None:
                logger.info("Group removed dynamic member that hasn't joined: group=%s member=%s", group.id, member.id)
                group.remove(member.id)
                self.forget_session(group, member.id)
        if group.members and not group.elect_joined_leader():
            # Only static members are left, and none has joined: until their sessions are over.
            self._schedule_join_deadline(group, group.rebalance_timeout_ms)
            return
        group.next_generation(self._now_ms())
        logger.info(
            "Stabilized group: group=%s generation=%d members=%d", group.id, group.generation, len(group.members)
        )
        if not group.members:
            self._write_empty(group)
            return
        for member in list(group.members.values()):
            self.answer_join(group, member, joined(group, member))
            self.expect_heartbeat(group, member)
            member.is_new = False
            group.pending_sync.add(member.id)
        deadline = SyncDeadline(group.id, group.incarnation, group.generation)
        self._effects.schedule_timer(deadline, group.rebalance_timeout_ms)

    def _write_empty(self, group: ClassicGroup) -> None:
        try:
            self._groups.append([record_of(group)])
        except KafkaError as error:
            # The next coordinator of the group loads the members of before, who are gone by then.
            logger.warning("Failed to write empty metadata for group: group=%s error=%s", group.id, error)

    # Assigning.

    def on_sync(self, group: ClassicGroup, member: ClassicMember) -> None:
        """It has asked for its part, and waits for it or has had it."""
        group.pending_sync.discard(member.id)
        if not group.pending_sync:
            self._cancel_sync_deadline(group)

    def assign(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """What the leader of a group in CompletingRebalance says; members that are not named get nothing."""
        parts = {member_id: assignments.get(member_id, NO_ASSIGNMENT) for member_id in group.members}
        try:
            self._groups.append([record_of(group, parts)])
        except KafkaError as error:
            self._refuse_assignments(group, error.code)
            self.prepare(group, f"the assignment was not written: {error.code.name}")
            return
        group.transition(ClassicState.STABLE, self._now_ms())
        for member in group.members.values():
            member.assignment = parts[member.id]
            if self.answer_sync(member, synced(group, member)):
                self.expect_heartbeat(group, member)

    def _refuse_assignments(self, group: ClassicGroup, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = NO_ASSIGNMENT
            if self.answer_sync(member, sync_failure(error)):
                self.expect_heartbeat(group, member)

    def _forget_syncs(self, group: ClassicGroup) -> None:
        group.pending_sync.clear()
        self._cancel_sync_deadline(group)

    def _cancel_sync_deadline(self, group: ClassicGroup) -> None:
        self._effects.cancel_timer(SyncDeadline(group.id, group.incarnation, group.generation))

    def _on_sync_over(self, group: ClassicGroup, generation: int) -> None:
        if group.generation != generation or not group.pending_sync:
            return
        silent = sorted(group.pending_sync)
        for member_id in silent:
            group.remove(member_id)
            self.forget_session(group, member_id)
        self.prepare(group, f"{', '.join(silent)} did not ask for an assignment")


def joined(
    group: ClassicGroup, member: ClassicMember, *, leader: str | None = None, skip_assignment: bool = False
) -> JoinResult:
    """Of a generation; only the leader's has the members and their metadata."""
    is_leader = group.leader == member.id
    protocol_name = group.protocol_name
    return JoinResult(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=protocol_name,
        leader=leader if leader is not None else group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.id,
        members=tuple(
            JoinedMember(one.id, one.instance_id, one.metadata_of(protocol_name)) for one in group.members.values()
        )
        if is_leader and leader is None and protocol_name is not None
        else (),
    )


def synced(group: ClassicGroup, member: ClassicMember) -> SyncResult:
    return SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment)
