"""The coordinators of groups on this node: where they keep their state, and which of them a group is of.

Kafka: `GroupCoordinatorService`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from ...protocol.errors import ErrorCode, KafkaError
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import MetadataImage, TopicImage
from ...quorum.raft.recent_times import RecentTimes
from ..configuration.consumer_config import SettingsOf
from ..configuration.group_config import GroupConfig
from ..coordination.effects import Effect
from ..groups.group_counters import GroupCounters
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from ..timing.runtime import Runtime
from .coordinator_context import CoordinatorContext
from .coordinator_runtime import CoordinatorRuntime

if TYPE_CHECKING:
    from ..groups.consumer.expression_resolver import ResolveExpressions
    from ..groups.group_shard import GroupShard

logger = logging.getLogger(__name__)

OFFSETS_TOPIC: Final = "__consumer_offsets"
GroupPartition: TypeAlias = "CoordinatorContext[GroupShard]"


class GroupCoordinator:
    """Follows the metadata (`MetadataPublisher`) behind the partitions."""

    def __init__(
        self,
        partitions: ReplicaManager,
        config: GroupConfig,
        settings_of: SettingsOf,
        *,
        runtime: Runtime,
    ) -> None:
        self._partitions = partitions
        self._config = config
        self.offset_metadata_bytes_max = config.offset_metadata_max_bytes
        self.steady_now_ms = runtime.steady_clock_ms
        """By which offsets are committed."""
        self._settings_of = settings_of
        self._runtime = runtime
        self.counters = GroupCounters()
        self.load_times = RecentTimes()
        """Of partitions that were loaded."""
        # A thread of its own: long work in it does not delay disk calls.
        self._executor = ThreadPoolExecutor(1, "groups")
        self.coordinators: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            OFFSETS_TOPIC, partitions.node_id, lambda: partitions.image, self._coordinate, loop=runtime.loop
        )

    def close(self) -> None:
        """The node stops."""
        self.coordinators.unload_all()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def get(self, group_id: str) -> GroupPartition:
        """For requests that must name a group. Raises KafkaError."""
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        return self.coordinators.get(group_id)

    def publish(self, delta: MetadataDelta, _image: MetadataImage) -> None:
        changed = {topic.name for topic in delta.topics.changed.values()}
        changed.update(topic.name for topic in delta.topics.deleted.values())
        if changed:
            are_some_new = any(topic.is_new for topic in delta.topics.changed.values())
            for partition in self.coordinators:
                partition.run_when_loaded(
                    lambda shard: shard.consumer.on_topics_changed(changed, are_some_new=are_some_new)
                )
        for topic in delta.topics.deleted.values():
            for partition in self.coordinators:
                partition.run_when_loaded(partial(_forget_topic, topic))

    def _coordinate(self, hosted: Partition) -> GroupPartition:
        # A node that coordinates no group starts without loading it.
        from ..groups.group_shard import GroupShard

        def make_shard(partition: GroupPartition) -> GroupShard:
            return GroupShard(
                partition,
                config=self._config,
                settings_of=self._settings_of,
                image=lambda: self._partitions.image,
                now_ms=self._runtime.wall_clock_ms,
                steady_now_ms=self._runtime.steady_clock_ms,
                new_id=lambda: str(UUID(int=self._runtime.random.getrandbits(128), version=4)),
                counters=self.counters,
            )

        return CoordinatorContext(
            hosted,
            make_shard,
            replies=self._partitions.produces,
            runtime=self._runtime,
            on_append=self._partitions.complete_fetches,
            load_bytes=self._config.offsets_load_buffer_size,
            commit_timeout_ms=self._config.offsets_commit_timeout_ms,
            load_times=self.load_times,
            apply_effect=self._apply_effect,
        )

    def _apply_effect(self, partition: GroupPartition, effect: Effect) -> None:
        from ..groups.consumer.expression_resolver import ResolveExpressions

        assert isinstance(effect, ResolveExpressions), effect
        try:
            matching = self._runtime.loop.run_in_executor(
                self._executor, effect.matching_topics, lambda: partition.is_active
            )
        except RuntimeError as error:
            # No thread could be started.
            logger.warning("Couldn't update regular expressions: group=%s error=%s", effect.group_id, error)
            partition.run_when_loaded(lambda shard: shard.consumer.expressions.on_failed(effect))
            return
        # When the coordinator is gone by then, the result is dropped with it.
        matching.add_done_callback(lambda matched: partition.run_when_loaded(partial(_end_resolution, effect, matched)))


def _end_resolution(
    effect: ResolveExpressions, matched: asyncio.Future[Mapping[str, tuple[str, ...]]], shard: GroupShard
) -> None:
    error = matched.exception()
    if error is None:
        shard.consumer.expressions.on_resolved(effect, matched.result())
    else:
        logger.error("Couldn't update regular expressions: group=%s", effect.group_id, exc_info=error)
        shard.consumer.expressions.on_failed(effect)


def _forget_topic(topic: TopicImage, shard: GroupShard) -> None:
    shard.offsets.delete_topic(topic.name, topic.topic_id)
