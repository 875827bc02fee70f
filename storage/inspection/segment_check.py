"""One segment: its batches, and whether the offset, time and transaction index say what they say.

Kafka: `DumpLogSegments`. What it finds with `--verify-index-only` and `--index-sanity-check`, and CRCs, records,
offsets and epochs.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from ...protocol.batches import HEADER_SIZE, BatchHeader, read_header
from ...protocol.compression import Compression
from ...protocol.errors import CorruptData
from ...protocol.records import read_records
from ..disk.files import File, Files
from ..log.index_file import CorruptIndex
from ..log.offset_index import MAX_RELATIVE_OFFSET
from ..log.rules.aborted_transaction import AbortedTransaction
from ..log.rules.batch_order import epoch_fault, offsets_fault
from ..log.rules.control_records import read_end_transaction_marker
from ..log.rules.file_names import LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, segment_file
from ..log.rules.index_check import OffsetIndexCheck, TimeIndexCheck, aborted_faults
from ..log.rules.producer_state import EndTransactionMarker
from ..log.rules.record_batch import StoredBatch
from ..log.rules.record_validation import OPENED_BYTES_MAX
from ..log.segment_scan import BadBatch, scan
from ..log.transaction_index import TransactionIndex
from .index_entries import read_offset_entries, read_time_entries
from .rules.batch_history import BatchHistory
from .rules.report import Report

_LAST_CODEC: Final = max(Compression)


class SegmentCheck:
    def __init__(
        self, files: Files, directory: str, base_offset: int, *, next_base: int | None, opens_records: bool
    ) -> None:
        """`next_base` is where the next segment begins; None for the last one, which may be appended to meanwhile."""
        self._files = files
        self._base_offset = base_offset
        self._next_base = next_base
        self._end_offset = base_offset + MAX_RELATIVE_OFFSET + 1
        if next_base is not None:
            self._end_offset = min(self._end_offset, next_base)
        self._opens_records = opens_records
        self._paths = {
            suffix: segment_file(directory, base_offset, suffix)
            for suffix in (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
        }

    def run(self, history: BatchHistory, report: Report) -> None:
        """OSError."""
        # Before the log: while a node appends, the log is ahead of them.
        size = self._files.size(self._paths[LOG])
        offset_entries, time_entries = self._offset_entries(size, report), self._time_entries(size, report)
        report.totals.index_entries += len(offset_entries) + len(time_entries or ())
        offsets = OffsetIndexCheck(offset_entries, partial(report.find, self._paths[OFFSET_INDEX]))
        times = TimeIndexCheck(time_entries or (), partial(report.find, self._paths[TIME_INDEX]))
        told = self._aborted(report)
        size = self._files.size(self._paths[LOG])
        report.totals.segments += 1
        report.totals.bytes += size
        aborted: list[AbortedTransaction] = []
        for batch in read_batches(self._files.open(self._paths[LOG]), size, report, is_last=self._next_base is None):
            header = batch.header
            report.totals.batches += 1
            report.totals.records += header.record_count
            self._check_place(batch, history, report)
            marker = self._open(batch, report)
            offsets.add(batch.position, header)
            times.add(header)
            transaction = history.add(header, marker)
            if transaction is not None:
                aborted.append(transaction)
        offsets.end()
        times.end(is_closed=self._next_base is not None and time_entries is not None)
        if told is not None:
            self._check_aborted(told, aborted, report)

    def _check_place(self, batch: StoredBatch, history: BatchHistory, report: Report) -> None:
        header = batch.header
        next_offset = self._base_offset if history.next_offset is None else history.next_offset
        if header.base_offset >= next_offset:
            report.totals.missing_offsets += header.base_offset - next_offset
        faults = [
            offsets_fault(header, max(next_offset, self._base_offset), self._end_offset),
            epoch_fault(header, history.epochs[-1][0]) if history.epochs else None,
        ]
        if header.last_offset_delta < 0 or not 0 <= header.record_count <= header.last_offset_delta + 1:
            faults.append(
                f"{header.record_count} records cannot have the offsets {header.base_offset} to {header.last_offset}"
            )
        for fault in faults:
            if fault is not None:
                report.find(self._paths[LOG], fault, batch.position)

    def _open(self, batch: StoredBatch, report: Report) -> EndTransactionMarker | None:
        header = batch.header
        try:
            if header.compression > _LAST_CODEC:
                raise CorruptData(f"compression {header.compression} does not exist")
            if header.is_control and header.has_producer_id:
                return read_end_transaction_marker(batch.data, header)
            if self._opens_records and header.record_count > 0:
                before = header.base_offset - 1
                for record in read_records(batch.data, header, OPENED_BYTES_MAX):
                    if not before < record.offset <= header.last_offset:
                        raise CorruptData(f"record offset {record.offset} follows {before}")
                    before = record.offset
        except CorruptData as error:
            report.find(
                self._paths[LOG], f"the records at offset {header.base_offset} cannot be read: {error}", batch.position
            )
        return None

    def _offset_entries(self, log_size: int, report: Report) -> list[tuple[int, int]]:
        path = self._paths[OFFSET_INDEX]
        if self._is_there(path, log_size, report):
            return read_offset_entries(self._files, path, self._base_offset, report)
        return []

    def _time_entries(self, log_size: int, report: Report) -> list[tuple[int, int]] | None:
        path = self._paths[TIME_INDEX]
        if self._is_there(path, log_size, report):
            return read_time_entries(self._files, path, self._base_offset, report)
        return None

    def _is_there(self, path: str, log_size: int, report: Report) -> bool:
        is_there = self._files.exists(path)
        if not is_there and log_size and self._next_base is not None:
            report.find(path, "the index is missing; the next start makes it anew")
        return is_there

    def _aborted(self, report: Report) -> list[AbortedTransaction] | None:
        path = self._paths[TRANSACTION_INDEX]
        if not self._files.exists(path):
            return []
        try:
            return list(TransactionIndex(self._files, path).entries)
        except CorruptIndex as error:
            report.find(path, str(error))
            return None

    def _check_aborted(self, told: list[AbortedTransaction], aborted: list[AbortedTransaction], report: Report) -> None:
        path = self._paths[TRANSACTION_INDEX]
        report.totals.aborted_transactions += len(told)
        # The newest entries of a segment that is appended to are in the node's memory.
        for fault in aborted_faults(told, aborted, is_complete=self._next_base is not None):
            report.find(path, fault)


def read_batches(file: File, size: int, report: Report, *, is_last: bool) -> Iterator[StoredBatch]:
    """The intact batches of a segment file. Others are reported, and the walk goes on behind one whose length may be
    right. OSError."""
    position = 0
    try:
        while position < size:
            try:
                for batch in scan(file, position, size, verify=True):
                    position = batch.position + batch.header.size_bytes
                    yield batch
            except BadBatch as error:
                position = error.position
                header = _header_at(file, position, size)
                is_cut_off = size - position < HEADER_SIZE if header is None else position + header.size_bytes > size
                if is_last and is_cut_off:
                    report.note(
                        file.path,
                        f"{size - position} bytes are the beginning of a batch: it is being written, or a stop has cut "
                        f"it off and a start removes it",
                        position,
                    )
                    return
                report.find(file.path, _without_place(error), position)
                if header is None or is_cut_off:
                    report.find(file.path, f"{size - position} bytes from there on cannot be read", position)
                    return
                position += header.size_bytes
    finally:
        file.close()


def _header_at(file: File, position: int, size: int) -> BatchHeader | None:
    try:
        return read_header(file.read_at(position, min(HEADER_SIZE, size - position)), 0)
    except CorruptData:
        return None


def _without_place(error: BadBatch) -> str:
    return str(error).partition(f" at {error.position}: ")[2] or str(error)
