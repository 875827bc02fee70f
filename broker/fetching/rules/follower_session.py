"""The fetch session of a follower: it looks only at partitions that may have something to tell.

A follower fetches everything of a leader in one session, thousands of partitions of which few change between two of its
requests. So the session is told of what happens to a partition (`stir`, `note`), instead of looking; a partition in
which the follower has everything, knows all offsets and is in sync rests until then (`settle`). That it rests also says
that the follower had all there was at each of its requests: the leader is told so when something happens
(`on_follower_heard`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .fetch_session import FetchablePartition, FetchSession, FollowerId, PartitionKey

if TYPE_CHECKING:
    from ...replicas.hosted_partition import HostedPartition


class FollowerSession(FetchSession):
    __slots__ = ("on_stirred", "replica_id", "stirred")

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
        # Nobody has watched them yet.
        self.stirred = dict.fromkeys(partitions.values())
        for partition in partitions.values():
            if partition.hosted is not None:
                self.watch(partition, partition.hosted)
        # Of the parked request.
        self.on_stirred: Callable[[FetchablePartition], None] | None = None

    def on_answered(self) -> None:
        super().on_answered()
        self.on_stirred = None

    def wanted(self) -> tuple[FetchablePartition, ...]:
        return tuple(self.stirred)

    def watch(self, partition: FetchablePartition, hosted: HostedPartition) -> None:
        """What happens to `hosted` concerns the partition."""
        hosted.watchers[partition] = self

    def note(self, partition: FetchablePartition) -> None:
        """There is something to tell of a partition, with whatever is told next."""
        if partition not in self.stirred:
            self.stirred[partition] = None
            if partition.hosted is not None:
                partition.hosted.partition.on_follower_heard(self.replica_id, self.last_used_ms)

    def stir(self, partition: FetchablePartition) -> None:
        """Something has happened to a partition that the follower may wait for."""
        self.note(partition)
        if self.on_stirred is not None:
            self.on_stirred(partition)

    def settle(self, partition: FetchablePartition) -> None:
        """The follower has everything of it, and knows so."""
        self.stirred.pop(partition, None)

    def on_read(self, partition: FetchablePartition) -> None:
        super().on_read(partition)
        self.stirred.pop(partition, None)
        self.stirred[partition] = None

    def on_named(self, partition: FetchablePartition) -> None:
        self.stirred[partition] = None
        # A follower that moved before an answer came has thrown that away, with the offsets that it was told there.
        partition.sent_high_watermark = -1

    def on_forgotten(self, partition: FetchablePartition) -> None:
        self.stirred.pop(partition, None)
        if partition.hosted is not None:
            partition.hosted.watchers.pop(partition, None)

    def on_end(self) -> None:
        for partition in self.partitions.values():
            self.on_forgotten(partition)
