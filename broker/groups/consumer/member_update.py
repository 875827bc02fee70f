"""What one member's heartbeat changes in its group: a plan, of which nothing is carried out here.

1. The member is new, or has changed what it says of itself. What it reads, or the metadata of what the group reads,
   raises the group epoch.
2. A group epoch above that of the target assignment asks for a new one, as often as the group's interval allows.
3. The member takes its next step towards the target assignment.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Set
from typing import NamedTuple
from uuid import UUID

from ...configuration.consumer_config import SettingsOf
from .assignor import Assignor, MemberSpec
from .changes import (
    CurrentChange,
    GroupChange,
    GroupEpochChange,
    PartitionMetadataChange,
    RegularExpressionChange,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
    removal_of_member,
)
from .group import FIRST_EPOCH, ConsumerGroup, count_down
from .member import JOIN_EPOCH, ConsumerMember, CurrentAssignment, Partitions
from .reconciliation import Owned, next_assignment
from .records import NO_TIMESTAMP, GroupEpochValue, Subscription, TargetEpochValue
from .regular_expressions import check_expression
from .subscribed_topics import SubscribedTopics

logger = logging.getLogger(__name__)


class MemberUpdate(NamedTuple):
    """`member` is the updated member; `has_new_expression`: no member of the group had its regular expression."""

    changes: list[GroupChange]
    member: ConsumerMember
    has_new_expression: bool


class MemberUpdates:
    def __init__(
        self,
        topics: SubscribedTopics,
        assignors: Mapping[str, Assignor],
        *,
        default_assignor: str,
        settings_of: SettingsOf,
        now_ms: Callable[[], int],
    ) -> None:
        self._topics = topics
        self._assignors = assignors
        self._default_assignor = default_assignor
        self._settings_of = settings_of
        self._now_ms = now_ms

    def plan(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        subscription: Subscription,
        owned: Owned,
        *,
        replaced: ConsumerMember | None = None,
    ) -> MemberUpdate:
        """`member` is as it is, or a new one; a static one may be `replaced` by it, and then begins as that was.

        Raises KafkaError.
        """
        changes: list[GroupChange] = []
        if replaced is not None:
            changes += removal_of_member(group.id, replaced.id)
            changes.append(SubscriptionChange(group.id, member.id, member.subscription))
            changes.append(TargetChange(group.id, member.id, group.target_of(replaced.id, None)))
            changes.append(CurrentChange(group.id, member.id, member.current))
        updated = ConsumerMember(id=member.id, subscription=subscription, current=member.current)
        if subscription != member.subscription:
            changes.append(SubscriptionChange(group.id, member.id, subscription))
        have_topics_changed = subscription.topics != member.subscription.topics
        expression = _ExpressionUpdate(group, member, updated)
        changes += expression.changes
        counts = Counter(group.topic_counts)
        if member.id in group.members or replaced is not None:
            count_down(counts, member.subscription.topics)
        counts.update(subscription.topics)
        count_down(counts, expression.lost_topics)

        epoch = group.epoch
        # A classic group that is upgraded in its first rebalance has no generation yet, and a member at epoch 0 has
        # not joined.
        is_bumped = have_topics_changed or expression.is_resolved or epoch < FIRST_EPOCH
        if is_bumped or group.needs_metadata_refresh:
            metadata_hash = self._topics.hash_of(counts)
            if is_bumped or metadata_hash != group.metadata_hash:
                epoch += 1
                changes.append(GroupEpochChange(group.id, GroupEpochValue(epoch, metadata_hash)))
            if group.has_partition_metadata_record:
                changes.append(PartitionMetadataChange(group.id, False))

        target_epoch, target = group.target_epoch, group.target_of(updated.id, updated.instance_id)
        if epoch > target_epoch and self._is_interval_over(group):
            targets = self._assign(group, updated, replaced, expression.lost)
            changes += _target_changes(group, targets, updated, replaced)
            changes.append(TargetEpochChange(group.id, TargetEpochValue(epoch, self._now_ms())))
            target_epoch, target = epoch, targets[updated.id]
            logger.info("Computed a new target assignment: group=%s epoch=%d members=%d", group.id, epoch, len(targets))

        has_subscription_changed = have_topics_changed or expression.is_updated
        current = updated.current
        if has_subscription_changed or not current.is_reconciled_to(target_epoch):
            current = next_assignment(
                current,
                target_epoch=target_epoch,
                target=target,
                owned=owned,
                owner_epoch=group.owner_epoch,
                subscribed_topic_ids=self._topic_ids(group, updated, expression.lost),
                has_subscription_changed=has_subscription_changed,
            )
        if current != updated.current:
            changes.append(CurrentChange(group.id, member.id, current))
        updated = ConsumerMember(id=member.id, subscription=subscription, current=current)
        return MemberUpdate(changes, updated, expression.is_new)

    def is_assignment_due(self, group: ConsumerGroup) -> bool:
        """Whether the next step of any member makes a new target assignment."""
        return group.epoch > group.target_epoch and self._is_interval_over(group)

    def _is_interval_over(self, group: ConsumerGroup) -> bool:
        interval_ms = self._settings_of(group.id).assignment_interval_ms
        since_ms = group.target_timestamp_ms
        # A time to come is of a clock that was ahead, perhaps another node's by hours: it is ignored.
        return since_ms == NO_TIMESTAMP or not since_ms <= self._now_ms() < since_ms + interval_ms

    def _assign(
        self, group: ConsumerGroup, updated: ConsumerMember, replaced: ConsumerMember | None, lost: str | None
    ) -> dict[str, Partitions]:
        members = {member.id: member for member in group.members.values() if member is not replaced}
        members[updated.id] = updated
        # Most members read the same topics.
        ids_by_subscription: dict[tuple[tuple[str, ...], str | None], Set[UUID]] = {}
        specs: dict[str, MemberSpec] = {}
        for member in members.values():
            what = (member.subscription.topics, member.regular_expression)
            topic_ids = ids_by_subscription.get(what)
            if topic_ids is None:
                topic_ids = ids_by_subscription[what] = self._topic_ids(group, member, lost)
            instance_id = member.instance_id if member is updated else None
            specs[member.id] = MemberSpec(member.instance_id, topic_ids, group.target_of(member.id, instance_id))
        name = group.preferred_assignor(replaced or updated, updated) or self._default_assignor
        counts = self._topics.partition_counts(frozenset().union(*ids_by_subscription.values()))
        assigned = self._assignors.get(name, self._assignors[self._default_assignor]).assign(specs, counts)
        return {member_id: assigned.get(member_id, {}) for member_id in specs}

    def _topic_ids(self, group: ConsumerGroup, member: ConsumerMember, lost: str | None) -> Set[UUID]:
        """Of what the member reads, as far as it is known."""
        expression = member.regular_expression
        resolved = group.resolved.get(expression) if expression is not None and expression != lost else None
        return self._topics.ids_of((*member.subscription.topics, *(resolved.topics if resolved is not None else ())))


class _ExpressionUpdate:
    """What becomes of regular expressions by one member's update. Raises KafkaError(INVALID_REGULAR_EXPRESSION)."""

    def __init__(self, group: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember) -> None:
        old, new = member.regular_expression, updated.regular_expression
        self.changes: list[GroupChange] = []
        self.lost: str | None = None
        """The expression that no member has any more."""
        self.lost_topics: tuple[str, ...] = ()
        self.is_new = False
        self.is_updated = old != new
        self.is_resolved = False
        """What the member reads has changed, and is known."""
        if not self.is_updated:
            return
        if old is not None and group.expression_counts[old] == 1:
            self.lost = old
            self.changes.append(RegularExpressionChange(group.id, old, None))
            if old in group.resolved:
                self.lost_topics = group.resolved[old].topics
        if new is None:
            self.is_resolved = True
        elif not group.expression_counts[new]:
            check_expression(new)
            self.is_new = True
        else:
            self.is_resolved = new in group.resolved


def _target_changes(
    group: ConsumerGroup,
    targets: Mapping[str, Partitions],
    updated: ConsumerMember,
    replaced: ConsumerMember | None,
) -> list[GroupChange]:
    """What differs from the last target assignment."""
    changes: list[GroupChange] = []
    for member_id, target in targets.items():
        before = replaced.id if replaced is not None and member_id == updated.id else member_id
        if group.targets.get(before) != target:
            changes.append(TargetChange(group.id, member_id, target))
    return changes


def successor_of(replaced: ConsumerMember, member_id: str) -> ConsumerMember:
    """A static member that comes again, with a new id, as it was (KIP-345)."""
    current: CurrentAssignment = replaced.current._replace(epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    return ConsumerMember(id=member_id, subscription=replaced.subscription, current=current)
