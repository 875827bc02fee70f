"""Members that leave a consumer group, or are put out of it; the last of the consumer protocol may end it as such."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from ....protocol.errors import ErrorCode, KafkaError
from ...coordination.effects import Effects
from .changes import GroupChange, GroupEpochChange, RegularExpressionChange, removal_of_member
from .group import ConsumerGroup, count_down
from .group_table import GroupTable
from .journal import ConsumerJournal
from .member import ConsumerMember, MemberState
from .member_deadlines import MemberDeadlines, MemberTimeout
from .migration import Downgrade
from .records import GroupEpochValue
from .subscribed_topics import SubscribedTopics

logger = logging.getLogger(__name__)


class Departures:
    def __init__(
        self,
        groups: GroupTable,
        journal: ConsumerJournal,
        topics: SubscribedTopics,
        downgrade: Downgrade,
        effects: Effects,
    ) -> None:
        self._groups = groups
        self._journal = journal
        self._topics = topics
        self._downgrade = downgrade
        self.deadlines = MemberDeadlines(effects)

    def remove(self, group: ConsumerGroup, members: Sequence[ConsumerMember], reason: str) -> None:
        """Raises KafkaError, and then nothing is changed."""
        if not members:
            return
        for member in members:
            logger.info("member removed: group=%s member=%s reason=%s", group.id, member.id, reason)
        gone = frozenset(member.id for member in members)
        if self._downgrade.is_due(group, gone):
            # Those that stay have other deadlines as members of a classic group.
            left, gone = gone, frozenset(group.members)
            self._downgrade.carry_out(group, left)
        else:
            self._journal.write(self._removal(group, members))
        for member_id in gone:
            self.deadlines.forget(group.id, member_id)

    def expect_revocation(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """After a step of a member's that changed something."""
        if member.current.state is not MemberState.UNREVOKED_PARTITIONS:
            self.deadlines.forget_revocation(group.id, member.id)
            return
        timeout_ms = member.subscription.rebalance_timeout_ms
        self.deadlines.expect_revocation(group.id, member.id, timeout_ms, member.current.epoch)

    def on_timer(self, timeout: MemberTimeout) -> None:
        """Raises KafkaError if the member could not be removed, which is tried again."""
        group = self._groups.find_consumer(timeout.group_id)
        member = None if group is None else group.members.get(timeout.member_id)
        if group is None or member is None:
            return
        reason = self.deadlines.reason_to_remove(timeout, member)
        if reason is None:
            return
        try:
            self.remove(group, [member], reason)
        except KafkaError:
            self.deadlines.retry(timeout)
            raise

    def check_static(self, member: ConsumerMember | None, member_id: str, instance_id: str) -> ConsumerMember:
        """Raises KafkaError: no member has the instance id, or another one has it."""
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.id != member_id:
            raise KafkaError(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member {member.id}.",
            )
        return member

    def _removal(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> list[GroupChange]:
        changes: list[GroupChange] = []
        counts = Counter(group.topic_counts)
        expressions: Counter[str] = Counter()
        for member in members:
            changes += removal_of_member(group.id, member.id)
            count_down(counts, member.subscription.topics)
            if member.regular_expression is not None:
                expressions[member.regular_expression] += 1
        for expression, count in expressions.items():
            if group.expression_counts[expression] == count:
                changes.append(RegularExpressionChange(group.id, expression, None))
                if expression in group.resolved:
                    count_down(counts, group.resolved[expression].topics)
        value = GroupEpochValue(group.epoch + 1, self._topics.hash_of(counts))
        changes.append(GroupEpochChange(group.id, value))
        return changes
