"""The sparse map of a segment from timestamps to offsets, in the `.timeindex` file. Kafka: `TimeIndex`.

    offset  size  field
    0       8     the largest timestamp of the segment so far, milliseconds
    8       4     last offset of the first batch with it, less the segment's base offset

Timestamps rise from entry to entry, offsets do not fall. The last entry of a segment that is no longer active is the
largest timestamp in it: retention by time asks for it.
"""

from struct import Struct
from typing import Final

from ...protocol.batches import NO_TIMESTAMP
from ..disk.files import Files
from .index_file import CorruptIndex, IndexFile

ENTRY: Final = Struct(">qi")


class TimeIndex(IndexFile):
    __slots__ = ("_base_offset", "_last_timestamp")

    def __init__(self, files: Files, path: str, base_offset: int, *, is_reset: bool = False) -> None:
        super().__init__(files, path, ENTRY, is_reset=is_reset)
        self._base_offset = base_offset
        self._last_timestamp = self.last()[0]

    def is_full(self, max_bytes: int) -> bool:
        # The last slot is kept for the entry that closes the segment.
        return self.count >= max_bytes // ENTRY.size - 1

    def check(self) -> None:
        """CorruptIndex when the last entries are out of order, as when preallocated zeros follow them."""
        count = self.count
        if count == 0:
            return
        timestamp, offset = self.entry(count - 1)
        if offset < 0 or (count > 1 and self.entry(count - 2)[0] >= timestamp):
            raise CorruptIndex(f"{self._path} ends in timestamp {timestamp} at offset +{offset}")

    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) without entries."""
        count = self.count
        if count == 0:
            return NO_TIMESTAMP, self._base_offset
        timestamp, offset = self.entry(count - 1)
        return timestamp, self._base_offset + offset

    def lookup(self, timestamp: int) -> int:
        """An offset before which every record has a smaller timestamp; the base offset when no entry tells."""
        slot = self.find(timestamp, 0)
        return self._base_offset if slot < 0 else self._base_offset + self.entry(slot)[1]

    def append_entry(self, timestamp: int, offset: int) -> None:
        """Does nothing unless `timestamp` is above that of the last entry."""
        if timestamp > self._last_timestamp:
            self.append(timestamp, offset - self._base_offset)
            self._last_timestamp = timestamp

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and above."""
        self.truncate(self.find(offset - self._base_offset - 1, 1) + 1)
        self._last_timestamp = self.last()[0]
