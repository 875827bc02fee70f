"""Walking the batches of a segment file, header by header, in large reads: for recovery and for searches in it."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from crc32c import crc32c

from ...protocol.batches import ATTRIBUTES_OFFSET, HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader, read_header
from ...protocol.errors import CorruptData
from ..disk.files import File

_CHUNK_BYTES: Final = 1024 * 1024


class ScannedBatch(NamedTuple):
    """A batch at `position` of a file; it is in `buffer` at `offset_in_buffer`."""

    position: int
    header: BatchHeader
    buffer: memoryview
    offset_in_buffer: int

    def records_buffer(self) -> memoryview:
        """The bytes of the whole batch."""
        start = self.offset_in_buffer
        return self.buffer[start : start + self.header.size_bytes]


class BadBatch(CorruptData):
    """What is at `position` of a segment file is no whole, intact batch."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def scan(
    file: File, position: int, end: int, *, verify: bool = False, chunk_bytes: int = _CHUNK_BYTES
) -> Iterator[ScannedBatch]:
    """The batches from `position`, where one must begin, up to `end` of the file.

    With `verify` each batch must have its CRC. BadBatch at the first that does not fit, is cut off or is corrupt.
    """
    buffer = memoryview(b"")
    start = position
    while position < end:
        offset = position - start
        if offset + HEADER_SIZE > len(buffer):
            buffer, start, offset = memoryview(file.read_at(position, min(chunk_bytes, end - position))), position, 0
        try:
            header = read_header(buffer, offset)
        except CorruptData as error:
            raise BadBatch(f"{file.path} at {position}: {error}", position) from None
        size = LENGTH_OVERHEAD + header.batch_length
        if position + size > end:
            raise BadBatch(f"{file.path} at {position}: a batch of {size} bytes is cut off", position)
        if offset + size > len(buffer):
            data = file.read_at(position, max(size, min(chunk_bytes, end - position)))
            if len(data) < size:
                raise BadBatch(f"{file.path} at {position}: the file ends within the batch", position)
            buffer, start, offset = memoryview(data), position, 0
        if verify and crc32c(buffer[offset + ATTRIBUTES_OFFSET : offset + size]) != header.crc:
            raise BadBatch(f"{file.path} at {position}: the batch does not have its CRC", position)
        yield ScannedBatch(position, header, buffer, offset)
        position += size
