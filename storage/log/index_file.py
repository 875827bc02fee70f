"""Sorted entries of one fixed size in a file, the newest in memory: what offset index and time index have in common.

The newest entries wait in memory until `is_write_due`, so an append to the log rarely costs another write. Losing them
is harmless: only the active segment has any, and recovery rebuilds the indexes of the segments it walks. Lookups read
the file where it lies and keep one block of it, for the reader that goes on from there: an index never costs more than
about two kilobytes of memory.
"""

from contextlib import suppress
from struct import Struct
from typing import Final

from ...protocol.errors import CorruptData
from ..disk.files import File, Files

_MAX_PENDING_ENTRIES: Final = 64
# Entries that are read at once: the last step of a lookup.
_BLOCK_ENTRIES: Final = 128


class CorruptIndex(CorruptData):
    """An index file does not say what an index can say; it can be rebuilt from the log."""


class IndexFile:
    """Entries are pairs of integers; both rise with the entry number, the first one strictly."""

    __slots__ = ("_block", "_block_start", "_entry", "_file", "_files", "_path", "_pending", "_written", "count")

    def __init__(self, files: Files, path: str, entry: Struct, *, is_reset: bool = False) -> None:
        """With `is_reset` the file is emptied, else it tells the first entries; it need not exist.

        CorruptIndex when it ends within an entry.
        """
        self._files = files
        self._path = path
        self._entry = entry
        self._file: File | None = None
        self._pending = bytearray()
        # Part of the file, from this entry on.
        self._block = b""
        self._block_start = 0
        # Entries in the file.
        self._written = 0
        if is_reset:
            with suppress(FileNotFoundError):
                file = files.open(path)
                if file.size:
                    file.truncate(0)
                self._file = file
        elif files.exists(path):
            size = files.size(path)
            if size % entry.size:
                raise CorruptIndex(f"{path} has {size} bytes, which is no multiple of {entry.size}")
            self._written = size // entry.size
        self.count = self._written
        """Of all entries, those in memory included."""

    def entry(self, slot: int) -> tuple[int, int]:
        """The entry number `slot`, counted from 0."""
        size = self._entry.size
        if slot >= self._written:
            first, second = self._entry.unpack_from(self._pending, (slot - self._written) * size)
        else:
            in_block = (slot - self._block_start) * size
            if 0 <= in_block < len(self._block):
                first, second = self._entry.unpack_from(self._block, in_block)
            else:
                first, second = self._entry.unpack(self._read(slot, 1))
        return first, second

    def entries(self) -> list[tuple[int, int]]:
        """All of them."""
        written = self._read(0, self._written) if self._written else b""
        return [(first, second) for first, second in self._entry.iter_unpack(written + bytes(self._pending))]

    def append(self, first: int, second: int) -> None:
        """Never touches the file, so what is in the log cannot fail to be indexed."""
        self._pending += self._entry.pack(first, second)
        self.count += 1

    @property
    def is_write_due(self) -> bool:
        return self.count - self._written >= _MAX_PENDING_ENTRIES

    def find(self, target: int, column: int) -> int:
        """The last slot whose value in `column` is at most `target`, or -1."""
        low, high = 0, self.count
        written = self._written
        if high > written > 0:
            if self.entry(written)[column] <= target:
                low = written
            else:
                high = written
        if 0 < high <= written:
            low, high = self._narrow_to_block(low, high, target, column)
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[column] <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries."""
        if count >= self._written:
            del self._pending[(count - self._written) * self._entry.size :]
            self.count = min(count, self.count)
            return
        self._pending.clear()
        self.count = self._written
        self._block = b""
        self.file.truncate(count * self._entry.size)
        self._written = self.count = count

    def write_pending(self) -> None:
        if self._pending:
            self.file.append((bytes(self._pending),))
            self._written = self.count
            self._pending.clear()

    @property
    def file(self) -> File:
        """The file itself, created if missing."""
        if self._file is None:
            self._file = self._files.open(self._path, create=True)
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def moved_to(self, path: str) -> None:
        """The file was renamed."""
        self.close()
        self._path = path

    def _narrow_to_block(self, low: int, high: int, target: int, column: int) -> tuple[int, int]:
        """Slots of which the answer lies between, all of them in the block that is in memory."""
        if self._block and self.entry(self._block_start)[column] <= target:
            end = self._block_end()
            if end < high and self.entry(end - 1)[column] <= target:
                # A reader that goes on finds its answer in the block behind.
                self._read_block(end - 1)
                end = self._block_end()
            if end == high or target < self.entry(end - 1)[column]:
                return self._block_start, end
        while high - low > _BLOCK_ENTRIES:
            middle = (low + high) // 2
            if self._entry.unpack(self._read(middle, 1))[column] <= target:
                low = middle + 1
            else:
                high = middle
        # From the entry that may be the answer on, and on to those that a reader asks for next.
        self._read_block(max(low - 1, 0))
        return low, high

    def _block_end(self) -> int:
        return self._block_start + len(self._block) // self._entry.size

    def _read_block(self, start: int) -> None:
        self._block = self._read(start, min(_BLOCK_ENTRIES + 1, self._written - start))
        self._block_start = start

    def _read(self, slot: int, count: int) -> bytes:
        size = self._entry.size
        data = self.file.read_at(slot * size, count * size)
        if len(data) != count * size:
            raise CorruptIndex(f"{self._path} ends before entry {slot + count} of {self._written}")
        return data
