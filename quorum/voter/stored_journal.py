"""The segments of a journal's folder as they are on the disk, and the log that they come to.

Segments follow each other by the sequence of their frames, which never goes back; their names say where each began. A
file may have more than one head: earlier versions could write to a journal after they had closed it, and began its last
segment once more. Whatever heads say, what counts is which entries a file has.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ...protocol.errors import CorruptData
from ...storage.disk.files import Files
from ..raft.frames import Frame, scan_frames
from ..raft.journal_items import CommitMark, JournalItem, LogEnd, LogEntry, Membership, SegmentHead, Term, decode_items

SUFFIX = ".journal"


class StoredSegment(NamedTuple):
    """One file; without a frame it was being made when the power went."""

    path: str
    data: bytes
    frames: tuple[Frame, ...]

    @property
    def end(self) -> int:
        """Where the good frames end; what follows is a torn write."""
        return self.frames[-1].end if self.frames else 0


def segment_name(first_offset: int) -> str:
    return f"{first_offset:020}{SUFFIX}"


def read_segments(files: Files, paths: Sequence[str]) -> list[StoredSegment]:
    """Return the segments in the order in which they were written; only the last may have a torn end, or no frame.

    Raises CorruptData, OSError.
    """
    segments = []
    for path in paths:
        data = files.read(path)
        segments.append(StoredSegment(path, data, scan_frames(data, None, path).frames))
    for segment in segments:
        if not segment.frames and segment.path != max(paths):
            raise CorruptData(f"{segment.path} is empty, and later segments exist")
    segments.sort(key=lambda segment: (not segment.frames, segment.frames and segment.frames[0].sequence))
    for before, after in pairwise(segments):
        if before.end < len(before.data):
            raise CorruptData(f"{before.path} is damaged at byte {before.end}, and later segments exist")
        expected = before.frames[-1].sequence + 1
        if after.frames and after.frames[0].sequence != expected:
            raise CorruptData(
                f"{after.path} has the frame of sequence {after.frames[0].sequence} at byte 0 where {expected} was "
                "expected"
            )
    return segments


class RecoveredLog:
    """What the items of a journal come to."""

    def __init__(self) -> None:
        self.term = Term(0, None)
        self.is_member = False
        self.commit_end = 0
        self.start_offset = 0
        self.previous_epoch = 0
        """Epoch of the entry before `start_offset`."""
        self.entries: list[LogEntry] = []
        self._has_begun = False

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    @property
    def last_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else self.previous_epoch

    def replay_segment(self, segment: StoredSegment) -> int:
        """Take in a segment behind those before it; return the end of the highest entry in it, exclusive.

        Entries that a conflict made void later count too. Raises CorruptData.
        """
        path, entries_end = segment.path, 0
        for frame in segment.frames:
            for item in decode_items(frame.payload, path):
                if isinstance(item, SegmentHead):
                    if segment_name(item.first_offset) != path.rpartition("/")[2]:
                        raise CorruptData(f"{path} says that it begins at offset {item.first_offset}")
                    self._begin_segment(item, path)
                elif not self._has_begun:
                    raise CorruptData(f"{path} does not begin with the head of a segment")
                else:
                    self._replay(item, path)
                    if isinstance(item, LogEntry):
                        entries_end = max(entries_end, item.offset + 1)
        if not self._has_begun:
            # Its frames hold nothing at all.
            raise CorruptData(f"{path} does not begin with the head of a segment")
        return entries_end

    def _begin_segment(self, head: SegmentHead, path: str) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.start_offset, self.previous_epoch = head.first_offset, head.previous_epoch
            # A segment before this one was trimmed because a snapshot has its entries: they are committed.
            self.commit_end = head.first_offset
        elif head.first_offset != self.end_offset:
            raise CorruptData(f"{path} begins at offset {head.first_offset} where {self.end_offset} was expected")
        self.term, self.is_member = Term(head.term, head.voted_for), head.is_member

    def _replay(self, item: JournalItem, path: str) -> None:
        match item:
            case Term():
                self.term = item
            case LogEntry():
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
