"""How far one follower has come, as far as its fetches tell the leader."""

NEVER_MS = -(2**62)
UNKNOWN_OFFSET = -1
SUSPICIOUS_COUNT = 4
"""Times that a follower is sent the same, a power of two: it takes about 140 ms to ask so often."""


class FollowerProgress:
    """`log_end_offset` is where its last fetch began: it has, durably as its configuration wants, all below.

    A follower is caught up at a time when it has all that the leader had then. One that fetches without a pause is
    always a little behind a busy leader, so a fetch that reaches what the leader had at the fetch before counts for the
    time of that one.
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

    def __init__(self, broker_id: int, *, last_caught_up_ms: int) -> None:
        self.broker_id = broker_id
        self.last_caught_up_ms = last_caught_up_ms
        # None until it has fetched in this leadership.
        self.broker_epoch: int | None = None
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_fetch_ms = NEVER_MS
        self.last_fetch_leader_end_offset = UNKNOWN_OFFSET
        # From where it was sent records last, and how often in a row.
        self.sent_offset = UNKNOWN_OFFSET
        self.sent_count = 0

    def on_fetch(
        self,
        *,
        fetch_offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        broker_epoch: int,
        now_ms: int,
    ) -> bool:
        """Whether its log end has moved."""
        if broker_epoch != self.broker_epoch is not None:
            # Another process, maybe on other disks: that the one before had everything says nothing of this one, which
            # would hold up the high watermark as if it had.
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
        """It had all that there was, and was heard: nothing has happened since its last fetch."""
        if self.broker_epoch is not None:
            self.last_fetch_ms = max(self.last_fetch_ms, heard_ms)
            self.last_caught_up_ms = max(self.last_caught_up_ms, heard_ms)

    def on_sent(self, offset: int) -> bool:
        """It is sent records from `offset` on; True when it was so often that something may be wrong with them.

        A follower refuses what does not have its CRC, and asks for it again. Others that ask again lost a connection,
        or have no room: for them the bytes are looked at in vain, ever more rarely.
        """
        if offset != self.sent_offset:
            self.sent_offset = offset
            self.sent_count = 0
        self.sent_count += 1
        count = self.sent_count
        return count >= SUSPICIOUS_COUNT and count & (count - 1) == 0

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        """Whether it has all that the leader has, or had within the last `lag_ms_max`."""
        return self.log_end_offset >= leader_end_offset or now_ms - self.last_caught_up_ms <= lag_ms_max
