"""One scrub of a log: all of its segments is read, and nothing changed.

    batches             each has its CRC, offsets that can follow, and the leader epoch that the partition knows
    offset index        each entry is where a batch begins
    time index          each entry is the largest timestamp up to a batch, the last one of all
    transaction index   it has what is aborted in the segment, and nothing else
    producer snapshot   it has its CRC

leader epochs       those that the partition knows are those of the batches

The active segment is read as far as it went when the scrub was asked for: its batches, not its indexes.

What lies in a file that is gone is missing; the owner knows whether it was deleted or compacted since.
"""

from collections.abc import Iterator

from ...protocol.errors import CorruptData
from ..disk.files import Files
from ..disk.rules.disk_errors import ReadError
from ..disk.rules.throttle import Throttle
from ..log.index_file import CorruptIndex, IndexFile
from ..log.offset_index import OffsetIndex
from ..log.producer_snapshots import decode_snapshot
from ..log.rules.aborted_transaction import AbortedTransaction
from ..log.rules.closed_segment import ClosedSegment
from ..log.rules.control_records import read_end_transaction_marker
from ..log.rules.file_names import (
    LOG,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    segment_file,
)
from ..log.rules.index_check import SegmentIndexCheck
from ..log.segment_scan import BadBatch, scan
from ..log.time_index import TimeIndex
from ..log.transaction_index import TransactionIndex
from .rules.scrub_job import DamagedPart, Finding, Scrubbed, ScrubJob
from .rules.segment_check import BatchOrder, Transactions

_THROTTLED_BYTES = 256 * 1024


def scrub(files: Files, job: ScrubJob, throttle: Throttle) -> Iterator[Finding | Scrubbed]:
    """Each damage as it is found, and at the end what was read. OSError of a file that is there and cannot be read."""
    order = BatchOrder(job.leader_epochs, job.log_start_offset)
    transactions = Transactions()
    is_intact = True
    walk = _Walk(files, job, throttle, order, transactions)
    ends = [*(segment.base_offset for segment in job.segments[1:]), job.end_offset]
    for segment, end_offset in zip(job.segments, ends, strict=True):
        is_active = job.has_active and segment is job.segments[-1]
        findings = list(walk.check_segment(segment, end_offset, is_active=is_active))
        walk.segment_count += 1
        is_intact = is_intact and not any(one.part is DamagedPart.BATCHES for one in findings)
        yield from findings
    if is_intact and order.is_known_wrong:
        yield Finding(
            part=DamagedPart.LEADER_EPOCHS,
            base_offset=job.segments[0].base_offset,
            size_bytes=job.segments[0].size_bytes,
            offset=job.end_offset,
            reason=f"{list(job.leader_epochs)} are known",
            leader_epochs=tuple(order.epochs),
        )
    yield Scrubbed(segment_count=walk.segment_count, read_bytes=walk.read_bytes)


class _Walk:
    def __init__(
        self, files: Files, job: ScrubJob, throttle: Throttle, order: BatchOrder, transactions: Transactions
    ) -> None:
        self._files = files
        self._directory = job.directory
        self._may_have_gaps = job.may_have_gaps
        self._interval_bytes = job.index_interval_bytes
        self._throttle = throttle
        self._order = order
        self._transactions = transactions
        self.segment_count = 0
        self.read_bytes = 0

    def check_segment(self, segment: ClosedSegment, end_offset: int, *, is_active: bool) -> Iterator[Finding]:
        base_offset = segment.base_offset
        transactions = self._transactions
        open_transactions, reason = self._snapshot(base_offset)
        if reason is not None:
            yield _finding(segment, DamagedPart.PRODUCER_SNAPSHOT, base_offset, reason)
        transactions.begin_segment(open_transactions)
        # Before the batches: what is compacted meanwhile has other indexes.
        offset_faults, time_faults = _FirstFault(), _FirstFault()
        indexes = SegmentIndexCheck(
            base_offset,
            () if is_active else self._entries(OffsetIndex, base_offset, OFFSET_INDEX, offset_faults),
            () if is_active else self._entries(TimeIndex, base_offset, TIME_INDEX, time_faults),
            on_offset_fault=offset_faults.tell,
            on_time_fault=time_faults.tell,
        )
        aborted = () if is_active else self._aborted(base_offset)
        next_offset = base_offset
        due = 0
        try:
            file = self._files.open(segment_file(self._directory, base_offset, LOG))
            for batch in scan(file, 0, segment.size_bytes, verify=True):
                header = batch.header
                fault = self._order.fault(header, next_offset, end_offset)
                if fault is not None:
                    next_offset, reason = fault
                    raise BadBatch(f"{file.path} at {batch.position}: {reason}", batch.position)
                next_offset = header.next_offset
                indexes.add(batch.position, header)
                if header.is_transactional or header.is_control:
                    marker = read_end_transaction_marker(batch.data, header) if header.is_control else None
                    transactions.add(header, marker)
                due += header.size_bytes
                if due >= _THROTTLED_BYTES:
                    self._take(due)
                    due = 0
        except (CorruptData, ReadError, FileNotFoundError) as error:
            transactions.forget()
            yield _finding(segment, DamagedPart.BATCHES, next_offset, str(error))
            return
        finally:
            self._take(due)
        file.close()
        if next_offset < end_offset and not self._may_have_gaps:
            yield _finding(
                segment, DamagedPart.BATCHES, next_offset, f"offsets {next_offset} to {end_offset} are missing"
            )
        if is_active:
            return
        indexes.end(interval_bytes=self._interval_bytes)
        for part, faults in ((DamagedPart.OFFSET_INDEX, offset_faults), (DamagedPart.TIME_INDEX, time_faults)):
            if faults.first is not None and segment.size_bytes:
                yield _finding(segment, part, next_offset, faults.first)
        found = (
            aborted if isinstance(aborted, str) else transactions.index_fault(aborted, is_compacted=self._may_have_gaps)
        )
        if found is not None:
            yield _finding(
                segment, DamagedPart.TRANSACTION_INDEX, next_offset, found, aborted=tuple(transactions.aborted)
            )

    def _take(self, size_bytes: int) -> None:
        self.read_bytes += size_bytes
        self._throttle.take(size_bytes)

    def _snapshot(self, offset: int) -> tuple[dict[int, int] | None, str | None]:
        """The transactions that are open at `offset`, or what is wrong with the snapshot there."""
        path = segment_file(self._directory, offset, PRODUCER_SNAPSHOT)
        if not self._files.exists(path):
            return ({} if offset == 0 else None), None
        try:
            entries = decode_snapshot(self._files.read(path), path).entries
        except CorruptData as error:
            return None, str(error)
        return {
            entry.producer_id: entry.transaction_first_offset
            for entry in entries
            if entry.transaction_first_offset is not None
        }, None

    def _entries(
        self, kind: type[OffsetIndex] | type[TimeIndex], base_offset: int, suffix: str, faults: "_FirstFault"
    ) -> list[tuple[int, int]]:
        """None where they cannot be read, and `faults` is told why."""
        path = segment_file(self._directory, base_offset, suffix)
        if not self._files.exists(path):
            faults.tell("it is missing")
            return []
        index: IndexFile | None = None
        try:
            index = kind(self._files, path, base_offset)
            return index.entries()
        except CorruptIndex as error:
            faults.tell(str(error))
            return []
        finally:
            if index is not None:
                index.close()

    def _aborted(self, base_offset: int) -> list[AbortedTransaction] | str:
        index = TransactionIndex(self._files, segment_file(self._directory, base_offset, TRANSACTION_INDEX))
        try:
            return index.entries
        except CorruptIndex as error:
            return str(error)
        finally:
            index.close()


class _FirstFault:
    """Of an index: it is made anew for one as for many."""

    __slots__ = ("first",)

    def __init__(self) -> None:
        self.first: str | None = None

    def tell(self, sentence: str) -> None:
        if self.first is None:
            self.first = sentence


def _finding(
    segment: ClosedSegment,
    part: DamagedPart,
    offset: int,
    reason: str,
    aborted: tuple[AbortedTransaction, ...] = (),
) -> Finding:
    return Finding(
        part=part,
        base_offset=segment.base_offset,
        size_bytes=segment.size_bytes,
        offset=offset,
        reason=reason,
        aborted=aborted,
    )
