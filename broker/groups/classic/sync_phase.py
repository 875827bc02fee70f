"""SyncGroup of classic groups: from the leader's assignment to one for every member.

what happens                       in the state         follows
the leader has assigned            Completing           it is written; Stable: every member receives its part
a member did not request its       Completing, Stable   it is removed, and PreparingRebalance
part within the rebalance timeout
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kio.schema.sync_group.v5.request import SyncGroupRequest

from ....protocol.errors import ErrorCode, KafkaError
from ...coordination.effects import Effects, Waiter
from .group import ClassicGroup, ClassicState
from .group_table import ClassicGroupTable
from .join_phase import JoinPhase
from .member import ClassicMember
from .records import record_of
from .results import NO_ASSIGNMENT, SyncResult, sync_failure
from .timers import SyncDeadline


class SyncPhase:
    def __init__(
        self, groups: ClassicGroupTable, join_phase: JoinPhase, effects: Effects, now_ms: Callable[[], int]
    ) -> None:
        """`now_ms` is the steady wall clock's."""
        self._groups = groups
        self._join_phase = join_phase
        self._effects = effects
        self._now_ms = now_ms

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
        group.on_sync(member)
        if group.state is ClassicState.STABLE:
            self._effects.reply(waiter, synced(group, member))
            return
        # As for a join that is asked again.
        group.answer_sync(member, sync_failure(ErrorCode.REBALANCE_IN_PROGRESS))
        group.sync_waiters[member.id] = waiter
        if group.leader == member.id:
            self._assign(group, {part.member_id: part.assignment for part in request.assignments})

    def _assign(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """What the leader of a group in CompletingRebalance says; members that are not named get nothing."""
        parts = {member_id: assignments.get(member_id, NO_ASSIGNMENT) for member_id in group.members}
        try:
            self._groups.append([record_of(group, parts)])
        except KafkaError as error:
            group.reset_assignments(error.code)
            self._join_phase.prepare(group, f"the assignment was not written: {error.code.name}")
            return
        group.transition(ClassicState.STABLE, self._now_ms())
        for member in group.members.values():
            member.assignment = parts[member.id]
            if group.answer_sync(member, synced(group, member)):
                group.expect_heartbeat(member)

    def on_deadline(self, deadline: SyncDeadline) -> None:
        group = self._groups.find_incarnation(deadline.group_id, deadline.incarnation)
        if group is None or group.generation != deadline.generation or not group.pending_sync:
            return
        silent = sorted(group.pending_sync)
        for member_id in silent:
            group.remove(member_id)
        self._join_phase.prepare(group, f"{', '.join(silent)} did not ask for an assignment")


def synced(group: ClassicGroup, member: ClassicMember) -> SyncResult:
    return SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment)


def _differ(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known
