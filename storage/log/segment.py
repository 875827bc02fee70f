"""One file range of a log and its indexes, named by its base offset. Kafka: `LogSegment`.

Only the last segment of a log, the active one, is appended to. For it the places of the newest batches are also kept in
memory: readers at the tail, which most are, find their offset without touching a file.
"""

import logging
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import suppress
from errno import ENOENT
from typing import Final

from ...protocol.batches import NO_TIMESTAMP, BatchHeader, Buffer
from ...protocol.errors import CorruptData
from ..disk.files import File, Files
from ..disk.rules.disk_errors import ClosedError, is_passing
from .index_file import CorruptIndex
from .offset_index import MAX_RELATIVE_OFFSET, OffsetIndex
from .rules.aborted_transaction import AbortedTransaction
from .rules.config import LogConfig
from .rules.file_names import DELETED, INDEX_SUFFIXES, LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, segment_file
from .segment_scan import BadBatch, scan
from .segment_search import Place, find_batch, find_damaged_batch
from .time_index import TimeIndex
from .transaction_index import TransactionIndex

logger = logging.getLogger(__name__)

# Batches whose place is kept in memory, at 12 bytes each; half of them go when it is full.
_RECENT_BATCHES: Final = 64


class Segment:
    __slots__ = (
        "_bytes_since_index_entry",
        "_file",
        "_files",
        "_first_timestamp",
        "_has_changed_indexes",
        "_has_undone_append",
        "_index_interval_bytes",
        "_is_deleted",
        "_is_index_full",
        "_is_index_write_due",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offset_index",
        "_recent_offsets",
        "_recent_positions",
        "_time_index",
        "_transaction_index",
        "base_offset",
        "created_ms",
        "directory",
        "max_index_bytes",
        "name_suffix",
        "roll_jitter_ms",
        "size_bytes",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        *,
        config: LogConfig,
        created_ms: int,
        roll_jitter_ms: int = 0,
        size_bytes: int = 0,
        name_suffix: str = "",
    ) -> None:
        """`name_suffix` is that of all its files while it is to take the place of others: CLEANED, then SWAP."""
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.name_suffix = name_suffix
        self.size_bytes = size_bytes
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.max_index_bytes = config.segment_index_bytes
        self._index_interval_bytes = config.index_interval_bytes
        self._bytes_since_index_entry = 0
        self._is_deleted = False
        self._is_index_full = False
        self._is_index_write_due = False
        # Bytes of an append that failed were cut off again, and a loss of power could take that back.
        self._has_undone_append = False
        # By more than the batches that are among the recent ones.
        self._has_changed_indexes = False
        # Of the first batch; None while not read, or empty.
        self._first_timestamp: int | None = None
        # None while not read from the time index.
        self._max_timestamp: int | None = NO_TIMESTAMP if size_bytes == 0 else None
        self._max_timestamp_offset = base_offset
        self._file: File | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._transaction_index: TransactionIndex | None = None
        # Last offsets and positions of the newest batches appended here.
        self._recent_offsets = array("q")
        self._recent_positions = array("I")

    @property
    def file(self) -> File:
        """Made when missing; ClosedError once the segment is deleted, for the next start would find an empty one."""
        if self._file is None:
            if self._is_deleted:
                raise ClosedError(f"{self.path(LOG)} is deleted")
            self._file = self._files.open(self.path(LOG), create=True)
        return self._file

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            self._open_indexes()
            assert self._offset_index is not None
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._open_indexes()
            assert self._time_index is not None
        return self._time_index

    @property
    def transaction_index(self) -> TransactionIndex:
        if self._transaction_index is None:
            self._transaction_index = TransactionIndex(self._files, self.path(TRANSACTION_INDEX))
        return self._transaction_index

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in the segment; -1 when no batch has one."""
        if self._max_timestamp is None:
            self._max_timestamp, self._max_timestamp_offset = self.time_index.last()
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the first batch with `max_timestamp`."""
        if self._max_timestamp is None:
            self._max_timestamp, self._max_timestamp_offset = self.time_index.last()
        return self._max_timestamp_offset

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, of which there is one. CorruptData, OSError."""
        first = self._first_timestamp
        if first is None:
            first = self._first_timestamp = next(iter(scan(self.file, 0, self.size_bytes))).header.max_timestamp
        return first

    @property
    def largest_timestamp(self) -> int:
        """What retention by time goes by: the largest timestamp, or when the file was last written."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self._files.modified_ms(self.path(LOG))

    def should_roll(
        self, config: LogConfig, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> bool:
        """Whether a batch of this size, last offset and timestamp belongs in a new segment."""
        if self.size_bytes == 0:
            return size_bytes > config.segment_bytes or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        return (
            self.size_bytes + size_bytes > config.segment_bytes
            or self._waited_ms(max_timestamp, now_ms) > config.roll_ms - self.roll_jitter_ms
            or self._is_index_full
            or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        )

    def append(self, parts: Sequence[Buffer], size_bytes: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch, given in parts. OSError leaves the segment as it was."""
        self._write(parts, 0)
        self.note_batch(size_bytes, last_offset, max_timestamp)

    def append_run(self, data: Buffer, headers: Iterable[BatchHeader]) -> None:
        """Write batches that lie one behind the other in `data`. OSError leaves the segment as it was."""
        self._write((data,), len(data))
        for header in headers:
            self.note_batch(header.size_bytes, header.last_offset, header.records_timestamp)

    def _write(self, parts: Sequence[Buffer], run_bytes: int) -> None:
        """`run_bytes` are those of batches of which all but the first may get an index entry for those before it."""
        if self._is_index_write_due:
            self._write_pending()
        # What noting the batch needs from files is read before: once it is written nothing may fail any more.
        if self._max_timestamp is None:
            _ = self.max_timestamp
        if self._offset_index is None and self._bytes_since_index_entry + run_bytes > self._index_interval_bytes:
            self._open_indexes()
        file = self._file
        if file is None:
            file = self.file
        try:
            file.append(parts)
        except OSError:
            self._has_undone_append = True
            raise

    def note_batch(self, size_bytes: int, last_offset: int, max_timestamp: int) -> None:
        """The file goes on with such a batch: take it into size, indexes and timestamps."""
        position = self.size_bytes
        if position == 0:
            self._first_timestamp = max_timestamp
        largest = self._max_timestamp
        if largest is None:
            largest = self.max_timestamp
        if max_timestamp > largest:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        since_entry = self._bytes_since_index_entry
        if since_entry > self._index_interval_bytes:
            self._add_index_entries(last_offset, position)
            since_entry = 0
        self._bytes_since_index_entry = since_entry + size_bytes
        recent = self._recent_offsets
        if len(recent) == _RECENT_BATCHES:
            del recent[: _RECENT_BATCHES // 2]
            del self._recent_positions[: _RECENT_BATCHES // 2]
        recent.append(last_offset)
        self._recent_positions.append(position)
        self.size_bytes = position + size_bytes

    def locate(self, offset: int) -> Place | None:
        """The first batch that ends at or after `offset`; None if this segment has no such batch."""
        recent = self._recent_offsets
        count = len(recent)
        if count:
            slot = bisect_left(recent, offset)
            if slot == count:
                return None
            positions = self._recent_positions
            if slot or positions[0] == 0:
                position = positions[slot]
                end = positions[slot + 1] if slot + 1 < count else self.size_bytes
                return Place(position, end - position)
        return self._locate_by_index(offset)

    def read_next_offset(self) -> int:
        """The offset after the last one, by walking from the last index entry. CorruptData when that is not intact."""
        next_offset = self.base_offset
        if self.size_bytes == 0:
            return next_offset
        for batch in scan(self.file, self.offset_index.last_position(), self.size_bytes):
            next_offset = batch.header.next_offset
        return next_offset

    def become_inactive(self) -> None:
        """No batch follows: the time index gets its last entry, the indexes are written in full."""
        if self._has_undone_append:
            # Recovery need not look at this segment once the next is synced.
            self.file.sync()
            self._has_undone_append = False
        self.write_indexes()
        self._has_changed_indexes = True
        del self._recent_offsets[:]
        del self._recent_positions[:]

    def note_aborted(self, transaction: AbortedTransaction) -> None:
        """The segment has the marker that aborts it."""
        self._has_changed_indexes = True
        index = self.transaction_index
        index.append(transaction)
        if index.is_write_due:
            self._is_index_write_due = True

    def write_indexes_when_due(self) -> None:
        """Called now and then while recovery notes many batches. On a full disk they stay in memory."""
        if self._is_index_write_due:
            try:
                self._write_pending()
            except OSError as error:
                if not is_passing(error):
                    raise

    def write_indexes(self) -> None:
        """Write the index entries that are still in memory, and the largest timestamp. Then both files exist."""
        self.time_index.append_entry(self.max_timestamp, self._max_timestamp_offset)
        self._write_pending()
        _ = self.offset_index.file, self.time_index.file

    def write_indexes_if_room(self) -> None:
        """For recovery: a log can be read on a full disk too. What was not written is by the next append or sync."""
        try:
            self.write_indexes()
        except OSError as error:
            if not is_passing(error):
                raise

    def sync_indexes(self) -> bool:
        """Sync the indexes in full, waiting. False, at once, when nothing has changed since the log was opened; else
        files may just have been made, whose names are not synced."""
        files = self.indexes_to_sync()
        for file in files:
            file.sync()
        return bool(files)

    def indexes_to_sync(self) -> Sequence[File]:
        """Write the indexes in full. Their files; none when nothing has changed since the log was opened."""
        if not self._recent_offsets and not self._has_changed_indexes:
            return ()
        self.write_indexes()
        return self.index_files()

    def truncate_to(self, offset: int) -> None:
        """Drop the batches that end at or after `offset`. CorruptData where one before it is not intact."""
        try:
            place = self.locate(offset)
        except CorruptData as error:
            # The batch at `offset` may be what is damaged, and the reason for the cut.
            place = find_damaged_batch(self.file, self.base_offset, offset, self.size_bytes)
            if place is None:
                raise error from None
        self._has_changed_indexes = True
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        if place is not None:
            self.cut_at(place.position)
        self._is_index_full = False

    def cut_at(self, position: int) -> None:
        """Drop the bytes from `position` on, where a batch begins; the indexes say nothing of them any more."""
        self.file.truncate(position)
        self.size_bytes = position
        self._bytes_since_index_entry = 0
        self._has_changed_indexes = True
        del self._recent_offsets[:]
        del self._recent_positions[:]
        self._read_max_timestamp()
        if position == 0:
            self._first_timestamp = None

    def reset(self) -> None:
        """Forget what is known of the batches, indexes included: `note_batch` is about to tell it again."""
        self._drop_indexes()
        # Not removed and made anew: ext4 takes a millisecond for a file where thousands have just been removed.
        self._offset_index = OffsetIndex(self._files, self.path(OFFSET_INDEX), self.base_offset, is_reset=True)
        self._time_index = TimeIndex(self._files, self.path(TIME_INDEX), self.base_offset, is_reset=True)
        with suppress(FileNotFoundError):
            self._files.remove(self.path(TRANSACTION_INDEX))
        self._forget_batches()

    def index_files(self) -> list[File]:
        """The index files, for a sync, with all that is known in them."""
        self._write_pending()
        files = [self.offset_index.file, self.time_index.file]
        transactions = self.transaction_index.file_if_any()
        return files if transactions is None else [*files, transactions]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._drop_indexes()

    def mark_deleted(self) -> list[str]:
        """Rename the files to `….deleted` and return the new paths. Readers that have the file keep it."""
        self._file = None
        self._drop_indexes()
        renamed = []
        for suffix in (LOG, *INDEX_SUFFIXES):
            path = self.path(suffix)
            if self._files.exists(path):
                self._files.rename(path, path + DELETED)
                renamed.append(path + DELETED)
        self._is_deleted = True
        return renamed

    def renamed_to(self, name_suffix: str) -> None:
        """Its files were renamed."""
        self._drop_indexes()
        self.name_suffix = name_suffix

    def moved_to(self, directory: str) -> None:
        """The folder was renamed."""
        self.close()
        self.directory = directory

    def check_name(self) -> None:
        """FileNotFoundError when the disk has no such log file any more: who has it open reads on, the next start finds
        nothing."""
        path = self.path(LOG)
        if self.size_bytes and not self._files.exists(path):
            raise FileNotFoundError(ENOENT, "The file of the segment is gone", path)

    def path(self, suffix: str) -> str:
        return segment_file(self.directory, self.base_offset, suffix) + self.name_suffix

    def _waited_ms(self, max_timestamp: int, now_ms: int) -> int:
        first = self.first_timestamp
        return max_timestamp - first if first >= 0 else now_ms - self.created_ms

    def _locate_by_index(self, offset: int) -> Place | None:
        position = self.offset_index.lookup(offset)
        try:
            return find_batch(self.file, self.base_offset, offset, position, self.size_bytes)
        except CorruptData as error:
            if position == 0:
                raise
            # Is it the batch, or does none begin there?
            place = find_batch(self.file, self.base_offset, offset, 0, self.size_bytes)
            self.rebuild_misleading_index(error)
            return place

    def _add_index_entries(self, last_offset: int, position: int) -> None:
        offset_index, time_index = self._offset_index, self._time_index
        if offset_index is None or time_index is None:
            offset_index, time_index = self.offset_index, self.time_index
        offset_index.append_entry(last_offset, position)
        time_index.append_entry(self.max_timestamp, self._max_timestamp_offset)
        self._is_index_full = offset_index.is_full(self.max_index_bytes) or time_index.is_full(self.max_index_bytes)
        if offset_index.is_write_due:
            self._is_index_write_due = True

    def _write_pending(self) -> None:
        self.offset_index.write_pending()
        self.time_index.write_pending()
        if self._transaction_index is not None:
            self._transaction_index.write_pending()
        self._is_index_write_due = False

    def _open_indexes(self) -> None:
        try:
            self._offset_index = OffsetIndex(self._files, self.path(OFFSET_INDEX), self.base_offset)
            self._time_index = TimeIndex(self._files, self.path(TIME_INDEX), self.base_offset)
            self._offset_index.check(self.size_bytes)
            self._time_index.check()
        except CorruptIndex as error:
            self.rebuild_misleading_index(error)
        self._is_index_full = self.offset_index.is_full(self.max_index_bytes) or self.time_index.is_full(
            self.max_index_bytes
        )

    def rebuild_misleading_index(self, error: CorruptData) -> None:
        """No batch begins where the offset index says, or another one. CorruptData, OSError."""
        logger.warning("Rebuilding damaged index: path=%s reason=%s", self.path(OFFSET_INDEX), error)
        self.rebuild_indexes()

    def rebuild_indexes(self) -> None:
        """Make offset and time index anew from the batches; the transaction index needs producer state and stays."""
        size = self.size_bytes
        if self._offset_index is not None:
            self._offset_index.close()
        if self._time_index is not None:
            self._time_index.close()
        for suffix in (OFFSET_INDEX, TIME_INDEX):
            if self._files.exists(self.path(suffix)):
                self._files.remove(self.path(suffix))
        self._offset_index = OffsetIndex(self._files, self.path(OFFSET_INDEX), self.base_offset)
        self._time_index = TimeIndex(self._files, self.path(TIME_INDEX), self.base_offset)
        self._forget_batches()
        try:
            for batch in scan(self.file, 0, size):
                if batch.header.last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
                    raise BadBatch(f"{self.file.path} at {batch.position}: its offset is too large", batch.position)
                self.note_batch(batch.header.size_bytes, batch.header.last_offset, batch.header.records_timestamp)
                self.write_indexes_when_due()
        finally:
            if self.size_bytes != size:
                # A batch that is not intact does not make the file shorter, nor the one before it longer.
                self.size_bytes = size
                del self._recent_offsets[:]
                del self._recent_positions[:]
        # A loss of power must not leave less of them: an index that is merely short looks like any other.
        self.sync_indexes()

    def _forget_batches(self) -> None:
        self.size_bytes = 0
        self._bytes_since_index_entry = 0
        self._is_index_full = False
        self._has_changed_indexes = True
        self._first_timestamp = None
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        del self._recent_offsets[:]
        del self._recent_positions[:]

    def _read_max_timestamp(self) -> None:
        """Known again after a cut: the last entry of the time index, or a batch after it."""
        timestamp, offset = self.time_index.last()
        for batch in scan(self.file, self.offset_index.lookup(offset), self.size_bytes):
            if batch.header.records_timestamp > timestamp:
                timestamp, offset = batch.header.records_timestamp, batch.header.last_offset
        self._max_timestamp, self._max_timestamp_offset = timestamp, offset

    def _drop_indexes(self) -> None:
        for index in (self._offset_index, self._time_index, self._transaction_index):
            if index is not None:
                index.close()
        self._offset_index = self._time_index = self._transaction_index = None
