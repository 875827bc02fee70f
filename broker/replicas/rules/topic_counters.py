"""What the replicas of one topic on this node took in and gave out, since start. Kafka: `BrokerTopicMetrics`.

Plain integers: the path of records adds to them, and metrics read them.
"""

from __future__ import annotations


class TopicCounters:
    """All partitions of a topic that are hosted here share one."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        """Records that were appended here as the leader."""
        self.bytes_in = 0
        self.bytes_out = 0
        """Sent to consumers."""
        self.bytes_rejected = 0
        """Of batches that were larger than `max.message.bytes`."""
        self.produces = 0
        """Batches that this replica, as the leader, was to append."""
        self.failed_produces = 0
        """Of these, those that the disk or a corrupt log refused: other refusals are the client's."""
        self.fetches = 0
        """Reads of a partition for a fetch request; an idle partition of a fetch session is not read."""
        self.failed_fetches = 0
        self.replication_bytes_in = 0
        """Fetched from leaders."""
        self.replication_bytes_out = 0
        """Sent to followers."""

    def add(self, other: TopicCounters) -> None:
        """Adds another topic's, for totals."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
