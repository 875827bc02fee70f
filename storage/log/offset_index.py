"""The sparse map of a segment from offsets to positions, in the `.index` file. Kafka: `OffsetIndex`.

    offset  size  field
    0       4     last offset of a batch, less the segment's base offset
    4       4     position in the `.log` file where that batch begins

Both rise from entry to entry. One entry is written for each `index.interval.bytes` of log.
"""

from struct import Struct
from typing import Final

from ..disk.files import Files
from .index_file import CorruptIndex, IndexFile

ENTRY: Final = Struct(">ii")
# Offsets are stored as 31 bits relative to the base offset.
MAX_RELATIVE_OFFSET: Final = 2**31 - 1


class OffsetIndex(IndexFile):
    __slots__ = ("_base_offset",)

    def __init__(self, files: Files, path: str, base_offset: int, *, is_reset: bool = False) -> None:
        super().__init__(files, path, ENTRY, is_reset=is_reset)
        self._base_offset = base_offset

    def is_full(self, max_bytes: int) -> bool:
        return self.count >= max_bytes // ENTRY.size

    def check(self, log_size_bytes: int) -> None:
        """CorruptIndex when the last entries cannot be of a log of this size, as when they are preallocated zeros."""
        count = self.count
        if count == 0:
            return
        offset, position = self.entry(count - 1)
        if offset < 0 or not 0 <= position < log_size_bytes:
            raise CorruptIndex(f"{self._path} ends in offset +{offset} at {position} of {log_size_bytes} bytes of log")
        if count > 1:
            before, before_position = self.entry(count - 2)
            if before >= offset or before_position >= position:
                raise CorruptIndex(f"{self._path} ends in offset +{before}, then +{offset}")

    def lookup(self, offset: int) -> int:
        """A position at or before the batch that holds `offset`, where a batch begins."""
        slot = self.find(offset - self._base_offset, 0)
        return 0 if slot < 0 else self.entry(slot)[1]

    def offset_behind(self, position: int) -> int | None:
        """The last offset of the first batch with an entry that begins at `position` or behind; None without one."""
        slot = self.find(position - 1, 1) + 1
        return None if slot == self.count else self._base_offset + self.entry(slot)[0]

    def last_position(self) -> int:
        """Where the batch of the last entry begins; 0 without entries."""
        count = self.count
        return 0 if count == 0 else self.entry(count - 1)[1]

    def append_entry(self, last_offset: int, position: int) -> None:
        self.append(last_offset - self._base_offset, position)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and above."""
        self.truncate(self.find(offset - self._base_offset - 1, 0) + 1)
