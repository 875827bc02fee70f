"""One fetch session (KIP-227): its partitions, and the offsets last sent to the client. Kafka: `FetchSession`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from ....protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId

if TYPE_CHECKING:
    from ...replicas.partition import Partition

PartitionKey: TypeAlias = tuple[int | str | None, int]


def partition_key(topic: str | None, topic_id: TopicId | None, index: int) -> PartitionKey:
    """Returns a session's key for a partition. A topic id is an integer in it: UUID hashes and compares in Python."""
    return (topic if topic_id is None else topic_id.int, index)


class FetchablePartition(Struct, eq=False):
    """One partition that a client fetches: its fetch offset, and the offsets last sent. Kafka: `CachedPartition`."""

    topic: str | None
    """None while the topic id is not in the metadata."""
    topic_id: TopicId | None
    """None in requests with topic names."""
    index: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: LeaderEpoch
    last_fetched_epoch: LeaderEpoch
    log_start_offset: int = -1
    """The follower's."""
    hosted: Partition | None = None
    """Kept, so that an incremental fetch needs no lookup; only `FetchRead` decides if it is still valid."""
    sent_high_watermark: int = -1
    sent_log_start_offset: int = -1
    permit: object = None
    """By which the client may read the topic, where there is an authorizer."""

    def is_known(self, high_watermark: int, log_start_offset: int) -> bool:
        """True if an earlier response of the session had exactly these offsets."""
        return self.sent_high_watermark == high_watermark and self.sent_log_start_offset == log_start_offset

    @property
    def key(self) -> PartitionKey:
        return (self.topic if self.topic_id is None else self.topic_id.int, self.index)


class FollowerId(NamedTuple):
    """The identity of a follower's process."""

    replica_id: NodeId
    broker_epoch: BrokerEpoch


class ParkedFetch(Protocol):
    """The session's request that waits."""

    def on_ready(self, partition: FetchablePartition) -> None:
        """Something changed in the partition that can complete the request."""

    def interrupt(self) -> None:
        """Completes the request now."""


class FetchSession:
    """The partitions of one fetch session, in reading order."""

    __slots__ = ("created_ms", "epoch", "follower", "id", "last_used_ms", "parked", "partitions", "uses_ids")

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, FetchablePartition],
        *,
        follower: FollowerId | None = None,
        uses_ids: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        # None for a consumer's session.
        self.follower = follower
        self.uses_ids = uses_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1
        """The session epoch that the next request must have."""
        self.parked: ParkedFetch | None = None
        """A session has one request at a time: the next one interrupts it."""

    def wanted(self) -> tuple[FetchablePartition, ...]:
        """Returns the partitions that the next request reads."""
        return tuple(self.partitions.values())

    def on_read(self, partition: FetchablePartition) -> None:
        """Records of the partition were sent. It is read last next time: the response size is limited, and every
        partition must get its turn."""
        self.partitions[partition.key] = self.partitions.pop(partition.key)

    def on_named(self, partition: FetchablePartition) -> None:
        """A request added the partition or changed its fetch offset."""

    def on_forgotten(self, partition: FetchablePartition) -> None:
        """The partition left the session."""

    def on_end(self) -> None:
        """The session was closed."""
