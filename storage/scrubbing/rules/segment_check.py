"""Whether batches of a segment follow each other, and which transactions they abort."""

from collections.abc import Sequence

from ....protocol.batches import BatchHeader
from ....protocol.ids import NO_LEADER_EPOCH
from ...log.rules.aborted_transaction import AbortedTransaction
from ...log.rules.batch_order import epoch_fault, offsets_fault
from ...log.rules.index_check import aborted_faults
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


class Transactions:
    """Which are open, as far as is known, and which were aborted, batch by batch."""

    __slots__ = ("_are_all_known", "_markers", "_open", "aborted")

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
        self._markers: list[AbortedTransaction] = []

    def forget(self) -> None:
        """Batches are left out."""
        self._open = {}
        self._are_all_known = False

    def add(self, header: BatchHeader, marker: EndTransactionMarker | None) -> None:
        producer_id = header.producer_id
        if not header.is_control:
            # Compaction leaves the header of a producer's last batch, of which no record is there.
            if header.is_transactional and header.record_count:
                self._open.setdefault(producer_id, header.base_offset)
            return
        if marker is None:
            return
        first_offset = self._open.pop(producer_id, None)
        if not marker.is_abort:
            return
        one = AbortedTransaction(producer_id, -1, header.base_offset, -1)
        if first_offset is not None:
            stable = min(self._open.values(), default=header.base_offset + 1)
            one = AbortedTransaction(producer_id, first_offset, header.base_offset, stable)
            self.aborted.append(one)
        # All abort markers: where a transaction began may lie before what was read.
        self._markers.append(one)

    def index_fault(self, entries: Sequence[AbortedTransaction], *, is_compacted: bool) -> str | None:
        """What is wrong with the index of the segment."""
        if self._are_all_known and not is_compacted:
            return (
                None if list(entries) == self.aborted else f"it has {len(entries)} entries that are not {self.aborted}"
            )
        return next(aborted_faults(entries, self._markers, is_complete=True), None)
