"""Whether the indexes of a segment say what its batches say: one rule for scrubbing and for inspections.

Kafka: `DumpLogSegments` with `--verify-index-only`. Each check is told the batches in the order of the file, and tells
each fault as a sentence.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from ....protocol.batches import NO_TIMESTAMP, BatchHeader
from .aborted_transaction import AbortedTransaction


class OffsetIndexCheck:
    """Entries of (last offset of a batch, position of a batch), both rising.

    Apache Kafka indexes several batches that arrived together by where the first begins and the last ends.
    """

    __slots__ = ("_entries", "_last_position", "_on_fault", "_pending", "_slot")

    def __init__(self, entries: Sequence[tuple[int, int]], on_fault: Callable[[str], None]) -> None:
        self._entries = entries
        self._on_fault = on_fault
        self._slot = 0
        self._last_position = 0
        # Offset and position of an entry whose batches have not ended yet, and where the first of them ends.
        self._pending: tuple[int, int, int] | None = None
        for (offset, position), (following, following_position) in pairwise(entries):
            if following <= offset or following_position <= position:
                on_fault(
                    f"the entry of offset {following} at {following_position} follows the one of offset {offset} at "
                    f"{position}"
                )
                self._entries = ()
                break

    def add(self, position: int, header: BatchHeader) -> None:
        self._last_position = position
        entries, last_offset = self._entries, header.last_offset
        while self._slot < len(entries) and entries[self._slot][1] <= position:
            offset, indexed = entries[self._slot]
            self._slot += 1
            if indexed < position:
                self._on_fault(f"the entry of offset {offset} says {indexed}, where no intact batch begins")
            else:
                self._tell_pending()
                self._pending = offset, indexed, last_offset
        if self._pending is not None and last_offset >= self._pending[0]:
            if last_offset == self._pending[0]:
                self._pending = None
            self._tell_pending()

    def _tell_pending(self) -> None:
        if self._pending is not None:
            offset, position, last_offset = self._pending
            self._pending = None
            self._on_fault(
                f"the entry of offset {offset} says {position}, where the batch ends with offset {last_offset}"
            )

    def end(self, *, interval_bytes: int | None = None) -> None:
        """All batches were told. `interval_bytes` is after how many bytes there is to be an entry, where that is
        known."""
        self._tell_pending()
        for offset, position in self._entries[self._slot :]:
            self._on_fault(f"the entry of offset {offset} says {position}, which is behind the last intact batch")
        if interval_bytes is not None and not self._entries and self._last_position > interval_bytes:
            self._on_fault(f"it has no entry, and batches up to position {self._last_position}")


class TimeIndexCheck:
    """Entries of (largest timestamp so far, offset of a batch that has it); timestamps rise, offsets do not fall."""

    __slots__ = ("_entries", "_largest", "_last", "_on_fault", "_slot")

    def __init__(self, entries: Sequence[tuple[int, int]], on_fault: Callable[[str], None]) -> None:
        self._entries = entries
        self._on_fault = on_fault
        self._slot = 0
        self._largest = NO_TIMESTAMP
        self._last = entries[-1][0] if entries else NO_TIMESTAMP
        for (timestamp, offset), (following, following_offset) in pairwise(entries):
            if following <= timestamp or following_offset < offset:
                on_fault(
                    f"the entry of timestamp {following} and offset {following_offset} follows the one of timestamp "
                    f"{timestamp} and offset {offset}"
                )
                self._entries = ()
                break

    def add(self, header: BatchHeader) -> None:
        entries = self._entries
        while self._slot < len(entries) and entries[self._slot][1] <= header.last_offset:
            timestamp, offset = entries[self._slot]
            self._slot += 1
            if offset < header.base_offset:
                self._on_fault(f"the entry of timestamp {timestamp} says offset {offset}, which is missing")
            elif timestamp != header.max_timestamp:
                self._on_fault(
                    f"the entry of timestamp {timestamp} says offset {offset}, whose batch has the timestamp "
                    f"{header.max_timestamp}"
                )
            if self._largest > timestamp:
                self._on_fault(
                    f"before offset {offset} of the entry of timestamp {timestamp} there is a record of timestamp "
                    f"{self._largest}"
                )
        self._largest = max(self._largest, header.records_timestamp)

    def end(self, *, is_closed: bool) -> None:
        """All batches were told. The last entry of a closed segment is its largest timestamp."""
        for timestamp, offset in self._entries[self._slot :]:
            self._on_fault(f"the entry of timestamp {timestamp} says offset {offset}, which the segment does not have")
        if is_closed and self._largest > self._last:
            self._on_fault(
                f"the last entry is of timestamp {self._last}, and the segment has records up to {self._largest}"
            )


class SegmentIndexCheck:
    """Both of a segment, whose entries are as in their files: with offsets from `base_offset` on."""

    __slots__ = ("_offsets", "_times")

    def __init__(
        self,
        base_offset: int,
        offset_entries: Iterable[tuple[int, int]],
        time_entries: Iterable[tuple[int, int]],
        *,
        on_offset_fault: Callable[[str], None],
        on_time_fault: Callable[[str], None],
    ) -> None:
        self._offsets = OffsetIndexCheck(
            [(base_offset + delta, position) for delta, position in offset_entries], on_offset_fault
        )
        self._times = TimeIndexCheck(
            [(timestamp, base_offset + delta) for timestamp, delta in time_entries], on_time_fault
        )

    def add(self, position: int, header: BatchHeader) -> None:
        self._offsets.add(position, header)
        self._times.add(header)

    def end(self, *, interval_bytes: int) -> None:
        """All batches of a closed segment were told."""
        self._offsets.end(interval_bytes=interval_bytes)
        self._times.end(is_closed=True)


def aborted_faults(
    entries: Sequence[AbortedTransaction], aborted: Sequence[AbortedTransaction], *, is_complete: bool
) -> Iterator[str]:
    """What is wrong with the entries of a transaction index, where `aborted` is what the abort markers of the segment
    end: its `first_offset` is -1 where no batch of the transaction is left or was seen.

    Compaction takes batches away, so that an entry may say more than what is left. `is_complete`: no entry may lack.
    """
    by_marker = {one.last_offset: one for one in aborted}
    for entry in entries:
        one = by_marker.pop(entry.last_offset, None)
        if one is None or one.producer_id != entry.producer_id:
            yield f"at offset {entry.last_offset} producer {entry.producer_id} aborts no transaction"
        elif entry.first_offset > (entry.last_offset if one.first_offset < 0 else one.first_offset):
            yield (
                f"the transaction of producer {entry.producer_id} that is aborted at offset {entry.last_offset} "
                f"begins at {one.first_offset}, not at {entry.first_offset}"
            )
    for one in by_marker.values() if is_complete else ():
        if one.first_offset >= 0:
            yield (
                f"the transaction of producer {one.producer_id} from offset {one.first_offset} on, aborted "
                f"at {one.last_offset}, has no entry: readers would take it for committed"
            )
