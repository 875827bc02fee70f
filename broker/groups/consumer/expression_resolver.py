"""Resolves regular expressions of consumer groups in the background, and writes the results as records."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from ....protocol.errors import KafkaError
from ..group_table import GroupTable
from .changes import GroupChange, GroupEpochChange, RegularExpressionChange
from .group import ConsumerGroup, count_down
from .journal import ConsumerJournal
from .records import GroupEpochValue, RegularExpressionValue
from .regular_expressions import topics_matching
from .subscribed_topics import SubscribedTopics

logger = logging.getLogger(__name__)

T = TypeVar("T")

MIN_REFRESH_INTERVAL_MS: Final = 10_000
"""New topics can come fast; as in Apache Kafka."""


class RunInBackground(Protocol):
    def __call__(self, work: Callable[[], T], on_done: Callable[[T], None], on_failed: Callable[[], None]) -> None:
        """Has `work` done elsewhere, and calls `on_done` here, or `on_failed` where memory or threads were short;
        neither if the coordinator is gone by then."""


class ExpressionResolver:
    def __init__(
        self,
        groups: GroupTable,
        journal: ConsumerJournal,
        topics: SubscribedTopics,
        run_in_background: RunInBackground,
        *,
        now_ms: Callable[[], int],
        refresh_interval_ms: int,
    ) -> None:
        """`refresh_interval_ms` is `group.consumer.regex.refresh.interval.ms`."""
        self._groups = groups
        self._journal = journal
        self._topics = topics
        self._run_in_background = run_in_background
        self._now_ms = now_ms
        self._refresh_interval_ms = refresh_interval_ms
        self._under_way: set[str] = set()
        self._is_stopped = False
        # Of the metadata with which a topic came last, as far as this coordinator has seen.
        self._newest_topics_version = topics.image.offset

    def stop(self) -> None:
        """Nobody waits for what is under way."""
        self._is_stopped = True

    def on_new_topics(self) -> None:
        self._newest_topics_version = self._topics.image.offset

    def refresh_if_due(self, group: ConsumerGroup, *, is_new: bool) -> None:
        """After a heartbeat; `is_new` when it brought an expression that no member had."""
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
            self._resolve(group.id, expressions)

    def _resolve(self, group_id: str, expressions: frozenset[str]) -> None:
        self._under_way.add(group_id)
        image = self._topics.image
        now_ms = self._now_ms()

        def on_done(matching: dict[str, tuple[str, ...]]) -> None:
            if self._is_stopped:
                return
            self._under_way.discard(group_id)
            self._on_resolved(
                group_id,
                {one: RegularExpressionValue(topics, image.offset, now_ms) for one, topics in matching.items()},
            )

        def on_failed() -> None:
            # The next heartbeat tries again.
            self._under_way.discard(group_id)

        self._run_in_background(
            lambda: topics_matching(expressions, image.topics.by_name, lambda: not self._is_stopped), on_done, on_failed
        )

    def _on_resolved(self, group_id: str, resolved: dict[str, RegularExpressionValue]) -> None:
        group = self._groups.find_consumer(group_id)
        if group is None:
            return
        changes: list[GroupChange] = []
        counts: Counter[str] = Counter(group.topic_counts)
        has_changed = False
        for expression, value in resolved.items():
            if expression not in group.expression_counts:
                continue
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
            logger.warning("regular expressions not written: group=%s error=%s", group_id, error)
