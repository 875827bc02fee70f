"""The fetch session of a follower (KIP-227), which reads only the partitions that are ready.

A follower fetches all partitions of a leader in one session: thousands, of which few change between two requests. A
partition is idle (`mark_idle`) while the follower has every record, knows all offsets and is in sync. An append or a
change of an offset makes it ready (`mark_ready`, `mark_changed`). An idle partition also proves that the follower was
caught up at each of its requests; the leader's state is updated when the partition gets ready (`on_follower_heard`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .fetch_session import FetchablePartition, FetchSession, FollowerId, PartitionKey

if TYPE_CHECKING:
    from ...replicas.partition import Partition


class FollowerSession(FetchSession):
    __slots__ = ("ready", "replica_id")

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, FetchablePartition],
        *,
        follower: FollowerId,
        uses_ids: bool,
        now_ms: int,
    ) -> None:
        super().__init__(session_id, partitions, follower=follower, uses_ids=uses_ids, now_ms=now_ms)
        self.replica_id = follower.replica_id
        # All partitions are ready at first: their changes were not watched yet.
        self.ready = dict.fromkeys(partitions.values())
        for partition in partitions.values():
            if partition.hosted is not None:
                self.watch(partition, partition.hosted)

    def wanted(self) -> tuple[FetchablePartition, ...]:
        return tuple(self.ready)

    def watch(self, partition: FetchablePartition, hosted: Partition) -> None:
        """Subscribes the session's partition to changes of `hosted`."""
        hosted.watchers[partition] = self

    def mark_changed(self, partition: FetchablePartition) -> None:
        """An offset of the partition changed; the next response carries it."""
        if partition not in self.ready:
            self.ready[partition] = None
            if partition.hosted is not None:
                partition.hosted.state.on_follower_heard(self.replica_id, self.last_used_ms)

    def mark_ready(self, partition: FetchablePartition) -> None:
        """Something changed in the partition that can complete the parked request."""
        self.mark_changed(partition)
        if self.parked is not None:
            self.parked.on_ready(partition)

    def mark_idle(self, partition: FetchablePartition) -> None:
        """The follower has all records and offsets of the partition."""
        self.ready.pop(partition, None)

    def on_read(self, partition: FetchablePartition) -> None:
        super().on_read(partition)
        self.ready.pop(partition, None)
        self.ready[partition] = None

    def on_named(self, partition: FetchablePartition) -> None:
        self.ready[partition] = None
        # A follower that changed its fetch offset before a response came discarded that response and its offsets.
        partition.sent_high_watermark = -1

    def on_forgotten(self, partition: FetchablePartition) -> None:
        self.ready.pop(partition, None)
        if partition.hosted is not None:
            partition.hosted.watchers.pop(partition, None)

    def on_end(self) -> None:
        for partition in self.partitions.values():
            self.on_forgotten(partition)
