"""Offsets and lags of groups and partitions, in the names of kafka_exporter. Off by default: there are many.

Each series is told by one node of the cluster, so that sums over all nodes are right: a partition's by its leader, a
group's by its coordinator. The coordinator knows high watermarks of the partitions that it leads; leaders are asked for
those of others, before the exposition is made and at most once a second, however many read it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ...quorum.metadata.records import NO_LEADER
from ..cluster.metadata_cache import MetadataCache
from ..cluster.peer_channel import PeerChannel
from ..coordinators.group_coordinator import GroupCoordinator
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from . import leadership_values
from .end_offsets import ask_end_offsets
from .rules import lag_metrics as metrics
from .rules.metric import Metric, Reading, Value, read
from .rules.readings import WALKED_PER_TURN, Readings

OFFSETS_MAX: Final = 10_000
"""Committed offsets with series of their own, two each."""
PARTITIONS_MAX: Final = 10_000
"""Led partitions with series of their own, seven each."""
END_OFFSETS_AGE_MS: Final = 1000
"""How old the answers of leaders may be."""


class _Committed(NamedTuple):
    group: str
    topic: str
    partition: int
    offset: int


class GroupLagReader:
    """`prepare` is awaited before each reading."""

    def __init__(
        self,
        groups: GroupCoordinator,
        partitions: ReplicaManager,
        peers: PeerChannel,
        *,
        is_enabled: Callable[[], bool],
        now_ms: Callable[[], int],
        offsets_max: int = OFFSETS_MAX,
    ) -> None:
        self._groups = groups
        self._partitions = partitions
        self._peers = peers
        self._is_enabled = is_enabled
        self._now_ms = now_ms
        self._offsets_max = offsets_max
        self._asking = asyncio.Lock()
        self._asked_ms: int | None = None
        self._elsewhere: dict[tuple[str, int], int] = {}

    async def prepare(self) -> None:
        """Asks the leaders of partitions that groups of this node have committed offsets of."""
        if not self._is_enabled():
            return
        async with self._asking:
            now_ms = self._now_ms()
            if self._asked_ms is not None and now_ms - self._asked_ms < END_OFFSETS_AGE_MS:
                return
            by_leader: dict[int, set[tuple[str, int]]] = {}
            for walked, one in enumerate(self._committed()):
                if walked >= self._offsets_max:
                    break
                if walked % WALKED_PER_TURN == 0:
                    await asyncio.sleep(0)
                registration = self._partitions.image.topics.partition(one.topic, one.partition)
                if registration is None or registration.leader == NO_LEADER or self._led_end(one) is not None:
                    continue
                by_leader.setdefault(registration.leader, set()).add((one.topic, one.partition))
            self._elsewhere = await ask_end_offsets(self._peers, by_leader)
            self._asked_ms = now_ms

    def __call__(self) -> Readings:
        if not self._is_enabled():
            return
        members: list[tuple[tuple[str, ...], Value]] = []
        offsets: list[tuple[tuple[str, ...], Value]] = []
        lags: list[tuple[tuple[str, ...], Value]] = []
        offset_sums: Counter[tuple[str, ...]] = Counter()
        lag_sums: Counter[tuple[str, ...]] = Counter()
        for group_id, member_count in self._group_sizes():
            members.append(((group_id,), member_count))
            if len(members) % WALKED_PER_TURN == 0:
                yield None
        walked = 0
        for one in self._committed():
            walked += 1
            if walked % WALKED_PER_TURN == 0:
                yield None
            if walked > self._offsets_max:
                continue
            of_sum = (one.group, one.topic)
            labels = (*of_sum, str(one.partition))
            offsets.append((labels, one.offset))
            offset_sums[of_sum] += one.offset
            end = self._led_end(one)
            if end is None:
                end = self._elsewhere.get((one.topic, one.partition))
            if end is not None:
                # It may be older than the commit.
                lag = max(0, end - one.offset)
                lags.append((labels, lag))
                lag_sums[of_sum] += lag
        for metric, samples in (
            (metrics.MEMBERS, members[: self._offsets_max]),
            (metrics.COMMITTED, offsets),
            (metrics.COMMITTED_SUM, list(offset_sums.items())),
            (metrics.LAG, lags),
            (metrics.LAG_SUM, list(lag_sums.items())),
        ):
            yield from _in_slices(metric, samples)
        yield read(metrics.HIDDEN_OFFSETS, max(0, walked - self._offsets_max))

    def _led_end(self, one: _Committed) -> int | None:
        """The high watermark, if this node leads the partition."""
        partition = self._partitions.find(one.topic, one.partition)
        return partition.state.high_watermark if partition is not None and partition.state.is_leader else None

    def _group_sizes(self) -> Iterator[tuple[str, int]]:
        for context in list(self._groups.coordinators):
            if context.is_active:
                for group in list(context.shard.groups):
                    yield group.id, len(group.members)
                for consumer_group in list(context.shard.groups.consumer_groups):
                    yield consumer_group.id, len(consumer_group.members)

    def _committed(self) -> Iterator[_Committed]:
        """May be left and gone on with while groups change."""
        for context in list(self._groups.coordinators):
            if not context.is_active:
                continue
            shard = context.shard
            for group_id in [one.id for one in (*shard.groups, *shard.groups.consumer_groups)]:
                for topic, partitions in list(shard.offsets.committed_of(group_id).items()):
                    for partition, committed in list(partitions.items()):
                        yield _Committed(group_id, topic, partition, committed.offset)


class PartitionOffsetReader:
    """Of the partitions that this node leads."""

    def __init__(
        self,
        partitions: ReplicaManager,
        metadata: MetadataCache,
        *,
        is_enabled: Callable[[], bool],
        partitions_max: int = PARTITIONS_MAX,
    ) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._is_enabled = is_enabled
        self._partitions_max = partitions_max

    def __call__(self) -> Readings:
        if not self._is_enabled():
            return
        brokers = self._metadata.image.brokers.values()
        yield read(metrics.BROKERS, sum(not broker.is_fenced for broker in brokers))
        led = [partition for partition in self._partitions.hosted if partition.state.is_leader]
        yield None
        shown = led[: self._partitions_max]
        for start in range(0, max(1, len(shown)), WALKED_PER_TURN):
            yield Reading(metrics.TOPIC_PARTITIONS, list(self._topic_sizes(shown[start : start + WALKED_PER_TURN])))
        for metric, value_of in OF_PARTITION:
            for start in range(0, len(shown), WALKED_PER_TURN):
                some = [one for one in shown[start : start + WALKED_PER_TURN] if one.state.is_leader]
                yield Reading(metric, [((one.topic, str(one.index)), value_of(one)) for one in some])
        for start in range(0, len(shown), WALKED_PER_TURN):
            some = [one for one in shown[start : start + WALKED_PER_TURN] if one.state.is_leader]
            yield Reading(
                metrics.IS_PREFERRED, [((one.topic, str(one.index)), self._is_preferred(one)) for one in some]
            )
        yield read(metrics.HIDDEN_LEADERS, len(led) - len(shown))

    def _topic_sizes(self, partitions: Sequence[Partition]) -> Iterator[tuple[tuple[str, ...], Value]]:
        for one in partitions:
            topic = self._partitions.image.topics.by_name.get(one.topic) if one.index == 0 else None
            if topic is not None:
                yield (one.topic,), len(topic.partitions)

    def _is_preferred(self, partition: Partition) -> bool:
        registration = self._partitions.image.topics.partition(partition.topic, partition.index)
        return registration is not None and registration.leader == registration.replicas[0]


OF_PARTITION: Final[Sequence[tuple[Metric, Callable[[Partition], float]]]] = (
    (metrics.END_OFFSET, lambda one: one.state.high_watermark),
    (metrics.START_OFFSET, lambda one: one.log.log_start_offset),
    (metrics.IN_SYNC, leadership_values.in_sync),
    (metrics.REPLICAS, leadership_values.assigned),
    (metrics.LEADER, lambda one: one.state.leader_id),
    (metrics.UNDER_REPLICATED, leadership_values.is_under_replicated),
)


def _in_slices(metric: Metric, samples: Sequence[tuple[tuple[str, ...], Value]]) -> Readings:
    for start in range(0, max(1, len(samples)), WALKED_PER_TURN):
        yield Reading(metric, samples[start : start + WALKED_PER_TURN])
