"""The rebalance of a classic group: from a member that comes, goes or changes to an assignment for every member.

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

from ....protocol.errors import ErrorCode, KafkaError
from ...coordination.ports import Timers
from ..group_table import GroupTable
from .group import ClassicGroup, ClassicState
from .member import ClassicMember
from .records import record_of
from .results import NO_ASSIGNMENT, JoinedMember, JoinResult, SyncResult, join_failure, sync_failure

logger = logging.getLogger(__name__)


class Rebalance:
    def __init__(self, groups: GroupTable, timers: Timers, now_ms: Callable[[], int], initial_delay_ms: int) -> None:
        """`now_ms` is the steady wall clock's; `initial_delay_ms` is `group.initial.rebalance.delay.ms`."""
        self._groups = groups
        self._timers = timers
        self._now_ms = now_ms
        self._initial_delay_ms = initial_delay_ms

    # Members that are there, or are not.

    def expect_heartbeat(self, group: ClassicGroup, member: ClassicMember) -> None:
        """It has been heard: its session begins anew."""
        self.expect(group, member.id, member.session_timeout_ms)

    def expect(self, group: ClassicGroup, member_id: str, within_ms: int) -> None:
        self._timers.schedule(
            _heartbeat_key(group, member_id), within_ms, lambda: self._on_session_over(group, member_id)
        )

    def forget_session(self, group: ClassicGroup, member_id: str) -> None:
        self._timers.cancel(_heartbeat_key(group, member_id))

    def _on_session_over(self, group: ClassicGroup, member_id: str) -> None:
        if self._groups.find(group.id) is not group:
            return
        if member_id in group.pending_join:
            logger.info("member never came back with its id: group=%s member=%s", group.id, member_id)
            group.remove(member_id)
            self.complete_join_if_all_joined(group)
            return
        member = group.members.get(member_id)
        if member is not None and not member.has_satisfied_heartbeat:
            logger.info("member failed: group=%s member=%s", group.id, member_id)
            self.remove_member(group, member)
            self.after_removal(group, f"member {member_id} sent no heartbeat")

    def remove_member(self, group: ClassicGroup, member: ClassicMember) -> None:
        """What follows for the others is `after_removal`'s."""
        # Whoever is still there joins anew.
        group.answer_join(member, join_failure(ErrorCode.UNKNOWN_MEMBER_ID))
        member.answer_sync(sync_failure(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.id)

    def after_removal(self, group: ClassicGroup, reason: str) -> None:
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            self.prepare(group, reason)
        else:
            self.complete_join_if_all_joined(group)

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
            "rebalance begins: group=%s generation=%d members=%d reason=%s",
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
            self._timers.schedule(_join_key(group), group.rebalance_timeout_ms, lambda: self._on_join_over(group))

    def complete_join_if_all_joined(self, group: ClassicGroup) -> None:
        if group.state is not ClassicState.PREPARING_REBALANCE or not group.have_all_joined:
            return
        # The first rebalance waits its time, unless the group is empty.
        if group.previous_state is not ClassicState.EMPTY or not group.members:
            self._complete_join(group)

    def _wait_for_others(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Whoever starts a group seldom starts one consumer: wait for the others, again when one has come (KIP-134)."""

        def on_over() -> None:
            if self._groups.find(group.id) is not group:
                return
            if group.has_new_members and remaining_ms:
                group.has_new_members = False
                self._wait_for_others(group, min(self._initial_delay_ms, remaining_ms), max(remaining_ms - delay_ms, 0))
            else:
                self._complete_join(group)

        self._timers.schedule(_join_key(group), delay_ms, on_over)

    def _on_join_over(self, group: ClassicGroup) -> None:
        if self._groups.find(group.id) is group:
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        self._timers.cancel(_join_key(group))
        for member in list(group.members.values()):
            # A static member may take as long as its session (KIP-345).
            if not member.is_awaiting_join and member.instance_id is None:
                logger.info("member did not join again: group=%s member=%s", group.id, member.id)
                group.remove(member.id)
                self.forget_session(group, member.id)
        if group.members and not group.elect_joined_leader():
            # Only static members are left, and none has joined: until their sessions are over.
            self._timers.schedule(_join_key(group), group.rebalance_timeout_ms, lambda: self._on_join_over(group))
            return
        group.next_generation(self._now_ms())
        logger.info(
            "generation begins: group=%s generation=%d members=%d", group.id, group.generation, len(group.members)
        )
        if not group.members:
            self._write_empty(group)
            return
        for member in list(group.members.values()):
            group.answer_join(member, joined(group, member))
            self.expect_heartbeat(group, member)
            member.is_new = False
            group.pending_sync.add(member.id)
        generation = group.generation
        self._timers.schedule(
            _sync_key(group), group.rebalance_timeout_ms, lambda: self._on_sync_over(group, generation)
        )

    def _write_empty(self, group: ClassicGroup) -> None:
        try:
            self._groups.append([record_of(group)])
        except KafkaError as error:
            # Whoever coordinates the group after this node finds the members of before, who are gone by then.
            logger.warning("empty group not written: group=%s error=%s", group.id, error)

    # Assigning.

    def on_sync(self, group: ClassicGroup, member: ClassicMember) -> None:
        """It has asked for its part, and waits for it or has had it."""
        group.pending_sync.discard(member.id)
        if not group.pending_sync:
            self._timers.cancel(_sync_key(group))

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
            if member.answer_sync(synced(group, member)):
                self.expect_heartbeat(group, member)

    def _refuse_assignments(self, group: ClassicGroup, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = NO_ASSIGNMENT
            if member.answer_sync(sync_failure(error)):
                self.expect_heartbeat(group, member)

    def _forget_syncs(self, group: ClassicGroup) -> None:
        group.pending_sync.clear()
        self._timers.cancel(_sync_key(group))

    def _on_sync_over(self, group: ClassicGroup, generation: int) -> None:
        if self._groups.find(group.id) is not group or group.generation != generation or not group.pending_sync:
            return
        silent = sorted(group.pending_sync)
        for member_id in silent:
            group.remove(member_id)
            self.forget_session(group, member_id)
        self.prepare(group, f"{', '.join(silent)} did not ask for an assignment")


def _heartbeat_key(group: ClassicGroup, member_id: str) -> tuple[str, str, str]:
    return ("heartbeat", group.id, member_id)


def _join_key(group: ClassicGroup) -> tuple[str, str]:
    return ("join", group.id)


def _sync_key(group: ClassicGroup) -> tuple[str, str]:
    return ("sync", group.id)


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
