"""Live groups that change their protocol, as `group.consumer.migration.policy` allows (KIP-848 "Upgrade/Downgrade").

A classic group of consumers becomes a consumer group when the first member of the consumer protocol joins, and one
again when the last of them has left. Members of the classic protocol stay what they are: in a consumer group the
coordinator is their leader (`classic_members.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ...configuration.consumer_config import MigrationPolicy
from ...coordination.effects import Effects
from ...coordination.ports import StateRecord
from ..classic.embedded_protocol import CONSUMER_PROTOCOL_TYPE, read_assignment, read_subscription, write_assignment
from ..classic.group import ClassicGroup, ClassicState
from ..classic.join_phase import JoinPhase
from ..classic.member import ClassicMember
from ..classic.records import record_of, tombstone_of
from ..classic.results import join_failure, sync_failure
from .changes import (
    CurrentChange,
    GroupChange,
    GroupEpochChange,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
    apply,
    removal_of_group,
)
from .group import ConsumerGroup
from .group_table import GroupTable
from .journal import ConsumerJournal
from .member import NO_PARTITIONS, ConsumerMember, CurrentAssignment, MemberState, Partitions, merged
from .member_deadlines import MemberDeadlines
from .records import NO_HASH, NO_TIMESTAMP, ClassicMembership, GroupEpochValue, Subscription, TargetEpochValue
from .subscribed_topics import SubscribedTopics

logger = logging.getLogger(__name__)

_SWITCH_ASSIGNOR: Final = (
    "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade."
)


class UpgradePlan(NamedTuple):
    """The group as it will be, and what makes it so; `Upgrade.finish` follows when that is written."""

    group: ConsumerGroup
    before: list[StateRecord]
    changes: list[GroupChange]
    classic: ClassicGroup | None


class Upgrade:
    """From a classic group to a consumer group."""

    def __init__(
        self,
        groups: GroupTable,
        topics: SubscribedTopics,
        deadlines: MemberDeadlines,
        *,
        policy: MigrationPolicy,
        max_size: int,
    ) -> None:
        self._groups = groups
        self._topics = topics
        self._deadlines = deadlines
        self._policy = policy
        self._max_size = max_size

    def plan(self, group_id: str) -> UpgradePlan:
        """Raises KafkaError: it cannot be one."""
        classic = self._groups.get(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        group = ConsumerGroup(group_id)
        if classic.state is ClassicState.EMPTY:
            return UpgradePlan(group, [tombstone_of(group_id)], [], classic)
        refusal = self._refusal(classic)
        if refusal is not None:
            raise _not_upgraded(group_id, refusal)
        try:
            assignments = {member.id: read_assignment(member.assignment) for member in classic.members.values()}
            if any(assignment.user_data for assignment in assignments.values()):
                # Only the assignor of the members can make it anew, and without it Kafka Streams ends.
                raise _not_upgraded(group_id, "an unsupported custom assignor is in use", advice=_SWITCH_ASSIGNOR)
            changes = self._changes(
                classic, {member: self._ids_of(assignment.partitions) for member, assignment in assignments.items()}
            )
        except CorruptData as error:
            logger.warning("group not upgraded: group=%s error=%s", group_id, error)
            raise _not_upgraded(group_id, "the embedded consumer protocol is malformed") from error
        for change in changes:
            apply(group, change)
        return UpgradePlan(group, [tombstone_of(group_id)], changes, classic)

    def finish(self, classic: ClassicGroup) -> None:
        """What was planned for it is written."""
        logger.info(
            "group upgraded: group=%s generation=%d members=%d", classic.id, classic.generation, len(classic.members)
        )
        for member in list(classic.members.values()):
            self._deadlines.expect_heartbeat(classic.id, member.id, member.session_timeout_ms)
            # To them it is another rebalance, which they join.
            classic.answer_join(member, join_failure(ErrorCode.REBALANCE_IN_PROGRESS, member.id))
            classic.answer_sync(member, sync_failure(ErrorCode.REBALANCE_IN_PROGRESS))

    def _refusal(self, classic: ClassicGroup) -> str | None:
        if not self._policy.allows_upgrade:
            return "online upgrade is disabled"
        if not classic.is_of_consumers:
            return "the group does not use the consumer embedded protocol"
        if len(classic.members) > self._max_size:
            return "the group size exceeds the consumer group maximum size"
        return None

    def _changes(self, classic: ClassicGroup, assigned: Mapping[str, Partitions]) -> list[GroupChange]:
        """Each member begins with what it was `assigned` last, and with what it may have besides. Raises
        CorruptData."""
        generation = max(classic.generation, 0)
        taken = {
            (topic_id, one) for parts in assigned.values() for topic_id, of_topic in parts.items() for one in of_topic
        }
        subscriptions: list[GroupChange] = []
        targets: list[GroupChange] = []
        currents: list[GroupChange] = []
        for member in classic.members.values():
            # All protocols of a member carry the same subscription, and while a rebalance is under way it need not
            # know the one that the group had before.
            embedded = read_subscription(member.protocols[0].metadata)
            # A cooperative member keeps what it had when it joined until it has heard its part, and says in its next
            # join what it has given up. One that gives up everything before it joins says that it has nothing.
            kept = {
                (topic_id, one)
                for topic_id, of_topic in self._ids_of(dict(embedded.owned)).items()
                for one in of_topic
                if (topic_id, one) not in taken
            }
            taken |= kept
            has = merged(
                {topic_id: dict.fromkeys(of_topic, generation) for topic_id, of_topic in assigned[member.id].items()},
                *({topic_id: {one: generation}} for topic_id, one in kept),
            )
            subscription = Subscription(
                instance_id=member.instance_id,
                rack_id=embedded.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                topics=tuple(sorted(set(embedded.topics))),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                classic=ClassicMembership(member.session_timeout_ms, tuple(member.protocols)),
            )
            subscriptions.append(SubscriptionChange(classic.id, member.id, subscription))
            targets.append(TargetChange(classic.id, member.id, assigned[member.id]))
            current = CurrentAssignment(generation, generation, MemberState.STABLE, has)
            currents.append(CurrentChange(classic.id, member.id, current))
        return [
            *subscriptions,
            GroupEpochChange(classic.id, GroupEpochValue(generation, NO_HASH)),
            *targets,
            TargetEpochChange(classic.id, TargetEpochValue(generation, NO_TIMESTAMP)),
            *currents,
        ]

    def _ids_of(self, partitions: Mapping[str, Sequence[int]]) -> Partitions:
        by_name = self._topics.image.topics.by_name
        return {
            topic.topic_id: frozenset(of_topic)
            for name, of_topic in partitions.items()
            if of_topic and (topic := by_name.get(name)) is not None
        }


def _not_upgraded(group_id: str, reason: str, *, advice: str = "") -> KafkaError:
    """With Apache Kafka's sentences."""
    logger.info("group not upgraded: group=%s reason=%s", group_id, reason)
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because {reason}. {advice}".rstrip(),
    )


class Downgrade:
    """From a consumer group, whose members all speak the classic protocol, to a classic group."""

    def __init__(
        self,
        groups: GroupTable,
        journal: ConsumerJournal,
        topics: SubscribedTopics,
        join_phase: JoinPhase,
        effects: Effects,
        now_ms: Callable[[], int],
        *,
        policy: MigrationPolicy,
        max_size: int,
    ) -> None:
        """`max_size` is `group.max.size`."""
        self._groups = groups
        self._journal = journal
        self._topics = topics
        self._join_phase = join_phase
        self._effects = effects
        self._now_ms = now_ms
        self._policy = policy
        self._max_size = max_size

    def is_due(self, group: ConsumerGroup, gone: frozenset[str], *, joining: bool = False) -> bool:
        """Whether all that are left without those `gone` speak the classic protocol; `joining`: one more such comes."""
        left_count = len(group.members) - len(gone) + joining
        return (
            group.are_all_classic_without(gone)
            and left_count > 0
            and self._policy.allows_downgrade
            and left_count <= self._max_size
        )

    def carry_out(
        self,
        group: ConsumerGroup,
        gone: frozenset[str],
        joining: ConsumerMember | None = None,
        target: Partitions = NO_PARTITIONS,
    ) -> ClassicGroup:
        """The classic group. Its members join again, unless a static one is `joining` in the place of one who is gone,
        to have the `target` of that, and all of them have what they are to have. Raises KafkaError, and then nothing is
        changed."""
        classic = self._classic(group, gone, joining, target)
        reason = _reason_to_rebalance(group, gone, joining)
        self._journal.write(removal_of_group(group), after=[record_of(classic)])
        self._groups.put(classic)
        logger.info("group downgraded: group=%s epoch=%d members=%d", group.id, group.epoch, len(classic.members))
        for member in classic.members.values():
            classic.expect_heartbeat(member)
        if reason is not None:
            self._join_phase.prepare(classic, reason)
        return classic

    def _classic(
        self, group: ConsumerGroup, gone: frozenset[str], joining: ConsumerMember | None, target: Partitions
    ) -> ClassicGroup:
        classic = ClassicGroup(group.id, self._effects, now_ms=self._now_ms())
        staying = [member for member in group.members.values() if member.id not in gone]
        if joining is not None:
            staying.append(joining)
        for member in staying:
            subscription = member.subscription
            assert subscription.classic is not None, "all that stay speak the classic protocol"
            classic_member = ClassicMember(
                id=member.id,
                instance_id=member.instance_id,
                client_id=subscription.client_id,
                client_host=subscription.client_host,
                rebalance_timeout_ms=subscription.rebalance_timeout_ms,
                session_timeout_ms=subscription.classic.session_timeout_ms,
                protocols=subscription.classic.protocols,
            )
            classic.add(classic_member, CONSUMER_PROTOCOL_TYPE)
        classic.resume(group.epoch, self._now_ms())
        assert classic.protocol_name is not None, "there are members"
        for classic_member in classic.members.values():
            is_joining = joining is not None and classic_member.id == joining.id
            wanted = target if is_joining else group.targets.get(classic_member.id, NO_PARTITIONS)
            try:
                version = read_subscription(classic_member.metadata_of(classic.protocol_name)).version
            except CorruptData as error:
                raise KafkaError(
                    ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot downgrade the consumer group {group.id}: {error}."
                ) from error
            classic_member.assignment = assignment_of(self._topics, wanted, version)
        return classic


def _reason_to_rebalance(group: ConsumerGroup, gone: frozenset[str], joining: ConsumerMember | None) -> str | None:
    """Why the classic group cannot go on with the target assignment; None if it can."""
    if joining is None:
        return "the last member of the consumer protocol is gone"
    left = [group.members[member_id].subscription for member_id in gone]
    if any(one.topics != joining.subscription.topics or one.regular_expression for one in left):
        return f"static member {joining.id} reads other topics than its predecessor"
    if group.epoch > group.target_epoch or not all(
        member.id in gone or member.current.is_reconciled_to(group.target_epoch) for member in group.members.values()
    ):
        # A member may still own a partition of another's target assignment.
        return "not every member has what it is to have"
    return None


def assignment_of(
    topics: SubscribedTopics, partitions: Mapping[UUID, frozenset[int]] | Mapping[UUID, Mapping[int, int]], version: int
) -> bytes:
    """As a leader of the classic protocol would write it; topics that are gone are left out."""
    by_id = topics.image.topics.by_id
    return write_assignment(
        {by_id[topic_id].name: sorted(of_topic) for topic_id, of_topic in partitions.items() if topic_id in by_id},
        version,
    )
