"""A group of the consumer protocol: its members, its epochs, and the target assignment. Kafka: `ConsumerGroup`.

The group epoch rises with every change of who reads what; a target assignment is made for it; members are brought there
one by one, each with an epoch of its own. Two members never own one partition, because a member is given only
partitions without an owner (`owner_epoch`).

state         when
Empty         it has no members
Assigning     the target assignment is of an older epoch than the group
Reconciling   some member is not yet where the target assignment wants it
Stable        otherwise
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import Final
from uuid import UUID

from ....protocol.structs import replace
from .member import LEAVE_EPOCH, NO_PARTITIONS, ConsumerMember, CurrentAssignment, MemberState, Partitions
from .records import NO_HASH, NO_TIMESTAMP, RegularExpressionValue, Subscription

FIRST_EPOCH: Final = 1
_GONE: Final = CurrentAssignment(LEAVE_EPOCH, LEAVE_EPOCH)


class ConsumerGroupState(Enum):
    """With Apache Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """The members are kept in the order in which they came."""

    __slots__ = (
        "_classic_count",
        "_classic_protocol_counts",
        "_owner_epochs",
        "epoch",
        "expression_counts",
        "has_partition_metadata_record",
        "id",
        "members",
        "metadata_hash",
        "needs_metadata_refresh",
        "resolved",
        "static_members",
        "target_epoch",
        "target_timestamp_ms",
        "targets",
        "topic_counts",
    )

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        # The initial epoch has an empty assignment; members without a subscription are already in it.
        self.epoch = FIRST_EPOCH
        self.metadata_hash = NO_HASH
        self.target_epoch = FIRST_EPOCH
        self.target_timestamp_ms = NO_TIMESTAMP
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, Partitions] = {}
        # What regular expressions that members have subscribed to stand for.
        self.resolved: dict[str, RegularExpressionValue] = {}
        # By how many members, and by how many regular expressions, each topic is read.
        self.topic_counts: Counter[str] = Counter()
        self.expression_counts: Counter[str] = Counter()
        self.has_partition_metadata_record = False
        # Not known to be of the newest metadata: the next heartbeat looks at its topics.
        self.needs_metadata_refresh = True
        self._owner_epochs: dict[UUID, dict[int, int]] = {}
        self._classic_count = 0
        self._classic_protocol_counts: Counter[str] = Counter()

    # What it is.

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.current.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member_id: str, instance_id: str | None) -> Partitions:
        """A static member that takes another's place takes over what that was to have."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.targets.get(member_id, NO_PARTITIONS)

    def owner_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch of the member that has the partition, or has not given it up yet; None without an owner."""
        return self._owner_epochs.get(topic_id, {}).get(partition)

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.topic_counts

    def is_waiting(self, member: ConsumerMember) -> bool:
        """Whether others still have what the member is to have."""
        return member.current.state is MemberState.UNRELEASED_PARTITIONS and any(
            partition not in member.current.assigned.get(topic_id, {})
            and self.owner_epoch(topic_id, partition) is not None
            for topic_id, partitions in self.targets.get(member.id, NO_PARTITIONS).items()
            for partition in partitions
        )

    def preferred_assignor(self, replaced: ConsumerMember | None, updated: ConsumerMember | None) -> str | None:
        """The one that most members name, with `updated` in the place of `replaced`; None if no member names one."""
        votes = Counter(
            member.subscription.assignor
            for member in self.members.values()
            if member.subscription.assignor is not None and (replaced is None or member.id != replaced.id)
        )
        if updated is not None and updated.subscription.assignor is not None:
            votes[updated.subscription.assignor] += 1
        return max(sorted(votes), key=votes.__getitem__) if votes else None

    def knows_classic_protocols(self, names: Iterable[str]) -> bool:
        """Whether a member of the classic protocol who knows these may join."""
        if self.is_empty:
            return any(True for _ in names)
        return any(self._classic_protocol_counts[name] == self._classic_count for name in names)

    def are_all_classic_without(self, member_ids: frozenset[str]) -> bool:
        """Whether all members speak the classic protocol, but for these, who do not."""
        return all(self.members[member_id].uses_classic_protocol is False for member_id in member_ids) and (
            self._classic_count == len(self.members) - len(member_ids)
        )

    # What changes it.

    def put_subscription(self, member_id: str, subscription: Subscription) -> None:
        known = self.members.get(member_id)
        if known is None:
            member = ConsumerMember(id=member_id, subscription=subscription)
        else:
            self._count(known, -1)
            self._release_instance(known)
            member = replace(known, subscription=subscription)
        self.members[member_id] = member
        self._count(member, 1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id

    def put_current(self, member_id: str, current: CurrentAssignment | None) -> None:
        """None when the member has gone, or is about to."""
        known = self.members.get(member_id)
        if known is None:
            if current is None:
                return
            known = ConsumerMember(id=member_id)
        self._disown(known.current)
        member = replace(known, current=_GONE if current is None else current)
        self.members[member_id] = member
        self._own(member.current)

    def put_target(self, member_id: str, partitions: Partitions | None) -> None:
        if partitions is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = partitions

    def remove_member(self, member_id: str) -> None:
        """No error if it is not there."""
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count(member, -1)
        self._disown(member.current)
        self._release_instance(member)

    def put_resolved(self, expression: str, resolved: RegularExpressionValue | None) -> None:
        known = self.resolved.pop(expression, None)
        if known is not None:
            count_down(self.topic_counts, known.topics)
        if resolved is not None:
            self.resolved[expression] = resolved
            self.topic_counts.update(resolved.topics)

    def _release_instance(self, member: ConsumerMember) -> None:
        """Unless another member has taken its place."""
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.id:
            del self.static_members[member.instance_id]

    def _count(self, member: ConsumerMember, step: int) -> None:
        subscription = member.subscription
        expressions = () if member.regular_expression is None else (member.regular_expression,)
        # A member that names one twice is one member that knows it.
        protocols = () if subscription.classic is None else {one.name for one in subscription.classic.protocols}
        if step > 0:
            self.topic_counts.update(subscription.topics)
            self.expression_counts.update(expressions)
        else:
            count_down(self.topic_counts, subscription.topics)
            count_down(self.expression_counts, expressions)
        for name in protocols:
            self._classic_protocol_counts[name] += step
        if subscription.classic is not None:
            self._classic_count += step

    def _own(self, current: CurrentAssignment) -> None:
        for owned in (current.assigned, current.pending_revocation):
            for topic_id, partitions in owned.items():
                self._owner_epochs.setdefault(topic_id, {}).update(dict.fromkeys(partitions, current.epoch))

    def _disown(self, current: CurrentAssignment) -> None:
        # A log that was compacted may name a later owner before it says that the earlier one had let go.
        for owned in (current.assigned, current.pending_revocation):
            for topic_id, partitions in owned.items():
                epochs = self._owner_epochs.get(topic_id, {})
                for partition in partitions:
                    if epochs.get(partition) == current.epoch:
                        del epochs[partition]
                if not epochs:
                    self._owner_epochs.pop(topic_id, None)


def count_down(counts: Counter[str], names: Iterable[str]) -> None:
    """Removes names whose count becomes 0."""
    for name in names:
        if counts[name] <= 1:
            del counts[name]
        else:
            counts[name] -= 1
