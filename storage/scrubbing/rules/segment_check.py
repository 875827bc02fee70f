"""Whether batches of a segment follow each other, and what its indexes say of them is so."""

from collections.abc import Sequence
from itertools import pairwise

from ....protocol.batches import NO_TIMESTAMP, BatchHeader
from ....protocol.ids import NO_LEADER_EPOCH
from ...log.rules.aborted_transaction import AbortedTransaction
from ...log.rules.batch_order import epoch_fault, offsets_fault
from ...log.rules.producer_state import EndTransactionMarker


class BatchOrder:
    """Offsets, which rise, and leader epochs, which are those that the partition knows: no CRC covers them.

    Where one batch between others is not of the epoch that is known, it is the batch that is damaged; where several are
    not, it is what is known.
    """

    __slots__ = ("_doubted", "_known", "_log_start_offset", "_slot", "epoch", "epochs", "is_known_wrong")

    def __init__(self, leader_epochs: Sequence[tuple[int, int]], log_start_offset: int) -> None:
        self._known = leader_epochs
        self._log_start_offset = log_start_offset
        self._slot = -1
        self.epoch = int(NO_LEADER_EPOCH)
        self.epochs: list[tuple[int, int]] = []
        """(epoch, start offset), by the batches."""
        self.is_known_wrong = False
        self._doubted: int | None = None

    def fault(self, header: BatchHeader, next_offset: int, end_offset: int) -> tuple[int, str] | None:
        """The offset of the batch that is damaged, this one or the one before, and why; this one is at or behind
        `next_offset`, and ends before `end_offset`."""
        reason = offsets_fault(header, next_offset, end_offset)
        if reason is not None:
            return next_offset, reason
        base_offset, epoch = header.base_offset, header.partition_leader_epoch
        if epoch != self.epoch:
            reason = epoch_fault(header, self.epoch)
            if reason is not None and self._doubted is None:
                return base_offset, reason
            self.epoch = epoch
            if epoch >= 0:
                self.epochs.append((epoch, base_offset))
        return self._doubt(epoch, base_offset)

    def _doubt(self, epoch: int, base_offset: int) -> tuple[int, str] | None:
        known = self._known
        while self._slot + 1 < len(known) and known[self._slot + 1][1] <= base_offset:
            self._slot += 1
        if self._slot < 0 and base_offset >= self._log_start_offset and epoch >= 0:
            self.is_known_wrong = True
        if self._slot < 0 or self.is_known_wrong:
            return None
        doubted = self._doubted
        if epoch in (known[self._slot][0], NO_LEADER_EPOCH):
            self._doubted = None
            return None if doubted is None else (doubted, f"the batch at {doubted} is not of the leader epoch known")
        if doubted is None:
            self._doubted = base_offset
        else:
            self.is_known_wrong = True
        return None


class OffsetIndexCheck:
    """Entries of (last offset of a batch, its position), both as they are stored, in the order of the file.

    Apache Kafka indexes several batches that arrived together by where the first begins and the last ends.
    """

    __slots__ = ("_base_offset", "_entries", "_interval_bytes", "_last_position", "_slot", "fault")

    def __init__(self, base_offset: int, entries: Sequence[tuple[int, int]], interval_bytes: int) -> None:
        self._base_offset = base_offset
        self._entries = entries
        self._interval_bytes = interval_bytes
        self._last_position = 0
        self._slot = 0
        self.fault: str | None = None
        if any(after[0] <= before[0] or after[1] <= before[1] for before, after in pairwise(entries)):
            self.fault = "its entries do not rise"

    def add(self, position: int, header: BatchHeader) -> None:
        self._last_position = position
        if self.fault is not None or self._slot == len(self._entries):
            return
        relative_offset, indexed = self._entries[self._slot]
        if indexed > position:
            return
        if indexed < position or relative_offset < header.last_offset - self._base_offset:
            self.fault = f"entry {self._slot} says offset +{relative_offset} at {indexed}"
        self._slot += 1

    def end(self) -> str | None:
        """The first fault, once all batches were added."""
        if self.fault is None and self._slot < len(self._entries):
            self.fault = f"entry {self._slot} is behind the last batch"
        if self.fault is None and not self._entries and self._last_position > self._interval_bytes:
            self.fault = "it is empty"
        return self.fault


class TimeIndexCheck:
    """Entries of (largest timestamp so far, offset of a batch that has it)."""

    __slots__ = ("_base_offset", "_entries", "_largest", "_slot", "fault")

    def __init__(self, base_offset: int, entries: Sequence[tuple[int, int]]) -> None:
        self._base_offset = base_offset
        self._entries = entries
        self._slot = 0
        self._largest = NO_TIMESTAMP
        self.fault: str | None = None
        if any(after[0] <= before[0] or after[1] < before[1] for before, after in pairwise(entries)):
            self.fault = "its entries do not rise"

    def add(self, header: BatchHeader) -> None:
        self._largest = max(self._largest, header.records_timestamp)
        if self.fault is not None:
            return
        relative_end = header.last_offset - self._base_offset
        while self._slot < len(self._entries) and self._entries[self._slot][1] <= relative_end:
            timestamp, relative_offset = self._entries[self._slot]
            if timestamp != self._largest:
                self.fault = f"entry {self._slot} says timestamp {timestamp} at offset +{relative_offset}"
                return
            self._slot += 1

    def end(self) -> str | None:
        """The first fault, once all batches were added. The last entry is the largest timestamp."""
        if self.fault is None and self._slot < len(self._entries):
            self.fault = f"entry {self._slot} is behind the last batch"
        if self.fault is None and self._largest != (self._entries[-1][0] if self._entries else NO_TIMESTAMP):
            self.fault = f"it does not end in the largest timestamp, {self._largest}"
        return self.fault


class Transactions:
    """Which are open, as far as is known, and which were aborted, batch by batch."""

    __slots__ = ("_are_all_known", "_open", "aborted", "markers")

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._are_all_known = False
        self.begin_segment()

    def begin_segment(self, open_transactions: dict[int, int] | None = None) -> None:
        """With the first offset of what was open there, by producer, where that is known."""
        if open_transactions is not None:
            self._open = open_transactions
            self._are_all_known = True
        self.aborted: list[AbortedTransaction] = []
        """What the index of the segment must have."""
        self.markers: set[tuple[int, int]] = set()
        """(producer id, offset) of its abort markers."""

    def forget(self) -> None:
        """Batches are left out."""
        self._open = {}
        self._are_all_known = False

    def add(self, header: BatchHeader, marker: EndTransactionMarker | None) -> None:
        producer_id = header.producer_id
        if not header.is_control:
            if header.is_transactional:
                self._open.setdefault(producer_id, header.base_offset)
            return
        if marker is None:
            return
        first_offset = self._open.pop(producer_id, None)
        if not marker.is_abort:
            return
        self.markers.add((producer_id, header.base_offset))
        if first_offset is not None:
            stable = min(self._open.values(), default=header.base_offset + 1)
            self.aborted.append(AbortedTransaction(producer_id, first_offset, header.base_offset, stable))

    def index_fault(self, entries: Sequence[AbortedTransaction], *, is_compacted: bool) -> str | None:
        """What is wrong with the index of the segment."""
        if self._are_all_known and not is_compacted:
            return (
                None if list(entries) == self.aborted else f"it has {len(entries)} entries that are not {self.aborted}"
            )
        # Compaction leaves entries of which no record is left.
        first_offsets = {(one.producer_id, one.last_offset): one.first_offset for one in entries}
        for key in first_offsets:
            if key not in self.markers:
                return f"there is no abort marker of producer {key[0]} at offset {key[1]}"
        for one in self.aborted:
            known = first_offsets.get((one.producer_id, one.last_offset))
            if known is None or known > one.first_offset:
                return f"it lacks {one}"
        return None
