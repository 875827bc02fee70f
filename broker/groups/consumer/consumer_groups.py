"""All that one coordinator does for consumer groups, joined."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Final

from ....quorum.metadata.image import MetadataImage
from ...configuration.consumer_config import ConsumerGroupConfig, SettingsOf
from ...coordination.effects import Effects
from ...coordination.ports import StateLog
from ..classic.group import ClassicGroup
from ..classic.join_phase import JoinPhase
from ..classic.records import record_of
from ..group_counters import GroupCounters
from .assignor import Assignor
from .changes import from_record, removal_of_group
from .classic_members import ClassicMembers
from .consumer_protocol import ConsumerProtocol
from .departures import Departures
from .expression_resolver import ExpressionResolver
from .group import ConsumerGroup
from .group_table import GroupTable
from .journal import ConsumerJournal
from .member import STATIC_LEAVE_EPOCH
from .member_deadlines import MemberTimeout
from .member_update import MemberUpdates
from .migration import Downgrade, Upgrade
from .range_assignor import RangeAssignor
from .subscribed_topics import SubscribedTopics
from .uniform_assignor import UniformAssignor

ASSIGNORS: Final[dict[str, Assignor]] = {one.name: one for one in (UniformAssignor(), RangeAssignor())}


class ConsumerGroups:
    def __init__(
        self,
        groups: GroupTable,
        log: StateLog,
        effects: Effects,
        join_phase: JoinPhase,
        image: Callable[[], MetadataImage],
        *,
        config: ConsumerGroupConfig,
        settings_of: SettingsOf,
        classic_max_size: int,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        counters: GroupCounters,
    ) -> None:
        """`image` is the newest; groups that are classic again, of `classic_max_size` members at most, rebalance in
        `join_phase`."""
        self._groups = groups
        self._settings_of = settings_of
        self._config = config
        self._effects = effects
        self._now_ms = now_ms
        topics = self.topics = SubscribedTopics(image)
        self._journal = ConsumerJournal(groups, log, counters)
        downgrade = Downgrade(
            groups,
            self._journal,
            topics,
            join_phase,
            effects,
            now_ms,
            policy=config.migration_policy,
            max_size=classic_max_size,
        )
        self._departures = Departures(groups, self._journal, topics, downgrade, effects)
        self._deadlines = self._departures.deadlines
        self.expressions = ExpressionResolver(
            groups,
            self._journal,
            topics,
            effects,
            now_ms=now_ms,
            refresh_interval_ms=config.regex_refresh_interval_ms,
        )
        updates = MemberUpdates(
            topics, ASSIGNORS, default_assignor=config.assignors[0], settings_of=settings_of, now_ms=now_ms
        )
        self.protocol = ConsumerProtocol(
            groups,
            self._journal,
            updates,
            self._deadlines,
            self._departures,
            Upgrade(groups, topics, self._deadlines, policy=config.migration_policy, max_size=config.max_size),
            self.expressions,
            max_size=config.max_size,
            settings_of=settings_of,
            new_id=new_id,
        )
        self.classic_members = ClassicMembers(
            groups,
            self._journal,
            topics,
            updates,
            self._deadlines,
            self._departures,
            downgrade,
            effects,
            new_id=new_id,
            config=config,
        )

    @property
    def default_assignor(self) -> str:
        return self._config.assignors[0]

    # Its state, from the log.

    def replay(self, kind: int, key: bytes, value: bytes | None) -> None:
        """`kind` is the key's version, one of `CONSUMER_GROUP_KEYS`. Raises CorruptData."""
        self._journal.replay(from_record(kind, key, value))

    def on_loaded(self) -> None:
        """All is replayed: sessions begin, and members have as long as they ever had."""
        for group in self._groups.consumer_groups:
            session_ms = self._settings_of(group.id).session_timeout_ms
            for member in group.members.values():
                classic = member.subscription.classic
                within_ms = session_ms if classic is None else classic.session_timeout_ms
                self._deadlines.expect_heartbeat(group.id, member.id, within_ms)
                if classic is None and member.current.epoch != STATIC_LEAVE_EPOCH:
                    self._departures.expect_revocation(group, member)

    # What happens around it.

    def on_timer(self, timeout: MemberTimeout) -> None:
        """Raises KafkaError if the member could not be removed, which is tried again."""
        self._departures.on_timer(timeout)

    def on_topics_changed(self, names: Set[str], *, are_some_new: bool) -> None:
        """The metadata of these topics has changed, or they are gone."""
        self.topics.forget(names)
        if are_some_new:
            self.expressions.on_new_topics()
        for group in self._groups.consumer_groups:
            if not group.topic_counts.keys().isdisjoint(names):
                group.needs_metadata_refresh = True

    def make_classic(self, group: ConsumerGroup) -> None:
        """Puts a classic group in the place of one that is empty: its offsets are that group's, whether members join or
        not. Raises KafkaError, and then nothing is changed."""
        classic = ClassicGroup(group.id, self._effects, now_ms=self._now_ms())
        self._journal.write(removal_of_group(group), after=[record_of(classic)])
        self._groups.put(classic)

    def delete(self, group: ConsumerGroup) -> None:
        """One that is empty; its offsets are others' to delete. Raises KafkaError."""
        self._journal.write(removal_of_group(group))
