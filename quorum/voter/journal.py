"""The journal: the quorum's log and this voter's term, vote and membership, durably.

Kafka: `ReplicatedLog`, `KafkaMetadataLog`.

A folder of segments, `<offset of the first entry, 20 digits>.journal`, each a file of frames (`frames.py`). A frame is
one write and one sync; its payload is a CBOR array of what it adds, in order (`journal_items.py`). The form knows
nothing of any consensus library. Segments begin when a snapshot is made and go when one covers them.

Beside them lies `reserve`, a file that only takes room. When the disk is full it goes, and the write is tried again: a
node goes on leading, and can be told to delete what fills the disk. It is made anew by the first write that finds room.

Synchronous: the voter runs it in the executor, one call at a time.
"""

import logging
from collections.abc import Sequence

from msgspec import Struct

from ...protocol.errors import CorruptData
from ...storage.disk.files import File, Files
from ...storage.disk.rules.disk_errors import is_no_room
from ..raft.consensus import ConsensusFailed
from ..raft.frames import encode_frame
from ..raft.journal_items import (
    FORMAT,
    CommitMark,
    JournalItem,
    LogEnd,
    LogEntry,
    Membership,
    SegmentHead,
    Term,
    encode_items,
)
from .stored_journal import SUFFIX, RecoveredLog, StoredSegment, read_segments, segment_name

logger = logging.getLogger(__name__)

_RESERVE = "reserve"

# As much as one write may have, or thousands of ordinary ones.
RESERVE_BYTES = 4 * 1024 * 1024
# Released one after the other: a process that fills the disk repeatedly gets at most the rest of one at a time.
_RESERVE_PARTS = 16


class _Segment(Struct):
    """A file of the folder; `entries_end` is behind the highest entry that was ever written to it."""

    first_offset: int
    entries_end: int


class Journal:
    """One folder. Make it, call `recover` once, then write; after `close` every call that writes is refused."""

    def __init__(self, files: Files, directory: str, *, reserve_bytes: int = RESERVE_BYTES) -> None:
        self._files = files
        self._directory = directory
        self._reserve = f"{directory}/{_RESERVE}"
        self._reserve_bytes = reserve_bytes
        self._lacks_reserve = False
        # In the order in which they were begun.
        self._segments: list[_Segment] = []
        self._file: File | None = None
        self._is_closed = False
        self._next_sequence = 0
        self.term = Term(0, None)
        self.is_member = False
        self.commit_end = 0
        self.start_offset = 0
        """Offset of the first entry that is kept."""
        self.end_offset = 0
        self.last_epoch = 0

    @property
    def is_empty(self) -> bool:
        """Nothing was ever written here."""
        return not self._segments

    def recover(self) -> RecoveredLog:
        """Return the log, synced, and be ready to write. A torn write at the very end is cut.

        Raises ConsensusFailed, with one sentence for the operator, when anything else is wrong.
        """
        self._check_open()
        paths = [
            f"{self._directory}/{name}" for name in self._files.list_directory(self._directory) if name.endswith(SUFFIX)
        ]
        log = RecoveredLog()
        try:
            stored = read_segments(self._files, paths)
            if stored and not stored[-1].frames:
                # It was being made when the power went: nothing in it counted yet.
                self._files.remove(stored.pop().path)
                self._files.sync_directory(self._directory)
            for segment in stored:
                entries_end = log.replay_segment(segment)
                self._segments.append(_Segment(_first_offset(segment), entries_end))
            if log.commit_end > log.end_offset:
                raise CorruptData(
                    f"{self._directory} has the offsets below {log.commit_end} for committed but ends at "
                    f"{log.end_offset}"
                )
        except CorruptData as error:
            raise ConsensusFailed(f"The metadata journal cannot be used: {error}.") from error
        if stored:
            self._open_last(stored[-1])
        self.term, self.is_member, self.commit_end = log.term, log.is_member, log.commit_end
        self.start_offset, self.end_offset, self.last_epoch = log.start_offset, log.end_offset, log.last_epoch
        return log

    def _open_last(self, segment: StoredSegment) -> None:
        frames, data = segment.frames, segment.data
        self._next_sequence = frames[-1].sequence + 1
        file = self._file = self._files.open(segment.path)
        if segment.end < len(data):
            file.truncate(segment.end)
        # The process before this one may have ended, or met an error, before the last frame was synced. What a
        # failed sync leaves in memory looks written, and only writing it once more makes it so.
        start = frames[-2].end if len(frames) > 1 else 0
        file.write_at(start, data[start : segment.end])
        file.sync()
        self._files.sync_directory(self._directory)

    def write(self, items: Sequence[JournalItem]) -> int:
        """Write the items and sync them, all or nothing; return the bytes written. Raises ConsensusFailed.

        After an error nothing may be written any more: what a failed sync left behind is unknown.
        """
        self._check_open()
        try:
            written = self._write_with_reserve(items)
            if self._lacks_reserve:
                self.keep_reserve()
            return written
        except OSError as error:
            raise ConsensusFailed(f"The metadata journal in {self._directory} cannot be written: {error}.") from error

    def _write_with_reserve(self, items: Sequence[JournalItem]) -> int:
        while True:
            try:
                return self._write(items)
            except OSError as error:
                if not is_no_room(error) or not self._files.exists(self._reserve):
                    raise
                self._use_reserve(error)

    def _use_reserve(self, error: OSError) -> None:
        left = self._files.size(self._reserve) - self._reserve_bytes // _RESERVE_PARTS
        logger.error("Metadata journal uses its reserve: path=%s left_bytes=%d error=%s", self._reserve, left, error)
        self._lacks_reserve = True
        if left > 0:
            self._files.open(self._reserve).truncate(left)
        else:
            self._files.remove(self._reserve)

    def _write(self, items: Sequence[JournalItem]) -> int:
        if self._file is None:
            self._begin_segment()
        assert self._file is not None
        frame = encode_frame(self._next_sequence, encode_items(items))
        self._file.append([frame])
        self._file.sync()
        self._next_sequence += 1
        for item in items:
            match item:
                case LogEntry():
                    assert item.offset == self.end_offset, f"offset {item.offset} after {self.end_offset}"
                    self.end_offset, self.last_epoch = item.offset + 1, item.epoch
                    self._segments[-1].entries_end = max(self._segments[-1].entries_end, self.end_offset)
                case Term():
                    assert item.term >= self.term.term, "the term went backwards"
                    assert item.term > self.term.term or self.term.voted_for in (None, item.voted_for), "a second vote"
                    self.term = item
                case LogEnd():
                    if not self.start_offset <= item.offset <= self.end_offset:
                        self.start_offset = item.offset
                    self.end_offset, self.last_epoch = item
                case Membership():
                    self.is_member = item.is_member
                case CommitMark():
                    self.commit_end = item.end_offset
        return len(frame)

    def keep_reserve(self) -> None:
        """Make the reserve when it is not whole and there is room for twice as much; else a later write does."""
        self._check_open()
        files = self._files
        if files.exists(self._reserve) and files.size(self._reserve) >= self._reserve_bytes:
            self._lacks_reserve = False
            return
        self._lacks_reserve = True
        if files.free_bytes(self._directory) < 2 * self._reserve_bytes:
            return
        try:
            files.allocate(self._reserve, self._reserve_bytes)
        except OSError as error:
            if not is_no_room(error):
                raise
        else:
            self._lacks_reserve = False

    def roll(self) -> None:
        """Let the next entry begin a new segment, if there is room for one. Raises ConsensusFailed."""
        self._check_open()
        # No name comes twice, also where a conflict took entries away.
        if self._file is None or any(segment.first_offset >= self.end_offset for segment in self._segments):
            return
        try:
            self._begin_segment()
        except OSError as error:
            if is_no_room(error):
                return
            raise ConsensusFailed(f"The metadata journal in {self._directory} cannot be written: {error}.") from error

    def trim_to(self, offset: int) -> None:
        """Remove the segments that hold only entries below the offset: a snapshot has them. Raises ConsensusFailed."""
        self._check_open()
        segments = self._segments
        try:
            # From the front, so that what is left has no hole wherever this ends, and never the last, which is written.
            while len(segments) > 1 and segments[1].first_offset <= offset and segments[0].entries_end <= offset:
                self._files.remove(f"{self._directory}/{segment_name(segments[0].first_offset)}")
                self._files.sync_directory(self._directory)
                del segments[0]
                self.start_offset = max(self.start_offset, segments[0].first_offset)
        except OSError as error:
            raise ConsensusFailed(f"The metadata journal in {self._directory} cannot be trimmed: {error}.") from error

    def close(self) -> None:
        self._is_closed = True
        if self._file is not None:
            self._file.close()
            self._file = None

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConsensusFailed(f"The metadata journal in {self._directory} is closed.")

    def _begin_segment(self) -> None:
        head = SegmentHead(FORMAT, self.end_offset, self.last_epoch, *self.term, self.is_member)
        path = f"{self._directory}/{segment_name(self.end_offset)}"
        file = self._files.open(path, create=True)
        try:
            file.append([encode_frame(self._next_sequence, encode_items([head]))])
        except OSError:
            # On a full disk entries go on in the segment before, and an empty one must not stand among later ones.
            self._files.remove(path)
            self._files.sync_directory(self._directory)
            raise
        file.sync()
        self._files.sync_directory(self._directory)
        if self._file is not None:
            self._file.close()
        self._file = file
        self._segments.append(_Segment(self.end_offset, self.end_offset))
        self._next_sequence += 1


def _first_offset(segment: StoredSegment) -> int:
    return int(segment.path.rpartition("/")[2].removesuffix(SUFFIX))
