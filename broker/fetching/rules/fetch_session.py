"""One fetch session (KIP-227): its partitions, and what the client knows of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from uuid import UUID

    from ...replicas.partition import Partition

PartitionKey: TypeAlias = tuple[int | str | None, int]


def partition_key(topic: str | None, topic_id: UUID | None, index: int) -> PartitionKey:
    """By what a session knows a partition. An id counts as a number: UUID compares and hashes in Python code."""
    return (topic if topic_id is None else topic_id.int, index)


class FetchablePartition:
    """One partition that a client fetches: where it stands, and what it was told last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "hosted",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str | None,
        topic_id: UUID | None,
        index: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
        log_start_offset: int = -1,
    ) -> None:
        self.topic = topic
        """None while a topic id has not been found in the metadata yet."""
        self.topic_id = topic_id
        """None in requests that name their topics."""
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        # A follower's own.
        self.log_start_offset = log_start_offset
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        # Found once and kept, so that an incremental fetch looks nothing up; the fetch handler alone judges it.
        self.hosted: Partition | None = None

    def is_known(self, high_watermark: int, log_start_offset: int) -> bool:
        """Whether the client was told exactly this in an earlier answer of the session."""
        return self.sent_high_watermark == high_watermark and self.sent_log_start_offset == log_start_offset

    @property
    def key(self) -> PartitionKey:
        return (self.topic if self.topic_id is None else self.topic_id.int, self.index)


class FollowerId(NamedTuple):
    """A process that follows."""

    replica_id: int
    broker_epoch: int


class FetchSession:
    """The partitions of one session, in the order in which they are read."""

    __slots__ = ("created_ms", "epoch", "follower", "id", "interrupt", "last_used_ms", "partitions", "uses_ids")

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
        # Whose it is, if not a client's.
        self.follower = follower
        self.uses_ids = uses_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1
        """What the next request must carry."""
        self.interrupt: Callable[[], None] | None = None
        """Answers the session's parked request now. One request of a session at a time: the next one calls this."""

    def on_answered(self) -> None:
        """No request of it is parked any more."""
        self.interrupt = None

    def wanted(self) -> tuple[FetchablePartition, ...]:
        """What the next request is to look at."""
        return tuple(self.partitions.values())

    def on_read(self, partition: FetchablePartition) -> None:
        """Records of it were sent. It is read last next time: every partition gets its turn though the response's size
        is limited."""
        self.partitions[partition.key] = self.partitions.pop(partition.key)

    def on_named(self, partition: FetchablePartition) -> None:
        """A request names a partition: it is new, or has moved."""

    def on_forgotten(self, partition: FetchablePartition) -> None:
        """A partition is no part of the session any more."""

    def on_end(self) -> None:
        """The session is over."""
