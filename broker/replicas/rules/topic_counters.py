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
        "failed_remote_copies",
        "failed_remote_deletes",
        "failed_remote_fetches",
        "fetches",
        "messages_in",
        "produces",
        "remote_copies",
        "remote_copy_bytes",
        "remote_deletes",
        "remote_fetch_bytes",
        "remote_fetches",
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
        self.remote_copies = 0
        """Segments whose copy to the tier was begun here (KIP-405); then bytes, and failures."""
        self.remote_copy_bytes = 0
        self.failed_remote_copies = 0
        self.remote_fetches = 0
        """Reads that waited for the tier."""
        self.remote_fetch_bytes = 0
        """From the tier, in answers to consumers."""
        self.failed_remote_fetches = 0
        self.remote_deletes = 0
        """Segments whose deletion in the tier was begun here."""
        self.failed_remote_deletes = 0

    def add(self, other: TopicCounters) -> None:
        """Adds another topic's, for totals."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
