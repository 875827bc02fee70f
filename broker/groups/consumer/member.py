"""A member of a consumer group: what it has subscribed to, and which partitions it has now.

state        the member                                       left by
Stable       has all of the target assignment of its epoch    another target assignment
Unrevoked    must give up partitions before its epoch rises   a heartbeat that names none of them as its own
Unreleased   waits for partitions that others still have      the others giving them up
Unknown      was written by a newer version                   joining anew
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from msgspec import Struct

from .records import CurrentMemberValue, OwnedTopicPartitions, Subscription

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
"""A static member that will come back before its session is over (KIP-345)."""
_UNKNOWN_ASSIGNMENT_EPOCH: Final = 0

Partitions: TypeAlias = Mapping[UUID, frozenset[int]]
"""By topic; no topic has none."""
OwnedPartitions: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""By topic, each with the epoch in which the member was given it; no topic has none."""
NO_PARTITIONS: Final[Mapping[UUID, frozenset[int]]] = {}
OWNS_NOTHING: Final[Mapping[UUID, Mapping[int, int]]] = {}


class MemberState(IntEnum):
    """With the numbers of Apache Kafka's records."""

    STABLE = 1
    UNREVOKED_PARTITIONS = 2
    UNRELEASED_PARTITIONS = 3
    UNKNOWN = 127


_STATES: Final = {state.value: state for state in MemberState}


class CurrentAssignment(NamedTuple):
    """Where the member is on its way to the target assignment."""

    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    """The member may still send it when the response with `epoch` was lost."""
    state: MemberState = MemberState.STABLE
    assigned: OwnedPartitions = OWNS_NOTHING
    pending_revocation: OwnedPartitions = OWNS_NOTHING
    """What it has to give up, and may not have done yet."""

    def moved_to(
        self, epoch: int, state: MemberState, assigned: OwnedPartitions, pending_revocation: OwnedPartitions
    ) -> CurrentAssignment:
        return CurrentAssignment(epoch, self.epoch, state, assigned, pending_revocation)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def assignment_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """Since when the member has the partition; None if it has not."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def to_record(self) -> CurrentMemberValue:
        return CurrentMemberValue(
            self.epoch,
            self.previous_epoch,
            self.state,
            _owned_to_record(self.assigned),
            _owned_to_record(self.pending_revocation),
        )

    @classmethod
    def from_record(cls, value: CurrentMemberValue) -> CurrentAssignment:
        return cls(
            value.epoch,
            value.previous_epoch,
            _STATES.get(value.state, MemberState.UNKNOWN),
            _owned_from_record(value.assigned, value.epoch),
            _owned_from_record(value.pending_revocation, value.epoch),
        )


NO_SUBSCRIPTION: Final = Subscription()
NEW: Final = CurrentAssignment()


class ConsumerMember(Struct, frozen=True, kw_only=True):
    id: str
    subscription: Subscription = NO_SUBSCRIPTION
    current: CurrentAssignment = NEW

    @property
    def instance_id(self) -> str | None:
        return self.subscription.instance_id

    @property
    def uses_classic_protocol(self) -> bool:
        return self.subscription.classic is not None

    @property
    def regular_expression(self) -> str | None:
        """None without one."""
        return self.subscription.regular_expression or None


def merged(*parts: OwnedPartitions) -> OwnedPartitions:
    """All of them together; of what is in several the last counts."""
    result: dict[UUID, dict[int, int]] = {}
    for part in parts:
        for topic_id, partitions in part.items():
            result.setdefault(topic_id, {}).update(partitions)
    return result


def is_subset(owned: Iterable[tuple[UUID | None, Iterable[int]]], assigned: OwnedPartitions) -> bool:
    """Whether a member that says it owns these owns nothing else than what is assigned to it."""
    return all(
        topic_id is not None and partition in assigned.get(topic_id, {})
        for topic_id, partitions in owned
        for partition in partitions
    )


def _owned_to_record(owned: OwnedPartitions) -> tuple[OwnedTopicPartitions, ...]:
    return tuple(
        OwnedTopicPartitions(topic_id, tuple(sorted(partitions)), tuple(partitions[one] for one in sorted(partitions)))
        for topic_id, partitions in owned.items()
    )


def _owned_from_record(topics: Iterable[OwnedTopicPartitions], epoch: int) -> OwnedPartitions:
    owned: dict[UUID, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = (max(epoch, _UNKNOWN_ASSIGNMENT_EPOCH),) * len(topic.partitions)
        if topic.partitions:
            owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned
