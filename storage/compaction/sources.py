"""The segments that a compaction reads: their batches, each with its CRC, and the aborted transactions in them."""

from collections.abc import Iterator
from contextlib import suppress

from ...protocol.ids import NO_LEADER_EPOCH
from ..disk.files import Files
from ..disk.rules.throttle import Throttle
from ..log.index_file import CorruptIndex
from ..log.offset_index import MAX_RELATIVE_OFFSET, OffsetIndex
from ..log.rules.aborted_transaction import AbortedTransaction
from ..log.rules.batch_order import epoch_fault, offsets_fault
from ..log.rules.closed_segment import ClosedSegment
from ..log.rules.file_names import LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, segment_file
from ..log.rules.record_batch import StoredBatch
from ..log.segment_scan import BadBatch, scan
from ..log.transaction_index import TransactionIndex
from .rules.job import CompactionJob


class Sources:
    def __init__(self, files: Files, job: CompactionJob, throttle: Throttle) -> None:
        self._files = files
        self._directory = job.directory
        self._segments = job.segments
        self._end_offset = job.end_offset
        self._throttle = throttle
        self.read_bytes = 0

    def with_ends(self) -> Iterator[tuple[ClosedSegment, int]]:
        """Each segment, and where the next begins."""
        ends = [*(segment.base_offset for segment in self._segments[1:]), self._end_offset]
        return zip(self._segments, ends, strict=True)

    def batches(self, segment: ClosedSegment, position: int = 0, end: int | None = None) -> Iterator[StoredBatch]:
        """From `position`, where one begins, up to `end` or all.

        BadBatch at the first that is not intact: its CRC, or its offsets and leader epoch, which that does not cover
        and which a batch that is written anew would keep. OSError.
        """
        file = self._files.open(segment_file(self._directory, segment.base_offset, LOG))
        next_offset = segment.base_offset
        end_offset = segment.base_offset + MAX_RELATIVE_OFFSET + 1
        epoch: int = NO_LEADER_EPOCH
        due = 0
        try:
            for batch in scan(file, position, segment.size_bytes if end is None else end, verify=True):
                header = batch.header
                fault = offsets_fault(header, next_offset, end_offset) or epoch_fault(header, epoch)
                if fault is not None:
                    raise BadBatch(f"{file.path} at {batch.position}: {fault}", batch.position)
                next_offset, epoch = header.next_offset, header.partition_leader_epoch
                yield batch
                size = header.size_bytes
                self.read_bytes += size
                due += size
                if due >= _THROTTLED_BYTES:
                    self._throttle.take(due)
                    due = 0
        finally:
            file.close()
        self._throttle.take(due)

    def position_of(self, segment: ClosedSegment, offset: int) -> int:
        """A place at or before the batch with it: the beginning where the index does not tell."""
        with suppress(CorruptIndex):
            path = segment_file(self._directory, segment.base_offset, OFFSET_INDEX)
            index = OffsetIndex(self._files, path, segment.base_offset)
            try:
                index.check(segment.size_bytes)
                return index.lookup(offset)
            finally:
                index.close()
        return 0

    def index_sizes(self, segment: ClosedSegment) -> tuple[int, int]:
        """Of its offset and its time index, in bytes."""
        offsets, times = (
            self._files.size(path) if self._files.exists(path) else 0
            for path in (segment_file(self._directory, segment.base_offset, one) for one in (OFFSET_INDEX, TIME_INDEX))
        )
        return offsets, times

    def aborted_transactions(self) -> list[AbortedTransaction]:
        """Those whose markers lie in the segments. CorruptIndex."""
        found: list[AbortedTransaction] = []
        for segment in self._segments:
            path = segment_file(self._directory, segment.base_offset, TRANSACTION_INDEX)
            if self._files.exists(path):
                found += TransactionIndex(self._files, path).entries
        return found


_THROTTLED_BYTES = 256 * 1024
