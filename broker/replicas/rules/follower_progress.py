"""The leader's replication progress for one follower, from its fetches. Kafka: `Replica`, `ReplicaState`."""

from ....protocol.ids import BrokerEpoch, NodeId

NEVER_MS = -(2**62)
UNKNOWN_OFFSET = -1
SUSPICIOUS_COUNT = 4
"""Fetches of the same offset in a row before the leader checks the batches; a power of two, reached in about 140 ms."""


def is_suspicious(count: int) -> bool:
    """Whether records that have been sent so often are to be checked now."""
    return count >= SUSPICIOUS_COUNT and count & (count - 1) == 0


class FollowerProgress:
    """`log_end_offset` is the offset of its last fetch: it has all records below, synced if its config requires it.

    A follower is caught up at a time when it has all records that the leader had then. A follower that fetches without
    a pause is always a little behind a busy leader, so a fetch offset at or above the leader's log end offset at the
    previous fetch means: caught up at the time of the previous fetch.
    """

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end_offset",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
        "sent_count",
        "sent_offset",
    )

    def __init__(self, broker_id: NodeId, *, last_caught_up_ms: int) -> None:
        self.broker_id = broker_id
        self.last_caught_up_ms = last_caught_up_ms
        # None until it has fetched in this leadership.
        self.broker_epoch: BrokerEpoch | None = None
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_fetch_ms = NEVER_MS
        self.last_fetch_leader_end_offset = UNKNOWN_OFFSET
        # The offset at which records were sent last, and how often in a row.
        self.sent_offset = UNKNOWN_OFFSET
        self.sent_count = 0

    def on_fetch(
        self,
        *,
        fetch_offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        broker_epoch: BrokerEpoch,
        now_ms: int,
    ) -> bool:
        """Updates the progress; True if the log end offset changed. Kafka: `Replica.updateFetchStateOrThrow`."""
        if broker_epoch != self.broker_epoch is not None:
            # A new process, maybe on other disks: the last one's progress proves nothing about it. If it counted as
            # caught up, it would hold back the high watermark.
            self.last_caught_up_ms = NEVER_MS
            self.last_fetch_leader_end_offset = UNKNOWN_OFFSET
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif fetch_offset >= self.last_fetch_leader_end_offset > UNKNOWN_OFFSET:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.last_fetch_ms = now_ms
        self.last_fetch_leader_end_offset = max(self.last_fetch_leader_end_offset, leader_end_offset)
        self.broker_epoch = broker_epoch
        self.log_start_offset = log_start_offset
        has_moved = fetch_offset != self.log_end_offset
        self.log_end_offset = fetch_offset
        return has_moved

    def on_heard(self, heard_ms: int) -> None:
        """The follower was idle and caught up, and fetched at `heard_ms` without naming the partition."""
        if self.broker_epoch is not None:
            self.last_fetch_ms = max(self.last_fetch_ms, heard_ms)
            self.last_caught_up_ms = max(self.last_caught_up_ms, heard_ms)

    def on_sent(self, offset: int) -> bool:
        """Records from `offset` on are sent; returns True if the same were sent so often that they may be corrupt.

        A follower refuses batches with a wrong CRC and fetches them again. A follower may also refetch after a lost
        connection or on a full disk: then the check is in vain, so it doubles its interval.
        """
        if offset != self.sent_offset:
            self.sent_offset = offset
            self.sent_count = 0
        self.sent_count += 1
        return is_suspicious(self.sent_count)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        """True if it has all records of the leader, or had them within the last `lag_ms_max`.

        Kafka: `ReplicaState.isCaughtUp`.
        """
        return self.log_end_offset >= leader_end_offset or now_ms - self.last_caught_up_ms <= lag_ms_max
