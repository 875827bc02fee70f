"""Keys and values of batches as coordinators write them: a quick reader beside the one for all batches.

Loading a coordinator reads each record of its log, and what that costs is what the cluster waits for after the loss of
a node. `read_records` is what reads everything else, and what says what is wrong with a batch.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from .batches import COMPRESSION_MASK, CONTROL_FLAG, CURRENT_MAGIC, HEADER_SIZE, LENGTH_OVERHEAD, TRANSACTIONAL_FLAG

# Base offset, batch length, magic, attributes, last offset delta, record count.
_HEADER: Final = Struct(">qi4xb4xhi30xi")
_UNUSUAL: Final = COMPRESSION_MASK | CONTROL_FLAG | TRANSACTIONAL_FLAG
_MORE: Final = 0x80
_NULL: Final = 1


class PlainBatch(NamedTuple):
    base_offset: int
    next_offset: int
    end: int
    """Position behind it."""
    records: list[tuple[int, bytes, bytes | None]]
    """Offset delta, key and value of each."""


def read_plain_batch(data: bytes, position: int) -> PlainBatch | None:
    """The batch at `position`; its CRC and timestamps are not looked at.

    None for one that `read_header` and `read_records` have to look at: cut off or corrupt, compressed, transactional,
    a control batch, with headers, records from 8 KiB on, or null keys.
    """
    if len(data) - position < HEADER_SIZE:
        return None
    base_offset, length, magic, attributes, last_delta, count = _HEADER.unpack_from(data, position)
    end = position + LENGTH_OVERHEAD + length
    if magic != CURRENT_MAGIC or attributes & _UNUSUAL or not position + HEADER_SIZE <= end <= len(data):
        return None
    try:
        records = _read_records(data, position + HEADER_SIZE, end, count)
    except IndexError:
        return None
    return None if records is None else PlainBatch(base_offset, base_offset + last_delta + 1, end, records)


def _read_records(data: bytes, position: int, end: int, count: int) -> list[tuple[int, bytes, bytes | None]] | None:
    """Varints are zigzag, so lengths are even before they are halved, and have one or two bytes here. IndexError."""
    records: list[tuple[int, bytes, bytes | None]] = []
    append = records.append
    for _ in range(count):
        length = data[position]
        position += 1
        if length >= _MORE:
            length += (data[position] - 1) << 7
            position += 1
        record_end = position + (length >> 1)
        # No attribute has a meaning. The timestamp is passed over.
        position += 1
        while data[position] >= _MORE:
            position += 1
        delta = data[position + 1]
        position += 2
        if delta >= _MORE:
            delta += (data[position] - 1) << 7
            position += 1
        size = data[position]
        position += 1
        if size >= _MORE:
            size += (data[position] - 1) << 7
            position += 1
        key_end = position + (size >> 1)
        key = data[position:key_end]
        value_size = data[key_end]
        position = key_end + 1
        if value_size >= _MORE:
            value_size += (data[position] - 1) << 7
            position += 1
        value: bytes | None = None
        if value_size != _NULL:
            value_end = position + (value_size >> 1)
            value = data[position:value_end]
            position = value_end
            if value_size & 1:
                return None
        if (
            (length | delta | size) & 1
            # A third byte of one of them makes it far too large.
            or position + 1 != record_end
            or record_end > end
            or data[position]
        ):
            return None
        position = record_end
        append((delta >> 1, key, value))
    return records if position == end else None
