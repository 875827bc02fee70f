"""The changes that a consumer group goes through, each of which is one record; `None` in place of a value deletes.

A coordinator decides on changes, appends them, and applies them to its state as a later coordinator will that replays
the log: what they do to a group is said once, in `apply`.
"""

from __future__ import annotations

from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from ...coordination.ports import StateRecord
from .group import FIRST_EPOCH, ConsumerGroup
from .member import CurrentAssignment, Partitions
from .records import (
    CURRENT_MEMBER_KEY,
    CURRENT_MEMBER_VALUE,
    GROUP_EPOCH_KEY,
    GROUP_EPOCH_VALUE,
    NO_TIMESTAMP,
    PARTITION_METADATA_KEY,
    REGULAR_EXPRESSION_KEY,
    REGULAR_EXPRESSION_VALUE,
    SUBSCRIPTION_KEY,
    SUBSCRIPTION_VALUE,
    TARGET_EPOCH_KEY,
    TARGET_EPOCH_VALUE,
    TARGET_MEMBER_KEY,
    TARGET_MEMBER_VALUE,
    GroupEpochValue,
    GroupKey,
    MemberKey,
    RegularExpressionKey,
    RegularExpressionValue,
    Subscription,
    TargetEpochValue,
    TargetMemberValue,
    TopicPartitions,
)

CONSUMER_GROUP_KEYS: Final = frozenset({3, 4, 5, 6, 7, 8, 16})


class GroupEpochChange(Struct, frozen=True):
    group: str
    value: GroupEpochValue | None

    @property
    def is_removal(self) -> bool:
        return self.value is None


class PartitionMetadataChange(Struct, frozen=True):
    """`is_present`: as brokers before Kafka 4.1 wrote it; it is never read."""

    group: str
    is_present: bool

    @property
    def is_removal(self) -> bool:
        return not self.is_present


class SubscriptionChange(Struct, frozen=True):
    group: str
    member: str
    value: Subscription | None

    @property
    def is_removal(self) -> bool:
        return self.value is None


class TargetEpochChange(Struct, frozen=True):
    group: str
    value: TargetEpochValue | None

    @property
    def is_removal(self) -> bool:
        return self.value is None


class TargetChange(Struct, frozen=True):
    group: str
    member: str
    value: Partitions | None

    @property
    def is_removal(self) -> bool:
        return self.value is None


class CurrentChange(Struct, frozen=True):
    group: str
    member: str
    value: CurrentAssignment | None

    @property
    def is_removal(self) -> bool:
        return self.value is None


class RegularExpressionChange(Struct, frozen=True):
    group: str
    expression: str
    value: RegularExpressionValue | None

    @property
    def is_removal(self) -> bool:
        return self.value is None


GroupChange: TypeAlias = (
    GroupEpochChange
    | PartitionMetadataChange
    | SubscriptionChange
    | TargetEpochChange
    | TargetChange
    | CurrentChange
    | RegularExpressionChange
)


def to_record(change: GroupChange) -> StateRecord:
    """`PartitionMetadataChange` only deletes."""
    match change:
        case GroupEpochChange(group, value):
            return StateRecord(
                GROUP_EPOCH_KEY.write(GroupKey(group)), None if value is None else GROUP_EPOCH_VALUE.write(value)
            )
        case PartitionMetadataChange(group, is_present):
            assert not is_present, "nothing is written there any more"
            return StateRecord(PARTITION_METADATA_KEY.write(GroupKey(group)), None)
        case SubscriptionChange(group, member, subscription):
            key = SUBSCRIPTION_KEY.write(MemberKey(group, member))
            return StateRecord(key, None if subscription is None else SUBSCRIPTION_VALUE.write(subscription))
        case TargetEpochChange(group, target_epoch):
            return StateRecord(
                TARGET_EPOCH_KEY.write(GroupKey(group)),
                None if target_epoch is None else TARGET_EPOCH_VALUE.write(target_epoch),
            )
        case TargetChange(group, member, partitions):
            return StateRecord(
                TARGET_MEMBER_KEY.write(MemberKey(group, member)),
                None if partitions is None else TARGET_MEMBER_VALUE.write(_target_to_record(partitions)),
            )
        case CurrentChange(group, member, current):
            return StateRecord(
                CURRENT_MEMBER_KEY.write(MemberKey(group, member)),
                None if current is None else CURRENT_MEMBER_VALUE.write(current.to_record()),
            )
        case RegularExpressionChange(group, expression, resolved):
            return StateRecord(
                REGULAR_EXPRESSION_KEY.write(RegularExpressionKey(group, expression)),
                None if resolved is None else REGULAR_EXPRESSION_VALUE.write(resolved),
            )
        case _:
            assert_never(change)


def from_record(kind: int, key: bytes, value: bytes | None) -> GroupChange:
    """`kind` is the key's version, one of `CONSUMER_GROUP_KEYS`. Raises CorruptData."""
    match kind:
        case 3:
            (group,) = GROUP_EPOCH_KEY.read(key)
            return GroupEpochChange(group, None if value is None else GROUP_EPOCH_VALUE.read(value))
        case 4:
            (group,) = PARTITION_METADATA_KEY.read(key)
            return PartitionMetadataChange(group, value is not None)
        case 5:
            group, member = SUBSCRIPTION_KEY.read(key)
            return SubscriptionChange(group, member, None if value is None else SUBSCRIPTION_VALUE.read(value))
        case 6:
            (group,) = TARGET_EPOCH_KEY.read(key)
            return TargetEpochChange(group, None if value is None else TARGET_EPOCH_VALUE.read(value))
        case 7:
            group, member = TARGET_MEMBER_KEY.read(key)
            target = None if value is None else _target_from_record(TARGET_MEMBER_VALUE.read(value))
            return TargetChange(group, member, target)
        case 8:
            group, member = CURRENT_MEMBER_KEY.read(key)
            current = None if value is None else CurrentAssignment.from_record(CURRENT_MEMBER_VALUE.read(value))
            return CurrentChange(group, member, current)
        case 16:
            group, expression = REGULAR_EXPRESSION_KEY.read(key)
            resolved = None if value is None else REGULAR_EXPRESSION_VALUE.read(value)
            return RegularExpressionChange(group, expression, resolved)
        case _:
            raise AssertionError(f"key version {kind} is not one of consumer groups")


def apply(group: ConsumerGroup, change: GroupChange) -> None:
    match change:
        case GroupEpochChange(_, value):
            if value is not None:
                group.epoch, group.metadata_hash = value
        case PartitionMetadataChange(_, is_present):
            group.has_partition_metadata_record = is_present
        case SubscriptionChange(_, member, subscription):
            if subscription is None:
                group.remove_member(member)
            else:
                group.put_subscription(member, subscription)
        case TargetEpochChange(_, target_epoch):
            if target_epoch is None:
                group.target_epoch, group.target_timestamp_ms = FIRST_EPOCH, NO_TIMESTAMP
            else:
                group.target_epoch, group.target_timestamp_ms = target_epoch
        case TargetChange(_, member, partitions):
            group.put_target(member, partitions)
        case CurrentChange(_, member, current):
            group.put_current(member, current)
        case RegularExpressionChange(_, expression, resolved):
            group.put_resolved(expression, resolved)
        case _:
            assert_never(change)


def removal_of_member(group: str, member: str) -> list[GroupChange]:
    """In this order Apache Kafka replays it."""
    return [
        CurrentChange(group, member, None),
        TargetChange(group, member, None),
        SubscriptionChange(group, member, None),
    ]


def removal_of_group(group: ConsumerGroup) -> list[GroupChange]:
    """In this order Apache Kafka replays it."""
    members = list(group.members)
    return [
        *(CurrentChange(group.id, member, None) for member in members),
        *(TargetChange(group.id, member, None) for member in members),
        TargetEpochChange(group.id, None),
        *(SubscriptionChange(group.id, member, None) for member in members),
        *(RegularExpressionChange(group.id, expression, None) for expression in group.resolved),
        *([PartitionMetadataChange(group.id, False)] if group.has_partition_metadata_record else []),
        GroupEpochChange(group.id, None),
    ]


def _target_to_record(partitions: Partitions) -> TargetMemberValue:
    return TargetMemberValue(
        tuple(TopicPartitions(topic_id, tuple(sorted(of_topic))) for topic_id, of_topic in partitions.items())
    )


def _target_from_record(value: TargetMemberValue) -> Partitions:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topics if topic.partitions}
