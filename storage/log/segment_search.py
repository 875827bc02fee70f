"""The place of one batch in a segment file, found header by header from what its offset index says, in small reads.

Kafka: `FileRecords.searchForOffsetFromPosition`.
"""

from struct import Struct
from typing import Final, NamedTuple

from ...protocol.batches import HEADER_SIZE, LENGTH_OVERHEAD
from ...protocol.errors import CorruptData
from ..disk.files import File
from .index_file import CorruptIndex
from .segment_scan import BadBatch, scan

# What one read takes in when a batch is looked for after an index entry: about an index interval.
_WALK_BYTES: Final = 8192
# Base offset, batch length, last offset delta.
_PLACE: Final = Struct(">qi11xi")


class Place(NamedTuple):
    """Where a batch lies in the segment's file."""

    position: int
    size_bytes: int


def find_batch(file: File, segment_base_offset: int, offset: int, position: int, end: int) -> Place | None:
    """The first batch that ends at or after `offset`, from `position` on, where one begins before it, up to `end`.

    CorruptIndex when `position`, which an index gave unless it is 0, leads astray; CorruptData, OSError.
    """
    is_indexed = position > 0
    next_offset = segment_base_offset
    while position + HEADER_SIZE <= end:
        start = position
        buffer = file.read_at(position, min(_WALK_BYTES, end - position))
        last = start + len(buffer) - _PLACE.size
        if last < start:
            raise CorruptData(f"{file.path} is shorter than the {end} bytes it should have")
        while position <= last:
            base_offset, length, last_offset_delta = _PLACE.unpack_from(buffer, position - start)
            if is_indexed:
                is_indexed = False
                if not segment_base_offset <= base_offset <= offset:
                    raise CorruptIndex(f"{file.path} at {position}: offset {base_offset} cannot lead to {offset}")
            if length < HEADER_SIZE - LENGTH_OVERHEAD:
                raise CorruptData(f"{file.path} at {position}: a batch of the impossible length {length}")
            if base_offset < next_offset:
                raise CorruptData(f"{file.path} at {position}: offset {base_offset} follows {next_offset - 1}")
            next_offset = base_offset + last_offset_delta + 1
            if next_offset > offset:
                return Place(position, LENGTH_OVERHEAD + length)
            position += LENGTH_OVERHEAD + length
    return None


def find_damaged_batch(file: File, segment_base_offset: int, offset: int, end: int) -> Place | None:
    """What is in the place of the batch that begins at `offset`, up to `end`, and is not that one.

    None where a batch before it is not intact, or all are. OSError.
    """
    next_offset = segment_base_offset
    try:
        for batch in scan(file, 0, end):
            header = batch.header
            if not next_offset <= header.base_offset <= header.last_offset < offset:
                position = batch.position
                break
            next_offset = header.next_offset
        else:
            return None
    except BadBatch as bad:
        position = bad.position
    return Place(position, end - position) if next_offset == offset else None
