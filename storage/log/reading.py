"""What is asked of a log, and changes nothing: batches by offset, offsets by time, aborted transactions, segments.

Kafka: `UnifiedLog.read`, `fetchOffsetByTimestamp`, `collectAbortedTransactions`.
"""

from collections.abc import Mapping

from ...protocol.errors import ErrorCode, KafkaError
from ..disk.rules.disk_errors import ClosedError
from .batch_check import check_batches
from .file_slice import NOTHING, FetchData
from .rules.aborted_transaction import AbortedTransaction
from .rules.file_names import INDEX_SUFFIXES, LOG, PRODUCER_SNAPSHOT
from .segment import Segment
from .timestamp_lookup import TimestampOffset, find_by_timestamp, find_max_timestamp
from .truncation import TruncatableLog


class ReadableLog(TruncatableLog):
    """The part of a `Log` that reads."""

    __slots__ = ()

    def read(self, start_offset: int, *, max_bytes: int, end_offset: int, min_one_batch: bool) -> FetchData:
        """Batches from the one that holds `start_offset` on, none that ends at or after `end_offset`, of one segment.

        At most `max_bytes`, possibly cut off within a batch, but never within the first: that comes whole with
        `min_one_batch`, and else not at all.
        KafkaError OFFSET_OUT_OF_RANGE when `start_offset` is not in [log start offset, log end offset], and
        OFFSET_MOVED_TO_TIERED_STORAGE when only the tier has it.
        """
        log_end_offset = self.log_end_offset
        if start_offset > log_end_offset or start_offset < self.local_log_start_offset:
            if self.log_start_offset <= start_offset < self.local_log_start_offset:
                raise KafkaError(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {start_offset} for partition {self.name}, but we only have log segments "
                f"from {self.log_start_offset} upto {log_end_offset}.",
            )
        if start_offset >= end_offset or start_offset == log_end_offset:
            return NOTHING
        return self._segments.read(
            start_offset, end_offset, log_end_offset, max_bytes=max_bytes, min_one_batch=min_one_batch
        )

    def check(self, offset: int, size: int) -> None:
        """Read `size` bytes of batches from `offset` on, waiting, and check each. CorruptData, OSError."""
        gaps = self._config.is_compacted
        check_batches(self._segments, offset, size, self.leader_epochs, self.log_end_offset, may_have_gaps=gaps)

    def offset_for_timestamp(self, timestamp_ms: int, end_offset: int) -> TimestampOffset | None:
        """The first record below `end_offset` whose timestamp is at least `timestamp_ms`."""
        found = find_by_timestamp(
            self._segments.from_slot(self._segments.slot_of(self.log_start_offset)), timestamp_ms, self.log_start_offset
        )
        return found if found is not None and found.offset < end_offset else None

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp of all (KIP-734)."""
        return find_max_timestamp(self._segments)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that have records in [start_offset, end_offset)."""
        return self._segments.aborted_transactions(start_offset, end_offset)

    def aborted_since(self, offset: int) -> list[AbortedTransaction]:
        """The transactions whose abort markers are at or above `offset`."""
        return self.aborted_transactions(offset, self.log_end_offset)

    def aborted_transactions_in(self, data: FetchData, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Those that have records in `data`, which was just read from `start_offset` up to `end_offset`, and maybe a
        few behind it, not the whole index for a reader far from the end."""
        return self.aborted_transactions(start_offset, self._segments.end_of(data, start_offset, end_offset))

    def last_stable_offset(self, high_watermark: int) -> int:
        """What a read_committed consumer may read up to: at most the high watermark."""
        offset = self.producers.last_stable_offset(high_watermark)
        return offset if offset > self.log_start_offset else self.log_start_offset

    # Segments

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    def size_from(self, offset: int) -> int:
        """Bytes of the segments that begin at `offset` or above."""
        return sum(segment.size_bytes for segment in self._segments if segment.base_offset >= offset)

    def closed_size_from(self, offset: int) -> int:
        """Bytes of the closed segments that end above `offset`."""
        return sum(
            segment.size_bytes for segment in self.inactive_segments if self.segment_end_offset(segment) > offset
        )

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def active_segment_base_offset(self) -> int:
        return self._segments.active.base_offset

    @property
    def inactive_segments(self) -> list[Segment]:
        """Those that are not appended to any more, in offset order."""
        return self._segments.from_slot(0)[:-1]

    @property
    def written_segments(self) -> list[Segment]:
        """Those that are not appended to any more, and the active one when it has a batch, in offset order."""
        return self._segments.from_slot(0) if self._segments.active.size_bytes else self.inactive_segments

    def segment_base_offset_of(self, offset: int) -> int:
        """Where the segment begins that `offset` lies in; 0 when it lies below all."""
        base_offset = self._segments[self._segments.slot_of(offset)].base_offset
        return base_offset if base_offset <= offset else 0

    def tier_parts(self, segment: Segment) -> Mapping[str, str]:
        """The paths of what the tier gets with a closed segment, by the names of `file_names`: those that exist.

        ClosedError when the log does not have the segment any more, OSError when the disk has no room for what the
        indexes still have in memory.
        """
        end_offset = self.segment_end_offset(segment)
        # Recovery on a full disk leaves them there.
        segment.write_indexes()
        paths = {suffix: segment.path(suffix) for suffix in INDEX_SUFFIXES if self._files.exists(segment.path(suffix))}
        snapshot = self._snapshots.path(end_offset)
        if end_offset in self._snapshots.offsets and self._files.exists(snapshot):
            paths[PRODUCER_SNAPSHOT] = snapshot
        return paths

    def segment_end_offset(self, segment: Segment) -> int:
        """Where the segment behind a closed one begins. ClosedError when the log does not have it any more."""
        slot = self._segments.slot_of(segment.base_offset)
        if self._segments[slot] is not segment:
            raise ClosedError(f"{segment.path(LOG)} is deleted")
        return self._segments[slot + 1].base_offset

    def read_file(self, path: str) -> bytes:
        """One of `tier_parts`, waiting: for an executor. OSError."""
        return self._files.read(path)
