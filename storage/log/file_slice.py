"""What a read of a log answers: a range of a file, not yet read.

A slice is read while it is sent, when its answer can no longer say that this failed: the connection ends. The file is
suspect then, and from there on its bytes are read once before they are promised, so that the next answer says so, and
those of other files arrive.
"""

from typing import Final, NamedTuple

from ..disk.disk_calls import send_nowait
from ..disk.files import File

_PROBE_BYTES: Final = 256 * 1024


class FileSlice:
    """`size` bytes of a segment file. It stays readable while it lives, even when the segment is deleted."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def read_nowait(self, offset: int, size: int) -> bytes | bytearray | None:
        """At most `size` bytes from `offset` of the slice, possibly fewer; None when that would wait for the disk."""
        try:
            return self.file.read_at_nowait(self.position + offset, min(size, self.size - offset))
        except OSError:
            self.file.is_suspect = True
            raise

    def send_nowait(self, descriptor: int, offset: int, size: int) -> int | None:
        """`File.send_nowait` of at most `size` bytes from `offset` of the slice."""
        return self.file.send_nowait(descriptor, self.position + offset, min(size, self.size - offset))

    def read(self, offset: int, size: int) -> bytes:
        """What `read_nowait` reads, waiting: for the executor."""
        try:
            return self.file.read_at(self.position + offset, min(size, self.size - offset))
        except OSError:
            self.file.is_suspect = True
            raise

    def probe(self) -> None:
        """Read all of it, waiting, and forget it again. OSError; else the file is no longer suspect."""
        for offset in range(0, self.size, _PROBE_BYTES):
            self.read(offset, _PROBE_BYTES)
        self.file.is_suspect = False


class MemorySlice(FileSlice):
    """A slice whose bytes are in memory, as those from a tier are: it has no file."""

    __slots__ = ("_data",)

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.position = 0
        self.size = len(data)

    def read_nowait(self, offset: int, size: int) -> bytes:
        return bytes(self._data[offset : offset + size])

    def send_nowait(self, descriptor: int, offset: int, size: int) -> int:
        """From memory into the socket, without a copy on the way."""
        return send_nowait(descriptor, self._data[offset : offset + size])

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._data[offset : offset + size])

    def probe(self) -> None:
        """Nothing can go wrong any more."""


class FetchData(NamedTuple):
    """Record batches, as stored, in slices; the last batch may be cut off, as the protocol allows."""

    slices: tuple[FileSlice, ...]
    size: int


NOTHING: Final = FetchData((), 0)
