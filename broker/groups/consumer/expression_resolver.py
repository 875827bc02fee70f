"""Resolves regular expressions of consumer groups in the background, and writes the results as records."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from ....protocol.errors import KafkaError
from ....quorum.metadata.image import MetadataImage
from ...coordination.effects import Effect, Effects
from .changes import GroupChange, GroupEpochChange, RegularExpressionChange
from .group import ConsumerGroup, count_down
from .group_table import GroupTable
from .journal import ConsumerJournal
from .records import GroupEpochValue, RegularExpressionValue
from .regular_expressions import topics_matching
from .subscribed_topics import SubscribedTopics

logger = logging.getLogger(__name__)

MIN_REFRESH_INTERVAL_MS: Final = 10_000
"""New topics can come fast; as in Apache Kafka."""


class ResolveExpressions(Effect, frozen=True):
    """Match the regular expressions of a group outside the event loop (`matching_topics`), and come back with an event:
    `ExpressionResolver.on_resolved`, or `on_failed` where memory or threads were short."""

    group_id: str
    expressions: frozenset[str]
    image: MetadataImage
    timestamp_ms: int
    may_describe: Callable[[str], bool] | None = None
    """Whether the member may describe a topic that had this resolved; None where everyone may. Not for the thread."""

    def __repr__(self) -> str:
        return f"ResolveExpressions({self.group_id!r}, {self.expressions!r}, timestamp_ms={self.timestamp_ms})"

    def matching_topics(self, is_wanted: Callable[[], bool]) -> Mapping[str, tuple[str, ...]]:
        """Topics by expression. `is_wanted` is asked again and again, in the thread of the caller."""
        return topics_matching(self.expressions, self.image.topics.by_name, is_wanted)


class ExpressionResolver:
    def __init__(
        self,
        groups: GroupTable,
        journal: ConsumerJournal,
        topics: SubscribedTopics,
        effects: Effects,
        *,
        now_ms: Callable[[], int],
        refresh_interval_ms: int,
    ) -> None:
        """`refresh_interval_ms` is `group.consumer.regex.refresh.interval.ms`."""
        self._groups = groups
        self._journal = journal
        self._topics = topics
        self._effects = effects
        self._now_ms = now_ms
        self._refresh_interval_ms = refresh_interval_ms
        self._under_way: set[str] = set()
        # Of the metadata with which a topic came last, as far as this coordinator has seen.
        self._newest_topics_version = topics.image.offset

    def on_new_topics(self) -> None:
        self._newest_topics_version = self._topics.image.offset

    def refresh_if_due(
        self, group: ConsumerGroup, *, is_new: bool, may_describe: Callable[[str], bool] | None = None
    ) -> None:
        """After a heartbeat; `is_new` when it brought an expression that no member had.

        `may_describe` tells which topics its client may describe: others do not match.
        """
        expressions = frozenset(group.expression_counts)
        if not expressions or group.id in self._under_way:
            return
        now_ms = self._now_ms()
        known = group.resolved.values()
        refreshed_ms = max((one.timestamp_ms for one in known), default=None)
        version = max((one.version for one in known), default=-1)
        # A time to come is of a clock that was ahead, perhaps another node's by hours: it is ignored.
        if refreshed_ms is not None and refreshed_ms <= now_ms < refreshed_ms + MIN_REFRESH_INTERVAL_MS:
            return
        if (
            is_new
            or len(expressions) != len(group.resolved)
            or version < self._newest_topics_version
            or refreshed_ms is None
            or now_ms > refreshed_ms + self._refresh_interval_ms
        ):
            self._under_way.add(group.id)
            self._effects.add(ResolveExpressions(group.id, expressions, self._topics.image, now_ms, may_describe))

    def on_failed(self, request: ResolveExpressions) -> None:
        """The next heartbeat tries again."""
        self._under_way.discard(request.group_id)

    def on_resolved(self, request: ResolveExpressions, matching: Mapping[str, tuple[str, ...]]) -> None:
        group_id = request.group_id
        self._under_way.discard(group_id)
        group = self._groups.find_consumer(group_id)
        if group is None:
            return
        changes: list[GroupChange] = []
        counts: Counter[str] = Counter(group.topic_counts)
        has_changed = False
        for expression, topics in matching.items():
            if expression not in group.expression_counts:
                continue
            if request.may_describe is not None:
                topics = tuple(filter(request.may_describe, topics))
            value = RegularExpressionValue(topics, request.image.offset, request.timestamp_ms)
            known = group.resolved.get(expression)
            old_topics = () if known is None else known.topics
            if set(old_topics) != set(value.topics):
                has_changed = True
                count_down(counts, old_topics)
                counts.update(value.topics)
            changes.append(RegularExpressionChange(group_id, expression, value))
        metadata_hash = self._topics.hash_of(counts)
        if has_changed or metadata_hash != group.metadata_hash:
            changes.append(GroupEpochChange(group_id, GroupEpochValue(group.epoch + 1, metadata_hash)))
        try:
            self._journal.write(changes)
        except KafkaError as error:
            # The next heartbeat tries again.
            logger.warning("Couldn't write resolved regular expressions: group=%s error=%s", group_id, error)
