"""The journal: the quorum's log and this voter's term and vote, durably.

A folder of segments, `<offset of the first entry, 20 digits>.journal`, each a file of frames (`frames.py`). A frame is
one write and one sync; its payload is the CBOR array of what it adds, in order:

    [0, format, first offset, epoch before it, term, voted for]   the first item of every segment
    [1, term, voted for]                                          term and vote from here on
    [2, offset, epoch, command]                                   an entry

Beside them lies `reserve`, a file that only takes room. When the disk is full it goes, and the write is tried again: a
node goes on leading, and can be told to delete what fills the disk. It is made anew by the first write that finds room.

The form knows nothing of any consensus library. Segments begin when a snapshot is made and go when one covers them.
Synchronous: whoever writes runs it in the executor, one call at a time.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import cbor2

from ..protocol.errors import CorruptData
from ..storage.disk_errors import is_no_room
from ..storage.files import File, Files
from .consensus import ConsensusFailed
from .frames import encode_frame, scan_frames

logger = logging.getLogger(__name__)

# As much as one write may have, or thousands of ordinary ones.
RESERVE_BYTES = 4 * 1024 * 1024
_RESERVE = "reserve"
_FORMAT = 1
_SUFFIX = ".journal"
_SEGMENT, _TERM, _ENTRY = 0, 1, 2


class Term(NamedTuple):
    """The highest term this voter has seen, and whom it voted for in it."""

    term: int
    voted_for: int | None


class Entry(NamedTuple):
    """An entry of the log; `epoch` is the term of the leader that proposed it."""

    offset: int
    epoch: int
    command: bytes


JournalItem: TypeAlias = Term | Entry


class Journal:
    """One folder. Make it, exhaust `recover`, then write."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._segments: list[int] = []
        self._file: File | None = None
        self._next_sequence = 0
        self._reserve = f"{directory}/{_RESERVE}"
        self._lacks_reserve = False
        self.term = Term(0, None)
        self.end_offset = 0
        self.last_epoch = 0

    @property
    def start_offset(self) -> int:
        """Offset of the first entry that is kept."""
        return self._segments[0] if self._segments else self.end_offset

    def recover(self) -> Iterator[Entry]:
        """Yield all entries, then be ready to write. A torn write at the very end is cut.

        Raises ConsensusFailed, with one sentence for the operator, when anything else is wrong. What is yielded may not
        be synced yet: it is, after the next write.
        """
        names = [name for name in self._files.list_directory(self._directory) if name.endswith(_SUFFIX)]
        for number, name in enumerate(names):
            path = f"{self._directory}/{name}"
            try:
                yield from self._recover_segment(name, path, is_last=number == len(names) - 1)
            except CorruptData as error:
                raise ConsensusFailed(f"The metadata journal cannot be used: {error}.") from error

    def _recover_segment(self, name: str, path: str, *, is_last: bool) -> Iterator[Entry]:
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
            for item in _decode(frame.payload, path):
                match item:
                    case _SegmentHead():
                        self._check_segment(item, name, path)
                        self._segments.append(item.first_offset)
                        self.end_offset, self.last_epoch = item.first_offset, item.previous_epoch
                        self.term = Term(item.term, item.voted_for)
                    case Term():
                        self.term = item
                    case Entry():
                        if not self._segments or item.offset != self.end_offset:
                            raise CorruptData(f"{path} has offset {item.offset} where {self.end_offset} was expected")
                        self.end_offset, self.last_epoch = item.offset + 1, item.epoch
                        yield item
        self._next_sequence = scan.frames[-1].sequence + 1
        if is_last:
            self._open_last()
            if scan.end < len(data):
                assert self._file is not None
                self._file.truncate(scan.end)
                self._file.sync()

    def _check_segment(self, head: "_SegmentHead", name: str, path: str) -> None:
        if head.format != _FORMAT:
            raise CorruptData(f"{path} has format {head.format}, this version of penstock knows format {_FORMAT}")
        if _name(head.first_offset) != name:
            raise CorruptData(f"{path} says that it begins at offset {head.first_offset}")
        if self._segments and head.first_offset != self.end_offset:
            raise CorruptData(f"{path} begins at offset {head.first_offset} where {self.end_offset} was expected")

    def _open_last(self) -> None:
        if self._segments:
            self._file = self._files.open(f"{self._directory}/{_name(self._segments[-1])}")

    def write(self, items: Sequence[JournalItem]) -> int:
        """Write the items and sync them, all or nothing; return the bytes written. Raises ConsensusFailed.

        After an error nothing may be written any more: what a failed sync left behind is unknown.
        """
        try:
            try:
                written = self._write(items)
            except OSError as error:
                if not is_no_room(error) or not self._files.exists(self._reserve):
                    raise
                logger.error("metadata journal uses its reserve: path=%s error=%s", self._reserve, error)
                self._files.remove(self._reserve)
                self._lacks_reserve = True
                return self._write(items)
            if self._lacks_reserve:
                self.keep_reserve()
            return written
        except OSError as error:
            raise ConsensusFailed(f"The metadata journal in {self._directory} cannot be written: {error}.") from error

    def _write(self, items: Sequence[JournalItem]) -> int:
        if self._file is None:
            self._begin_segment()
            assert self._file is not None
        frame = encode_frame(self._next_sequence, cbor2.dumps([_encode(item) for item in items]))
        self._file.append([frame])
        self._file.sync()
        self._next_sequence += 1
        for item in items:
            if isinstance(item, Entry):
                assert item.offset == self.end_offset, f"offset {item.offset} after {self.end_offset}"
                self.end_offset, self.last_epoch = item.offset + 1, item.epoch
            else:
                assert item.term >= self.term.term, "the term went backwards"
                self.term = item
        return len(frame)

    def keep_reserve(self) -> None:
        """Make the reserve when it is not there and there is room for twice as much; else a later write does."""
        files = self._files
        if files.exists(self._reserve):
            return
        self._lacks_reserve = True
        if files.free_bytes(self._directory) < 2 * RESERVE_BYTES:
            return
        try:
            files.allocate(self._reserve, RESERVE_BYTES)
        except OSError as error:
            if not is_no_room(error):
                raise
        else:
            self._lacks_reserve = False

    def roll(self) -> None:
        """Let the next entry begin a new segment, if there is room for one. Raises ConsensusFailed."""
        if self._file is None or self._segments[-1] == self.end_offset:
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
        except OSError as error:
            raise ConsensusFailed(f"The metadata journal in {self._directory} cannot be trimmed: {error}.") from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin_segment(self) -> None:
        head = _SegmentHead(_FORMAT, self.end_offset, self.last_epoch, self.term.term, self.term.voted_for)
        path = f"{self._directory}/{_name(self.end_offset)}"
        file = self._files.open(path, create=True)
        try:
            file.append([encode_frame(self._next_sequence, cbor2.dumps([[_SEGMENT, *head]]))])
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


class _SegmentHead(NamedTuple):
    format: int
    first_offset: int
    previous_epoch: int
    term: int
    voted_for: int | None


def _name(first_offset: int) -> str:
    return f"{first_offset:020}{_SUFFIX}"


def _encode(item: JournalItem) -> list[object]:
    return [_ENTRY if isinstance(item, Entry) else _TERM, *item]


def _decode(payload: bytes, path: str) -> Iterator[_SegmentHead | JournalItem]:
    try:
        items = cbor2.loads(payload)
    except (cbor2.CBORDecodeError, ValueError, TypeError) as error:
        raise CorruptData(f"{path} has a frame that is no CBOR: {error}") from error
    if not isinstance(items, list):
        raise CorruptData(f"{path} has a frame that is no array")
    for item in items:
        match item:
            case [0, int() as segment_format, int() as first, int() as epoch, int() as term, int() | None as voted_for]:
                yield _SegmentHead(segment_format, first, epoch, term, voted_for)
            case [1, int() as term, int() | None as voted_for]:
                yield Term(term, voted_for)
            case [2, int() as offset, int() as epoch, bytes() as command]:
                yield Entry(offset, epoch, command)
            case _:
                raise CorruptData(f"{path} has an item that this version of penstock does not know: {item!r:.100}")
