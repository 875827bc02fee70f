"""One log line when a broker leaves and one when it is back in sync, by the active controller, however many partitions
it has."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from msgspec import Struct

from ...protocol.ids import NodeId
from ..metadata.delta import MetadataDelta
from ..metadata.image import MetadataImage, PartitionRegistration

logger = logging.getLogger(__name__)


class _Outage(Struct):
    since_ms: int
    # Partitions that have a replica on the broker which is not in their ISR.
    out_of_sync: int


class BrokerOutages:
    """A metadata publisher. Counts the partitions of brokers that were fenced or shut down until all are in sync."""

    def __init__(self, *, is_active: Callable[[], bool], now_ms: Callable[[], int]) -> None:
        """`is_active`: whether this node is the active controller, the one that logs. `now_ms` is of the loop."""
        self._is_active = is_active
        self._now_ms = now_ms
        self._outages: dict[NodeId, _Outage] = {}

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        begun: list[NodeId] = []
        for broker_id, broker in delta.brokers.items():
            before = delta.base.brokers.get(broker_id)
            if broker is None:
                self._outages.pop(NodeId(broker_id), None)
            elif before is not None and before.is_active and not broker.is_active:
                begun.append(broker.id)
        if self._outages:
            self._count_changes(delta)
        for broker_id in begun:
            self._begin(broker_id, delta, image)
        for broker_id, outage in list(self._outages.items()):
            if outage.out_of_sync == 0 and image.brokers[broker_id].is_active:
                self._end(broker_id, outage)

    def _begin(self, broker_id: NodeId, delta: MetadataDelta, image: MetadataImage) -> None:
        all_partitions = (one for topic in image.topics.by_name.values() for one in topic.partitions)
        lacking = [one for one in all_partitions if broker_id in one.replicas and broker_id not in one.isr]
        self._outages[broker_id] = _Outage(self._now_ms(), len(lacking))
        if not self._is_active():
            return
        left_isr = moved = leaderless = 0
        for before, after in _changed(delta):
            if before is None or after is None:
                continue
            left_isr += broker_id in before.isr and broker_id not in after.isr
            if before.leader == broker_id != after.leader:
                moved += after.leader >= 0
                leaderless += after.leader < 0
        has_said_so = image.brokers[broker_id].in_controlled_shutdown
        logger.warning(
            "Broker left: broker=%d reason=%s out_of_isr=%d leaders_moved=%d without_leader=%d",
            broker_id,
            "controlled shutdown" if has_said_so else "fenced",
            left_isr,
            moved,
            leaderless,
        )

    def _count_changes(self, delta: MetadataDelta) -> None:
        for before, after in _changed(delta):
            for broker_id, outage in self._outages.items():
                outage.out_of_sync += _is_out_of_sync(after, broker_id) - _is_out_of_sync(before, broker_id)

    def _end(self, broker_id: NodeId, outage: _Outage) -> None:
        del self._outages[broker_id]
        if self._is_active():
            after_ms = self._now_ms() - outage.since_ms
            logger.info("Broker back, all its replicas are in sync: broker=%d after_ms=%d", broker_id, after_ms)


def _changed(delta: MetadataDelta) -> Iterator[tuple[PartitionRegistration | None, PartitionRegistration | None]]:
    """Each changed partition before and after; None for a partition that is new or deleted."""
    for topic in delta.topics.changed.values():
        for index, after in topic.changed.items():
            yield topic.base_partition(index), after
    for deleted in delta.topics.deleted.values():
        for before in deleted.partitions:
            yield before, None


def _is_out_of_sync(partition: PartitionRegistration | None, broker_id: NodeId) -> bool:
    return partition is not None and broker_id in partition.replicas and broker_id not in partition.isr
