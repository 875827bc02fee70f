"""When a node makes a snapshot of the metadata by itself (KIP-630, KIP-876)."""


class SnapshotSchedule:
    """The rules of one node. As in Kafka, time counts from its start, and nothing new needs no snapshot.

    - `max_bytes` (`metadata.log.max.record.bytes.between.snapshots`): how much a start may have to replay.
    - `interval_ms` (`metadata.log.max.snapshot.interval.ms`): how long new records may be in the log only; 0: no limit.
    """

    def __init__(self, *, max_bytes: int, interval_ms: int, now_ms: int) -> None:
        self._max_bytes = max_bytes
        self._interval_ms = interval_ms
        self._last_ms = now_ms

    def on_snapshot(self, now_ms: int) -> None:
        """Hear that one is begun, or came from elsewhere."""
        self._last_ms = now_ms

    def is_due(self, *, new_bytes: int, has_new: bool, now_ms: int) -> bool:
        if not has_new:
            return False
        return new_bytes >= self._max_bytes or (self._interval_ms > 0 and now_ms - self._last_ms >= self._interval_ms)

    def next_check_ms(self) -> int | None:
        """Return when one may be due although nothing was written; None for never."""
        return self._last_ms + self._interval_ms if self._interval_ms > 0 else None
