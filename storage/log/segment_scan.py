"""Walking the batches of a segment file, header by header, in large reads: for recovery and for searches in it."""

from collections.abc import Iterator
from typing import Final

from ...protocol.batches import ATTRIBUTES_OFFSET, HEADER_SIZE, LENGTH_OVERHEAD, read_header
from ...protocol.checksum import crc32c
from ...protocol.errors import CorruptData
from ..disk.files import File
from .rules.record_batch import StoredBatch

_CHUNK_BYTES: Final = 1024 * 1024


class BadBatch(CorruptData):
    """What is at `position` of a segment file is no whole, intact batch."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position
        self.offset: int | None = None
        """Up to there the batches are intact, where that is known."""


def scan(
    file: File, position: int, end: int, *, verify: bool = False, chunk_bytes: int = _CHUNK_BYTES
) -> Iterator[StoredBatch]:
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
        yield StoredBatch(position, header, buffer, offset)
        position += size
