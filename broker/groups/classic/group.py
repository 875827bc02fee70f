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
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ...coordination.effects import Waiter
from .embedded_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics_of
from .member import ClassicMember, MemberProtocol
from .records import GroupMetadataValue, MemberMetadata
from .results import JoinResult

FIRST_GENERATION: Final = 0


class ClassicState(Enum):
    """With Apache Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


REBALANCE_MAY_BEGIN: Final = frozenset({ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY})


class InitialDelay(NamedTuple):
    """`group.initial.rebalance.delay.ms` as far as it goes (KIP-134)."""

    delay_ms: int
    """Until it is over, unless a new member extends it."""
    remaining_ms: int
    """By which it may be extended."""


class ClassicGroup:
    """The members are kept in the order in which they came."""

    __slots__ = (
        "_awaiting_join_count",
        "_protocol_counts",
        "_static_members",
        "generation",
        "has_new_members",
        "id",
        "incarnation",
        "initial_delay",
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
    )

    def __init__(self, group_id: str, *, now_ms: int | None) -> None:
        """`now_ms` is the wall clock's; None when the time of the last change is unknown."""
        self.id = group_id
        # Given by the table of groups: no other group that had the name has the same.
        self.incarnation = 0
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation = FIRST_GENERATION
        # Not None once the group has had members: what is assigned is "consumer" for consumers.
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
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
        self._awaiting_join_count = 0

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        group = cls(group_id, now_ms=value.state_timestamp_ms if value.state_timestamp_ms >= 0 else None)
        group.generation = value.generation
        for stored in value.members:
            protocols = [] if value.protocol is None else [MemberProtocol(value.protocol, stored.subscription)]
            timeout_ms = stored.rebalance_timeout_ms
            member = ClassicMember(
                id=stored.member_id,
                instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                rebalance_timeout_ms=timeout_ms if timeout_ms >= 0 else stored.session_timeout_ms,
                session_timeout_ms=stored.session_timeout_ms,
                protocols=protocols,
                assignment=stored.assignment,
            )
            group.add(member, value.protocol_type, None)
        if value.members:
            group.state = ClassicState.STABLE
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.leader = value.leader
        group.subscribed_topics = group._compute_subscribed_topics()
        return group

    def to_record(self, assignments: Mapping[str, bytes] | None = None) -> GroupMetadataValue:
        """With the members' own assignments unless others are given."""
        protocol = self.protocol_name
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=protocol,
            leader=self.leader,
            state_timestamp_ms=-1 if self.state_timestamp_ms is None else self.state_timestamp_ms,
            members=tuple(
                MemberMetadata(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=b"" if protocol is None else member.metadata_of(protocol),
                    assignment=member.assignment if assignments is None else assignments[member.id],
                )
                for member in self.members.values()
            ),
        )

    # What it is.

    @property
    def can_rebalance(self) -> bool:
        return self.state in REBALANCE_MAY_BEGIN

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def awaiting_join_count(self) -> int:
        return self._awaiting_join_count

    @property
    def have_all_joined(self) -> bool:
        return len(self.members) == self._awaiting_join_count and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member may take to join again."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

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
        self.subscribed_topics = self._compute_subscribed_topics()

    def refresh_subscribed_topics(self) -> None:
        """A member reads something else, and the generation goes on."""
        self.subscribed_topics = self._compute_subscribed_topics()

    def next_generation(self, now_ms: int) -> None:
        """All members have joined."""
        self.generation += 1
        self.pending_sync.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.transition(ClassicState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.transition(ClassicState.EMPTY, now_ms)
        self.subscribed_topics = self._compute_subscribed_topics()

    def add(self, member: ClassicMember, protocol_type: str, waiter: Waiter[JoinResult] | None) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self._static_members, "an instance is one member"
            self._static_members[member.instance_id] = member.id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._count_protocols(member, 1)
        self._set_join_waiter(member, waiter)
        self.pending_join.discard(member.id)

    def remove(self, member_id: str) -> None:
        """No error if it is only pending, or unknown. Its waiting requests must have been answered."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member, -1)
            if member.is_awaiting_join:
                self._awaiting_join_count -= 1
            if member.instance_id is not None:
                self._static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)

    def update(
        self,
        member: ClassicMember,
        protocols: Sequence[MemberProtocol],
        *,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        waiter: Waiter[JoinResult] | None,
    ) -> None:
        """It has joined again."""
        self._count_protocols(member, -1)
        member.protocols = tuple(protocols)
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._set_join_waiter(member, waiter)

    def replace_static(self, old: ClassicMember, new_id: str) -> ClassicMember:
        """The process of a static member was started anew: its successor gets all that it had (KIP-345)."""
        assert old.instance_id is not None, "only static members are replaced"
        new = ClassicMember(
            id=new_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members = {new.id if key == old.id else key: value for key, value in self.members.items()}
        self.members[new.id] = new
        if self.leader == old.id:
            self.leader = new.id
        if old.id in self.pending_sync:
            self.pending_sync.discard(old.id)
            self.pending_sync.add(new.id)
        self._static_members[old.instance_id] = new.id
        return new

    def take_join(self, member: ClassicMember) -> Waiter[JoinResult] | None:
        """The JoinGroup that waits, to be answered; None without one."""
        waiter = member.join_waiter
        self._set_join_waiter(member, None)
        return waiter

    def elect_joined_leader(self) -> bool:
        """The leader keeps its place if it has joined; otherwise another member that has. False without one."""
        if self.leader is None:
            return False
        if self.members[self.leader].is_awaiting_join:
            return True
        joined = next((member for member in self.members.values() if member.is_awaiting_join), None)
        if joined is None:
            return False
        self.leader = joined.id
        return True

    def _set_join_waiter(self, member: ClassicMember, waiter: Waiter[JoinResult] | None) -> None:
        self._awaiting_join_count += (waiter is not None) - member.is_awaiting_join
        member.join_waiter = waiter

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
