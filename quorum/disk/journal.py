"""The journal: the quorum's log and this voter's term, vote and membership, durably.

A folder of segments, `<offset of the first entry, 20 digits>.journal`, each a file of frames (`frames.py`). A frame is
one write and one sync; its payload is a CBOR array of what it adds, in order (`journal_items.py`). The form knows
nothing of any consensus library. Segments begin when a snapshot is made and go when one covers them.

Beside them lies `reserve`, a file that only takes room. When the disk is full it goes, and the write is tried again: a
node goes on leading, and can be told to delete what fills the disk. It is made anew by the first write that finds room.

Synchronous: whoever writes runs it in the executor, one call at a time.
"""

import logging
from collections.abc import Sequence

from ...protocol.errors import CorruptData
from ...storage.disk_errors import is_no_room
from ...storage.files import File, Files
from ..consensus import ConsensusFailed
from .frames import encode_frame, scan_frames
from .journal_items import (
    FORMAT,
    CommitMark,
    Entry,
    JournalItem,
    LogEnd,
    Membership,
    SegmentHead,
    Term,
    decode_items,
    encode_items,
)

logger = logging.getLogger(__name__)

_SUFFIX = ".journal"
_RESERVE = "reserve"

# As much as one write may have, or thousands of ordinary ones.
RESERVE_BYTES = 4 * 1024 * 1024
# Given up one after the other: whoever fills the disk again and again gets no more than the rest of one at a time.
_RESERVE_PARTS = 16


class Journal:
    """One folder. Make it, call `recover` once, then write."""

    def __init__(self, files: Files, directory: str, *, reserve_bytes: int = RESERVE_BYTES) -> None:
        self._files = files
        self._directory = directory
        self._reserve = f"{directory}/{_RESERVE}"
        self._reserve_bytes = reserve_bytes
        self._lacks_reserve = False
        self._segments: list[int] = []
        self._file: File | None = None
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

    def recover(self) -> "RecoveredLog":
        """Return the log, synced, and be ready to write. A torn write at the very end is cut.

        Raises ConsensusFailed, with one sentence for the operator, when anything else is wrong.
        """
        names = [name for name in self._files.list_directory(self._directory) if name.endswith(_SUFFIX)]
        log = RecoveredLog()
        try:
            for number, name in enumerate(names):
                path = f"{self._directory}/{name}"
                self._recover_segment(name, path, log, is_last=number == len(names) - 1)
            if log.commit_end > log.end_offset:
                raise CorruptData(
                    f"{self._directory} has the offsets below {log.commit_end} for committed but ends at "
                    f"{log.end_offset}"
                )
        except CorruptData as error:
            raise ConsensusFailed(f"The metadata journal cannot be used: {error}.") from error
        self.term, self.is_member, self.commit_end = log.term, log.is_member, log.commit_end
        self.start_offset, self.end_offset, self.last_epoch = log.start_offset, log.end_offset, log.last_epoch
        return log

    def _recover_segment(self, name: str, path: str, log: "RecoveredLog", *, is_last: bool) -> None:
        data = self._files.read(path)
        scan = scan_frames(data, self._next_sequence if self._segments else None, path)
        if scan.end < len(data) and not is_last:
            raise CorruptData(f"{path} is damaged at byte {scan.end}, and later segments exist")
        if not scan.frames:
            if not is_last:
                raise CorruptData(f"{path} is empty, and later segments exist")
            # It was being made when the power went: nothing in it counted yet.
            self._files.remove(path)
            self._files.sync_directory(self._directory)
            self._open_last()
            return
        for frame in scan.frames:
            for item in decode_items(frame.payload, path):
                if isinstance(item, SegmentHead):
                    if _name(item.first_offset) != name:
                        raise CorruptData(f"{path} says that it begins at offset {item.first_offset}")
                    log.begin_segment(item, path, is_first=not self._segments)
                    self._segments.append(item.first_offset)
                elif not self._segments:
                    raise CorruptData(f"{path} does not begin with the head of a segment")
                else:
                    log.replay(item, path)
        self._next_sequence = scan.frames[-1].sequence + 1
        if is_last:
            self._open_last()
            assert self._file is not None
            if scan.end < len(data):
                self._file.truncate(scan.end)
            # The process before this one may have ended, or met an error, before the last frame was synced. What a
            # failed sync leaves in memory looks written, and only writing it once more makes it so.
            start = scan.frames[-2].end if len(scan.frames) > 1 else 0
            self._file.write_at(start, data[start : scan.end])
            self._file.sync()
            self._files.sync_directory(self._directory)

    def _open_last(self) -> None:
        if self._segments:
            self._file = self._files.open(f"{self._directory}/{_name(self._segments[-1])}")

    def write(self, items: Sequence[JournalItem]) -> int:
        """Write the items and sync them, all or nothing; return the bytes written. Raises ConsensusFailed.

        After an error nothing may be written any more: what a failed sync left behind is unknown.
        """
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
        logger.error("metadata journal uses its reserve: path=%s left_bytes=%d error=%s", self._reserve, left, error)
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
                case Entry():
                    assert item.offset == self.end_offset, f"offset {item.offset} after {self.end_offset}"
                    self.end_offset, self.last_epoch = item.offset + 1, item.epoch
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
        # The names of segments rise, also where a conflict took entries away.
        if self._file is None or self._segments[-1] >= self.end_offset:
            return
        try:
            self._begin_segment()
        except OSError as error:
            if is_no_room(error):
                return
            raise ConsensusFailed(f"The metadata journal in {self._directory} cannot be written: {error}.") from error

    def trim_to(self, offset: int) -> None:
        """Remove the segments that hold only entries below the offset: a snapshot has them. Raises ConsensusFailed."""
        try:
            while len(self._segments) > 1 and self._segments[1] <= offset:
                # From the front, so that what is left has no hole wherever this ends.
                self._files.remove(f"{self._directory}/{_name(self._segments[0])}")
                self._files.sync_directory(self._directory)
                del self._segments[0]
                self.start_offset = max(self.start_offset, self._segments[0])
        except OSError as error:
            raise ConsensusFailed(f"The metadata journal in {self._directory} cannot be trimmed: {error}.") from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin_segment(self) -> None:
        head = SegmentHead(FORMAT, self.end_offset, self.last_epoch, *self.term, self.is_member)
        path = f"{self._directory}/{_name(self.end_offset)}"
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
        self._segments.append(self.end_offset)
        self._next_sequence += 1


class RecoveredLog:
    """What the items of a journal come to."""

    def __init__(self) -> None:
        self.term = Term(0, None)
        self.is_member = False
        self.commit_end = 0
        self.start_offset = 0
        self.previous_epoch = 0
        """Epoch of the entry before `start_offset`."""
        self.entries: list[Entry] = []

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    @property
    def last_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else self.previous_epoch

    def begin_segment(self, head: SegmentHead, path: str, *, is_first: bool) -> None:
        if is_first:
            self.start_offset, self.previous_epoch = head.first_offset, head.previous_epoch
            # A segment before this one was trimmed because a snapshot has its entries: they are committed.
            self.commit_end = head.first_offset
        elif head.first_offset != self.end_offset:
            raise CorruptData(f"{path} begins at offset {head.first_offset} where {self.end_offset} was expected")
        self.term, self.is_member = Term(head.term, head.voted_for), head.is_member

    def replay(self, item: JournalItem, path: str) -> None:
        match item:
            case Term():
                self.term = item
            case Entry():
                if item.offset != self.end_offset:
                    raise CorruptData(f"{path} has offset {item.offset} where {self.end_offset} was expected")
                self.entries.append(item)
            case Membership():
                self.is_member = item.is_member
            case LogEnd():
                self._end_at(item)
            case CommitMark():
                self.commit_end = item.end_offset

    def _end_at(self, end: LogEnd) -> None:
        kept = end.offset - self.start_offset
        if 0 <= kept <= len(self.entries):
            epoch = self.entries[kept - 1].epoch if kept else self.previous_epoch
            if epoch == end.epoch:
                del self.entries[kept:]
                return
        self.start_offset, self.previous_epoch = end
        self.entries.clear()


def _name(first_offset: int) -> str:
    return f"{first_offset:020}{_SUFFIX}"
