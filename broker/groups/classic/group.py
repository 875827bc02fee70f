"""A group of the classic protocol (JoinGroup, SyncGroup): its members, its generation, and what may follow on what.

Kafka: `ClassicGroup`.

    state                 entered by                                    left by
    Empty                 creation; the last member is gone             a member joins
    PreparingRebalance    a member joins, leaves, fails or changes      all have joined again, or had the time to
    CompletingRebalance   the members are known, a leader assigns       the assignment is written; another rebalance
    Stable                every member has its assignment               another rebalance

What these states and generations are for: members of one generation agree on the assignment, and requests of
another generation are refused. Only Empty and Stable groups are written down, as records; a group that is found in the
log with members is Stable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple

from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ...coordination.effects import Effects, Waiter
from .embedded_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics_of
from .member import ClassicMember, MemberProtocol
from .results import NO_ASSIGNMENT, JoinedMember, JoinResult, SyncResult, join_failure, sync_failure
from .timers import MemberSession, SyncDeadline

FIRST_GENERATION: Final = 0


class ClassicState(Enum):
    """With Apache Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


class InitialDelay(NamedTuple):
    """`group.initial.rebalance.delay.ms` as far as it goes (KIP-134)."""

    delay_ms: int
    """Until it is over, unless a new member extends it."""
    remaining_ms: int
    """By which it may be extended."""


class ClassicGroup:
    """Its members in the order in which they came, their requests that wait for a response, and their sessions."""

    __slots__ = (
        "_effects",
        "_protocol_counts",
        "_static_members",
        "generation",
        "has_new_members",
        "id",
        "incarnation",
        "initial_delay",
        "join_waiters",
        "leader",
        "members",
        "pending_join",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "subscribed_topics",
        "sync_waiters",
    )

    def __init__(self, group_id: str, effects: Effects, *, now_ms: int | None) -> None:
        """`now_ms` is the wall clock's; None when the time of the last change is unknown."""
        self.id = group_id
        # Given by the table of groups: no other group that had the name has the same.
        self.incarnation = 0
        self._effects = effects
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation = FIRST_GENERATION
        # Not None once the group has had members: what is assigned is "consumer" for consumers.
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        # By the members' ids.
        self.join_waiters: dict[str, Waiter[JoinResult]] = {}
        self.sync_waiters: dict[str, Waiter[SyncResult]] = {}
        # Members that have been told an id, and not come back with it.
        self.pending_join: set[str] = set()
        self.pending_sync: set[str] = set()
        # Of a group of consumers: what all of them together read, where that is known.
        self.subscribed_topics: frozenset[str] | None = None
        # Since the first rebalance began: further members may be starting.
        self.has_new_members = False
        # While the first rebalance waits for further members; None in every other rebalance.
        self.initial_delay: InitialDelay | None = None
        self._static_members: dict[str, str] = {}
        self._protocol_counts: Counter[str] = Counter()

    # What it is.

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def have_all_joined(self) -> bool:
        return len(self.members) == len(self.join_waiters) and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member may take to join again."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def has_waiting_request(self, member: ClassicMember) -> bool:
        """It cannot send heartbeats meanwhile, and need not, unless it is new and may be gone."""
        return not member.is_new and (member.id in self.join_waiters or member.id in self.sync_waiters)

    def static_member_id(self, instance_id: str) -> str | None:
        return self._static_members.get(instance_id)

    def supports_protocols(self, protocol_type: str, protocols: Iterable[MemberProtocol]) -> bool:
        """Whether a member with these protocols may join."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type) and any(True for _ in protocols)
        count = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._protocol_counts[protocol.name] == count for protocol in protocols
        )

    def select_protocol(self) -> str:
        """Of those that all members know the one that most of them like best. There must be members."""
        count = len(self.members)
        candidates = frozenset(name for name, knowing in self._protocol_counts.items() if knowing == count)
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def joined(self, member: ClassicMember, *, leader: str | None = None, skip_assignment: bool = False) -> JoinResult:
        """What a member learns of the generation; only the leader learns the members and their metadata."""
        leads = self.leader == member.id and leader is None
        protocol_name = self.protocol_name
        return JoinResult(
            error_code=ErrorCode.NONE,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=protocol_name,
            leader=leader if leader is not None else self.leader or "",
            skip_assignment=skip_assignment,
            member_id=member.id,
            members=tuple(
                JoinedMember(one.id, one.instance_id, one.metadata_of(protocol_name)) for one in self.members.values()
            )
            if leads and protocol_name is not None
            else (),
        )

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Raises KafkaError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when another has taken the instance's place."""
        if instance_id is not None:
            known = self._static_members.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool = False
    ) -> ClassicMember | None:
        """Validates an OffsetCommit; returns the member, None for a commit from outside the group. Raises KafkaError.

        Without a generation the commit is an administrator's, or of a consumer that assigns its partitions itself,
        which is allowed while the group is empty. A transaction's commit need not name its member (KIP-447).
        """
        if generation < 0 and self.state is ClassicState.EMPTY:
            return None
        member = None
        if generation >= 0 or member_id or instance_id is not None:
            member = self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            # Its generation is current, so the member knows of the rebalance and must finish that first.
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return member

    def is_subscribed(self, topic: str) -> bool:
        """Whether its members read the topic, as far as one can tell."""
        if self.subscribed_topics is None:
            return self.is_of_consumers
        return topic in self.subscribed_topics

    # What changes it.

    def transition(self, state: ClassicState, now_ms: int) -> None:
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def resume(self, generation: int, now_ms: int) -> None:
        """A group of consumers that has members goes on as a classic one; what each has is its coordinator's to say."""
        self.generation = generation
        self.protocol_name = self.select_protocol()
        self.transition(ClassicState.STABLE, now_ms)
        self.find_subscribed_topics()

    def find_subscribed_topics(self) -> None:
        """Of the generation, or of one that goes on with a member that reads something else."""
        self.subscribed_topics = self._compute_subscribed_topics()

    def begin_rebalance(self, now_ms: int) -> None:
        """Its members are to join again; SyncGroups that wait are answered so."""
        if self.state is ClassicState.COMPLETING_REBALANCE:
            self.reset_assignments(ErrorCode.REBALANCE_IN_PROGRESS)
        self.pending_sync.clear()
        self._cancel_sync_deadline()
        self.transition(ClassicState.PREPARING_REBALANCE, now_ms)

    def begin_generation(self, now_ms: int) -> None:
        """All members have joined: each receives the generation, and is to send its SyncGroup."""
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.transition(ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY, now_ms)
        self.find_subscribed_topics()
        for member in self.members.values():
            self.answer_join(member, self.joined(member))
            self.expect_heartbeat(member)
            member.is_new = False
            self.pending_sync.add(member.id)
        if self.members:
            deadline = SyncDeadline(self.id, self.incarnation, self.generation)
            self._effects.schedule_timer(deadline, self.rebalance_timeout_ms)

    def on_sync(self, member: ClassicMember) -> None:
        """It has asked for its part, and waits for it or has had it."""
        self.pending_sync.discard(member.id)
        if not self.pending_sync:
            self._cancel_sync_deadline()

    def _cancel_sync_deadline(self) -> None:
        self._effects.cancel_timer(SyncDeadline(self.id, self.incarnation, self.generation))

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self._static_members, "an instance is one member"
            self._static_members[member.instance_id] = member.id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._count_protocols(member, 1)
        self.pending_join.discard(member.id)

    def remove(self, member_id: str) -> None:
        """No error if it is only pending, or unknown. One that is still alive joins again."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.answer_join(member, join_failure(ErrorCode.UNKNOWN_MEMBER_ID))
            self.answer_sync(member, sync_failure(ErrorCode.UNKNOWN_MEMBER_ID))
            self._count_protocols(member, -1)
            if member.instance_id is not None:
                self._static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)
        self._effects.cancel_timer(MemberSession(self.id, self.incarnation, member_id))

    def update(self, member: ClassicMember, joining: ClassicMember) -> None:
        """It has joined again, with the protocols and timeouts of `joining`."""
        self._count_protocols(member, -1)
        member.protocols = joining.protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = joining.rebalance_timeout_ms
        member.session_timeout_ms = joining.session_timeout_ms

    def replace_static(self, old: ClassicMember, new_id: str) -> ClassicMember:
        """The process of a static member was started anew: its successor gets all that it had (KIP-345)."""
        assert old.instance_id is not None, "only static members are replaced"
        self.answer_join(old, join_failure(ErrorCode.FENCED_INSTANCE_ID, old.id))
        self.answer_sync(old, sync_failure(ErrorCode.FENCED_INSTANCE_ID))
        self._effects.cancel_timer(MemberSession(self.id, self.incarnation, old.id))
        new = replace(old, id=new_id, is_new=False)
        self.members = {new.id if key == old.id else key: value for key, value in self.members.items()}
        self.members[new.id] = new
        if self.leader == old.id:
            self.leader = new.id
        if old.id in self.pending_sync:
            self.pending_sync.discard(old.id)
            self.pending_sync.add(new.id)
        self._static_members[old.instance_id] = new.id
        self.expect_heartbeat(new)
        return new

    def elect_joined_leader(self) -> bool:
        """The leader keeps its place if it has joined; otherwise another member that has. False without one."""
        if self.leader is None:
            return False
        if self.leader not in self.join_waiters:
            joined_id = next((member_id for member_id in self.members if member_id in self.join_waiters), None)
            if joined_id is None:
                return False
            self.leader = joined_id
        return True

    def reset_assignments(self, error: ErrorCode) -> None:
        """No member has one; SyncGroups that wait are answered `error`."""
        for member in self.members.values():
            member.assignment = NO_ASSIGNMENT
            if self.answer_sync(member, sync_failure(error)):
                self.expect_heartbeat(member)

    # What it owes its members, and expects of them.

    def answer_join(self, member: ClassicMember, result: JoinResult) -> None:
        """No error if it does not wait."""
        waiter = self.join_waiters.pop(member.id, None)
        if waiter is not None:
            self._effects.reply(waiter, result)

    def answer_sync(self, member: ClassicMember, result: SyncResult) -> bool:
        """Whether it waited."""
        waiter = self.sync_waiters.pop(member.id, None)
        if waiter is None:
            return False
        self._effects.reply(waiter, result)
        return True

    def expect_heartbeat(self, member: ClassicMember) -> None:
        """It has been heard: its session begins anew."""
        self.expect(member.id, member.session_timeout_ms)

    def expect(self, member_id: str, within_ms: int) -> None:
        """The session of a member, or of one that has been told an id, is over then."""
        self._effects.schedule_timer(MemberSession(self.id, self.incarnation, member_id), within_ms)

    def _count_protocols(self, member: ClassicMember, step: int) -> None:
        # A member that names one twice is one member that knows it.
        for name in {protocol.name for protocol in member.protocols}:
            self._protocol_counts[name] += step

    def _compute_subscribed_topics(self) -> frozenset[str] | None:
        if not self.is_of_consumers:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                topics.update(subscribed_topics_of(member.metadata_of(self.protocol_name)))
            except CorruptData:
                # The members say "consumer" and mean something else.
                return None
        return frozenset(topics)
