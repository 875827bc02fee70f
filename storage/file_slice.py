"""What a read of a log answers: a range of a file, not yet read."""

from typing import Final, NamedTuple

from .files import File


class FileSlice:
    """`size` bytes of a segment file. It stays readable while it lives, even when the segment is deleted."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def read_nowait(self, offset: int, size: int) -> bytes | bytearray | None:
        """At most `size` bytes from `offset` of the slice, possibly fewer; None when that would wait for the disk."""
        return self.file.read_at_nowait(self.position + offset, min(size, self.size - offset))

    def read(self, offset: int, size: int) -> bytes:
        """The same, waiting: for the executor."""
        return self.file.read_at(self.position + offset, min(size, self.size - offset))


class FetchData(NamedTuple):
    """Record batches, as stored, in slices; the last batch may be cut off, as the protocol allows."""

    slices: tuple[FileSlice, ...]
    size: int


NOTHING: Final = FetchData((), 0)
